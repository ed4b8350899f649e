//! The keeper: a thread that keeps up with the log, signs, and carries. And the same without a thread, for a data folder that
//! no server runs on.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use actors::clock::{Clock as _, SystemClock};
use anyhow::{Context, Result};
use eventlog::{Position, ReadError, checkpoint::Signer, tree::LogTree};
use tokio::{
    runtime,
    sync::{oneshot, watch},
};
use tracing::{error, info, warn};

use super::{CheckpointsConfig, sinks::Sinks, store::CheckpointStore};

/// How often the keeper looks whether a checkpoint is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How soon a sink that did not take a checkpoint is asked again.
const CARRY_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// How long the last checkpoint may take at a stop; a log that was never folded may need longer, and goes without.
const LAST_WITHIN: Duration = Duration::from_secs(5);

/// Why no checkpoint is made.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointsError {
    /// The log is not the one that was signed before: its history was made anew, or its end was cut.
    #[error(
        "the log is not the one that {source_of} speaks of, at position {size}: nothing is signed until that is settled \
         (browserspace verify --checkpoints)"
    )]
    Contradiction {
        /// Up to where.
        size: Position,
        /// Which checkpoint says so.
        source_of: String,
    },
    /// There is no event yet, so there is nothing to be said.
    #[error("the log holds no event yet")]
    Empty,
    /// The log can not be read.
    #[error("the log can not be read")]
    Read(#[from] ReadError),
    /// The keeper was told to end before it was done.
    #[error("the server is stopping")]
    Stopping,
    /// Something else; the chain says what.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// A checkpoint that was made, or the newest one where nothing has happened since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The signed note.
    pub note: String,
    /// Up to where it speaks.
    pub size: Position,
    /// What it is checked with.
    pub public_key: String,
}

/// What signs the log of one data folder.
pub struct Keeper {
    log: PathBuf,
    store: CheckpointStore,
    signer: Signer,
    tree: LogTree,
    sinks: Sinks,
    last: Option<Made>,
}

impl Keeper {
    /// Folds the log up to `head`, and holds it against every checkpoint of its own. Blocks: about a second for two million
    /// events.
    ///
    /// # Errors
    /// [`CheckpointsError`]: nothing is to be signed.
    pub fn open(
        log: &Path,
        store: CheckpointStore,
        config: &CheckpointsConfig,
        head: Position,
        runtime: runtime::Handle,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Self, CheckpointsError> {
        let mut tree = LogTree::default();
        tree.advance(log, Position(1.min(head.0)), goes_on)?;
        let first = tree.first().ok_or(CheckpointsError::Empty)?;
        let signer = store.signer(first)?;
        let key = signer.public_key();
        let mut kept = store.read(&key)?;
        kept.sort_by_key(|kept| kept.checkpoint.size);
        for kept in &kept {
            let size = kept.checkpoint.size;
            tree.advance(log, size.min(head), goes_on)?;
            if !goes_on() {
                return Err(CheckpointsError::Stopping);
            }
            let same = size <= head
                && tree.root() == kept.checkpoint.root
                && tree.global() == kept.checkpoint.global;
            if !same {
                return Err(CheckpointsError::Contradiction { size, source_of: kept.source.clone() });
            }
        }
        let last = kept.pop().map(|kept| Made {
            note: kept.note,
            size: kept.checkpoint.size,
            public_key: key.to_string(),
        });
        let sinks = Sinks::new(config, signer.name(), runtime)?;
        Ok(Self { log: log.to_owned(), store, signer, tree, sinks, last })
    }

    /// Signs the log up to `head`, keeps that in the file, and carries it to the sinks. Where nothing has happened since the
    /// last one, that one is answered.
    ///
    /// # Errors
    /// [`CheckpointsError`]: nothing was signed.
    pub fn sign(&mut self, head: Position, goes_on: &dyn Fn() -> bool) -> Result<Made, CheckpointsError> {
        if let Some(last) = self.last.as_ref().filter(|last| last.size >= head) {
            return Ok(last.clone());
        }
        self.tree.advance(&self.log, head, goes_on)?;
        let size = self.tree.size();
        if size < head {
            return Err(CheckpointsError::Stopping);
        }
        let note = self.signer.sign(size, self.tree.root(), self.tree.global(), SystemClock.now());
        let kept = self.store.append(&note);
        kept.with_context(|| format!("{} can not be written", self.store.notes_file().display()))?;
        let made = Made { note, size, public_key: self.signer.public_key().to_string() };
        self.last = Some(made.clone());
        metrics::gauge!("browserspace_checkpoint_position").set(size.0 as f64);
        self.sinks.carry(&made.note);
        Ok(made)
    }

    fn signed(&self) -> Position {
        self.last.as_ref().map_or(Position::ZERO, |last| last.size)
    }
}

type Answer = oneshot::Sender<Result<Made, CheckpointsError>>;

/// Asks the keeper of a running server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle(mpsc::Sender<Answer>);

impl Handle {
    /// A checkpoint of everything that is durable now.
    ///
    /// # Errors
    /// [`CheckpointsError`]: nothing was signed.
    pub async fn make(&self) -> Result<Made, CheckpointsError> {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).map_err(|_| CheckpointsError::Stopping)?;
        answered.await.map_err(|_| CheckpointsError::Stopping)?
    }
}

