//! One call on one tab, with its bounds: nothing in it can outlast a dialog, a crash, the deadline or a cancel.
//!
//! ```text
//!            ┌─ work finishes ─────────────────► its result
//! begin ──► run ─ dialog · crash · tab gone ───► page state or error, at once
//!            └─ deadline · cancel ──► quiet ───► error, after the page is quiet
//!                                       └─ probe ► terminate script ► stop loading ► close tab ► kill browser
//! ```

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::page::StopLoadingParams;
use chromiumoxide_cdp::cdp::browser_protocol::target::CloseTargetParams;
use chromiumoxide_cdp::cdp::js_protocol::runtime::{EvaluateParams, TerminateExecutionParams};
use chromiumoxide_types::Command;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::browser::Browser;
use crate::call::Call;
use crate::connection::CallError;
use crate::error::Error;
use crate::policy;
use crate::reference::TabId;
use crate::session::Session;
use crate::state::State;
use crate::tab::{DialogInfo, Leaving, Tab};

/// How long a page may take to answer the question whether it still answers.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// How long stopping a script may take. One that runs is stopped in milliseconds.
const TERMINATE_WAIT: Duration = Duration::from_millis(500);

/// How long a page may take to answer once its script was stopped.
const STOPPED_WAIT: Duration = Duration::from_secs(2);

/// How long a page may be busy with work of the browser's own, like reading a hundred thousand nodes.
const BUSY_WAIT: Duration = Duration::from_secs(6);

/// How long closing a wedged tab may take before the browser is ended.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// So many pages may crash one after the other before the browser itself counts as broken.
const CRASHES_MAX: u32 = 4;

/// After this long a dialog of a related tab counts as what holds a call up: the tabs may share a thread.
const RELATED_DIALOG_WAIT: Duration = Duration::from_millis(700);

/// What a call is allowed to begin on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A page that answers and may be read.
    Page,
    /// Any tab without a dialog: it is about to show something else.
    Tab,
}

/// How far input has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Sent {
    Nothing = 0,
    Some = 1,
    All = 2,
}

/// Why a call's work was left before it was finished.
#[derive(Debug)]
pub(crate) enum Stop {
    Dialog(TabId, DialogInfo),
    Closed,
    Crashed,
    Gone,
    Timeout,
    Cancelled,
}

/// How a call's work ended.
pub(crate) enum Ran<T> {
    Finished(Result<T, Error>),
    Stopped(Stop),
}

/// What a tab looked like before the call.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) navigations: u64,
    refusals: u64,
    crashes: u32,
    pub(crate) tabs: BTreeSet<TabId>,
    pub(crate) downloads: u64,
    pub(crate) popups_refused: u64,
}

/// One call on one tab.
pub(crate) struct Act<'a> {
    pub(crate) browser: &'a Browser,
    pub(crate) tab: TabId,
    pub(crate) target: Arc<str>,
    pub(crate) page: Session,
    pub(crate) deadline: Instant,
    pub(crate) before: Before,
    cancel: CancellationToken,
    pub(crate) began: Instant,
    sent: AtomicU8,
}

impl Browser {
    pub(crate) fn alive(&self) -> Result<(), Error> {
        match (self.is_stopping(), self.hub.state().closed) {
            (true, _) => Err(Error::RuntimeStopped),
            (false, true) => Err(Error::RuntimeCrashed { sent: false }),
            (false, false) => Ok(()),
        }
    }

    /// The tab that is meant: the named one, else the active one, which never changes by itself.
    pub(crate) fn pick(&self, tab: Option<TabId>) -> Result<TabId, Error> {
        self.alive()?;
        let state = self.hub.state();
        let meant = tab.or(state.active);
        match meant.filter(|id| state.tabs.contains_key(id)) {
            Some(id) => Ok(id),
            None => Err(Error::TabClosed { tab: meant, tabs: state.list(), sent: false }),
        }
    }

    /// Begins a call on a tab.
    pub(crate) fn begin(
        &self,
        tab: Option<TabId>,
        deadline: Instant,
        call: &Call,
        needs: Needs,
    ) -> Result<Act<'_>, Error> {
        let id = self.pick(tab)?;
        let state = self.hub.state();
        let Some(tab) = state.tabs.get(&id) else {
            return Err(Error::TabClosed { tab: Some(id), tabs: state.list(), sent: false });
        };
        may_begin(id, tab, needs)?;
        Ok(Act {
            browser: self,
            tab: id,
            target: tab.target.clone(),
            page: self.session(tab.session.clone()),
            deadline,
            before: Before {
                navigations: tab.navigations,
                refusals: tab.refusals,
                crashes: tab.crashes,
                tabs: state.tabs.keys().copied().collect(),
                downloads: state.download_count,
                popups_refused: state.popups_refused,
            },
            cancel: call.cancel.clone(),
            began: Instant::now(),
            sent: AtomicU8::new(Sent::Nothing as u8),
        })
    }
}

