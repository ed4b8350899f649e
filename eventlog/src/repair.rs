//! What is left to do when a log is broken and there is no good copy: keep what is good, say what is lost, and go on.
//!
//! Nothing here happens by itself. [`survey`] says what would be lost; [`cut`] does it, and keeps every byte that it cuts
//! off in files beside. That an operator accepted it is recorded by whoever opens the log next.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    codec::Envelope,
    number::Position,
    segment::{
        OpenError,
        frame::{Commit, FrameKind, FrameReader, HEADER_BYTES, Next},
        lock,
        recover::{io_error, list, segment_files},
        scan::find_magic,
        shared::{REBUILD_FILE, segment_path},
    },
    stream::StreamId,
    transfer::{TransferError, last_batch},
    verify::{DurableEnd, Fault, FaultKind, Known, Options, check},
};

/// What a cut would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The first bad place.
    pub fault: Fault,
    /// Where the log would end: behind its last whole batch before that place.
    pub end: DurableEnd,
    /// The last position that stays.
    pub head: Position,
    /// The last position that is known to have been there; equal to `head` if none is known behind it.
    pub last_lost: Position,
    /// Whose events are among the lost ones that can still be read, and how many of each.
    pub streams: BTreeMap<StreamId, u64>,
    /// Bytes that would be cut off.
    pub bytes: u64,
    /// Whether a server starts with it as it is: the damage lies in a sealed segment, and takes only the streams in it.
    pub is_contained: bool,
}

/// Why a log was not repaired. It is as it was, unless the message says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// It could not be read, or somebody holds it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It could not be walked.
    #[error(transparent)]
    Walk(#[from] TransferError),
    /// No event before the first bad place is whole: there is nothing to go on from.
    #[error("nothing of the log can be kept: its first bad place comes before its first whole batch")]
    Nothing,
    /// It is not as it was when it was surveyed.
    #[error("the log is not as it was a moment ago: look again")]
    Changed,
}

/// Looks at a broken log; `None`: there is nothing to repair. A torn tail is no damage: the next open cuts it.
///
/// # Errors
/// [`RepairError`].
pub fn survey(folder: &Path, known: Vec<Known>) -> Result<Option<Loss>, RepairError> {
    let furthest = known.iter().map(|known| known.position).max().unwrap_or_default();
    let mut report = check(folder, &Options { known, ..Options::default() })?;
    if report.is_whole() {
        return Ok(None);
    }
    let fault = report.faults.swap_remove(0);
    let mut end = report.end.ok_or(RepairError::Nothing)?;
    let mut head = report.head;
    // What was walked may go on behind a place that only the segments before show to be bad.
    if fault.kind != FaultKind::CutTail {
        let before = Position(fault.position.0.saturating_sub(1));
        if let Some((found, last, _)) = last_batch(folder, end, before)? {
            (end, head) = (found, last);
        }
    }
    if head == Position::ZERO {
        return Err(RepairError::Nothing);
    }
    let mut loss = Loss {
        is_contained: is_contained(folder, &fault),
        fault,
        end,
        head,
        last_lost: furthest.max(head),
        streams: BTreeMap::new(),
        bytes: 0,
    };
    for (first, path) in segment_files(folder)? {
        if first >= end.segment {
            let from = if first == end.segment { end.offset } else { 0 };
            loss.count(&path, from)?;
        }
    }
    Ok(Some(loss))
}

/// Whether the log opens as it is: every header and footer joins, and the segment that grows is not the bad one.
fn is_contained(folder: &Path, fault: &Fault) -> bool {
    let of_sealed = |file: &Path| {
        segment_files(folder).is_ok_and(|files| files.last().is_some_and(|(_, last)| last != file))
    };
    let is_in_a_frame = !matches!(fault.kind, FaultKind::CutTail | FaultKind::Rewritten);
    is_in_a_frame && of_sealed(&fault.file) && list(folder).is_ok()
}

impl Loss {
    /// Takes note of what can still be read behind the cut.
    fn count(&mut self, path: &Path, from: u64) -> Result<(), OpenError> {
        let error = io_error(path);
        let file = Arc::new(File::open(path).map_err(&error)?);
        let length = file.metadata().map_err(&error)?.len();
        self.bytes += length.saturating_sub(from);
        let mut at = from.max(HEADER_BYTES as u64);
        let mut reader = FrameReader::new(Arc::clone(&file), at, length);
        while let Some(found) = find_magic(&file, at, length).map_err(&error)? {
            reader.seek(found);
            let Next::Frame(frame) = reader.next().map_err(&error)? else {
                at = found + 1;
                continue;
            };
            at = frame.end();
            if frame.kind == FrameKind::Commit
                && let Some(commit) = Commit::read(frame.body())
            {
                self.last_lost = self.last_lost.max(commit.last);
            }
            let envelope = frame.event().filter(|_| frame.kind == FrameKind::Event);
            let envelope = envelope.and_then(|(bytes, _)| Envelope::read(bytes).ok());
            if let Some(envelope) = envelope {
                self.last_lost = self.last_lost.max(envelope.position);
                if let Ok(stream) = StreamId::from_bytes(envelope.stream) {
                    *self.streams.entry(stream).or_default() += 1;
                }
            }
        }
        Ok(())
    }
}

/// Cuts the log as surveyed, and answers the files that hold what was cut off. The index is made anew at the next open.
///
/// # Errors
/// [`RepairError`]; after one of the file system the same call, with a new survey, goes on.
pub fn cut(folder: &Path, loss: &Loss) -> Result<Vec<PathBuf>, RepairError> {
    let _held = lock(folder)?;
    let path = segment_path(folder, loss.end.segment);
    let length = fs::metadata(&path).map_err(io_error(&path))?.len();
    if length < loss.end.offset {
        return Err(RepairError::Changed);
    }
    let rebuild = folder.join(REBUILD_FILE);
    fs::write(&rebuild, b"").map_err(io_error(&rebuild))?;
    let mut kept = Vec::new();
    // Last to first, so that a crash in between leaves a log with the same first bad place.
    for (first, later) in segment_files(folder)?.into_iter().rev() {
        if first > loss.end.segment {
            let target = free_name(&later);
            fs::rename(&later, &target).map_err(io_error(&later))?;
            kept.push(target);
        }
    }
    if length > loss.end.offset {
        let target = free_name(&path);
        fs::copy(&path, &target).and_then(|_| File::open(&target)?.sync_all()).map_err(io_error(&target))?;
        sync(folder)?;
        let file = OpenOptions::new().write(true).open(&path).map_err(io_error(&path))?;
        file.set_len(loss.end.offset).and_then(|()| file.sync_all()).map_err(io_error(&path))?;
        kept.push(target);
    }
    sync(folder)?;
    kept.reverse();
    Ok(kept)
}

/// A name beside a file that nothing has yet.
fn free_name(path: &Path) -> PathBuf {
    let name = |suffix: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let names = (2..).map(|number| name(format!(".damaged-{number}")));
    let mut names = std::iter::once(name(".damaged".to_owned())).chain(names);
    names.find(|name| !name.exists()).expect("there are names enough")
}

fn sync(folder: &Path) -> Result<(), OpenError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error: io::Error| io_error(folder)(error))
}
