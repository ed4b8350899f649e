//! S2, S3, S5, S6, S7, S12: what a submit comes to, in the order of the checks.

use std::time::Duration;

use eventlog::{Generation, Role, SpaceEvent, event::space::CloseReason::Requested, sealing::Fingerprint};

use crate::{
    caller::Caller,
    capability::CheckError,
    rejection::{Denial, Rejection},
    space::{Reply, RuntimeStatus, StartFault, Submit, scenario::*, state::Remembered},
};

const UNAVAILABLE: RuntimeStatus =
    RuntimeStatus::Unavailable { retry_after_ms: 5_000, fault: StartFault::Overdue };

fn of_capability(n: u64, name: &str) -> Submit {
    Submit { capability: capability(name), ..submit(n) }
}

fn other_args(n: u64) -> Submit {
    Submit { fingerprint: Fingerprint([8; 32]), ..submit(n) }
}

fn refused(submit: &Submit, n: u64, code: &str) -> [SpaceEvent; 2] {
    [queued_with(submit, None), failed(n, code)]
}

#[test]
fn s06_a_task_is_queued_and_started_in_one_append_where_the_runtime_is_ready() {
    given([opened()]).when(submit(1)).then([queued(1), started(1, 1)]).replied(&Reply::Queued(task(1)));
}

#[test]
fn s06_a_task_is_only_queued_while_the_runtime_is_not_ready_yet() {
    for runtime in [RuntimeStatus::Starting, RuntimeStatus::Stopped] {
        let submitted = given([opened()]).runtime(runtime).when(submit(1));
        submitted.then([queued(1)]).replied(&Reply::Queued(task(1)));
    }
}

#[test]
fn a_start_older_than_the_space_has_seen_gets_no_task() {
    given([opened(), faulted("runtime_crashed", 2), recovered(3)])
        .runtime(RuntimeStatus::Ready(Generation(2)))
        .when(submit(1))
        .then([queued(1)]);
}

#[test]
fn s02_a_second_task_is_refused_while_one_is_active_whatever_else_is_wrong_with_it() {
    let busy = Rejection::SpaceTaskInProgress { task: task(1) };
    for history in [vec![opened(), queued(1)], vec![opened(), queued(1), started(1, 1)]] {
        given(history.clone()).when(submit(2)).then_rejected(&busy);
        given(history.clone()).when(of_capability(2, "fill")).then_rejected(&busy);
        given(history).runtime(UNAVAILABLE).when(submit(2)).then_rejected(&busy);
    }
}

#[test]
fn s07_a_repeat_gives_the_first_task_while_it_is_active_and_after_it_ended() {
    let active = vec![opened(), queued(1), started(1, 1)];
    let ended = [active.clone(), vec![completed(1)]].concat();
    let over = [ended.clone(), vec![close_requested(Requested), closed(Requested)]].concat();
    let faulted = [ended.clone(), vec![faulted("runtime_crashed", 1)]].concat();
    for history in [active, ended, over, faulted] {
        let repeat = Submit { task: task(9), operation: operation(9), ..submit(1) };
        let repeated = given(history.clone()).draining().runtime(UNAVAILABLE).when(repeat);
        repeated.then_nothing().replied(&Reply::Repeated(task(1)));
        given(history).when(other_args(1)).then_rejected(&Rejection::RequestIdConflict);
    }
}

#[test]
fn s07_a_recorded_refusal_uses_up_its_request_id() {
    let asked = of_capability(1, "fill");
    let after = given([opened()]).when(asked.clone()).after();
    after.when(asked).then_nothing().replied(&Reply::Repeated(task(1)));
}

#[test]
fn s07_the_last_thousand_request_ids_are_remembered_and_no_more() {
    let tasks = (1..=1_001).flat_map(|n| [queued(n), failed(n, "interrupted")]);
    let given = given(std::iter::once(opened()).chain(tasks));
    let requests = &given.state.space().expect("it is open").requests;
    assert_eq!(requests.len(), 1_000);
    assert_eq!(requests.get(&request(1)), None);
    let second = Remembered { fingerprint: Fingerprint([7; 32]), task: task(2) };
    assert_eq!(requests.get(&request(2)), Some(second));
}

#[test]
fn s10_a_closed_or_closing_space_takes_no_task() {
    let closing = [opened(), queued(1), started(1, 1), close_requested(Requested)];
    given(closing).when(submit(2)).then_rejected(&Rejection::SpaceClosed);
    let over = [opened(), close_requested(Requested), closed(Requested)];
    given(over).draining().when(submit(2)).then_rejected(&Rejection::SpaceClosed);
}

#[test]
fn a_draining_server_takes_no_task() {
    given([opened()]).draining().when(submit(1)).then_rejected(&Rejection::ShuttingDown);
}

#[test]
fn s05_an_unknown_capability_and_bad_args_are_refused_and_not_recorded() {
    let unknown = Submit { checked: Err(CheckError::Unknown), ..submit(1) };
    given([opened()]).when(unknown).then_rejected(&Rejection::CapabilityUnknown { at: None });
    let problems = vec!["/url: must be a string".to_owned()];
    let bad = Submit { checked: Err(CheckError::Args(problems.clone())), ..submit(1) };
    // Also where another task is active: bad args are the caller's to mend at any time.
    for history in [vec![opened()], vec![opened(), queued(2)]] {
        let rejection = Rejection::InvalidArgs { problems: problems.clone() };
        given(history).when(bad.clone()).then_rejected(&rejection);
    }
}

