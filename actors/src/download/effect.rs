//! What the disk is still owed, derived from the state of the downloads: a restart finds the same work again. All of it may
//! be done twice.

use eventlog::event::download::{Approval, DownloadId, Receipt};

use super::state::{Shelf, Stage};

/// The files of an approved download, which are to be published and then said to be there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Publish {
    pub(crate) download: DownloadId,
    pub(crate) receipt: Box<Receipt>,
    pub(crate) approval: Box<Approval>,
}

/// What `shelf` is owed. What the quarantine has beyond what is captured or approved is owed its end, too:
/// [`Stage::is_in_quarantine`].
pub(crate) fn due(shelf: &Shelf) -> Vec<Publish> {
    let owed = shelf.items.iter().filter_map(|(id, item)| match &item.stage {
        Stage::Approved(receipt, approval) => {
            Some(Publish { download: *id, receipt: receipt.clone(), approval: approval.clone() })
        }
        Stage::Started
        | Stage::Refused(_)
        | Stage::Captured(_)
        | Stage::Released { .. }
        | Stage::Rejected(_)
        | Stage::Expired(_) => None,
    });
    owed.collect()
}
