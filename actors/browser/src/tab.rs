//! What is known of a tab and its frames, as the browser reported it.

use std::collections::HashMap;
use std::sync::Arc;

use chromiumoxide_cdp::cdp::browser_protocol::input::DragData;
use schemars::JsonSchema;
use serde::Serialize;

pub use crate::reference::TabId;

/// Characters of a title, URL or dialog text that are kept.
pub(crate) const TEXT_CHARS_MAX: usize = 2000;

/// Whether a tab can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TabState {
    /// It answers.
    Open,
    /// A dialog is open: answer it with `dialog`.
    Dialog,
    /// Its page crashed: `navigate` revives it.
    Crashed,
}

/// One line of the list of tabs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TabInfo {
    /// The tab's id.
    pub tab: TabId,
    /// The address of its page.
    pub url: String,
    /// The title of its page.
    pub title: String,
    /// Whether it is the tab that is used when none is named.
    pub active: bool,
    /// The tab that opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opener: Option<TabId>,
    /// Whether it can be used.
    pub state: TabState,
}

/// A dialog that a page opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DialogInfo {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    /// What it says, cut at 2,000 characters.
    pub message: String,
    /// What a prompt offers as its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_prompt: Option<String>,
    /// True if it was accepted by itself (only `beforeunload` is).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub answered: bool,
}

/// An open dialog and the session that can answer it.
#[derive(Debug, Clone)]
pub(crate) struct OpenDialog {
    pub(crate) info: DialogInfo,
    pub(crate) session: Arc<str>,
}

/// What is known of one frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameState {
    pub(crate) loader: Option<Arc<str>>,
    pub(crate) url: String,
    /// The document's `DOMContentLoaded`, `load` and network idle have happened.
    pub(crate) dom_ready: bool,
    pub(crate) loaded: bool,
    pub(crate) idle: bool,
    pub(crate) leaving: Leaving,
    /// What could not be reached, where this is the browser's error page.
    pub(crate) unreachable: Option<String>,
    /// It came back whole from the cache of pages: nothing was asked of a server.
    pub(crate) restored: bool,
}

/// Whether another document is to be shown in a frame.
///
/// The renderer tells that a navigation is asked for and that it no longer is; the browser tells that it has begun.
/// Neither waits for the other: what the renderer is done with may have begun or may have been given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Leaving {
    #[default]
    No,
    Asked,
    Handed,
    Begun,
}

/// What is known of one tab.
#[derive(Debug)]
pub(crate) struct Tab {
    /// The target's id, which is the id of the main frame too.
    pub(crate) target: Arc<str>,
    pub(crate) session: Arc<str>,
    pub(crate) opener: Option<TabId>,
    pub(crate) url: String,
    pub(crate) title: String,
    /// What every page needs has been set up in it.
    pub(crate) prepared: bool,
    pub(crate) crashed: bool,
    /// How often its renderer crashed.
    pub(crate) crashes: u32,
    pub(crate) dialog: Option<OpenDialog>,
    /// The last dialog that was answered without the agent.
    pub(crate) auto_answered: Option<DialogInfo>,
    /// How often the main frame showed another document or address.
    pub(crate) navigations: u64,
    /// The loader of the last document that a server answered for, and its HTTP status; heard during navigations only.
    pub(crate) response: Option<(Arc<str>, u16)>,
    /// How often it showed what may not be read.
    pub(crate) refusals: u64,
    /// A frame of this page showed a document of a scheme that frames may not show, and that was told.
    pub(crate) inline_refused: bool,
    pub(crate) frames: HashMap<Arc<str>, FrameState>,
    /// The mouse buttons that an agent keeps pressed in it, as bits: left 1, right 2, middle 4.
    pub(crate) pressed: i64,
    /// What a native drag carries that the browser has handed to us.
    pub(crate) dragged: Option<DragData>,
    /// The field of the chooser for files that was opened last, while choosers are left to us.
    pub(crate) chooser: Option<i64>,
}

impl Tab {
    pub(crate) fn new(target: Arc<str>, session: Arc<str>, opener: Option<TabId>) -> Self {
        Self {
            target,
            session,
            opener,
            url: String::new(),
            title: String::new(),
            prepared: false,
            crashed: false,
            crashes: 0,
            dialog: None,
            auto_answered: None,
            navigations: 0,
            response: None,
            refusals: 0,
            inline_refused: false,
            frames: HashMap::new(),
            pressed: 0,
            dragged: None,
            chooser: None,
        }
    }

    pub(crate) fn main_frame(&self) -> Option<&FrameState> {
        self.frames.get(&self.target)
    }

    pub(crate) fn state(&self) -> TabState {
        match self {
            Self { dialog: Some(_), .. } => TabState::Dialog,
            Self { crashed: true, .. } => TabState::Crashed,
            _ => TabState::Open,
        }
    }
}

/// A download that a page began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DownloadNote {
    /// Its id: that of its receipt, if it gets one.
    pub download_id: String,
    /// The name that the page suggests; never a path.
    pub suggested_name: String,
    /// Where it comes from.
    pub url: String,
    /// How it is.
    pub state: DownloadState,
    /// So many bytes have come.
    pub bytes: u64,
}

/// How a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DownloadState {
    /// It is under way.
    InProgress,
    /// It came to its end, and goes into the quarantine.
    Arrived,
    /// It was cut before its end; nothing of it is kept.
    Cancelled,
    /// It was not let in; nothing of it is kept.
    Refused,
}

/// Cuts `text` between characters.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}
