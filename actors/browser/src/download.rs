//! Downloads as the browser tells of them: each has an id of ours from its first event on, and lands in one folder under
//! a name that Chromium chose. What a page suggests as a name is text.
//!
//! Only the browser's own events count: each also comes a second time from its page, if that is still there.
//!
//! ```text
//!   begun ─► grown ─► grown ─► landed      whole, in the landing folder
//!      └────────┴─────────────► cancelled  nothing of it is left there
//! ```

use std::collections::HashMap;
use std::path::PathBuf;

use chromiumoxide_cdp::cdp::browser_protocol::browser::CancelDownloadParams;
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use uuid::Uuid;

use crate::browser::Browser;
use crate::connection::Connection;
use crate::session::Session;
use crate::state::State;
use crate::tab::{DownloadNote, DownloadState, TEXT_CHARS_MAX, cut};

/// So many downloads may be under way, or landed and not settled; the next is cancelled at once. With it the queue of
/// what is told is bounded too: a browser tells of the growth of each about twice a second.
const UNSETTLED_MAX: usize = 256;

/// Characters that are kept of a suggested name.
const NAME_CHARS_MAX: usize = 200;

/// Where downloads land.
#[derive(Debug, Clone)]
pub struct Landing {
    /// A folder that the browser's user may write in, and nobody else.
    pub folder: PathBuf,
    /// How large a file the browser's main process may write at all.
    pub file_bytes_max: u64,
}

