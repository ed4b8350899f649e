//! The log on disk: segment files are the truth, everything else is derived from them.
//!
//! ```text
//! callers ──► bounded channel ──► writer thread ──► segment file ──► fdatasync ──► answers
//!                                       │ sealed segments
//!                                       └──► indexer thread ──► index (sled)
//! readers ◄── blocking threads ◄── segment files, up to the durable head
//! ```
//!
//! `docs/log-format.md` describes every byte. Replication and views are for others.

mod batch;
mod damage;
pub mod disk;
pub(crate) mod frame;
mod indexer;
pub(crate) mod map;
pub(crate) mod raw;
pub(crate) mod recover;
pub(crate) mod scan;
pub(crate) mod shared;
mod tail;
mod writer;

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, mpsc as std_mpsc},
    thread::{self, JoinHandle},
};

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Instrument;

use crate::{
    id::CommandId,
    log::{Append, AppendError, Appended, EventLog, Events, OnDisk, ReadError, Stored},
    number::{Position, Sequence},
    prepare::Prepared,
    reader,
    stream::StreamId,
    verify::DurableEnd,
};

use self::{
    batch::Decision,
    disk::{Disk, RealDisk},
    recover::{bring_up_active, bring_up_index, io_error, list, settle_end},
    shared::{Active, Shared, State, Status, segment_path},
    writer::{AppendRequest, Request, Writer},
};
pub use self::{
    raw::{RawEvent, RawPlace, each_raw},
    tail::SegmentReader,
};
pub use crate::verify::{Report as Verified, TornTail, check_whole as verify};

/// A group commit takes at most so many events …
pub const BATCH_EVENTS_MAX: usize = 4096;
/// … or so many bytes; a single larger append is a batch of its own.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// So many appends wait for the writer; the next one waits for room.
const PENDING_APPENDS_MAX: usize = 4096;
const LOCK_FILE: &str = "LOCK";

/// How to open a log.
pub struct OpenOptions {
    /// The folder; made if it is not there.
    pub folder: PathBuf,
    /// A segment is sealed before it grows beyond this. Default 64 MiB.
    pub segment_bytes: u64,
    /// Appends are refused while the disk has less room than this. Default 64 MiB.
    pub free_bytes_min: u64,
    /// Somebody has seen the log reach this position (a view's checkpoint, a signed checkpoint); a log that ends
    /// before it has lost events and is not opened. Default 0.
    pub known_position: Position,
    /// What the writer writes to.
    pub disk: Arc<dyn Disk>,
}

impl OpenOptions {
    /// The defaults, for this folder.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            segment_bytes: 64 * 1024 * 1024,
            free_bytes_min: 64 * 1024 * 1024,
            known_position: Position::ZERO,
            disk: Arc::new(RealDisk),
        }
    }
}

/// Why a log was not opened. Its segments were not changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server uses this folder: stop it, or choose another folder.
    #[error("another server holds the log in {0}")]
    Locked(PathBuf),
    /// The file system refused; check the path and its rights.
    #[error("the log could not be opened at {path}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is not what was written, and no crash explains it: restore it from a backup.
    #[error("the log is damaged in {file} at byte {offset}: {what}", file = file.display())]
    Damaged {
        /// The segment.
        file: PathBuf,
        /// The first bad byte, or the first byte of what does not fit.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The log ends before a position that was acknowledged: its end was lost. Restore it from a backup.
    #[error("the log ends at position {head}, but was known to reach {known}")]
    Behind {
        /// Where it ends.
        head: Position,
        /// What was known.
        known: Position,
    },
    /// The index could not be made; the segments are whole. Check the disk.
    #[error("the index of the log could not be made: {0}")]
    Index(String),
}

/// A segment's file, opened for reading.
pub(crate) struct OpenSegmentFile {
    pub(crate) file: Arc<File>,
    pub(crate) length: u64,
}

impl OpenSegmentFile {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let file = File::open(path).map_err(io_error(path))?;
        let length = file.metadata().map_err(io_error(path))?.len();
        Ok(Self { file: Arc::new(file), length })
    }
}

/// Limits of the writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) segment_bytes: u64,
    pub(crate) free_bytes_min: u64,
}

