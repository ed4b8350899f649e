//! I6: one instance and three Spaces that want it. A create is decided on what its writer read and appended later, so
//! any number of them can be under way; only the expectations of the append stand between them.

use std::{
    collections::{HashSet, VecDeque},
    sync::LazyLock,
    time::Duration,
};

use eventlog::{
    Event, ExpectedSequence, InstanceEvent, Part, Position, Sequence, StreamId,
    event::{
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::CloseReason,
    },
    id::SpaceId,
    sealing::KeyId,
};

use crate::{
    caller::Caller,
    capability::Catalogue,
    instance::{self, InstanceState},
    place::Place,
    space::{
        Asker, Command, Facts, Open, OpenFacts, RuntimeStatus, SpaceState, decide, evolve, open,
        scenario::{NOW, instance_id, owner, space_id, workspace_id},
    },
    tests::catalogue,
    workspace::WorkspaceState,
};

const SPACES: usize = 3;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(catalogue);
static SYSTEM: Caller = Caller::system();

/// How an append treats its parts; the real log obeys every expectation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Log {
    Real,
    /// Takes a reservation although the instance has moved on.
    IgnoresTheInstance,
    /// Takes the Space's part of a create and loses the instance's.
    ForgetsTheReservation,
}

#[derive(Debug, Clone)]
struct World {
    instance: InstanceState,
    spaces: [SpaceState; SPACES],
    /// Creates that were decided and not yet appended.
    pending: [Option<Vec<Part>>; SPACES],
    /// The last release of each Space, which a log that repeats itself may bring again.
    releases: [Option<InstanceEvent>; SPACES],
    head: Position,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Decide(usize),
    Append(usize),
    Close(usize),
    ReleaseAgain(usize),
    Retire,
}

fn space(n: usize) -> SpaceId {
    if n == 0 { space_id() } else { format!("spc_{:026}", n + 1).parse().expect("it is an id") }
}

impl World {
    fn new() -> Self {
        let registered = InstanceEvent::Registered {
            instance_kind: InstanceKind::Chromium,
            name: None,
            workspaces: vec![workspace_id()],
            bundle: Bundle::Standard,
            network_policy: NetworkPolicy::default(),
            headless: true,
        };
        let at = Place { sequence: Sequence(1), position: Position(1), recorded_at: NOW };
        Self {
            instance: instance::evolve(InstanceState::Absent(instance_id()), &registered, at),
            spaces: [0, 1, 2].map(|n| SpaceState::Absent(space(n))),
            pending: [None, None, None],
            releases: [None, None, None],
            head: Position(1),
        }
    }

    /// What can be told apart: who is open, who is the holder, and how far behind each pending create is.
    fn key(&self) -> String {
        let stage = |state: &SpaceState| match state {
            SpaceState::Absent(_) => 'a',
            SpaceState::Open(_) => 'o',
            SpaceState::Closed(_) => 'c',
        };
        let current =
            |parts: &Vec<Part>| parts[0].expected == ExpectedSequence::Exact(self.instance.revision());
        let instance = self.instance.instance().expect("it is registered");
        let holder = instance.holder.as_ref().map(|holder| (holder.space, self.fence_is_right()));
        format!(
            "{:?} {:?} {:?} {holder:?} {}",
            self.spaces.each_ref().map(stage),
            self.pending.each_ref().map(|pending| pending.as_ref().map(current)),
            self.releases.each_ref().map(Option::is_some),
            instance.retired,
        )
    }

    fn fence_is_right(&self) -> bool {
        let holder = self.instance.instance().and_then(|instance| instance.holder.as_ref());
        holder.is_none_or(|holder| {
            let open = self.spaces.iter().find(|state| state.id() == holder.space);
            open.and_then(SpaceState::space).is_some_and(|space| space.fence == holder.fence)
        })
    }

    fn take(&mut self, action: Action, log: Log) {
        match action {
            Action::Decide(n) => self.pending[n] = self.decided(n),
            Action::Append(n) => {
                if let Some(parts) = self.pending[n].take() {
                    self.append(&parts, log);
                }
            }
            Action::Close(n) => self.close(n, log),
            Action::ReleaseAgain(n) => {
                if let Some(event) = self.releases[n].clone() {
                    let (stream, expected) = (StreamId::Instance(instance_id()), ExpectedSequence::Any);
                    self.append(&[Part { stream, expected, events: vec![event.into()] }], log);
                }
            }
            Action::Retire => {
                let (stream, expected) = (StreamId::Instance(instance_id()), ExpectedSequence::Any);
                self.append(
                    &[Part { stream, expected, events: vec![InstanceEvent::Retired {}.into()] }],
                    log,
                );
            }
        }
    }

