//! Checks a log from its first byte to its last, in parallel by segment: frames, checksums, positions, sequences, both
//! chains, commits, footers, and what is known of it elsewhere. Says the first bad place, and tells what a crash leaves
//! behind from what a crash can not do.
//!
//! ```text
//!  segment 1 ─► walk ─┐
//!  segment 2 ─► walk ─┼─► join, in order: names, headers, streams that go on ─► what is known elsewhere ─► report
//!  segment 3 ─► walk ─┘
//! ```
//!
//! A header repeats where the segment before it ended, so each segment is walked by itself; the join then holds every
//! header against that end, and every stream against its last event before. Nothing is changed and no lock is needed.
//! [`check_index`] holds the index against the log. Views and artifacts are for others.

mod index;
mod join;
mod walk;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{
    log::{Hash, ReadError},
    merkle::TreeHash,
    number::Position,
    segment::{OpenError, OpenSegmentFile, recover::segment_files},
    stream::StreamId,
};

pub use self::index::{IndexReport, check_index};
use self::walk::{Walked, walk};

/// So many places are told at most; the first one is what counts.
const FAULTS_MAX: usize = 16;

/// What is wrong at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A segment's file is not there.
    MissingSegment,
    /// A file's header is not the one that belongs there.
    Header,
    /// No whole frame lies here: its bytes are not those that were written.
    Frame,
    /// A whole frame holds no event that can be read.
    Envelope,
    /// Positions have a gap or a repeat.
    PositionGap,
    /// Sequences of a stream have a gap or a repeat.
    SequenceGap,
    /// An event's hash does not follow from the one before it in its stream.
    StreamChain,
    /// A commit does not fit the events before it: their number, or the hash of the whole log.
    Commit,
    /// A footer does not fit its segment, or something follows it.
    Footer,
    /// A segment that others follow has no footer.
    Unsealed,
    /// A file's header is one of ours and does not go on where the segment before it ended.
    Join,
    /// The log ends before a position that it is known to have reached.
    CutTail,
    /// The log holds other events than those it is known to have held.
    Rewritten,
}

/// What can have led to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Bytes changed after they were written: a bad disk, or a hand that did not mend the checksum.
    Damage,
    /// The checksums are good and the content contradicts itself: no disk does that, somebody edited the log.
    Edit,
    /// A part was taken away: events that were acknowledged are gone.
    Removal,
    /// The log is whole in itself and is not the one that was signed: somebody made it anew.
    Rewrite,
}

impl FaultKind {
    /// What can have led to it.
    #[must_use]
    pub const fn cause(self) -> Cause {
        match self {
            Self::Frame | Self::Header => Cause::Damage,
            Self::Envelope
            | Self::PositionGap
            | Self::SequenceGap
            | Self::StreamChain
            | Self::Commit
            | Self::Footer
            | Self::Join => Cause::Edit,
            Self::MissingSegment | Self::Unsealed | Self::CutTail => Cause::Removal,
            Self::Rewritten => Cause::Rewrite,
        }
    }
}

/// A bad place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The segment.
    pub file: PathBuf,
    /// The first bad byte, or the first byte of what does not fit.
    pub offset: u64,
    /// The position that was to be there.
    pub position: Position,
    /// Whose event it is, as far as its bytes tell.
    pub stream: Option<StreamId>,
    /// The same in words.
    pub what: String,
}

/// What a crash left of a batch that nobody was told of; the next open keeps it beside and cuts it off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The last segment.
    pub file: PathBuf,
    /// The end of its last whole batch.
    pub offset: u64,
}

/// What is known of the log from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// It reached this position …
    pub position: Position,
    /// … with this global hash …
    pub global: Option<Hash>,
    /// … and this root of its Merkle tree.
    pub root: Option<TreeHash>,
    /// Who says so, for people: `the views`, `the checkpoint in line 12`.
    pub source: String,
}

/// Where a log that is being written ends: everything up to there is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurableEnd {
    /// The first position of the segment that grows.
    pub segment: Position,
    /// The end of its last durable batch.
    pub offset: u64,
}

/// An event as it goes by. It may turn out to lie in a torn batch: only up to the head of the report do they count.
#[derive(Debug, Clone, Copy)]
pub struct Passing<'a> {
    /// Where it lies.
    pub position: Position,
    /// Its stream, as [`StreamId::to_bytes`] writes it.
    pub stream: &'a [u8],
    /// Its kind.
    pub kind: &'a str,
    /// Which shape the payload has.
    pub schema: u16,
    /// Its fields, MessagePack.
    pub payload: &'a [u8],
    /// The segment.
    pub file: &'a Path,
    /// The first byte of its frame.
    pub offset: u64,
}

/// How to check.
#[derive(Default)]
pub struct Options<'a> {
    /// So many segments at once; 0 = as many as there are processors.
    pub threads: usize,
    /// What the log is held against.
    pub known: Vec<Known>,
    /// Whether the root of the Merkle tree is wanted also where nothing known asks for it.
    pub with_root: bool,
    /// Where a log that is being written ends; otherwise the files tell.
    pub end: Option<DurableEnd>,
    /// Told now and then: bytes checked, and bytes in all. From several threads.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Told of each event, from several threads, each segment in order.
    pub inspect: Option<&'a (dyn Fn(&Passing<'_>) + Sync)>,
    /// Ends the check early, with [`OpenError::Io`] of the kind `Interrupted`.
    pub cancelled: Option<&'a AtomicBool>,
}

