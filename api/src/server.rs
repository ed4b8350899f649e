//! The server: started in order, stopped in reverse.
//!
//! ```text
//! folder ─► log (lock, recovery) ─► port ─► views, projector ─► actors (recovery) ─► first start ─► HTTP
//! stop:     drain the actors (HTTP still answers) ─► HTTP ─► projector ─► log
//! ```
//!
//! The port is taken before any browser starts, so that a second server on it does no harm, and answered only when
//! everything behind it is ready.

mod first_start;

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use actors::{Spaces, runtime::chromium::habitable, spaces::Parts};
use anyhow::anyhow;
use eventlog::{
    EventLog, Position, Sensitive,
    segment::{OpenError, SegmentLog, Verified, verify},
};
use metrics_exporter_prometheus::PrometheusHandle;
use projections::{Place, Projector, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{
    checkpoints::{self, CheckpointStore},
    config::Config,
    http::{self, AppState},
    offline::{log_folder, open_log},
};

/// The first operator's token, in the data folder, 0600.
pub const OPERATOR_TOKEN_FILE: &str = "operator.token";
/// Where the running server is, for the other commands; in the data folder.
pub const SERVER_FILE: &str = "server.json";
/// How long open requests get once nothing new is accepted.
const HTTP_STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the projector gets to end its batch.
const PROJECTOR_STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// On top of the drain time: what ending browsers and closing the log may take before the stop goes on without.
const DRAIN_MARGIN: Duration = Duration::from_secs(10);

/// What `server.json` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerRecord {
    /// `http://address:port`
    pub address: String,
}

/// Why the server did not start. Nothing runs, and nothing was lost.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The browser that the operator named is not there; another one would be a silent fall-back.
    #[error(
        "{0}, named as the Chromium program, is not there or is no program: correct --chromium (or the setting \
         `chromium`), or leave it out to have one looked for in the usual places"
    )]
    NamedBrowser(PathBuf),
    /// The data folder can not be made or written to.
    #[error(
        "the data folder {path} can not be used: give it to the user that the server runs as, or name another one \
         with --data-dir"
    )]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another server has the data folder.
    #[error("another server runs on the data folder {0}: stop it, or name another folder with --data-dir")]
    Locked(PathBuf),
    /// The log can not be opened.
    #[error("the log can not be opened; delete nothing, and run `browserspace doctor`")]
    Log(#[source] OpenError),
    /// The port can not be taken.
    #[error(
        "{address} can not be listened on: end what listens there, or name another address with --listen"
    )]
    Port {
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The views can not be opened.
    #[error("the views can not be opened (file views.sqlite of the data folder, or what views_url names)")]
    Views(#[source] StoreError),
    /// The views can not be fed.
    #[error("the views can not be brought up to date; `browserspace rebuild` makes them anew from the log")]
    Projector(#[source] projections::ProjectorError),
    /// The views are another server's, or the log was exchanged.
    #[error(
        "the views are of another data folder's log: name a place of this server's own in views_url (`schema=` names \
         the schema), or, if no other server uses these, run `browserspace rebuild`, which makes them anew from this log"
    )]
    OthersViews(#[source] projections::AnotherLog),
    /// The log ends before what the views have seen: it lost its end, or they are another server's.
    #[error(
        "the views have seen more than the log holds: delete nothing, and run `browserspace doctor`; if views_url names \
         what another data folder uses, name a schema of this server's own there"
    )]
    Behind(#[source] OpenError),
    /// The actors did not recover.
    #[error("the Spaces can not be recovered from the log")]
    Actors(#[from] actors::StartError),
    /// The system gives no thread.
    #[error("the system gives no thread to the keeper of the checkpoints")]
    Thread(#[source] io::Error),
    /// The first start was not completed; the next one goes on with it.
    #[error("the first start could not be completed: {0}")]
    FirstStart(actors::Rejection),
    /// C3: nobody could ask, and everybody could try.
    #[error(
        "{0} is open to the network and no token is valid: make one with `browserspace token create`, or listen on \
         127.0.0.1"
    )]
    NoToken(SocketAddr),
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    data_dir: PathBuf,
    new_token_file: Option<PathBuf>,
    drain_time: Duration,
    spaces: Spaces,
    projector: JoinHandle<Result<(), projections::ProjectorError>>,
    store: Store,
    log: Arc<SegmentLog>,
    stopping: CancellationToken,
    projector_stopping: CancellationToken,
    checkpoints: checkpoints::Running,
    http: JoinHandle<()>,
}

