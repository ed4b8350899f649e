//! What each capability gives back. All text in them comes from the page: redact before recording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reference::{ElementRef, TabId};
use crate::tab::{DialogInfo, DownloadNote, TabInfo};

/// Whether input is known to have had its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The page received it.
    Done,
    /// It was sent, and whether the page received it is not known.
    SentUnconfirmed,
}

/// The state of the page after an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageState {
    /// The tab.
    pub tab: TabId,
    /// The address of its page.
    pub url: String,
    /// The title of its page.
    pub title: String,
    /// Whether it shows another document or address than before.
    pub navigated: bool,
    /// A dialog that is open, or that was answered by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialog: Option<DialogInfo>,
    /// Tabs that were opened meanwhile.
    pub new_tabs: Vec<TabInfo>,
    /// Popups that were closed at once because there were too many tabs.
    #[serde(skip_serializing_if = "is_zero")]
    pub popups_refused: u64,
    /// Downloads that were begun meanwhile.
    pub downloads: Vec<DownloadNote>,
    /// True if the action closed the tab.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// Whether the input had its way.
    pub effect: Effect,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The page after a navigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NavigateResult {
    /// The page.
    #[serde(flatten)]
    pub page: PageState,
    /// The HTTP status of its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// False if the page is shown but what was waited for did not come in time.
    pub loaded: bool,
}

/// The page after something was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SelectResult {
    /// The page.
    #[serde(flatten)]
    pub page: PageState,
    /// What is chosen now; not told where the page left or opened a dialog at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<Vec<ChosenOption>>,
}

/// An option of a select.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenOption {
    /// Its value.
    pub value: String,
    /// What it is called.
    pub label: String,
}

/// The page after something was checked or unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckResult {
    /// The page. Its `effect` is `sent_unconfirmed` if the element is not as it was asked to be.
    #[serde(flatten)]
    pub page: PageState,
    /// Whether it is checked now; not told where the page left or opened a dialog at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
}

/// The page after it was scrolled.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScrollResult {
    /// The page.
    #[serde(flatten)]
    pub page: PageState,
    /// Where it is scrolled to; not told where the page left or opened a dialog at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<ScrollPosition>,
}

/// How far something is scrolled, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScrollPosition {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
    /// How far it can be to the right.
    pub x_max: f64,
    /// How far it can be down.
    pub y_max: f64,
}

/// The page as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageSnapshot {
    /// The tab.
    pub tab: TabId,
    /// The address of its page.
    pub url: String,
    /// The title of its page.
    pub title: String,
    /// One line a node, one blank a level.
    pub text: String,
    /// How many lines the whole text has.
    pub node_count: usize,
    /// How many of them come after this part.
    pub omitted: usize,
    /// How to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How many frames were read; not with a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<usize>,
}

/// The text of the page or of an element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Content {
    /// The text.
    pub text: String,
    /// How many lines come after this part.
    pub omitted: usize,
    /// How to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The page after it got files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UploadResult {
    /// The page. Its `effect` is `sent_unconfirmed` if the page sees other files than it was given.
    #[serde(flatten)]
    pub page: PageState,
    /// The files as the page sees them; not told where the page left or opened a dialog at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Vec<AcceptedFile>>,
}

/// A file as a page sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptedFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// One thing of an element.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GetResult {
    /// What was asked for: a text, an attribute's text or null, a box `{x, y, width, height}`, or states.
    pub value: Value,
    /// The value is the beginning of a longer one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// So many characters are not told: they are, or may be, a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
}

/// Where something is, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Area {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// The markup of the page or of an element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Html {
    /// The markup. It is whole: what is open where it was cut is closed.
    pub html: String,
    /// How many elements were left out.
    pub omitted: u64,
}

/// A printed page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdf {
    /// The file.
    pub bytes: bytes::Bytes,
}

/// A picture with its refs.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotated {
    /// The picture.
    pub picture: Screenshot,
    /// What is framed in it.
    pub legend: Vec<Legend>,
}

/// One element that is framed in a picture.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Legend {
    /// The element.
    #[serde(rename = "ref")]
    pub reference: ElementRef,
    /// Where it is in the picture, in its pixels.
    #[serde(rename = "box")]
    pub area: Area,
}

/// What a script said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvaluateResult {
    /// The page after it.
    #[serde(flatten)]
    pub page: PageState,
    /// The value as JSON, null for what JSON does not have; not told where the page left or opened a dialog at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// The file.
    pub bytes: bytes::Bytes,
    /// Its media type, like `image/png`.
    pub media_type: &'static str,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// What a wait was for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitResult {
    /// What was met: `ms`, `text`, `text_gone`, `ref_state`, `url` or `load_state`.
    pub met: &'static str,
    /// How long it took, in milliseconds.
    pub waited_ms: u64,
    /// The address of the page.
    pub url: String,
    /// The title of the page.
    pub title: String,
}

/// The address of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UrlResult {
    /// The tab.
    pub tab: TabId,
    /// The address.
    pub url: String,
}

/// The title of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TitleResult {
    /// The tab.
    pub tab: TabId,
    /// The title.
    pub title: String,
}

/// All tabs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TabList {
    /// The tabs, oldest first.
    pub tabs: Vec<TabInfo>,
}
