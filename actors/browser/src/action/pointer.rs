//! The mouse: click, double click, hover; and what needs only an element.

use chromiumoxide_cdp::cdp::browser_protocol::input::{
    DispatchMouseEventParams, DispatchMouseEventType, MouseButton,
};

use super::args::{Button, ClickArgs, ElementArgs, Modifier};
use super::results::{Effect, PageState};
use crate::act::{Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::element::Spot;
use crate::error::{Check, Error};

const FOCUS: &str = include_str!("../js/focus.js");

impl Browser {
    /// Clicks an element.
    ///
    /// # Errors
    /// [`Error::ElementNotActionable`] and [`Error::StaleRef`] before the page has seen a press; the mouse may have
    /// been over the element by then.
    pub async fn click(&self, args: &ClickArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(act.click(args, 1)).await
    }

    /// Clicks an element twice.
    ///
    /// # Errors
    /// As [`Browser::click`].
    pub async fn dblclick(&self, args: &ClickArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(act.click(args, 2)).await
    }

    /// Moves the mouse onto an element.
    ///
    /// # Errors
    /// As [`Browser::click`].
    pub async fn hover(&self, args: &ElementArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(async {
            act.to_front().await?;
            let element = act.element(args.reference).await?;
            let spot = act.aim(&element, &[Check::Visible, Check::Stable], None, false).await?;
            act.note_sent(Sent::Some);
            act.call(&mouse(DispatchMouseEventType::MouseMoved, spot, Button::Left, 0, &[])).await?;
            act.note_sent(Sent::All);
            Ok(Effect::Done)
        })
        .await
    }

    /// Gives an element the focus.
    ///
    /// # Errors
    /// [`Error::StaleRef`].
    pub async fn focus(&self, args: &ElementArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(async {
            act.to_front().await?;
            let element = act.element(args.reference).await?;
            act.note_sent(Sent::Some);
            let _hides: bool = act.on(&element, FOCUS, &[]).await?;
            act.note_sent(Sent::All);
            Ok(Effect::Done)
        })
        .await
    }

    /// Scrolls until an element is in view.
    ///
    /// # Errors
    /// [`Error::StaleRef`].
    pub async fn scroll_into_view(&self, args: &ElementArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(async {
            let element = act.element(args.reference).await?;
            act.note_sent(Sent::Some);
            act.scroll_to(&element).await?;
            act.note_sent(Sent::All);
            Ok(Effect::Done)
        })
        .await
    }
}

pub(super) fn mouse(
    kind: DispatchMouseEventType,
    spot: Spot,
    button: Button,
    count: i64,
    modifiers: &[Modifier],
) -> DispatchMouseEventParams {
    let is_move = kind == DispatchMouseEventType::MouseMoved;
    let (button, bit) = match button {
        Button::Left => (MouseButton::Left, 1),
        Button::Right => (MouseButton::Right, 2),
        Button::Middle => (MouseButton::Middle, 4),
    };
    let is_down = kind == DispatchMouseEventType::MousePressed;
    let mut event = DispatchMouseEventParams::new(kind, spot.x, spot.y);
    event.modifiers = Some(modifier_bits(modifiers));
    event.button = Some(if is_move { MouseButton::None } else { button });
    event.buttons = Some(if is_down { bit } else { 0 });
    event.click_count = Some(count);
    event
}

/// Source: `Input.dispatchKeyEvent`, `modifiers`: Alt 1, Control 2, Meta 4, Shift 8.
pub(super) fn modifier_bits(modifiers: &[Modifier]) -> i64 {
    modifiers.iter().fold(0, |bits, modifier| {
        bits | match modifier {
            Modifier::Alt => 1,
            Modifier::Control => 2,
            Modifier::Meta => 4,
            Modifier::Shift => 8,
        }
    })
}
