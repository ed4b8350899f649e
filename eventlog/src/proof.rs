//! That one event stands in the log that a checkpoint speaks of: a small file that is checked with the public key alone.
//!
//! It holds the event as stored (its envelope, and the hash before it in its stream), the path from its leaf to the root of
//! the tree, and the signed checkpoint with that root. `docs/proofs.md` describes each field and the steps of the check.

use std::{ops::ControlFlow, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use crate::{
    chain::stream_hash,
    checkpoint::{Checkpoint, CheckpointError, NOTE_BYTES_MAX, PublicKey},
    codec::{CodecError, Decoder, Envelope},
    log::{EVENT_BYTES_MAX, Hash, ReadError, RecordedEvent},
    merkle::{PATH_HASHES_MAX, PathBuilder, TreeHash, root_of_path},
    number::{Position, Sequence},
    segment::{RawPlace, each_raw, raw::missing},
    stream::StreamId,
};

/// What the first field says.
const FORMAT: &str = "browserspace proof 1";
/// The longest proof that is read: the longest event as base64, and what surrounds it.
pub const PROOF_BYTES_MAX: usize = EVENT_BYTES_MAX / 3 * 4 + 16 * 1024;

/// Why a proof could not be made, or proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The log can not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The checkpoint speaks of fewer events than that: make another one.
    #[error("the checkpoint ends at position {size}, before position {position}")]
    NotCovered {
        /// Of the event.
        position: Position,
        /// Of the checkpoint.
        size: Position,
    },
    /// Up to the checkpoint, the stream has no such event.
    #[error(
        "up to position {size}, where the checkpoint ends, {stream} has no event with sequence {sequence}"
    )]
    NoSuchEvent {
        /// Of which stream.
        stream: StreamId,
        /// Which of its events.
        sequence: Sequence,
        /// Of the checkpoint.
        size: Position,
    },
    /// The log does not lead to the checkpoint's root: it is not the log that was signed.
    #[error("the log up to position {0} is not the one that the checkpoint speaks of")]
    OtherLog(Position),
    /// The text is no proof.
    #[error("it is not a proof: {0}")]
    Form(&'static str),
    /// Its checkpoint is not good.
    #[error("its checkpoint: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// The event in it can not be read by this program.
    #[error("its event can not be read")]
    Event(#[from] CodecError),
    /// What it says of the event is not what the event says of itself.
    #[error("its {0} is not the event's")]
    Field(&'static str),
    /// The path does not lead to the root that was signed: the event does not stand in that log, in that place.
    #[error("its path does not lead to the root of its checkpoint")]
    Path,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    format: String,
    position: u64,
    stream: String,
    sequence: u64,
    kind: String,
    recorded_at: String,
    previous: String,
    envelope: String,
    hash: String,
    path: Vec<String>,
    checkpoint: String,
}

/// What a proof proves.
#[derive(Debug, Clone, PartialEq)]
pub struct Proved {
    /// The event.
    pub event: RecordedEvent,
    /// That it stood in the log by then.
    pub checkpoint: Checkpoint,
}

/// Which event is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// By its place in the log.
    Position(Position),
    /// By its place in its stream.
    Sequence(StreamId, Sequence),
}

impl Proof {
    /// Proves an event of the log in this folder by a checkpoint of it. Reads the log up to the checkpoint once.
    ///
    /// # Errors
    /// [`ProofError`]: nothing was proved.
    pub fn make(
        folder: &Path,
        which: &Which,
        note: &str,
        checkpoint: &Checkpoint,
    ) -> Result<Self, ProofError> {
        let size = checkpoint.size;
        let found = Found::look(folder, which, size)?;
        let index = found.position.0 - 1;
        let mut path = PathBuilder::new(index, size.0).ok_or_else(|| missing(found.position))?;
        each_raw(folder, &mut RawPlace::default(), size, &mut |event| {
            path.push(event.hash);
            ControlFlow::Continue(())
        })?;
        let path = path.finish().ok_or_else(|| missing(size))?;
        if root_of_path(found.hash, index, size.0, &path) != Some(checkpoint.root) {
            return Err(ProofError::OtherLog(size));
        }
        let envelope = Envelope::read(&found.envelope)?;
        let event = Decoder::default().decode(&envelope, found.hash)?;
        Ok(Self {
            format: FORMAT.to_owned(),
            position: event.position.0,
            stream: event.stream.to_string(),
            sequence: event.sequence.0,
            kind: envelope.kind.to_owned(),
            recorded_at: event.metadata.recorded_at.to_rfc3339(),
            previous: found.previous.to_string(),
            envelope: BASE64_STANDARD.encode(&found.envelope),
            hash: found.hash.to_string(),
            path: path.iter().map(|hash| BASE64_STANDARD.encode(hash.0)).collect(),
            checkpoint: note.to_owned(),
        })
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a proof is plain text") + "\n"
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// [`ProofError::Form`].
    pub fn of_text(text: &str) -> Result<Self, ProofError> {
        if text.len() > PROOF_BYTES_MAX {
            return Err(ProofError::Form("it is too long"));
        }
        let proof: Self =
            serde_json::from_str(text).map_err(|_| ProofError::Form("it has not the fields of one"))?;
        let fits = proof.path.len() <= PATH_HASHES_MAX && proof.checkpoint.len() <= NOTE_BYTES_MAX;
        if proof.format != FORMAT || !fits {
            return Err(ProofError::Form("it is of a format that this program does not know"));
        }
        Ok(proof)
    }

    /// Checks it with nothing but the public key of the log.
    ///
    /// # Errors
    /// [`ProofError`]: it proves nothing.
    pub fn check(&self, key: &PublicKey) -> Result<Proved, ProofError> {
        let checkpoint = key.check(&self.checkpoint)?;
        let bytes = BASE64_STANDARD.decode(&self.envelope).map_err(|_| ProofError::Form("its envelope"))?;
        let previous = hash_of_hex(&self.previous).ok_or(ProofError::Form("its previous hash"))?;
        let path: Option<Vec<TreeHash>> = self.path.iter().map(|hash| hash_of_base64(hash)).collect();
        let path = path.ok_or(ProofError::Form("its path"))?;
        let envelope = Envelope::read(&bytes)?;
        let hash = stream_hash(Hash(previous), &bytes);
        let event = Decoder::default().decode(&envelope, hash)?;
        let says = [
            ("position", self.position == event.position.0),
            ("stream", self.stream == event.stream.to_string()),
            ("sequence", self.sequence == event.sequence.0),
            ("kind", self.kind == envelope.kind),
            ("recorded_at", self.recorded_at == event.metadata.recorded_at.to_rfc3339()),
            ("hash", self.hash == hash.to_string()),
        ];
        if let Some((field, _)) = says.into_iter().find(|(_, same)| !same) {
            return Err(ProofError::Field(field));
        }
        let index = event.position.0.checked_sub(1).ok_or(ProofError::Path)?;
        if root_of_path(hash, index, checkpoint.size.0, &path) != Some(checkpoint.root) {
            return Err(ProofError::Path);
        }
        Ok(Proved { event, checkpoint })
    }
}

/// The event that is meant, and the hash before it in its stream.
struct Found {
    position: Position,
    envelope: Vec<u8>,
    hash: Hash,
    previous: Hash,
}

impl Found {
    fn look(folder: &Path, which: &Which, size: Position) -> Result<Self, ProofError> {
        let stream = match which {
            Which::Position(position) if *position > size => {
                return Err(ProofError::NotCovered { position: *position, size });
            }
            Which::Position(position) => stream_at(folder, *position)?,
            Which::Sequence(stream, _) => stream.to_bytes(),
        };
        let (mut found, mut previous) = (None, Hash::default());
        each_raw(folder, &mut RawPlace::default(), size, &mut |event| {
            if event.stream != stream {
                return ControlFlow::Continue(());
            }
            let is_meant = match which {
                Which::Position(position) => event.position == *position,
                Which::Sequence(_, sequence) => event.sequence == *sequence,
            };
            if !is_meant {
                previous = event.hash;
                return ControlFlow::Continue(());
            }
            let (position, envelope, hash) = (event.position, event.envelope.to_vec(), event.hash);
            found = Some(Self { position, envelope, hash, previous });
            ControlFlow::Break(())
        })?;
        found.ok_or_else(|| match which {
            Which::Position(position) => ProofError::NotCovered { position: *position, size },
            Which::Sequence(stream, sequence) => {
                ProofError::NoSuchEvent { stream: stream.clone(), sequence: *sequence, size }
            }
        })
    }
}

fn stream_at(folder: &Path, position: Position) -> Result<Vec<u8>, ProofError> {
    let mut stream = Vec::new();
    each_raw(folder, &mut RawPlace::default(), position, &mut |event| {
        if event.position == position {
            event.stream.clone_into(&mut stream);
        }
        ControlFlow::Continue(())
    })?;
    if stream.is_empty() { Err(missing(position).into()) } else { Ok(stream) }
}

fn hash_of_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}

fn hash_of_base64(text: &str) -> Option<TreeHash> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok().map(TreeHash)
}
