//! Navigation: opening an address, the history, loading again.

use std::future::Future;
use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::network;
use chromiumoxide_cdp::cdp::browser_protocol::page::{
    GetNavigationHistoryParams, NavigateParams, NavigateToHistoryEntryParams, ReloadParams,
};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::args::{HistoryArgs, LoadState, NavigateArgs, ReloadArgs};
use super::results::{Effect, NavigateResult};
use crate::act::{Act, Needs, Ran, Sent, Stop};
use crate::browser::Browser;
use crate::call::{Call, NAVIGATION_TIMEOUT};
use crate::error::Error;
use crate::frame::On;
use crate::gate::Refusal;
use crate::policy;
use crate::session::Session;
use crate::state::State;

const STATUS: &str = include_str!("../js/status.js");

/// How long a page that is shown may take to load or to become quiet, before it is described as it is.
const LOAD_WAIT: Duration = Duration::from_secs(10);

/// How long a new tab may take to be set up.
const PREPARE_WAIT: Duration = Duration::from_secs(2);

/// How long the note of a download may come after the answer that says so.
const DOWNLOAD_WAIT: Duration = Duration::from_secs(1);

/// How long the browser's error page may come after the error.
const ERROR_PAGE_WAIT: Duration = Duration::from_millis(500);

/// What came of a navigation.
struct Arrival {
    http_status: Option<u16>,
    loaded: bool,
    /// The tab's address and title were asked for since.
    is_described: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    loader_id: Option<String>,
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

/// Hears what servers answer, for the length of a navigation: to ask the page itself would wait until it is drawn, and
/// to hear all the time would tell of each request of each page.
struct Hearing<'a>(&'a Session);

impl<'a> Hearing<'a> {
    fn begin(page: &'a Session) -> Self {
        // Nothing that was received is to be kept for us.
        let enable = network::EnableParams {
            max_total_buffer_size: Some(0),
            max_resource_buffer_size: Some(0),
            ..network::EnableParams::default()
        };
        page.post(&enable);
        Self(page)
    }
}

impl Drop for Hearing<'_> {
    fn drop(&mut self) {
        self.0.post(&network::DisableParams::default());
    }
}

impl Browser {
    /// Opens an address. A crashed tab is revived by it.
    ///
    /// # Errors
    /// [`Error::BlockedByPolicy`] for anything but http, https and about:blank; [`Error::NavigationFailed`].
    pub async fn navigate(&self, args: &NavigateArgs, call: &Call) -> Result<NavigateResult, Error> {
        let url = policy::may_open(&args.url)?;
        let act =
            self.begin(args.tab, call.deadline(args.timeout_ms, NAVIGATION_TIMEOUT), call, Needs::Tab)?;
        act.arrive(act.open(url.as_str(), args.wait)).await
    }

    /// Goes back in the history of the tab.
    ///
    /// # Errors
    /// [`Error::NavigationFailed`] if there is nothing to go back to.
    pub async fn go_back(&self, args: &HistoryArgs, call: &Call) -> Result<NavigateResult, Error> {
        let act =
            self.begin(args.tab, call.deadline(args.timeout_ms, NAVIGATION_TIMEOUT), call, Needs::Tab)?;
        act.arrive(act.travel(-1, args.wait)).await
    }

    /// Goes forward in the history of the tab.
    ///
    /// # Errors
    /// [`Error::NavigationFailed`] if there is nothing to go forward to.
    pub async fn go_forward(&self, args: &HistoryArgs, call: &Call) -> Result<NavigateResult, Error> {
        let act =
            self.begin(args.tab, call.deadline(args.timeout_ms, NAVIGATION_TIMEOUT), call, Needs::Tab)?;
        act.arrive(act.travel(1, args.wait)).await
    }

    /// Loads the page again.
    ///
    /// # Errors
    /// [`Error::NavigationFailed`].
    pub async fn reload(&self, args: &ReloadArgs, call: &Call) -> Result<NavigateResult, Error> {
        let act =
            self.begin(args.tab, call.deadline(args.timeout_ms, NAVIGATION_TIMEOUT), call, Needs::Tab)?;
        act.arrive(async {
            let reload = ReloadParams { ignore_cache: Some(args.ignore_cache), ..ReloadParams::default() };
            act.note_sent(Sent::Some);
            act.call(&reload).await?;
            act.shown(args.wait).await
        })
        .await
    }
}

