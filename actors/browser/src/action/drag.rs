//! Dragging one element onto another.
//!
//! ```text
//! aim at both ─► press on the one ─► moves ─┬─ the page makes no native drag ─► moves ─► release on the other
//!                                           └─ it does: the browser hands it to us ─► enter, over, drop
//! ```

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::input::{
    DispatchDragEventParams, DispatchDragEventType, DispatchMouseEventParams, DispatchMouseEventType,
    DragData, MouseButton, SetInterceptDragsParams,
};
use serde_json::json;

use super::args::DragArgs;
use super::results::{Effect, PageState};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::element::{Element, Spot};
use crate::error::{Check, Error};
use crate::frame::On;

const DRAGS: &str = include_str!("../js/drags.js");

/// How far the mouse goes before a page that drags has noticed; Chromium's own threshold is 3 pixels.
const START_DISTANCE: f64 = 6.0;

/// How many moves, if the caller does not say.
const STEPS: u32 = 5;

/// How long the browser may take to hand over a drag that the page has begun.
const HANDED_WAIT: Duration = Duration::from_secs(1);

/// Releases the button, and drops nothing, if the drag does not come to its end.
struct Held<'a> {
    act: &'a Act<'a>,
    at: Spot,
    is_held: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.is_held {
            self.act.page.post(&held(DispatchMouseEventType::MouseReleased, self.at));
        }
        self.act.page.post(&SetInterceptDragsParams::new(false));
    }
}

impl Browser {
    /// Drags one element onto another.
    ///
    /// # Errors
    /// [`Error::ElementNotActionable`] and [`Error::StaleRef`]; unless they say otherwise, nothing was pressed.
    pub async fn drag(&self, args: &DragArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(act.drag(args)).await
    }
}

impl Act<'_> {
    async fn drag(&self, args: &DragArgs) -> Result<Effect, Error> {
        self.to_front().await?;
        let (from, to) = (self.element(args.from).await?, self.element(args.to).await?);
        // Whatever is wrong with the target is told before anything is pressed.
        self.aim(&to, &[Check::Visible, Check::Stable], None, false).await?;
        let start = self.aim(&from, &[Check::Visible, Check::Stable, Check::Enabled], None, false).await?;
        if let Some(tab) = self.browser.hub.state().tabs.get_mut(&self.tab) {
            tab.dragged = None;
        }
        self.call(&SetInterceptDragsParams::new(true)).await?;
        self.note_sent(Sent::Some);
        let mut hand = Held { act: self, at: start, is_held: false };
        self.call(&moved(start, MouseButton::None)).await?;
        self.hear_drag(&from, false).await?;
        hand.is_held = true;
        self.call(&held(DispatchMouseEventType::MousePressed, start)).await?;
        let begun = Spot { x: start.x + START_DISTANCE, y: start.y + START_DISTANCE };
        for at in [Spot { x: start.x + START_DISTANCE / 2.0, ..start }, begun] {
            self.call(&moved(at, MouseButton::Left)).await?;
        }
        let carried = self.carried(&from).await?;
        // The target may be out of view from where the drag began.
        self.scroll_to(&to).await?;
        let end = self.spot_of(&to).await?;
        let path = path(begun, end, args.steps.unwrap_or(STEPS));
        match carried {
            Some(data) => {
                // The browser has taken the button over.
                hand.is_held = false;
                self.carry(&path, data).await?;
            }
            None => {
                for at in &path {
                    self.call(&moved(*at, MouseButton::Left)).await?;
                }
                hand.is_held = false;
                self.note_sent(Sent::All);
                self.call(&held(DispatchMouseEventType::MouseReleased, end)).await?;
            }
        }
        Ok(Effect::Done)
    }

    /// Whether the page lets a native drag begin; asked from the first call to the last.
    async fn hear_drag(&self, from: &Element, is_over: bool) -> Result<bool, Error> {
        let heard = self.apply(&from.session, &On::World(from.world), DRAGS, &[json!(is_over)]).await;
        heard.map_err(|error| crate::element::stale(from.reference, error))
    }

    /// What is carried by the native drag that the page has begun; `None` if it did not.
    async fn carried(&self, from: &Element) -> Result<Option<DragData>, Error> {
        let taken =
            |state: &crate::state::State| state.tabs.get(&self.tab).is_some_and(|tab| tab.dragged.is_some());
        if self.hear_drag(from, true).await? {
            self.comes(HANDED_WAIT, taken).await;
        }
        Ok(self.browser.hub.state().tabs.get_mut(&self.tab).and_then(|tab| tab.dragged.take()))
    }

    async fn carry(&self, path: &[Spot], data: DragData) -> Result<(), Error> {
        let event = |kind, at: Spot| DispatchDragEventParams::new(kind, at.x, at.y, data.clone());
        let Some(end) = path.last().copied() else { return Ok(()) };
        let first = path.first().copied().unwrap_or(end);
        self.call(&event(DispatchDragEventType::DragEnter, first)).await?;
        for at in path {
            self.call(&event(DispatchDragEventType::DragOver, *at)).await?;
        }
        self.note_sent(Sent::All);
        self.call(&event(DispatchDragEventType::Drop, end)).await?;
        Ok(())
    }

    /// Where the element is now, whatever covers it: what is dragged may be in between.
    async fn spot_of(&self, element: &Element) -> Result<Spot, Error> {
        self.aim(element, &[], None, true).await
    }
}

fn moved(at: Spot, button: MouseButton) -> DispatchMouseEventParams {
    let mut event = DispatchMouseEventParams::new(DispatchMouseEventType::MouseMoved, at.x, at.y);
    event.buttons = Some(i64::from(button == MouseButton::Left));
    event.button = Some(button);
    event
}

fn held(kind: DispatchMouseEventType, at: Spot) -> DispatchMouseEventParams {
    let is_down = kind == DispatchMouseEventType::MousePressed;
    let mut event = DispatchMouseEventParams::new(kind, at.x, at.y);
    event.button = Some(MouseButton::Left);
    event.buttons = Some(i64::from(is_down));
    event.click_count = Some(1);
    event
}

/// So many points from one to the other, the last of them the other itself.
fn path(from: Spot, to: Spot, steps: u32) -> Vec<Spot> {
    let at = |step: u32| {
        let part = f64::from(step) / f64::from(steps);
        Spot { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }
    };
    (1..=steps).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_steps_that_were_asked_for_and_ends_at_its_end() {
        let path = path(Spot { x: 0.0, y: 10.0 }, Spot { x: 100.0, y: 0.0 }, 4);
        assert_eq!(path.len(), 4);
        assert_eq!((path[0], path[3]), (Spot { x: 25.0, y: 7.5 }, Spot { x: 100.0, y: 0.0 }));
    }
}
