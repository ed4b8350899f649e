//! What the capabilities take that read more than text: one thing of an element, markup, a printed page, a picture
//! with its refs, and what a script says.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::reference::{ElementRef, TabId};

/// What is read of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Its text as it is seen.
    Text,
    /// The value of a field; of one that hides it, only how long it is.
    Value,
    /// An attribute, by its name.
    Attribute,
    /// Where it is in the view, in CSS pixels.
    Box,
    /// Whether it is visible, enabled, editable, checked, focused and in view.
    States,
}

args! {
    /// Reads one thing of an element.
    GetArgs {
        /// The element.
        #[serde(rename = "ref")]
        pub reference: ElementRef,
        /// What.
        pub what: What,
        /// Which attribute.
        #[serde(default)]
        #[schemars(length(min = 1, max = 100))]
        pub name: Option<String>,
    }
}

args! {
    /// Reads the markup of the page or of an element, without scripts, styles and what fields hold.
    #[derive(Default)]
    GetHtmlArgs {
        /// Only this element.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
        /// With the element itself, not only what is in it.
        #[serde(default)]
        pub outer: bool,
        /// Where to cut, in characters; by default 20,000.
        #[serde(default)]
        #[schemars(range(min = 1000, max = 60_000))]
        pub max_chars: Option<u32>,
    }
}

/// A size of paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Paper {
    /// 297 × 420 mm.
    A3,
    /// 210 × 297 mm.
    #[default]
    A4,
    /// 148 × 210 mm.
    A5,
    /// 8.5 × 11 inches.
    Letter,
    /// 8.5 × 14 inches.
    Legal,
    /// 11 × 17 inches.
    Tabloid,
}

args! {
    /// Prints the page.
    #[derive(Default)]
    PdfArgs {
        /// The long side across.
        #[serde(default)]
        pub landscape: bool,
        /// How large, 1 being as it is.
        #[serde(default)]
        #[schemars(range(min = 0.1, max = 2))]
        pub scale: Option<f64>,
        /// The paper.
        #[serde(default)]
        pub paper: Paper,
        /// Which pages, like `1-3,5`; by default all.
        #[serde(default)]
        #[schemars(length(max = 200), regex(pattern = r"^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$"))]
        pub ranges: Option<String>,
    }
}

args! {
    /// Takes a picture in which elements are framed and named by their refs. It is always a PNG.
    #[derive(Default)]
    AnnotateArgs {
        /// Only this element.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
        /// The whole page, up to 16,384 pixels high.
        #[serde(default)]
        pub full_page: bool,
        /// Scaled down to this width, in pixels.
        #[serde(default)]
        #[schemars(range(min = 16, max = 16_384))]
        pub max_width: Option<u32>,
        /// Which elements; by default those in the picture that can be acted on.
        #[serde(default)]
        #[schemars(length(max = 200))]
        pub refs: Vec<ElementRef>,
    }
}

args! {
    /// Runs a script in the page, and tells the value of its last expression once it is there.
    EvaluateArgs {
        /// The script. With `ref` it is one expression, in which `element` is that element.
        #[schemars(length(min = 1, max = 50_000))]
        pub expression: String,
        /// The element that `element` stands for; the script then runs in its frame.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
    }
}
