//! The two hash chains: one per stream, one over the whole log. They tell an accident or an edit from the original;
//! whoever can rewrite the whole folder can rewrite them too, which only a checkpoint kept elsewhere reveals.

use std::sync::LazyLock;

use crate::{log::Hash, number::Position};

/// A hasher keyed with our context, cloned for each event: deriving the key costs more than a short hash.
static STREAM_HASHER: LazyLock<blake3::Hasher> =
    LazyLock::new(|| blake3::Hasher::new_derive_key("browserspace eventlog 1 stream chain"));
static GLOBAL_HASHER: LazyLock<blake3::Hasher> =
    LazyLock::new(|| blake3::Hasher::new_derive_key("browserspace eventlog 1 global chain"));

/// The hash of an event: BLAKE3 over the hash of the event before it in its stream (zeros for the first) and the
/// bytes of its envelope.
pub(crate) fn stream_hash(previous: Hash, envelope: &[u8]) -> Hash {
    let mut hasher = STREAM_HASHER.clone();
    hasher.update(&previous.0);
    hasher.update(envelope);
    Hash(*hasher.finalize().as_bytes())
}

/// The hash of the log up to an event: BLAKE3 over the one before it (zeros for the first), its position (u64,
/// little-endian) and its own hash.
pub(crate) fn global_hash(previous: Hash, position: Position, event: Hash) -> Hash {
    let mut bytes = [0; 72];
    bytes[..32].copy_from_slice(&previous.0);
    bytes[32..40].copy_from_slice(&position.0.to_le_bytes());
    bytes[40..].copy_from_slice(&event.0);
    let mut hasher = GLOBAL_HASHER.clone();
    hasher.update(&bytes);
    Hash(*hasher.finalize().as_bytes())
}
