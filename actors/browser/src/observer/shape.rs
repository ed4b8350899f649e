//! The shapes of the events that are folded: only what is read of each.
//!
//! Our own, and no enums of the protocol: a value that a newer browser invents must not lose an event.

use std::sync::Arc;

use chromiumoxide_cdp::cdp::browser_protocol::input::DragData;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttachedEvent {
    pub(super) session_id: Arc<str>,
    pub(super) target_info: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Target {
    pub(crate) target_id: Arc<str>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) url: String,
    pub(super) opener_id: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetChanged {
    pub(super) target_info: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetGone {
    pub(super) target_id: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionGone {
    pub(super) session_id: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScreencastShot {
    pub(super) data: String,
    pub(super) session_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dialog {
    pub(super) message: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) default_prompt: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct FrameNavigated {
    pub(super) frame: NavigatedFrame,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NavigatedFrame {
    pub(super) id: Arc<str>,
    pub(super) loader_id: Arc<str>,
    pub(super) url: String,
    pub(super) unreachable_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameNamed {
    pub(super) frame_id: Arc<str>,
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) reason: String,
    #[serde(default)]
    pub(super) disposition: String,
    pub(super) loader_id: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseReceived {
    pub(super) loader_id: Arc<str>,
    pub(super) frame_id: Option<Arc<str>>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) response: Response,
}

#[derive(Deserialize)]
pub(super) struct Response {
    pub(super) status: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestPaused {
    pub(super) request_id: String,
}

/// `Input.dragIntercepted`: a native drag that the browser leaves to us.
#[derive(Deserialize)]
pub(super) struct DragIntercepted {
    pub(super) data: DragData,
}

/// `Page.fileChooserOpened`: a chooser for files that is left to us.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChooserOpened {
    pub(super) backend_node_id: Option<i64>,
}
