//! The real log over the simulated disk, asked in such a way that nothing runs beside the one thread.
//!
//! The log has threads of its own. Here each call into it is carried to its end before anything else goes on, so what
//! they do can't be told from what this thread does. What a caller would have waited for is simulated time instead,
//! before and after the call: there other work runs, and there the process may die.

use std::{
    path::Path,
    pin::pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use async_trait::async_trait;
use eventlog::{
    Append, AppendError, Appended, EventLog, OpenError, OpenOptions, Position, ReadError, SegmentLog,
    Sequence, Stored, StreamId, id::CommandId, log::Events, sim_disk::SimDisk,
};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    task::unconstrained,
    time::sleep,
};

/// So small that a run seals many segments.
const SEGMENT_BYTES: u64 = 16 * 1024;
/// Below this the log refuses appends.
pub(crate) const FREE_BYTES_MIN: u64 = 1_000;
/// An append takes at most so long, before it is written and after.
const LATENCY_MS_MAX: u64 = 3;

/// One process's log.
#[derive(Clone)]
pub(crate) struct SimLog(Arc<Process>);

struct Process {
    /// `None` once the process is dead.
    log: Mutex<Option<SegmentLog>>,
    disk: SimDisk,
    random: Mutex<StdRng>,
    head: watch::Sender<Position>,
    died: watch::Sender<bool>,
}

impl SimLog {
    /// Opens the log as a new process would.
    pub(crate) fn open(folder: &Path, disk: &SimDisk, seed: u64, known: Position) -> Result<Self, OpenError> {
        let log = SegmentLog::open(OpenOptions {
            segment_bytes: SEGMENT_BYTES,
            free_bytes_min: FREE_BYTES_MIN,
            known_position: known,
            disk: Arc::new(disk.clone()),
            ..OpenOptions::new(folder)
        })?;
        let head = *log.durable_head().borrow();
        Ok(Self(Arc::new(Process {
            log: Mutex::new(Some(log)),
            disk: disk.clone(),
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            head: watch::Sender::new(head),
            died: watch::Sender::new(false),
        })))
    }

    /// Ends the process: nothing that is asked from here on is answered, and nothing more is written.
    pub(crate) fn die(&self) {
        self.0.disk.turn_off();
        self.0.died.send_replace(true);
        drop(self.0.log.lock().take());
    }

    /// Whether nothing is answered any more.
    pub(crate) fn is_dead(&self) -> bool {
        *self.0.died.borrow() || self.0.disk.is_off()
    }

    /// Lets go of the files.
    pub(crate) fn let_go(&self) {
        drop(self.0.log.lock().take());
    }

    /// Comes back when the power has failed under the process.
    pub(crate) async fn died(&self) {
        let _ = self.0.died.subscribe().wait_for(|died| *died).await;
    }

    /// The last durable position, as this process knows it.
    pub(crate) fn head(&self) -> Position {
        *self.0.head.borrow()
    }

    async fn pass_time(&self) {
        let latency = self.0.random.lock().random_range(0..=LATENCY_MS_MAX);
        if latency > 0 {
            sleep(Duration::from_millis(latency)).await;
        }
    }

    /// The threads that the log reads on belong to a runtime of their own: those of the simulated one would wake it up,
    /// at moments that no seed tells.
    fn helper() -> &'static Runtime {
        static HELPER: LazyLock<Runtime> =
            LazyLock::new(|| Builder::new_current_thread().build().expect("the system gives a runtime"));
        &HELPER
    }

    /// Carries a call to its end. `None` from a dead process, or one that dies in it.
    fn call<T>(&self, ask: impl AsyncFnOnce(&SegmentLog) -> T) -> Option<T> {
        let log = self.0.log.lock();
        let _inside = Self::helper().enter();
        // Outside of tokio's budget for one task: it is this thread that waits, and nobody else could go on.
        let answer = block_on(unconstrained(ask(log.as_ref()?)));
        drop(log);
        if self.0.disk.is_off() {
            self.0.died.send_replace(true);
            return None;
        }
        Some(answer)
    }

    fn events(
        &self,
        read: impl FnOnce(&SegmentLog) -> Events,
    ) -> Vec<Result<eventlog::RecordedEvent, ReadError>> {
        self.call(async |log| read(log).collect::<Vec<_>>().await).unwrap_or_default()
    }

    /// What `read` gives, again and again as the log grows. `read` is told how many events were given before.
    fn following(&self, read: impl Fn(&SegmentLog, u64) -> Events + Send + 'static) -> Events {
        let log = self.clone();
        let state = (log.0.head.subscribe(), 0_u64, read);
        stream::unfold((log, state), |(log, (mut head, given, read))| async move {
            loop {
                head.mark_unchanged();
                let more = log.events(|log| read(log, given));
                if !more.is_empty() {
                    let given = given + more.len() as u64;
                    return Some((stream::iter(more), (log, (head, given, read))));
                }
                head.changed().await.ok()?;
            }
        })
        .flatten()
        .boxed()
    }
}

#[async_trait]
impl EventLog for SimLog {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.pass_time().await;
        let Some(answer) = self.call(async |log| log.append(append).await) else {
            return std::future::pending().await;
        };
        if let Ok(Appended::Stored(stored)) = &answer {
            self.0.head.send_replace(stored.last);
        }
        self.pass_time().await;
        answer
    }

    fn read_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        stream::iter(self.events(|log| log.read_stream(stream, from))).boxed()
    }

    fn read_all(&self, from: Position) -> Events {
        stream::iter(self.events(|log| log.read_all(from))).boxed()
    }

    fn follow(&self, from: Position) -> Events {
        self.following(move |log, given| log.read_all(Position(from.0 + given)))
    }

    fn follow_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        let stream = stream.clone();
        self.following(move |log, given| log.read_stream(&stream, Sequence(from.0 + given)))
    }

    async fn find_append(&self, id: CommandId) -> Result<Option<Stored>, ReadError> {
        match self.call(async |log| log.find_append(id).await) {
            Some(found) => found,
            None => std::future::pending().await,
        }
    }

    async fn stream_head(&self, stream: &StreamId) -> Result<Sequence, ReadError> {
        match self.call(async |log| log.stream_head(stream).await) {
            Some(head) => head,
            None => std::future::pending().await,
        }
    }

    fn durable_head(&self) -> watch::Receiver<Position> {
        self.0.head.subscribe()
    }

    fn check_writable(&self) -> Result<(), AppendError> {
        let dead = || Err(AppendError::Unavailable("this process is dead".into()));
        self.0.log.lock().as_ref().map_or_else(dead, EventLog::check_writable)
    }

    async fn close(&self) {
        self.call(async |log| log.close().await);
    }
}

/// Carries a future to its end on this thread, whatever else waits here.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
