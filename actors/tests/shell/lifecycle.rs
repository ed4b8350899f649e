//! Creating, repeating, sleeping, ending: what happens to Spaces besides their tasks.

use std::time::Duration;

use actors::{
    Denial, Rejection,
    config::Config,
    runtime::scripted::StartScript,
    space::{
        StartFault,
        summary::{SpaceStatus, TaskStatus},
    },
};
use eventlog::{Event, InstanceEvent, Role, ServerEvent, StreamId, memory::Fault};
use futures::future::join_all;

use crate::harness::{Disk, Server, code, config, create, settle, submit, workspace};

#[tokio::test(start_paused = true)]
async fn s03_of_many_creates_at_once_one_wins_and_the_others_leave_nothing() {
    let server = Server::start().await;
    let instance = server.instance().await;
    let before = server.disk.events().await.len();
    let creates = (0..30).map(|_| server.create(instance, None));
    let (won, lost): (Vec<_>, Vec<_>) = join_all(creates).await.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for refused in lost {
        assert_eq!(refused.unwrap_err(), Rejection::BrowserInstanceInUse);
    }
    let events = server.disk.events().await;
    let kinds: Vec<_> = events[before..].iter().map(|recorded| recorded.event.kind()).collect();
    assert_eq!(&kinds[..2], ["reserved", "opened"]);
    assert!(!kinds[2..].iter().any(|kind| ["reserved", "opened"].contains(kind)));
    assert_eq!(server.disk.keys.held_count(), 1, "the keys of the losers are gone");
}

#[tokio::test(start_paused = true)]
async fn a_create_repeated_with_its_key_is_the_first_space_also_after_a_restart() {
    let server = Server::start().await;
    let (one, other) = (server.instance().await, server.instance().await);
    let first = server.create(one, Some("key")).await.unwrap();
    let again = server.create(one, Some("key")).await.unwrap();
    assert!(!first.repeated && again.repeated);
    assert_eq!(first.space.space, again.space.space);
    let conflict = server.create(other, Some("key")).await.unwrap_err();
    assert_eq!(conflict, Rejection::RequestIdConflict);
    let disk = server.disk.reopened();
    let server = Server::on(disk, config()).await;
    let later = server.create(one, Some("key")).await.unwrap();
    assert_eq!((later.space.space, later.repeated), (first.space.space, true));
    let empty = server.create(other, Some("")).await.unwrap_err();
    assert!(matches!(empty, Rejection::InvalidRequest { field: "Idempotency-Key", .. }));
}

