//! Folds each event of the browser into the state, and prepares every new page before its first request.

mod shape;

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::emulation::{
    SetDeviceMetricsOverrideParams, SetFocusEmulationEnabledParams,
};
use chromiumoxide_cdp::cdp::browser_protocol::fetch;
use chromiumoxide_cdp::cdp::browser_protocol::network::ErrorReason;
use chromiumoxide_cdp::cdp::browser_protocol::page::{
    CloseParams, EnableParams, HandleJavaScriptDialogParams, NavigateParams, SetLifecycleEventsEnabledParams,
};
use chromiumoxide_cdp::cdp::browser_protocol::target::{
    CloseTargetParams, FilterEntry, SetAutoAttachParams, TargetFilter,
};
use chromiumoxide_cdp::cdp::js_protocol::runtime::RunIfWaitingForDebuggerParams;
use tracing::{debug, trace};

pub(crate) use self::shape::Target;
use self::shape::{
    AttachedEvent, ChooserOpened, Dialog, DragIntercepted, FrameNamed, FrameNavigated, RequestPaused,
    ResponseReceived, ScreencastShot, SessionGone, TargetChanged, TargetGone,
};
use crate::appearance::Appearance;
use crate::connection::{Connection, Event, Gone, Listener};
use crate::download;
use crate::notice::Notice;
use crate::policy;
use crate::reference::TabId;
use crate::screencast::Shot;
use crate::session::Session;
use crate::state::{Attached, Hub, State, TABS_MAX};
use crate::tab::{DialogInfo, FrameState, Leaving, OpenDialog, TEXT_CHARS_MAX, Tab, cut};

/// How long a popup that is turned away may go without a request before it is closed.
const TURN_AWAY_WAIT: Duration = Duration::from_millis(500);

pub(crate) struct Observer {
    pub(crate) hub: Hub,
    pub(crate) viewport: (u32, u32),
    pub(crate) appearance: Appearance,
}

impl Listener for Observer {
    fn event(&mut self, connection: &Connection, event: Event<'_>) {
        trace!(method = event.method, "An event came.");
        if let Err(error) = self.fold(connection, event) {
            // What the decoder says may quote the page.
            debug!(method = event.method, category = ?error.classify(), "An event had an unexpected shape.");
        }
    }

    fn closed(&mut self) {
        self.hub.change(|state| state.closed = true);
    }
}

