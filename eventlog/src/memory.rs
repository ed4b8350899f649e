//! The log in memory, with faults on demand: for tests. It keeps encoded bytes, so what it gives back went through
//! the codec, and a reopened log is what a new process would find.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    chain::stream_hash,
    codec::{Decoder, Envelope, FORMAT},
    id::CommandId,
    log::{Append, AppendError, Appended, EventLog, Events, Hash, ReadError, RecordedEvent, Stored},
    number::{Position, Sequence},
    prepare::Prepared,
    stream::StreamId,
};

/// What an append meets, when a test asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies before the append is durable.
    CrashBefore,
    /// The process dies after the append is durable and before anyone hears of it.
    CrashAfter,
    /// The append is answered `Unknown` and is not there.
    UnknownNotWritten,
    /// The append is answered `Unknown` and is there.
    UnknownWritten,
    /// The append is refused as `Unavailable`.
    Unavailable,
    /// The append is answered `Conflict` on its first stream, as if another writer had been there.
    Conflict,
}

/// What outlives a process.
#[derive(Default)]
struct Disk {
    /// Envelope and hash, by position from 1.
    frames: Vec<(Vec<u8>, Hash)>,
    damaged: BTreeSet<Position>,
    streams: HashMap<StreamId, Vec<Position>>,
    appends: HashMap<CommandId, (Stored, [u8; 32])>,
    /// Appends asked so far, over all processes, and what waits for which of them.
    asked: u64,
    faults: BTreeMap<u64, Fault>,
}

/// The log in memory: one process over bytes that outlive it. See [`reopen`](Self::reopen).
pub struct MemoryLog {
    disk: Arc<Mutex<Disk>>,
    process: Arc<Process>,
}

/// What dies with a process.
struct Process {
    dead: AtomicBool,
    closed: AtomicBool,
    head: watch::Sender<Position>,
    /// Told when followers must end.
    ended: watch::Sender<bool>,
}

impl Default for MemoryLog {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::over(Arc::default())
    }

    fn over(disk: Arc<Mutex<Disk>>) -> Self {
        let head = Position(disk.lock().frames.len() as u64);
        let process = Process {
            dead: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            head: watch::Sender::new(head),
            ended: watch::Sender::new(false),
        };
        Self { disk, process: Arc::new(process) }
    }

    /// A new process over the same bytes. The old one is dead from here on.
    #[must_use]
    pub fn reopen(&self) -> Self {
        self.crash();
        Self::over(Arc::clone(&self.disk))
    }

    /// Another handle of this same process.
    #[must_use]
    pub fn share(&self) -> Self {
        Self { disk: Arc::clone(&self.disk), process: Arc::clone(&self.process) }
    }

    /// Ends this process at once: every later call fails, followers end, the bytes stay.
    pub fn crash(&self) {
        self.process.dead.store(true, Ordering::SeqCst);
        self.process.ended.send_replace(true);
    }

    /// Whether a fault (or [`crash`](Self::crash)) has ended this process.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.process.dead.load(Ordering::SeqCst)
    }

    /// Lets the append number `nth` from now (1 = the next) meet this fault, whichever process asks it.
    pub fn fail_append(&self, nth: u64, fault: Fault) {
        let mut disk = self.disk.lock();
        let at = disk.asked + nth;
        disk.faults.insert(at, fault);
    }

    /// Damages the event at this position.
    pub fn damage(&self, position: Position) {
        self.disk.lock().damaged.insert(position);
    }

    /// How many appends were asked so far, refused ones too: the upper bound of a crash test's loop.
    #[must_use]
    pub fn appends_asked(&self) -> u64 {
        self.disk.lock().asked
    }

    fn append_now(&self, append: &Append) -> Result<Appended, AppendError> {
        self.check_writable()?;
        let prepared = Prepared::new(append)?;
        let mut disk = self.disk.lock();
        disk.asked += 1;
        let asked = disk.asked;
        match disk.faults.remove(&asked) {
            None => disk.append(&prepared).inspect(|_| self.publish(&disk)),
            Some(Fault::CrashBefore) => {
                self.crash();
                Err(AppendError::Unknown)
            }
            Some(Fault::CrashAfter) => {
                let _ = disk.append(&prepared)?;
                self.crash();
                Err(AppendError::Unknown)
            }
            Some(Fault::UnknownNotWritten) => Err(AppendError::Unknown),
            Some(Fault::UnknownWritten) => {
                let _ = disk.append(&prepared)?;
                self.publish(&disk);
                Err(AppendError::Unknown)
            }
            Some(Fault::Unavailable) => Err(AppendError::Unavailable("a test asked for this fault".into())),
            Some(Fault::Conflict) => {
                let stream = prepared.parts[0].stream.clone();
                let actual = disk.head(&stream);
                Ok(Appended::Conflict { stream, actual })
            }
        }
    }

    fn publish(&self, disk: &Disk) {
        let head = Position(disk.frames.len() as u64);
        self.process.head.send_if_modified(|last| std::mem::replace(last, head) != head);
    }

    fn check_alive(&self) -> Result<(), ReadError> {
        check_alive(&self.process)
    }

    /// What there is from `from` on, then, where asked, what comes; `stream` narrows it.
    fn events(&self, stream: Option<StreamId>, from: u64, live: bool) -> Events {
        let (head, ended) = (self.process.head.subscribe(), self.process.ended.subscribe());
        let cursor = Cursor {
            disk: Arc::clone(&self.disk),
            process: Arc::clone(&self.process),
            until: if live { Position(u64::MAX) } else { *head.borrow() },
            stream,
            next: from.max(1),
            live,
            head,
            ended,
        };
        stream::unfold(Some(cursor), |cursor| async move {
            let mut cursor = cursor?;
            match cursor.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(cursor))),
                Ok(None) => None,
                Err(error @ ReadError::Damaged { last: Some(_), .. }) => Some((Err(error), Some(cursor))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }
}