/// What is seen of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadSeen {
    /// It began.
    Begun {
        /// Its id.
        id: Uuid,
        /// Where it comes from, as the page gave it.
        url: String,
        /// What the page calls it, as the page gave it, without folders.
        suggested_name: String,
    },
    /// Bytes came, or its length became known.
    Grown {
        /// Its id.
        id: Uuid,
        /// So many came.
        received: u64,
        /// So many shall come, as the site says.
        total: Option<u64>,
    },
    /// All of it is in the landing folder. [`Browser::settle_download`] once it is taken away.
    Landed {
        /// Its id.
        id: Uuid,
        /// The name of its file there: one part of a path, chosen by the browser.
        file: String,
        /// So many bytes, as the browser counted.
        received: u64,
    },
    /// It ended before its end, and nothing of it is left.
    Cancelled {
        /// Its id.
        id: Uuid,
        /// So many bytes had come.
        received: u64,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WillBegin {
    guid: String,
    url: String,
    #[serde(default)]
    suggested_filename: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    guid: String,
    #[serde(default)]
    total_bytes: f64,
    #[serde(default)]
    received_bytes: f64,
    state: String,
}

/// The downloads that are not settled, by the browser's name of them.
#[derive(Debug)]
pub(crate) struct Downloads {
    /// Whether they are let in at all.
    pub(crate) are_let_in: bool,
    unsettled: HashMap<String, Uuid>,
    told: UnboundedSender<DownloadSeen>,
    heard: Option<UnboundedReceiver<DownloadSeen>>,
}

impl Default for Downloads {
    fn default() -> Self {
        let (told, heard) = unbounded_channel();
        Self { are_let_in: false, unsettled: HashMap::new(), told, heard: Some(heard) }
    }
}

impl Downloads {
    fn tell(&self, seen: DownloadSeen) {
        // An error means that nobody listens any more.
        let _ = self.told.send(seen);
    }
}

/// The browser's own name is a UUID; anything else would be a path.
fn is_plain(guid: &str) -> bool {
    Uuid::parse_str(guid).is_ok_and(|uuid| uuid.as_hyphenated().to_string() == guid.to_ascii_lowercase())
}

pub(crate) fn begun(state: &mut State, connection: &Connection, event: WillBegin) {
    if state.landing.unsettled.contains_key(&event.guid) {
        return;
    }
    let id = Uuid::now_v7();
    let name = event.suggested_filename.rsplit(['/', '\\']).next().unwrap_or_default();
    let (url, suggested_name) = (cut(&event.url, TEXT_CHARS_MAX), cut(name, NAME_CHARS_MAX));
    let is_let_in =
        state.landing.are_let_in && state.landing.unsettled.len() < UNSETTLED_MAX && is_plain(&event.guid);
    state.note_download(DownloadNote {
        download_id: id.to_string(),
        suggested_name: suggested_name.clone(),
        url: url.clone(),
        state: if is_let_in { DownloadState::InProgress } else { DownloadState::Refused },
        bytes: 0,
    });
    let downloads = &mut state.landing;
    if !downloads.are_let_in {
        return;
    }
    downloads.tell(DownloadSeen::Begun { id, url, suggested_name });
    if is_let_in {
        downloads.unsettled.insert(event.guid, id);
    } else {
        downloads.tell(DownloadSeen::Cancelled { id, received: 0 });
        cancel(connection, event.guid);
    }
}

pub(crate) fn progressed(state: &mut State, event: &Progress) {
    let Some(id) = state.landing.unsettled.get(&event.guid).copied() else { return };
    let (received, total) = (count(event.received_bytes), count(event.total_bytes));
    let seen = match event.state.as_str() {
        "completed" => {
            state.change_download(id, DownloadState::Arrived, received);
            DownloadSeen::Landed { id, file: event.guid.clone(), received }
        }
        "canceled" => {
            state.landing.unsettled.remove(&event.guid);
            state.change_download(id, DownloadState::Cancelled, received);
            DownloadSeen::Cancelled { id, received }
        }
        _ => {
            state.change_download(id, DownloadState::InProgress, received);
            DownloadSeen::Grown { id, received, total: (total > 0).then_some(total) }
        }
    };
    state.landing.tell(seen);
}

/// A count as the protocol gives it: a number of JavaScript. Negative where it is not known.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is not negative")]
fn count(number: f64) -> u64 {
    number.max(0.0) as u64
}

fn cancel(connection: &Connection, guid: String) {
    Session::browser(connection.clone()).post(&CancelDownloadParams::new(guid));
}

impl State {
    fn change_download(&mut self, id: Uuid, now: DownloadState, bytes: u64) {
        let id = id.to_string();
        let note = self.downloads.iter_mut().rev().find(|(_, note)| note.download_id == id);
        if let Some((_, note)) = note.filter(|(_, note)| note.state != DownloadState::Refused) {
            (note.state, note.bytes) = (now, bytes);
        }
    }
}

impl Browser {
    /// What is seen of downloads, from the first on; once.
    pub fn take_downloads(&self) -> Option<UnboundedReceiver<DownloadSeen>> {
        self.hub.state().landing.heard.take()
    }

    /// Cancels a download that is under way; it is told as cancelled.
    pub fn cancel_download(&self, id: Uuid) {
        let found = {
            let mut state = self.hub.state();
            let id_text = id.to_string();
            if let Some((_, note)) = state.downloads.iter_mut().find(|(_, note)| note.download_id == id_text)
            {
                note.state = DownloadState::Refused;
            }
            state.landing.unsettled.iter().find(|(_, known)| **known == id).map(|(guid, _)| guid.clone())
        };
        if let Some(guid) = found {
            self.root.post(&CancelDownloadParams::new(guid));
        }
    }

    /// Says that a download that has landed was taken away, or that nobody waits for one any more.
    pub fn settle_download(&self, id: Uuid) {
        self.hub.state().landing.unsettled.retain(|_, known| *known != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q1_a_name_that_is_no_uuid_never_becomes_a_path() {
        assert!(is_plain("5d7a2e9c-3f60-4f0e-9c3c-9a4d2f1e8b7a"));
        for other in ["", "..", "a/b", "/etc/passwd", "5d7a2e9c3f604f0e9c3c9a4d2f1e8b7a"] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn a_count_is_never_negative() {
        assert_eq!([count(-1.0), count(0.0), count(16.5), count(f64::NAN)], [0, 0, 16, 0]);
    }
}
