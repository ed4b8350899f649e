//! Starting and ending the browser process.
//!
//! ```text
//! start ──► running ──► exited (noticed by itself or after a kill) ──► swept ──► profile deleted
//! ```
//!
//! Each start has a profile folder of its own that did not exist before, so there is no stale lock to judge. The
//! process gets an empty environment, an unprivileged uid, its own session, and one socket: no port is opened.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tracing::warn;

use crate::appearance::Appearance;
use crate::download::Landing;
use crate::executable::find_executable;
use crate::flags;
use crate::namespace::{self, Handover};
use crate::process::{self, PROFILE_VARIABLE, ProcessIdentity, Tree};

/// Bytes that the path of a profile may have: Chromium keeps a socket below it, and the path of a socket has at most
/// 107 (unix(7)).
pub const PROFILE_PATH_BYTES_MAX: usize = 58;

/// How long ending, reaping and deleting may take after the main process has ended.
const SWEEP_WAIT: Duration = Duration::from_secs(8);

/// What a browser reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Whatever its machine reaches.
    Machine,
    /// A proxy on this port of the machine's loopback, and nothing besides: as the browser is asked to, which one whose
    /// own code is taken over need not heed.
    Proxy(u16),
    /// A listener of ours and nothing besides: the kernel has nothing else to offer it. [`crate::Browser::take_door`]
    /// gives the listener, and whoever takes it has to serve it as a proxy.
    Secluded,
}

/// How to start one browser.
#[derive(Debug, Clone)]
pub struct LaunchSpec {
    /// The browser to run; none: the first of the usual places.
    pub executable: Option<PathBuf>,
    /// The profile folder. Must not exist: it is made here and deleted at the end.
    pub profile_dir: PathBuf,
    /// User and group id to run as. Required, and not 0, when we are root.
    pub uid: Option<(u32, u32)>,
    /// Without a window. A browser with one needs `DISPLAY` in `environment`.
    pub headless: bool,
    /// Width and height of the page, in CSS pixels.
    pub viewport: (u32, u32),
    /// What it reaches.
    pub network: Network,
    /// Schemes of documents that a page brings itself (`data`, `blob`) and that its frames may show.
    pub inline_frames: Vec<String>,
    /// Where downloads land; none: they are refused.
    pub landing: Option<Landing>,
    /// What pages are told of the place that they are in.
    pub appearance: Appearance,
    /// Further command line arguments.
    pub arguments: Vec<String>,
    /// Environment variables, besides the few that are always set.
    pub environment: Vec<(String, String)>,
    /// Where the kernel offers no sandbox, run without one. [`crate::Browser::is_sandboxed`] tells.
    pub allow_no_sandbox: bool,
    /// How long until the browser must have answered.
    pub start_timeout: Duration,
}

impl LaunchSpec {
    /// A headless browser on the machine's network, with a viewport of 1280 × 800 and the given profile folder and ids.
    pub fn new(profile_dir: impl Into<PathBuf>, uid: Option<(u32, u32)>) -> Self {
        Self {
            executable: None,
            profile_dir: profile_dir.into(),
            uid,
            headless: true,
            viewport: (1280, 800),
            network: Network::Machine,
            inline_frames: Vec::new(),
            landing: None,
            appearance: Appearance::default(),
            arguments: Vec::new(),
            environment: Vec::new(),
            allow_no_sandbox: false,
            start_timeout: Duration::from_secs(30),
        }
    }
}

