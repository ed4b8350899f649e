//! What happened to the files that pages made a browser download: the stream `downloads/<space id>`.
//!
//! A stream beside that of the Space, because it goes on when the Space is over: a person releases in their own time.
//!
//! ```text
//!   started ─► captured (the receipt) ─► approved ─► released
//!      └─► refused       ├─► rejected
//!                        └─► expired
//! ```

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::events;
use crate::{
    id::{OwnerId, ParseIdError, WorkspaceId},
    metadata::Timestamp,
    number::Generation,
    redaction::Redacted,
};

/// The name of a download: a UUID that the server chose, written as 36 characters in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DownloadId(Uuid);

impl DownloadId {
    /// The id made of these 128 bits; randomness and time come from the caller.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The 128 bits behind the text.
    #[must_use]
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl fmt::Display for DownloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl fmt::Debug for DownloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DownloadId {
    type Err = ParseIdError;

    /// One spelling only: two texts are never one id, and none is a path.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let parsed = Uuid::parse_str(text).ok().map(Self).filter(|id| id.to_string() == text);
        parsed.ok_or(ParseIdError::Form("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
    }
}

/// What was captured. Nothing in it says where the bytes lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Where it came from.
    pub url: Redacted<String>,
    /// What the page called it: text, and never a path.
    pub suggested_filename: Redacted<String>,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of the bytes, lower-case hex.
    pub sha256: String,
    /// What its name says that it is.
    pub claimed_media_type: String,
    /// What its first bytes say that it is.
    pub sniffed_media_type: String,
    /// Of which Workspace.
    pub workspace: WorkspaceId,
    /// When it was captured.
    pub captured_at: Timestamp,
}

/// A person's word that a captured file may leave the quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// What was approved: SHA-256 of the bytes as they were read again, lower-case hex.
    pub sha256: String,
    /// Their number.
    pub bytes: u64,
    /// When.
    pub approved_at: Timestamp,
    /// By whom, as the server authenticated them.
    pub authorized_principal: OwnerId,
    /// What that principal may enter: a Workspace, or `*` for all.
    pub authorized_principal_scope: String,
    /// Who the caller said that they were.
    pub declared_operator: Redacted<String>,
}

/// Why a download was not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedReason {
    /// It is, or became, larger than a file may be.
    TooLarge,
    /// The Space has had as many files as it may have.
    SpaceFiles,
    /// The Space has had as many bytes as it may have.
    SpaceBytes,
    /// The Workspace has had as many bytes as it may have in a day.
    WorkspaceBytes,
    /// Nothing came for too long.
    Stalled,
    /// It ended before its end: the connection was cut, or somebody cancelled it.
    Interrupted,
    /// Its browser ended, or the server did.
    BrowserEnded,
    /// What lay in the landing folder is no file of ours: a link, a folder, or another size than was told.
    NotAFile,
    /// The disk took it not.
    Disk,
}

events! {
    /// A fact of the stream of a Space's downloads.
    DownloadEvent {
        /// A page made the browser download something.
        Started = "download_started" {
            download: DownloadId,
            url: Redacted<String>,
            suggested_filename: Redacted<String>,
            workspace: WorkspaceId,
            generation: Generation,
        }
        /// All of it is in the quarantine: this is its receipt.
        Captured = "download_captured" {
            download: DownloadId,
            receipt: Box<Receipt>,
        }
        /// It was not captured, and nothing of it is kept.
        Refused = "download_refused" {
            download: DownloadId,
            reason: RefusedReason,
            /// So many bytes had come.
            bytes: u64,
        }
        /// An operator lets it out. The first approval stands.
        Approved = "download_approved" {
            download: DownloadId,
            approval: Box<Approval>,
        }
        /// Its three files are published.
        Released = "download_released" {
            download: DownloadId,
        }
        /// An operator does not let it out; its bytes are deleted.
        Rejected = "download_rejected" {
            download: DownloadId,
            reason: Redacted<String>,
            declared_operator: Redacted<String>,
        }
        /// Nobody let it out in time; its bytes are deleted.
        Expired = "download_expired" {
            download: DownloadId,
        }
    }
}

impl DownloadEvent {
    /// Which download it is about.
    #[must_use]
    pub const fn download(&self) -> DownloadId {
        match self {
            Self::Started { download, .. }
            | Self::Captured { download, .. }
            | Self::Refused { download, .. }
            | Self::Approved { download, .. }
            | Self::Released { download }
            | Self::Rejected { download, .. }
            | Self::Expired { download } => *download,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q4_a_download_has_one_spelling_and_none_is_a_path() {
        let text = "0191d2f4-7c1e-7a5b-8c3d-1f2e3d4c5b6a";
        assert_eq!(text.parse::<DownloadId>().expect("it is one").to_string(), text);
        let simple = text.replace('-', "");
        for other in
            ["", "..", "../../etc/passwd", &text.to_uppercase(), &simple, &format!("{{{text}}}"), "a/b"]
        {
            assert!(other.parse::<DownloadId>().is_err(), "{other}");
        }
    }
}
