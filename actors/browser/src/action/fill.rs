//! Filling a field: its text is replaced in one step, as a paste does.

use serde::Deserialize;
use serde_json::json;

use super::args::FillArgs;
use super::keys;
use super::results::{Effect, PageState};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::error::{Check, Error};

const EDIT: &str = include_str!("../js/edit.js");
const HOLDS: &str = include_str!("../js/holds.js");

#[derive(Deserialize)]
struct Prepared {
    mode: Mode,
    secret: bool,
    #[serde(default)]
    empty: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Focused, with everything selected.
    Keys,
    /// Filled: a date or a slider takes no text.
    Set,
    /// Takes no text at all.
    Refused,
    /// The text does not fit the kind of field.
    Malformed,
}

impl Browser {
    /// Replaces the text of a field.
    ///
    /// # Errors
    /// [`Error::ElementNotActionable`] and [`Error::StaleRef`] before any input was sent; [`Error::InvalidArgs`] if
    /// the element is no field or the text does not fit it.
    pub async fn fill(&self, args: &FillArgs, call: &Call) -> Result<PageState, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.act(act.fill(args)).await
    }
}

impl Act<'_> {
    async fn fill(&self, args: &FillArgs) -> Result<Effect, Error> {
        self.to_front().await?;
        let element = self.element(args.reference).await?;
        self.ready(&element, &[Check::Visible, Check::Enabled, Check::Editable]).await?;
        self.scroll_to(&element).await?;
        let prepared: Prepared = self.on(&element, EDIT, &[json!(args.text)]).await?;
        if prepared.secret {
            self.browser.secrets.lock().note(&args.text);
            self.browser.hub.state().secret_fields.insert(element.key.clone());
        }
        match prepared.mode {
            Mode::Keys => {}
            Mode::Set => {
                self.note_sent(Sent::All);
                return Ok(Effect::Done);
            }
            Mode::Refused => {
                let what = format!("{} takes no text; click it, or press keys in it", args.reference);
                return Err(Error::invalid(what));
            }
            Mode::Malformed => {
                return Err(Error::invalid(format!(
                    "{} does not take such a text; write numbers as 12.5, a date as 2026-11-30, a time as 15:04 and a \
                     colour as #a1b2c3",
                    args.reference
                )));
            }
        }
        self.note_sent(Sent::Some);
        if args.text.is_empty() {
            if !prepared.empty {
                let delete = keys::find("Delete")?;
                self.strike(&delete, 0).await?;
            }
        } else {
            self.insert(&mut args.text.clone()).await?;
        }
        self.note_sent(Sent::All);
        // A page may format or refuse what it gets; then it is not certain what it made of it.
        match self.on::<bool>(&element, HOLDS, &[json!(args.text)]).await {
            Ok(true) => Ok(Effect::Done),
            Ok(false) | Err(Error::StaleRef { .. }) => Ok(Effect::SentUnconfirmed),
            Err(error) => Err(error),
        }
    }
}
