//! The mouse: click, double click, hover; and what needs only an element.

use chromiumoxide_cdp::cdp::browser_protocol::input::{
    DispatchMouseEventParams, DispatchMouseEventType, MouseButton,
};
use serde_json::json;

use super::args::{Button, ClickArgs, ElementArgs, Modifier};
use super::results::{Effect, PageState};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::connection::CallError;
use crate::element::{Element, Spot};
use crate::error::{Check, Error};
use crate::frame::On;

const ARM: &str = include_str!("../js/arm.js");
const FOCUS: &str = include_str!("../js/focus.js");

impl Browser {
    /// Clicks an element.
    ///
    /// # Errors
    /// [`Error::ElementNotActionable`] and [`Error::StaleRef`] before any input was sent.
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

impl Act<'_> {
    async fn click(&self, args: &ClickArgs, count: i64) -> Result<Effect, Error> {
        self.to_front().await?;
        let element = self.element(args.reference).await?;
        let checks: &[Check] =
            if args.force { &[Check::Visible] } else { &[Check::Visible, Check::Enabled, Check::Stable] };
        let position = args.position.map(|at| Spot { x: at.x, y: at.y });
        let spot = self.aim(&element, checks, position, args.force).await?;
        let armed = self.arm(&element).await?;
        let moved = mouse(DispatchMouseEventType::MouseMoved, spot, args.button, 0, &args.modifiers);
        self.note_sent(Sent::Some);
        self.call(&moved).await?;
        for number in 1..=count {
            let pressed =
                mouse(DispatchMouseEventType::MousePressed, spot, args.button, number, &args.modifiers);
            let released =
                mouse(DispatchMouseEventType::MouseReleased, spot, args.button, number, &args.modifiers);
            // Both go out at once: a button is never left pressed, whatever happens in between.
            let both = async {
                let (pressed, released) = tokio::join!(self.call(&pressed), self.call(&released));
                pressed.and(released)
            };
            self.note_sent(if number == count { Sent::All } else { Sent::Some });
            both.await?;
        }
        self.confirm(&element, &armed).await
    }

    /// Makes the element count the input that reaches it.
    async fn arm(&self, element: &Element) -> Result<String, Error> {
        let types = json!(["mousedown", "pointerdown", "click", "auxclick", "contextmenu"]);
        let on = On::Object(&element.object);
        let armed = self.apply_raw(&element.session, &on, ARM, &[types], false).await;
        let armed = armed.map_err(|error| crate::element::stale(element.reference, error))?;
        armed.result.object_id.ok_or(Error::StaleRef { reference: element.reference })
    }

    async fn confirm(&self, element: &Element, armed: &str) -> Result<Effect, Error> {
        let count = "function () { return this.count; }";
        match self.apply::<u32>(&element.session, &On::Object(armed), count, &[]).await {
            Ok(0) => Ok(Effect::SentUnconfirmed),
            Ok(_) => Ok(Effect::Done),
            // The document is gone: the click has led away from it.
            Err(CallError::Refused { .. } | CallError::Gone(_)) => Ok(Effect::Done),
            Err(error) => Err(error.into()),
        }
    }
}

fn mouse(
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