fn check_alive(process: &Process) -> Result<(), ReadError> {
    if process.dead.load(Ordering::SeqCst) {
        return Err(ReadError::Io(Arc::new(std::io::Error::other("this process of the log is dead"))));
    }
    Ok(())
}

struct Cursor {
    disk: Arc<Mutex<Disk>>,
    process: Arc<Process>,
    stream: Option<StreamId>,
    /// A sequence where `stream` is given, else a position.
    next: u64,
    until: Position,
    live: bool,
    head: watch::Receiver<Position>,
    ended: watch::Receiver<bool>,
}

impl Cursor {
    async fn next(&mut self) -> Result<Option<RecordedEvent>, ReadError> {
        loop {
            let ended = *self.ended.borrow_and_update();
            check_alive(&self.process).or_else(|dead| if self.live { Ok(()) } else { Err(dead) })?;
            let _ = self.head.borrow_and_update();
            let read = self.disk.lock().read(self.stream.as_ref(), self.next, self.until);
            if !matches!(read, Ok(None)) {
                self.next += 1;
                return read;
            }
            if !self.live || ended {
                return Ok(None);
            }
            tokio::select! {
                _ = self.head.changed() => {}
                _ = self.ended.changed() => {}
            }
        }
    }
}

impl Disk {
    fn head(&self, stream: &StreamId) -> Sequence {
        Sequence(self.streams.get(stream).map_or(0, |positions| positions.len() as u64))
    }