impl Act<'_> {
    async fn open(&self, url: &str, wait: LoadState) -> Result<Arrival, Error> {
        // A page that is stuck is navigated away from all the same.
        let _ = self.browser.prepared(self.tab, self.deadline.min(Instant::now() + PREPARE_WAIT)).await;
        self.note_sent(Sent::Some);
        let navigated: Navigated = self.fetch(&self.page, &NavigateParams::new(url)).await?;
        if navigated.is_download {
            self.comes(DOWNLOAD_WAIT, |state| state.download_count > self.before.downloads).await;
            return Ok(Arrival { http_status: None, loaded: true, is_described: false });
        }
        if let Some(reason) = navigated.error_text.filter(|text| !text.is_empty()) {
            return Err(self.not_reached(url, reason).await);
        }
        if navigated.loader_id.is_none() {
            // The same document at another address: there is nothing to load.
            return Ok(Arrival { http_status: None, loaded: true, is_described: false });
        }
        self.shown(wait).await
    }

    /// Why the browser shows its error page. What it was asked for may have led elsewhere, and its page says where it
    /// came to; that is told a moment after the failure.
    async fn not_reached(&self, asked: &str, reason: String) -> Error {
        let told = self.browser.hub.wait_for(|state| {
            let frame = state.tabs.get(&self.tab)?.main_frame()?;
            self.moved(state).then(|| frame.unreachable.clone()).flatten()
        });
        let last = timeout_at(self.deadline.min(Instant::now() + ERROR_PAGE_WAIT), told).await;
        let address = Url::parse(last.as_deref().unwrap_or(asked));
        let why = match (self.browser.gate.get(), address) {
            (Some(gate), Ok(address)) => gate.why(&address, self.began.into_std()),
            _ => None,
        };
        match why {
            Some(Refusal::Blocked(rule)) => Error::BlockedByPolicy { rule, sent: true },
            Some(Refusal::Failed(reason)) => Error::NavigationFailed { reason: reason.to_owned() },
            None => Error::NavigationFailed { reason },
        }
    }

    async fn travel(&self, steps: i64, wait: LoadState) -> Result<Arrival, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct History {
            current_index: i64,
            entries: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: i64,
            url: String,
        }
        let history: History = self.fetch(&self.page, &GetNavigationHistoryParams::default()).await?;
        let at = usize::try_from(history.current_index + steps).ok();
        let Some(Entry { id, url }) = at.and_then(|at| history.entries.into_iter().nth(at)) else {
            return Err(Error::NavigationFailed { reason: "there is no such page in the history".into() });
        };
        policy::may_open(&url)?;
        self.note_sent(Sent::Some);
        self.call(&NavigateToHistoryEntryParams::new(id)).await?;
        self.shown(wait).await
    }

    /// Waits until another document is shown, then for the state that is asked for.
    async fn shown(&self, wait: LoadState) -> Result<Arrival, Error> {
        self.browser.hub.wait_for(|state| self.moved(state).then_some(())).await;
        let enough = self.deadline - Duration::from_millis(200);
        let by = enough.min(Instant::now() + LOAD_WAIT);
        let reached = self.browser.hub.wait_for(|state| self.has_reached(state, wait).then_some(()));
        let reached = async {
            let reached = timeout_at(by, reached).await.is_ok();
            self.browser.refresh_tabs().await;
            reached
        };
        let (loaded, http_status) = tokio::join!(reached, timeout_at(by, self.status()));
        let is_failed = self
            .browser
            .hub
            .state()
            .tabs
            .get(&self.tab)
            .and_then(|tab| tab.main_frame())
            .is_some_and(|frame| frame.url.starts_with("chrome-error:"));
        if is_failed {
            return Err(self.not_reached("", "the page could not be shown".to_owned()).await);
        }
        Ok(Arrival { http_status: http_status.ok().flatten(), loaded, is_described: true })
    }

    fn moved(&self, state: &State) -> bool {
        state.tabs.get(&self.tab).is_some_and(|tab| tab.navigations > self.before.navigations)
    }

    pub(crate) fn has_reached(&self, state: &State, wait: LoadState) -> bool {
        let Some(frame) = state.tabs.get(&self.tab).and_then(|tab| tab.main_frame()) else { return false };
        match wait {
            LoadState::None => true,
            LoadState::DomContentLoaded => frame.dom_ready,
            LoadState::Load => frame.loaded,
            LoadState::NetworkIdle => frame.idle,
        }
    }

    /// The HTTP status of the document that is shown: as it was heard, or as a page that came back whole knows it.
    async fn status(&self) -> Option<u16> {
        let loader = {
            let state = self.browser.hub.state();
            let tab = state.tabs.get(&self.tab)?;
            let frame = tab.main_frame()?;
            let loader = frame.loader.clone()?;
            if !frame.restored {
                return tab.response.as_ref().filter(|(of, _)| *of == loader).map(|(_, status)| *status);
            }
            loader
        };
        let world = self.world(self.page.id()?, &self.target, &loader).await.ok()?;
        self.apply(&self.page, &On::World(world), STATUS, &[]).await.ok().flatten()
    }

    /// Runs a navigation and describes where it arrived.
    async fn arrive(
        &self,
        work: impl Future<Output = Result<Arrival, Error>>,
    ) -> Result<NavigateResult, Error> {
        let hearing = Hearing::begin(&self.page);
        let ran = self.run(work).await;
        drop(hearing);
        let (arrival, dialog) = match ran {
            Ran::Finished(Ok(arrival)) => (arrival, None),
            Ran::Finished(Err(error)) => return Err(self.failed(error).await),
            Ran::Stopped(Stop::Dialog(_, dialog)) if self.sent() != Sent::Nothing => {
                (Arrival { http_status: None, loaded: false, is_described: false }, Some(dialog))
            }
            Ran::Stopped(stop) => return Err(self.stopped(stop).await),
        };
        let page = if arrival.is_described {
            self.known_state(Effect::Done, dialog)
        } else {
            self.page_state(Effect::Done, dialog).await
        };
        Ok(NavigateResult { page, http_status: arrival.http_status, loaded: arrival.loaded })
    }
}
