//! S1, S3, S5: what a create comes to, in the order of the checks.

use std::{collections::BTreeSet, time::Duration};

use eventlog::{
    ExpectedSequence, InstanceEvent, Position, Role, Sequence, SpaceEvent, StreamId, WorkspaceEvent,
    event::{
        environment::{Environment, Viewport},
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::{CloseReason, Owner, OwnerKind},
    },
    id::BindingId,
    sealing::KeyId,
};

use crate::{
    caller::Caller,
    capability::Catalogue,
    instance::{self, InstanceState},
    place::Place,
    rejection::{Denial, Rejection},
    space::{Open, OpenFacts, Opening, RuntimeStatus, SpaceState, evolve, open, scenario::*},
    tests::catalogue,
    workspace::{self, WorkspaceState},
};

fn place(n: u64) -> Place {
    Place { sequence: Sequence(n), position: Position(n), recorded_at: NOW }
}

fn binding_id(n: u64) -> BindingId {
    format!("bnd_{n:026}").parse().expect("it is an id")
}

/// What is so before a create.
struct World {
    instance: InstanceState,
    workspace: WorkspaceState,
    catalogue: Catalogue,
    caller: Caller,
    draining: bool,
}

impl World {
    /// A free instance that Workspace `team` may reserve; its agent asks.
    fn new() -> Self {
        let registered = InstanceEvent::Registered {
            instance_kind: InstanceKind::Chromium,
            name: None,
            workspaces: vec![workspace_id()],
            bundle: Bundle::Standard,
            network_policy: NetworkPolicy::default(),
            headless: true,
        };
        let absent = WorkspaceState::Absent(workspace_id());
        Self {
            instance: instance::evolve(InstanceState::Absent(instance_id()), &registered, place(1)),
            workspace: workspace::evolve(absent, &WorkspaceEvent::Created {}, place(2)),
            catalogue: catalogue(),
            caller: agent("agent-1"),
            draining: false,
        }
    }

    fn instance(mut self, event: &InstanceEvent) -> Self {
        self.instance = instance::evolve(self.instance, event, place(3));
        self
    }

    fn bound(mut self, owner: Option<&str>, capabilities: Option<&[&str]>) -> Self {
        let granted = WorkspaceEvent::BindingGranted {
            binding: binding_id(1),
            instance: instance_id(),
            owner_id: owner.map(|id| id.parse().expect("it is short and printable")),
            capabilities: capabilities.map(|names| names.iter().map(|name| capability(name)).collect()),
        };
        self.workspace = workspace::evolve(self.workspace, &granted, place(4));
        self
    }

    fn unlisted(mut self) -> Self {
        if let InstanceState::Registered(instance) = &mut self.instance {
            instance.workspaces = vec!["other".parse().expect("it is a slug")];
        }
        self
    }

    fn by(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    fn open(&self, asked: &Open) -> Result<Opening, Rejection> {
        open(
            asked,
            &OpenFacts {
                caller: &self.caller,
                instance: &self.instance,
                workspace: &self.workspace,
                catalogue: &self.catalogue,
                draining: self.draining,
            },
        )
    }
}

fn asked() -> Open {
    Open {
        space: space_id(),
        workspace: workspace_id(),
        instance: instance_id(),
        binding: None,
        owner: owner(),
        granted_capabilities: vec![capability("navigate"), capability("snapshot")],
        idle_timeout: Duration::from_secs(60),
        fingerprint_key: KeyId { file: 1, slot: 0 },
        idempotency: None,
        environment: Environment::default(),
    }
}

fn reserved() -> InstanceEvent {
    InstanceEvent::Reserved { space: space_id(), workspace: workspace_id() }
}

fn bound_create() -> Open {
    Open { binding: Some(binding_id(1)), ..asked() }
}

#[test]
fn s01_a_create_reserves_the_instance_and_opens_the_space_in_one_append() {
    let opening = World::new().open(&asked()).expect("it is allowed");
    assert_eq!(opening.opened, opened());
    let parts = opening.parts();
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0].stream, StreamId::Instance(instance_id()));
    assert_eq!(parts[0].expected, ExpectedSequence::Exact(Sequence(1)));
    assert_eq!(parts[0].events, [reserved().into()]);
    assert_eq!(parts[1].stream, StreamId::Space(space_id()));
    assert_eq!(parts[1].expected, ExpectedSequence::NoStream);
    assert_eq!(parts[1].events, [opened().into()]);
}

