//! S7, S9: what becomes of a Space when its runtime comes and goes, and what is owed to it then.

use eventlog::{
    Fence, Generation, SpaceEvent,
    event::{
        instance::LossReason::{Crashed, StartFailed, Wedged},
        space::{CancelReason, CloseReason},
    },
};

use crate::space::{
    Command, Effect, InHand, RuntimeStatus, StartFault, effect::Execute, scenario::*, summary::SpaceStatus,
};

const UNAVAILABLE: RuntimeStatus =
    RuntimeStatus::Unavailable { retry_after_ms: 5_000, fault: StartFault::Overdue };

fn running() -> Vec<SpaceEvent> {
    vec![opened(), queued(1), started(1, 1)]
}

fn status(given: &Given) -> SpaceStatus {
    given.state.summary().expect("it exists").status
}

#[test]
fn s09_a_lost_runtime_fails_the_running_task_and_puts_the_space_in_error_in_one_append() {
    let when = given(running()).when(lost(1, Crashed));
    let when = when.then([failed(1, "runtime_crashed"), faulted("runtime_crashed", 1)]);
    let after = when.after();
    assert_eq!(status(&after), SpaceStatus::Error);
    assert_eq!(
        after.state.summary().and_then(|space| space.last_error_code).as_deref(),
        Some("runtime_crashed")
    );
}

#[test]
fn s09_a_lost_runtime_puts_an_idle_space_in_error_and_a_new_one_takes_it_out() {
    let after = given([opened()]).when(lost(1, Crashed)).then([faulted("runtime_crashed", 1)]).after();
    let after = after.when(ready(2)).then([recovered(2)]).after();
    assert_eq!(status(&after), SpaceStatus::Idle);
    given([opened()]).when(lost(1, StartFailed)).then([faulted("runtime_not_ready", 1)]);
}

#[test]
fn s07_a_queued_task_survives_a_loss_and_starts_on_the_next_runtime() {
    let history = [opened(), queued(1)];
    let after = given(history).when(lost(1, StartFailed)).then([faulted("runtime_not_ready", 1)]).after();
    let summary = after.state.summary().expect("it exists");
    assert_eq!(summary.status, SpaceStatus::Error);
    assert!(summary.active_task.is_some());
    after.when(ready(2)).then([recovered(2), started(1, 2)]);
}

#[test]
fn a_queued_task_starts_when_the_runtime_is_ready() {
    given([opened(), queued(1)]).when(ready(1)).then([started(1, 1)]);
    given([opened()]).when(ready(1)).then_nothing();
    given(running()).when(ready(1)).then_nothing();
}

#[test]
fn a_queued_task_fails_when_no_runtime_will_come() {
    let history = [opened(), queued(1), faulted("runtime_not_ready", 3)];
    given(history)
        .when(Command::RuntimeUnavailable(StartFault::Overdue))
        .then([failed(1, "runtime_not_ready")]);
    given(running()).when(Command::RuntimeUnavailable(StartFault::Overdue)).then_nothing();
    given([opened()]).when(Command::RuntimeUnavailable(StartFault::Overdue)).then_nothing();
}

#[test]
fn an_older_start_changes_nothing() {
    let history = [opened(), faulted("runtime_crashed", 2), recovered(3), queued(1)];
    given(history.clone()).when(lost(2, Crashed)).then_nothing();
    given(history).when(ready(2)).then_nothing();
    let in_error = [opened(), faulted("runtime_crashed", 2)];
    given(in_error.clone()).when(ready(2)).then_nothing();
    given(in_error).when(lost(2, Wedged)).then_nothing();
}

#[test]
fn the_loss_of_a_newer_start_ends_the_task_of_an_older_one_too() {
    given(running())
        .when(lost(2, Crashed))
        .then([failed(1, "runtime_crashed"), faulted("runtime_crashed", 2)]);
}

#[test]
fn s07_a_task_that_ran_when_the_server_ended_is_interrupted_and_never_dispatched_again() {
    let recover = || Command::Recover { executing: None };
    given(running()).when(recover()).then([failed(1, "interrupted")]);
    let cancelling = [running(), vec![cancel_requested(1, CancelReason::Requested)]].concat();
    given(cancelling).when(recover()).then([failed(1, "interrupted")]);
    given([opened(), queued(1)]).when(recover()).then_nothing();
    given([opened()]).when(recover()).then_nothing();
}