fn may_begin(id: TabId, tab: &Tab, needs: Needs) -> Result<(), Error> {
    if let Some(dialog) = &tab.dialog {
        return Err(Error::DialogOpen { tab: id, dialog: dialog.info.clone() });
    }
    if needs == Needs::Tab {
        return Ok(());
    }
    if tab.crashed {
        return Err(Error::TabCrashed { tab: id, sent: false });
    }
    if tab.main_frame().is_some_and(|frame| !policy::may_show(&frame.url)) {
        return Err(Error::BlockedByPolicy { rule: "scheme", sent: false });
    }
    Ok(())
}

impl Act<'_> {
    /// Sends a command of this call to the page.
    pub(crate) async fn call<C: Command>(&self, command: &C) -> Result<C::Response, CallError> {
        self.page.call(command, self.deadline).await
    }

    pub(crate) async fn fetch<C: Command, R: DeserializeOwned>(
        &self,
        session: &Session,
        command: &C,
    ) -> Result<R, CallError> {
        session.fetch(command, self.deadline).await
    }

    pub(crate) fn note_sent(&self, sent: Sent) {
        self.sent.fetch_max(sent as u8, Ordering::Relaxed);
    }

    /// Notes that the page was kept from the press; it has seen the mouse all the same.
    pub(crate) fn unsend(&self) {
        self.sent.store(Sent::Some as u8, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) -> Sent {
        match self.sent.load(Ordering::Relaxed) {
            0 => Sent::Nothing,
            1 => Sent::Some,
            _ => Sent::All,
        }
    }

    /// Runs the work of this call until it finishes or something stops it.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Ran<T> {
        let mut work = std::pin::pin!(work);
        let mut bell = self.browser.hub.bell();
        loop {
            let related_dialog = Instant::now().max(self.began + RELATED_DIALOG_WAIT);
            tokio::select! {
                biased;
                result = &mut work => return Ran::Finished(result),
                () = self.cancel.cancelled() => return Ran::Stopped(Stop::Cancelled),
                () = sleep_until(self.deadline) => return Ran::Stopped(Stop::Timeout),
                _ = bell.changed() => {}
                () = sleep_until(related_dialog), if Instant::now() < related_dialog => {}
            }
            if let Some(stop) = self.stop() {
                return Ran::Stopped(stop);
            }
        }
    }

    fn stop(&self) -> Option<Stop> {
        let state = self.browser.hub.state();
        if state.closed {
            return Some(Stop::Gone);
        }
        let Some(tab) = state.tabs.get(&self.tab) else { return Some(Stop::Closed) };
        if let Some(dialog) = &tab.dialog {
            return Some(Stop::Dialog(self.tab, dialog.info.clone()));
        }
        if tab.crashes > self.before.crashes {
            return Some(Stop::Crashed);
        }
        let waited = self.began.elapsed() >= RELATED_DIALOG_WAIT;
        related_dialog(&state, self.tab).filter(|_| waited).map(|(tab, info)| Stop::Dialog(tab, info))
    }

    /// The error of a call that was stopped, once the page is quiet.
    pub(crate) async fn stopped(&self, stop: Stop) -> Error {
        let sent = self.sent() != Sent::Nothing;
        match stop {
            Stop::Dialog(tab, dialog) => Error::DialogOpen { tab, dialog },
            Stop::Closed => {
                Error::TabClosed { tab: Some(self.tab), tabs: self.browser.hub.state().list(), sent }
            }
            Stop::Crashed if self.browser.end_if_barren().await => Error::RuntimeCrashed { sent },
            Stop::Crashed => Error::TabCrashed { tab: self.tab, sent },
            Stop::Gone if self.browser.is_stopping() && !sent => Error::RuntimeStopped,
            Stop::Gone => Error::RuntimeCrashed { sent },
            Stop::Timeout => {
                self.browser.quiet(self.tab, sent).await;
                Error::TaskTimeout { sent }
            }
            Stop::Cancelled => {
                self.browser.quiet(self.tab, sent).await;
                Error::Cancelled { sent }
            }
        }
    }

    /// The error of work that failed by itself, once the page is quiet.
    pub(crate) async fn failed(&self, error: Error) -> Error {
        if matches!(error, Error::TaskTimeout { .. }) {
            return self.stopped(Stop::Timeout).await;
        }
        // A session that was lost says less than the reason why.
        if let (Error::Internal { .. } | Error::RuntimeCrashed { .. }, Some(stop)) = (&error, self.stop()) {
            return self.stopped(stop).await;
        }
        error.after(self.sent() != Sent::Nothing)
    }

    /// The result of a call that only reads.
    pub(crate) async fn read<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match self.run(work).await {
            // Events come before later answers: what was shown while this was read is known by now.
            Ran::Finished(Ok(_)) if self.has_shown_refused() => {
                Err(Error::BlockedByPolicy { rule: "scheme", sent: false })
            }
            Ran::Finished(Ok(result)) => Ok(result),
            Ran::Finished(Err(error)) => Err(self.failed(error).await),
            Ran::Stopped(stop) => Err(self.stopped(stop).await),
        }
    }

    fn has_shown_refused(&self) -> bool {
        let state = self.browser.hub.state();
        state.tabs.get(&self.tab).is_some_and(|tab| tab.refusals > self.before.refusals)
    }

    /// Waits, but not past the deadline.
    pub(crate) async fn pause(&self, time: Duration) {
        tokio::select! {
            () = sleep(time) => {}
            () = sleep_until(self.deadline) => {}
        }
    }
}

