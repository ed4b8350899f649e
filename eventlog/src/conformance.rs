//! One suite of promises, run against every implementation of [`EventLog`].
//!
//! `conformance_tests!` makes one test of each promise; the harness it is given opens an empty log and reopens it.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, future::join_all};

use crate::{
    fixture::{append, command, instance, metadata, part, ready, recovered, space},
    log::{APPEND_EVENTS_MAX, Append, AppendError, Appended, EventLog, Events, RecordedEvent, Stored},
    number::{ExpectedSequence, Position, Sequence},
    stream::StreamId,
};

/// How the suite gets at an implementation.
#[async_trait]
pub trait Harness: Send + Sync {
    /// An empty log.
    async fn open(&self) -> Arc<dyn EventLog>;
    /// Ends this log in order and opens it again over the same bytes.
    async fn reopen(&self, log: Arc<dyn EventLog>) -> Arc<dyn EventLog>;
}

/// Makes one `#[tokio::test]` per promise: `conformance_tests!(MyHarness::new());`
#[macro_export]
macro_rules! conformance_tests {
    ($harness:expr) => {
        $crate::conformance_tests!(@each $harness;
            a_new_log_is_empty
            sequences_count_per_stream_and_positions_over_the_log_without_gaps
            an_event_reads_back_as_it_was_written
            an_append_over_two_streams_is_there_as_a_whole_or_not_at_all
            an_expectation_that_is_not_met_writes_nothing
            the_same_id_again_is_answered_with_the_first_result
            a_repeat_is_a_duplicate_whatever_it_expects_now
            another_append_under_a_known_id_is_told_apart
            a_malformed_append_is_refused_and_writes_nothing
            of_concurrent_writers_with_one_expectation_one_wins
            concurrent_writers_leave_no_gap
            a_follower_sees_each_event_once_across_history_and_live
            a_follower_of_a_stream_sees_only_that_stream
            a_read_starts_anywhere_and_ends_at_the_head
            everything_is_there_after_a_reopen
            a_repeat_is_known_after_a_reopen
            a_closed_log_takes_no_append_and_ends_its_followers
        );
    };
    (@each $harness:expr; $($check:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $check() {
            $crate::conformance::$check(&$harness).await;
        }
    )*};
}

fn stored(first: u64, last: u64) -> Stored {
    Stored { first: Position(first), last: Position(last) }
}

#[track_caller]
fn expect_stored(answer: Result<Appended, AppendError>) -> Stored {
    match answer {
        Ok(Appended::Stored(stored)) => stored,
        other => panic!("not stored: {other:?}"),
    }
}

async fn all(events: Events) -> Vec<RecordedEvent> {
    events.try_collect().await.expect("the log reads")
}

async fn fill(log: &dyn EventLog, appends: std::ops::Range<u64>) {
    for n in appends {
        let answer = log.append(append(command(n), space(n % 3), vec![recovered(n)])).await;
        let _ = expect_stored(answer);
    }
}

/// Positions from 1 without a gap, and so each stream's sequences.
#[track_caller]
fn assert_gap_free(events: &[RecordedEvent]) {
    let mut heads = std::collections::HashMap::<&StreamId, u64>::new();
    for (event, position) in events.iter().zip(1..) {
        assert_eq!(event.position, Position(position));
        let head = heads.entry(&event.stream).or_default();
        *head += 1;
        assert_eq!(event.sequence, Sequence(*head), "in {}", event.stream);
    }
}

/// Nothing is there, and asking for what is not there is no error.
pub async fn a_new_log_is_empty(harness: &dyn Harness) {
    let log = harness.open().await;
    assert_eq!(*log.durable_head().borrow(), Position(0));
    assert_eq!(log.stream_head(&space(1)).await.expect("it reads"), Sequence(0));
    assert_eq!(log.find_append(command(1)).await.expect("it reads"), None);
    assert!(all(log.read_all(Position(0))).await.is_empty());
    assert!(all(log.read_stream(&space(1), Sequence(1))).await.is_empty());
    assert!(log.check_writable().is_ok());
}

