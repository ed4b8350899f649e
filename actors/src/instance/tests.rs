//! The rules of an instance, promise by promise.

use std::collections::BTreeSet;

use eventlog::{
    Fence, Generation, InstanceEvent, Position, Role, Sequence,
    event::{
        instance::{Bundle, InstanceKind, LossReason, NetworkPolicy},
        space::CloseReason,
    },
    id::WorkspaceId,
};

use super::{Allowed, Command, Effect, Facts, Health, InstanceState, Register, decide, due, evolve_all};
use crate::{
    caller::{Caller, Scope},
    place::Place,
    rejection::{Denial, Rejection},
    space::scenario::{NOW, caller, instance_id, space_id, workspace_id},
};

const FIRST: Place = Place { sequence: Sequence(1), position: Position(1), recorded_at: NOW };

fn given(events: &[InstanceEvent]) -> InstanceState {
    evolve_all(InstanceState::Absent(instance_id()), events, FIRST)
}

fn operator(workspaces: &[&str]) -> Caller {
    caller(Role::Operator, "op", workspaces)
}

fn ask(state: &InstanceState, command: &Command, caller: &Caller) -> Result<Vec<InstanceEvent>, Rejection> {
    let workspaces = ["team", "other"].map(|id| id.parse().expect("it is a slug"));
    let facts = Facts { caller, allowed: Allowed::default(), workspaces: &BTreeSet::from(workspaces) };
    decide(state, command, &facts).map(|decision| decision.events)
}

fn told(state: &InstanceState, command: &Command) -> Vec<InstanceEvent> {
    ask(state, command, &Caller::system()).expect("the server may")
}

fn registered() -> InstanceEvent {
    InstanceEvent::Registered {
        instance_kind: InstanceKind::Chromium,
        name: None,
        workspaces: vec![workspace_id()],
        bundle: Bundle::Standard,
        network_policy: NetworkPolicy::default(),
        headless: true,
    }
}

fn asked() -> Register {
    Register {
        kind: InstanceKind::Chromium,
        name: None,
        workspaces: Some(vec![workspace_id()]),
        bundle: Bundle::Standard,
        network_policy: NetworkPolicy::default(),
        headless: true,
    }
}

fn register(asked: Register) -> Command {
    Command::Register(Box::new(asked))
}

fn reserved() -> InstanceEvent {
    InstanceEvent::Reserved { space: space_id(), workspace: workspace_id() }
}

fn released(fence: u64) -> InstanceEvent {
    InstanceEvent::Released {
        space: space_id(),
        fence: Fence(Position(fence)),
        reason: CloseReason::Requested,
    }
}

fn starting(generation: u64) -> InstanceEvent {
    InstanceEvent::RuntimeStarting { space: space_id(), generation: Generation(generation) }
}

fn ready(generation: u64) -> InstanceEvent {
    InstanceEvent::RuntimeReady { generation: Generation(generation) }
}

fn lost(generation: u64) -> InstanceEvent {
    InstanceEvent::RuntimeLost { generation: Generation(generation), reason: LossReason::Crashed }
}

fn circuit_opened() -> InstanceEvent {
    InstanceEvent::CircuitOpened { losses: 5, retry_after_ms: 60_000 }
}

fn health(events: &[InstanceEvent]) -> Health {
    given(events).instance().expect("it exists").health()
}

#[test]
fn an_operator_registers_an_instance_for_workspaces_that_it_may_enter() {
    let absent = given(&[]);
    assert_eq!(ask(&absent, &register(asked()), &operator(&["team"])), Ok(vec![registered()]));
    assert_eq!(ask(&absent, &register(asked()), &operator(&["other"])), Err(Denial::EachWorkspace.into()));
    for role in [Role::RuntimeAgent, Role::Auditor] {
        let forbidden = ask(&absent, &register(asked()), &caller(role, "x", &["team"]));
        assert_eq!(forbidden, Err(Denial::Role(&[Role::Operator]).into()));
    }
    assert_eq!(ask(&given(&[registered()]), &register(asked()), &operator(&["team"])), Ok(vec![]));
}