/// The log on disk. One per folder; see [`EventLog`].
pub struct SegmentLog {
    shared: Arc<Shared>,
    requests: Mutex<Option<mpsc::Sender<Request>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SegmentLog {
    /// Opens the log in a folder, recovers it, and starts its threads. Blocks while it reads the last segment (and,
    /// to rebuild the index, all of them).
    ///
    /// # Errors
    /// [`OpenError`]: each says what to do.
    pub fn open(options: OpenOptions) -> Result<Self, OpenError> {
        let OpenOptions { folder, segment_bytes, free_bytes_min, known_position, disk } = options;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(io_error(&folder))?;
        let lock = lock(&folder)?;
        let listing = list(&folder)?;
        settle_end(&folder, &*disk, &listing)?;
        let mut indexed = bring_up_index(&folder, &listing.sealed)?;
        let grown = bring_up_active(&folder, &*disk, &listing, &mut indexed.heads, known_position)?;
        let (first, last) = (grown.map.first, grown.map.last());
        let path = segment_path(&folder, first);
        let reading = Arc::new(File::open(&path).map_err(io_error(&path))?);
        let file = disk.open(&path, grown.length).map_err(io_error(&path))?;
        let (head, head_seen) = watch::channel(last);
        let shared = Arc::new(Shared {
            state: RwLock::new(State {
                heads: indexed.heads,
                sealed: listing.sealed.iter().map(|file| file.sealed).collect(),
                unindexed: Vec::new(),
                filters: indexed.filters,
                active: Active { map: grown.map, file: reading, end: grown.length },
            }),
            folder,
            disk,
            limits: Limits { segment_bytes, free_bytes_min },
            index: RwLock::new(Some(Box::new(indexed.index))),
            status: RwLock::new(Status::Open),
            refused: Mutex::default(),
            damaged: RwLock::default(),
            head: head_seen,
            lock: Mutex::new(Some(lock)),
            followed: Mutex::default(),
        });
        let (indexer, jobs) = std_mpsc::channel();
        let writer = Writer {
            shared: Arc::clone(&shared),
            file,
            content: grown.content,
            first,
            length: grown.length,
            last,
            global: grown.global,
            head,
            indexer,
        };
        metrics::gauge!("browserspace_log_position").set(last.0 as f64);
        Self::start(shared, writer, jobs)
    }

    fn start(
        shared: Arc<Shared>,
        writer: Writer,
        jobs: std_mpsc::Receiver<indexer::Job>,
    ) -> Result<Self, OpenError> {
        let (requests, pending) = mpsc::channel(PENDING_APPENDS_MAX);
        let of_indexer = Arc::clone(&shared);
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let folder = shared.folder.clone();
        let indexing = named("log-indexer")
            .spawn(move || indexer::run(&of_indexer, &jobs))
            .map_err(io_error(&folder))?;
        let writing = named("log-writer").spawn(move || writer.run(pending)).map_err(io_error(&folder))?;
        Ok(Self {
            shared,
            requests: Mutex::new(Some(requests)),
            threads: Mutex::new(vec![writing, indexing]),
        })
    }

    /// The folder of this log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    async fn append_prepared(&self, append: Prepared) -> Result<Appended, AppendError> {
        let id = append.id;
        let (known, seen) = self.look_up(id).await.map_err(|error| unavailable(&error))?;
        let requests = self.requests.lock().clone();
        let requests = requests.ok_or_else(|| AppendError::Unavailable("the log is closed".into()))?;
        let room = requests.reserve().await;
        let room = room.map_err(|_| AppendError::Unavailable("the log is closed".into()))?;
        let (answer, answered) = oneshot::channel();
        // Shared, for what it says is asked again if it turns out to be a repeat.
        let append = Arc::new(append);
        room.send(Request::Append(AppendRequest { append: Arc::clone(&append), known, seen, answer }));
        // The writer ends without an answer only by a panic: then nobody knows.
        match answered.await.unwrap_or(Err(AppendError::Unknown))? {
            Decision::Stored(stored) => Ok(Appended::Stored(stored)),
            Decision::Conflict { stream, actual } => Ok(Appended::Conflict { stream, actual }),
            Decision::Duplicate(stored) => {
                let recorded = self.blocking(move |shared| shared.meaning(stored)).await;
                let same = recorded.map_err(|error| unavailable(&error))? == append.meaning();
                Ok(Appended::Duplicate { stored, same })
            }
        }
    }

