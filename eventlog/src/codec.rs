//! Event ⇄ MessagePack, and the envelope around it. `docs/log-format.md` shows every byte.
//!
//! Two forms on purpose: the envelope is a positional array (small; its shape is tied to [`FORMAT`]), the payload is
//! a map with named fields, so that an event can gain a field without a new schema. Hashes and checksums are taken
//! over the stored bytes, never over a re-encoded event.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeSeed, Deserializer, MapAccess, Visitor, value::BorrowedStrDeserializer},
};

use crate::{
    event::{DownloadEvent, Event, InstanceEvent, ServerEvent, SpaceEvent, UnknownEvent, WorkspaceEvent},
    id::{BootId, CommandId, OwnerId, TokenId, WorkspaceId},
    log::{Hash, RecordedEvent},
    metadata::{Metadata, Principal, Role, Timestamp, TraceId},
    number::{Position, Sequence},
    stream::{StreamId, StreamKind},
    upcast::{Upcasts, schema_of},
};

/// The shape of the envelope; a reader refuses any other.
pub const FORMAT: u8 = 1;

/// Why bytes are not an event, or an event has no bytes.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The event could not be written.
    #[error("an event could not be encoded")]
    Encode(#[from] rmp_serde::encode::Error),
    /// The bytes are not of the shape that their kind and schema promise.
    #[error("an event could not be decoded")]
    Decode(#[from] rmp_serde::decode::Error),
    /// The envelope is of a format that this program does not know.
    #[error("envelope format {0} is not known to this program")]
    Format(u8),
    /// The envelope names no stream that exists in this program.
    #[error("the envelope names no stream")]
    Stream(#[from] crate::id::ParseIdError),
    /// An old event could not be brought into today's shape.
    #[error("event {kind} of schema {schema} could not be upcast: {what}")]
    Upcast {
        /// Its kind.
        kind: String,
        /// Its schema, as recorded.
        schema: u16,
        /// What was wrong.
        what: Cow<'static, str>,
    },
}

/// An event as stored: its kind, its schema and its payload (a MessagePack map with named fields).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedEvent {
    /// The stable name of its kind.
    pub kind: Cow<'static, str>,
    /// Which shape the payload has.
    pub schema: u16,
    /// The fields.
    pub payload: Vec<u8>,
}

/// Encodes an event in today's shape; an unknown one stays as it was recorded.
///
/// # Errors
/// [`CodecError::Encode`]: a field cannot be written; a bug of the event's type.
pub fn encode_event(event: &Event) -> Result<EncodedEvent, CodecError> {
    let (kind, tagged) = match event {
        Event::Space(event) => (event.kind(), to_named(event)?),
        Event::Instance(event) => (event.kind(), to_named(event)?),
        Event::Workspace(event) => (event.kind(), to_named(event)?),
        Event::Server(event) => (event.kind(), to_named(event)?),
        Event::Download(event) => (event.kind(), to_named(event)?),
        Event::Unknown(event) => {
            return Ok(EncodedEvent {
                kind: event.kind.clone().into(),
                schema: event.schema,
                payload: event.payload.to_vec(),
            });
        }
    };
    let stream = event.stream_kind().expect("only an unknown event has no stream kind");
    Ok(EncodedEvent { kind: kind.into(), schema: schema_of(stream, kind), payload: untag(kind, tagged)? })
}

/// Most payloads fit in this, so that writing one allocates once.
const PAYLOAD_CAPACITY_BYTES: usize = 512;

fn to_named(event: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::with_capacity(PAYLOAD_CAPACITY_BYTES);
    event.serialize(&mut rmp_serde::Serializer::new(&mut bytes).with_struct_map())?;
    Ok(bytes)
}

/// Cuts `{"kind": …, "payload":` off the front; the envelope holds the kind already.
fn untag(kind: &str, mut tagged: Vec<u8>) -> Result<Vec<u8>, CodecError> {
    let mut front = vec![0x82];
    rmp_serde::encode::write(&mut front, "kind")?;
    rmp_serde::encode::write(&mut front, kind)?;
    rmp_serde::encode::write(&mut front, "payload")?;
    assert!(tagged.starts_with(&front), "the events macro writes the tag, then the content");
    tagged.drain(..front.len());
    Ok(tagged)
}

/// Decodes an event of a stream of this kind, upcast to today's shape.
///
/// A kind or schema that this program does not know becomes [`Event::Unknown`] and keeps its bytes.
///
/// # Errors
/// [`CodecError`]: the payload is not what its kind and schema promise.
pub fn decode_event(
    stream: StreamKind,
    kind: &str,
    schema: u16,
    payload: &[u8],
) -> Result<Event, CodecError> {
    decode_event_with(Upcasts::today(), stream, kind, schema, payload)
}

pub(crate) fn decode_event_with(
    upcasts: Upcasts,
    stream: StreamKind,
    kind: &str,
    schema: u16,
    payload: &[u8],
) -> Result<Event, CodecError> {
    let known = match stream {
        StreamKind::Space => SpaceEvent::KINDS,
        StreamKind::Instance => InstanceEvent::KINDS,
        StreamKind::Workspace => WorkspaceEvent::KINDS,
        StreamKind::Server => ServerEvent::KINDS,
        StreamKind::Downloads => DownloadEvent::KINDS,
    };
    let today = upcasts.schema_of(stream, kind);
    if schema > today || !known.contains(&kind) {
        let payload = Bytes::copy_from_slice(payload);
        return Ok(Event::Unknown(UnknownEvent { kind: kind.to_owned(), schema, payload }));
    }
    let upcast;
    let payload = if schema == today {
        payload
    } else {
        upcast = upcasts.apply(stream, kind, schema, payload)?;
        &upcast
    };
    let tagged = Tagged { kind, payload };
    Ok(match stream {
        StreamKind::Space => Event::Space(SpaceEvent::deserialize(tagged)?),
        StreamKind::Instance => Event::Instance(InstanceEvent::deserialize(tagged)?),
        StreamKind::Workspace => Event::Workspace(WorkspaceEvent::deserialize(tagged)?),
        StreamKind::Server => Event::Server(ServerEvent::deserialize(tagged)?),
        StreamKind::Downloads => Event::Download(DownloadEvent::deserialize(tagged)?),
    })
}

/// Presents kind and payload, which lie apart in the envelope, as the map `{kind, payload}` without copying either.
struct Tagged<'a> {
    kind: &'a str,
    payload: &'a [u8],
}

