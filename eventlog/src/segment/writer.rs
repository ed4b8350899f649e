//! The one writer: a thread that takes what is pending, decides, numbers, hashes, writes, syncs once, publishes, and
//! only then answers.
//!
//! ```text
//!            ┌────────────── next batch ───────────────┐
//!            ▼                                         │
//!   take pending → decide → write → fdatasync → publish → answer
//!                             │         │
//!                  disk full, cut off   └─ any error ─► poisoned: every answer from here on is `Unavailable`
//! ```
//!
//! An error of a sync is never tried again: the kernel may have dropped the pages and would then report success.

use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, mpsc as std_mpsc},
    time::Instant,
};

use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    log::{AppendError, Hash, ReadError, Stored},
    number::Position,
    prepare::Prepared,
};

use super::{
    batch::{Batch, Decision},
    disk::{Disk, DiskFile},
    frame::{Footer, HEADER_BYTES, Header},
    indexer::Job,
    map::SegmentMap,
    shared::{Active, Refused, Sealed, Shared, Status, segment_path},
};

/// After the disk was full, so much more must be free before the log says that it takes appends again.
const ROOM_BYTES_MIN: u64 = 64 * 1024;

/// What callers send.
pub(crate) enum Request {
    Append(AppendRequest),
    /// Answered when everything before it is durable; nothing after it is taken.
    Close(oneshot::Sender<()>),
}

pub(crate) struct AppendRequest {
    pub(crate) append: Arc<Prepared>,
    /// Where the index has an append of this id, as far as `seen`.
    pub(crate) known: Option<Stored>,
    pub(crate) seen: Position,
    pub(crate) answer: oneshot::Sender<Result<Decision, AppendError>>,
}

type Answers = Vec<(oneshot::Sender<Result<Decision, AppendError>>, Decision)>;

pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) file: Box<dyn DiskFile>,
    /// BLAKE3 state over the file so far, for the footer.
    pub(crate) content: blake3::Hasher,
    /// The first position of the file, and its length.
    pub(crate) first: Position,
    pub(crate) length: u64,
    pub(crate) last: Position,
    pub(crate) global: Hash,
    pub(crate) head: watch::Sender<Position>,
    pub(crate) indexer: std_mpsc::Sender<Job>,
}

/// Why a batch was not written.
enum Failure {
    /// Certainly nothing of it is there; the log goes on.
    Refused(Arc<str>),
    /// Nobody knows; the log takes nothing more.
    Poisoned(Arc<str>),
}