#[test]
fn a_task_that_is_still_executing_here_is_not_interrupted() {
    let executing = Some(operation(1));
    given(running()).when(Command::Recover { executing }).then_nothing();
    let executing = Some(operation(9));
    given(running()).when(Command::Recover { executing }).then([failed(1, "interrupted")]);
}

#[test]
fn failures_of_the_rules_say_whether_the_step_may_have_run() {
    let may_have_run = |history: Vec<SpaceEvent>, command: Command| {
        let after = given(history).when(command).after();
        after.state.task(task(1)).and_then(|task| task.error).expect("it failed").may_have_run
    };
    assert!(may_have_run(running(), lost(1, Crashed)));
    assert!(may_have_run(running(), Command::Recover { executing: None }));
    assert!(may_have_run(running(), Command::Overdue { operation: operation(1) }));
    assert!(!may_have_run(vec![opened(), queued(1)], Command::RuntimeUnavailable(StartFault::Overdue)));
}

#[test]
fn s07_a_step_is_owed_only_to_the_process_that_recorded_its_start() {
    let step = Effect::Execute(Box::new(Execute {
        task: task(1),
        operation: operation(1),
        generation: Generation(1),
        instance: instance_id(),
        fence: Fence(OPENED_AT),
        capability: capability("navigate"),
        sealed_args: sealed(1),
        deadline: NOW.plus(std::time::Duration::from_secs(30)),
    }));
    let started = InHand { started: Some(operation(1)), ..InHand::default() };
    let executing = InHand { executing: Some(operation(1)), ..started };
    given(running()).then_due(started, [step]);
    given(running()).then_due(executing, []);
    given(running()).then_due(InHand::default(), [Effect::Recover]);
    given([opened(), queued(1)]).runtime(RuntimeStatus::Starting).then_due(started, []);
}

#[test]
fn a_cancel_is_signalled_once() {
    let cancelling = [running(), vec![cancel_requested(1, CancelReason::Closing)]].concat();
    let executing = InHand { started: None, executing: Some(operation(1)), cancel_signalled: None };
    let given = given(cancelling);
    let requested_at = given.state.space().expect("it is open").updated_at;
    let signal =
        Effect::SignalCancel { operation: operation(1), reason: CancelReason::Closing, requested_at };
    given.then_due(executing, [signal]);
    given.then_due(InHand { cancel_signalled: Some(operation(1)), ..executing }, []);
}

#[test]
fn what_a_space_has_missed_of_its_runtime_is_owed_to_it() {
    let in_hand = InHand::default();
    let note = |generation| Effect::NoteReady { generation: Generation(generation) };
    given([opened(), queued(1)]).then_due(in_hand, [note(1)]);
    given([opened(), queued(1)])
        .runtime(UNAVAILABLE)
        .then_due(in_hand, [Effect::NoteUnavailable(StartFault::Overdue)]);
    let in_error = || given([opened(), faulted("cancel_timeout", 1)]);
    in_error().runtime(RuntimeStatus::Ready(Generation(2))).then_due(in_hand, [note(2)]);
    let replace = Effect::ReplaceRuntime { instance: instance_id(), generation: Generation(1) };
    in_error().then_due(in_hand, [replace]);
    in_error().runtime(UNAVAILABLE).then_due(in_hand, []);
}

#[test]
fn an_open_space_is_owed_a_runtime_and_a_closed_one_its_end() {
    let in_hand = InHand::default();
    let (instance, fence) = (instance_id(), Fence(OPENED_AT));
    let keep = Effect::KeepRuntime { instance, fence };
    given([opened()]).runtime(RuntimeStatus::Stopped).then_due(in_hand, [keep]);
    given([opened()]).then_due(in_hand, []);
    let over = || given([opened(), closed(CloseReason::Requested)]);
    over().then_due(in_hand, [Effect::StopRuntime { instance, fence }]);
    over().runtime(RuntimeStatus::Stopped).then_due(in_hand, []);
    given([]).runtime(RuntimeStatus::Stopped).then_due(in_hand, []);
}
