//! What the browser is doing, kept by folding its events: tabs, sessions, dialogs, frames, refs.
//!
//! The fold runs on the connection's reader, so that state is never behind an answer. Event params are decoded to
//! small shapes of our own: an enum value that a newer browser invents must not lose an event.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::download::Downloads;
use crate::handover::HandedOver;
use crate::notice::Notices;
use crate::observer::Target;
use crate::reference::{NodeKey, References, TabId};
use crate::screencast::Shot;
use crate::tab::{DownloadNote, TEXT_CHARS_MAX, Tab, TabInfo, cut};

/// Tabs that one browser may have. A popup beyond is closed before its first request.
pub(crate) const TABS_MAX: usize = 20;

/// Downloads that are remembered for the next answers.
const DOWNLOADS_MAX: usize = 64;

/// A session and the part of a tab that it serves.
#[derive(Debug, Clone)]
pub(crate) struct Attached {
    pub(crate) tab: TabId,
    pub(crate) parent: Option<Arc<str>>,
}

/// All that is known of one browser.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tabs: BTreeMap<TabId, Tab>,
    last_tab: u32,
    pub(crate) active: Option<TabId>,
    pub(crate) sessions: HashMap<Arc<str>, Attached>,
    pub(crate) references: References,
    /// Fields that were seen to hide their value; they stay hidden if the page shows it later.
    pub(crate) secret_fields: HashSet<NodeKey>,
    /// Schemes of documents that a page brings itself and that its frames may show.
    pub(crate) inline_frames: Vec<String>,
    /// Copies of files that pages were given, with a node of the document that has them.
    pub(crate) given: Vec<(NodeKey, HandedOver)>,
    pub(crate) downloads: VecDeque<(u64, DownloadNote)>,
    pub(crate) download_count: u64,
    pub(crate) landing: Downloads,
    pub(crate) dialog_count: u64,
    pub(crate) popups_refused: u64,
    /// Pages that crashed since one was last loaded.
    pub(crate) crashes_in_a_row: u32,
    pub(crate) closed: bool,
}

impl State {
    pub(crate) fn tab_of(&self, session: &str) -> Option<TabId> {
        self.sessions.get(session).map(|attached| attached.tab)
    }

    pub(crate) fn tab_of_target(&self, target: &str) -> Option<TabId> {
        self.tabs.iter().find(|(_, tab)| &*tab.target == target).map(|(id, _)| *id)
    }

    pub(crate) fn add_tab(&mut self, tab: Tab) -> TabId {
        self.last_tab += 1;
        let id = TabId(self.last_tab);
        self.sessions.insert(tab.session.clone(), Attached { tab: id, parent: None });
        self.tabs.insert(id, tab);
        id
    }

    /// Removes a tab with its sessions and refs. The active tab stays what it was, even if it is gone.
    pub(crate) fn remove_tab(&mut self, id: TabId) -> Vec<Arc<str>> {
        self.tabs.remove(&id);
        let lost: Vec<Arc<str>> =
            self.sessions.iter().filter(|(_, a)| a.tab == id).map(|(session, _)| session.clone()).collect();
        for session in &lost {
            self.remove_session(session);
        }
        lost
    }

    /// Removes the session of a cross-process frame, and those of the frames inside it: of theirs nobody tells.
    pub(crate) fn remove_frame_sessions(&mut self, session: &str) -> Vec<Arc<str>> {
        let mut lost: Vec<Arc<str>> = vec![Arc::from(session)];
        let mut at = 0;
        while let Some(parent) = lost.get(at).cloned() {
            let inside = self.sessions.iter().filter(|(_, a)| a.parent.as_deref() == Some(&*parent));
            lost.extend(inside.map(|(id, _)| id.clone()));
            at += 1;
        }
        for session in &lost {
            self.remove_session(session);
        }
        lost
    }

    pub(crate) fn remove_session(&mut self, session: &str) {
        self.sessions.remove(session);
        self.forget(|key| &*key.session == session);
    }

    /// Forgets what was bound to nodes that are gone.
    pub(crate) fn forget(&mut self, mut is_gone: impl FnMut(&NodeKey) -> bool) {
        self.references.forget(&mut is_gone);
        self.secret_fields.retain(|key| !is_gone(key));
        self.given.retain(|(key, _)| !is_gone(key));
    }

    /// Notes the address and title of a tab.
    pub(crate) fn describe(&mut self, target: &Target) {
        if let Some(tab) = self.tab_of_target(&target.target_id).and_then(|id| self.tabs.get_mut(&id)) {
            tab.url = cut(&target.url, TEXT_CHARS_MAX);
            tab.title = cut(&target.title, TEXT_CHARS_MAX);
        }
    }

    pub(crate) fn note_download(&mut self, note: DownloadNote) {
        self.download_count += 1;
        self.downloads.push_back((self.download_count, note));
        if self.downloads.len() > DOWNLOADS_MAX {
            self.downloads.pop_front();
        }
    }

    pub(crate) fn list(&self) -> Vec<TabInfo> {
        let info = |(id, tab): (&TabId, &Tab)| TabInfo {
            tab: *id,
            url: tab.url.clone(),
            title: tab.title.clone(),
            active: self.active == Some(*id),
            opener: tab.opener,
            state: tab.state(),
        };
        self.tabs.iter().map(info).collect()
    }
}

/// The state with a bell that rings at each change.
#[derive(Debug, Clone)]
pub(crate) struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    bell: watch::Sender<()>,
    notices: Notices,
    shots: watch::Sender<Option<Shot>>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            bell: watch::channel(()).0,
            notices: Notices::new(),
            shots: watch::channel(None).0,
        }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Changes the state and rings.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state());
        self.0.bell.send_replace(());
        result
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.0.notices
    }

    /// A tab was drawn for who watches it. Gives back the shot that nobody has taken.
    pub(crate) fn offer(&self, shot: Shot) -> Option<Shot> {
        self.0.shots.send_replace(Some(shot))
    }

    /// Takes the newest shot, once there is one.
    pub(crate) async fn take_shot(&self) -> Shot {
        let mut offered = self.0.shots.subscribe();
        loop {
            let mut taken = None;
            self.0.shots.send_if_modified(|shot| {
                taken = shot.take();
                false
            });
            if let Some(shot) = taken {
                return shot;
            }
            // Cannot fail: the sender lives in `self`.
            let _ = offered.changed().await;
        }
    }

    pub(crate) fn bell(&self) -> watch::Receiver<()> {
        self.0.bell.subscribe()
    }

    /// Waits until `found` finds something in the state.
    pub(crate) async fn wait_for<R>(&self, mut found: impl FnMut(&State) -> Option<R>) -> R {
        let mut bell = self.bell();
        loop {
            if let Some(result) = found(&self.state()) {
                return result;
            }
            // Cannot fail: the sender lives in `self`.
            let _ = bell.changed().await;
        }
    }
}
