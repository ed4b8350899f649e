//! An append, checked and encoded where it is asked, so that the writer has only to number, hash and write.

use crate::{
    codec::{EncodedEvent, encode_event, encode_metadata},
    id::CommandId,
    log::{APPEND_EVENTS_MAX, Append, AppendError, EVENT_BYTES_MAX},
    number::ExpectedSequence,
    stream::StreamId,
};

/// An append whose events are bytes.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) id: CommandId,
    pub(crate) metadata: Vec<u8>,
    pub(crate) parts: Vec<PreparedPart>,
}

#[derive(Debug)]
pub(crate) struct PreparedPart {
    pub(crate) stream: StreamId,
    pub(crate) key: Vec<u8>,
    pub(crate) expected: ExpectedSequence,
    pub(crate) events: Vec<EncodedEvent>,
}

impl Prepared {
    /// Checks the limits and encodes.
    pub(crate) fn new(append: &Append) -> Result<Self, AppendError> {
        check_shape(append)?;
        let metadata = encode_metadata(&append.metadata)
            .map_err(|_| AppendError::Malformed("its metadata cannot be encoded"))?;
        let mut parts = Vec::with_capacity(append.parts.len());
        for part in &append.parts {
            let mut events = Vec::with_capacity(part.events.len());
            for event in &part.events {
                let encoded =
                    encode_event(event).map_err(|_| AppendError::Malformed("an event cannot be encoded"))?;
                if encoded.kind.len() + encoded.payload.len() + metadata.len() > EVENT_BYTES_MAX {
                    return Err(AppendError::Malformed("an event is longer than EVENT_BYTES_MAX"));
                }
                events.push(encoded);
            }
            let key = part.stream.to_bytes();
            parts.push(PreparedPart { stream: part.stream.clone(), key, expected: part.expected, events });
        }
        Ok(Self { id: append.id, metadata, parts })
    }

    pub(crate) fn event_count(&self) -> usize {
        self.parts.iter().map(|part| part.events.len()).sum()
    }

    /// About how many bytes of the log it will take; an upper bound.
    pub(crate) fn bytes(&self) -> usize {
        const AROUND_EACH: usize = 192;
        let of = |part: &PreparedPart| -> usize {
            let around = AROUND_EACH + part.key.len() + self.metadata.len();
            part.events.iter().map(|event| around + event.kind.len() + event.payload.len()).sum()
        };
        self.parts.iter().map(of).sum()
    }

    /// What it says, without when, by whom and expecting what: tells a repeat from another append under the same id.
    pub(crate) fn meaning(&self) -> [u8; 32] {
        let mut meaning = Meaning::default();
        for part in &self.parts {
            for event in &part.events {
                meaning.add(&part.key, &event.kind, event.schema, &event.payload);
            }
        }
        meaning.finish()
    }
}

/// Hashes what an append says, event by event, from what was asked or from what was stored.
#[derive(Default)]
pub(crate) struct Meaning(blake3::Hasher);

impl Meaning {
    pub(crate) fn add(&mut self, stream: &[u8], kind: &str, schema: u16, payload: &[u8]) {
        for field in [stream, kind.as_bytes(), &schema.to_le_bytes(), payload] {
            self.0.update(&(field.len() as u64).to_le_bytes());
            self.0.update(field);
        }
    }

    pub(crate) fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

fn check_shape(append: &Append) -> Result<(), AppendError> {
    let count: usize = append.parts.iter().map(|part| part.events.len()).sum();
    if append.parts.iter().any(|part| part.events.is_empty()) || append.parts.is_empty() {
        return Err(AppendError::Malformed("it has a part without an event, or no part"));
    }
    if count > APPEND_EVENTS_MAX {
        return Err(AppendError::Malformed("it has more than APPEND_EVENTS_MAX events"));
    }
    for (index, part) in append.parts.iter().enumerate() {
        if append.parts[..index].iter().any(|earlier| earlier.stream == part.stream) {
            return Err(AppendError::Malformed("it names a stream twice"));
        }
        let foreign = |kind| kind != part.stream.kind();
        if part.events.iter().filter_map(crate::Event::stream_kind).any(foreign) {
            return Err(AppendError::Malformed("an event belongs to another kind of stream"));
        }
    }
    Ok(())
}
