//! The rules of an instance: `(state, command) -> events or rejection`. Pure.

use eventlog::{
    Event, ExpectedSequence, Generation, InstanceEvent, Part, Role, StreamId,
    event::instance::{Bundle, InstanceKind},
    id::WorkspaceId,
};

use super::{
    WORKSPACES_MAX,
    command::{Command, Facts, Register},
    policy::check_policy,
    state::{Circuit, Instance, InstanceState, RuntimeState},
};
use crate::{
    caller::Scope,
    rejection::{Denial, Rejection, check_plain},
};

/// What to append; nothing where it is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// For the instance's stream.
    pub events: Vec<InstanceEvent>,
}

impl Decision {
    /// The parts of the append; none if there is nothing to append.
    #[must_use]
    pub fn parts(&self, state: &InstanceState) -> Vec<Part> {
        if self.events.is_empty() {
            return Vec::new();
        }
        vec![Part {
            stream: StreamId::Instance(state.id()),
            expected: ExpectedSequence::Exact(state.revision()),
            events: self.events.iter().cloned().map(Event::from).collect(),
        }]
    }
}

/// Decides `command` on `state`.
///
/// # Errors
/// [`Rejection`]: nothing is to be appended.
pub fn decide(state: &InstanceState, command: &Command, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let events = match (command, state) {
        (Command::Register(asked), InstanceState::Absent(_)) => vec![register(asked, facts)?],
        (Command::Register(asked), InstanceState::Registered(_)) => {
            register(asked, facts)?;
            Vec::new()
        }
        (_, InstanceState::Absent(_)) => return Err(Rejection::InstanceNotFound),
        (_, InstanceState::Registered(instance)) => {
            check_asker(instance, command, facts)?;
            decide_registered(instance, command)?
        }
    };
    Ok(Decision { events })
}

/// What the supervisor tells an instance, no caller can.
fn check_asker(instance: &Instance, command: &Command, facts: &Facts<'_>) -> Result<(), Rejection> {
    match command {
        Command::Retire => instance.check_authority(facts.caller),
        Command::Register(_)
        | Command::BeginStart
        | Command::NoteReady { .. }
        | Command::NoteLost { .. }
        | Command::NoteStopped { .. }
        | Command::OpenCircuit { .. }
        | Command::Release { .. } => match facts.caller.role() {
            None => Ok(()),
            Some(Role::Operator | Role::Auditor | Role::RuntimeAgent) => Err(Denial::ServerOnly.into()),
        },
    }
}

fn decide_registered(instance: &Instance, command: &Command) -> Result<Vec<InstanceEvent>, Rejection> {
    let alive =
        |generation: Generation| instance.generation == generation && instance.runtime != RuntimeState::Down;
    Ok(match command {
        Command::BeginStart => vec![begin_start(instance)?],
        Command::Retire if !instance.retired => vec![InstanceEvent::Retired {}],
        Command::NoteReady { generation }
            if alive(*generation) && instance.runtime == RuntimeState::Starting =>
        {
            ready(instance, *generation)
        }
        Command::NoteLost { generation, reason } if alive(*generation) => {
            vec![InstanceEvent::RuntimeLost { generation: *generation, reason: *reason }]
        }
        Command::NoteStopped { generation } if alive(*generation) => {
            vec![InstanceEvent::RuntimeStopped { generation: *generation }]
        }
        Command::OpenCircuit { losses, retry_after_ms } if instance.runtime == RuntimeState::Down => {
            vec![InstanceEvent::CircuitOpened { losses: *losses, retry_after_ms: *retry_after_ms }]
        }
        Command::Release { space, reason } => {
            let holder = instance.holder.iter().filter(|holder| holder.space == *space);
            holder
                .map(|holder| InstanceEvent::Released { space: *space, fence: holder.fence, reason: *reason })
                .collect()
        }
        // Said again, or of an older start.
        Command::Register(_)
        | Command::Retire
        | Command::NoteReady { .. }
        | Command::NoteLost { .. }
        | Command::NoteStopped { .. }
        | Command::OpenCircuit { .. } => Vec::new(),
    })
}

/// Recorded before the process exists, one above the last, and never while another is alive.
fn begin_start(instance: &Instance) -> Result<InstanceEvent, Rejection> {
    let holder = instance.holder.as_ref().ok_or(Rejection::SpaceClosed)?;
    if instance.runtime != RuntimeState::Down {
        return Err(Rejection::BrowserInstanceInUse);
    }
    if instance.retired {
        return Err(Rejection::InstanceRetired);
    }
    Ok(InstanceEvent::RuntimeStarting { space: holder.space, generation: instance.generation.next() })
}

fn ready(instance: &Instance, generation: Generation) -> Vec<InstanceEvent> {
    let closed = match instance.circuit {
        Circuit::Closed => None,
        Circuit::Open { .. } => Some(InstanceEvent::CircuitClosed {}),
    };
    std::iter::once(InstanceEvent::RuntimeReady { generation }).chain(closed).collect()
}

fn register(asked: &Register, facts: &Facts<'_>) -> Result<InstanceEvent, Rejection> {
    facts.caller.must_be(&[Role::Operator])?;
    let workspaces = workspaces(asked, facts)?;
    let invalid = |field, problem: &str| Rejection::InvalidRequest { field, problem: problem.to_owned() };
    if asked.bundle == Bundle::Trusted && !facts.allowed.trusted {
        return Err(invalid("bundle", "the server's configuration does not allow trusted"));
    }
    if asked.kind == InstanceKind::Scripted && !facts.allowed.scripted {
        return Err(invalid("kind", "the server's configuration does not allow scripted"));
    }
    asked.name.iter().try_for_each(|name| check_plain("name", name.as_str()))?;
    check_policy(&asked.network_policy).map_err(|problem| invalid("network_policy", problem))?;
    Ok(InstanceEvent::Registered {
        instance_kind: asked.kind,
        name: asked.name.clone(),
        workspaces,
        bundle: asked.bundle,
        network_policy: asked.network_policy.clone(),
        headless: asked.headless,
    })
}

/// Those named, each once, if the caller may enter them all; else all that the caller may enter.
fn workspaces(asked: &Register, facts: &Facts<'_>) -> Result<Vec<WorkspaceId>, Rejection> {
    let mut workspaces = match (&asked.workspaces, &facts.caller.scope) {
        (Some(named), scope) if named.iter().all(|workspace| scope.holds(workspace)) => named.clone(),
        (Some(_), _) => return Err(Denial::EachWorkspace.into()),
        (None, Scope::All) => facts.workspaces.iter().cloned().collect(),
        (None, Scope::Only(own)) => own.iter().cloned().collect(),
    };
    workspaces.sort();
    workspaces.dedup();
    if workspaces.is_empty() || workspaces.len() > WORKSPACES_MAX {
        let problem = format!("must name from 1 to {WORKSPACES_MAX}");
        return Err(Rejection::InvalidRequest { field: "workspaces", problem });
    }
    Ok(workspaces)
}