#[test]
fn an_instance_that_names_no_workspace_is_for_all_that_its_operator_may_enter() {
    let workspaces = |caller: &Caller| {
        let asked = Register { workspaces: None, ..asked() };
        match ask(&given(&[]), &register(asked), caller)?.remove(0) {
            InstanceEvent::Registered { workspaces, .. } => {
                Ok(workspaces.iter().map(ToString::to_string).collect())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(workspaces(&operator(&["team"])), Ok(vec!["team".to_owned()]));
    let everywhere = Caller { scope: Scope::All, ..operator(&[]) };
    assert_eq!(workspaces(&everywhere), Ok(vec!["other".to_owned(), "team".to_owned()]));
    let nowhere: Result<Vec<String>, Rejection> = workspaces(&operator(&[]));
    assert_eq!(nowhere.map_err(|rejection| rejection.code()), Err("invalid_request"));
}

#[test]
fn s03_trusted_and_scripted_need_the_servers_leave() {
    let trusted = Register { bundle: Bundle::Trusted, ..asked() };
    let scripted = Register { kind: InstanceKind::Scripted, ..asked() };
    let by = operator(&["team"]);
    for asked in [trusted, scripted] {
        let refused = ask(&given(&[]), &register(asked.clone()), &by).map_err(|rejection| rejection.code());
        assert_eq!(refused, Err("invalid_request"));
        let allowed = Allowed { trusted: true, scripted: true };
        let facts = Facts { caller: &by, allowed, workspaces: &BTreeSet::new() };
        assert!(decide(&given(&[]), &register(asked), &facts).is_ok());
    }
    let policy = NetworkPolicy { allow: vec!["http://x/".to_owned()], ..NetworkPolicy::default() };
    let refused = ask(&given(&[]), &register(Register { network_policy: policy, ..asked() }), &by);
    assert_eq!(refused.map_err(|rejection| rejection.code()), Err("invalid_request"));
}

#[test]
fn an_instance_is_retired_once_by_who_may_decide_about_all_its_workspaces() {
    let state = given(&[registered()]);
    let retire = |state: &InstanceState, by: &Caller| ask(state, &Command::Retire, by);
    assert_eq!(retire(&state, &operator(&["team"])), Ok(vec![InstanceEvent::Retired {}]));
    assert_eq!(retire(&state, &operator(&["other"])), Err(Rejection::InstanceNotFound));
    let auditor = caller(Role::Auditor, "x", &["team"]);
    assert_eq!(retire(&state, &auditor), Err(Denial::Role(&[Role::Operator]).into()));
    assert_eq!(retire(&given(&[]), &operator(&["team"])), Err(Rejection::InstanceNotFound));
    let shared: Vec<WorkspaceId> = vec![workspace_id(), "other".parse().expect("it is a slug")];
    let InstanceEvent::Registered { instance_kind, name, bundle, network_policy, headless, .. } =
        registered()
    else {
        panic!("it registers")
    };
    let shared = InstanceEvent::Registered {
        instance_kind,
        name,
        bundle,
        network_policy,
        headless,
        workspaces: shared,
    };
    assert_eq!(retire(&given(&[shared]), &operator(&["team"])), Err(Denial::EachWorkspace.into()));
    let retired = given(&[registered(), InstanceEvent::Retired {}]);
    assert_eq!(retire(&retired, &operator(&["team"])), Ok(vec![]));
}

#[test]
fn a_retired_instance_owes_its_holder_a_close_and_starts_nothing() {
    let held = given(&[registered(), reserved(), InstanceEvent::Retired {}]);
    let close = Effect::CloseHolder { space: space_id(), reason: CloseReason::InstanceRetired };
    assert_eq!(due(&held), [close]);
    let refused = ask(&held, &Command::BeginStart, &Caller::system());
    assert_eq!(refused, Err(Rejection::InstanceRetired));
    let free = given(&[registered(), reserved(), InstanceEvent::Retired {}, released(3)]);
    assert_eq!(due(&free), []);
}

#[test]
fn s01_only_the_holder_under_its_own_fence_lets_go() {
    let holder = |events: &[InstanceEvent]| given(events).instance().and_then(|held| held.holder.clone());
    let held = [registered(), reserved()];
    assert_eq!(holder(&held).map(|holder| holder.fence), Some(Fence(Position(3))));
    let with = |event: InstanceEvent| [held.to_vec(), vec![event]].concat();
    assert_eq!(holder(&with(released(3))), None);
    assert!(holder(&with(released(2))).is_some(), "an older fence");
    let other = "spc_00000000000000000000000009".parse().expect("an id");
    let foreign =
        InstanceEvent::Released { space: other, fence: Fence(Position(3)), reason: CloseReason::Requested };
    assert!(holder(&with(foreign)).is_some(), "another Space");
    let late = InstanceEvent::Reserved { space: other, workspace: workspace_id() };
    assert_eq!(holder(&with(late)).map(|holder| holder.space), Some(space_id()), "never shared");
}

#[test]
fn recovery_lets_go_for_a_space_that_is_over() {
    let release = Command::Release { space: space_id(), reason: CloseReason::Requested };
    assert_eq!(told(&given(&[registered(), reserved()]), &release), [released(3)]);
    assert_eq!(told(&given(&[registered()]), &release), []);
}

#[test]
fn each_start_has_the_next_generation_and_none_begins_while_another_is_alive() {
    let held = [registered(), reserved()];
    let begin = |more: &[InstanceEvent]| {
        ask(&given(&[&held, more].concat()), &Command::BeginStart, &Caller::system())
    };
    assert_eq!(begin(&[]), Ok(vec![starting(1)]));
    assert_eq!(begin(&[starting(1)]), Err(Rejection::BrowserInstanceInUse));
    assert_eq!(begin(&[starting(1), ready(1)]), Err(Rejection::BrowserInstanceInUse));
    assert_eq!(begin(&[starting(1), ready(1), lost(1)]), Ok(vec![starting(2)]));
    let free = ask(&given(&[registered()]), &Command::BeginStart, &Caller::system());
    assert_eq!(free, Err(Rejection::SpaceClosed));
}

#[test]
fn what_an_older_start_reports_is_ignored() {
    let second = given(&[registered(), reserved(), starting(1), lost(1), starting(2), ready(2)]);
    let generation = Generation(1);
    let reason = LossReason::Crashed;
    for command in [
        Command::NoteReady { generation },
        Command::NoteLost { generation, reason },
        Command::NoteStopped { generation },
    ] {
        assert_eq!(told(&second, &command), [], "{command:?}");
    }
    let generation = Generation(2);
    assert_eq!(told(&second, &Command::NoteReady { generation }), [], "it is ready already");
    assert_eq!(told(&second, &Command::NoteLost { generation, reason }), [lost(2)]);
    let stopped = InstanceEvent::RuntimeStopped { generation };
    assert_eq!(told(&second, &Command::NoteStopped { generation }), [stopped]);
}

#[test]
fn an_open_circuit_owes_one_probe_and_a_probe_that_succeeds_closes_it() {
    let down = [registered(), reserved(), starting(1), lost(1)];
    let open_circuit = Command::OpenCircuit { losses: 5, retry_after_ms: 60_000 };
    assert_eq!(told(&given(&down), &open_circuit), [circuit_opened()]);
    assert_eq!(told(&given(&[registered(), reserved(), starting(1)]), &open_circuit), []);
    let open = [&down[..], &[circuit_opened()]].concat();
    let fence = Fence(Position(3));
    let probe = Effect::StartRuntime { space: space_id(), fence, probe_after_ms: Some(60_000) };
    assert_eq!(due(&given(&open)), [probe]);
    let probing = given(&[&open[..], &[starting(2)]].concat());
    let closed = [ready(2), InstanceEvent::CircuitClosed {}];
    assert_eq!(told(&probing, &Command::NoteReady { generation: Generation(2) }), closed);
}

#[test]
fn a_holder_is_owed_a_runtime_and_a_free_instance_is_owed_its_end() {
    let held = [registered(), reserved()];
    let start = Effect::StartRuntime { space: space_id(), fence: Fence(Position(3)), probe_after_ms: None };
    assert_eq!(due(&given(&held)), [start]);
    let freed = [&held[..], &[starting(1), released(3)]].concat();
    assert_eq!(due(&given(&freed)), [Effect::StopRuntime { generation: Generation(1) }]);
    assert_eq!(due(&given(&[registered()])), []);
    assert_eq!(due(&given(&[])), []);
}

#[test]
fn health_follows_from_what_is_recorded() {
    let held = [registered(), reserved()];
    let with = |events: &[InstanceEvent]| health(&[&held[..], events].concat());
    assert_eq!(health(&[registered()]), Health::Ready);
    assert_eq!(with(&[]), Health::Starting);
    assert_eq!(with(&[starting(1)]), Health::Starting);
    assert_eq!(with(&[starting(1), ready(1)]), Health::Ready);
    assert_eq!(with(&[starting(1), lost(1)]), Health::Starting);
    assert_eq!(with(&[starting(1), lost(1), circuit_opened()]), Health::Unavailable);
    assert_eq!(with(&[circuit_opened(), InstanceEvent::CircuitClosed {}]), Health::Starting);
    assert_eq!(with(&[circuit_opened(), InstanceEvent::Retired {}]), Health::Retired);
}

#[test]
fn what_the_supervisor_tells_an_instance_no_caller_can() {
    let everywhere = Caller { scope: Scope::All, ..operator(&[]) };
    let state = given(&[registered(), reserved()]);
    let generation = Generation(1);
    for command in [
        Command::BeginStart,
        Command::NoteReady { generation },
        Command::NoteLost { generation, reason: LossReason::Crashed },
        Command::NoteStopped { generation },
        Command::OpenCircuit { losses: 1, retry_after_ms: 1 },
        Command::Release { space: space_id(), reason: CloseReason::Requested },
    ] {
        assert_eq!(ask(&state, &command, &everywhere), Err(Denial::ServerOnly.into()), "{command:?}");
    }
}

#[test]
fn any_event_in_any_state_gives_a_state() {
    let all = [
        registered(),
        reserved(),
        released(3),
        released(9),
        starting(1),
        starting(2),
        ready(1),
        ready(2),
        lost(1),
        lost(2),
        InstanceEvent::RuntimeStopped { generation: Generation(1) },
        circuit_opened(),
        InstanceEvent::CircuitClosed {},
        InstanceEvent::Retired {},
    ];
    for first in &all {
        for second in &all {
            for third in &all {
                let state = given(&[registered(), first.clone(), second.clone(), third.clone()]);
                assert_eq!(state.revision(), Sequence(4));
            }
        }
    }
}

#[test]
fn s04_a_name_that_looks_like_a_secret_is_refused_and_not_repeated() {
    let named = Register { name: Some("token=SECRET-1".parse().expect("printable")), ..asked() };
    let refused = ask(&given(&[]), &register(named), &operator(&["team"])).expect_err("it is refused");
    assert!(matches!(refused, Rejection::InvalidRequest { field: "name", .. }), "{refused:?}");
    assert!(!format!("{refused:?} {refused}").contains("SECRET-1"));
}