/// Both numberings start at 1 and have no gap.
pub async fn sequences_count_per_stream_and_positions_over_the_log_without_gaps(harness: &dyn Harness) {
    let log = harness.open().await;
    let first = log.append(append(command(1), space(1), vec![recovered(1), recovered(2)])).await;
    assert_eq!(expect_stored(first), stored(1, 2));
    let second = log.append(append(command(2), space(2), vec![recovered(3)])).await;
    assert_eq!(expect_stored(second), stored(3, 3));
    let third = log.append(append(command(3), space(1), vec![recovered(4)])).await;
    assert_eq!(expect_stored(third), stored(4, 4));
    let events = all(log.read_all(Position(1))).await;
    assert_eq!(events.len(), 4);
    assert_gap_free(&events);
    assert_eq!(log.stream_head(&space(1)).await.expect("it reads"), Sequence(3));
    assert_eq!(*log.durable_head().borrow(), Position(4));
    assert_eq!(log.find_append(command(1)).await.expect("it reads"), Some(stored(1, 2)));
}

/// Event, metadata, command and places.
pub async fn an_event_reads_back_as_it_was_written(harness: &dyn Harness) {
    let log = harness.open().await;
    let asked = append(command(7), space(1), vec![recovered(5)]);
    let _ = expect_stored(log.append(asked.clone()).await);
    let events = all(log.read_stream(&space(1), Sequence(1))).await;
    let [event] = events.as_slice() else { panic!("{} events", events.len()) };
    assert_eq!(event.event, recovered(5));
    assert_eq!(*event.metadata, asked.metadata);
    assert_eq!(event.command, command(7));
    assert_eq!((event.position, event.sequence), (Position(1), Sequence(1)));
    assert_ne!(event.hash, crate::Hash::default());
}

fn reservation(id: u64, expected: ExpectedSequence, n: u64) -> Append {
    let parts = vec![
        part(instance(1), expected, vec![ready(n)]),
        part(space(n), ExpectedSequence::NoStream, vec![recovered(n)]),
    ];
    Append { id: command(id), metadata: metadata(1), parts }
}

/// One part's refusal refuses all.
pub async fn an_append_over_two_streams_is_there_as_a_whole_or_not_at_all(harness: &dyn Harness) {
    let log = harness.open().await;
    let answer = log.append(reservation(1, ExpectedSequence::NoStream, 1)).await;
    assert_eq!(expect_stored(answer), stored(1, 2));
    // The instance is as expected, the Space exists already: the instance's part must not be there either.
    let answer = log.append(reservation(2, ExpectedSequence::Exact(Sequence(1)), 1)).await;
    let conflict = Appended::Conflict { stream: space(1), actual: Sequence(1) };
    assert_eq!(answer.expect("it answers"), conflict);
    assert_eq!(log.stream_head(&instance(1)).await.expect("it reads"), Sequence(1));
    assert_eq!(all(log.read_all(Position(1))).await.len(), 2);
}

/// The conflict names the stream and where it really is.
pub async fn an_expectation_that_is_not_met_writes_nothing(harness: &dyn Harness) {
    let log = harness.open().await;
    fill(&*log, 0..1).await;
    for expected in [ExpectedSequence::NoStream, ExpectedSequence::Exact(Sequence(2))] {
        let parts = vec![part(space(0), expected, vec![recovered(1)])];
        let answer = log.append(Append { id: command(9), metadata: metadata(1), parts }).await;
        let conflict = Appended::Conflict { stream: space(0), actual: Sequence(1) };
        assert_eq!(answer.expect("it answers"), conflict);
    }
    assert_eq!(*log.durable_head().borrow(), Position(1));
    assert_eq!(
        log.find_append(command(9)).await.expect("it reads"),
        None,
        "a conflict does not use up the id"
    );
}

/// Idempotency.
pub async fn the_same_id_again_is_answered_with_the_first_result(harness: &dyn Harness) {
    let log = harness.open().await;
    fill(&*log, 0..3).await;
    let repeat = Append { metadata: metadata(99), ..append(command(1), space(1), vec![recovered(1)]) };
    let answer = log.append(repeat).await.expect("it answers");
    assert_eq!(answer, Appended::Duplicate { stored: stored(2, 2), same: true });
    assert_eq!(*log.durable_head().borrow(), Position(3));
}

