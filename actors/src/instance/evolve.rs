//! How an instance's events make its state: `(state, event) -> state`. Pure and total.

use eventlog::{Event, Fence, Generation, InstanceEvent, RecordedEvent, id::InstanceId};

use super::state::{Circuit, Holder, Instance, InstanceState, RuntimeState};
use crate::place::Place;

/// The state after one more event.
#[must_use]
pub fn evolve(state: InstanceState, event: &InstanceEvent, at: Place) -> InstanceState {
    match state {
        InstanceState::Absent(id) => registered(id, event, at),
        InstanceState::Registered(mut instance) => {
            instance.note(at);
            instance.apply(event, at);
            InstanceState::Registered(instance)
        }
    }
}

/// The state after the events of one append to its stream, the first of which lies at `first`.
#[must_use]
pub fn evolve_all(state: InstanceState, events: &[InstanceEvent], first: Place) -> InstanceState {
    let places = std::iter::successors(Some(first), |place| Some(place.next()));
    events.iter().zip(places).fold(state, |state, (event, at)| evolve(state, event, at))
}

/// The state after an event as read back. One of a kind that this program does not know only moves its place.
#[must_use]
pub fn evolve_recorded(mut state: InstanceState, recorded: &RecordedEvent) -> InstanceState {
    let at = Place::from(recorded);
    match &recorded.event {
        Event::Instance(event) => evolve(state, event, at),
        Event::Space(_) | Event::Workspace(_) | Event::Server(_) | Event::Download(_) | Event::Unknown(_) => {
            if let InstanceState::Registered(instance) = &mut state {
                instance.note(at);
            }
            state
        }
    }
}

fn registered(id: InstanceId, event: &InstanceEvent, at: Place) -> InstanceState {
    let InstanceEvent::Registered { instance_kind, name, workspaces, bundle, network_policy, headless } =
        event
    else {
        return InstanceState::Absent(id);
    };
    InstanceState::Registered(Box::new(Instance {
        id,
        kind: *instance_kind,
        name: name.clone(),
        workspaces: workspaces.clone(),
        bundle: *bundle,
        network_policy: network_policy.clone(),
        headless: *headless,
        holder: None,
        runtime: RuntimeState::Down,
        generation: Generation::ZERO,
        circuit: Circuit::Closed,
        retired: false,
        created_at: at.recorded_at,
        revision: at.sequence,
        position: at.position,
    }))
}

impl Instance {
    fn note(&mut self, at: Place) {
        self.revision = at.sequence;
        self.position = at.position;
    }

    fn apply(&mut self, event: &InstanceEvent, at: Place) {
        match event {
            InstanceEvent::Registered { .. } => {}
            InstanceEvent::Reserved { space, workspace } => {
                // The Space's `opened` follows in the same append; see `space::Opening::parts`.
                let fence = Fence(at.position.next());
                let holder = Holder { space: *space, workspace: workspace.clone(), fence };
                if eventlog::mutant::is("reserved_twice") {
                    self.holder = None;
                }
                self.holder.get_or_insert(holder);
            }
            InstanceEvent::Released { space, fence, .. } => {
                self.holder.take_if(|holder| holder.space == *space && holder.fence == *fence);
            }
            InstanceEvent::RuntimeStarting { generation, .. } if *generation > self.generation => {
                self.generation = *generation;
                self.runtime = RuntimeState::Starting;
            }
            InstanceEvent::RuntimeReady { generation } if *generation == self.generation => {
                self.runtime = RuntimeState::Ready;
            }
            InstanceEvent::RuntimeLost { generation, .. } | InstanceEvent::RuntimeStopped { generation }
                if *generation == self.generation =>
            {
                self.runtime = RuntimeState::Down;
            }
            // Of an older start.
            InstanceEvent::RuntimeStarting { .. }
            | InstanceEvent::RuntimeReady { .. }
            | InstanceEvent::RuntimeLost { .. }
            | InstanceEvent::RuntimeStopped { .. } => {}
            InstanceEvent::CircuitOpened { retry_after_ms, .. } => {
                self.circuit = Circuit::Open { opened_at: at.recorded_at, retry_after_ms: *retry_after_ms };
            }
            InstanceEvent::CircuitClosed {} => self.circuit = Circuit::Closed,
            InstanceEvent::Retired {} => self.retired = true,
        }
    }
}
