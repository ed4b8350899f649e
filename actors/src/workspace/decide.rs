//! The rules of a Workspace: `(state, command) -> events or rejection`. Pure.

use eventlog::{
    Event, ExpectedSequence, Part, Role, StreamId, WorkspaceEvent,
    id::{BindingId, TokenId},
};

use super::{
    command::{Command, Facts, GrantBinding, IssueToken},
    state::WorkspaceState,
};
use crate::{
    caller::Scope,
    instance::Instance,
    rejection::{Denial, Rejection, check_plain},
};

/// What to append; nothing where it is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// For the Workspace's stream.
    pub events: Vec<WorkspaceEvent>,
}

impl Decision {
    /// The parts of the append; none if there is nothing to append.
    #[must_use]
    pub fn parts(&self, state: &WorkspaceState) -> Vec<Part> {
        if self.events.is_empty() {
            return Vec::new();
        }
        vec![Part {
            stream: StreamId::Workspace(state.id().clone()),
            expected: ExpectedSequence::Exact(state.revision()),
            events: self.events.iter().cloned().map(Event::from).collect(),
        }]
    }
}

/// Decides `command` on `state`: only an operator who may enter the Workspace, or the server itself, changes it.
///
/// # Errors
/// [`Rejection`]: nothing is to be appended.
pub fn decide(state: &WorkspaceState, command: &Command, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    check_caller(state, command, facts)?;
    let events = match command {
        Command::Create => created(state).into_iter().collect(),
        Command::IssueToken(asked) => {
            let issued = issue(asked, facts)?;
            check_plain("workspace_id", state.id().as_str())?;
            created(state).into_iter().chain([issued]).collect()
        }
        Command::RevokeToken { token } => revoke_token(state, *token)?,
        Command::GrantBinding(asked) => vec![grant(asked, facts)?],
        Command::RevokeBinding { binding } => revoke_binding(state, *binding)?,
    };
    Ok(Decision { events })
}

/// To make a Workspace one must be able to enter every one; to change it, this one. An absent one can't be entered.
fn check_caller(state: &WorkspaceState, command: &Command, facts: &Facts<'_>) -> Result<(), Rejection> {
    facts.caller.must_be(&[Role::Operator])?;
    let everywhere = facts.caller.scope == Scope::All;
    match (command, state) {
        (Command::Create, _) if !everywhere => Err(Denial::EveryWorkspace.into()),
        (Command::Create, _) => Ok(()),
        (Command::IssueToken(_), WorkspaceState::Absent(_)) if everywhere => Ok(()),
        (_, WorkspaceState::Existing(workspace)) => Ok(facts.caller.must_enter(&workspace.id)?),
        (_, WorkspaceState::Absent(_)) => Err(Denial::Workspace.into()),
    }
}

fn created(state: &WorkspaceState) -> Option<WorkspaceEvent> {
    match state {
        WorkspaceState::Absent(_) => Some(WorkspaceEvent::Created {}),
        WorkspaceState::Existing(_) => None,
    }
}

/// Nobody gives more than they have.
fn issue(asked: &IssueToken, facts: &Facts<'_>) -> Result<WorkspaceEvent, Rejection> {
    if asked.all_workspaces && facts.caller.scope != Scope::All {
        return Err(Denial::EveryWorkspace.into());
    }
    if asked.expires_at.is_some_and(|end| end <= facts.now) {
        let problem = "must lie in the future".to_owned();
        return Err(Rejection::InvalidRequest { field: "expires_at", problem });
    }
    check_plain("owner_id", asked.owner_id.as_str())?;
    Ok(WorkspaceEvent::TokenIssued {
        token: asked.token,
        hash: asked.hash,
        role: asked.role,
        owner_id: asked.owner_id.clone(),
        all_workspaces: asked.all_workspaces,
        expires_at: asked.expires_at,
    })
}

fn revoke_token(state: &WorkspaceState, id: TokenId) -> Result<Vec<WorkspaceEvent>, Rejection> {
    let token = state.workspace().and_then(|workspace| workspace.tokens.get(&id));
    let token = token.ok_or(Rejection::TokenNotFound)?;
    Ok(if token.revoked { Vec::new() } else { vec![WorkspaceEvent::TokenRevoked { token: id }] })
}

/// Only who may decide about the instance can bind it: else an operator of one Workspace could take another's.
fn grant(asked: &GrantBinding, facts: &Facts<'_>) -> Result<WorkspaceEvent, Rejection> {
    let instance = facts.instance.and_then(|state| state.instance());
    let instance = instance.filter(|instance| instance.id == asked.instance);
    let instance = instance.ok_or(Rejection::InstanceNotFound)?;
    instance.check_authority(facts.caller)?;
    if instance.retired {
        return Err(Rejection::InstanceRetired);
    }
    check_capabilities(asked, instance, facts)?;
    asked.owner_id.iter().try_for_each(|owner| check_plain("owner_id", owner.as_str()))?;
    Ok(WorkspaceEvent::BindingGranted {
        binding: asked.binding,
        instance: asked.instance,
        owner_id: asked.owner_id.clone(),
        capabilities: asked.capabilities.clone(),
    })
}

fn check_capabilities(asked: &GrantBinding, instance: &Instance, facts: &Facts<'_>) -> Result<(), Rejection> {
    for (index, name) in asked.capabilities.iter().flatten().enumerate() {
        let at = Some(("capabilities", index));
        let row = facts.catalogue.get(name).ok_or(Rejection::CapabilityUnknown { at })?;
        if !row.is_in(instance.bundle) {
            return Err(Rejection::CapabilityNotGranted { capability: name.clone(), task: None });
        }
    }
    Ok(())
}

fn revoke_binding(state: &WorkspaceState, id: BindingId) -> Result<Vec<WorkspaceEvent>, Rejection> {
    let binding = state.binding(id).ok_or(Rejection::BindingNotFound)?;
    Ok(if binding.revoked { Vec::new() } else { vec![WorkspaceEvent::BindingRevoked { binding: id }] })
}
