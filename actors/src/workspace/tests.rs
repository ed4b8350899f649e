//! The rules of a Workspace, promise by promise.

use eventlog::{
    InstanceEvent, Position, Role, Sequence, Timestamp, WorkspaceEvent,
    event::instance::{Bundle, InstanceKind, NetworkPolicy},
    id::{BindingId, TokenId},
};

use super::{Command, Facts, GrantBinding, IssueToken, WorkspaceState, decide, evolve_all};
use crate::{
    caller::{Caller, Scope},
    instance::{self, InstanceState},
    place::Place,
    rejection::{Denial, Rejection},
    space::scenario::{NOW, caller, capability, instance_id, workspace_id},
    tests::catalogue,
};

const FIRST: Place = Place { sequence: Sequence(1), position: Position(1), recorded_at: NOW };

fn given(events: &[WorkspaceEvent]) -> WorkspaceState {
    evolve_all(WorkspaceState::Absent(workspace_id()), events, FIRST)
}

fn created() -> WorkspaceEvent {
    WorkspaceEvent::Created {}
}

fn operator() -> Caller {
    caller(Role::Operator, "op", &["team"])
}

fn everywhere() -> Caller {
    Caller { scope: Scope::All, ..operator() }
}

fn instance(workspaces: &[&str], more: &[InstanceEvent]) -> InstanceState {
    let registered = InstanceEvent::Registered {
        instance_kind: InstanceKind::Chromium,
        name: None,
        workspaces: workspaces.iter().map(|id| id.parse().expect("it is a slug")).collect(),
        bundle: Bundle::Standard,
        network_policy: NetworkPolicy::default(),
        headless: true,
    };
    let state = InstanceState::Absent(instance_id());
    instance::evolve_all(state, &[&[registered], more].concat(), FIRST)
}

fn ask_about(
    instance: &InstanceState,
    state: &WorkspaceState,
    command: &Command,
    caller: &Caller,
) -> Result<Vec<WorkspaceEvent>, Rejection> {
    let facts = Facts { now: NOW, caller, instance: Some(instance), catalogue: &catalogue() };
    decide(state, command, &facts).map(|decision| decision.events)
}

fn ask(state: &WorkspaceState, command: &Command, caller: &Caller) -> Result<Vec<WorkspaceEvent>, Rejection> {
    ask_about(&instance(&["team"], &[]), state, command, caller)
}

fn token_id() -> TokenId {
    "tok_00000000000000000000000001".parse().expect("an id")
}

fn binding_id() -> BindingId {
    "bnd_00000000000000000000000001".parse().expect("an id")
}

fn token(all_workspaces: bool, expires_at: Option<Timestamp>) -> IssueToken {
    IssueToken {
        token: token_id(),
        hash: [1; 32],
        role: Role::RuntimeAgent,
        owner_id: "agent-1".parse().expect("an id"),
        all_workspaces,
        expires_at,
    }
}

fn issued(all_workspaces: bool, expires_at: Option<Timestamp>) -> WorkspaceEvent {
    WorkspaceEvent::TokenIssued {
        token: token_id(),
        hash: [1; 32],
        role: Role::RuntimeAgent,
        owner_id: "agent-1".parse().expect("an id"),
        all_workspaces,
        expires_at,
    }
}

fn binding(capabilities: Option<Vec<&str>>) -> GrantBinding {
    GrantBinding {
        binding: binding_id(),
        instance: instance_id(),
        owner_id: None,
        capabilities: capabilities.map(|names| names.into_iter().map(capability).collect()),
    }
}

fn granted() -> WorkspaceEvent {
    WorkspaceEvent::BindingGranted {
        binding: binding_id(),
        instance: instance_id(),
        owner_id: None,
        capabilities: None,
    }
}