#[test]
fn s01_the_fence_is_the_same_for_the_space_and_its_instance() {
    let (at, next) = (place(8), place(8).next());
    let instance = instance::evolve(World::new().instance, &reserved(), at);
    let space = evolve(SpaceState::Absent(space_id()), &opened(), next);
    let holder = instance.instance().and_then(|instance| instance.holder.as_ref()).expect("it is held");
    assert_eq!(holder.fence, space.space().expect("it is open").fence);
}

#[test]
fn s01_an_instance_that_is_held_is_not_shared() {
    let held = World::new().instance(&reserved());
    assert_eq!(held.open(&asked()), Err(Rejection::BrowserInstanceInUse));
    let fence = held.instance.instance().and_then(|held| held.holder.as_ref()).expect("it is held").fence;
    let reason = CloseReason::Requested;
    let free = held.instance(&InstanceEvent::Released { space: space_id(), fence, reason });
    assert!(free.open(&asked()).is_ok());
}

#[test]
fn a_retired_instance_takes_no_space_and_says_so_before_it_says_that_it_is_held() {
    let retired = World::new().instance(&reserved()).instance(&InstanceEvent::Retired {});
    assert_eq!(retired.open(&asked()), Err(Rejection::InstanceRetired));
}

#[test]
fn s05_an_agent_makes_spaces_of_its_own_only_and_an_auditor_none() {
    let of = |kind, id: &str| Open { owner: Owner { kind, id: id.parse().expect("an id") }, ..asked() };
    let own = of(OwnerKind::RuntimeAgent, "agent-1");
    let others = of(OwnerKind::RuntimeAgent, "agent-2");
    let operators = of(OwnerKind::Operator, "agent-1");
    let by = |caller: Caller, asked: &Open| World::new().by(caller).open(asked).map(|_| ());
    assert_eq!(by(agent("agent-1"), &own), Ok(()));
    let own_id = |id: &str| Err(Denial::OwnId(id.parse().expect("an id")).into());
    assert_eq!(by(agent("agent-1"), &others), own_id("agent-1"));
    assert_eq!(by(agent("agent-1"), &operators), own_id("agent-1"));
    let operator = caller(Role::Operator, "op", &["team"]);
    for asked in [&own, &others, &operators] {
        assert_eq!(by(operator.clone(), asked), Ok(()));
    }
    let role = Denial::Role(&[Role::Operator, Role::RuntimeAgent]);
    assert_eq!(by(caller(Role::Auditor, "agent-1", &["team"]), &own), Err(role.into()));
    assert_eq!(by(caller(Role::Operator, "op", &["other"]), &own), Err(Denial::Workspace.into()));
}

#[test]
fn s05_an_instance_of_another_workspace_is_not_found() {
    assert_eq!(World::new().unlisted().open(&asked()), Err(Rejection::InstanceNotFound));
    let absent = World { instance: InstanceState::Absent(instance_id()), ..World::new() };
    assert_eq!(absent.open(&asked()), Err(Rejection::InstanceNotFound));
    assert_eq!(absent.bound(None, None).open(&bound_create()), Err(Rejection::InstanceNotFound));
}

#[test]
fn s05_a_binding_opens_an_unlisted_instance_to_those_it_names() {
    let world = || World::new().unlisted();
    assert_eq!(world().open(&bound_create()), Err(Rejection::BindingNotFound));
    let opening = world().bound(None, None).open(&bound_create()).expect("it is bound");
    let SpaceEvent::Opened { binding, .. } = opening.opened else { panic!("it opens") };
    assert_eq!(binding, Some(binding_id(1)));
    assert!(world().bound(Some("agent-1"), None).open(&bound_create()).is_ok());
    let others = world().bound(Some("agent-2"), None);
    assert_eq!(others.open(&bound_create()), Err(Rejection::BindingNotFound));
}