/// After an unknown outcome a writer repeats itself from a state that may already hold its own events.
pub async fn a_repeat_is_a_duplicate_whatever_it_expects_now(harness: &dyn Harness) {
    let log = harness.open().await;
    let answer = log.append(reservation(1, ExpectedSequence::NoStream, 1)).await;
    let first = expect_stored(answer);
    let repeat = log.append(reservation(1, ExpectedSequence::NoStream, 1)).await.expect("it answers");
    assert_eq!(repeat, Appended::Duplicate { stored: first, same: true });
}

/// An id used for two different things is a bug that must not look like a repeat.
pub async fn another_append_under_a_known_id_is_told_apart(harness: &dyn Harness) {
    let log = harness.open().await;
    fill(&*log, 0..2).await;
    let others = [
        append(command(1), space(1), vec![recovered(77)]),
        append(command(1), space(2), vec![recovered(1)]),
        append(command(1), space(1), vec![recovered(1), recovered(2)]),
    ];
    for other in others {
        let answer = log.append(other).await.expect("it answers");
        assert_eq!(answer, Appended::Duplicate { stored: stored(2, 2), same: false });
    }
}

/// Limits are the caller's bug and nobody's data.
pub async fn a_malformed_append_is_refused_and_writes_nothing(harness: &dyn Harness) {
    let log = harness.open().await;
    let any = ExpectedSequence::Any;
    let malformed = [
        vec![],
        vec![part(space(1), any, vec![])],
        vec![part(space(1), any, vec![recovered(1)]), part(space(1), any, vec![recovered(2)])],
        vec![part(space(1), any, vec![ready(1)])],
        vec![part(space(1), any, (0..=APPEND_EVENTS_MAX as u64).map(recovered).collect())],
    ];
    for parts in malformed {
        let answer = log.append(Append { id: command(1), metadata: metadata(1), parts }).await;
        assert!(matches!(answer, Err(AppendError::Malformed(_))), "{answer:?}");
    }
    assert_eq!(*log.durable_head().borrow(), Position(0));
}

/// S1 rests on this.
pub async fn of_concurrent_writers_with_one_expectation_one_wins(harness: &dyn Harness) {
    let log = harness.open().await;
    let writers = (1..=32).map(|n| {
        let log = Arc::clone(&log);
        tokio::spawn(async move { log.append(reservation(n, ExpectedSequence::NoStream, n)).await })
    });
    let answers = join_all(writers).await;
    let won = answers
        .into_iter()
        .map(|answer| answer.expect("the writer ran").expect("it answers"))
        .filter(|answer| matches!(answer, Appended::Stored(_)))
        .count();
    assert_eq!(won, 1);
    assert_eq!(all(log.read_all(Position(1))).await.len(), 2, "the losers left nothing");
}

/// 64 writers at once, on few streams.
pub async fn concurrent_writers_leave_no_gap(harness: &dyn Harness) {
    const WRITERS: u64 = 64;
    const EACH: u64 = 20;
    let log = harness.open().await;
    let writers = (0..WRITERS).map(|writer| {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            for n in 0..EACH {
                let id = command(writer * EACH + n);
                let answer = log.append(append(id, space(writer % 7), vec![recovered(n)])).await;
                let _ = expect_stored(answer);
            }
        })
    });
    for writer in join_all(writers).await {
        writer.expect("the writer ran");
    }
    let events = all(log.read_all(Position(1))).await;
    assert_eq!(events.len() as u64, WRITERS * EACH);
    assert_gap_free(&events);
}

/// The seam between history and live is where gaps live.
pub async fn a_follower_sees_each_event_once_across_history_and_live(harness: &dyn Harness) {
    let log = harness.open().await;
    fill(&*log, 0..50).await;
    let mut followers: Vec<Events> = [1, 26, 51].map(|from| log.follow(Position(from))).into();
    let (writer, writing) = (Arc::clone(&log), 50..100);
    let writing = tokio::spawn(async move { fill(&*writer, writing).await });
    for (follower, from) in followers.iter_mut().zip([1, 26, 51]) {
        for position in from..=100 {
            let event = follower.next().await.expect("it goes on").expect("it reads");
            assert_eq!(event.position, Position(position));
        }
    }
    writing.await.expect("the writer ran");
}

