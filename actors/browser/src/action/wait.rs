//! Waiting for one thing.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::args::{ElementState, LoadState, RefState, SnapshotArgs, WaitArgs};
use super::results::WaitResult;
use crate::act::{Act, Needs};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::element::READY;
use crate::error::Error;
use crate::snapshot::text::{quote, squeeze};

const SHOWS: &str = include_str!("../js/shows.js");

/// Pause between two looks at the page.
const LOOK_PAUSE: Duration = Duration::from_millis(150);

/// Every so many looks the accessibility tree is read too: it knows closed shadow roots.
const DEEP_LOOK_EVERY: u32 = 4;

enum Goal<'a> {
    Time(Duration),
    Text(&'a str, bool),
    Element(RefState),
    Address(&'a str),
    Load(LoadState),
}

impl Browser {
    /// Waits for one thing.
    ///
    /// # Errors
    /// [`Error::TaskTimeout`] if it does not come; [`Error::InvalidArgs`] unless exactly one is named.
    pub async fn wait(&self, args: &WaitArgs, call: &Call) -> Result<WaitResult, Error> {
        let (met, goal) = goal(args)?;
        // A wait for a time has to last that long, whatever is usual.
        let least = args.ms.map_or(ACTION_TIMEOUT, |ms| Duration::from_millis(u64::from(ms) + 1000));
        let deadline = call.deadline(args.timeout_ms, ACTION_TIMEOUT.max(least));
        let act = self.begin(args.tab, deadline, call, Needs::Page)?;
        let began = Instant::now();
        act.read(act.wait(&goal)).await?;
        let (url, title) = act.address().await;
        let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(WaitResult { met, waited_ms, url, title })
    }
}

fn goal(args: &WaitArgs) -> Result<(&'static str, Goal<'_>), Error> {
    let mut goals = Vec::new();
    if let Some(ms) = args.ms {
        goals.push(("ms", Goal::Time(Duration::from_millis(ms.into()))));
    }
    if let Some(text) = &args.text {
        goals.push(("text", Goal::Text(text, true)));
    }
    if let Some(text) = &args.text_gone {
        goals.push(("text_gone", Goal::Text(text, false)));
    }
    if let Some(state) = args.ref_state {
        goals.push(("ref_state", Goal::Element(state)));
    }
    if let Some(url) = &args.url {
        goals.push(("url", Goal::Address(url)));
    }
    if let Some(state) = args.load_state {
        goals.push(("load_state", Goal::Load(state)));
    }
    match (goals.pop(), goals.is_empty()) {
        (Some(goal), true) => Ok(goal),
        _ => Err(Error::invalid("name exactly one of ms, text, text_gone, ref_state, url and load_state")),
    }
}

impl Act<'_> {
    async fn wait(&self, goal: &Goal<'_>) -> Result<(), Error> {
        match goal {
            Goal::Time(time) => self.pause(*time).await,
            Goal::Text(text, wanted) => self.wait_for_text(text, *wanted).await?,
            Goal::Element(state) => self.wait_for_element(*state).await?,
            Goal::Address(pattern) => {
                let hub = &self.browser.hub;
                hub.wait_for(|state| {
                    let tab = state.tabs.get(&self.tab)?;
                    let now = tab.main_frame().map_or(tab.url.as_str(), |frame| frame.url.as_str());
                    matches(pattern, now).then_some(())
                })
                .await;
            }
            Goal::Load(wait) => {
                self.browser.hub.wait_for(|state| self.has_reached(state, *wait).then_some(())).await;
            }
        }
        Ok(())
    }

    async fn wait_for_text(&self, text: &str, wanted: bool) -> Result<(), Error> {
        for look in 0.. {
            let mut shown = self.shows(text).await?;
            // "Not shown" is only certain with the deep look.
            if !shown && (!wanted || look % DEEP_LOOK_EVERY == 0) {
                shown = self.names(text).await?;
            }
            if shown == wanted {
                break;
            }
            self.pause(LOOK_PAUSE).await;
        }
        Ok(())
    }

    async fn shows(&self, text: &str) -> Result<bool, Error> {
        let (frames, _) = self.frames().await?;
        let args = [json!(text)];
        let asked =
            frames.iter().map(|frame| futures::FutureExt::boxed(self.in_frame::<bool>(frame, SHOWS, &args)));
        // A frame that leaves meanwhile shows nothing.
        Ok(futures::future::join_all(asked).await.into_iter().any(|shows| shows.unwrap_or(false)))
    }

    async fn names(&self, text: &str) -> Result<bool, Error> {
        let quoted = quote(text, usize::MAX);
        let wanted = &quoted[1..quoted.len() - 1];
        match self.take(&SnapshotArgs::default()).await {
            Ok((lines, _)) => Ok(lines.iter().any(|line| squeeze(line).contains(wanted))),
            Err(Error::ResultTooLarge) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn wait_for_element(&self, wanted: RefState) -> Result<(), Error> {
        loop {
            if self.is_in(wanted).await? {
                return Ok(());
            }
            self.pause(LOOK_PAUSE).await;
        }
    }

    async fn is_in(&self, wanted: RefState) -> Result<bool, Error> {
        let check = match wanted.state {
            ElementState::Visible | ElementState::Hidden => "visible",
            ElementState::Enabled | ElementState::Disabled => "enabled",
            ElementState::Gone => "",
        };
        let asked = match self.element(wanted.reference).await {
            Ok(element) => self.on::<Option<String>>(&element, READY, &[json!([check])]).await,
            Err(error) => Err(error),
        };
        let failed = match asked {
            Err(Error::StaleRef { .. }) => Some("gone".to_owned()),
            other => other?,
        };
        match (wanted.state, failed.as_deref()) {
            (ElementState::Gone, failed) => Ok(failed == Some("gone")),
            (ElementState::Hidden, failed) => Ok(failed.is_some()),
            (_, Some("gone")) => Err(Error::StaleRef { reference: wanted.reference }),
            (ElementState::Visible | ElementState::Enabled, failed) => Ok(failed.is_none()),
            (ElementState::Disabled, failed) => Ok(failed.is_some()),
        }
    }
}

/// Whether the whole of `text` fits the pattern, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let parts: Vec<&str> = pattern.split('*').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_to_fit_the_whole_address() {
        assert!(
            matches("http://a/*", "http://a/b?c")
                && matches("*done*", "http://a/done?x")
                && matches("a", "a")
        );
        assert!(matches("*", "") && matches("a**c", "abc"));
        assert!(!matches("http://a/", "http://a/b") && !matches("*x", "xy") && !matches("ab*ba", "aba"));
    }

    #[test]
    fn exactly_one_thing_can_be_waited_for() {
        let args = |json| serde_json::from_value::<WaitArgs>(json).expect("the args are well formed");
        assert!(matches!(goal(&args(json!({"ms": 5}))), Ok(("ms", _))));
        assert!(goal(&args(json!({}))).is_err());
        assert!(goal(&args(json!({"ms": 5, "text": "x"}))).is_err());
    }
}
