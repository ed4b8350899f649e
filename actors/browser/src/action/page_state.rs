//! What an acting capability gives back: the page after it, and what came of it.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use chromiumoxide_cdp::cdp::js_protocol::runtime::EvaluateParams;
use tokio::time::{Instant, timeout, timeout_at};

use super::results::{Effect, PageState};
use crate::act::{Act, Ran, Sent, Stop};
use crate::error::Error;
use crate::tab::DialogInfo;

/// How long an action waits for a navigation that it caused to be shown, and then for its document to be read.
const SHOWN_WAIT: Duration = Duration::from_secs(5);
const READ_WAIT: Duration = Duration::from_secs(3);

/// Time for a page that reacts by a timer of no length, and for one that works before it answers.
const REACTION_WAIT: Duration = Duration::from_millis(20);
const TURN_WAIT: Duration = Duration::from_millis(500);

impl Act<'_> {
    /// Runs the work of an action and describes the page after it.
    pub(crate) async fn act(
        &self,
        work: impl Future<Output = Result<Effect, Error>>,
    ) -> Result<PageState, Error> {
        // Set when the work is finished: what is cut short after that is only the settling.
        let finished: OnceLock<Effect> = OnceLock::new();
        let settled = async {
            let effect = work.await?;
            finished.get_or_init(|| effect);
            self.settle().await;
            Ok(effect)
        };
        let ran = self.run(settled).await;
        // A dialog holds up what opened it, so the page cannot confirm input that all went out before.
        let told = if self.sent() == Sent::All { Effect::Done } else { Effect::SentUnconfirmed };
        match (ran, finished.get().copied()) {
            (Ran::Finished(Ok(effect)), _) => Ok(self.page_state(effect, None).await),
            (Ran::Finished(Err(error)), _) => Err(self.failed(error).await),
            (Ran::Stopped(Stop::Dialog(_, dialog)), effect) if self.sent() != Sent::Nothing => {
                Ok(self.page_state(effect.unwrap_or(told), Some(dialog)).await)
            }
            (Ran::Stopped(Stop::Closed), effect) if self.sent() != Sent::Nothing => {
                let page = self.page_state(effect.unwrap_or(told), None).await;
                Ok(PageState { closed: true, ..page })
            }
            (Ran::Stopped(Stop::Timeout), Some(effect)) => Ok(self.page_state(effect, None).await),
            (Ran::Stopped(stop), _) => Err(self.stopped(stop).await),
        }
    }

    /// Gives the page a moment to react, and waits for a navigation that began.
    async fn settle(&self) {
        self.pause(REACTION_WAIT).await;
        self.turn(TURN_WAIT).await;
        let navigates = |waiting_for_document: bool| {
            self.browser.hub.wait_for(move |state| {
                let tab = state.tabs.get(&self.tab)?;
                let frame = tab.main_frame();
                let is_busy = frame.is_some_and(|frame| {
                    frame.navigating || (waiting_for_document && frame.loader.is_some() && !frame.dom_ready)
                });
                (!is_busy).then_some(())
            })
        };
        let enough = self.deadline - Duration::from_millis(100);
        let shown = enough.min(Instant::now() + SHOWN_WAIT);
        if timeout_at(shown, navigates(false)).await.is_ok() && self.has_navigated() {
            // A page that takes longer is described as it is.
            let _ = timeout_at(enough.min(Instant::now() + READ_WAIT), navigates(true)).await;
        }
    }

    /// Waits until the page has had its turn: what it did at once is older than its answer.
    pub(super) async fn turn(&self, time: Duration) {
        let by = self.deadline.min(Instant::now() + time);
        // A page that is busy or gone is described as it is.
        let _ = self.page.call_raw(&EvaluateParams::new("0"), by).await;
    }

    fn has_navigated(&self) -> bool {
        let state = self.browser.hub.state();
        state.tabs.get(&self.tab).is_some_and(|tab| tab.navigations > self.before.navigations)
    }

    /// Describes the page as it is now.
    pub(crate) async fn page_state(&self, effect: Effect, dialog: Option<DialogInfo>) -> PageState {
        let (url, title) = self.address().await;
        let navigated = self.has_navigated();
        let mut state = self.browser.hub.state();
        let new = state.list().into_iter().filter(|tab| !self.before.tabs.contains(&tab.tab));
        let new_tabs = new.collect();
        let noted = state.downloads.iter().filter(|(number, _)| *number > self.before.downloads);
        let downloads = noted.map(|(_, note)| note.clone()).collect();
        let popups_refused = state.popups_refused - self.before.popups_refused;
        let answered = state.tabs.get_mut(&self.tab).and_then(|tab| tab.auto_answered.take());
        PageState {
            tab: self.tab,
            url,
            title,
            navigated,
            dialog: dialog.or(answered),
            new_tabs,
            popups_refused,
            downloads,
            closed: false,
            effect,
            typed_secret: false,
        }
    }

    /// The address and title of the tab. The browser process answers, so a busy page does not matter.
    pub(crate) async fn address(&self) -> (String, String) {
        self.browser.refresh_tabs().await;
        let state = self.browser.hub.state();
        state.tabs.get(&self.tab).map_or_else(Default::default, |tab| (tab.url.clone(), tab.title.clone()))
    }

    /// Waits until the state shows what is looked for, at most for `time`; true if it does.
    pub(crate) async fn comes(
        &self,
        time: Duration,
        mut shows: impl FnMut(&crate::state::State) -> bool,
    ) -> bool {
        timeout(time, self.browser.hub.wait_for(|state| shows(state).then_some(()))).await.is_ok()
    }
}
