//! Small events, ids and appends with nothing random in them: for tests of this and other crates.

use uuid::Uuid;

use crate::{
    event::{Event, InstanceEvent, SpaceEvent},
    id::{BootId, CommandId, InstanceId, SpaceId},
    log::{Append, Part},
    metadata::{Metadata, Principal, Timestamp, TraceId},
    number::{ExpectedSequence, Generation},
    stream::StreamId,
};

/// The stream of the `n`-th Space.
#[must_use]
pub fn space(n: u64) -> StreamId {
    StreamId::Space(SpaceId::from_uuid(Uuid::from_u64_pair(1, n)))
}

/// The stream of the `n`-th instance.
#[must_use]
pub fn instance(n: u64) -> StreamId {
    StreamId::Instance(InstanceId::from_uuid(Uuid::from_u64_pair(2, n)))
}

/// The `n`-th command id.
#[must_use]
pub fn command(n: u64) -> CommandId {
    CommandId::from_uuid(Uuid::from_u64_pair(3, n))
}

/// An event for a Space's stream that can be told from others by its number.
#[must_use]
pub fn recovered(n: u64) -> Event {
    SpaceEvent::Recovered { generation: Generation(n) }.into()
}

/// An event for an instance's stream that can be told from others by its number.
#[must_use]
pub fn ready(n: u64) -> Event {
    InstanceEvent::RuntimeReady { generation: Generation(n) }.into()
}

/// Metadata of the server itself, `seconds` after the epoch.
#[must_use]
pub fn metadata(seconds: i64) -> Metadata {
    Metadata {
        principal: Principal::System,
        workspace: None,
        recorded_at: Timestamp(seconds * 1_000_000),
        trace_id: TraceId([9; 16]),
        causation: None,
        boot: BootId::from_uuid(Uuid::from_u64_pair(4, 1)),
    }
}

/// A part of an append.
#[must_use]
pub fn part(stream: StreamId, expected: ExpectedSequence, events: Vec<Event>) -> Part {
    Part { stream, expected, events }
}

/// An append of one part, whatever the stream's sequence.
#[must_use]
pub fn append(id: CommandId, stream: StreamId, events: Vec<Event>) -> Append {
    Append { id, metadata: metadata(1), parts: vec![part(stream, ExpectedSequence::Any, events)] }
}