impl Writer {
    /// Runs until every sender is gone or the log is closed.
    pub(crate) fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut batch = Batch::new(self.last, self.global);
        let mut closing = None;
        while closing.is_none()
            && let Some(request) = requests.blocking_recv()
        {
            let taken = take(request, &mut requests, &mut closing);
            self.commit(taken, &mut batch);
        }
        *self.shared.status.write() = Status::Closed;
        requests.close();
        // Taken while closing: certainly not written.
        while let Some(request) = requests.blocking_recv() {
            if let Request::Append(request) = request {
                let _ = request.answer.send(Err(AppendError::Unavailable("the log is closed".into())));
            }
        }
        self.shared.followed.lock().clear();
        drop((self.head, self.file, self.indexer));
        if let Some(closed) = closing {
            let _ = closed.send(());
        }
    }

    fn commit(&mut self, taken: Vec<AppendRequest>, batch: &mut Batch) {
        if let Err(error) = self.shared.check_open().and_then(|()| self.shared.check_space()) {
            return refuse(taken, &error);
        }
        batch.restart(self.last, self.global);
        let answers = self.decide(taken, batch);
        if batch.is_empty() {
            return tell(answers);
        }
        batch.commit();
        metrics::histogram!("browserspace_log_batch_size_events").record(batch.events.len() as f64);
        match self.write(batch) {
            Ok(()) => {
                self.publish(batch);
                tell(answers);
            }
            Err(failure) => self.fail(failure, answers),
        }
    }

    /// Decides on each append in order; those of one batch see each other.
    fn decide(&self, taken: Vec<AppendRequest>, batch: &mut Batch) -> Answers {
        let mut answers = Answers::with_capacity(taken.len());
        for request in taken {
            let decision = match self.find_repeat(&request, batch) {
                Ok(Some(stored)) => Ok(Decision::Duplicate(stored)),
                Ok(None) => batch.decide(&request.append, &self.shared.state.read().heads),
                Err(error) => Err(AppendError::Unavailable(error.to_string().into())),
            };
            if let Ok(Decision::Conflict { .. }) = &decision {
                metrics::counter!("browserspace_log_append_conflicts_total").increment(1);
            }
            match decision {
                Ok(decision) => answers.push((request.answer, decision)),
                Err(error) => drop(request.answer.send(Err(error))),
            }
        }
        answers
    }

    /// The first append of this id. The caller has looked into the index already, but a segment may have left memory
    /// for the index since.
    fn find_repeat(&self, request: &AppendRequest, batch: &Batch) -> Result<Option<Stored>, ReadError> {
        let id = request.append.id;
        if crate::mutant::is("a_repeat_is_stored_again") {
            return Ok(None);
        }
        if let Some(known) = request.known.or_else(|| batch.command(id)) {
            return Ok(Some(known));
        }
        match self.shared.look_for_append(id, request.seen) {
            (Some(stored), _) => Ok(Some(stored)),
            (None, candidates) => self.shared.find_append_in_index(id, &candidates),
        }
    }

    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        let full = self.length + batch.bytes.len() as u64 > self.shared.limits.segment_bytes;
        if full && self.length > HEADER_BYTES as u64 {
            self.roll()
                .map_err(|error| Failure::Poisoned(format!("sealing a segment failed: {error}").into()))?;
        }
        if let Err(error) = self.file.append(&batch.bytes) {
            return Err(self.undo(&error, batch.bytes.len() as u64));
        }
        self.sync().map_err(|error| Failure::Poisoned(format!("a sync failed: {error}").into()))?;
        self.content.update(&batch.bytes);
        *self.shared.refused.lock() = None;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        if crate::mutant::is("told_before_it_is_durable") {
            return Ok(());
        }
        match self.file.sync() {
            Err(_) if crate::mutant::is("a_failed_sync_is_success") => {}
            synced => synced?,
        }
        metrics::histogram!("browserspace_log_fsync_duration_seconds").record(begun.elapsed().as_secs_f64());
        Ok(())
    }

    /// A full disk is no broken disk: if the half-written batch can be cut off, it was certainly not written.
    fn undo(&mut self, error: &io::Error, bytes: u64) -> Failure {
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if full && crate::mutant::is("half_a_batch_stays") {
            return Failure::Refused("the disk is full".into());
        }
        let undone = full && self.file.truncate(self.length).and_then(|()| self.file.sync()).is_ok();
        if undone {
            let why: Arc<str> = "the disk is full".into();
            let free = self.shared.disk.free_bytes(&self.shared.folder).unwrap_or(u64::MAX);
            let free_bytes_wanted = free.saturating_add(bytes.max(ROOM_BYTES_MIN));
            *self.shared.refused.lock() = Some(Refused { why: Arc::clone(&why), free_bytes_wanted });
            Failure::Refused(why)
        } else {
            Failure::Poisoned(format!("a write failed: {error}").into())
        }
    }

    /// Seals the file with a footer and begins the next one. Both are durable, names included, before anything is
    /// acknowledged from the new one.
    fn roll(&mut self) -> io::Result<()> {
        let footer = Footer {
            first: self.first,
            last: self.last,
            bytes: self.length,
            global: self.global,
            content: Hash(*self.content.finalize().as_bytes()),
        };
        let mut bytes = Vec::new();
        footer.write(&mut bytes);
        self.file.append(&bytes)?;
        self.file.sync()?;
        let next = self.last.next();
        let (file, content) =
            create(&*self.shared.disk, &self.shared.folder, Header { first: next, global: self.global })?;
        let reading = File::open(segment_path(&self.shared.folder, next))?;
        (self.file, self.content) = (file, content);
        let sealed = Sealed { first: self.first, last: self.last, frames_end: self.length };
        (self.first, self.length) = (next, HEADER_BYTES as u64);
        let mut state = self.shared.state.write();
        let active = Active { map: SegmentMap::new(next), file: Arc::new(reading), end: self.length };
        let map = Arc::new(std::mem::replace(&mut state.active, active).map);
        state.sealed.push(sealed);
        state.unindexed.push(Arc::clone(&map));
        drop(state);
        // The indexer ends after the writer; without it the segment stays in memory, where it is found as well.
        let _ = self.indexer.send(Job { map, global: self.global });
        Ok(())
    }

    fn publish(&mut self, batch: &Batch) {
        let start = self.length;
        self.length += batch.bytes.len() as u64;
        (self.last, self.global) = (batch.last(), batch.global);
        let mut state = self.shared.state.write();
        for event in &batch.events {
            state.active.map.add(start, event);
        }
        state.active.end = self.length;
        state.heads.extend(batch.heads.iter().map(|(stream, head)| (stream.clone(), *head)));
        drop(state);
        self.head.send_replace(self.last);
        metrics::gauge!("browserspace_log_position").set(self.last.0 as f64);
        let mut followed = self.shared.followed.lock();
        if !followed.is_empty() {
            for (stream, head) in &batch.heads {
                if followed.get(stream).is_some_and(|sender| sender.send(head.sequence).is_err()) {
                    followed.remove(stream);
                }
            }
        }
    }

    fn fail(&self, failure: Failure, answers: Answers) {
        let (why, stored) = match failure {
            Failure::Refused(why) => {
                tracing::error!(%why, "Appends are refused until there is room again.");
                (Arc::clone(&why), AppendError::Unavailable(why))
            }
            Failure::Poisoned(why) => {
                tracing::error!(%why, "The log takes no more appends; restart the server to have it verified.");
                *self.shared.status.write() = Status::Poisoned(Arc::clone(&why));
                (why, AppendError::Unknown)
            }
        };
        for (answer, decision) in answers {
            // A refusal may rest on an append of the same batch, so it is not certain either; but nothing of it is there.
            let error = match decision {
                Decision::Stored(_) => stored.clone(),
                Decision::Duplicate(_) | Decision::Conflict { .. } => {
                    AppendError::Unavailable(Arc::clone(&why))
                }
            };
            let _ = answer.send(Err(error));
        }
    }
}

