//! One group commit in the making: appends that were accepted, as bytes ready to be written.

use std::collections::HashMap;

use crate::{
    chain::{global_hash, stream_hash},
    codec::{Envelope, FORMAT},
    id::CommandId,
    log::{AppendError, Hash, Stored},
    number::{Position, Sequence},
    prepare::Prepared,
    stream::StreamId,
};

use super::{
    frame::{Commit, FrameKind, begin_frame, end_frame},
    map::{Head, Heads, Noted},
};

/// What the writer decided on one append. It is told only once the batch is durable.
#[derive(Debug, Clone)]
pub(crate) enum Decision {
    Stored(Stored),
    Duplicate(Stored),
    Conflict { stream: StreamId, actual: Sequence },
}

/// Appends whose bytes are to be written together, and what they change.
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: Vec<Noted>,
    pub(crate) heads: Heads,
    commands: HashMap<CommandId, Stored>,
    first: Position,
    pub(crate) global: Hash,
}

impl Batch {
    /// An empty batch that goes on after these.
    pub(crate) fn new(last: Position, global: Hash) -> Self {
        Self {
            bytes: Vec::new(),
            events: Vec::new(),
            heads: Heads::new(),
            commands: HashMap::new(),
            first: last.next(),
            global,
        }
    }

    /// Empties the batch and keeps its memory.
    pub(crate) fn restart(&mut self, last: Position, global: Hash) {
        self.bytes.clear();
        self.events.clear();
        self.heads.clear();
        self.commands.clear();
        self.first = last.next();
        self.global = global;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn last(&self) -> Position {
        Position(self.first.0 + self.events.len() as u64 - 1)
    }

    /// An append of the same batch with this id.
    pub(crate) fn command(&self, id: CommandId) -> Option<Stored> {
        self.commands.get(&id).copied()
    }

    /// Decides on an append that is no repeat, and takes it in if its expectations are met. `durable` tells the ends
    /// of streams before this batch.
    pub(crate) fn decide(&mut self, append: &Prepared, durable: &Heads) -> Result<Decision, AppendError> {
        for part in &append.parts {
            let actual = self.head(&part.stream, durable).sequence;
            if !part.expected.is_met_by(actual) && !crate::mutant::is("expectations_are_ignored") {
                return Ok(Decision::Conflict { stream: part.stream.clone(), actual });
            }
        }
        let first = self.last().next();
        for part in &append.parts {
            let mut head = self.head(&part.stream, durable);
            for event in &part.events {
                head.sequence = head.sequence.next();
                if crate::mutant::is("sequences_have_gaps") && head.sequence.0.is_multiple_of(5) {
                    head.sequence = head.sequence.next();
                }
                let envelope = Envelope {
                    format: FORMAT,
                    position: self.last().next(),
                    stream: &part.key,
                    sequence: head.sequence,
                    command: append.id,
                    metadata: &append.metadata,
                    kind: &event.kind,
                    schema: event.schema,
                    payload: &event.payload,
                };
                head.hash = self.write(&part.stream, &envelope, head.hash)?;
            }
            self.heads.insert(part.stream.clone(), head);
        }
        let stored = Stored { first, last: self.last() };
        self.commands.insert(append.id, stored);
        Ok(Decision::Stored(stored))
    }

    fn head(&self, stream: &StreamId, durable: &Heads) -> Head {
        self.heads.get(stream).or_else(|| durable.get(stream)).copied().unwrap_or_default()
    }

    fn write(
        &mut self,
        stream: &StreamId,
        envelope: &Envelope<'_>,
        previous: Hash,
    ) -> Result<Hash, AppendError> {
        let start = begin_frame(FrameKind::Event, &mut self.bytes);
        let body = self.bytes.len();
        envelope
            .write(&mut self.bytes)
            .map_err(|_| AppendError::Malformed("an envelope cannot be encoded"))?;
        let hash = stream_hash(previous, &self.bytes[body..]);
        self.bytes.extend_from_slice(&hash.0);
        end_frame(start, &mut self.bytes);
        self.global = global_hash(self.global, hash);
        self.events.push(Noted {
            stream: stream.clone(),
            sequence: envelope.sequence,
            hash,
            command: envelope.command,
            offset: start as u64,
        });
        Ok(hash)
    }

    /// Ends the batch with its commit frame.
    pub(crate) fn commit(&mut self) {
        let commit = Commit { first: self.first, last: self.last(), global: self.global };
        commit.write(&mut self.bytes);
    }
}
