//! Scrolling a page or a part of it.

use serde_json::json;

use super::args::{Border, ScrollArgs};
use super::results::{Effect, ScrollPosition, ScrollResult};
use crate::act::{Act, Needs, Sent};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::error::Error;

const SCROLL: &str = include_str!("../js/scroll.js");

impl Browser {
    /// Scrolls the page, or what holds an element.
    ///
    /// # Errors
    /// [`Error::InvalidArgs`] unless a distance or a border is named, and not both; [`Error::StaleRef`].
    pub async fn scroll(&self, args: &ScrollArgs, call: &Call) -> Result<ScrollResult, Error> {
        match (args.to, args.dx.is_some() || args.dy.is_some()) {
            (Some(_), true) => return Err(Error::invalid("name to, or dx and dy, not both")),
            (None, false) => return Err(Error::invalid("name to, dx or dy")),
            (Some(_), false) | (None, true) => {}
        }
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let (page, position) = act.act_and_tell(act.scroll(args)).await?;
        Ok(ScrollResult { page, position })
    }
}

impl Act<'_> {
    async fn scroll(&self, args: &ScrollArgs) -> Result<(Effect, Option<ScrollPosition>), Error> {
        self.to_front().await?;
        let to = args.to.map(|to| match to {
            Border::Top => "top",
            Border::Bottom => "bottom",
        });
        let given = [json!(args.dx.unwrap_or(0)), json!(args.dy.unwrap_or(0)), json!(to)];
        let position = match args.reference {
            Some(reference) => {
                let element = self.element(reference).await?;
                self.note_sent(Sent::Some);
                self.on(&element, SCROLL, &given).await?
            }
            None => {
                let frame = self.main_frame().await?;
                self.note_sent(Sent::Some);
                self.in_frame(&frame, SCROLL, &given).await?
            }
        };
        self.note_sent(Sent::All);
        Ok((Effect::Done, Some(position)))
    }
}
