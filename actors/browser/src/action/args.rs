//! What each capability takes. The JSON schemas of these shapes are shown to agents.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::reference::{ElementRef, TabId};

/// Defines the args of one capability, with the two that all have.
macro_rules! args {
    ($(#[$meta:meta])* $name:ident { $($body:tt)* }) => {
        #[derive(Clone, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub struct $name {
            $($body)*
            /// The tab to use; by default the active one.
            #[serde(default)]
            pub tab: Option<TabId>,
            /// How long to wait at most, in milliseconds; never past the task's own deadline.
            #[serde(default)]
            #[schemars(range(min = 100, max = 60_000))]
            pub timeout_ms: Option<u32>,
        }

        // Args may hold passwords: they are never printed.
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

mod forms;
mod reading;

pub use forms::{Border, DragArgs, MouseAction, MouseArgs, ScrollArgs, SelectArgs, UploadArgs};
pub use reading::{AnnotateArgs, EvaluateArgs, GetArgs, GetHtmlArgs, Paper, PdfArgs, What};

/// What to wait for after a navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadState {
    /// The page and what it embeds is loaded (at most 10 seconds after it is shown).
    #[default]
    Load,
    /// The page is read, pictures may be missing.
    #[serde(rename = "domcontentloaded")]
    DomContentLoaded,
    /// Half a second without network traffic (at most 10 seconds after the page is shown).
    NetworkIdle,
    /// Nothing: the page is shown, no more.
    None,
}

/// A mouse button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Button {
    /// The main one.
    #[default]
    Left,
    /// The one for context menus.
    Right,
    /// The wheel.
    Middle,
}

/// A key that is held down meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Modifier {
    /// Alt.
    Alt,
    /// Control.
    Control,
    /// Meta.
    Meta,
    /// Shift.
    Shift,
}

/// A point of an element, from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// To the right, in CSS pixels.
    #[schemars(range(min = 0, max = 100_000))]
    pub x: f64,
    /// Down, in CSS pixels.
    #[schemars(range(min = 0, max = 100_000))]
    pub y: f64,
}

args! {
    /// Opens an address in the tab.
    NavigateArgs {
        /// The address: http, https or about:blank.
        #[schemars(length(min = 1, max = 8192))]
        pub url: String,
        /// What to wait for.
        #[serde(default)]
        pub wait: LoadState,
    }
}

args! {
    /// Goes back or forward in the history of the tab.
    HistoryArgs {
        /// What to wait for.
        #[serde(default)]
        pub wait: LoadState,
    }
}

args! {
    /// Loads the page again.
    ReloadArgs {
        /// What to wait for.
        #[serde(default)]
        pub wait: LoadState,
        /// Load everything anew.
        #[serde(default)]
        pub ignore_cache: bool,
    }
}

args! {
    /// Clicks an element, once it is visible, at rest, enabled and not covered.
    ClickArgs {
        /// The element.
        #[serde(rename = "ref")]
        pub reference: ElementRef,
        /// The mouse button.
        #[serde(default)]
        pub button: Button,
        /// Keys that are held down.
        #[serde(default)]
        #[schemars(length(max = 4))]
        pub modifiers: Vec<Modifier>,
        /// Where to click; by default the middle.
        #[serde(default)]
        pub position: Option<Position>,
        /// Click even if the element moves or is covered.
        #[serde(default)]
        pub force: bool,
    }
}

args! {
    /// Names one element: to hover, focus or scroll to.
    ElementArgs {
        /// The element.
        #[serde(rename = "ref")]
        pub reference: ElementRef,
    }
}

args! {
    /// Types text key by key, after what is there already.
    TypeArgs {
        /// The field; by default what has the focus.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
        /// The text.
        #[schemars(length(max = 10_000))]
        pub text: String,
        /// Pause between keys, in milliseconds.
        #[serde(default)]
        #[schemars(range(max = 200))]
        pub delay_ms: u32,
        /// Press Enter at the end.
        #[serde(default)]
        pub submit: bool,
    }
}

args! {
    /// Replaces the text of a field. An empty text clears it.
    FillArgs {
        /// The field.
        #[serde(rename = "ref")]
        pub reference: ElementRef,
        /// The text.
        #[schemars(length(max = 100_000))]
        pub text: String,
    }
}

args! {
    /// Presses a key.
    PressArgs {
        /// A single character, or a name like Enter, Tab, Escape, Backspace, Delete, ArrowDown, Home, PageUp, F5.
        #[schemars(length(min = 1, max = 20))]
        pub key: String,
        /// Keys that are held down.
        #[serde(default)]
        #[schemars(length(max = 4))]
        pub modifiers: Vec<Modifier>,
        /// The element that gets the focus first; by default what has it.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
        /// How many times.
        #[serde(default)]
        #[schemars(range(min = 1, max = 20))]
        pub count: Option<u32>,
    }
}

/// The state of an element to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElementState {
    /// It can be seen.
    Visible,
    /// It cannot be seen, or is gone.
    Hidden,
    /// It is not disabled.
    Enabled,
    /// It is disabled.
    Disabled,
    /// It is gone from the page.
    Gone,
}

/// An element and the state to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefState {
    /// The element.
    #[serde(rename = "ref")]
    pub reference: ElementRef,
    /// The state.
    pub state: ElementState,
}