/// Starts everything, in order.
///
/// # Errors
/// [`StartError`]: each says what to do.
pub async fn start(config: Config, metrics: PrometheusHandle) -> Result<Server, StartError> {
    if let Some(named) = missing_browser(&config) {
        return Err(StartError::NamedBrowser(named.to_owned()));
    }
    let data_dir = prepare_folder(&config.data_dir)?;
    let store = open_views(&config.views()).await?;
    let log = Arc::new(open(&config, store.reached()).await?);
    let port = |source| StartError::Port { address: config.listen, source };
    let listener = TcpListener::bind(config.listen).await.map_err(port)?;
    let address = listener.local_addr().map_err(port)?;
    let shared: Arc<dyn EventLog> = Arc::<SegmentLog>::clone(&log);
    let projector =
        Projector::open(store.clone(), Arc::clone(&shared)).await.map_err(|error| match error {
            projections::ProjectorError::AnotherLog(another) => StartError::OthersViews(another),
            error => StartError::Projector(error),
        })?;
    let projector_stopping = CancellationToken::new();
    let projector = tokio::spawn(projector.run(projector_stopping.clone()));
    if let Err(problem) = habitable(&data_dir) {
        warn!(%problem, remedy = problem.remedy(), "No browser will start.");
    }
    let first_start = first_start::is_owed(&data_dir, log.as_ref())?;
    if first_start {
        info!(data_dir = %data_dir.display(), "First start: new data folder.");
    }
    let parts = Parts::new(Arc::clone(&shared), data_dir.clone(), config.actors())?;
    let spaces = Spaces::start(parts).await?;
    let new_token_file = if first_start {
        Some(first_start::complete(&spaces, shared.as_ref(), &data_dir, config.instances).await?)
    } else {
        None
    };
    if !config.listen.ip().is_loopback() && !spaces.has_valid_token() {
        return Err(StartError::NoToken(config.listen));
    }
    let keys = CheckpointStore::new(&data_dir, config.checkpoints.key_file.as_deref());
    let started =
        checkpoints::start(log_folder(&data_dir), keys, config.checkpoints.clone(), shared.durable_head());
    let (asking, checkpoints) = started.map_err(StartError::Thread)?;
    let stopping = CancellationToken::new();
    let state = AppState {
        spaces: spaces.clone(),
        views: store.views(),
        log: shared,
        config: config.http.clone(),
        metrics,
        stopping: stopping.clone(),
        checkpoints: Some(asking),
    };
    let http = tokio::spawn(http::serve(listener, state));
    let server = Server {
        address,
        data_dir,
        new_token_file,
        drain_time: config.drain_time(),
        spaces,
        projector,
        store,
        log,
        stopping,
        projector_stopping,
        checkpoints,
        http,
    };
    server.write_record()?;
    Ok(server)
}

impl Server {
    /// Where it listens: `http://address:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The data folder, in full.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The operator's token, if this was the first start.
    #[must_use]
    pub fn new_token_file(&self) -> Option<&Path> {
        self.new_token_file.as_deref()
    }

