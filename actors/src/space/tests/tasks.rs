//! S8, S9, S13: every row of the task's state machine.

use eventlog::{
    Redactor, SpaceEvent,
    event::space::{CancelReason, CloseReason},
};
use serde_json::json;

use crate::{
    rejection::Denial,
    runtime::Outcome,
    space::{Command, NOTICES_PER_TASK_MAX, Notice, StartFault, scenario::*, summary::TaskStatus},
};

fn running() -> Vec<SpaceEvent> {
    vec![opened(), queued(1), started(1, 1)]
}

fn cancelling() -> Vec<SpaceEvent> {
    [running(), vec![cancel_requested(1, CancelReason::Requested)]].concat()
}

fn failed_by_runtime(code: &str) -> SpaceEvent {
    SpaceEvent::TaskFailed { task: task(1), error: runtime_error(code) }
}

#[test]
fn a_running_task_completes() {
    let when = given(running()).when(report(1, 1, done())).then([completed(1)]);
    let summary = when.after().state.task(task(1)).expect("it ended last");
    assert_eq!(summary.status, TaskStatus::Completed);
    assert_eq!(summary.result, Some(Redactor::new().json(json!({ "ok": true }))));
    assert_eq!(summary.finished_at, Some(NOW));
    assert!(summary.started_at.is_some());
}

#[test]
fn s09_a_failure_is_recorded_with_the_runtimes_code_and_the_space_goes_on() {
    for code in ["element_not_found", "task_timeout", "navigation_failed"] {
        let outcome = Outcome::Failed(runtime_error(code));
        let when = given(running()).when(report(1, 1, outcome)).then([failed_by_runtime(code)]);
        when.after().when(submit(2)).then([queued(2), started(2, 1)]);
    }
}

#[test]
fn s09_a_runtime_that_says_it_is_gone_puts_the_space_in_error_in_the_same_append() {
    for code in ["runtime_crashed", "runtime_disconnected"] {
        let outcome = Outcome::Failed(runtime_error(code));
        given(running()).when(report(1, 1, outcome)).then([failed_by_runtime(code), faulted(code, 1)]);
    }
}

#[test]
fn s13_a_result_beyond_64_kib_is_replaced_and_one_of_64_kib_is_not() {
    for (letters, fits) in [(64 * 1024 - 2, true), (64 * 1024 - 1, false)] {
        let result = Redactor::new().json(json!("x".repeat(letters)));
        let outcome = Outcome::Completed { result: result.clone(), artifacts: Vec::new() };
        let after = given(running()).when(report(1, 1, outcome)).after();
        let recorded = after.state.task(task(1)).and_then(|task| task.result).expect("it completed");
        let replaced = Redactor::new().json(json!({ "truncated": true, "reason": "result_too_large" }));
        assert_eq!(recorded, if fits { result } else { replaced });
    }
}

#[test]
fn s08_a_queued_task_is_cancelled_at_once() {
    let when = given([opened(), queued(1)]).when(cancel());
    let when = when.then([cancel_requested(1, CancelReason::Requested), cancelled(1)]);
    let summary = when.after().state.task(task(1)).expect("it ended last");
    assert_eq!((summary.status, summary.cancel_requested), (TaskStatus::Cancelled, true));
}

#[test]
fn s08_a_running_task_keeps_its_status_until_the_runtime_has_acknowledged() {
    let when = given(running()).when(cancel()).then([cancel_requested(1, CancelReason::Requested)]);
    let given = when.after();
    let summary = given.state.task(task(1)).expect("it is active");
    assert_eq!((summary.status, summary.cancel_requested), (TaskStatus::Running, true));
    given.when(report(1, 1, Outcome::Cancelled)).then([cancelled(1)]);
}

#[test]
fn s08_cancelling_is_idempotent_in_every_state() {
    given(cancelling()).when(cancel()).then_nothing();
    given([opened()]).when(cancel()).then_nothing();
    given([running(), vec![completed(1)]].concat()).when(cancel()).then_nothing();
    let over = [opened(), closed(CloseReason::Requested)];
    given(over).when(cancel()).then_nothing();
}

#[test]
fn s08_a_completion_that_wins_the_race_with_a_cancel_stays_completed() {
    given(cancelling()).when(report(1, 1, done())).then([completed(1)]);
}

#[test]
fn s08_a_failure_that_wins_the_race_with_a_cancel_stays_failed() {
    let outcome = Outcome::Failed(runtime_error("element_not_found"));
    given(cancelling()).when(report(1, 1, outcome)).then([failed_by_runtime("element_not_found")]);
}

