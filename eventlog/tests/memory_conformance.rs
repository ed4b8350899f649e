//! The log in memory keeps the contract of the log, and its faults are what they say.

use std::sync::Arc;

use async_trait::async_trait;
use eventlog::{
    AppendError, Appended, EventLog, Position, Sequence,
    conformance::Harness,
    fixture::{append, command, recovered, space},
    memory::{Fault, MemoryLog},
};
use futures::{StreamExt, TryStreamExt};

struct Memory(parking_lot::Mutex<Option<MemoryLog>>);

impl Memory {
    fn new() -> Self {
        Self(parking_lot::Mutex::new(None))
    }

    fn keep(&self, log: MemoryLog) -> Arc<dyn EventLog> {
        // A second process over the same bytes; the first is handed to the suite and ended by `reopen`.
        let kept = log.share();
        *self.0.lock() = Some(kept);
        Arc::new(log)
    }
}

#[async_trait]
impl Harness for Memory {
    async fn open(&self) -> Arc<dyn EventLog> {
        self.keep(MemoryLog::new())
    }

    async fn reopen(&self, log: Arc<dyn EventLog>) -> Arc<dyn EventLog> {
        log.close().await;
        let reopened = self.0.lock().take().expect("it was opened").reopen();
        self.keep(reopened)
    }
}

eventlog::conformance_tests!(Memory::new());

async fn ask(log: &MemoryLog, n: u64) -> Result<Appended, AppendError> {
    log.append(append(command(n), space(1), vec![recovered(n)])).await
}

#[tokio::test]
async fn a_crash_before_an_append_loses_it_and_one_after_keeps_it() {
    for (fault, kept) in [(Fault::CrashBefore, 1), (Fault::CrashAfter, 2)] {
        let log = MemoryLog::new();
        log.fail_append(2, fault);
        assert!(ask(&log, 1).await.is_ok());
        assert!(matches!(ask(&log, 2).await, Err(AppendError::Unknown)));
        assert!(log.is_dead());
        assert!(matches!(ask(&log, 3).await, Err(AppendError::Unavailable(_))));
        let log = log.reopen();
        assert_eq!(log.stream_head(&space(1)).await.expect("it reads"), Sequence(kept));
        let repeat = ask(&log, 2).await.expect("it answers");
        assert_eq!(matches!(repeat, Appended::Duplicate { same: true, .. }), fault == Fault::CrashAfter);
        assert_eq!(log.appends_asked(), 3, "a dead process asks nothing of the disk");
    }
}

#[tokio::test]
async fn a_dead_process_ends_its_followers_and_reads_nothing() {
    let log = MemoryLog::new();
    let mut follower = log.follow(Position(1));
    assert!(ask(&log, 1).await.is_ok());
    assert!(follower.next().await.is_some());
    log.crash();
    assert!(follower.next().await.is_none());
    assert!(log.read_all(Position(1)).try_collect::<Vec<_>>().await.is_err());
}

#[tokio::test]
async fn the_other_faults_answer_what_they_are_named() {
    let log = MemoryLog::new();
    let faults = [Fault::UnknownNotWritten, Fault::UnknownWritten, Fault::Unavailable, Fault::Conflict];
    for (fault, n) in faults.into_iter().zip(1..) {
        log.fail_append(n, fault);
    }
    assert!(matches!(ask(&log, 1).await, Err(AppendError::Unknown)));
    assert_eq!(*log.durable_head().borrow(), Position(0));
    assert!(matches!(ask(&log, 2).await, Err(AppendError::Unknown)));
    assert_eq!(*log.durable_head().borrow(), Position(1));
    assert!(matches!(ask(&log, 3).await, Err(AppendError::Unavailable(_))));
    let conflict = Appended::Conflict { stream: space(1), actual: Sequence(1) };
    assert_eq!(ask(&log, 4).await.expect("it answers"), conflict);
    assert!(matches!(ask(&log, 5).await, Ok(Appended::Stored(_))));
}
