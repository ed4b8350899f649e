//! Answering a dialog. It is state of the tab: opened by an event, closed by an event.

use chromiumoxide_cdp::cdp::browser_protocol::page::HandleJavaScriptDialogParams;
use std::time::Duration;

use super::args::{DialogAction, DialogArgs};
use super::results::{Effect, PageState};
use crate::act::{Act, Needs, Ran, Sent, Stop};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::connection::CallError;
use crate::error::Error;

/// How long the page's script may go on before the answer is told without its end.
const TURN_WAIT: Duration = Duration::from_secs(1);

impl Browser {
    /// Answers the open dialog.
    ///
    /// If the page opens another one at once, the result shows it.
    ///
    /// # Errors
    /// [`Error::InvalidArgs`] if none is open.
    pub async fn dialog(&self, args: &DialogArgs, call: &Call) -> Result<PageState, Error> {
        let deadline = call.deadline(args.timeout_ms, ACTION_TIMEOUT);
        let tab = self.pick(args.tab)?;
        let taken = self.hub.change(|state| {
            let known = state.tabs.get_mut(&tab)?;
            // Taken now: what the page does next is not held up by the dialog that is being answered.
            known.dialog.take()
        });
        let open = taken.ok_or_else(|| Error::invalid(format!("no dialog is open in tab {tab}")))?;
        let act = self.begin(Some(tab), deadline, call, Needs::Tab)?;
        act.answer(args, &open.session).await
    }
}

impl Act<'_> {
    async fn answer(&self, args: &DialogArgs, session: &std::sync::Arc<str>) -> Result<PageState, Error> {
        let mut handle = HandleJavaScriptDialogParams::new(args.action == DialogAction::Accept);
        handle.prompt_text.clone_from(&args.prompt_text);
        let session = self.browser.session(session.clone());
        let work = async {
            self.note_sent(Sent::All);
            match session.call_raw(&handle, self.deadline).await {
                // It was closed in the meantime, as happens when the page goes away.
                Ok(_) | Err(CallError::Refused { .. } | CallError::Gone(_)) => {}
                Err(error) => return Err(error.into()),
            }
            // The page answers when its script has gone on to its end, or to the next dialog.
            self.turn(TURN_WAIT).await;
            Ok(Effect::Done)
        };
        match self.run(work).await {
            Ran::Finished(Ok(effect)) => Ok(self.page_state(effect, None).await),
            Ran::Stopped(Stop::Dialog(_, next)) => Ok(self.page_state(Effect::Done, Some(next)).await),
            Ran::Finished(Err(error)) => Err(self.failed(error).await),
            Ran::Stopped(stop) => Err(self.stopped(stop).await),
        }
    }
}
