//! S10, S14: the ways in which a Space ends.

use std::time::Duration;

use eventlog::{
    ExpectedSequence, SpaceEvent, StreamId, Timestamp,
    event::{
        instance::LossReason::Crashed,
        space::{
            CancelReason::Closing,
            CloseReason::{self, Drained, IdleTimeout, InstanceRetired, Requested},
        },
    },
};

use crate::{
    runtime::Outcome,
    space::{Command, Effect, InHand, StartFault, scenario::*, summary::SpaceStatus},
};

fn running() -> Vec<SpaceEvent> {
    vec![opened(), queued(1), started(1, 1)]
}

fn closing() -> Vec<SpaceEvent> {
    [running(), vec![close_requested(Requested), cancel_requested(1, Closing)]].concat()
}

#[test]
fn s10_an_idle_space_closes_and_frees_its_instance_in_one_append() {
    for history in [vec![opened()], vec![opened(), faulted("runtime_crashed", 1)]] {
        let given = given(history);
        let when = given.clone().when(close()).then([close_requested(Requested), closed(Requested)]);
        let parts = when.decided.as_ref().expect("it is allowed").parts(&given.state);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].stream, StreamId::Space(space_id()));
        assert_eq!(parts[0].expected, ExpectedSequence::Exact(given.state.revision()));
        assert_eq!(parts[1].stream, StreamId::Instance(instance_id()));
        assert_eq!(parts[1].events, [released(Requested).into()]);
        let summary = when.after().state.summary().expect("it is still shown");
        assert_eq!(summary.status, SpaceStatus::Closed);
    }
}

#[test]
fn s10_closing_with_a_queued_task_cancels_it_and_closes_in_one_append() {
    let all = |reason| [close_requested(reason), cancel_requested(1, Closing), cancelled(1), closed(reason)];
    given([opened(), queued(1)]).when(close()).then(all(Requested));
    let waiting = [opened(), queued(1), faulted("runtime_crashed", 1)];
    given(waiting).when(Command::Close { reason: Drained }).then(all(Drained));
}

#[test]
fn s10_closing_a_running_space_cancels_first_and_closes_with_the_tasks_end() {
    let when = given(running()).when(close());
    let after = when.then([close_requested(Requested), cancel_requested(1, Closing)]).after();
    assert_eq!(after.state.summary().expect("it exists").status, SpaceStatus::Running);
    after.clone().when(report(1, 1, Outcome::Cancelled)).then([cancelled(1), closed(Requested)]);
    after.clone().when(report(1, 1, done())).then([completed(1), closed(Requested)]);
    let error = runtime_error("element_not_found");
    let failed_by_runtime = SpaceEvent::TaskFailed { task: task(1), error: error.clone() };
    after.when(report(1, 1, Outcome::Failed(error))).then([failed_by_runtime, closed(Requested)]);
}

#[test]
fn s10_closing_a_space_whose_task_is_being_cancelled_does_not_cancel_it_again() {
    let cancelling = [running(), vec![cancel_requested(1, eventlog::event::space::CancelReason::Requested)]];
    given(cancelling.concat()).when(close()).then([close_requested(Requested)]);
}

#[test]
fn s10_a_closing_space_ends_with_its_task_whatever_ends_it() {
    let over = |code| [failed(1, code), closed(Requested)];
    given(closing()).when(lost(1, Crashed)).then(over("runtime_crashed"));
    given(closing()).when(Command::Overdue { operation: operation(1) }).then(over("cancel_timeout"));
    given(closing()).when(Command::Recover { executing: None }).then(over("interrupted"));
}

#[test]
fn s10_closing_is_idempotent() {
    given(closing()).when(close()).then_nothing();
    given(closing()).when(Command::Close { reason: Drained }).then_nothing();
    given([opened(), closed(Requested)]).when(close()).then_nothing();
}

#[test]
fn s10_a_close_that_was_not_finished_is_finished() {
    let torn = || given([opened(), close_requested(InstanceRetired)]);
    torn().then_due(InHand::default(), [Effect::Recover]);
    torn().when(Command::Recover { executing: None }).then([closed(InstanceRetired)]);
}

#[test]
fn nothing_follows_the_end() {
    let over = || given([opened(), closed(Requested)]);
    for command in [
        Command::Report(report(1, 1, done())),
        Command::Overdue { operation: operation(1) },
        ready(2),
        lost(1, Crashed),
        Command::RuntimeUnavailable(StartFault::Overdue),
        Command::Recover { executing: None },
        Command::IdleTick { last_use: None },
    ] {
        over().at(Timestamp(i64::MAX)).when(command).then_nothing();
    }
}

#[test]
fn s14_an_idle_space_closes_after_its_time_and_not_before() {
    let reason = IdleTimeout;
    let tick = |last_use| Command::IdleTick { last_use };
    let history = given([opened()]);
    let opened_at = history.state.space().expect("it is open").created_at;
    let after = |seconds| opened_at.plus(Duration::from_secs(seconds));
    assert_eq!(history.state.idle_at(None), Some(after(60)));
    history.clone().at(after(59)).when(tick(None)).then_nothing();
    history.clone().at(after(60)).when(tick(None)).then([close_requested(reason), closed(reason)]);
    // Any call of the owner renews it.
    history.clone().at(after(60)).when(tick(Some(after(1)))).then_nothing();
    history.at(after(61)).when(tick(Some(after(1)))).then([close_requested(reason), closed(reason)]);
}

#[test]
fn s14_a_task_renews_the_idle_time_and_a_loss_of_the_runtime_does_not() {
    let used = given([running(), vec![completed(1)]].concat());
    let space = used.state.space().expect("it is open");
    assert_eq!(space.last_activity, space.updated_at);
    let lost = given([opened(), faulted("runtime_crashed", 1), recovered(2)]);
    let space = lost.state.space().expect("it is open");
    assert_eq!(space.last_activity, space.created_at);
}

#[test]
fn s14_a_space_with_a_task_is_not_idle_and_one_in_error_is() {
    let tick = || Command::IdleTick { last_use: None };
    for history in [running(), vec![opened(), queued(1)], closing()] {
        let busy = given(history);
        assert_eq!(busy.state.idle_at(None), None);
        busy.when(tick()).then_nothing();
    }
    let in_error = given([opened(), faulted("runtime_crashed", 1)]);
    in_error.when(tick()).then([close_requested(IdleTimeout), closed(IdleTimeout)]);
}

#[test]
fn each_reason_is_kept_to_the_end() {
    let reasons: [CloseReason; 4] = [Requested, IdleTimeout, InstanceRetired, Drained];
    for reason in reasons {
        given([opened()]).when(Command::Close { reason }).then([close_requested(reason), closed(reason)]);
    }
}
