//! The mouse by coordinates, for what has no element: a map, a canvas, a game.

use chromiumoxide_cdp::cdp::browser_protocol::input::{
    DispatchMouseEventParams, DispatchMouseEventType, MouseButton,
};

use super::args::{Button, MouseAction, MouseArgs};
use super::pointer::modifier_bits;
use super::results::{Effect, PageState};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::error::Error;

impl Browser {
    /// Uses the mouse at a point.
    ///
    /// # Errors
    /// [`Error::InvalidArgs`] for a point out of view, or a wheel that is not turned.
    pub async fn mouse(&self, args: &MouseArgs, call: &Call) -> Result<PageState, Error> {
        let is_turned = (args.dx, args.dy) != (0, 0);
        if is_turned != (args.action == MouseAction::Wheel) {
            return Err(Error::invalid(
                "dx and dy say how far the wheel is turned; give them with wheel only",
            ));
        }
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(act.mouse(args)).await
    }
}

impl Act<'_> {
    async fn mouse(&self, args: &MouseArgs) -> Result<Effect, Error> {
        self.to_front().await?;
        let (width, height) = self.view_size().await?;
        if args.x >= width || args.y >= height {
            return Err(Error::invalid(format!(
                "the view has {width} × {height} pixels; the point is not in it"
            )));
        }
        let bit = button_bit(args.button);
        match args.action {
            MouseAction::Move => {
                self.send_mouse(args, DispatchMouseEventType::MouseMoved, 0, Sent::All).await?;
            }
            MouseAction::Down => {
                self.press_bits(|pressed| pressed | bit);
                self.send_mouse(args, DispatchMouseEventType::MousePressed, 1, Sent::All).await?;
            }
            MouseAction::Up => {
                self.press_bits(|pressed| pressed & !bit);
                self.send_mouse(args, DispatchMouseEventType::MouseReleased, 1, Sent::All).await?;
            }
            MouseAction::Click => {
                self.send_mouse(args, DispatchMouseEventType::MouseMoved, 0, Sent::Some).await?;
                self.press_bits(|pressed| pressed | bit);
                let pressed = self.mouse_event(args, DispatchMouseEventType::MousePressed, 1);
                self.press_bits(|pressed| pressed & !bit);
                let released = self.mouse_event(args, DispatchMouseEventType::MouseReleased, 1);
                self.note_sent(Sent::All);
                // Both go out at once: a button is never left pressed, whatever happens in between.
                let (pressed, released) = tokio::join!(self.call(&pressed), self.call(&released));
                pressed.and(released)?;
            }
            MouseAction::Wheel => {
                let mut event = self.mouse_event(args, DispatchMouseEventType::MouseWheel, 0);
                event.delta_x = Some(args.dx.into());
                event.delta_y = Some(args.dy.into());
                self.note_sent(Sent::All);
                self.call(&event).await?;
            }
        }
        Ok(Effect::Done)
    }

    async fn send_mouse(
        &self,
        args: &MouseArgs,
        kind: DispatchMouseEventType,
        count: i64,
        sent: Sent,
    ) -> Result<(), Error> {
        self.note_sent(sent);
        self.call(&self.mouse_event(args, kind, count)).await?;
        Ok(())
    }

    fn mouse_event(
        &self,
        args: &MouseArgs,
        kind: DispatchMouseEventType,
        count: i64,
    ) -> DispatchMouseEventParams {
        let held = self.press_bits(|pressed| pressed);
        let presses =
            matches!(kind, DispatchMouseEventType::MousePressed | DispatchMouseEventType::MouseReleased);
        let mut event = DispatchMouseEventParams::new(kind, args.x, args.y);
        event.modifiers = Some(modifier_bits(&args.modifiers));
        event.button = Some(if presses { mouse_button(args.button) } else { held_button(held) });
        event.buttons = Some(held);
        event.click_count = Some(count);
        event
    }

    /// Changes which buttons are kept pressed in the tab, and tells which are.
    fn press_bits(&self, change: impl FnOnce(i64) -> i64) -> i64 {
        let mut state = self.browser.hub.state();
        let Some(tab) = state.tabs.get_mut(&self.tab) else { return 0 };
        tab.pressed = change(tab.pressed);
        tab.pressed
    }
}

pub(super) fn mouse_button(button: Button) -> MouseButton {
    match button {
        Button::Left => MouseButton::Left,
        Button::Right => MouseButton::Right,
        Button::Middle => MouseButton::Middle,
    }
}

fn button_bit(button: Button) -> i64 {
    match button {
        Button::Left => 1,
        Button::Right => 2,
        Button::Middle => 4,
    }
}

/// With which button a mouse moves that keeps these pressed.
fn held_button(held: i64) -> MouseButton {
    match held {
        held if held & 1 != 0 => MouseButton::Left,
        held if held & 2 != 0 => MouseButton::Right,
        held if held & 4 != 0 => MouseButton::Middle,
        _ => MouseButton::None,
    }
}
