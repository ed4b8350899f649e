//! Tabs: opening, choosing, closing, listing. They answer while a dialog is open.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::target::{
    CloseTargetParams, CreateTargetParams, GetTargetsParams,
};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::args::{LoadState, NavigateArgs, TabArgs, TabNewArgs};
use super::results::TabList;
use crate::browser::Browser;
use crate::call::{Call, NAVIGATION_TIMEOUT};
use crate::connection::{CallError, Gone};
use crate::error::Error;
use crate::observer::{Target, auto_attach};
use crate::policy;
use crate::state::TABS_MAX;
use crate::tab::TabInfo;

/// How long asking for the titles may take.
const TITLES_WAIT: Duration = Duration::from_millis(500);

/// How long a tab may take to close before it counts as wedged.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

impl Browser {
    /// Opens a tab, and an address in it.
    ///
    /// # Errors
    /// As [`Browser::navigate`]; the tab is there then.
    pub async fn tab_new(&self, args: &TabNewArgs, call: &Call) -> Result<TabList, Error> {
        self.alive()?;
        if let Some(url) = &args.url {
            policy::may_open(url)?;
        }
        if self.hub.state().tabs.len() >= TABS_MAX {
            return Err(Error::invalid(format!(
                "there are {TABS_MAX} tabs already; close one first, with tab_close"
            )));
        }
        let deadline = call.deadline(args.timeout_ms, NAVIGATION_TIMEOUT);
        let mut create = CreateTargetParams::new("about:blank");
        create.background = Some(args.background);
        let tab = tokio::select! {
            tab = self.open_tab(&create, deadline) => match tab {
                Err(CallError::Gone(Gone::Crashed)) if self.end_if_barren().await => {
                    return Err(Error::RuntimeCrashed { sent: true });
                }
                tab => tab?,
            },
            () = call.cancel.cancelled() => return Err(Error::Cancelled { sent: true }),
        };
        if !args.background {
            self.hub.change(|state| state.active = Some(tab));
        }
        if let Some(url) = args.url.clone() {
            let left = deadline.saturating_duration_since(Instant::now()).as_millis();
            let timeout_ms = Some(u32::try_from(left).unwrap_or(u32::MAX));
            let navigate = NavigateArgs { url, wait: LoadState::default(), tab: Some(tab), timeout_ms };
            self.navigate(&navigate, call).await?;
        }
        Ok(self.tabs().await)
    }

    /// Makes a tab the one that is used when none is named.
    ///
    /// # Errors
    /// [`Error::TabClosed`].
    pub async fn tab_select(&self, args: &TabArgs) -> Result<TabList, Error> {
        let tab = self.pick(Some(args.tab))?;
        self.hub.change(|state| state.active = Some(tab));
        Ok(self.tabs().await)
    }

    /// Closes a tab. If it was the active one, none is active until one is selected.
    ///
    /// # Errors
    /// [`Error::TabClosed`] if there is no such tab.
    pub async fn tab_close(&self, args: &TabArgs, call: &Call) -> Result<TabList, Error> {
        let tab = self.pick(Some(args.tab))?;
        let target = self.hub.state().tabs.get(&tab).map(|tab| tab.target.clone());
        if let Some(target) = target {
            self.root.post(&CloseTargetParams::new(target.to_string()));
            let by = call.deadline.min(Instant::now() + CLOSE_WAIT);
            let closed =
                self.hub.wait_for(|state| (state.closed || !state.tabs.contains_key(&tab)).then_some(()));
            if timeout_at(by, closed).await.is_err() {
                self.close_wedged(tab).await;
            }
        }
        self.alive()?;
        Ok(self.tabs().await)
    }

    /// All tabs.
    ///
    /// # Errors
    /// [`Error::RuntimeCrashed`] and [`Error::RuntimeStopped`].
    pub async fn tab_list(&self) -> Result<TabList, Error> {
        self.alive()?;
        Ok(self.tabs().await)
    }

    async fn tabs(&self) -> TabList {
        self.refresh_tabs().await;
        let tabs: Vec<TabInfo> = self.hub.state().list();
        TabList { tabs }
    }

    /// Asks the browser for the addresses and titles of all tabs: it does not report a new title by itself.
    pub(crate) async fn refresh_tabs(&self) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Targets {
            target_infos: Vec<Target>,
        }
        let ask = GetTargetsParams { filter: auto_attach(&["page"]).filter };
        let by = Instant::now() + TITLES_WAIT;
        // Without an answer the last report stands.
        if let Ok(Targets { target_infos }) = self.root.fetch(&ask, by).await {
            self.hub.change(|state| target_infos.iter().for_each(|target| state.describe(target)));
        }
    }
}
