//! The keyboard: typing and pressing keys.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::input::{
    DispatchKeyEventParams, DispatchKeyEventType, InsertTextParams,
};

use super::args::{PressArgs, TypeArgs};
use super::keys::{self, Key};
use super::pointer::modifier_bits;
use super::results::{Effect, PageState};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::error::{Check, Error};
use crate::reference::ElementRef;

const FOCUS: &str = include_str!("../js/focus.js");
const FOCUSED_SECRET: &str = include_str!("../js/focused_secret.js");

impl Browser {
    /// Types text key by key.
    ///
    /// # Errors
    /// [`Error::ElementNotActionable`] and [`Error::StaleRef`] before any input was sent.
    pub async fn type_text(&self, args: &TypeArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(act.type_text(args)).await
    }

    /// Presses a key.
    ///
    /// # Errors
    /// As [`Browser::type_text`]; [`Error::InvalidArgs`] for a key that there is not.
    pub async fn press(&self, args: &PressArgs, call: &Call) -> Result<PageState, Error> {
        let key = keys::find(&args.key)?;
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(act.press(args, &key)).await
    }
}

impl Act<'_> {
    async fn type_text(&self, args: &TypeArgs) -> Result<Effect, Error> {
        self.to_front().await?;
        let checks = [Check::Visible, Check::Enabled, Check::Editable];
        if self.focus_for_keys(args.reference, &checks).await? {
            // Known even if the typing is cut short: part of a secret is as secret.
            self.browser.secrets.lock().note(&args.text);
        }
        self.note_sent(Sent::Some);
        // What no keyboard has is inserted as it is, in whole runs: a flag or a family is more than one character.
        let mut run = String::new();
        for character in args.text.chars() {
            if character.is_ascii() {
                self.insert(&mut run).await?;
                self.strike(&keys::of_character(character), 0).await?;
                if args.delay_ms > 0 {
                    self.pause(Duration::from_millis(args.delay_ms.into())).await;
                }
            } else {
                run.push(character);
            }
        }
        self.insert(&mut run).await?;
        if args.submit {
            self.note_sent(Sent::All);
            self.strike(&keys::of_character('\n'), 0).await?;
        }
        self.note_sent(Sent::All);
        Ok(Effect::Done)
    }

    async fn press(&self, args: &PressArgs, key: &Key) -> Result<Effect, Error> {
        self.to_front().await?;
        // A key that types nothing tells nothing.
        let types = key.text.is_some();
        let hides = match args.reference {
            Some(_) => self.focus_for_keys(args.reference, &[]).await?,
            None => types && self.focused_secret().await?.is_some(),
        };
        let modifiers = modifier_bits(&args.modifiers);
        for left in (0..args.count.unwrap_or(1)).rev() {
            self.note_sent(if left == 0 { Sent::All } else { Sent::Some });
            self.strike(key, modifiers).await?;
        }
        if types
            && hides
            && let Some(value) = self.focused_secret().await?
        {
            self.browser.secrets.lock().note_value(&value);
        }
        Ok(Effect::Done)
    }

    /// Gives the element the focus, if one is named; true if what has the focus hides what is typed.
    async fn focus_for_keys(&self, reference: Option<ElementRef>, checks: &[Check]) -> Result<bool, Error> {
        let Some(reference) = reference else { return Ok(self.focused_secret().await?.is_some()) };
        let element = self.element(reference).await?;
        if !checks.is_empty() {
            self.ready(&element, checks).await?;
        }
        self.scroll_to(&element).await?;
        let hides = self.on(&element, FOCUS, &[]).await?;
        if hides {
            self.browser.hub.state().secret_fields.insert(element.key.clone());
        }
        Ok(hides)
    }

    /// The value of the focused field, if it hides what is typed.
    async fn focused_secret(&self) -> Result<Option<String>, Error> {
        let (frames, _) = self.frames().await?;
        let asked = frames.iter().map(|frame| {
            futures::FutureExt::boxed(self.in_frame::<Option<String>>(frame, FOCUSED_SECRET, &[]))
        });
        // A frame that leaves meanwhile has no focus.
        Ok(futures::future::join_all(asked).await.into_iter().find_map(|value| value.ok().flatten()))
    }

    pub(super) async fn insert(&self, run: &mut String) -> Result<(), Error> {
        if !run.is_empty() {
            self.call(&InsertTextParams::new(std::mem::take(run))).await?;
        }
        Ok(())
    }

    pub(super) async fn strike(&self, key: &Key, modifiers: i64) -> Result<(), Error> {
        let event = |kind| {
            let mut event = DispatchKeyEventParams::new(kind);
            event.key = Some(key.key.clone());
            event.code = Some(key.code.clone());
            event.windows_virtual_key_code = Some(key.number);
            event.modifiers = Some(modifiers);
            event
        };
        // With Control, Alt or Meta a key is a shortcut and types nothing.
        let text = key.text.clone().filter(|_| modifiers & 0b0111 == 0);
        let kind =
            if text.is_some() { DispatchKeyEventType::KeyDown } else { DispatchKeyEventType::RawKeyDown };
        let mut down = event(kind);
        down.unmodified_text.clone_from(&text);
        down.text = text;
        let up = event(DispatchKeyEventType::KeyUp);
        // Both go out at once: a key is never left pressed.
        let (down, up) = tokio::join!(self.call(&down), self.call(&up));
        down.and(up)?;
        Ok(())
    }
}
