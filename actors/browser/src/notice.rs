//! What the browser does by itself, for whoever keeps a record of it.

use tokio::sync::broadcast;

use crate::reference::TabId;
use crate::tab::DialogInfo;

/// So many notices wait for a listener; the oldest are left out for one that does not listen.
const WAITING_MAX: usize = 64;

/// Something that happened without having been asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A page opened a dialog. If `dialog.answered`, it was accepted by itself and is over.
    Dialog {
        /// The first dialog of a browser is 1.
        number: u64,
        /// In which tab.
        tab: TabId,
        /// What it says.
        dialog: DialogInfo,
    },
    /// A page came to an address that no page may show, and was taken away.
    Blocked {
        /// In which tab.
        tab: TabId,
        /// The address, as the page gave it.
        url: String,
    },
}

/// Where notices go.
#[derive(Debug)]
pub(crate) struct Notices(broadcast::Sender<Notice>);

impl Notices {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(WAITING_MAX).0)
    }

    pub(crate) fn tell(&self, notice: Notice) {
        // An error means that nobody listens.
        let _ = self.0.send(notice);
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}
