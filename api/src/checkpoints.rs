//! Signed checkpoints of the log: made while the server runs, kept in a file, and carried to places that the writer of the
//! log can not reach.
//!
//! ```text
//!   log ── durable head ──► keeper (a thread) ── every N events or minutes, on demand, at the stop ──► sign
//!                             │ at the start: the log must still be the one that was signed              │
//!                             └── else: refuses to sign, and says so                file ◄── then ──► sinks
//! ```
//!
//! The ack path knows nothing of it. A checkpoint that is lost is no harm: the next one speaks of everything before it.

mod keeper;
mod sinks;
mod store;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

pub use self::{
    keeper::{CheckpointsError, Handle, Keeper, Made, Running, start},
    store::{
        CheckpointStore, FOLDER, KeptCheckpoint, keep_up_to, known, put_aside_beyond, put_aside_foreign,
        read_kept_notes, read_key, read_notes,
    },
};

/// When checkpoints are made, and where they go: section `[checkpoints]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointsConfig {
    /// One after so many new events; 0 = not by their number. Default 10 000. Range: 0 to 1 000 000 000.
    pub every_events: u64,
    /// One after so many minutes, if there are new events; 0 = not by time. Default 60. Range: 0 to 10 080.
    pub every_minutes: u64,
    /// The file of the signing key; made if it is not there. Default: in the data folder. Whoever has the key can sign any
    /// history.
    pub key_file: Option<PathBuf>,
    /// A folder outside of the data folder, into a file of which each checkpoint is appended. Default: none.
    pub folder: Option<PathBuf>,
    /// Where each checkpoint is sent by POST as text. Default: nowhere.
    pub url: Option<Url>,
    /// Whether each checkpoint is written to the standard output. Default: false.
    pub stdout: bool,
}

impl Default for CheckpointsConfig {
    fn default() -> Self {
        Self {
            every_events: 10_000,
            every_minutes: 60,
            key_file: None,
            folder: None,
            url: None,
            stdout: false,
        }
    }
}

impl CheckpointsConfig {
    /// Every whole number, with its range.
    pub(crate) const RANGES: [(&str, u64, u64); 2] =
        [("every_events", 0, 1_000_000_000), ("every_minutes", 0, 10_080)];

    /// The first field that is not as it must be, and what it must be.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        for ((field, least, most), given) in
            Self::RANGES.into_iter().zip([self.every_events, self.every_minutes])
        {
            if !(least..=most).contains(&given) {
                return Some((field, format!("{given} is not between {least} and {most}")));
            }
        }
        for (field, path) in [("key_file", &self.key_file), ("folder", &self.folder)] {
            if path.as_ref().is_some_and(|path| !path.is_absolute()) {
                return Some((field, "must be an absolute path".to_owned()));
            }
        }
        let bad_url = self.url.as_ref().is_some_and(|url| !matches!(url.scheme(), "http" | "https"));
        bad_url.then(|| ("url", "must begin with http:// or https://".to_owned()))
    }
}