/// The keeper of a running server.
pub struct Running {
    stopping: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Signs what has happened since the last checkpoint, and ends. Blocks.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Relaxed);
        if self.thread.join().is_err() {
            error!("The keeper of the checkpoints has crashed.");
        }
    }
}

/// Starts the keeper of a server, which must be asked from inside of its async runtime.
///
/// # Errors
/// The system gives no thread.
pub fn start(
    log: PathBuf,
    store: CheckpointStore,
    config: CheckpointsConfig,
    head: watch::Receiver<Position>,
) -> std::io::Result<(Handle, Running)> {
    let (requests, asked) = mpsc::channel();
    let stopping = Arc::<AtomicBool>::default();
    let told = Arc::clone(&stopping);
    let runtime = runtime::Handle::current();
    let thread = thread::Builder::new().name("checkpoints".to_owned()).spawn(move || {
        Loop { log, store, config, head, runtime, stopping: told }.run(&asked);
    })?;
    Ok((Handle(requests), Running { stopping, thread }))
}

struct Loop {
    log: PathBuf,
    store: CheckpointStore,
    config: CheckpointsConfig,
    head: watch::Receiver<Position>,
    runtime: runtime::Handle,
    stopping: Arc<AtomicBool>,
}

impl Loop {
    fn run(self, asked: &mpsc::Receiver<Answer>) {
        let is_running = || !self.stopping.load(Ordering::Relaxed);
        let mut keeper = None;
        let mut complained = false;
        let (mut signed_at, mut carried_at) = (Instant::now(), Instant::now());
        while is_running() {
            let answer = asked.recv_timeout(LOOK_EVERY);
            if matches!(answer, Err(mpsc::RecvTimeoutError::Disconnected)) {
                break;
            }
            let head = *self.head.borrow();
            if keeper.is_none() {
                keeper = self.open(head, &mut complained, &is_running);
            }
            let due = keeper.as_ref().is_some_and(|keeper| self.is_due(keeper, head, signed_at));
            if let Ok(answer) = answer {
                // Whoever asked may have gone.
                let _ = answer.send(self.make(&mut keeper, head, &is_running));
                signed_at = Instant::now();
            } else if due && let Some(keeper) = &mut keeper {
                tell(keeper.sign(head, &is_running));
                signed_at = Instant::now();
            }
            if let Some(keeper) = keeper.as_mut().filter(|keeper| keeper.sinks.are_owed())
                && carried_at.elapsed() >= CARRY_AGAIN_AFTER
            {
                carried_at = Instant::now();
                keeper.sinks.try_again();
            }
        }
        self.last(keeper);
    }

    /// The one that speaks of everything, also where the server ended before the first look.
    fn last(&self, keeper: Option<Keeper>) {
        let until = Instant::now() + LAST_WITHIN;
        let in_time = || Instant::now() < until;
        let head = *self.head.borrow();
        if let Some(mut keeper) = keeper.or_else(|| self.open(head, &mut false, &in_time)) {
            tell(keeper.sign(head, &in_time));
        }
    }

    /// One that can not be opened now may be opened later: the first start has no event yet, a key may be put in its place.
    fn open(&self, head: Position, complained: &mut bool, goes_on: &dyn Fn() -> bool) -> Option<Keeper> {
        match self.try_open(head, goes_on) {
            Ok(keeper) => {
                info!(log = keeper.signer.name(), signed = %keeper.signed(), "Checkpoints are made.");
                Some(keeper)
            }
            Err(CheckpointsError::Empty | CheckpointsError::Stopping) => None,
            Err(error) => {
                metrics::gauge!("browserspace_checkpoints_refused").set(1.0);
                if !std::mem::replace(complained, true) {
                    error!(error = %format!("{:#}", anyhow::Error::new(error)), "No checkpoints are made.");
                }
                None
            }
        }
    }

    fn try_open(&self, head: Position, goes_on: &dyn Fn() -> bool) -> Result<Keeper, CheckpointsError> {
        let keeper =
            Keeper::open(&self.log, self.store.clone(), &self.config, head, self.runtime.clone(), goes_on)?;
        metrics::gauge!("browserspace_checkpoints_refused").set(0.0);
        Ok(keeper)
    }

    fn make(
        &self,
        keeper: &mut Option<Keeper>,
        head: Position,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Made, CheckpointsError> {
        let keeper = match keeper {
            Some(keeper) => keeper,
            None => keeper.insert(self.try_open(head, goes_on)?),
        };
        keeper.sign(head, goes_on)
    }

    fn is_due(&self, keeper: &Keeper, head: Position, signed_at: Instant) -> bool {
        let new = head.0.saturating_sub(keeper.signed().0);
        let by_number = self.config.every_events > 0 && new >= self.config.every_events;
        let minutes = Duration::from_secs(self.config.every_minutes * 60);
        let by_time = self.config.every_minutes > 0 && signed_at.elapsed() >= minutes;
        // The first one of a log is made at once: from then on it has a name and a key.
        new > 0 && (by_number || by_time || keeper.last.is_none())
    }
}

fn tell(made: Result<Made, CheckpointsError>) {
    match made {
        Ok(made) => info!(position = %made.size, "Checkpoint made."),
        Err(CheckpointsError::Stopping) => {}
        Err(error) => {
            warn!(error = %format!("{:#}", anyhow::Error::new(error)), "A checkpoint was not made.");
        }
    }
}
