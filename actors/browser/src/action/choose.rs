//! Choosing: the options of a select, and what can be checked.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::dom::DescribeNodeParams;
use chromiumoxide_cdp::cdp::js_protocol::runtime::RemoteObjectId;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::args::{Button, ClickArgs, ElementArgs, SelectArgs};
use super::results::{CheckResult, ChosenOption, Effect, SelectResult};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::element::{Element, LABEL, REPORT_RESERVE, ROUND_PAUSE};
use crate::error::{Check, Error};
use crate::frame::On;
use crate::reference::{ElementRef, NodeKey};
use crate::tab::cut;

const SELECT: &str = include_str!("../js/select.js");
const CHECKED: &str = include_str!("../js/checked.js");

/// How long a page may take to show that something is checked: many draw it in a frame of their own.
const CHECKED_WAIT: Duration = Duration::from_secs(1);

/// Characters of an option that are told.
const OPTION_CHARS_MAX: usize = 200;

#[derive(Deserialize)]
struct Selecting {
    refused: Option<Refused>,
    #[serde(default)]
    among: Vec<String>,
    selected: Option<Vec<ChosenOption>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Refused {
    /// It is no select.
    Kind,
    /// Only one can be chosen.
    Single,
    /// There is no such option.
    Missing,
    /// The option can not be chosen.
    Disabled,
}

#[derive(Deserialize)]
struct Checkable {
    radio: bool,
    checked: bool,
    mixed: bool,
}

impl Browser {
    /// Chooses options of a select.
    ///
    /// # Errors
    /// [`Error::ElementNotActionable`] and [`Error::StaleRef`]; [`Error::InvalidArgs`] if it is no select, or has no
    /// such option by the time that is left. Nothing was chosen then.
    pub async fn select(&self, args: &SelectArgs, call: &Call) -> Result<SelectResult, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let (page, selected) = act.act_and_tell(act.select(args)).await?;
        Ok(SelectResult { page, selected })
    }

    /// Checks a checkbox, a radio or a switch; does nothing if it is checked.
    ///
    /// # Errors
    /// As [`Browser::click`]; [`Error::InvalidArgs`] for what can not be checked.
    pub async fn check(&self, args: &ElementArgs, call: &Call) -> Result<CheckResult, Error> {
        self.turn_to(true, args, call).await
    }

    /// Unchecks a checkbox or a switch; does nothing if it is not checked.
    ///
    /// # Errors
    /// As [`Browser::check`]; [`Error::InvalidArgs`] for a radio too.
    pub async fn uncheck(&self, args: &ElementArgs, call: &Call) -> Result<CheckResult, Error> {
        self.turn_to(false, args, call).await
    }

    async fn turn_to(&self, wanted: bool, args: &ElementArgs, call: &Call) -> Result<CheckResult, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let (page, checked) = act.act_and_tell(act.turn_to(wanted, args.reference)).await?;
        Ok(CheckResult { page, checked })
    }
}

