//! Sealed args: encrypted in the log under a key that lies beside it and is destroyed when the task ends.

use serde::{Deserialize, Serialize};

/// Names a key of the key store: the key file of one boot, and a slot in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyId {
    /// The key file.
    pub file: u64,
    /// The slot, from 0.
    pub slot: u64,
}

/// Bytes sealed with XChaCha20-Poly1305 under the named key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Under which key.
    pub key: KeyId,
    /// The nonce, 24 bytes, random.
    #[serde(with = "serde_bytes")]
    pub nonce: Vec<u8>,
    /// Ciphertext and tag.
    #[serde(with = "serde_bytes")]
    pub ciphertext: Vec<u8>,
}

/// Keyed BLAKE3 of a capability and its args in canonical form: tells the same submit from another one, and gives
/// nothing away without the Space's fingerprint key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(#[serde(with = "serde_bytes")] pub [u8; 32]);