/// Everything pending, up to the limits of a batch; stops at a close.
fn take(
    first: Request,
    requests: &mut mpsc::Receiver<Request>,
    closing: &mut Option<oneshot::Sender<()>>,
) -> Vec<AppendRequest> {
    let mut taken = Vec::new();
    let (mut events, mut bytes) = (0, 0);
    let mut next = Some(first);
    while let Some(request) = next {
        match request {
            Request::Close(closed) => {
                *closing = Some(closed);
                break;
            }
            Request::Append(request) => {
                events += request.append.event_count();
                bytes += request.append.bytes();
                taken.push(request);
            }
        }
        if events >= super::BATCH_EVENTS_MAX || bytes >= super::BATCH_BYTES_MAX {
            break;
        }
        next = requests.try_recv().ok();
    }
    taken
}

fn refuse(taken: Vec<AppendRequest>, error: &AppendError) {
    for request in taken {
        let _ = request.answer.send(Err(error.clone()));
    }
}

fn tell(answers: Answers) {
    for (answer, decision) in answers {
        // Whoever asked may have gone; the append stands all the same.
        let _ = answer.send(Ok(decision));
    }
}

/// Makes the file of a segment, durable together with its name.
pub(crate) fn create(
    disk: &dyn Disk,
    folder: &Path,
    header: Header,
) -> io::Result<(Box<dyn DiskFile>, blake3::Hasher)> {
    let mut file = disk.open(&segment_path(folder, header.first), 0)?;
    file.append(&header.to_bytes())?;
    file.sync()?;
    if !crate::mutant::is("a_new_segment_has_no_name") {
        disk.sync_folder(folder)?;
    }
    let mut content = blake3::Hasher::new();
    content.update(&header.to_bytes());
    Ok((file, content))
}
