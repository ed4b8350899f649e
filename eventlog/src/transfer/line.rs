//! The lines of an export: one JSON object each. `docs/log-format.md` lists them.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rmpv::Value as Packed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    codec::{CodecError, Envelope, decode_metadata},
    log::Hash,
    number::Position,
    stream::StreamId,
};

/// The version of the lines.
pub(super) const FORMAT: u32 = 1;

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    /// The first one.
    Log {
        format: u32,
        /// Whether it holds everything from the first event on, with segments and commits: only that can be imported.
        whole: bool,
        from: u64,
        to: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        stream: Option<String>,
    },
    /// A segment begins.
    Segment { first: u64, global: String },
    /// An event.
    Event(Box<EventLine>),
    /// The events since the last one are a batch.
    Commit { first: u64, last: u64, global: String },
    /// The segment ends.
    Footer { first: u64, last: u64, bytes: u64, global: String, content: String },
    /// The last one.
    End { events: u64, global: String },
}

/// An event: what it says for other tools, and its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventLine {
    pub(super) position: u64,
    pub(super) stream: String,
    pub(super) sequence: u64,
    pub(super) kind: String,
    pub(super) schema: u16,
    pub(super) recorded_at: String,
    pub(super) metadata: Value,
    pub(super) payload: Value,
    pub(super) command: String,
    pub(super) previous: String,
    pub(super) hash: String,
    pub(super) envelope: String,
}

impl EventLine {
    /// The line of an event as stored; `previous` is the hash before it in its stream.
    pub(super) fn new(bytes: &[u8], hash: Hash, previous: Hash) -> Result<Self, CodecError> {
        let envelope = Envelope::read(bytes)?;
        let metadata = decode_metadata(envelope.metadata)?;
        let payload = rmpv::decode::read_value(&mut &envelope.payload[..]);
        Ok(Self {
            position: envelope.position.0,
            stream: StreamId::from_bytes(envelope.stream)?.to_string(),
            sequence: envelope.sequence.0,
            kind: envelope.kind.to_owned(),
            schema: envelope.schema,
            recorded_at: metadata.recorded_at.to_rfc3339(),
            metadata: serde_json::to_value(&metadata).unwrap_or_default(),
            // One that is no MessagePack is in the envelope all the same.
            payload: payload.map(to_json).unwrap_or_default(),
            command: envelope.command.to_string(),
            previous: previous.to_string(),
            hash: hash.to_string(),
            envelope: BASE64_STANDARD.encode(bytes),
        })
    }
}

/// MessagePack as JSON; bytes become base64.
fn to_json(value: Packed) -> Value {
    match value {
        Packed::Nil | Packed::Ext(..) => Value::Null,
        Packed::Boolean(value) => value.into(),
        Packed::Integer(number) => {
            let signed = number.as_i64().map(Value::from);
            number.as_u64().map(Value::from).or(signed).unwrap_or_default()
        }
        Packed::F32(number) => f64::from(number).into(),
        Packed::F64(number) => number.into(),
        Packed::String(text) => text.into_str().map(Value::from).unwrap_or_default(),
        Packed::Binary(bytes) => BASE64_STANDARD.encode(bytes).into(),
        Packed::Array(values) => values.into_iter().map(to_json).collect(),
        Packed::Map(fields) => {
            let name = |name: Packed| match name {
                Packed::String(text) => text.into_str().unwrap_or_default(),
                other => other.to_string(),
            };
            let fields = fields.into_iter().map(|(key, value)| (name(key), to_json(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

/// A hash of a line.
pub(super) fn hash_of(text: &str) -> Option<Hash> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| Hash(bytes))
}

/// The bytes of an event line's envelope, and its hash.
pub(super) fn bytes_of(line: &EventLine) -> Option<(Vec<u8>, Hash)> {
    Some((BASE64_STANDARD.decode(&line.envelope).ok()?, hash_of(&line.hash)?))
}

/// The positions of a range that ends where the log ends.
pub(super) const fn is_whole(from: Position, has_stream: bool) -> bool {
    from.0 <= 1 && !has_stream
}
