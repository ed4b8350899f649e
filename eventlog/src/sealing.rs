//! Sealed args: encrypted in the log under a key that lies beside it and is destroyed when the task ends.
//!
//! ```text
//!            refill (background, ahead of need)          destroy (background, batched)
//!   random ─────────► key file, synced ─────► ready ─── take ───► held ─────────► zeros in the file, synced
//!                                             memory              memory             gone from memory at once
//! ```
//!
//! A task costs no sync of its own: its key was durable before the task came ([`KeyStore::take`] is memory only), and
//! destroying one is a write of zeros that joins those of the next [`DESTROY_DELAY`]. After a crash, opening the store
//! destroys whatever no live task needs, so a key outlives its task by at most one restart.
//!
//! What this promises: no key of an ended task in any file of ours. What it cannot: that a disk or a file system that
//! copies on write keeps no older version of a block; where that matters, the data folder belongs on an encrypted disk.

mod key_file;
#[cfg(test)]
mod tests;
mod worker;

use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use chacha20poly1305::{AeadInPlace, KeyInit, XChaCha20Poly1305, XNonce};
use parking_lot::Mutex;
use rand::RngCore;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};
use zeroize::Zeroizing;

use self::worker::{Order, Worker};
use crate::{
    id::{CapabilityName, TaskId},
    redaction::{Json, Sensitive},
    stream::StreamId,
};

/// How long destroyed keys may wait for others, so that they share one sync.
pub const DESTROY_DELAY: Duration = Duration::from_millis(50);
/// Below so many ready keys the next file is made.
const READY_KEYS_MIN: usize = key_file::SLOTS as usize / 2;
const NONCE_BYTES: usize = 24;

type Key = Zeroizing<[u8; key_file::KEY_BYTES]>;

/// Names a key of the key store: its key file, and a slot in it. Never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyId {
    /// The key file; a random number, so that a removed file's number does not come back.
    pub file: u64,
    /// The slot, from 0.
    pub slot: u64,
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}/{}", self.file, self.slot)
    }
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

/// Why a key could not be had or used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KeyError {
    /// It was destroyed, or its file is not the one that the log was written with. What it sealed is gone.
    #[error("key {0} is not there")]
    Missing(KeyId),
    /// The bytes do not open under their key: damaged, or sealed for another stream or task.
    #[error("sealed bytes do not open under key {0}")]
    DoesNotOpen(KeyId),
    /// A key file is not as it was written. Restore it, or move it away and accept that what it sealed is gone.
    #[error("key file {0:016x} is damaged")]
    Damaged(u64),
    /// The disk refused.
    #[error("the key store could not be read or written")]
    Io(#[source] Arc<io::Error>),
    /// Keys can be neither made nor destroyed at the moment, so none is given out. It is tried again each second.
    #[error("the key store is unavailable: {0}")]
    Unavailable(Arc<str>),
}

impl From<io::Error> for KeyError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// The keys of live tasks and Spaces. Dropping it destroys on disk what was told to be destroyed, then returns.
pub struct KeyStore {
    shared: Arc<Shared>,
    chance: Chance,
    /// `None` for a store in memory.
    worker: Option<(mpsc::Sender<Order>, thread::JoinHandle<()>)>,
}

/// Where keys and nonces come from.
enum Chance {
    /// The machine's randomness.
    Machine,
    /// A seed, so that a run can be repeated exactly.
    #[cfg(any(test, feature = "testing"))]
    Seeded(Box<Mutex<rand::rngs::StdRng>>),
}

impl Chance {
    fn fill(&self, bytes: &mut [u8]) {
        match self {
            Self::Machine => rand::rng().fill_bytes(bytes),
            #[cfg(any(test, feature = "testing"))]
            Self::Seeded(seeded) => seeded.lock().fill_bytes(bytes),
        }
    }
}

/// What the store and its worker share.
#[derive(Default)]
struct Shared {
    keys: Mutex<Keys>,
    changed: Notify,
}

#[derive(Default)]
struct Keys {
    ready: VecDeque<(KeyId, Key)>,
    held: HashMap<KeyId, Key>,
    refill_ordered: bool,
    failure: Option<Arc<str>>,
}