#[test]
fn s08_a_stop_that_nobody_asked_for_is_a_failure_and_no_cancel() {
    given(running()).when(report(1, 1, Outcome::Cancelled)).then([failed(1, "runtime_stopped")]);
}

#[test]
fn s08_a_cancel_without_acknowledgement_fails_the_task_and_its_runtime() {
    let overdue = Command::Overdue { operation: operation(1) };
    given(cancelling()).when(overdue).then([failed(1, "cancel_timeout"), faulted("cancel_timeout", 1)]);
}

#[test]
fn a_runtime_that_ignores_the_deadline_fails_its_task_and_is_replaced() {
    let overdue = Command::Overdue { operation: operation(1) };
    given(running()).when(overdue.clone()).then([failed(1, "task_timeout"), faulted("task_timeout", 1)]);
    given([opened(), queued(1)]).when(overdue.clone()).then_nothing();
    given([running(), vec![completed(1)]].concat()).when(overdue).then_nothing();
}

#[test]
fn a_replaced_runtime_cannot_complete_a_task() {
    let second = [running(), vec![failed(1, "runtime_crashed"), faulted("runtime_crashed", 1)]].concat();
    let second = [second, vec![recovered(2), queued(2), started(2, 2)]].concat();
    given(second.clone()).when(report(1, 1, done())).then_nothing();
    given(second.clone()).when(report(2, 1, done())).then_nothing();
    given(second).when(report(2, 2, done())).then([completed(2)]);
}

#[test]
fn s08_a_task_that_has_ended_keeps_its_end() {
    let ended = [cancelling(), vec![cancelled(1)]].concat();
    given(ended.clone()).when(report(1, 1, done())).then_nothing();
    given(ended.clone()).when(report(1, 1, Outcome::Cancelled)).then_nothing();
    given(ended).when(Command::Overdue { operation: operation(1) }).then_nothing();
}

#[test]
fn a_report_of_another_dispatch_is_ignored() {
    let mut other = report(1, 1, done());
    other.operation = operation(9);
    given(running()).when(other).then_nothing();
    given([opened(), queued(1)]).when(report(1, 1, done())).then_nothing();
}

#[test]
fn s12_the_key_of_the_args_is_needed_until_the_task_ends_and_no_longer() {
    let key = sealed(1).key;
    for history in [vec![opened(), queued(1)], running(), cancelling()] {
        assert!(given(history).state.live_keys().contains(&key));
    }
    let ended = given([running(), vec![completed(1)]].concat());
    assert!(!ended.state.live_keys().contains(&key));
    assert_eq!(ended.state.live_keys().len(), 1, "the key of the fingerprints stays");
    let last = ended.state.space().and_then(|space| space.last_task.as_ref()).expect("it ended last");
    assert_eq!(last.task.sealed_args, None, "not even sealed");
    let over = given([opened(), closed(CloseReason::Requested)]);
    assert_eq!(over.state.live_keys(), []);
}

#[test]
fn notices_are_recorded_up_to_a_bound_that_each_task_renews() {
    let blocked = || {
        Command::Notice(Notice::Blocked {
            rule: "floor".to_owned(),
            target: eventlog::Redacted::own("10.0.0.1:80"),
            count: Some(7),
        })
    };
    let event = || SpaceEvent::Blocked {
        rule: "floor".to_owned(),
        target: eventlog::Redacted::own("10.0.0.1:80"),
        count: Some(7),
    };
    given(running()).when(blocked()).then([event()]);
    let many = (0..NOTICES_PER_TASK_MAX).map(|_| event());
    let full: Vec<_> = running().into_iter().chain(many).collect();
    given(full.clone()).when(blocked()).then_nothing();
    given([full, vec![completed(1), queued(2)]].concat()).when(blocked()).then([event()]);
}

#[test]
fn what_the_server_tells_a_space_no_caller_can() {
    for command in [
        Command::Report(report(1, 1, done())),
        Command::Overdue { operation: operation(1) },
        ready(2),
        lost(1, eventlog::event::instance::LossReason::Crashed),
        Command::RuntimeUnavailable(StartFault::Overdue),
        Command::Recover { executing: None },
        Command::IdleTick { last_use: None },
    ] {
        given(running()).by(agent("agent-1")).when(command).then_rejected(&Denial::ServerOnly.into());
    }
}
