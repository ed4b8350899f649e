//! What happened: the facts, their order, and the disk they live on. This crate knows nothing of the others.
//!
//! | module | holds |
//! |---|---|
//! | [`id`], [`number`] | names and numbers that are never mixed |
//! | [`event`] | the closed lists of facts |
//! | [`metadata`] | who, when and why |
//! | [`redaction`], [`sealing`] | what may enter the log, and what may leave it for ever |
//! | [`log`] | the contract: append, read, follow |
//! | [`codec`], `upcast` | event ⇄ bytes; yesterday's shapes → today's |
//! | [`segment`] | the log on disk: files, writer, recovery |
//! | [`verify`] | checks all of it, and says the first bad place |
//! | [`merkle`], [`tree`], [`checkpoint`], [`proof`] | the tree over the log, signed statements of it, proofs of one event |
//! | [`repair`] | for a broken log without a good copy |
//! | [`transfer`] | export, import, backup, restore |
//! | `index`, `reader` | what makes reading fast and can be rebuilt; reading, then following |
//! | `memory`, `conformance`, `fixture`, `sim_disk` | for tests (feature `testing`): a log with faults, one suite, small events, a disk that loses what was not synced |

mod chain;
pub mod checkpoint;
pub mod codec;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod event;
#[cfg(feature = "testing")]
pub mod fixture;
pub mod id;
mod index;
pub mod log;
#[cfg(feature = "testing")]
pub mod memory;
pub mod merkle;
pub mod metadata;
pub mod mutant;
pub mod number;
mod prepare;
pub mod proof;
mod reader;
pub mod redaction;
pub mod repair;
pub mod sealing;
pub mod segment;
#[cfg(feature = "testing")]
pub mod sim_disk;
pub mod stream;
pub mod transfer;
pub mod tree;
mod upcast;
pub mod verify;

pub use self::{
    event::{DownloadEvent, Event, InstanceEvent, ServerEvent, SpaceEvent, WorkspaceEvent},
    log::{Append, AppendError, Appended, EventLog, Hash, OnDisk, Part, ReadError, RecordedEvent, Stored},
    metadata::{Metadata, Principal, Role, Timestamp, TraceId},
    number::{ExpectedSequence, Fence, Generation, Position, Sequence},
    redaction::{Json, Redacted, Redactor, Sensitive},
    segment::{OpenError, OpenOptions, SegmentLog, SegmentReader},
    stream::{StreamId, StreamKind},
};