#[tokio::test(start_paused = true)]
async fn s02_a_stranger_can_do_nothing_with_a_space() {
    let server = Server::start().await;
    let space = server.space().await;
    let agent = server.context(&server.caller(Role::RuntimeAgent, "agent-7").await);
    let auditor = server.context(&server.caller(Role::Auditor, "eve").await);
    let not_yours = Rejection::Forbidden(Denial::Owner);
    let not_your_role = Rejection::Forbidden(Denial::Role(&[Role::Operator, Role::RuntimeAgent]));
    for (context, denial) in [(&agent, not_yours), (&auditor, not_your_role)] {
        let refused = server.spaces.submit(context, submit(space, "1", "")).await.unwrap_err();
        assert_eq!(refused, denial);
        assert_eq!(server.spaces.cancel(context, &workspace(), space).await.unwrap_err(), denial);
        assert_eq!(server.spaces.close(context, &workspace(), space).await.unwrap_err(), denial);
        let other = "other".parse().unwrap();
        let outside = server.spaces.close(context, &other, space).await.unwrap_err();
        assert_eq!(outside, Denial::Workspace.into());
    }
    let instance = server.instance().await;
    let refused = server.spaces.create(&agent, create(instance, None)).await.unwrap_err();
    assert_eq!(refused, Denial::OwnId("agent-7".parse().unwrap()).into());
    assert!(server.disk.begun().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_space_is_woken_by_whoever_asks_and_forgets_nothing() {
    let server = Server::start().await;
    let space = server.space().await;
    let first = server.run(space, "1", "").await;
    tokio::time::sleep(Duration::from_secs(400)).await;
    let again = server.submit(space, "1", "").await.unwrap();
    assert!(again.repeated);
    assert_eq!(again.task, first);
    let (task, _) = again.ended.within(Duration::ZERO).await.expect("it has ended already");
    assert_eq!(task.status, TaskStatus::Completed);
    assert_eq!(server.run(space, "2", "").await.status, TaskStatus::Completed);
    let generations: Vec<_> = server.disk.begun().iter().map(|line| line.generation.0).collect();
    assert_eq!(generations, [1, 1], "the runtime stayed");
}

#[tokio::test(start_paused = true)]
async fn sleeping_and_waking_under_load_loses_no_command() {
    let config = Config { passivate_after: Duration::from_millis(1), ..config() };
    let server = Server::on(Disk::new(), config).await;
    let space = server.space().await;
    for round in 0..200 {
        let submits = (0..4).map(|client| {
            let request = format!("{round}-{client}");
            let server = &server;
            async move { server.submit(space, &request, "delay_ms=300").await }
        });
        let accepted: Vec<_> = join_all(submits).await.into_iter().flatten().collect();
        assert_eq!(accepted.len(), 1, "one wins, and nobody hears anything but yes or busy");
        for submitted in accepted {
            submitted.ended.within(Duration::from_secs(60)).await.expect("it ends");
        }
        tokio::time::sleep(Duration::from_millis(round % 7 * 100)).await;
    }
    assert_eq!(server.disk.begun().len(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_space_is_closed_also_while_it_sleeps_and_a_touch_renews_it() {
    let server = Server::start().await;
    let space = server.space().await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(3000)).await;
        server.spaces.touch(&server.system().caller, space);
    }
    assert_eq!(server.disk.kinds(space).await, ["opened"]);
    tokio::time::sleep(Duration::from_secs(3700)).await;
    assert_eq!(server.disk.kinds(space).await, ["opened", "close_requested", "closed"]);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_event_quarantines_its_space_and_the_others_live() {
    let server = Server::start().await;
    let (instance, other) = (server.instance().await, server.instance().await);
    let damaged = server.create(instance, None).await.unwrap().space.space;
    let healthy = server.create(other, None).await.unwrap().space.space;
    settle().await;
    server.run(damaged, "1", "").await;
    server.run(healthy, "1", "").await;
    let events = server.disk.events().await;
    let queued = events
        .iter()
        .find(|recorded| recorded.stream == StreamId::Space(damaged) && recorded.event.kind() == "queued");
    let disk = server.disk.reopened();
    disk.log.damage(queued.expect("it was queued").position);
    let begun = disk.begun().len();
    let server = Server::on(disk, config()).await;
    settle().await;
    let corrupt = Rejection::CorruptStream { stream: StreamId::Space(damaged) };
    assert_eq!(server.submit(damaged, "2", "").await.unwrap_err(), corrupt);
    assert_eq!(server.spaces.close(&server.system(), &workspace(), damaged).await.unwrap_err(), corrupt);
    assert_eq!(server.run(healthy, "2", "").await.status, TaskStatus::Completed);
    server.close(healthy).await;
    assert!(server.create(other, None).await.is_ok(), "the other instance is free again");
    // A good copy of the log may bring the Space back, so nobody else gets its browser.
    assert_eq!(server.create(instance, None).await.unwrap_err(), Rejection::BrowserInstanceInUse);
    let of_damaged = server.disk.begun()[begun..].iter().filter(|line| line.space == damaged).count();
    assert_eq!(of_damaged, 0);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_instance_is_refused_and_a_damaged_workspace_refuses_the_start() {
    let server = Server::start().await;
    let (instance, other) = (server.instance().await, server.instance().await);
    server.caller(Role::RuntimeAgent, "agent-7").await;
    let events = server.disk.events().await;
    let position = |stream: StreamId| {
        events.iter().rfind(|recorded| recorded.stream == stream).expect("it has events").position
    };
    let disk = server.disk.reopened();
    disk.log.damage(position(StreamId::Instance(instance)));
    let server = Server::on(disk, config()).await;
    let refused = server.create(instance, None).await.unwrap_err();
    // Its one event was its registration, so nothing at all is known of it.
    assert!(matches!(refused, Rejection::InstanceNotFound | Rejection::CorruptStream { .. }), "{refused:?}");
    assert!(server.create(other, None).await.is_ok());
    let disk = server.disk.reopened();
    disk.log.damage(position(StreamId::Workspace(workspace())));
    assert!(Server::try_on(disk, config()).await.is_err(), "what was lost may be a revocation");
}

#[tokio::test(start_paused = true)]
async fn a_retired_instance_closes_its_space_and_takes_no_other() {
    let server = Server::start().await;
    let instance = server.instance().await;
    let space = server.create(instance, None).await.unwrap().space.space;
    server.spaces.retire_instance(&server.system(), instance).await.unwrap();
    settle().await;
    assert_eq!(server.disk.kinds(space).await, ["opened", "close_requested", "closed"]);
    assert_eq!(server.create(instance, None).await.unwrap_err(), Rejection::InstanceRetired);
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_for_a_starting_runtime_and_fails_when_the_supervisor_gives_up() {
    let server = Server::start().await;
    let instance = server.instance().await;
    server.scripted.script_starts([StartScript::After(Duration::from_secs(5))]);
    let space = server.create(instance, None).await.unwrap().space.space;
    let waiting = server.submit(space, "1", "").await.unwrap();
    assert_eq!(waiting.task.status, TaskStatus::Queued);
    let (task, _) = waiting.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(task.status, TaskStatus::Completed);

    let instance = server.instance().await;
    server.scripted.script_starts([StartScript::Unusable; 3]);
    let space = server.create(instance, None).await.unwrap().space.space;
    settle().await;
    let refused = server.submit(space, "1", "").await.unwrap_err();
    let Rejection::RuntimeNotReady { task: Some(_), fault, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(fault, Some(StartFault::NoExecutable), "as the script plays it");
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(server.run(space, "2", "").await.status, TaskStatus::Completed, "a probe went well");
}

#[tokio::test(start_paused = true)]
async fn an_append_of_unknown_outcome_is_settled_by_the_same_request() {
    for fault in [Fault::UnknownWritten, Fault::UnknownNotWritten] {
        let server = Server::start().await;
        let space = server.space().await;
        server.disk.log.fail_append(1, fault);
        assert_eq!(server.submit(space, "1", "").await.unwrap_err(), Rejection::OutcomeUnknown);
        let again = server.submit(space, "1", "").await.unwrap();
        let (task, _) = again.ended.within(Duration::from_secs(60)).await.unwrap();
        match fault {
            Fault::UnknownWritten => assert_eq!(code(&task), "interrupted"),
            _ => assert_eq!(task.status, TaskStatus::Completed),
        }
        assert!(server.disk.begun().len() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_the_log_refuses_is_recorded_when_the_log_is_back() {
    let server = Server::start().await;
    let space = server.space().await;
    let submitted = server.submit(space, "1", "delay_ms=100").await.unwrap();
    server.disk.log.fail_append(1, Fault::Unavailable);
    server.disk.log.fail_append(2, Fault::UnknownNotWritten);
    server.disk.log.fail_append(3, Fault::Conflict);
    let (task, _) = submitted.ended.within(Duration::from_secs(60)).await.unwrap();
    assert_eq!(task.status, TaskStatus::Completed);
    assert_eq!(server.disk.begun().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_everything_in_order_and_a_second_one_waits_for_the_first() {
    let server = Server::start().await;
    let (quick, slow, hung, idle) =
        (server.space().await, server.space().await, server.space().await, server.space().await);
    let quick_task = server.submit(quick, "1", "delay_ms=500").await.unwrap();
    let slow_task = server.submit(slow, "1", "delay_ms=50000").await.unwrap();
    let hung_task = server.submit(hung, "1", "outcome=hang").await.unwrap();
    settle().await;
    let within = Duration::from_secs(6);
    let refused = async {
        settle().await;
        assert!(server.spaces.is_draining());
        assert_eq!(server.submit(idle, "1", "").await.unwrap_err(), Rejection::ShuttingDown);
    };
    tokio::join!(server.spaces.drain(within), server.spaces.drain(within), refused);
    let end = async |submitted: actors::spaces::Submitted| {
        submitted.ended.within(Duration::ZERO).await.expect("every end is recorded").0
    };
    assert_eq!(end(quick_task).await.status, TaskStatus::Completed);
    assert_eq!(end(slow_task).await.status, TaskStatus::Cancelled);
    assert_eq!(code(&end(hung_task).await), "interrupted");
    let events = server.disk.events().await;
    let released = |recorded: &&eventlog::RecordedEvent| {
        matches!(recorded.event, Event::Instance(InstanceEvent::Released { .. }))
    };
    assert_eq!(events.iter().filter(released).count(), 4);
    let last = &events.last().unwrap().event;
    assert!(matches!(last, Event::Server(ServerEvent::Stopped { .. })), "{last:?}");
    let stopped = events.iter().filter(|recorded| recorded.event.kind() == "stopped").count();
    assert_eq!(stopped, 1);
    let server = Server::on(server.disk.reopened(), config()).await;
    let closed = server.close(idle).await;
    assert_eq!(closed.status, SpaceStatus::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_asked_for_and_did_not_wait_for_is_known_as_it_is_recorded() {
    let server = Server::start().await;
    {
        let mut registering = std::pin::pin!(server.try_instance());
        assert!(futures::poll!(registering.as_mut()).is_pending());
        let mut issuing = std::pin::pin!(server.caller(Role::RuntimeAgent, "agent"));
        assert!(futures::poll!(issuing.as_mut()).is_pending());
        // Both hang up here.
    }
    settle().await;
    let events = server.disk.events().await;
    let kinds: Vec<_> = events.iter().map(|recorded| recorded.event.kind()).collect();
    assert!(kinds.contains(&"registered") && kinds.contains(&"token_issued"), "{kinds:?}");
    assert_eq!(server.spaces.instances().len(), 1);
    assert_eq!(server.spaces.workspaces().len(), 1);
}
