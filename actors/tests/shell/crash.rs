//! The process dies at every append of every scenario, before and after it became durable; a next one finds the same
//! bytes; the client says everything again with the same ids. Then nothing may be lost, doubled or left over.

use std::{collections::HashMap, time::Duration};

use actors::runtime::journal::Moment;
use eventlog::{
    Event, InstanceEvent, RecordedEvent, SpaceEvent, StreamId,
    id::{SpaceId, TaskId},
    memory::Fault,
};

use crate::harness::{Disk, Server, config, settle};

/// What a client does, one step after the other; each can be said again.
#[derive(Debug, Clone, Copy)]
enum Move {
    /// A Space with this key on the one instance.
    Create(&'static str),
    /// A task on the newest Space; waits for its end.
    Run(&'static str, &'static str),
    /// A task on the newest Space; does not wait.
    Submit(&'static str, &'static str),
    Cancel,
    Close,
    /// Milliseconds.
    Wait(u64),
    Drain,
}
use Move::{Cancel, Close, Create, Drain, Run, Submit, Wait};

const SCENARIOS: &[&[Move]] = &[
    &[Create("a"), Wait(10), Run("1", "delay_ms=5"), Run("2", ""), Close],
    &[Create("a"), Submit("1", "delay_ms=50"), Wait(100), Run("2", ""), Close],
    &[Create("a"), Wait(10), Submit("1", "delay_ms=60000"), Wait(10), Cancel, Wait(10), Run("2", ""), Close],
    &[Create("a"), Wait(10), Submit("1", "outcome=hang"), Wait(10), Cancel, Wait(20_000), Run("2", "")],
    &[Create("a"), Wait(10), Run("1", "outcome=crash"), Wait(1000), Run("2", ""), Close],
    &[
        Create("a"),
        Wait(10),
        Submit("1", "delay_ms=60000"),
        Wait(10),
        Close,
        Wait(100),
        Create("b"),
        Run("1", ""),
    ],
    &[Create("a"), Wait(10), Close, Create("b"), Wait(10), Close, Create("c"), Run("1", "")],
    &[Create("a"), Wait(10), Run("1", "outcome=fail"), Run("2", "delay_ms=10"), Drain],
    &[Create("a"), Submit("1", ""), Cancel, Submit("2", ""), Wait(10), Close],
    &[
        Create("a"),
        Wait(10),
        Submit("1", "delay_ms=30000&outcome=late"),
        Wait(10),
        Cancel,
        Wait(60_000),
        Run("2", ""),
    ],
    &[Create("a"), Wait(4_000_000), Create("b"), Run("1", "")],
];

/// One life of a process. `Err` if the log died under it.
async fn live(disk: Disk, moves: &[Move]) -> Result<(), ()> {
    let log = disk.log.clone();
    let Ok(server) = Server::try_on(disk, config()).await else { return Err(()) };
    let alive = || if log.is_dead() { Err(()) } else { Ok(()) };
    let known = server.spaces.instances();
    let instance = match known.first() {
        Some(instance) => *instance,
        None => server.try_instance().await.map_err(|_| ())?,
    };
    let mut newest: Option<SpaceId> = None;
    for one in moves {
        match *one {
            Create(key) => match server.create(instance, Some(key)).await {
                Ok(created) => newest = Some(created.space.space),
                Err(refused) => assert!(log.is_dead(), "{one:?}: {refused:?}"),
            },
            Run(request, script) => {
                let Some(space) = newest else { return Err(()) };
                // Busy or in error is an honest answer to a client that says everything again; so it asks once more.
                for _ in 0..100 {
                    match server.submit(space, request, script).await {
                        Ok(submitted) => {
                            let ended = submitted.ended.within(Duration::from_secs(200)).await;
                            assert!(ended.is_some() || log.is_dead(), "{one:?} never ended");
                            break;
                        }
                        Err(actors::Rejection::SpaceClosed) => break,
                        Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
                    }
                    alive()?;
                }
            }
            Submit(request, script) => {
                let Some(space) = newest else { return Err(()) };
                let _ = server.submit(space, request, script).await;
            }
            Cancel => {
                let Some(space) = newest else { return Err(()) };
                let context = server.system();
                let _ = server.spaces.cancel(&context, &crate::harness::workspace(), space).await;
            }
            Close => {
                let Some(space) = newest else { return Err(()) };
                let context = server.system();
                let _ = server.spaces.close(&context, &crate::harness::workspace(), space).await;
            }
            Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
            Drain => server.spaces.drain(Duration::from_secs(2)).await,
        }
        settle().await;
        alive()?;
    }
    // Whatever is under way comes to its end.
    tokio::time::sleep(Duration::from_secs(30)).await;
    alive()
}

/// Runs a life on a runtime of its own; when that is dropped, everything of the process is gone.
fn one_life(disk: &Disk, moves: &[Move]) -> Result<(), ()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(live(disk.clone(), moves))
}

