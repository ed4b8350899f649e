//! What the capabilities take that choose, point by coordinates, and scroll.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Button, Modifier};
use crate::reference::{ElementRef, TabId};

args! {
    /// Chooses options of a select; all others are no longer chosen.
    SelectArgs {
        /// The select.
        #[serde(rename = "ref")]
        pub reference: ElementRef,
        /// The options, each by its value or its label. More than one only where several may be chosen.
        #[schemars(length(min = 1, max = 50), inner(length(max = 1000)))]
        pub values: Vec<String>,
    }
}

args! {
    /// Gives files to a page.
    UploadArgs {
        /// The field for files, its label, or what opens a chooser when it is clicked.
        #[serde(rename = "ref")]
        pub reference: ElementRef,
        /// The files: ids of artifacts of this Space.
        #[schemars(length(min = 1, max = 10), inner(regex(pattern = r"^art_[0-7][0-9a-hjkmnp-tv-z]{25}$")))]
        pub files: Vec<String>,
    }
}

/// A border to scroll to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Border {
    /// The beginning.
    Top,
    /// The end.
    Bottom,
}

args! {
    /// Scrolls by a distance, or to a border: give `to`, or one or both of `dx` and `dy`.
    #[schemars(extend("anyOf" = [{"required": ["to"]}, {"required": ["dx"]}, {"required": ["dy"]}]))]
    ScrollArgs {
        /// What to scroll, or something in it; by default the page.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
        /// To the right, in CSS pixels.
        #[serde(default)]
        #[schemars(range(min = -20_000, max = 20_000))]
        pub dx: Option<i32>,
        /// Down, in CSS pixels.
        #[serde(default)]
        #[schemars(range(min = -20_000, max = 20_000))]
        pub dy: Option<i32>,
        /// To a border.
        #[serde(default)]
        pub to: Option<Border>,
    }
}

args! {
    /// Drags one element onto another with the mouse.
    DragArgs {
        /// What to drag.
        pub from: ElementRef,
        /// Where to drop it.
        pub to: ElementRef,
        /// In how many moves; by default 5.
        #[serde(default)]
        #[schemars(range(min = 1, max = 50))]
        pub steps: Option<u32>,
    }
}

/// What the mouse does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MouseAction {
    /// Moves there.
    Move,
    /// Presses a button there, and keeps it pressed.
    Down,
    /// Releases a button there.
    Up,
    /// Presses and releases a button there.
    Click,
    /// Turns the wheel there by `dx` and `dy`.
    Wheel,
}

args! {
    /// Uses the mouse at a point of what is in view. Where there is a ref, `click` and `drag` are surer.
    MouseArgs {
        /// What it does.
        pub action: MouseAction,
        /// To the right, in CSS pixels of the view.
        #[schemars(range(min = 0, max = 100_000))]
        pub x: f64,
        /// Down, in CSS pixels of the view.
        #[schemars(range(min = 0, max = 100_000))]
        pub y: f64,
        /// The mouse button.
        #[serde(default)]
        pub button: Button,
        /// Keys that are held down.
        #[serde(default)]
        #[schemars(length(max = 4))]
        pub modifiers: Vec<Modifier>,
        /// How far the wheel scrolls to the right, in CSS pixels.
        #[serde(default)]
        #[schemars(range(min = -20_000, max = 20_000))]
        pub dx: i32,
        /// How far the wheel scrolls down, in CSS pixels.
        #[serde(default)]
        #[schemars(range(min = -20_000, max = 20_000))]
        pub dy: i32,
    }
}