    /// Resolves when the server can not go on. A log that takes no writes is no such case: reads stay.
    pub async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.http).await {
            Ok(()) => anyhow!("the HTTP server has ended by itself"),
            Err(error) => anyhow::Error::new(error).context("the HTTP server has crashed"),
        }
    }

    /// Drains, then stops everything in reverse order. Returns within the drain time and a margin, whatever is stuck.
    pub async fn stop(self) {
        let Self { spaces, projector, store, log, checkpoints, mut http, drain_time, .. } = self;
        // While tasks end, their clients still get their answers; new work is refused by the actors.
        if tokio::time::timeout(drain_time + DRAIN_MARGIN, spaces.drain(drain_time)).await.is_err() {
            error!("The drain did not end in time; what is left is recovered at the next start.");
        }
        self.stopping.cancel();
        if !http.is_finished() && tokio::time::timeout(HTTP_STOP_TIMEOUT, &mut http).await.is_err() {
            warn!("Some requests did not end in time.");
            http.abort();
        }
        self.projector_stopping.cancel();
        if tokio::time::timeout(PROJECTOR_STOP_TIMEOUT, projector).await.is_err() {
            warn!(
                "The projector did not end in time; the views go on from their checkpoint at the next start."
            );
        }
        store.close().await;
        // The last one speaks of everything that the drain recorded.
        if tokio::task::spawn_blocking(|| checkpoints.stop()).await.is_err() {
            warn!("The last checkpoint may be missing.");
        }
        log.close().await;
        if let Err(source) = fs::remove_file(self.data_dir.join(SERVER_FILE)) {
            warn!(error = %source, "The server's record could not be removed.");
        }
    }

    fn write_record(&self) -> Result<(), StartError> {
        let record = ServerRecord { address: self.address() };
        let text = serde_json::to_string(&record).expect("a record is plain text");
        write_private(&self.data_dir, SERVER_FILE, &text)
            .map_err(|source| StartError::Folder { path: self.data_dir.clone(), source })
    }
}

/// The operator's token, as its file holds it.
#[must_use]
pub fn operator_token(data_dir: &Path) -> Option<Sensitive<String>> {
    let text = fs::read_to_string(data_dir.join(OPERATOR_TOKEN_FILE)).ok()?;
    Some(Sensitive::new(text.trim().to_owned()))
}

/// The browser that the configuration names, if there is none in that place.
#[must_use]
pub fn missing_browser(config: &Config) -> Option<&Path> {
    config.chromium.as_deref().filter(|named| actors::runtime::find_executable(Some(named)).is_err())
}

/// What the log of a data folder holds, if it has one; checks every byte of it, without its lock.
///
/// # Errors
/// The first bad place.
pub fn verify_log(data_dir: &Path) -> Result<Option<Verified>, OpenError> {
    let folder = log_folder(data_dir);
    if !folder.is_dir() {
        return Ok(None);
    }
    verify(&folder).map(Some)
}

/// Opens the log, which must reach at least as far as the views have seen it: a log that lost its end is not opened.
async fn open(config: &Config, seen: Position) -> Result<SegmentLog, StartError> {
    let config = config.clone();
    let opening = tokio::task::spawn_blocking(move || match open_log(&config, seen) {
        Err(OpenError::Locked(_)) => Err(StartError::Locked(config.data_dir)),
        Err(error @ OpenError::Behind { .. }) => Err(StartError::Behind(error)),
        Err(error) => Err(StartError::Log(error)),
        Ok(log) => Ok(log),
    });
    opening.await.expect("opening the log does not panic")
}

/// Opens the views. Damaged ones, or those of another version, are made anew: the log holds all that was in them.
async fn open_views(place: &Place) -> Result<Store, StartError> {
    match Store::open(place).await {
        Err(error) if error.is_cured_by_rebuild() => {
            warn!(%error, "The views can not be used; they are folded anew from the log.");
            Store::remove(place).await.map_err(StartError::Views)?;
            Store::open(place).await.map_err(StartError::Views)
        }
        opened => opened.map_err(StartError::Views),
    }
}

/// Makes the folder if needed, closed to others, and gives its absolute path.
fn prepare_folder(folder: &Path) -> Result<PathBuf, StartError> {
    let failed = |source| StartError::Folder { path: folder.to_owned(), source };
    // Browsers of root run as users of their own below this folder: they may pass through, and list nothing.
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    fs::DirBuilder::new().recursive(true).mode(mode).create(folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).map_err(failed)?;
    Ok(folder)
}

/// Writes a file that only its owner may read, all or nothing.
fn write_private(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    use io::Write;
    let fresh = folder.join(format!("{name}.new"));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    // The mode above counts only for a new file.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&fresh, folder.join(name))?;
    fs::File::open(folder)?.sync_all()
}
