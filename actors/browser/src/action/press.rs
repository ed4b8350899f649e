//! A press of the mouse that is watched: it finds its element at rest and in front, or it does nothing.
//!
//! ```text
//! watch (checks, aim, guard) ─► move ─► next frame ─► press, release ─► verdict
//!    ▲                                                                    │
//!    └──────── moved, covered: the guard kept it from the page ◄──────────┘
//! ```
//!
//! What moves by itself moves with each frame, so the place at the watch and the place at the press, with the frame
//! of the mouse's move between them, are the two frames of the usual check; it costs no time of its own. An element
//! under a running animation is looked at for two frames first, so that nothing hovers where it only passes.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::input::DispatchMouseEventType;
use chromiumoxide_cdp::cdp::js_protocol::runtime::{CallFunctionOnParams, ExecutionContextId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::args::ClickArgs;
use super::pointer::mouse;
use super::results::Effect;
use crate::act::{Act, Sent};
use crate::connection::CallError;
use crate::element::{Aimed, Element, Failed, NotReady, Spot, WATCH};
use crate::error::{Check, Error};
use crate::frame::On;

const VERDICT: &str = include_str!("../js/verdict.js");

/// How long the end of a press is waited for once the browser has dispatched it: a press that went to another frame
/// is not seen by the watch.
const VERDICT_WAIT: Duration = Duration::from_millis(20);

/// What the watch says before the press.
#[derive(Deserialize)]
struct Watched {
    failed: Option<Failed>,
    #[serde(default)]
    scroll: bool,
    #[serde(flatten)]
    aimed: Aimed,
}

/// What the watch says after it.
#[derive(Deserialize)]
struct Verdict {
    count: u32,
    refused: Option<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    check: Failed,
    by: Option<String>,
}

/// Ends the watch of a press that did not come, so that it judges no other.
struct Guard<'a> {
    act: &'a Act<'a>,
    element: &'a Element,
    is_over: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.act.forget_press(self.element);
        }
    }
}

impl Act<'_> {
    /// Clicks an element so many times.
    pub(super) async fn click(&self, args: &ClickArgs, count: i64) -> Result<Effect, Error> {
        let (front, element) = tokio::join!(self.to_front(), self.element(args.reference));
        front?;
        let element = element?;
        // What was not at rest at a press, or in a frame that draws on its own time, is looked at for two frames first.
        let mut patient = false;
        loop {
            let mut guard = Guard { act: self, element: &element, is_over: false };
            let pressed = match self.watch(&element, args, count, patient).await? {
                Ok(spot) => self.press_at(&element, spot, args, count).await?,
                Err(not_ready) => Err(not_ready),
            };
            match pressed {
                Ok(effect) => {
                    guard.is_over = true;
                    return Ok(effect);
                }
                Err(not_ready) => {
                    drop(guard);
                    patient |= not_ready.check == Check::Stable;
                    self.round(&element, not_ready).await?;
                }
            }
        }
    }

    /// Checks the element, scrolls to it, and has its page guard the press at the point that is returned.
    async fn watch(
        &self,
        element: &Element,
        args: &ClickArgs,
        count: i64,
        mut patient: bool,
    ) -> Result<Result<Spot, NotReady>, Error> {
        let checks: &[Check] =
            if args.force { &[Check::Visible] } else { &[Check::Visible, Check::Enabled, Check::Stable] };
        let (px, py) = args.position.map_or((Value::Null, Value::Null), |at| (json!(at.x), json!(at.y)));
        // What its own frame shows may be out of view all the same.
        let mut scrolled = element.key.frame != self.target;
        if scrolled {
            self.scroll_to(element).await?;
        }
        let mut still = false;
        loop {
            if patient && !still {
                if let Err(not_ready) = self.check(element, &[Check::Stable]).await? {
                    return Ok(Err(not_ready));
                }
                still = true;
            }
            let options = json!({ "force": args.force, "scrolled": scrolled, "still": still });
            let given = [json!(checks), px.clone(), py.clone(), json!(count), options];
            let watched: Watched = self.on(element, WATCH, &given).await?;
            match watched.failed {
                Some(Failed::Stable) if !still => patient = true,
                Some(failed) => return failed.of(element, None).map(Err),
                None if watched.scroll && !scrolled => {
                    self.scroll_to(element).await?;
                    scrolled = true;
                }
                None => return self.in_page(element, watched.aimed, args.force).await,
            }
        }
    }

    async fn press_at(
        &self,
        element: &Element,
        spot: Spot,
        args: &ClickArgs,
        count: i64,
    ) -> Result<Result<Effect, NotReady>, Error> {
        let event = |kind, number| mouse(kind, spot, args.button, number, &args.modifiers);
        self.note_sent(Sent::Some);
        self.call(&event(DispatchMouseEventType::MouseMoved, 0)).await?;
        let presses = async {
            for number in 1..=count {
                let pressed = event(DispatchMouseEventType::MousePressed, number);
                let released = event(DispatchMouseEventType::MouseReleased, number);
                self.note_sent(if number == count { Sent::All } else { Sent::Some });
                // Both go out at once: a button is never left pressed, whatever happens in between.
                let (pressed, released) = tokio::join!(self.call(&pressed), self.call(&released));
                pressed.and(released)?;
            }
            Ok::<(), Error>(())
        };
        let mut verdict = std::pin::pin!(self.verdict(element, true));
        let mut presses = std::pin::pin!(presses);
        let known = tokio::select! {
            pressed = &mut presses => { pressed?; None }
            known = &mut verdict => { presses.await?; Some(known) }
        };
        let verdict = match known {
            Some(verdict) => verdict,
            None => match tokio::time::timeout(VERDICT_WAIT, verdict).await {
                Ok(verdict) => verdict,
                Err(_) => self.verdict(element, false).await,
            },
        };
        match verdict {
            Ok(Verdict { refused: Some(refused), .. }) => {
                self.unsend();
                refused.check.of(element, refused.by).map(Err)
            }
            Ok(Verdict { count: 0, .. }) => Ok(Ok(Effect::SentUnconfirmed)),
            Ok(_) => Ok(Ok(Effect::Done)),
            // The document is gone: the click has led away from it.
            Err(CallError::Refused { .. } | CallError::Gone(_)) => Ok(Ok(Effect::Done)),
            Err(error) => Err(error.into()),
        }
    }

    fn forget_press(&self, element: &Element) {
        let mut end = CallFunctionOnParams::new(VERDICT);
        end.execution_context_id = Some(ExecutionContextId::new(element.world));
        element.session.post(&end);
    }

    /// What became of the press; `waits` until it is over.
    async fn verdict(&self, element: &Element, waits: bool) -> Result<Verdict, CallError> {
        self.apply(&element.session, &On::World(element.world), VERDICT, &[json!(waits)]).await
    }
}