impl KeyStore {
    /// Opens the store in the folder `dir` (made if it is not there, 0700), destroys every key for which `live` says
    /// no, and makes the first keys of this boot. Blocks on the disk.
    ///
    /// `live` must say yes for the args key of each queued or running task and the fingerprint key of each open Space.
    /// Only one store may be open on a folder; the lock of the data folder sees to that.
    ///
    /// # Errors
    /// [`KeyError::Damaged`] and [`KeyError::Io`]: nothing was given out; the server should not start.
    pub fn open(dir: &Path, live: impl Fn(KeyId) -> bool) -> Result<Self, KeyError> {
        Self::open_remaking(dir, live, &[]).map(|(store, _)| store)
    }

    /// As [`open`](Self::open); where one of the `needed` keys is not there, a new one is made under its name, durably,
    /// and told. For fingerprint keys: under a new one a repeat of an older submit looks like another submit under its
    /// request id and is refused, so nothing runs twice, and all that is new works. An args key is not to be named here:
    /// what it sealed stays gone.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_remaking(
        dir: &Path,
        live: impl Fn(KeyId) -> bool,
        needed: &[KeyId],
    ) -> Result<(Self, Vec<KeyId>), KeyError> {
        let shared = Arc::new(Shared::default());
        let mut worker = Worker::open(dir, shared.clone(), live)?;
        let remade = worker.remake(needed)?;
        worker.refill()?;
        let (orders, inbox) = mpsc::channel();
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(move || worker.run(&inbox))?;
        Ok((Self { shared, chance: Chance::Machine, worker: Some((orders, thread)) }, remade))
    }

    /// A store without a disk, for tests: its keys are gone when it is dropped.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn in_memory() -> Self {
        Self { shared: Arc::default(), chance: Chance::Machine, worker: None }
    }

    /// As [`in_memory`](Self::in_memory), with keys and nonces that `seed` tells: what it seals is no secret, and the
    /// same each time.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let seeded = Box::new(Mutex::new(rand::SeedableRng::seed_from_u64(seed)));
        Self { shared: Arc::default(), chance: Chance::Seeded(seeded), worker: None }
    }

    /// The next unused key, durable already. Waits only if keys are used faster than the disk can make them.
    ///
    /// # Errors
    /// [`KeyError::Unavailable`] while the disk refuses.
    pub async fn take(&self) -> Result<KeyId, KeyError> {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if let Some(key) = self.take_ready()? {
                return Ok(key);
            }
            changed.await;
        }
    }

    fn take_ready(&self) -> Result<Option<KeyId>, KeyError> {
        let mut keys = self.shared.keys.lock();
        let Some((orders, thread)) = &self.worker else {
            let mut slot = [0; 8];
            self.chance.fill(&mut slot);
            let id = KeyId { file: 0, slot: u64::from_le_bytes(slot) };
            let mut key = Key::default();
            self.chance.fill(key.as_mut_slice());
            keys.held.insert(id, key);
            return Ok(Some(id));
        };
        if let Some(reason) = &keys.failure {
            return Err(KeyError::Unavailable(reason.clone()));
        }
        if thread.is_finished() {
            return Err(KeyError::Unavailable("its thread has ended".into()));
        }
        let taken = keys.ready.pop_front();
        if keys.ready.len() < READY_KEYS_MIN && !keys.refill_ordered {
            keys.refill_ordered = orders.send(Order::Refill).is_ok();
        }
        Ok(taken.map(|(id, key)| {
            keys.held.insert(id, key);
            id
        }))
    }

    /// Seals `plain` under a taken key. `context` must be given again to open it ([`args_context`]).
    ///
    /// # Errors
    /// [`KeyError::Missing`]: the key was destroyed or never taken.
    pub fn seal(&self, key: KeyId, context: &[u8], plain: &[u8]) -> Result<Sealed, KeyError> {
        let mut nonce = vec![0; NONCE_BYTES];
        self.chance.fill(&mut nonce);
        let mut ciphertext = Vec::with_capacity(plain.len() + 16);
        ciphertext.extend_from_slice(plain);
        self.cipher(key)?
            .encrypt_in_place(XNonce::from_slice(&nonce), context, &mut ciphertext)
            .map_err(|_| KeyError::DoesNotOpen(key))?;
        Ok(Sealed { key, nonce, ciphertext })
    }

    /// Opens what was sealed with the same `context`.
    ///
    /// # Errors
    /// - [`KeyError::Missing`]: the key was destroyed; nobody can open it any more.
    /// - [`KeyError::DoesNotOpen`]: damaged, or sealed with another context.
    pub fn unseal(&self, sealed: &Sealed, context: &[u8]) -> Result<Sensitive<Zeroizing<Vec<u8>>>, KeyError> {
        let cipher = self.cipher(sealed.key)?;
        let mut plain = Zeroizing::new(sealed.ciphertext.clone());
        if sealed.nonce.len() != NONCE_BYTES {
            return Err(KeyError::DoesNotOpen(sealed.key));
        }
        cipher
            .decrypt_in_place(XNonce::from_slice(&sealed.nonce), context, &mut *plain)
            .map_err(|_| KeyError::DoesNotOpen(sealed.key))?;
        Ok(Sensitive::new(plain))
    }

    /// The fingerprint of a submit: the same for the same capability and args, in whatever order the args' keys stand.
    ///
    /// # Errors
    /// [`KeyError::Missing`]: the key was destroyed or never taken.
    pub fn fingerprint(
        &self,
        key: KeyId,
        capability: &CapabilityName,
        args: &Json,
    ) -> Result<Fingerprint, KeyError> {
        let mut hasher = {
            let keys = self.shared.keys.lock();
            blake3::Hasher::new_keyed(keys.held.get(&key).ok_or(KeyError::Missing(key))?)
        };
        let name = capability.as_str().as_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name);
        write_canonical(&mut hasher, args);
        Ok(Fingerprint(*hasher.finalize().as_bytes()))
    }

    /// Destroys a key: in memory now, on disk within [`DESTROY_DELAY`] and one sync. Destroying it again does nothing.
    pub fn destroy(&self, key: KeyId) {
        let held = self.shared.keys.lock().held.remove(&key).is_some();
        if let (true, Some((orders, _))) = (held, &self.worker) {
            // The worker outlives every sender, so this can only fail if it has panicked; flush tells then.
            let _ = orders.send(Order::Destroy(key));
        }
    }

    /// Waits until every key destroyed before is gone from the disk.
    ///
    /// # Errors
    /// [`KeyError::Unavailable`]: some are still there; the store goes on trying.
    pub async fn flush(&self) -> Result<(), KeyError> {
        let Some((orders, _)) = &self.worker else { return Ok(()) };
        let (answer, answered) = oneshot::channel();
        let ended = || KeyError::Unavailable("its thread has ended".into());
        orders.send(Order::Flush(answer)).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }

    /// How many keys are taken and not destroyed.
    #[must_use]
    pub fn held_count(&self) -> usize {
        self.shared.keys.lock().held.len()
    }

    fn cipher(&self, key: KeyId) -> Result<XChaCha20Poly1305, KeyError> {
        let keys = self.shared.keys.lock();
        let key = keys.held.get(&key).ok_or(KeyError::Missing(key))?;
        Ok(XChaCha20Poly1305::new(key.as_slice().into()))
    }
}

impl Drop for KeyStore {
    fn drop(&mut self) {
        if let Some((orders, thread)) = self.worker.take() {
            drop(orders);
            // A worker that panicked has said so on its own; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("held", &self.held_count()).finish_non_exhaustive()
    }
}

/// What binds sealed args to their place: moved to another stream or task, they do not open.
#[must_use]
pub fn args_context(stream: &StreamId, task: TaskId) -> Vec<u8> {
    format!("args {stream} {task}").into_bytes()
}

fn random_key() -> Key {
    let mut key = Key::default();
    rand::rng().fill_bytes(key.as_mut_slice());
    key
}

/// JSON with the keys of objects sorted and no blanks. Recursion is bounded: args were parsed, 128 levels at most.
fn write_canonical(hasher: &mut blake3::Hasher, value: &Json) {
    match value {
        Json::Array(items) => {
            hasher.update(b"[");
            for item in items {
                write_canonical(hasher, item);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Json::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (key, value) in sorted {
                write_scalar(hasher, key);
                hasher.update(b":");
                write_canonical(hasher, value);
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => write_scalar(hasher, value),
    }
}

fn write_scalar(hasher: &mut blake3::Hasher, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(hasher, value).expect("a hasher takes everything");
}
