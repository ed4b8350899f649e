//! What an acting capability gives back: the page after it, and what came of it.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::results::{Effect, PageState};
use crate::act::{Act, Ran, Sent, Stop};
use crate::error::Error;
use crate::tab::DialogInfo;

/// How long an action waits for a navigation that it caused to be shown, and then for its document to be read.
const SHOWN_WAIT: Duration = Duration::from_secs(5);
const READ_WAIT: Duration = Duration::from_secs(3);

/// Time in which a page that reacts at once begins to navigate or opens a tab.
const REACTION_WAIT: Duration = Duration::from_millis(40);

impl Act<'_> {
    /// Runs the work of an action and describes the page after it.
    pub(crate) async fn act(
        &self,
        work: impl Future<Output = Result<Effect, Error>>,
    ) -> Result<PageState, Error> {
        let settled = async {
            let effect = work.await?;
            self.settle().await;
            Ok(effect)
        };
        match self.run(settled).await {
            Ran::Finished(Ok(effect)) => Ok(self.page_state(effect, None).await),
            Ran::Finished(Err(error)) => Err(self.failed(error).await),
            Ran::Stopped(Stop::Dialog(_, dialog)) if self.sent() != Sent::Nothing => {
                // What opened it runs until it is answered, so the input cannot be confirmed by the page itself.
                let effect = if self.sent() == Sent::All { Effect::Done } else { Effect::SentUnconfirmed };
                Ok(self.page_state(effect, Some(dialog)).await)
            }
            Ran::Stopped(Stop::Closed) if self.sent() != Sent::Nothing => {
                Ok(PageState { closed: true, ..self.page_state(Effect::Done, None).await })
            }
            Ran::Stopped(Stop::Timeout) if self.sent() == Sent::All => {
                // Only the settling was left.
                self.browser.quiet(self.tab).await;
                Ok(self.page_state(Effect::SentUnconfirmed, None).await)
            }
            Ran::Stopped(stop) => Err(self.stopped(stop).await),
        }
    }

    /// Gives the page a moment to react, and waits for a navigation that began.
    async fn settle(&self) {
        // Events that the input caused are older than the answer to this.
        self.pause(REACTION_WAIT).await;
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