#[test]
fn only_who_may_enter_every_workspace_makes_one() {
    assert_eq!(ask(&given(&[]), &Command::Create, &Caller::system()), Ok(vec![created()]));
    assert_eq!(ask(&given(&[]), &Command::Create, &everywhere()), Ok(vec![created()]));
    assert_eq!(ask(&given(&[]), &Command::Create, &operator()), Err(Denial::EveryWorkspace.into()));
    assert_eq!(ask(&given(&[created()]), &Command::Create, &everywhere()), Ok(vec![]));
}

#[test]
fn a_token_for_a_new_workspace_makes_it_in_the_same_append() {
    let command = Command::IssueToken(token(false, None));
    assert_eq!(ask(&given(&[]), &command, &everywhere()), Ok(vec![created(), issued(false, None)]));
    assert_eq!(ask(&given(&[]), &command, &operator()), Err(Denial::Workspace.into()));
    assert_eq!(ask(&given(&[created()]), &command, &operator()), Ok(vec![issued(false, None)]));
}

#[test]
fn nobody_but_an_operator_of_the_workspace_changes_it() {
    let state = given(&[created(), issued(false, None), granted()]);
    let commands = [
        Command::IssueToken(token(false, None)),
        Command::RevokeToken { token: token_id() },
        Command::GrantBinding(binding(None)),
        Command::RevokeBinding { binding: binding_id() },
    ];
    for command in &commands {
        assert!(ask(&state, command, &operator()).is_ok(), "{command:?}");
        for role in [Role::RuntimeAgent, Role::Auditor] {
            let refused = ask(&state, command, &caller(role, "x", &["team"]));
            assert_eq!(refused, Err(Denial::Role(&[Role::Operator]).into()), "{command:?}");
        }
        let foreign = caller(Role::Operator, "op", &["other"]);
        assert_eq!(ask(&state, command, &foreign), Err(Denial::Workspace.into()), "{command:?}");
        assert!(ask(&given(&[]), command, &operator()).is_err(), "{command:?}");
    }
}

#[test]
fn nobody_gives_a_token_that_reaches_further_than_their_own() {
    let command = Command::IssueToken(token(true, None));
    assert_eq!(ask(&given(&[created()]), &command, &operator()), Err(Denial::EveryWorkspace.into()));
    assert_eq!(ask(&given(&[created()]), &command, &everywhere()), Ok(vec![issued(true, None)]));
}

#[test]
fn a_token_that_has_ended_before_it_began_is_refused() {
    let refused = ask(&given(&[created()]), &Command::IssueToken(token(false, Some(NOW))), &operator());
    assert_eq!(refused.map_err(|rejection| rejection.code()), Err("invalid_request"));
    let later = Some(Timestamp(NOW.0 + 1));
    let issued = vec![issued(false, later)];
    assert_eq!(ask(&given(&[created()]), &Command::IssueToken(token(false, later)), &operator()), Ok(issued));
}

#[test]
fn a_token_opens_its_workspace_until_it_ends_or_is_revoked() {
    let end = Timestamp(NOW.0 + 10);
    let state = given(&[created(), issued(false, Some(end))]);
    let token = &state.workspace().expect("it exists").tokens[&token_id()];
    assert!(token.is_valid_at(NOW));
    assert!(!token.is_valid_at(end));
    let caller = token.caller(token_id(), &workspace_id());
    assert_eq!(caller.role(), Some(Role::RuntimeAgent));
    assert!(caller.scope.holds(&workspace_id()));
    assert!(!caller.scope.holds(&"other".parse().expect("it is a slug")));

    let revoke = Command::RevokeToken { token: token_id() };
    let revoked = WorkspaceEvent::TokenRevoked { token: token_id() };
    assert_eq!(ask(&state, &revoke, &operator()), Ok(vec![revoked.clone()]));
    let state = given(&[created(), issued(false, Some(end)), revoked]);
    assert!(!state.workspace().expect("it exists").tokens[&token_id()].is_valid_at(NOW));
    assert_eq!(ask(&state, &revoke, &operator()), Ok(vec![]), "once");
    assert_eq!(ask(&given(&[created()]), &revoke, &operator()), Err(Rejection::TokenNotFound));
}

