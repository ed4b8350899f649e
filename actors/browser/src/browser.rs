//! One running browser: the door of this crate.

use std::collections::HashMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::browser::{
    CloseParams, GetVersionParams, SetDownloadBehaviorBehavior, SetDownloadBehaviorParams,
};
use chromiumoxide_cdp::cdp::browser_protocol::target::{
    CloseTargetParams, CreateTargetParams, SetDiscoverTargetsParams,
};
use chromiumoxide_cdp::cdp::js_protocol::runtime::EvaluateParams;
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout};

use crate::appearance::Appearance;
use crate::connection::{CallError, Connection, Gone};
use crate::download::Landing;
use crate::gate::Gate;
use crate::launch::{self, Exit, LaunchError, LaunchSpec, Process};
use crate::notice::Notice;
use crate::observer::{Observer, auto_attach};
use crate::process::ProcessIdentity;
use crate::reference::TabId;
use crate::screencast::Screencast;
use crate::secrets::Secrets;
use crate::session::Session;
use crate::snapshot::Kept;
use crate::state::Hub;

/// A session, a frame in it, and the loader of its document.
type DocumentKey = (Arc<str>, Arc<str>, Arc<str>);

/// One running browser. All capabilities are its methods.
#[derive(Debug)]
pub struct Browser {
    pub(crate) process: Process,
    connection: Connection,
    /// The session of the browser itself.
    pub(crate) root: Session,
    pub(crate) hub: Hub,
    pub(crate) appearance: Appearance,
    /// The profile folder, and the group of the browser's user where that is not ours.
    home: (PathBuf, Option<u32>),
    /// Isolated worlds by session, frame and document.
    pub(crate) worlds: Mutex<HashMap<DocumentKey, i64>>,
    /// The last long text of each tab, for cursors.
    pub(crate) kept: Mutex<HashMap<TabId, Kept>>,
    pub(crate) secrets: Mutex<Secrets>,
    pub(crate) screencast: Screencast,
    /// Who knows why an address was not reached.
    pub(crate) gate: OnceLock<Arc<dyn Gate>>,
    version: String,
    sandbox: bool,
    stopping: AtomicBool,
}

impl Browser {
    /// Starts a browser with one blank tab, `t1`.
    ///
    /// # Errors
    /// Every [`LaunchError`]; nothing is left behind.
    pub async fn launch(spec: LaunchSpec) -> Result<Self, LaunchError> {
        match Self::attempt(&spec, true).await {
            Err(LaunchError::NoSandbox) if spec.allow_no_sandbox => Self::attempt(&spec, false).await,
            result => result,
        }
    }

    async fn attempt(spec: &LaunchSpec, sandbox: bool) -> Result<Self, LaunchError> {
        let appearance = spec.appearance.clone();
        let home = (spec.profile_dir.clone(), spec.uid.map(|(_, group)| group));
        let (process, stream) = launch::start(&appearance.dress(spec), sandbox)?;
        let hub = Hub::new();
        hub.state().inline_frames.clone_from(&spec.inline_frames);
        let observer = Observer { hub: hub.clone(), viewport: spec.viewport, appearance: appearance.clone() };
        let connection = Connection::new(stream, observer);
        let root = Session::browser(connection.clone());
        let mut browser = Self {
            process,
            connection,
            root,
            hub,
            appearance,
            home,
            worlds: Mutex::default(),
            kept: Mutex::default(),
            secrets: Mutex::default(),
            screencast: Screencast::new(),
            gate: OnceLock::new(),
            version: String::new(),
            sandbox,
            stopping: AtomicBool::new(false),
        };
        match browser.set_up(spec.landing.as_ref(), Instant::now() + spec.start_timeout).await {
            Ok(()) => Ok(browser),
            Err(CallError::Gone(Gone::Closed)) => Err(browser.process.diagnose().await),
            Err(error) => {
                browser.process.kill().await;
                Err(match error {
                    CallError::Overdue { .. } => LaunchError::Overdue,
                    other => LaunchError::SetUp(other),
                })
            }
        }
    }

    async fn set_up(&mut self, landing: Option<&Landing>, deadline: Instant) -> Result<(), CallError> {
        let root = self.root.clone();
        self.version = root.call(&GetVersionParams::default(), deadline).await?.product;
        let attach = auto_attach(&["page"]);
        let discover = SetDiscoverTargetsParams { discover: true, filter: attach.filter.clone() };
        root.call(&discover, deadline).await?;
        root.call(&attach, deadline).await?;
        root.call(&self.receive_downloads(landing), deadline).await?;
        let first = self.open_tab(&CreateTargetParams::new("about:blank"), deadline).await?;
        self.hub.change(|state| state.active = Some(first));
        self.process.look().await;
        Ok(())
    }