#[test]
fn s05_a_revoked_binding_or_one_of_another_instance_is_not_found() {
    let mut world = World::new().bound(None, None);
    let elsewhere =
        Open { instance: "ins_00000000000000000000000009".parse().expect("an id"), ..bound_create() };
    assert_eq!(world.open(&elsewhere), Err(Rejection::BindingNotFound));
    let revoked = WorkspaceEvent::BindingRevoked { binding: binding_id(1) };
    world.workspace = workspace::evolve(world.workspace, &revoked, place(5));
    assert_eq!(world.open(&bound_create()), Err(Rejection::BindingNotFound));
}

#[test]
fn s03_a_space_is_granted_only_what_the_bundle_and_the_binding_have() {
    let of = |names: &[&str], binding| Open {
        granted_capabilities: names.iter().map(|name| capability(name)).collect(),
        binding,
        ..asked()
    };
    let refused = |name| Err(Rejection::CapabilityNotGranted { capability: capability(name), task: None });
    let unknown = Rejection::CapabilityUnknown { at: Some(("granted_capabilities", 1)) };
    assert_eq!(World::new().open(&of(&["navigate", "nope"], None)), Err(unknown));
    assert_eq!(World::new().open(&of(&["navigate", "evaluate"], None)), refused("evaluate"));
    let narrow = World::new().bound(None, Some(&["snapshot"]));
    assert!(narrow.open(&of(&["snapshot"], Some(binding_id(1)))).is_ok());
    assert_eq!(narrow.open(&of(&["navigate"], Some(binding_id(1)))), refused("navigate"));
    let twice = World::new().open(&of(&["snapshot", "navigate", "snapshot"], None)).expect("it is allowed");
    let SpaceEvent::Opened { granted_capabilities, .. } = twice.opened else { panic!("it opens") };
    assert_eq!(granted_capabilities, [capability("snapshot"), capability("navigate")]);
}

#[test]
fn s14_an_idle_timeout_out_of_range_is_refused() {
    for (seconds, fits) in [(9, false), (10, true), (86_400, true), (86_401, false)] {
        let asked = Open { idle_timeout: Duration::from_secs(seconds), ..asked() };
        let opening = World::new().open(&asked).map(|_| ()).map_err(|rejection| rejection.code());
        assert_eq!(opening, if fits { Ok(()) } else { Err("invalid_request") }, "{seconds} s");
    }
}

#[test]
fn a_draining_server_makes_no_space_and_tells_only_who_may_ask() {
    let draining = World { draining: true, ..World::new() };
    assert_eq!(draining.open(&asked()), Err(Rejection::ShuttingDown));
    let stranger = draining.by(agent("agent-2")).open(&asked());
    assert_eq!(stranger, Err(Denial::OwnId("agent-2".parse().expect("an id")).into()));
}

#[test]
fn s05_the_checks_come_in_their_order() {
    let wrong_in_all = Open {
        owner: Owner { kind: OwnerKind::RuntimeAgent, id: "agent-2".parse().expect("an id") },
        granted_capabilities: vec![capability("nope")],
        idle_timeout: Duration::ZERO,
        ..asked()
    };
    let world = World::new().unlisted().instance(&reserved()).instance(&InstanceEvent::Retired {});
    assert_eq!(world.open(&wrong_in_all).map_err(|rejection| rejection.code()), Err("forbidden"));
    let world = world.by(caller(Role::Operator, "op", &["team"]));
    assert_eq!(world.open(&wrong_in_all), Err(Rejection::InstanceNotFound));
    let listed = World {
        instance: World::new().instance(&reserved()).instance(&InstanceEvent::Retired {}).instance,
        ..world
    };
    assert_eq!(listed.open(&wrong_in_all).map_err(|rejection| rejection.code()), Err("capability_unknown"));
    let timeout = Open { granted_capabilities: Vec::new(), ..wrong_in_all };
    assert_eq!(listed.open(&timeout).map_err(|rejection| rejection.code()), Err("invalid_request"));
}

