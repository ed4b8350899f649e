//! Tasks: at most once, one at a time, cancelled when acknowledged.

use std::time::Duration;

use actors::{
    Rejection,
    runtime::{journal::Moment, scripted::StartScript},
    space::summary::{SpaceStatus, TaskStatus},
};
use eventlog::{StreamId, TraceId};
use futures::future::join_all;

use crate::harness::{Server, code, ends, settle, submit};

#[tokio::test(start_paused = true)]
async fn a_task_runs_in_one_append_before_the_call_and_one_after() {
    let server = Server::start().await;
    let space = server.space().await;
    let task = server.run(space, "1", "delay_ms=20").await;
    assert_eq!(task.status, TaskStatus::Completed, "{task:?}");
    assert_eq!(server.disk.kinds(space).await, ["opened", "queued", "started", "completed"]);
    let begun = server.disk.begun();
    assert_eq!(begun.len(), 1);
    assert_eq!((begun[0].task, begun[0].operation), (Some(task.task), Some(task.operation)));
}

#[tokio::test(start_paused = true)]
async fn s08_fifty_submits_of_one_request_are_one_task_and_one_call() {
    let server = Server::start().await;
    let space = server.space().await;
    let submits = (0..50).map(|_| server.submit(space, "same", "delay_ms=50"));
    let submitted: Vec<_> = join_all(submits).await.into_iter().map(Result::unwrap).collect();
    let tasks: std::collections::HashSet<_> = submitted.iter().map(|one| one.task.task).collect();
    assert_eq!(tasks.len(), 1);
    assert_eq!(submitted.iter().filter(|one| !one.repeated).count(), 1);
    for one in submitted {
        let (task, _) = one.ended.within(Duration::from_secs(60)).await.unwrap();
        assert_eq!(task.status, TaskStatus::Completed);
    }
    assert_eq!(server.disk.begun().len(), 1);
    let other = server.submit(space, "same", "delay_ms=51").await;
    assert_eq!(other.unwrap_err(), Rejection::RequestIdConflict);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waited_for_its_browser_stays_in_the_trace_of_its_submit() {
    let server = Server::start().await;
    server.scripted.script_starts([StartScript::After(Duration::from_secs(5))]);
    let space = server.space().await;
    let trace_id = TraceId([7; 16]);
    let context = actors::Context { trace_id, ..server.system() };
    let submitted = server.spaces.submit(&context, submit(space, "1", "delay_ms=20")).await.unwrap();
    assert_eq!(submitted.task.status, TaskStatus::Queued, "the browser is not there yet");
    submitted.ended.within(Duration::from_secs(60)).await.unwrap();
    let events = server.disk.events().await;
    let of_task = events
        .iter()
        .filter(|recorded| recorded.stream == StreamId::Space(space) && recorded.event.kind() != "opened");
    let traces: Vec<_> = of_task.map(|recorded| recorded.metadata.trace_id).collect();
    assert_eq!(traces, [trace_id; 3], "queued, started, completed");
}

#[tokio::test(start_paused = true)]
async fn s06_a_second_task_waits_for_nobody_and_is_refused() {
    let server = Server::start().await;
    let space = server.space().await;
    let first = server.submit(space, "1", "delay_ms=1000").await.unwrap();
    let refused = server.submit(space, "2", "").await.unwrap_err();
    assert_eq!(refused, Rejection::SpaceTaskInProgress { task: first.task.task });
    first.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(server.run(space, "2", "").await.status, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn s07_tasks_of_two_spaces_overlap() {
    let server = Server::start().await;
    let (one, two) = (server.space().await, server.space().await);
    tokio::join!(server.run(one, "1", "delay_ms=500"), server.run(two, "1", "delay_ms=500"));
    let moments: Vec<_> = server.disk.journal.lines().iter().map(|line| line.moment).collect();
    let calls: Vec<_> =
        moments.into_iter().filter(|moment| matches!(moment, Moment::Begin | Moment::End)).collect();
    assert_eq!(calls, [Moment::Begin, Moment::Begin, Moment::End, Moment::End]);
}

#[tokio::test(start_paused = true)]
async fn s09_cancelled_is_said_only_after_the_runtime_has_cleaned_up() {
    let server = Server::start().await;
    let space = server.space().await;
    let submitted =
        server.submit(space, "1", "delay_ms=60000&outcome=slow_cancel&cancel_ms=3000").await.unwrap();
    settle().await;
    let during = server.cancel(space).await.active_task.expect("it still runs");
    assert!(during.cancel_requested);
    assert_eq!(during.status, TaskStatus::Running);
    server.cancel(space).await;
    let began = tokio::time::Instant::now();
    let (task, _) = submitted.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(task.status, TaskStatus::Cancelled);
    assert!(began.elapsed() >= Duration::from_millis(2_900), "{:?}", began.elapsed());
    let kinds = server.disk.kinds(space).await;
    assert_eq!(kinds, ["opened", "queued", "started", "cancel_requested", "cancelled"]);
    server.cancel(space).await;
    assert_eq!(server.disk.kinds(space).await, kinds, "nothing to cancel changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_ignores_a_cancel_is_given_up_and_replaced() {
    let server = Server::start().await;
    let space = server.space().await;
    let submitted = server.submit(space, "1", "outcome=hang").await.unwrap();
    settle().await;
    server.cancel(space).await;
    let (task, _) = submitted.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!((task.status, code(&task)), (TaskStatus::Failed, "cancel_timeout"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server.run(space, "2", "").await.status, TaskStatus::Completed);
    let generations: Vec<_> = server.disk.begun().iter().map(|line| line.generation.0).collect();
    assert_eq!(generations, [1, 2]);
    assert!(server.disk.kinds(space).await.contains(&"recovered".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_hangs_past_the_deadline_is_a_task_timeout() {
    let server = Server::start().await;
    let space = server.space().await;
    let task = server.run(space, "1", "outcome=hang").await;
    assert_eq!((task.status, code(&task)), (TaskStatus::Failed, "task_timeout"));
    let slow = {
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.run(space, "2", "delay_ms=100000").await
    };
    assert_eq!(code(&slow), "task_timeout");
}

#[tokio::test(start_paused = true)]
async fn s10_a_crash_fails_the_task_at_once_and_the_space_comes_back() {
    let server = Server::start().await;
    let space = server.space().await;
    let began = tokio::time::Instant::now();
    let task = server.run(space, "1", "delay_ms=10&outcome=crash").await;
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    assert_eq!((task.status, code(&task)), (TaskStatus::Failed, "runtime_crashed"));
    assert!(matches!(server.submit(space, "2", "").await.unwrap_err(), Rejection::SpaceInError));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.run(space, "3", "").await.status, TaskStatus::Completed);
    let kinds = server.disk.kinds(space).await;
    assert_eq!(&kinds[3..6], ["failed", "faulted", "recovered"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_changes_nothing() {
    let server = Server::start().await;
    let space = server.space().await;
    let submitted = server.submit(space, "1", "delay_ms=30000&outcome=late").await.unwrap();
    settle().await;
    server.cancel(space).await;
    let (task, _) = submitted.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(code(&task), "cancel_timeout");
    let before = server.disk.kinds(space).await;
    assert!(before.contains(&"faulted".to_owned()));
    tokio::time::sleep(Duration::from_secs(120)).await;
    let ended = server.disk.journal.lines().into_iter().filter(|line| line.moment == Moment::End);
    assert_eq!(ended.filter_map(|line| line.outcome).collect::<Vec<_>>(), ["completed"], "it did answer");
    let events = server.disk.events().await;
    assert!(ends(&events).values().all(|count| *count == 1));
    assert!(!server.disk.kinds(space).await.contains(&"completed".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn s11_closing_a_running_space_cancels_first_and_frees_the_instance() {
    let server = Server::start().await;
    let instance = server.instance().await;
    let space = server.create(instance, None).await.unwrap().space.space;
    settle().await;
    let submitted = server.submit(space, "1", "delay_ms=60000").await.unwrap();
    settle().await;
    let closing = server.close(space).await;
    assert_ne!(closing.status, SpaceStatus::Closed);
    let (task, _) = submitted.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(task.status, TaskStatus::Cancelled);
    assert_eq!(
        server.disk.kinds(space).await[3..],
        ["close_requested", "cancel_requested", "cancelled", "closed"]
    );
    assert_eq!(server.submit(space, "2", "").await.unwrap_err(), Rejection::SpaceClosed);
    let next = server.create(instance, None).await.unwrap();
    settle().await;
    assert_eq!(server.run(next.space.space, "1", "").await.status, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn s05_what_is_refused_is_never_dispatched() {
    let server = Server::start().await;
    let space = server.space().await;
    let mut ungranted = crate::harness::submit(space, "1", "");
    ungranted.capability = "get_title".parse().unwrap();
    ungranted.args = eventlog::Sensitive::new(serde_json::json!({}));
    let refused = server.spaces.submit(&server.system(), ungranted).await.unwrap_err();
    assert!(matches!(refused, Rejection::CapabilityNotGranted { task: Some(_), .. }));
    let mut unknown = crate::harness::submit(space, "2", "");
    unknown.capability = "evaluate".parse().unwrap();
    assert_eq!(
        server.spaces.submit(&server.system(), unknown).await.unwrap_err(),
        Rejection::CapabilityUnknown { at: None }
    );
    let mut bad = crate::harness::submit(space, "3", "");
    bad.args = eventlog::Sensitive::new(serde_json::json!({ "script": "x" }));
    let refused = server.spaces.submit(&server.system(), bad).await.unwrap_err();
    assert!(matches!(refused, Rejection::InvalidArgs { .. }));
    assert!(server.disk.begun().is_empty());
    assert_eq!(server.disk.kinds(space).await, ["opened", "queued", "failed"]);
}

#[tokio::test(start_paused = true)]
async fn keys_live_as_long_as_their_task_and_their_space() {
    let server = Server::start().await;
    let space = server.space().await;
    assert_eq!(server.disk.keys.held_count(), 1, "the fingerprint key");
    let submitted = server.submit(space, "1", "delay_ms=1000").await.unwrap();
    assert_eq!(server.disk.keys.held_count(), 2);
    for _ in 0..5 {
        server.submit(space, "1", "delay_ms=1000").await.unwrap();
        server.submit(space, "2", "").await.unwrap_err();
    }
    assert_eq!(server.disk.keys.held_count(), 2);
    submitted.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(server.disk.keys.held_count(), 1);
    server.close(space).await;
    assert_eq!(server.disk.keys.held_count(), 0);
}

/// What the server does of its own: a start, a recovery, an idle time-out and a drain have a trace each.
#[tokio::test(start_paused = true)]
async fn every_piece_of_the_servers_own_work_has_a_trace_of_its_own_and_its_events_carry_it() {
    let server = Server::start().await;
    let (idle, busy) = (server.space().await, server.space().await);
    server.run(idle, "1", "outcome=crash").await;
    tokio::time::sleep(Duration::from_secs(3_700)).await;
    assert!(server.submit(busy, "1", "").await.is_err(), "its idle time is over, too");
    let kept = server.space().await;
    let next = Server::on(server.disk.reopened(), crate::harness::config()).await;
    next.spaces.drain(Duration::from_secs(1)).await;
    let events = next.disk.events().await;
    let mut traces = std::collections::HashMap::<_, std::collections::BTreeSet<_>>::new();
    for recorded in &events {
        let kind = recorded.event.kind();
        // The harness calls outside any trace; so what it asked for has none.
        let asked = [
            "created",
            "token_issued",
            "registered",
            "reserved",
            "opened",
            "queued",
            "started",
            "failed",
            "faulted",
        ];
        if asked.contains(&kind) {
            continue;
        }
        assert_ne!(recorded.metadata.trace_id, TraceId::default(), "{kind} of {:?}", recorded.stream);
        traces.entry(recorded.metadata.trace_id).or_default().insert(kind.to_owned());
    }
    let with = |kind: &str| traces.values().filter(|kinds| kinds.contains(kind)).count();
    assert_eq!(with("booted"), 2);
    assert!(with("runtime_starting") >= 4 && with("runtime_ready") >= 4, "{traces:?}");
    let of_idle =
        traces.values().filter(|kinds| kinds.contains("closed") && !kinds.contains("drain_started"));
    assert_eq!(of_idle.count(), 2, "{traces:?}");
    let drain = traces.values().find(|kinds| kinds.contains("drain_started")).expect("it drained");
    assert!(drain.contains("closed") && drain.contains("stopped"), "{drain:?}");
    assert!(next.disk.kinds(kept).await.contains(&"closed".to_owned()));
}