args! {
    /// Waits for exactly one thing: give one of the fields up to `load_state`.
    // In the schema too, so that the server refuses anything else before the browser is asked.
    #[schemars(extend("oneOf" = [
        {"required": ["ms"]}, {"required": ["text"]}, {"required": ["text_gone"]}, {"required": ["ref_state"]},
        {"required": ["url"]}, {"required": ["load_state"]},
    ]))]
    WaitArgs {
        /// A time, in milliseconds.
        #[serde(default)]
        #[schemars(range(max = 30_000))]
        pub ms: Option<u32>,
        /// A text that appears.
        #[serde(default)]
        #[schemars(length(min = 1, max = 1000))]
        pub text: Option<String>,
        /// A text that disappears.
        #[serde(default)]
        #[schemars(length(min = 1, max = 1000))]
        pub text_gone: Option<String>,
        /// A state of an element.
        #[serde(default)]
        pub ref_state: Option<RefState>,
        /// An address that the tab comes to; `*` stands for any characters.
        #[serde(default)]
        #[schemars(length(min = 1, max = 2000))]
        pub url: Option<String>,
        /// A state of loading.
        #[serde(default)]
        pub load_state: Option<LoadState>,
    }
}

/// What to do with a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialogAction {
    /// OK.
    Accept,
    /// Cancel.
    Dismiss,
}

args! {
    /// Answers the open dialog.
    DialogArgs {
        /// What to do.
        pub action: DialogAction,
        /// What to type into a prompt before it is accepted.
        #[serde(default)]
        #[schemars(length(max = 10_000))]
        pub prompt_text: Option<String>,
    }
}

args! {
    /// Opens a tab.
    TabNewArgs {
        /// The address: http, https or about:blank.
        #[serde(default)]
        #[schemars(length(min = 1, max = 8192))]
        pub url: Option<String>,
        /// Leave the active tab as it is.
        #[serde(default)]
        pub background: bool,
    }
}

/// Names a tab: to select or close it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TabArgs {
    /// The tab.
    pub tab: TabId,
}

/// Takes nothing: the list of tabs.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TabListArgs {}

args! {
    /// Reads the page as text, with refs for what can be acted on.
    #[derive(Default)]
    SnapshotArgs {
        /// Only what is inside this element.
        #[serde(default)]
        pub root: Option<ElementRef>,
        /// Only what can be acted on.
        #[serde(default)]
        pub interactive: bool,
        /// Without lists, tables and groups as lines of their own.
        #[serde(default)]
        pub compact: bool,
        /// How many levels deep.
        #[serde(default)]
        #[schemars(range(max = 100))]
        pub depth: Option<u32>,
        /// With the addresses of links.
        #[serde(default)]
        pub urls: bool,
        /// Every node, each with a ref.
        #[serde(default)]
        pub full: bool,
        /// Where to cut, in characters; by default 20,000.
        #[serde(default)]
        #[schemars(range(min = 1000, max = 60_000))]
        pub max_chars: Option<u32>,
        /// Go on in the text that was cut, with the cursor that it named.
        #[serde(default)]
        #[schemars(length(max = 64))]
        pub cursor: Option<String>,
    }
}

/// The format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// Without loss.
    #[default]
    Png,
    /// Small, for photographs.
    Jpeg,
    /// Small.
    Webp,
}

args! {
    /// Takes a picture of what is in view, of an element, or of the whole page.
    #[derive(Default)]
    ScreenshotArgs {
        /// Only this element.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
        /// The whole page, up to 16,384 pixels high.
        #[serde(default)]
        pub full_page: bool,
        /// The format.
        #[serde(default)]
        pub format: ImageFormat,
        /// The quality of jpeg and webp, 0 to 100.
        #[serde(default)]
        #[schemars(range(max = 100))]
        pub quality: Option<u32>,
        /// Scaled down to this width, in pixels.
        #[serde(default)]
        #[schemars(range(min = 16, max = 16_384))]
        pub max_width: Option<u32>,
    }
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentFormat {
    /// As it is seen.
    #[default]
    Text,
    /// With headings, links, lists and tables.
    Markdown,
}

args! {
    /// Reads the text of the page or of an element.
    #[derive(Default)]
    GetContentArgs {
        /// Only this element.
        #[serde(default, rename = "ref")]
        pub reference: Option<ElementRef>,
        /// The format.
        #[serde(default)]
        pub format: ContentFormat,
        /// Where to cut, in characters; by default 20,000.
        #[serde(default)]
        #[schemars(range(min = 1000, max = 60_000))]
        pub max_chars: Option<u32>,
        /// Go on in the text that was cut, with the cursor that it named.
        #[serde(default)]
        #[schemars(length(max = 64))]
        pub cursor: Option<String>,
    }
}

args! {
    /// Takes nothing of its own.
    #[derive(Default)]
    PageArgs {}
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_that_agents_see_carries_every_limit_and_takes_nothing_else() {
        let schema = schemars::schema_for!(FillArgs).to_value();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["ref", "text"]));
        assert_eq!(schema["properties"]["ref"]["pattern"], "^e[1-9][0-9]{0,6}$");
        assert_eq!(schema["properties"]["text"]["maxLength"], 100_000);
        assert_eq!(schema["properties"]["timeout_ms"]["minimum"], 100);
        let unknown = json!({ "ref": "e1", "text": "x", "selector": "#a" });
        assert!(serde_json::from_value::<FillArgs>(unknown).is_err());
    }

    #[test]
    fn args_are_never_printed() {
        let args: FillArgs =
            serde_json::from_value(json!({ "ref": "e1", "text": "hunter2" })).expect("well formed");
        assert_eq!(format!("{args:?}"), "FillArgs { .. }");
    }
}