#[test]
fn s05_a_timeout_out_of_range_is_refused() {
    for (timeout, fits) in [(0, false), (1, true), (600, true), (601, false)] {
        let asked = Submit { timeout: Duration::from_secs(timeout), ..submit(1) };
        let submitted = given([opened()]).runtime(RuntimeStatus::Starting).when(asked);
        assert_eq!(submitted.decided.is_ok(), fits, "{timeout} s");
        if !fits {
            let code = submitted.decided.map_err(|rejection| rejection.code());
            assert_eq!(code, Err("invalid_request"));
        }
    }
}

#[test]
fn s09_a_space_in_error_takes_no_task() {
    let history = [opened(), faulted("runtime_crashed", 1)];
    given(history).runtime(RuntimeStatus::Starting).when(submit(1)).then_rejected(&Rejection::SpaceInError);
}

#[test]
fn s03_an_ungranted_capability_is_recorded_as_a_failed_task_without_args() {
    let asked = of_capability(1, "fill");
    let rejection = Rejection::CapabilityNotGranted { capability: capability("fill"), task: Some(task(1)) };
    let when = given([opened()]).when(asked.clone());
    let when = when.then(refused(&asked, 1, "capability_not_granted")).replied(&Reply::Refused(rejection));
    assert_eq!(when.after().state.live_keys().len(), 1, "the fingerprint's key alone");
}

#[test]
fn a_submit_without_a_runtime_in_sight_is_recorded_as_a_failed_task() {
    let rejection = Rejection::RuntimeNotReady {
        task: Some(task(1)),
        retry_after_ms: 5_000,
        fault: Some(StartFault::Overdue),
    };
    for history in [vec![opened()], vec![opened(), faulted("runtime_not_ready", 1)]] {
        given(history)
            .runtime(UNAVAILABLE)
            .when(submit(1))
            .then(refused(&submit(1), 1, "runtime_not_ready"))
            .replied(&Reply::Refused(rejection.clone()));
    }
    // Not granted weighs more than not ready: a retry would not help.
    let asked = of_capability(1, "fill");
    let refused = refused(&asked, 1, "capability_not_granted");
    given([opened()]).runtime(UNAVAILABLE).when(asked).then(refused);
}

#[test]
fn a_recorded_refusal_says_that_nothing_ran() {
    for (runtime, name) in [(UNAVAILABLE, "navigate"), (RuntimeStatus::Starting, "fill")] {
        let after = given([opened()]).runtime(runtime).when(of_capability(1, name)).after();
        let summary = after.state.task(task(1)).expect("it ended last");
        let error = summary.error.expect("it failed");
        assert!(!error.may_have_run);
        assert_eq!(error.retryable, name == "navigate");
        assert_eq!(summary.started_at, None);
    }
}

fn allowed_to_submit(caller: Caller) -> Result<(), Rejection> {
    given([opened()]).by(caller).when(submit(1)).decided.map(|_| ())
}

#[test]
fn s05_only_the_owner_and_operators_of_the_workspace_change_a_space() {
    assert_eq!(allowed_to_submit(agent("agent-1")), Ok(()));
    assert_eq!(allowed_to_submit(caller(Role::Operator, "op", &["team"])), Ok(()));
    assert_eq!(allowed_to_submit(Caller::system()), Ok(()));
    assert_eq!(allowed_to_submit(agent("agent-2")), Err(Denial::Owner.into()));
    let role = Denial::Role(&[Role::Operator, Role::RuntimeAgent]);
    assert_eq!(allowed_to_submit(caller(Role::Auditor, "agent-1", &["team"])), Err(role.into()));
    assert_eq!(allowed_to_submit(caller(Role::Operator, "op", &["other"])), Err(Denial::Workspace.into()));
}

#[test]
fn s05_a_space_is_not_found_under_another_workspace() {
    let operator = caller(Role::Operator, "op", &["team", "other"]);
    let elsewhere = given([opened()]).by(operator.clone()).in_workspace("other");
    elsewhere.when(submit(1)).then_rejected(&Rejection::SpaceNotFound);
    given([]).by(operator).when(submit(1)).then_rejected(&Rejection::SpaceNotFound);
    let stranger = given([]).by(agent("agent-1")).in_workspace("other");
    stranger.when(submit(1)).then_rejected(&Denial::Workspace.into());
}

#[test]
fn s04_a_request_id_that_looks_like_a_secret_is_refused_and_not_repeated() {
    for secret in ["token=SECRET-1", "Bearer SECRET-1abcdefgh", "https://u:SECRET-1@h/"] {
        let asked = Submit { request_id: secret.parse().unwrap(), ..submit(1) };
        let Err(refused) = given([opened()]).when(asked).decided else { panic!("{secret}") };
        assert!(matches!(refused, Rejection::InvalidRequest { field: "request_id", .. }), "{refused:?}");
        assert!(!format!("{refused:?} {refused}").contains("SECRET-1"));
    }
    let plain = Submit { request_id: "job 17: step=3 of key/42".parse().unwrap(), ..submit(1) };
    assert!(given([opened()]).when(plain).decided.is_ok());
}
