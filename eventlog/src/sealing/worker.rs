//! The thread that makes keys ahead of need and destroys those that are done with.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;
use tracing::{error, info};

use super::{DESTROY_DELAY, KeyError, KeyId, READY_KEYS_MIN, Shared, key_file, random_key};

/// How soon a refused write is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What the store asks of its thread.
pub(super) enum Order {
    Refill,
    Destroy(KeyId),
    Flush(oneshot::Sender<Result<(), KeyError>>),
}

pub(super) struct Worker {
    dir: PathBuf,
    shared: Arc<Shared>,
    /// Per key file, how many of its keys are not destroyed yet.
    alive: HashMap<u64, u64>,
    /// Destroyed in memory, not on disk yet: slots by file.
    doomed: BTreeMap<u64, Vec<u64>>,
    /// When the disk is next written to without an order: the doomed are due, or a failure is tried again.
    due: Option<Instant>,
}

impl Worker {
    /// Keeps the live keys of earlier boots and destroys the others.
    pub(super) fn open(
        dir: &Path,
        shared: Arc<Shared>,
        live: impl Fn(KeyId) -> bool,
    ) -> Result<Self, KeyError> {
        key_file::prepare_folder(dir)?;
        let mut alive = HashMap::new();
        for file in key_file::list(dir)? {
            let kept = key_file::keep_live(dir, file, &live)?;
            if kept.is_empty() {
                key_file::remove(dir, file)?;
            } else {
                alive.insert(file, kept.len() as u64);
                shared.keys.lock().held.extend(kept);
            }
        }
        Ok(Self { dir: dir.to_owned(), shared, alive, doomed: BTreeMap::new(), due: None })
    }

    /// Makes those of these keys anew that are not held.
    pub(super) fn remake(&mut self, needed: &[KeyId]) -> Result<Vec<KeyId>, KeyError> {
        let held = |key: &KeyId| self.shared.keys.lock().held.contains_key(key);
        let missing: Vec<KeyId> = needed.iter().filter(|key| !held(key)).copied().collect();
        for id in &missing {
            let key = random_key();
            key_file::put(&self.dir, *id, &key)?;
            *self.alive.entry(id.file).or_default() += 1;
            self.shared.keys.lock().held.insert(*id, key);
        }
        Ok(missing)
    }

    /// Makes one more file of keys.
    pub(super) fn refill(&mut self) -> io::Result<()> {
        let fresh = key_file::create(&self.dir)?;
        let file = fresh[0].0.file;
        self.alive.insert(file, fresh.len() as u64);
        let mut keys = self.shared.keys.lock();
        keys.ready.extend(fresh);
        keys.refill_ordered = false;
        drop(keys);
        self.shared.changed.notify_waiters();
        Ok(())
    }

    /// Works until every sender is gone, and destroys what is doomed before it ends.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.due {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match order {
                Ok(Order::Refill) => {
                    let refilled = self.refill();
                    self.note(refilled);
                }
                Ok(Order::Destroy(key)) => {
                    self.doomed.entry(key.file).or_default().push(key.slot);
                    self.due.get_or_insert_with(|| Instant::now() + DESTROY_DELAY);
                }
                Ok(Order::Flush(answer)) => {
                    self.catch_up();
                    let failure = self.shared.keys.lock().failure.clone();
                    // Whoever asked may have stopped waiting.
                    let _ = answer.send(failure.map_or(Ok(()), |reason| Err(KeyError::Unavailable(reason))));
                }
                Err(RecvTimeoutError::Timeout) => self.catch_up(),
                Err(RecvTimeoutError::Disconnected) => return self.catch_up(),
            }
        }
    }

    /// Destroys what is doomed, and makes the keys that a failure has kept from being made.
    fn catch_up(&mut self) {
        let mut done = self.destroy_doomed();
        let ready = self.shared.keys.lock().ready.len();
        let was_refused = self.shared.keys.lock().failure.is_some();
        if done.is_ok() && was_refused && ready < READY_KEYS_MIN {
            done = self.refill();
        }
        self.due = None;
        self.note(done);
    }

    fn destroy_doomed(&mut self) -> io::Result<()> {
        while let Some(entry) = self.doomed.first_entry() {
            let file = *entry.key();
            key_file::zero(&self.dir, file, entry.get())?;
            let destroyed = entry.remove().len() as u64;
            let alive = self.alive.entry(file).or_default();
            *alive = alive.saturating_sub(destroyed);
            if *alive == 0 {
                self.alive.remove(&file);
                key_file::remove(&self.dir, file)?;
            }
        }
        Ok(())
    }

    /// Takes note of how the disk answered: while it refuses, no key is given out.
    fn note(&mut self, done: io::Result<()>) {
        let mut keys = self.shared.keys.lock();
        match done {
            Ok(()) if keys.failure.is_none() => return,
            Ok(()) => {
                keys.failure = None;
                info!("Keys can be made and destroyed again.");
            }
            Err(cause) => {
                self.due = Some(Instant::now() + RETRY_DELAY);
                if keys.failure.is_none() {
                    error!(%cause, "Keys can be neither made nor destroyed; no new task is taken until they can.");
                }
                keys.failure = Some(cause.to_string().into());
            }
        }
        drop(keys);
        self.shared.changed.notify_waiters();
    }
}
