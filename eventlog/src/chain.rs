//! The two hash chains: one per stream, one over the whole log. They tell an accident or an edit from the original;
//! whoever can rewrite the whole folder can rewrite them too, which only a checkpoint kept elsewhere reveals.

use std::sync::LazyLock;

use crate::log::Hash;

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

/// The hash of the log up to an event: BLAKE3 over the one before it (zeros for the first) and the event's own hash.
/// The position needs no place of its own: it is in the envelope, and so in the event's hash. 64 bytes are one block.
pub(crate) fn global_hash(previous: Hash, event: Hash) -> Hash {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&previous.0);
    bytes[32..].copy_from_slice(&event.0);
    let mut hasher = GLOBAL_HASHER.clone();
    hasher.update(&bytes);
    Hash(*hasher.finalize().as_bytes())
}