#[test]
fn s03_a_binding_can_narrow_and_never_widen_what_an_instance_has() {
    let grant = |capabilities| {
        let command = Command::GrantBinding(binding(Some(capabilities)));
        ask(&given(&[created()]), &command, &operator()).map(|_| ())
    };
    assert_eq!(grant(vec!["navigate"]), Ok(()));
    let at = Some(("capabilities", 1));
    assert_eq!(grant(vec!["navigate", "nope"]), Err(Rejection::CapabilityUnknown { at }));
    let capability = "evaluate".parse().expect("a name");
    assert_eq!(grant(vec!["evaluate"]), Err(Rejection::CapabilityNotGranted { capability, task: None }));
}

#[test]
fn only_who_may_decide_about_an_instance_binds_it() {
    let grant = |instance: &InstanceState, caller: &Caller| {
        ask_about(instance, &given(&[created()]), &Command::GrantBinding(binding(None)), caller)
    };
    assert_eq!(grant(&instance(&["team"], &[]), &operator()), Ok(vec![granted()]));
    assert_eq!(grant(&instance(&["other"], &[]), &operator()), Err(Rejection::InstanceNotFound));
    assert_eq!(grant(&instance(&["team", "other"], &[]), &operator()), Err(Denial::EachWorkspace.into()));
    assert_eq!(grant(&instance(&["other"], &[]), &everywhere()), Ok(vec![granted()]));
    let absent = InstanceState::Absent(instance_id());
    assert_eq!(grant(&absent, &everywhere()), Err(Rejection::InstanceNotFound));
    let retired = instance(&["team"], &[InstanceEvent::Retired {}]);
    assert_eq!(grant(&retired, &operator()), Err(Rejection::InstanceRetired));
}

#[test]
fn a_binding_is_revoked_once() {
    let revoke = Command::RevokeBinding { binding: binding_id() };
    let revoked = WorkspaceEvent::BindingRevoked { binding: binding_id() };
    let state = given(&[created(), granted()]);
    let owner = "anyone".parse().expect("an id");
    assert!(state.binding(binding_id()).expect("it exists").permits(instance_id(), &owner));
    assert_eq!(ask(&state, &revoke, &operator()), Ok(vec![revoked.clone()]));
    let state = given(&[created(), granted(), revoked]);
    assert!(!state.binding(binding_id()).expect("it exists").permits(instance_id(), &owner));
    assert_eq!(ask(&state, &revoke, &operator()), Ok(vec![]));
    assert_eq!(ask(&given(&[created()]), &revoke, &operator()), Err(Rejection::BindingNotFound));
}

#[test]
fn any_event_in_any_state_gives_a_state() {
    let all = [
        created(),
        issued(false, None),
        WorkspaceEvent::TokenRevoked { token: token_id() },
        granted(),
        WorkspaceEvent::BindingRevoked { binding: binding_id() },
    ];
    for first in &all {
        for second in &all {
            assert_eq!(given(&[created(), first.clone(), second.clone()]).revision(), Sequence(3));
            let headless = given(&[first.clone(), second.clone()]);
            assert!(headless.revision() <= Sequence(2));
        }
    }
}

#[test]
fn s04_an_owner_id_that_looks_like_a_secret_is_refused_and_not_repeated() {
    let secret = "token=SECRET-1".parse().expect("printable");
    let state = given(&[created()]);
    let issue = Command::IssueToken(IssueToken { owner_id: secret, ..token(false, None) });
    let owner_id = Some("password=SECRET-1".parse().expect("printable"));
    let grant = Command::GrantBinding(GrantBinding { owner_id, ..binding(None) });
    for command in [issue, grant] {
        let refused = ask(&state, &command, &everywhere()).expect_err("it is refused");
        assert!(matches!(refused, Rejection::InvalidRequest { field: "owner_id", .. }), "{refused:?}");
        assert!(!format!("{refused:?} {refused}").contains("SECRET-1"));
    }
}