#[test]
fn a_space_shows_what_its_events_say() {
    let given = given([opened(), queued(1)]).runtime(RuntimeStatus::Starting);
    let summary = given.state.summary().expect("it exists");
    assert_eq!(summary.space, space_id());
    assert_eq!(summary.revision, Sequence(2));
    assert_eq!(summary.position, Position(OPENED_AT.0 + 1));
    assert_eq!(summary.idle_timeout_seconds, 60);
    assert!(summary.updated_at > summary.created_at);
    assert_eq!(summary.active_task.map(|active| active.task), Some(task(1)));
    let names: BTreeSet<_> = summary.granted_capabilities.iter().map(ToString::to_string).collect();
    assert_eq!(names, BTreeSet::from(["navigate".to_owned(), "snapshot".to_owned()]));
}

#[test]
fn s04_an_owner_id_that_looks_like_a_secret_is_refused_and_not_repeated() {
    let operator = caller(Role::Operator, "op", &["team"]);
    let owner = Owner { kind: OwnerKind::RuntimeAgent, id: "token=SECRET-1".parse().expect("printable") };
    let refused = World::new().by(operator).open(&Open { owner, ..asked() }).expect_err("it is refused");
    assert!(matches!(refused, Rejection::InvalidRequest { field: "owner_id", .. }), "{refused:?}");
    assert!(!format!("{refused:?} {refused}").contains("SECRET-1"));
}

#[test]
fn an_environment_is_recorded_as_it_was_asked_for_and_refused_by_the_field_that_can_not_be() {
    let world = World::new();
    let with = |environment| Open { environment, ..asked() };
    let set = Environment {
        timezone: Some("Asia/Kathmandu".to_owned()),
        locale: Some("de-DE".to_owned()),
        viewport: Some(Viewport { width: 400, height: 800 }),
        device_scale: Some(2.0),
        ..Environment::default()
    };
    let opening = world.open(&with(set.clone())).expect("it opens");
    let SpaceEvent::Opened { environment, .. } = opening.opened else { panic!("it opens") };
    assert_eq!(environment, Some(Box::new(set)));
    let plain = world.open(&asked()).expect("it opens");
    let SpaceEvent::Opened { environment, .. } = plain.opened else { panic!("it opens") };
    assert_eq!(environment, None);
    let page = |text: &str| Some(crate::environment::plain(text).expect("it holds no secret"));
    for (field, environment) in [
        (
            "environment.timezone",
            Environment { timezone: Some("Mars/Olympus".to_owned()), ..Environment::default() },
        ),
        ("environment.locale", Environment { locale: Some("de_DE".to_owned()), ..Environment::default() }),
        (
            "environment.viewport",
            Environment { viewport: Some(Viewport { width: 99, height: 800 }), ..Environment::default() },
        ),
        ("environment.device_scale", Environment { device_scale: Some(f64::NAN), ..Environment::default() }),
        ("environment.user_agent", Environment { user_agent: page("a\nb"), ..Environment::default() }),
        (
            "environment.start_page",
            Environment { start_page: page("file:///etc/passwd"), ..Environment::default() },
        ),
        (
            "environment.allowed_hosts",
            Environment { allowed_hosts: vec!["http://a".to_owned()], ..Environment::default() },
        ),
    ] {
        match world.open(&with(environment)) {
            Err(Rejection::InvalidRequest { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    // The wall around its browser is not the agent's own.
    let hosts = Environment { allowed_hosts: vec!["a.example:80".to_owned()], ..Environment::default() };
    let refused = world.open(&with(hosts));
    assert_eq!(refused, Err(Rejection::Forbidden(Denial::Role(&[Role::Operator]))));
}
