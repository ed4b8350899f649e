//! Events as a server writes them: a task is queued with sealed args, started, completed with a small result.

use eventlog::{
    Append, Event, ExpectedSequence, Generation, Metadata, Part, Principal, Role, SpaceEvent, StreamId,
    Timestamp, TraceId,
    id::{BootId, CommandId, OperationId, SpaceId, TaskId, TokenId},
    redaction::Redactor,
    sealing::{Fingerprint, KeyId, Sealed},
};
use uuid::Uuid;

/// One append of one `queued`.
pub(crate) fn queued(space: u64, id: u64) -> Append {
    append(space, id, vec![task_queued(id)])
}

/// One append of `count` whole tasks, three events each.
pub(crate) fn tasks(space: u64, id: u64, count: u64) -> Append {
    append(
        space,
        id,
        (id..id + count).flat_map(|n| [task_queued(n), task_started(n), task_completed(n)]).collect(),
    )
}

/// The id of an append.
pub(crate) fn command(id: u64) -> CommandId {
    CommandId::from_uuid(uuid(id))
}

/// Looks like a UUIDv7: time in front, the rest mixed.
fn uuid(n: u64) -> Uuid {
    Uuid::from_u64_pair(0x0193_7a2b_1c3d_7000 + (n >> 16), n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | (1 << 63))
}

fn append(space: u64, id: u64, events: Vec<Event>) -> Append {
    let metadata = Metadata {
        principal: Principal::Token {
            role: Role::RuntimeAgent,
            id: "agent-1".parse().expect("a name"),
            token: TokenId::from_uuid(uuid(1)),
        },
        workspace: Some("default".parse().expect("a name")),
        recorded_at: Timestamp(1_796_052_600_000_000),
        trace_id: TraceId(*uuid(id).as_bytes()),
        causation: None,
        boot: BootId::from_uuid(uuid(2)),
    };
    let stream = StreamId::Space(SpaceId::from_uuid(uuid(space)));
    let parts = vec![Part { stream, expected: ExpectedSequence::Any, events }];
    Append { id: command(id), metadata, parts }
}

fn task_queued(n: u64) -> Event {
    let key = KeyId { file: 1, slot: n };
    SpaceEvent::TaskQueued {
        task: TaskId::from_uuid(uuid(n)),
        operation: OperationId::from_uuid(uuid(n)),
        request_id: format!("request-{n}").parse().expect("a name"),
        capability: "fill".parse().expect("a name"),
        arg_keys: ["ref", "text"].map(|key| Redactor::new().text(key)).into(),
        fingerprint: Fingerprint([7; 32]),
        timeout_seconds: 60,
        sealed_args: Some(Sealed { key, nonce: vec![3; 24], ciphertext: vec![0xa7; 120] }),
    }
    .into()
}

fn task_started(n: u64) -> Event {
    let deadline = Timestamp(1_796_052_660_000_000);
    SpaceEvent::TaskStarted { task: TaskId::from_uuid(uuid(n)), generation: Generation(1), deadline }.into()
}

fn task_completed(n: u64) -> Event {
    let result = serde_json::json!({ "url": "https://example.org/checkout", "filled": true, "matched": 1 });
    SpaceEvent::TaskCompleted {
        task: TaskId::from_uuid(uuid(n)),
        result: Redactor::new().json(result),
        artifacts: Vec::new(),
    }
    .into()
}