    fn decided(&self, n: usize) -> Option<Vec<Part>> {
        let asked = Open {
            space: space(n),
            workspace: workspace_id(),
            instance: instance_id(),
            binding: None,
            owner: owner(),
            granted_capabilities: Vec::new(),
            idle_timeout: Duration::from_secs(60),
            fingerprint_key: KeyId { file: 1, slot: 0 },
            idempotency: None,
            environment: eventlog::event::environment::Environment::default(),
        };
        let facts = OpenFacts {
            caller: &SYSTEM,
            instance: &self.instance,
            workspace: &WorkspaceState::Absent(workspace_id()),
            catalogue: &CATALOGUE,
            draining: false,
        };
        open(&asked, &facts).ok().map(|opening| opening.parts())
    }

    fn close(&mut self, n: usize, log: Log) {
        let facts =
            Facts { now: NOW, asker: Asker::Server, runtime: RuntimeStatus::Stopped, draining: false };
        let command = Command::Close { reason: CloseReason::Requested };
        let Ok(decision) = decide(&self.spaces[n], &command, &facts) else { return };
        if let Some((_, event)) = &decision.release {
            self.releases[n] = Some(event.clone());
        }
        self.append(&decision.parts(&self.spaces[n]), log);
    }

    /// All parts or none, as the log does it.
    fn append(&mut self, parts: &[Part], log: Log) {
        let met = parts.iter().all(|part| {
            let ignored = log == Log::IgnoresTheInstance && matches!(part.stream, StreamId::Instance(_));
            ignored || part.expected.is_met_by(self.head_of(&part.stream))
        });
        if !met {
            return;
        }
        let creates = parts.iter().any(|part| part.expected == ExpectedSequence::NoStream);
        for part in parts {
            let forgotten =
                log == Log::ForgetsTheReservation && creates && matches!(part.stream, StreamId::Instance(_));
            if !forgotten {
                part.events.iter().for_each(|event| self.record(&part.stream, event));
            }
        }
    }

    fn head_of(&self, stream: &StreamId) -> Sequence {
        match stream {
            StreamId::Space(id) => {
                let state = self.spaces.iter().find(|state| state.id() == *id);
                state.map_or(Sequence::ZERO, SpaceState::revision)
            }
            _ => self.instance.revision(),
        }
    }

    fn record(&mut self, stream: &StreamId, event: &Event) {
        self.head = self.head.next();
        let at = Place { sequence: self.head_of(stream).next(), position: self.head, recorded_at: NOW };
        match event {
            Event::Instance(event) => self.instance = instance::evolve(self.instance.clone(), event, at),
            Event::Space(event) => {
                let StreamId::Space(id) = stream else { panic!("a Space's event lies in its stream") };
                for state in self.spaces.iter_mut().filter(|state| state.id() == *id) {
                    *state = evolve(state.clone(), event, at);
                }
            }
            other => panic!("nothing else is recorded here: {other:?}"),
        }
    }

    /// I6: at most one open Space, and the instance knows it as its holder, under the same fence.
    fn holds(&self) -> bool {
        let open: Vec<_> = self
            .spaces
            .iter()
            .filter(|state| matches!(state, SpaceState::Open(_)))
            .map(SpaceState::id)
            .collect();
        let holder = self.instance.instance().and_then(|instance| instance.holder.as_ref());
        open.len() <= 1 && holder.map(|holder| holder.space) == open.first().copied() && self.fence_is_right()
    }
}

/// How many worlds there are, if the promise holds in all of them; the first that breaks it otherwise.
fn walk(log: Log) -> Result<usize, String> {
    let start = World::new();
    let mut seen = HashSet::from([start.key()]);
    let mut next = VecDeque::from([start]);
    while let Some(world) = next.pop_front() {
        let each = |action: fn(usize) -> Action| (0..SPACES).map(action);
        let actions = each(Action::Decide)
            .chain(each(Action::Append))
            .chain(each(Action::Close))
            .chain(each(Action::ReleaseAgain))
            .chain([Action::Retire]);
        for action in actions {
            let mut after = world.clone();
            after.take(action, log);
            if !after.holds() {
                return Err(format!("{action:?} after {}", world.key()));
            }
            if seen.insert(after.key()) {
                next.push_back(after);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn s01_no_order_of_creates_and_closes_shares_or_leaks_an_instance() {
    let worlds = walk(Log::Real).expect("the promise holds in every world");
    assert!(worlds > 100, "{worlds}");
}

#[test]
fn a_log_without_its_expectations_shares_the_instance_and_is_found() {
    let caught = [Log::IgnoresTheInstance, Log::ForgetsTheReservation].map(|log| walk(log).is_err());
    assert_eq!(caught, [true, true]);
}
