//! How a Workspace's events make its state: `(state, event) -> state`. Pure and total.

use std::collections::BTreeMap;

use eventlog::{Event, RecordedEvent, WorkspaceEvent};

use super::state::{Binding, Token, Workspace, WorkspaceState};
use crate::place::Place;

/// The state after one more event.
#[must_use]
pub fn evolve(state: WorkspaceState, event: &WorkspaceEvent, at: Place) -> WorkspaceState {
    match state {
        WorkspaceState::Absent(id) => match event {
            WorkspaceEvent::Created {} => WorkspaceState::Existing(Box::new(Workspace {
                id,
                tokens: BTreeMap::new(),
                bindings: BTreeMap::new(),
                created_at: at.recorded_at,
                revision: at.sequence,
                position: at.position,
            })),
            WorkspaceEvent::TokenIssued { .. }
            | WorkspaceEvent::TokenRevoked { .. }
            | WorkspaceEvent::BindingGranted { .. }
            | WorkspaceEvent::BindingRevoked { .. } => WorkspaceState::Absent(id),
        },
        WorkspaceState::Existing(mut workspace) => {
            workspace.note(at);
            workspace.apply(event, at);
            WorkspaceState::Existing(workspace)
        }
    }
}

/// The state after the events of one append to its stream, the first of which lies at `first`.
#[must_use]
pub fn evolve_all(state: WorkspaceState, events: &[WorkspaceEvent], first: Place) -> WorkspaceState {
    let places = std::iter::successors(Some(first), |place| Some(place.next()));
    events.iter().zip(places).fold(state, |state, (event, at)| evolve(state, event, at))
}

/// The state after an event as read back. One of a kind that this program does not know only moves its place.
#[must_use]
pub fn evolve_recorded(mut state: WorkspaceState, recorded: &RecordedEvent) -> WorkspaceState {
    let at = Place::from(recorded);
    match &recorded.event {
        Event::Workspace(event) => evolve(state, event, at),
        Event::Space(_) | Event::Instance(_) | Event::Server(_) | Event::Download(_) | Event::Unknown(_) => {
            if let WorkspaceState::Existing(workspace) = &mut state {
                workspace.note(at);
            }
            state
        }
    }
}

impl Workspace {
    fn note(&mut self, at: Place) {
        self.revision = at.sequence;
        self.position = at.position;
    }

    fn apply(&mut self, event: &WorkspaceEvent, at: Place) {
        match event {
            WorkspaceEvent::Created {} => {}
            WorkspaceEvent::TokenIssued { token, hash, role, owner_id, all_workspaces, expires_at } => {
                self.tokens.entry(*token).or_insert_with(|| Token {
                    hash: *hash,
                    role: *role,
                    owner_id: owner_id.clone(),
                    all_workspaces: *all_workspaces,
                    expires_at: *expires_at,
                    revoked: false,
                    issued_at: at.recorded_at,
                });
            }
            WorkspaceEvent::TokenRevoked { token } => {
                if let Some(token) = self.tokens.get_mut(token) {
                    token.revoked = true;
                }
            }
            WorkspaceEvent::BindingGranted { binding, instance, owner_id, capabilities } => {
                self.bindings.entry(*binding).or_insert_with(|| Binding {
                    instance: *instance,
                    owner_id: owner_id.clone(),
                    capabilities: capabilities.clone(),
                    revoked: false,
                });
            }
            WorkspaceEvent::BindingRevoked { binding } => {
                if let Some(binding) = self.bindings.get_mut(binding) {
                    binding.revoked = true;
                }
            }
        }
    }
}
