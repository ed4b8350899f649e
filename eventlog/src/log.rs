//! The contract of the log: append, read, follow. Every implementation keeps the promises of `conformance.rs`.

use std::{fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::sync::watch;

use crate::{
    event::Event,
    id::CommandId,
    metadata::Metadata,
    number::{ExpectedSequence, Position, Sequence},
    stream::StreamId,
    verify::DurableEnd,
};

/// At most so many events in one append.
pub const APPEND_EVENTS_MAX: usize = 256;
/// At most so many bytes of one encoded event, payload and metadata together. The longest are the sealed args of a task:
/// a text of 100 000 characters, each at most six bytes as JSON, and its envelope.
pub const EVENT_BYTES_MAX: usize = 768 * 1024;

/// One append: all of its parts or none.
#[derive(Debug, Clone)]
pub struct Append {
    /// Makes the append idempotent: the same id again is answered with the first result.
    pub id: CommandId,
    /// Who, when and why; the same for every event of the append.
    pub metadata: Metadata,
    /// What goes where. A stream stands in at most one part. Positions follow the order of the parts.
    pub parts: Vec<Part>,
}

/// The events of one stream in an append.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which stream.
    pub stream: StreamId,
    /// What the writer believes its last sequence to be.
    pub expected: ExpectedSequence,
    /// The facts; at least one.
    pub events: Vec<Event>,
}

/// The positions of an append, first and last. They are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Of its first event.
    pub first: Position,
    /// Of its last event.
    pub last: Position,
}

/// What an append came to. All of these are certain; see [`AppendError`] for what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// Written and durable.
    Stored(Stored),
    /// This id was appended before; nothing was written now.
    Duplicate {
        /// Where the first one lies.
        stored: Stored,
        /// Whether it had the same parts; `false` means that an id was used twice for different things.
        same: bool,
    },
    /// A stream was not where the writer believed; nothing was written.
    Conflict {
        /// Which stream.
        stream: StreamId,
        /// Its last sequence; 0 = it does not exist.
        actual: Sequence,
    },
}

/// Why an append has no certain answer, or was not tried.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// The write or the sync failed, or the log closed meanwhile: it may be durable or not. Stop, rehydrate, and
    /// repeat with the same id; that settles it.
    #[error("the outcome of the append is unknown")]
    Unknown,
    /// The log takes no more writes (failed disk, poisoned, closing); this append was certainly not written.
    #[error("the log is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// The append breaks a limit ([`APPEND_EVENTS_MAX`], [`EVENT_BYTES_MAX`]) or names a stream twice: a bug of the caller.
    #[error("the append is malformed: {0}")]
    Malformed(&'static str),
}

/// Why a read stopped.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// What lies there is not what was written. The streams that it belonged to can not be read beyond it
    /// ([`EventLog::damaged_streams`]); the others can.
    #[error("the log is damaged at position {position}: {what}")]
    Damaged {
        /// The first position that cannot be read; 0 where only the place in a stream is known.
        position: Position,
        /// The last one: a read of the whole log goes on behind it, after this error. `None`: the read ends here.
        last: Option<Position>,
        /// What is wrong with it.
        what: Arc<str>,
    },
    /// The disk refused.
    #[error("the log could not be read")]
    Io(#[source] Arc<std::io::Error>),
}

/// An event as read back: with its two places, its metadata and its chain hash.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// Place in the whole log.
    pub position: Position,
    /// Its stream.
    pub stream: StreamId,
    /// Place in the stream.
    pub sequence: Sequence,
    /// The fact, in today's shape.
    pub event: Event,
    /// Who, when and why.
    pub metadata: Arc<Metadata>,
    /// The append that wrote it.
    pub command: CommandId,
    /// BLAKE3 over the stream's previous hash and this event's stored bytes.
    pub hash: Hash,
}

/// A BLAKE3 hash, printed as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Recorded events in rising order, until the end or the first error.
pub type Events = BoxStream<'static, Result<RecordedEvent, ReadError>>;

/// Where a log lies on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// The folder of its segments.
    pub folder: PathBuf,
    /// The end of what is durable.
    pub end: DurableEnd,
}

/// The log. Cheap to share behind an [`Arc`]; every method may be called from anywhere at once.
#[async_trait]
pub trait EventLog: Send + Sync + 'static {
    /// Appends all parts or none, and answers once they are durable.
    ///
    /// # Errors
    /// [`AppendError`]: only `Unknown` leaves open whether the events are there. Dropping the future leaves it open too.
    async fn append(&self, append: Append) -> Result<Appended, AppendError>;

    /// The events of `stream` with a sequence of at least `from`, up to what is durable now.
    fn read_stream(&self, stream: &StreamId, from: Sequence) -> Events;

    /// All events with a position of at least `from`, up to what is durable now. Where some are damaged it tells that in
    /// their place, once, and goes on behind them.
    fn read_all(&self, from: Position) -> Events;

    /// As [`read_all`](Self::read_all), then waits for more; never a gap, never a repeat. Ends when the log closes.
    fn follow(&self, from: Position) -> Events;

    /// As [`read_stream`](Self::read_stream), then waits for more; never a gap, never a repeat. Ends when the log closes.
    fn follow_stream(&self, stream: &StreamId, from: Sequence) -> Events;

    /// Where the append of this id lies, if there was one and it is durable.
    ///
    /// Ids may be derived from what a caller sent (a hash of its idempotency key), so this is how a repeat is found.
    async fn find_append(&self, id: CommandId) -> Result<Option<Stored>, ReadError>;

    /// The last durable sequence of `stream`; 0 = it does not exist.
    async fn stream_head(&self, stream: &StreamId) -> Result<Sequence, ReadError>;

    /// The last durable position, and a notice of each change.
    fn durable_head(&self) -> watch::Receiver<Position>;

    /// Whether the log takes writes, or why it does not.
    ///
    /// # Errors
    /// [`AppendError::Unavailable`] with the reason.
    fn check_writable(&self) -> Result<(), AppendError>;

    /// The streams that reads have met damage in, since the log was opened; whoever has read the whole log knows them
    /// all. What is known of them is not the whole, so nothing may be decided on it.
    fn damaged_streams(&self) -> Vec<StreamId> {
        Vec::new()
    }

    /// Whether a read has met damage in this stream.
    fn is_damaged(&self, stream: &StreamId) -> bool {
        self.damaged_streams().contains(stream)
    }

    /// Where the log lies, if it lies on a disk, and where it ends there: for those who read the files themselves.
    fn on_disk(&self) -> Option<OnDisk> {
        None
    }

    /// Stops taking appends, finishes those taken, and syncs. Later appends answer `Unavailable`.
    async fn close(&self);
}