/// What a folder holds, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The last position; where something is wrong, the last one before it.
    pub head: Position,
    /// The global hash there: two logs with the same one hold the same events. Zeros where something in the middle of a
    /// segment is wrong that only the segments before show.
    pub global: Hash,
    /// The root of the Merkle tree there, if it was asked for and is known.
    pub root: Option<TreeHash>,
    /// How many streams.
    pub streams: usize,
    /// How many segment files.
    pub segments: usize,
    /// How many bytes they have.
    pub bytes: u64,
    /// Where what was checked ends: the end of the last whole batch before anything that is wrong. `None`: there is nothing.
    pub end: Option<DurableEnd>,
    /// What a crash left; never acknowledged as far as is known.
    pub torn_tail: Option<TornTail>,
    /// Bad places in the order of the log, at most one for each segment; the first is the first bad place.
    pub faults: Vec<Fault>,
}

impl Report {
    /// Whether nothing is wrong. A torn tail is not wrong.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        Self::Damaged { file: fault.file, offset: fault.offset, what: fault.what }
    }
}

/// One segment file, and how much of it counts.
pub(crate) struct Part {
    pub(crate) first: Position,
    pub(crate) path: PathBuf,
    pub(crate) length: u64,
    pub(crate) is_last: bool,
}

/// What all walks share.
pub(crate) struct Shared<'a> {
    pub(crate) options: &'a Options<'a>,
    /// Positions whose hashes are wanted, ascending.
    pub(crate) marks: Vec<Position>,
    pub(crate) with_tree: bool,
    done: AtomicU64,
    total: u64,
}

impl Shared<'_> {
    /// Counts bytes, and stops where nobody wants to know any more.
    pub(crate) fn passed(&self, bytes: u64) -> std::io::Result<()> {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(progress) = self.options.progress {
            progress(done, self.total);
        }
        if self.options.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(std::io::Error::new(std::io::ErrorKind::Interrupted, "the check was ended"));
        }
        Ok(())
    }
}

/// Checks the log in a folder. Without [`Options::end`], the batch that a running server is just writing looks like a torn
/// tail.
///
/// # Errors
/// [`OpenError::Io`]: what could not be read. What is wrong with the log stands in the report.
pub fn check(folder: &Path, options: &Options<'_>) -> Result<Report, OpenError> {
    let parts = match parts(folder, options.end) {
        Ok(parts) => parts,
        Err(OpenError::Damaged { file, offset, what }) => {
            let fault =
                Fault { kind: FaultKind::Header, file, offset, position: Position::ZERO, stream: None, what };
            return Ok(join::nothing_but(fault));
        }
        Err(error) => return Err(error),
    };
    let mut marks: Vec<Position> = options.known.iter().map(|known| known.position).collect();
    marks.sort_unstable();
    marks.dedup();
    let shared = Shared {
        options,
        marks,
        with_tree: options.with_root || options.known.iter().any(|known| known.root.is_some()),
        done: AtomicU64::new(0),
        total: parts.iter().map(|part| part.length).sum(),
    };
    let walked = walk_all(&parts, &shared)?;
    join::join(folder, &parts, walked, &shared)
}

fn parts(folder: &Path, end: Option<DurableEnd>) -> Result<Vec<Part>, OpenError> {
    let mut files = segment_files(folder)?;
    if let Some(end) = end {
        files.retain(|(first, _)| *first <= end.segment);
    }
    let count = files.len();
    let part = |((first, path), number): ((Position, PathBuf), usize)| {
        let OpenSegmentFile { length, .. } = OpenSegmentFile::open(&path)?;
        let length = match end {
            Some(end) if end.segment == first => length.min(end.offset),
            Some(_) | None => length,
        };
        Ok(Part { first, path, length, is_last: number == count })
    };
    files.into_iter().zip(1..).map(part).collect()
}

/// Walks all segments, the first ones first; as many at once as there are threads.
fn walk_all(parts: &[Part], shared: &Shared<'_>) -> Result<Vec<Walked>, OpenError> {
    let threads = match shared.options.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads,
    };
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Walked, OpenError>>>> =
        parts.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let walked = walk(part, shared);
            let at = parts.iter().position(|other| std::ptr::eq(other, part)).expect("it is one of them");
            *results[at].lock() = Some(walked);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(parts.len()) {
            scope.spawn(work);
        }
        work();
    });
    results.into_iter().map(|result| result.into_inner().expect("every part is taken once")).collect()
}

/// The same for one who only wants to know whether the log is whole.
///
/// # Errors
/// [`OpenError::Damaged`] names the first bad place, [`OpenError::Io`] what could not be read.
pub fn check_whole(folder: &Path) -> Result<Report, OpenError> {
    let mut report = check(folder, &Options::default())?;
    if report.faults.is_empty() { Ok(report) } else { Err(report.faults.swap_remove(0).into()) }
}

/// A damaged log as an error of a reader.
impl From<&Fault> for ReadError {
    fn from(fault: &Fault) -> Self {
        Self::Damaged { position: fault.position, last: None, what: Arc::from(fault.what.as_str()) }
    }
}
