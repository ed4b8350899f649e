//! The downloads of a Space as their events have made them.

use std::collections::BTreeMap;

use eventlog::{
    Position, Redacted, Sequence, Timestamp,
    event::download::{Approval, DownloadId, Receipt, RefusedReason},
    id::{SpaceId, WorkspaceId},
};

/// All downloads of one Space.
#[derive(Debug, Clone, PartialEq)]
pub struct Shelf {
    /// Of which Space.
    pub space: SpaceId,
    /// Its Workspace; none before its first event.
    pub workspace: Option<WorkspaceId>,
    /// The downloads, by id: oldest first.
    pub items: BTreeMap<DownloadId, Item>,
    /// So many were let in.
    pub files: u64,
    /// So many bytes were captured, whatever became of them.
    pub bytes: u64,
    /// So many were refused.
    pub refusals: u64,
    /// Its last sequence.
    pub revision: Sequence,
    /// The position of its last event.
    pub position: Position,
}

/// One download.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Where it comes from.
    pub url: Redacted<String>,
    /// What the page calls it.
    pub suggested_filename: Redacted<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// How it is.
    pub stage: Stage,
}

/// How a download is.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// It is under way.
    Started,
    /// It was not captured.
    Refused(RefusedReason),
    /// It is in the quarantine.
    Captured(Box<Receipt>),
    /// It may leave the quarantine, and its files are not all published yet.
    Approved(Box<Receipt>, Box<Approval>),
    /// Its files are published.
    Released {
        /// What was captured.
        receipt: Box<Receipt>,
        /// Who let it out.
        approval: Box<Approval>,
        /// When its files were there.
        released_at: Timestamp,
    },
    /// A person did not let it out.
    Rejected(Box<Receipt>),
    /// Nobody let it out in time.
    Expired(Box<Receipt>),
}

impl Shelf {
    /// One without downloads.
    #[must_use]
    pub const fn empty(space: SpaceId) -> Self {
        Self {
            space,
            workspace: None,
            items: BTreeMap::new(),
            files: 0,
            bytes: 0,
            refusals: 0,
            revision: Sequence::ZERO,
            position: Position::ZERO,
        }
    }

    /// How a download is, if there is such a one.
    #[must_use]
    pub fn stage(&self, download: DownloadId) -> Option<&Stage> {
        self.items.get(&download).map(|item| &item.stage)
    }
}

impl Stage {
    /// Its name, as on the wire.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Refused(_) => "refused",
            Self::Captured(_) => "captured",
            Self::Approved(..) => "approved",
            Self::Released { .. } => "released",
            Self::Rejected(_) => "rejected",
            Self::Expired(_) => "expired",
        }
    }

    /// Its receipt, where it got one.
    #[must_use]
    pub const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Started | Self::Refused(_) => None,
            Self::Captured(receipt)
            | Self::Approved(receipt, _)
            | Self::Released { receipt, .. }
            | Self::Rejected(receipt)
            | Self::Expired(receipt) => Some(receipt),
        }
    }

    /// Whether its bytes belong into the quarantine.
    #[must_use]
    pub const fn is_in_quarantine(&self) -> bool {
        matches!(self, Self::Captured(_) | Self::Approved(..))
    }
}
