//! What an acting capability gives back: the page after it, and what came of it.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::results::{Effect, PageState};
use crate::act::{Act, Ran, Sent, Stop};
use crate::error::Error;
use crate::frame::On;
use crate::state::State;
use crate::tab::{DialogInfo, FrameState, Leaving, TEXT_CHARS_MAX, cut};

const TURN: &str = include_str!("../js/turn.js");

/// How long an action waits for a navigation that it caused to be shown, then for its document to be read; and before
/// that for it to begin.
const SHOWN_WAIT: Duration = Duration::from_secs(5);
const READ_WAIT: Duration = Duration::from_secs(3);
const HANDED_WAIT: Duration = Duration::from_millis(100);

/// Time for a page that works before it answers.
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
            Ok((effect, self.settle().await))
        };
        let ran = self.run(settled).await;
        // A dialog holds up what opened it, so the page cannot confirm input that all went out before.
        let told = if self.sent() == Sent::All { Effect::Done } else { Effect::SentUnconfirmed };
        match (ran, finished.get().copied()) {
            (Ran::Finished(Ok((effect, title))), _) => {
                let page = self.page_state(effect, None).await;
                // The browser may hear of a new title later than we do.
                Ok(PageState { title: title.unwrap_or(page.title), ..page })
            }
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

    /// The same for work that tells something besides; `None` if it was cut short by what it caused.
    pub(super) async fn act_and_tell<T>(
        &self,
        work: impl Future<Output = Result<(Effect, Option<T>), Error>>,
    ) -> Result<(PageState, Option<T>), Error> {
        let mut told = None;
        let told_to = &mut told;
        // On the heap: such work is long, and made of long work.
        let work = Box::pin(async {
            let (effect, tells) = work.await?;
            *told_to = tells;
            Ok(effect)
        });
        let page = self.act(work).await?;
        Ok((page, told))
    }

    /// Gives the page a moment to react, and waits for a navigation that began. Returns the title of a page that stays.
    async fn settle(&self) -> Option<String> {
        let title = self.turn(TURN_WAIT).await;
        let enough = self.deadline - Duration::from_millis(100);
        // What the renderer has handed over begins at once, or never.
        let handed = self.main_frame_is(|frame| frame.leaving != Leaving::Handed);
        let _ = timeout_at(enough.min(Instant::now() + HANDED_WAIT), handed).await;
        let stays = |frame: &FrameState| !matches!(frame.leaving, Leaving::Asked | Leaving::Begun);
        let shown = self.main_frame_is(stays);
        let is_shown = timeout_at(enough.min(Instant::now() + SHOWN_WAIT), shown).await.is_ok();
        if is_shown && self.has_navigated() {
            let read =
                self.main_frame_is(|frame| stays(frame) && (frame.loader.is_none() || frame.dom_ready));
            // A page that takes longer is described as it is.
            let _ = timeout_at(enough.min(Instant::now() + READ_WAIT), read).await;
        }
        title.filter(|title| !title.is_empty() && !self.has_navigated())
    }

    /// Waits until the tab's main frame is so.
    async fn main_frame_is(&self, is_so: impl Fn(&FrameState) -> bool) {
        let look = |state: &State| {
            let frame = state.tabs.get(&self.tab)?.main_frame();
            frame.is_none_or(&is_so).then_some(())
        };
        self.browser.hub.wait_for(look).await;
    }

    /// Waits until the page has had its turn: what it did at once, or by a timer of no length, is older than the
    /// answer, which is its title.
    pub(super) async fn turn(&self, time: Duration) -> Option<String> {
        let turned = async {
            let loader = self.browser.hub.state().tabs.get(&self.tab)?.main_frame()?.loader.clone()?;
            let (session, frame) = (self.page.id()?, self.target.clone());
            let world = self.world(session, &frame, &loader).await.ok()?;
            self.apply::<String>(&self.page, &On::World(world), TURN, &[]).await.ok()
        };
        // A page that is busy or gone is described as it is.
        let title = timeout_at(self.deadline.min(Instant::now() + time), turned).await.ok().flatten()?;
        Some(cut(&title, TEXT_CHARS_MAX))
    }

    fn has_navigated(&self) -> bool {
        let state = self.browser.hub.state();
        state.tabs.get(&self.tab).is_some_and(|tab| tab.navigations > self.before.navigations)
    }

    /// Describes the page as it is now.
    pub(crate) async fn page_state(&self, effect: Effect, dialog: Option<DialogInfo>) -> PageState {
        self.browser.refresh_tabs().await;
        self.known_state(effect, dialog)
    }

    /// The same with the address and title as they were last reported.
    pub(crate) fn known_state(&self, effect: Effect, dialog: Option<DialogInfo>) -> PageState {
        let (url, title) = self.known_address();
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
        }
    }

    /// The address and title of the tab. The browser process answers, so a busy page does not matter.
    pub(crate) async fn address(&self) -> (String, String) {
        self.browser.refresh_tabs().await;
        self.known_address()
    }

    fn known_address(&self) -> (String, String) {
        let state = self.browser.hub.state();
        state.tabs.get(&self.tab).map_or_else(Default::default, |tab| (tab.url.clone(), tab.title.clone()))
    }

    /// Waits until the state shows what is looked for, at most for `time`; true if it does.
    pub(crate) async fn comes(&self, time: Duration, mut shows: impl FnMut(&State) -> bool) -> bool {
        timeout(time, self.browser.hub.wait_for(|state| shows(state).then_some(()))).await.is_ok()
    }
}