    /// Where an append of this id lies, if it lies in the index, and up to which segment the index was asked.
    async fn look_up(&self, id: CommandId) -> Result<(Option<Stored>, Position), ReadError> {
        let (found, candidates) = self.shared.look_for_append(id, Position::ZERO);
        let seen = candidates.seen;
        if found.is_some() || candidates.segments.is_empty() {
            return Ok((found, seen));
        }
        let found = self.blocking(move |shared| shared.find_append_in_index(id, &candidates)).await?;
        Ok((found, seen))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Shared) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let shared = Arc::clone(&self.shared);
        let reading = tokio::task::spawn_blocking(move || read(&shared)).await;
        reading.unwrap_or_else(|error| Err(shared::io_error(std::io::Error::other(error))))
    }
}

/// Waits for the threads, then lets go of the index and, last, of the folder.
fn finish(shared: &Shared, threads: Vec<JoinHandle<()>>) {
    let mut threads = threads.into_iter();
    // A thread that panicked has said so; there is nothing to add.
    let _ = threads.next().map(JoinHandle::join);
    shared.index.write().take();
    for thread in threads {
        let _ = thread.join();
    }
    shared.lock.lock().take();
}

fn unavailable(error: &ReadError) -> AppendError {
    AppendError::Unavailable(format!("a repeat cannot be told: {error}").into())
}

/// Takes the folder. The file is what people and older versions look at; it may be removed under a running server, so
/// the folder itself is held as well.
pub(crate) fn lock(folder: &Path) -> Result<[File; 2], OpenError> {
    let path = folder.join(LOCK_FILE);
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(io_error(&path))?;
    let directory = File::open(folder).map_err(io_error(folder))?;
    for (held, path) in [(&directory, folder), (&file, &*path)] {
        match held.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(io_error(path)(error)),
        }
    }
    Ok([directory, file])
}

/// Whether somebody holds the log in this folder: a server that runs on it, or a command that changes it.
#[must_use]
pub fn is_held(folder: &Path) -> bool {
    // Shared, so that two who only ask never see each other. It is let go at once.
    let held = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    File::open(folder).is_ok_and(held)
}

#[async_trait]
impl EventLog for SegmentLog {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let span =
            tracing::info_span!("append", position = tracing::field::Empty, events = tracing::field::Empty);
        async {
            self.shared.check_open()?;
            let answer = self.append_prepared(Prepared::new(&append)?).await?;
            if let Appended::Stored(stored) = &answer {
                let span = tracing::Span::current();
                span.record("position", stored.first.0).record("events", stored.last.0 - stored.first.0 + 1);
            }
            Ok(answer)
        }
        .instrument(span)
        .await
    }

    fn read_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        reader::read_stream(Arc::clone(&self.shared), stream, from, false)
    }

    fn read_all(&self, from: Position) -> Events {
        reader::read_all(Arc::clone(&self.shared), from, false)
    }

    fn follow(&self, from: Position) -> Events {
        reader::read_all(Arc::clone(&self.shared), from, true)
    }

    fn follow_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        reader::read_stream(Arc::clone(&self.shared), stream, from, true)
    }

    async fn find_append(&self, id: CommandId) -> Result<Option<Stored>, ReadError> {
        self.look_up(id).await.map(|(found, _)| found)
    }

    async fn stream_head(&self, stream: &StreamId) -> Result<Sequence, ReadError> {
        Ok(self.shared.stream_head(stream).sequence)
    }

    fn durable_head(&self) -> watch::Receiver<Position> {
        self.shared.head.clone()
    }

    fn check_writable(&self) -> Result<(), AppendError> {
        self.shared.check_open()?;
        self.shared.check_space()?;
        self.shared.check_room()
    }

    fn damaged_streams(&self) -> Vec<StreamId> {
        self.shared.damaged.read().iter().cloned().collect()
    }

    fn is_damaged(&self, stream: &StreamId) -> bool {
        self.shared.damaged.read().contains(stream)
    }

    fn on_disk(&self) -> Option<OnDisk> {
        let state = self.shared.state.read();
        let end = DurableEnd { segment: state.active.map.first, offset: state.active.end };
        Some(OnDisk { folder: self.shared.folder.clone(), end })
    }

    async fn close(&self) {
        let requests = self.requests.lock().take();
        if let Some(requests) = requests {
            let (closed, closing) = oneshot::channel();
            if requests.send(Request::Close(closed)).await.is_ok() {
                let _ = closing.await;
            }
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        let shared = Arc::clone(&self.shared);
        // Only a runtime that is ending cancels this, and then the drop does the same.
        let _ = tokio::task::spawn_blocking(move || finish(&shared, threads)).await;
    }
}

impl Drop for SegmentLog {
    fn drop(&mut self) {
        self.requests.lock().take();
        finish(&self.shared, std::mem::take(&mut *self.threads.lock()));
    }
}