/// In the order of its sequences, from any of them.
pub async fn a_follower_of_a_stream_sees_only_that_stream(harness: &dyn Harness) {
    let log = harness.open().await;
    let mut early = log.follow_stream(&space(1), Sequence(1));
    fill(&*log, 0..30).await;
    let mut late = log.follow_stream(&space(1), Sequence(6));
    let writer = Arc::clone(&log);
    let writing = tokio::spawn(async move { fill(&*writer, 30..60).await });
    for (follower, from) in [(&mut early, 1), (&mut late, 6)] {
        for sequence in from..=20 {
            let event = follower.next().await.expect("it goes on").expect("it reads");
            assert_eq!((&event.stream, event.sequence), (&space(1), Sequence(sequence)));
        }
    }
    writing.await.expect("the writer ran");
}

/// From 0, from the middle, from the last one, from beyond the end.
pub async fn a_read_starts_anywhere_and_ends_at_the_head(harness: &dyn Harness) {
    let log = harness.open().await;
    fill(&*log, 0..30).await;
    for (from, count) in [(0, 30), (1, 30), (17, 14), (30, 1), (31, 0), (1_000, 0)] {
        let events = all(log.read_all(Position(from))).await;
        assert_eq!(events.len(), count, "from {from}");
        assert!(events.first().is_none_or(|event| event.position.0 == from.max(1)));
    }
    for (from, count) in [(0, 10), (1, 10), (4, 7), (10, 1), (11, 0)] {
        let events = all(log.read_stream(&space(2), Sequence(from))).await;
        assert_eq!(events.len(), count, "from {from}");
        assert!(events.first().is_none_or(|event| event.sequence.0 == from.max(1)));
    }
}

/// Equal, hashes included, and going on where it ended.
pub async fn everything_is_there_after_a_reopen(harness: &dyn Harness) {
    let log = harness.open().await;
    fill(&*log, 0..30).await;
    let before = all(log.read_all(Position(1))).await;
    let log = harness.reopen(log).await;
    assert_eq!(all(log.read_all(Position(1))).await, before);
    assert_eq!(*log.durable_head().borrow(), Position(30));
    assert_eq!(log.stream_head(&space(1)).await.expect("it reads"), Sequence(10));
    fill(&*log, 30..60).await;
    let events = all(log.read_all(Position(1))).await;
    assert_eq!(events.len(), 60);
    assert_gap_free(&events);
}

/// Idempotency outlives a process.
pub async fn a_repeat_is_known_after_a_reopen(harness: &dyn Harness) {
    let log = harness.open().await;
    fill(&*log, 0..30).await;
    let log = harness.reopen(log).await;
    for n in 0..30 {
        let repeat = log.append(append(command(n), space(n % 3), vec![recovered(n)])).await;
        let known = Appended::Duplicate { stored: stored(n + 1, n + 1), same: true };
        assert_eq!(repeat.expect("it answers"), known);
        let other = log.append(append(command(n), space(n % 3), vec![recovered(n + 1)])).await;
        assert!(matches!(other, Ok(Appended::Duplicate { same: false, .. })), "{other:?}");
        assert_eq!(log.find_append(command(n)).await.expect("it reads"), Some(stored(n + 1, n + 1)));
    }
}

/// What was taken is finished, what comes later is refused, and no follower waits for ever.
pub async fn a_closed_log_takes_no_append_and_ends_its_followers(harness: &dyn Harness) {
    let log = harness.open().await;
    let all_events = log.follow(Position(1));
    let of_stream = log.follow_stream(&space(1), Sequence(1));
    fill(&*log, 0..3).await;
    log.close().await;
    let answer = log.append(append(command(50), space(1), vec![recovered(1)])).await;
    assert!(matches!(answer, Err(AppendError::Unavailable(_))), "{answer:?}");
    assert!(matches!(log.check_writable(), Err(AppendError::Unavailable(_))));
    assert_eq!(all(all_events).await.len(), 3);
    assert_eq!(all(of_stream).await.len(), 1);
}