fn events(disk: &Disk) -> Vec<RecordedEvent> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(disk.events())
}

#[test]
fn a_crash_at_any_append_loses_nothing_and_doubles_nothing() {
    let mut points = 0;
    for (number, moves) in SCENARIOS.iter().enumerate() {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            for nth in 1.. {
                let disk = Disk::new();
                disk.log.fail_append(nth, fault);
                if one_life(&disk, moves).is_ok() && !disk.log.is_dead() {
                    break;
                }
                points += 1;
                let place = format!("scenario {number}, {fault:?} at append {nth}");
                let second = disk.reopened();
                assert_eq!(one_life(&second, moves), Ok(()), "{place}");
                check(&second, &place);
                assert!(nth < 100, "{place}: no end");
            }
        }
    }
    assert!(points > 100, "only {points} points");
}

/// I1 to I9, as far as the log and the journal tell.
fn check(disk: &Disk, place: &str) {
    let events = events(disk);
    check_log(&events, place);
    check_calls(disk, &events, place);
}

fn check_log(events: &[RecordedEvent], place: &str) {
    let mut holder: Option<SpaceId> = None;
    let mut active: HashMap<SpaceId, TaskId> = HashMap::new();
    let mut sequences: HashMap<StreamId, u64> = HashMap::new();
    let mut cancels: Vec<TaskId> = Vec::new();
    let mut requests: HashMap<(SpaceId, String), u32> = HashMap::new();
    let mut opened = 0;
    for (index, recorded) in events.iter().enumerate() {
        assert_eq!(recorded.position.0, index as u64 + 1, "{place}: positions have no gap");
        let sequence = sequences.entry(recorded.stream.clone()).or_default();
        *sequence += 1;
        assert_eq!(recorded.sequence.0, *sequence, "{place}: sequences have no gap");
        match (&recorded.stream, &recorded.event) {
            (_, Event::Instance(InstanceEvent::Reserved { space, .. })) => {
                assert_eq!(holder.replace(*space), None, "{place}: I6, reserved twice");
            }
            (_, Event::Instance(InstanceEvent::Released { space, .. })) => {
                assert_eq!(holder.take(), Some(*space), "{place}: released by another");
            }
            (StreamId::Space(space), Event::Space(event)) => match event {
                SpaceEvent::Opened { .. } => opened += 1,
                SpaceEvent::TaskQueued { task, request_id, .. } => {
                    assert_eq!(active.insert(*space, *task), None, "{place}: I1, two tasks");
                    *requests.entry((*space, request_id.to_string())).or_default() += 1;
                }
                SpaceEvent::CancelRequested { task, .. } => cancels.push(*task),
                SpaceEvent::TaskCompleted { task, .. } | SpaceEvent::TaskFailed { task, .. } => {
                    assert_eq!(active.remove(space), Some(*task), "{place}: I3, ended twice");
                }
                SpaceEvent::TaskCancelled { task } => {
                    assert!(cancels.contains(task), "{place}: I5, cancelled unasked");
                    assert_eq!(active.remove(space), Some(*task), "{place}: I3, ended twice");
                }
                SpaceEvent::Closed { .. } => {
                    assert_eq!(active.get(space), None, "{place}: I8, closed over a task");
                }
                _ => {}
            },
            _ => {}
        }
    }
    assert!(active.is_empty(), "{place}: I3, a task has not ended");
    assert!(requests.values().all(|count| *count == 1), "{place}: I7, a request made two tasks");
    assert!(opened <= 3, "{place}: I6, a repeat made another Space");
}

fn check_calls(disk: &Disk, events: &[RecordedEvent], place: &str) {
    let started: Vec<TaskId> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::Space(SpaceEvent::TaskStarted { task, .. }) => Some(*task),
            _ => None,
        })
        .collect();
    let mut calls: HashMap<TaskId, u32> = HashMap::new();
    for line in disk.journal.lines() {
        if let (Moment::Begin, Some(task)) = (line.moment, line.task) {
            *calls.entry(task).or_default() += 1;
            assert!(started.contains(&task), "{place}: I4, a call that was not recorded first");
        }
    }
    assert!(calls.values().all(|count| *count == 1), "{place}: I2, the browser saw a task twice");
}