impl<'de> Deserializer<'de> for Tagged<'de> {
    type Error = rmp_serde::decode::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(TaggedFields { kind: Some(self.kind), payload: Some(self.payload) })
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct TaggedFields<'a> {
    kind: Option<&'a str>,
    payload: Option<&'a [u8]>,
}

impl<'de> MapAccess<'de> for TaggedFields<'de> {
    type Error = rmp_serde::decode::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let key = match (self.kind, self.payload) {
            (Some(_), _) => "kind",
            (None, Some(_)) => "payload",
            (None, None) => return Ok(None),
        };
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        if let Some(kind) = self.kind.take() {
            return seed.deserialize(BorrowedStrDeserializer::new(kind));
        }
        let payload = self.payload.take().unwrap_or_default();
        seed.deserialize(&mut rmp_serde::Deserializer::from_read_ref(payload))
    }
}

/// The stored form of [`Metadata`]: a positional array, nil for what is absent.
#[derive(Serialize, Deserialize)]
struct StoredMetadata {
    recorded_at: Timestamp,
    boot: BootId,
    trace_id: TraceId,
    workspace: Option<WorkspaceId>,
    causation: Option<CommandId>,
    /// Nil for the server itself.
    token: Option<(Role, OwnerId, TokenId)>,
}

pub(crate) fn encode_metadata(metadata: &Metadata) -> Result<Vec<u8>, CodecError> {
    let stored = StoredMetadata {
        recorded_at: metadata.recorded_at,
        boot: metadata.boot,
        trace_id: metadata.trace_id,
        workspace: metadata.workspace.clone(),
        causation: metadata.causation,
        token: match &metadata.principal {
            Principal::System => None,
            Principal::Token { role, id, token } => Some((*role, id.clone(), *token)),
        },
    };
    Ok(rmp_serde::to_vec(&stored)?)
}

pub(crate) fn decode_metadata(bytes: &[u8]) -> Result<Metadata, CodecError> {
    let stored: StoredMetadata = rmp_serde::from_slice(bytes)?;
    Ok(Metadata {
        principal: stored.token.map_or(Principal::System, |(role, id, token)| Principal::Token {
            role,
            id,
            token,
        }),
        workspace: stored.workspace,
        recorded_at: stored.recorded_at,
        trace_id: stored.trace_id,
        causation: stored.causation,
        boot: stored.boot,
    })
}

/// What surrounds a payload: an array of nine, in this order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Envelope<'a> {
    pub(crate) format: u8,
    pub(crate) position: Position,
    /// [`StreamId::to_bytes`].
    #[serde(with = "serde_bytes")]
    pub(crate) stream: &'a [u8],
    pub(crate) sequence: Sequence,
    pub(crate) command: CommandId,
    #[serde(with = "serde_bytes")]
    pub(crate) metadata: &'a [u8],
    pub(crate) kind: &'a str,
    pub(crate) schema: u16,
    #[serde(with = "serde_bytes")]
    pub(crate) payload: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Appends the envelope's bytes to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        Ok(rmp_serde::encode::write(out, self)?)
    }

    /// Reads an envelope that fills `bytes`.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, CodecError> {
        // Another format may have another shape, so its number is read before anything else: array of nine, fixint.
        match bytes {
            [0x99, FORMAT, ..] => Ok(rmp_serde::from_slice(bytes)?),
            [_, format, ..] => Err(CodecError::Format(*format)),
            _ => Err(CodecError::Format(0)),
        }
    }
}

/// Turns envelopes into recorded events. Keeps the last metadata, which all events of an append share.
#[derive(Default)]
pub(crate) struct Decoder {
    last: Option<(Vec<u8>, Arc<Metadata>)>,
}

impl Decoder {
    pub(crate) fn decode(
        &mut self,
        envelope: &Envelope<'_>,
        hash: Hash,
    ) -> Result<RecordedEvent, CodecError> {
        let stream = StreamId::from_bytes(envelope.stream)?;
        let event = decode_event(stream.kind(), envelope.kind, envelope.schema, envelope.payload)?;
        Ok(RecordedEvent {
            position: envelope.position,
            sequence: envelope.sequence,
            event,
            metadata: self.metadata(envelope.metadata)?,
            command: envelope.command,
            hash,
            stream,
        })
    }

    fn metadata(&mut self, bytes: &[u8]) -> Result<Arc<Metadata>, CodecError> {
        if let Some((last, metadata)) = &self.last
            && last == bytes
        {
            return Ok(Arc::clone(metadata));
        }
        let metadata = Arc::new(decode_metadata(bytes)?);
        self.last = Some((bytes.to_vec(), Arc::clone(&metadata)));
        Ok(metadata)
    }
}