impl Act<'_> {
    async fn select(&self, args: &SelectArgs) -> Result<(Effect, Option<Vec<ChosenOption>>), Error> {
        self.to_front().await?;
        let element = self.element(args.reference).await?;
        loop {
            self.ready(&element, &[Check::Visible, Check::Enabled]).await?;
            let tried: Selecting = self.on(&element, SELECT, &[json!(args.values), json!(true)]).await?;
            match tried.refused {
                None => break,
                // Pages fill their selects late.
                Some(Refused::Missing | Refused::Disabled)
                    if Instant::now() + ROUND_PAUSE + REPORT_RESERVE < self.deadline =>
                {
                    self.pause(ROUND_PAUSE).await;
                }
                Some(refused) => return Err(not_selected(args.reference, refused, &tried)),
            }
        }
        self.scroll_to(&element).await?;
        self.note_sent(Sent::All);
        match self.on::<Selecting>(&element, SELECT, &[json!(args.values), json!(false)]).await {
            Ok(Selecting { selected: Some(selected), .. }) => {
                let told = |option: ChosenOption| ChosenOption {
                    value: cut(&option.value, OPTION_CHARS_MAX),
                    label: cut(&option.label, OPTION_CHARS_MAX),
                };
                Ok((Effect::Done, Some(selected.into_iter().map(told).collect())))
            }
            // The options changed between the two looks.
            Ok(_) => Ok((Effect::SentUnconfirmed, None)),
            // The page left at once.
            Err(Error::StaleRef { .. }) => Ok((Effect::Done, None)),
            Err(error) => Err(error),
        }
    }

    async fn turn_to(&self, wanted: bool, reference: ElementRef) -> Result<(Effect, Option<bool>), Error> {
        self.to_front().await?;
        let element = self.element(reference).await?;
        let is = self.checkable(&element).await?.ok_or_else(|| {
            Error::invalid(format!("{reference} is no checkbox, radio or switch; click it instead"))
        })?;
        if is.checked == wanted {
            return Ok((Effect::Done, Some(wanted)));
        }
        if is.radio && !wanted {
            let what = format!("{reference} is a radio and can not be unchecked; check another of its group");
            return Err(Error::invalid(what));
        }
        let pressed = self.label_of(&element).await?.unwrap_or(reference);
        let mut turned = self.press_to(wanted, pressed, &element).await?;
        // What is neither one nor the other may come to the wrong one first.
        if is.mixed && turned.1 == Some(!wanted) {
            turned = self.press_to(wanted, pressed, &element).await?;
        }
        Ok(turned)
    }

    /// Clicks, and waits until the page shows what came of it.
    async fn press_to(
        &self,
        wanted: bool,
        pressed: ElementRef,
        element: &Element,
    ) -> Result<(Effect, Option<bool>), Error> {
        let effect = Box::pin(self.click(&plain_click(pressed), 1)).await?;
        let until = self.deadline.min(Instant::now() + CHECKED_WAIT);
        loop {
            match self.checkable(element).await {
                Ok(Some(is)) if is.checked == wanted => return Ok((Effect::Done, Some(wanted))),
                Ok(Some(_)) if Instant::now() + ROUND_PAUSE < until => self.pause(ROUND_PAUSE).await,
                Ok(Some(is)) => return Ok((Effect::SentUnconfirmed, Some(is.checked))),
                // It was replaced or left with its page.
                Ok(None) | Err(Error::StaleRef { .. }) => return Ok((effect, None)),
                Err(error) => return Err(error),
            }
        }
    }

    async fn checkable(&self, element: &Element) -> Result<Option<Checkable>, Error> {
        self.on(element, CHECKED, &[]).await
    }

    /// The label that stands for a field which can not be seen.
    async fn label_of(&self, element: &Element) -> Result<Option<ElementRef>, Error> {
        #[derive(Deserialize)]
        struct Described {
            node: Node,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Node {
            backend_node_id: i64,
        }
        let stale = |error| crate::element::stale(element.reference, error);
        let on = On::Object(&element.object);
        let label = self.apply_raw(&element.session, &on, LABEL, &[], false).await.map_err(stale)?;
        let Some(object) = label.result.object_id else { return Ok(None) };
        let describe = DescribeNodeParams::builder().object_id(RemoteObjectId::new(object)).build();
        let described: Described = self.fetch(&element.session, &describe).await.map_err(stale)?;
        let key = NodeKey { node: described.node.backend_node_id, ..element.key.clone() };
        Ok(Some(self.browser.hub.state().references.intern(key)))
    }
}

/// A click as a hand does it.
pub(super) fn plain_click(reference: ElementRef) -> ClickArgs {
    ClickArgs {
        reference,
        button: Button::Left,
        modifiers: Vec::new(),
        position: None,
        force: false,
        tab: None,
        timeout_ms: None,
    }
}

fn not_selected(reference: ElementRef, refused: Refused, tried: &Selecting) -> Error {
    // What was asked for is not repeated: args are told to nobody (S12).
    Error::invalid(match refused {
        Refused::Kind => format!("{reference} is no select; click it, then what it shows"),
        Refused::Single => format!("only one option of {reference} can be chosen"),
        Refused::Disabled => format!("an option of {reference} that was asked for is disabled"),
        Refused::Missing => {
            let among: Vec<_> = tried.among.iter().map(|label| cut(label, 60)).collect();
            format!("{reference} has no such option; it has {}", among.join(", "))
        }
    })
}