impl Observer {
    fn fold(&self, connection: &Connection, event: Event<'_>) -> serde_json::Result<()> {
        let params = event.params;
        match (event.method, event.session) {
            ("Target.attachedToTarget", parent) => {
                self.attached(connection, parent, serde_json::from_str(params)?);
            }
            ("Target.detachedFromTarget", _) => {
                let gone: SessionGone = serde_json::from_str(params)?;
                self.detached(connection, &gone.session_id);
            }
            ("Target.targetInfoChanged", _) => {
                let changed: TargetChanged = serde_json::from_str(params)?;
                self.hub.change(|state| state.describe(&changed.target_info));
            }
            ("Target.targetDestroyed", None) => {
                let gone: TargetGone = serde_json::from_str(params)?;
                self.destroyed(connection, &gone.target_id);
            }
            ("Inspector.targetCrashed", Some(session)) => self.crashed(connection, session),
            ("Browser.downloadWillBegin", None) => {
                let begins: download::WillBegin = serde_json::from_str(params)?;
                self.hub.change(|state| download::begun(state, connection, begins));
            }
            ("Browser.downloadProgress", None) => {
                let progress: download::Progress = serde_json::from_str(params)?;
                self.hub.change(|state| download::progressed(state, &progress));
            }
            ("Fetch.requestPaused", Some(session)) => {
                let paused: RequestPaused = serde_json::from_str(params)?;
                Self::fail_request(connection, session, paused.request_id);
            }
            ("Network.responseReceived", Some(session)) => {
                let received: ResponseReceived = serde_json::from_str(params)?;
                self.change_tab(session, |tab| answered(tab, received));
            }
            ("Input.dragIntercepted", Some(session)) => {
                let dragged: DragIntercepted = serde_json::from_str(params)?;
                self.change_tab(session, |tab| tab.dragged = Some(dragged.data));
            }
            (method, Some(session)) if method.starts_with("Page.") => {
                self.fold_page(connection, method, session, params)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn fold_page(
        &self,
        connection: &Connection,
        method: &str,
        session: &str,
        params: &str,
    ) -> serde_json::Result<()> {
        match method {
            "Page.javascriptDialogOpening" => {
                self.dialog_opened(connection, session, serde_json::from_str(params)?);
            }
            "Page.javascriptDialogClosed" => self.change_tab(session, |tab| tab.dialog = None),
            "Page.frameNavigated" => {
                let navigated: FrameNavigated = serde_json::from_str(params)?;
                self.navigated(connection, session, navigated);
            }
            "Page.navigatedWithinDocument" => {
                let frame: FrameNamed = serde_json::from_str(params)?;
                self.change_tab(session, |tab| moved_within(tab, &frame));
            }
            "Page.lifecycleEvent" => {
                let frame: FrameNamed = serde_json::from_str(params)?;
                self.change_tab(session, |tab| lived(tab, &frame));
                if frame.name == "load" {
                    self.hub.state().crashes_in_a_row = 0;
                }
            }
            "Page.frameRequestedNavigation"
            | "Page.frameClearedScheduledNavigation"
            | "Page.frameStartedNavigating"
            | "Page.frameStoppedLoading" => {
                let frame: FrameNamed = serde_json::from_str(params)?;
                self.change_tab(session, |tab| leaves(tab, method, frame));
            }
            "Page.screencastFrame" => {
                let ScreencastShot { data, session_id: number } = serde_json::from_str(params)?;
                let missed = self.hub.offer(Shot { session: session.into(), number, data });
                // The browser draws no more while too many of its frames are unanswered.
                missed.into_iter().for_each(|shot| shot.acknowledge(connection));
            }
            "Page.fileChooserOpened" => {
                let opened: ChooserOpened = serde_json::from_str(params)?;
                self.change_tab(session, |tab| tab.chooser = opened.backend_node_id);
            }
            "Page.frameDetached" => {
                let frame: FrameNamed = serde_json::from_str(params)?;
                // "swap" only moves the frame to another process.
                if frame.reason != "swap" {
                    self.hub.change(|state| frame_removed(state, session, &frame.frame_id));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn attached(&self, connection: &Connection, parent: Option<&str>, event: AttachedEvent) {
        let AttachedEvent { session_id, target_info } = event;
        let session = Session::attached(connection.clone(), session_id.clone());
        match (target_info.kind.as_str(), parent) {
            ("page", None) => {
                let is_full = self.hub.change(|state| attach_page(state, session_id, &target_info));
                if is_full {
                    self.turn_away(connection, &session, target_info.target_id);
                    return;
                }
                self.prepare_page(&session);
            }
            ("iframe", Some(parent)) => {
                self.hub.change(|state| {
                    if let Some(tab) = state.tab_of(parent) {
                        let parent = Some(Arc::from(parent));
                        state.sessions.insert(session_id, Attached { tab, parent });
                    }
                });
                prepare(&session);
                self.appearance.post(&session);
            }
            _ => {}
        }
        // Last, and nothing above was waited for: a popup shares its opener's thread, and whoever waits for the
        // one while the other stands still waits for ever.
        session.post(&RunIfWaitingForDebuggerParams::default());
    }

    /// Closes a popup for which there is no room, before its first request.
    ///
    /// Its opener waits for it, so it has to run on: its requests are held (and then failed), and it is closed as
    /// soon as it asks for something, or after a moment if it never does.
    fn turn_away(&self, connection: &Connection, popup: &Session, target: Arc<str>) {
        popup.post(&fetch::EnableParams::default());
        popup.post(&RunIfWaitingForDebuggerParams::default());
        let root = Session::browser(connection.clone());
        tokio::spawn(async move {
            tokio::time::sleep(TURN_AWAY_WAIT).await;
            root.post(&CloseTargetParams::new(target.to_string()));
        });
    }

    /// Only popups that were turned away have their requests held.
    fn fail_request(connection: &Connection, session: &str, request: String) {
        let session = Session::attached(connection.clone(), session.into());
        session.post(&fetch::FailRequestParams::new(request, ErrorReason::BlockedByClient));
        session.post(&CloseParams::default());
    }

    fn prepare_page(&self, session: &Session) {
        let (width, height) = self.viewport;
        prepare(session);
        self.appearance.post(session);
        session.post(&SetDeviceMetricsOverrideParams::new(
            width,
            height,
            self.appearance.device_scale,
            false,
        ));
        session.post(&SetFocusEmulationEnabledParams::new(true));
    }

    fn detached(&self, connection: &Connection, session: &str) {
        let lost = self.hub.change(|state| match state.sessions.get(session).cloned() {
            Some(Attached { tab, parent: None, .. }) => state.remove_tab(tab),
            Some(_) => state.remove_frame_sessions(session),
            None => Vec::new(),
        });
        for session in lost {
            connection.fail_session(&session, Gone::Detached);
        }
        self.redress(connection);
    }

    /// Sets the locale again wherever it may have gone with a page: pages that share a process share it, and it is
    /// taken back with the one that set it.
    fn redress(&self, connection: &Connection) {
        if self.appearance.locale.is_none() {
            return;
        }
        let left: Vec<Arc<str>> = self.hub.state().sessions.keys().cloned().collect();
        for session in left {
            self.appearance.post_locale(&Session::attached(connection.clone(), session));
        }
    }

    fn destroyed(&self, connection: &Connection, target: &str) {
        let lost = self.hub.change(|state| match state.tab_of_target(target) {
            Some(tab) => state.remove_tab(tab),
            None => Vec::new(),
        });
        for session in lost {
            connection.fail_session(&session, Gone::Detached);
        }
    }

    fn crashed(&self, connection: &Connection, session: &str) {
        self.hub.change(|state| {
            // A crash of a cross-process frame leaves the page alive: its session is all that is lost.
            let is_page = state.sessions.get(session).is_some_and(|attached| attached.parent.is_none());
            state.forget(|key| &*key.session == session);
            state.crashes_in_a_row += u32::from(is_page);
            if let Some(tab) =
                state.tab_of(session).filter(|_| is_page).and_then(|id| state.tabs.get_mut(&id))
            {
                tab.crashed = true;
                tab.crashes += 1;
                tab.dialog = None;
                tab.frames.clear();
            }
            // While nobody can look: who begins a call on what is shown after this must not lose it to this.
            connection.fail_session(session, Gone::Crashed);
        });
    }

    fn dialog_opened(&self, connection: &Connection, session: &str, dialog: Dialog) {
        let leaves = dialog.kind == "beforeunload";
        let info = DialogInfo {
            message: cut(&dialog.message, TEXT_CHARS_MAX),
            default_prompt: dialog.default_prompt.filter(|text| !text.is_empty()),
            kind: dialog.kind,
            answered: leaves,
        };
        let notice = self.hub.change(|state| {
            state.dialog_count += 1;
            let (number, tab) = (state.dialog_count, state.tab_of(session)?);
            let known = state.tabs.get_mut(&tab)?;
            let notice = Notice::Dialog { number, tab, dialog: info.clone() };
            if leaves {
                known.auto_answered = Some(info);
            } else {
                known.dialog = Some(OpenDialog { info, session: session.into() });
            }
            Some(notice)
        });
        notice.into_iter().for_each(|notice| self.hub.notices().tell(notice));
        if leaves {
            // Whoever navigates or closes means to leave.
            let session = Session::attached(connection.clone(), session.into());
            session.post(&HandleJavaScriptDialogParams::new(true));
        }
    }

    fn navigated(&self, connection: &Connection, session: &str, navigated: FrameNavigated) {
        let FrameNavigated { frame, kind } = navigated;
        // A page that comes back whole was loaded before, and says so no second time.
        let whole = kind == "BackForwardCacheRestore";
        let refused = self.hub.change(|state| {
            state.forget(|key| {
                key.frame == frame.id && (key.loader != frame.loader_id || &*key.session != session)
            });
            let id = state.tab_of(session)?;
            let tab = state.tabs.get_mut(&id)?;
            let is_main = tab.target == frame.id;
            // Nothing is observed of a page before it is prepared.
            tab.prepared = true;
            if is_main {
                tab.navigations += 1;
                tab.crashed = false;
                tab.inline_refused = false;
                tab.url = cut(&frame.url, TEXT_CHARS_MAX);
            }
            let may_show = if is_main {
                policy::may_show(&frame.url)
            } else {
                policy::may_show_inside(&frame.url, &state.inline_frames)
            };
            let refused = (!may_show).then(|| (frame.id.clone(), refusal(tab, id, is_main, &frame.url)));
            tab.refusals += u64::from(is_main && refused.is_some());
            let known = FrameState {
                loader: Some(frame.loader_id),
                url: frame.url,
                dom_ready: whole,
                loaded: whole,
                idle: whole,
                unreachable: frame.unreachable_url,
                restored: whole,
                ..FrameState::default()
            };
            tab.frames.insert(frame.id, known);
            refused
        });
        self.redress(connection);
        if let Some((frame, notice)) = refused {
            notice.into_iter().for_each(|notice| self.hub.notices().tell(notice));
            let session = Session::attached(connection.clone(), session.into());
            let mut away = NavigateParams::new("about:blank");
            away.frame_id = Some(frame.to_string().into());
            session.post(&away);
        }
    }

    fn change_tab(&self, session: &str, change: impl FnOnce(&mut Tab)) {
        self.hub.change(|state| {
            if let Some(tab) = state.tab_of(session).and_then(|id| state.tabs.get_mut(&id)) {
                change(tab);
            }
        });
    }
}

/// What is told of an address that is not shown. A page may make frames without end, so of those that it fills itself the
/// first is told, by its scheme: the rest of the address is the document.
fn refusal(tab: &mut Tab, id: TabId, is_main: bool, address: &str) -> Option<Notice> {
    if is_main {
        return Some(Notice::Blocked { tab: id, url: cut(address, TEXT_CHARS_MAX) });
    }
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_first = !std::mem::replace(&mut tab.inline_refused, true);
    is_first.then(|| Notice::Blocked { tab: id, url: format!("{}:", cut(scheme, TEXT_CHARS_MAX)) })
}

/// What every page and cross-process frame needs. Only posted, never waited for.
fn prepare(session: &Session) {
    session.post(&EnableParams::default());
    session.post(&SetLifecycleEventsEnabledParams::new(true));
    // A worker is held like a frame, whatever the filter says of it; so it is attached to, and let go.
    session.post(&auto_attach(&["iframe", "worker"]));
}

/// Attach to targets of these kinds by itself, and hold each until it is prepared.
pub(crate) fn auto_attach(kinds: &[&str]) -> SetAutoAttachParams {
    let wanted = kinds.iter().map(|kind| FilterEntry { exclude: Some(false), r#type: Some((*kind).into()) });
    let rest = FilterEntry { exclude: Some(true), r#type: None };
    SetAutoAttachParams {
        auto_attach: true,
        wait_for_debugger_on_start: true,
        flatten: Some(true),
        filter: Some(TargetFilter::new(wanted.chain([rest]).collect::<Vec<_>>())),
    }
}

/// True if there are too many tabs for another.
fn attach_page(state: &mut State, session: Arc<str>, target: &Target) -> bool {
    if state.tabs.len() >= TABS_MAX {
        state.popups_refused += 1;
        return true;
    }
    let opener: Option<TabId> = target.opener_id.as_deref().and_then(|opener| state.tab_of_target(opener));
    let mut tab = Tab::new(target.target_id.clone(), session, opener);
    tab.url = cut(&target.url, TEXT_CHARS_MAX);
    tab.title = cut(&target.title, TEXT_CHARS_MAX);
    state.add_tab(tab);
    false
}

fn moved_within(tab: &mut Tab, frame: &FrameNamed) {
    if tab.target == frame.frame_id {
        tab.navigations += 1;
        tab.url = cut(&frame.url, TEXT_CHARS_MAX);
    }
    let known = tab.frames.entry(frame.frame_id.clone()).or_default();
    known.url.clone_from(&frame.url);
    known.leaving = Leaving::No;
}

fn answered(tab: &mut Tab, received: ResponseReceived) {
    if received.kind == "Document" && received.frame_id.as_ref() == Some(&tab.target) {
        tab.response = Some((received.loader_id, received.response.status));
    }
}

fn leaves(tab: &mut Tab, method: &str, frame: FrameNamed) {
    let leaving = &mut tab.frames.entry(frame.frame_id).or_default().leaving;
    *leaving = match (method, *leaving) {
        // Of one that opens in another tab or as a download, this frame sees nothing more.
        ("Page.frameRequestedNavigation", Leaving::No) if frame.disposition == "currentTab" => Leaving::Asked,
        ("Page.frameClearedScheduledNavigation", Leaving::Asked) => Leaving::Handed,
        ("Page.frameStartedNavigating", _) => Leaving::Begun,
        ("Page.frameStoppedLoading", _) => Leaving::No,
        (_, unchanged) => unchanged,
    };
}

fn lived(tab: &mut Tab, event: &FrameNamed) {
    let frame = tab.frames.entry(event.frame_id.clone()).or_default();
    if frame.loader != event.loader_id {
        // Enabling replays the past of a document that was there before; anything else is of one that is gone.
        if event.name != "init" && frame.loader.is_some() {
            return;
        }
        let kept = std::mem::take(frame);
        *frame = FrameState {
            loader: event.loader_id.clone(),
            url: kept.url,
            leaving: kept.leaving,
            ..FrameState::default()
        };
    }
    match event.name.as_str() {
        "DOMContentLoaded" => frame.dom_ready = true,
        "load" => frame.loaded = true,
        "networkIdle" => frame.idle = true,
        "commit" => frame.leaving = Leaving::No,
        _ => {}
    }
}

fn frame_removed(state: &mut State, session: &str, frame: &str) {
    state.forget(|key| &*key.frame == frame);
    if let Some(tab) = state.tab_of(session).and_then(|id| state.tabs.get_mut(&id)) {
        tab.frames.remove(frame);
    }
}

#[cfg(test)]
mod tests;