/// Why no browser was started. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Install a browser or configure its path.
    #[error("no browser executable was found")]
    NoExecutable,
    /// Give the browser a uid of its own.
    #[error("a browser is never run as root")]
    Root,
    /// Give each start a new profile folder.
    #[error("the profile folder is in use or cannot be made")]
    Profile(#[source] std::io::Error),
    /// Choose a shorter data folder.
    #[error("the path of the profile folder has {bytes} bytes, {PROFILE_PATH_BYTES_MAX} are possible")]
    ProfilePathTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Let the browser's uid pass through (not read) the folders above the profile.
    #[error("the browser's user cannot reach its profile folder")]
    ProfileUnreachable,
    /// The system refused to start the process.
    #[error("the browser could not be started")]
    Spawn(#[source] std::io::Error),
    /// Offer user namespaces, or set `allow_no_sandbox`.
    #[error("this system offers Chromium no sandbox")]
    NoSandbox,
    /// Offer network namespaces (as root) or user namespaces, or choose another [`Network`].
    #[error("this system offers no network namespace")]
    NoNetworkNamespace(#[source] std::io::Error),
    /// The browser ended before it answered.
    #[error("the browser ended while starting")]
    EndedEarly,
    /// The browser did not answer in time, and was ended.
    #[error("the browser did not answer in time")]
    Overdue,
    /// The browser answered something unexpected.
    #[error("the browser did not accept its set-up")]
    SetUp(#[source] crate::CallError),
}

/// How a browser process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// A started process and its debugging pipe.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) identity: ProcessIdentity,
    pub(crate) exit: watch::Receiver<Option<Exit>>,
    /// Turns true once the whole tree has been ended and reaped, and the profile deleted.
    swept: watch::Receiver<bool>,
    tree: Arc<Mutex<Tree>>,
    complaint: Arc<Mutex<String>>,
    /// The listener in its network, until it is taken.
    pub(crate) door: Mutex<Option<TcpListener>>,
}

/// Starts the process. The caller speaks over the stream and decides whether the start succeeded.
pub(crate) fn start(spec: &LaunchSpec, sandbox: bool) -> Result<(Process, UnixStream), LaunchError> {
    let executable = find_executable(spec.executable.as_deref())?;
    let uid = effective_uid(spec)?;
    make_profile(spec)?;
    spawn(spec, &executable, sandbox, uid).inspect_err(|_| {
        // The start failed; what matters is why, not whether the empty folder could be removed.
        let _ = std::fs::remove_dir_all(&spec.profile_dir);
    })
}

fn effective_uid(spec: &LaunchSpec) -> Result<u32, LaunchError> {
    let own = nix::unistd::geteuid();
    match spec.uid {
        Some((0, _) | (_, 0)) => Err(LaunchError::Root),
        None if own.is_root() => Err(LaunchError::Root),
        Some((uid, _)) => Ok(uid),
        None => Ok(own.as_raw()),
    }
}

fn make_profile(spec: &LaunchSpec) -> Result<(), LaunchError> {
    let bytes = spec.profile_dir.as_os_str().len();
    if bytes > PROFILE_PATH_BYTES_MAX {
        return Err(LaunchError::ProfilePathTooLong { bytes });
    }
    let make = |path: &Path| {
        std::fs::DirBuilder::new().mode(0o700).create(path)?;
        spec.uid.map_or(Ok(()), |(uid, gid)| std::os::unix::fs::chown(path, Some(uid), Some(gid)))
    };
    make(&spec.profile_dir).map_err(LaunchError::Profile)?;
    let inside = make(&spec.profile_dir.join("tmp")).map_err(LaunchError::Profile);
    let reachable = if is_reachable(spec) { Ok(()) } else { Err(LaunchError::ProfileUnreachable) };
    inside.and(reachable).inspect_err(|_| {
        // The first error is the one to report.
        let _ = std::fs::remove_dir_all(&spec.profile_dir);
    })
}

fn is_reachable(spec: &LaunchSpec) -> bool {
    let Some((uid, gid)) = spec.uid else { return true };
    let Ok(path) = spec.profile_dir.canonicalize() else { return false };
    path.ancestors().skip(1).all(|folder| {
        std::fs::metadata(folder).is_ok_and(|meta| {
            let bits = match () {
                () if meta.uid() == uid => 0o100,
                () if meta.gid() == gid => 0o010,
                () => 0o001,
            };
            meta.mode() & bits != 0
        })
    })
}

fn spawn(
    spec: &LaunchSpec,
    executable: &Path,
    sandbox: bool,
    uid: u32,
) -> Result<(Process, UnixStream), LaunchError> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(LaunchError::Spawn)?;
    ours.set_nonblocking(true).map_err(LaunchError::Spawn)?;
    let ours = UnixStream::from_std(ours).map_err(LaunchError::Spawn)?;
    // Numbered high, so that copying it to 3 and 4 cannot overwrite it.
    let theirs = rustix::io::fcntl_dupfd_cloexec(&theirs, 64).map_err(|e| LaunchError::Spawn(e.into()))?;
    let mut command = Command::new(executable);
    command
        .args(flags::arguments(spec, sandbox))
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .env("HOME", &spec.profile_dir)
        .env("TMPDIR", spec.profile_dir.join("tmp"))
        .env("LANG", "C.UTF-8")
        .env(PROFILE_VARIABLE, &spec.profile_dir)
        .current_dir(&spec.profile_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let (child, door) = fork(command, spec, theirs)?;
    Ok((watch_over(child, door, spec, uid)?, ours))
}

/// Starts the child behind its walls, and takes what it hands over.
fn fork(
    mut command: Command,
    spec: &LaunchSpec,
    pipe: OwnedFd,
) -> Result<(Child, Option<TcpListener>), LaunchError> {
    let (seclusion, handover) = if spec.network == Network::Secluded {
        let (seclusion, handover) = namespace::prepare(spec.uid).map_err(LaunchError::Spawn)?;
        (Some(seclusion), Some(handover))
    } else {
        // A secluded child changes its user by itself: what makes its network may need the rights of ours.
        if let Some((uid, gid)) = spec.uid {
            command.uid(uid).gid(gid);
        }
        (None, None)
    };
    crate::sandbox::wall_off(&mut command, pipe, seclusion);
    let spawned = command.spawn();
    // The child's end of the pipe lives in `command`; end-of-file needs it closed here.
    drop(command);
    match (spawned, handover) {
        (Ok(child), None) => Ok((child, None)),
        (Ok(child), Some(handover)) => {
            let listener = handover.listener().map_err(LaunchError::NoNetworkNamespace)?;
            Ok((child, Some(listener)))
        }
        (Err(error), handover) => Err(match handover.and_then(Handover::failure) {
            Some(reason) => LaunchError::NoNetworkNamespace(reason),
            None => LaunchError::Spawn(error),
        }),
    }
}

fn watch_over(
    mut child: Child,
    door: Option<TcpListener>,
    spec: &LaunchSpec,
    uid: u32,
) -> Result<Process, LaunchError> {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or(LaunchError::EndedEarly)?;
    let identity = process::identify(pid, &spec.profile_dir).ok_or(LaunchError::EndedEarly)?;
    let tree = Arc::new(Mutex::new(Tree::new(identity.clone(), uid)));
    let complaint = Arc::new(Mutex::new(String::new()));
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(listen(stderr, complaint.clone()));
    }
    let (exit_out, exit) = watch::channel(None);
    let (swept_out, swept) = watch::channel(false);
    tokio::spawn(await_end(child, tree.clone(), spec.profile_dir.clone(), exit_out, swept_out));
    Ok(Process { identity, exit, swept, tree, complaint, door: Mutex::new(door) })
}

/// Waits for the main process, then ends and reaps whatever it left, and deletes its profile: no start uses the
/// profile of another.
async fn await_end(
    mut child: Child,
    tree: Arc<Mutex<Tree>>,
    profile_dir: PathBuf,
    exit: watch::Sender<Option<Exit>>,
    swept: watch::Sender<bool>,
) {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().await;
    let ended = status.map_or(Exit { code: None, signal: None }, |status| Exit {
        code: status.code(),
        signal: status.signal(),
    });
    exit.send_replace(Some(ended));
    let sweep = move || {
        let mut ended = true;
        let deleted = process::remove_profile(&profile_dir, || {
            ended = tree.lock().end();
            Ok(())
        });
        (ended, deleted)
    };
    match tokio::task::spawn_blocking(sweep).await {
        Ok((true, Ok(()))) => {}
        Ok((ended, deleted)) => {
            warn!(ended, deleted = deleted.is_ok(), "An ended browser left something behind.");
        }
        Err(_) => warn!("The sweep after an ended browser did not finish."),
    }
    swept.send_replace(true);
}

/// Reads what the browser complains about, so that it never blocks on it; the start is kept for a diagnosis.
async fn listen(mut stderr: ChildStderr, complaint: Arc<Mutex<String>>) {
    const KEPT_BYTES: usize = 16 * 1024;
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        let mut kept = complaint.lock();
        if kept.len() < KEPT_BYTES {
            kept.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    }
}

impl Process {
    /// Why a start failed whose pipe has ended, from what the browser said.
    pub(crate) async fn diagnose(&self) -> LaunchError {
        self.swept().await;
        if self.complaint.lock().contains("No usable sandbox") {
            LaunchError::NoSandbox
        } else {
            LaunchError::EndedEarly
        }
    }

    /// Looks at the tree, so that helpers are known before they become orphans.
    pub(crate) async fn look(&self) -> usize {
        let tree = self.tree.clone();
        tokio::task::spawn_blocking(move || tree.lock().look().len()).await.unwrap_or(0)
    }

    pub(crate) async fn is_sandboxed(&self) -> Option<bool> {
        let tree = self.tree.clone();
        tokio::task::spawn_blocking(move || tree.lock().is_sandboxed()).await.unwrap_or(None)
    }

    /// Kills the whole tree and waits until it is reaped.
    pub(crate) async fn kill(&self) {
        let tree = self.tree.clone();
        let ended = tokio::task::spawn_blocking(move || tree.lock().end()).await;
        if !matches!(ended, Ok(true)) {
            warn!("A browser could not be ended in time.");
        }
        self.swept().await;
    }

    /// Waits until nothing of the browser is left.
    async fn swept(&self) {
        let mut swept = self.swept.clone();
        if tokio::time::timeout(SWEEP_WAIT, swept.wait_for(|swept| *swept)).await.is_err() {
            warn!("The sweep after an ended browser takes too long.");
        }
    }
}