    fn append(&mut self, prepared: &Prepared) -> Result<Appended, AppendError> {
        let meaning = prepared.meaning();
        if let Some((stored, known)) = self.appends.get(&prepared.id) {
            return Ok(Appended::Duplicate { stored: *stored, same: *known == meaning });
        }
        for part in &prepared.parts {
            let actual = self.head(&part.stream);
            if !part.expected.is_met_by(actual) {
                return Ok(Appended::Conflict { stream: part.stream.clone(), actual });
            }
        }
        let first = Position(self.frames.len() as u64 + 1);
        for part in &prepared.parts {
            for event in &part.events {
                let position = Position(self.frames.len() as u64 + 1);
                let envelope = Envelope {
                    format: FORMAT,
                    position,
                    stream: &part.key,
                    sequence: self.head(&part.stream).next(),
                    command: prepared.id,
                    metadata: &prepared.metadata,
                    kind: &event.kind,
                    schema: event.schema,
                    payload: &event.payload,
                };
                let mut bytes = Vec::new();
                envelope
                    .write(&mut bytes)
                    .map_err(|_| AppendError::Malformed("an envelope cannot be encoded"))?;
                let positions = self.streams.entry(part.stream.clone()).or_default();
                let previous = positions.last().map_or(Hash::default(), |last| self.frames[index(*last)].1);
                positions.push(position);
                let hash = stream_hash(previous, &bytes);
                self.frames.push((bytes, hash));
            }
        }
        let stored = Stored { first, last: Position(self.frames.len() as u64) };
        self.appends.insert(prepared.id, (stored, meaning));
        Ok(Appended::Stored(stored))
    }

    fn read(
        &self,
        stream: Option<&StreamId>,
        next: u64,
        until: Position,
    ) -> Result<Option<RecordedEvent>, ReadError> {
        let position = match stream {
            None => Some(Position(next)),
            Some(stream) => {
                self.streams.get(stream).and_then(|positions| positions.get(index(Position(next))).copied())
            }
        };
        let Some(position) = position.filter(|position| *position <= until) else { return Ok(None) };
        let Some((bytes, hash)) = self.frames.get(index(position)) else { return Ok(None) };
        if self.damaged.contains(&position) {
            let last = stream.is_none().then_some(position);
            return Err(ReadError::Damaged { position, last, what: "a test damaged it".into() });
        }
        let damaged = |error: crate::codec::CodecError| ReadError::Damaged {
            position,
            last: None,
            what: error.to_string().into(),
        };
        let envelope = Envelope::read(bytes).map_err(damaged)?;
        Decoder::default().decode(&envelope, *hash).map(Some).map_err(damaged)
    }
}

/// Positions and sequences count from 1, places in a `Vec` from 0.
fn index(position: Position) -> usize {
    usize::try_from(position.0 - 1).expect("the log in memory is smaller than memory")
}

#[async_trait]
impl EventLog for MemoryLog {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.append_now(&append)
    }

    fn read_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        self.events(Some(stream.clone()), from.0, false)
    }

    fn read_all(&self, from: Position) -> Events {
        self.events(None, from.0, false)
    }

    fn follow(&self, from: Position) -> Events {
        self.events(None, from.0, true)
    }

    fn follow_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        self.events(Some(stream.clone()), from.0, true)
    }

    async fn find_append(&self, id: CommandId) -> Result<Option<Stored>, ReadError> {
        self.check_alive()?;
        Ok(self.disk.lock().appends.get(&id).map(|(stored, _)| *stored))
    }

    async fn stream_head(&self, stream: &StreamId) -> Result<Sequence, ReadError> {
        self.check_alive()?;
        Ok(self.disk.lock().head(stream))
    }

    fn durable_head(&self) -> watch::Receiver<Position> {
        self.process.head.subscribe()
    }

    fn check_writable(&self) -> Result<(), AppendError> {
        let refuse = |why: &str| Err(AppendError::Unavailable(why.into()));
        match (self.is_dead(), self.process.closed.load(Ordering::SeqCst)) {
            (true, _) => refuse("this process of the log is dead"),
            (false, true) => refuse("the log is closed"),
            (false, false) => Ok(()),
        }
    }

    /// As if every read had been done already.
    fn damaged_streams(&self) -> Vec<StreamId> {
        let disk = self.disk.lock();
        let is_damaged = |positions: &[Position]| positions.iter().any(|at| disk.damaged.contains(at));
        disk.streams.iter().filter(|(_, at)| is_damaged(at)).map(|(stream, _)| stream.clone()).collect()
    }

    async fn close(&self) {
        self.process.closed.store(true, Ordering::SeqCst);
        self.process.ended.send_replace(true);
    }
}