    /// How downloads are taken. The limit is for the main process alone, which writes them: the caches of others, and
    /// what pages share with each other, have nothing to do with it.
    fn receive_downloads(&self, landing: Option<&Landing>) -> SetDownloadBehaviorParams {
        let behaviour = match landing {
            Some(_) => SetDownloadBehaviorBehavior::AllowAndName,
            None => SetDownloadBehaviorBehavior::Deny,
        };
        let mut downloads = SetDownloadBehaviorParams::new(behaviour);
        downloads.events_enabled = Some(true);
        if let Some(landing) = landing {
            downloads.download_path = Some(landing.folder.to_string_lossy().into_owned());
            self.hub.state().landing.are_let_in = true;
            let limit = Some(landing.file_bytes_max);
            let limit = rustix::process::Rlimit { current: limit, maximum: limit };
            let main = rustix::process::Pid::from_raw(self.process.identity.pid);
            if let Err(error) = rustix::process::prlimit(main, rustix::process::Resource::Fsize, limit) {
                tracing::warn!(%error, "The files that a browser writes could not be limited.");
            }
        }
        downloads
    }

    /// Makes a tab and waits until it is attached.
    pub(crate) async fn open_tab(
        &self,
        params: &CreateTargetParams,
        deadline: Instant,
    ) -> Result<TabId, CallError> {
        let target = self.root.call(params, deadline).await?.target_id;
        let attached = self.hub.wait_for(|state| {
            if state.closed { Some(None) } else { state.tab_of_target(target.as_ref()).map(Some) }
        });
        let tab = match tokio::time::timeout_at(deadline, attached).await {
            Ok(Some(tab)) => tab,
            Ok(None) => return Err(CallError::Gone(Gone::Closed)),
            Err(_) => return Err(CallError::Overdue { method: "Target.createTarget".into() }),
        };
        if let Err(error) = self.prepared(tab, deadline).await {
            // Nobody knows of it yet.
            self.root.post(&CloseTargetParams::new(target));
            return Err(error);
        }
        Ok(tab)
    }

    /// Waits until what was posted to a new tab has been carried out.
    ///
    /// A navigation that overtakes it crashes the page that is being prepared, or goes on unobserved.
    pub(crate) async fn prepared(&self, tab: TabId, deadline: Instant) -> Result<(), CallError> {
        let session = match self.hub.state().tabs.get(&tab) {
            Some(tab) if !tab.prepared => self.session(tab.session.clone()),
            _ => return Ok(()),
        };
        session.call_raw(&EvaluateParams::new("0"), deadline).await?;
        if let Some(tab) = self.hub.state().tabs.get_mut(&tab) {
            tab.prepared = true;
        }
        Ok(())
    }

    pub(crate) fn session(&self, id: Arc<str>) -> Session {
        Session::attached(self.connection.clone(), id)
    }

    /// The browser's product and version, like `Chrome/156.0.0.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Who the main process is, for a later [`crate::end_orphan`].
    pub fn identity(&self) -> &ProcessIdentity {
        &self.process.identity
    }

    /// The listener in the network of a browser that is [`crate::Network::Secluded`]; once. Until it is served as a
    /// proxy, the browser's requests wait.
    pub fn take_door(&self) -> Option<TcpListener> {
        self.process.door.lock().take()
    }

    /// Names who knows why an address was not reached; the first one counts.
    pub fn watch_gate(&self, gate: Arc<dyn Gate>) {
        // A second one is not expected, and knows no better.
        let _ = self.gate.set(gate);
    }

    /// Turns to `Some` once the browser has ended.
    pub fn exited(&self) -> watch::Receiver<Option<Exit>> {
        self.process.exit.clone()
    }

    /// What it does by itself from now on.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.hub.notices().listen()
    }

    /// Whether it was started with Chromium's sandbox.
    pub fn is_sandboxed(&self) -> bool {
        self.sandbox
    }

    /// Looks at the renderers: true if the kernel confines them all, `None` while there are none.
    pub async fn observe_sandbox(&self) -> Option<bool> {
        self.process.is_sandboxed().await
    }

    /// What went, or may have gone, into fields that hide it, with the number of its last change; `None` if that is
    /// `version`. Mask these texts in whatever comes from the page, also in errors.
    pub fn typed_secrets(&self, version: u64) -> Option<(Vec<String>, u64)> {
        self.secrets.lock().since(version)
    }

    /// The profile folder, and the group of the browser's user where that is not ours.
    pub(crate) fn home(&self) -> (PathBuf, Option<u32>) {
        self.home.clone()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Asks the browser to end, then ends everything of it, reaps it and deletes its profile.
    ///
    /// Takes at most `grace` and a few seconds. May be called again.
    pub async fn shutdown(&self, grace: Duration) {
        self.stopping.store(true, Ordering::Release);
        self.process.look().await;
        let deadline = Instant::now() + grace;
        // It may be gone or stuck; what follows does not depend on it.
        let _ = self.root.call(&CloseParams::default(), deadline).await;
        let mut exit = self.exited();
        let left = deadline.saturating_duration_since(Instant::now());
        let _ = timeout(left, exit.wait_for(Option::is_some)).await;
        self.process.kill().await;
        self.connection.close();
    }

    /// Ends the browser at once; everything that waits fails with `runtime_crashed`.
    pub async fn kill(&self) {
        self.process.kill().await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends by itself when its pipe closes; the task that waits for it sweeps up.
        self.connection.close();
    }
}