/// A dialog in a tab that opened, or was opened by, this one.
fn related_dialog(state: &State, tab: TabId) -> Option<(TabId, DialogInfo)> {
    let root = |mut id: TabId| {
        while let Some(opener) = state.tabs.get(&id).and_then(|tab| tab.opener) {
            id = opener;
        }
        id
    };
    let family = root(tab);
    let shown = state.tabs.iter().filter(|(id, _)| root(**id) == family);
    shown.filter_map(|(id, tab)| Some((*id, tab.dialog.as_ref()?.info.clone()))).next()
}

impl Browser {
    /// Brings a tab to rest after a timeout or a cancel, in bounded time.
    ///
    /// A page that was not changed has nothing more to do for the call: one that is large stays busy for a while with
    /// what it was asked, and is left to it.
    pub(crate) async fn quiet(&self, tab: TabId, was_changed: bool) {
        let (sessions, loading) = {
            let state = self.hub.state();
            let Some(known) = state.tabs.get(&tab) else { return };
            if state.closed
                || known.crashed
                || known.dialog.is_some()
                || related_dialog(&state, tab).is_some()
            {
                return;
            }
            let of_tab = state.sessions.iter().filter(|(_, attached)| attached.tab == tab);
            let sessions: Vec<Session> = of_tab.map(|(id, _)| self.session(id.clone())).collect();
            (sessions, known.main_frame().is_none_or(|frame| !frame.loaded || frame.leaving != Leaving::No))
        };
        let quiet = futures::future::join_all(
            sessions.iter().map(|session| futures::FutureExt::boxed(calm(session, loading, was_changed))),
        )
        .await;
        if quiet.into_iter().all(|quiet| quiet) || !self.hub.state().tabs.contains_key(&tab) {
            return;
        }
        debug!(%tab, "A page did not come to rest; its tab is closed.");
        self.close_wedged(tab).await;
    }

    /// Ends a browser in which no page lives any more, so that another can take its place; true if it was so.
    pub(crate) async fn end_if_barren(&self) -> bool {
        let is_barren = self.hub.state().crashes_in_a_row >= CRASHES_MAX;
        if is_barren {
            warn!("One page after the other crashes; the browser is ended.");
            self.process.kill().await;
        }
        is_barren
    }

    pub(crate) async fn close_wedged(&self, tab: TabId) {
        let Some(target) = self.hub.state().tabs.get(&tab).map(|tab| tab.target.clone()) else { return };
        self.root.post(&CloseTargetParams::new(target.to_string()));
        let closed =
            self.hub.wait_for(|state| (state.closed || !state.tabs.contains_key(&tab)).then_some(()));
        if timeout(CLOSE_WAIT, closed).await.is_err() {
            warn!(%tab, "A wedged tab could not be closed; the browser is ended.");
            self.process.kill().await;
        }
    }
}

/// Stops what runs in one session; false if it does not answer afterwards.
async fn calm(session: &Session, loading: bool, was_changed: bool) -> bool {
    if loading {
        session.post(&StopLoadingParams::default());
    }
    if answers(session, PROBE_WAIT).await {
        return true;
    }
    // Only now: on an idle page this would end the next script, which nobody asked for.
    let until = Instant::now() + TERMINATE_WAIT;
    // Script can be stopped at any moment; what does not even answer to that is the browser's own work, and ends.
    match session.call_raw(&TerminateExecutionParams::default(), until).await {
        Err(CallError::Overdue { .. }) => !was_changed || answers(session, BUSY_WAIT).await,
        _ => answers(session, STOPPED_WAIT).await,
    }
}

async fn answers(session: &Session, time: Duration) -> bool {
    let probe = EvaluateParams::new("0");
    match session.call_raw(&probe, Instant::now() + time).await {
        Err(CallError::Overdue { .. }) => false,
        // A session that is gone runs nothing.
        Ok(_) | Err(_) => true,
    }
}
