//! Who calls, and what that lets them do: pure rules, the same for every command and every read.

use std::{collections::BTreeSet, time::Instant};

use eventlog::{
    Principal, Role, TraceId,
    event::space::{Owner, OwnerKind},
    id::{OwnerId, WorkspaceId},
};

use crate::rejection::Denial;

/// An authenticated caller. Made by [`crate::Spaces::authenticate`] from a token, never from a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who, as it is recorded.
    pub principal: Principal,
    /// Which Workspaces it may enter.
    pub scope: Scope,
}

/// Which Workspaces a caller may enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every one: the server's own operator.
    All,
    /// These.
    Only(BTreeSet<WorkspaceId>),
}

impl Scope {
    /// Whether the caller may enter `workspace`.
    #[must_use]
    pub fn holds(&self, workspace: &WorkspaceId) -> bool {
        match self {
            Self::All => true,
            Self::Only(workspaces) => workspaces.contains(workspace),
        }
    }
}

impl Caller {
    /// The server itself.
    #[must_use]
    pub const fn system() -> Self {
        Self { principal: Principal::System, scope: Scope::All }
    }

    /// Its role; the server itself has none and may do everything.
    #[must_use]
    pub const fn role(&self) -> Option<Role> {
        match &self.principal {
            Principal::System => None,
            Principal::Token { role, .. } => Some(*role),
        }
    }

    /// Its opaque id, where it is not the server itself.
    #[must_use]
    pub const fn owner_id(&self) -> Option<&OwnerId> {
        match &self.principal {
            Principal::System => None,
            Principal::Token { id, .. } => Some(id),
        }
    }

    /// Refuses whoever may not enter `workspace`.
    ///
    /// # Errors
    /// [`Denial::Workspace`]
    pub fn must_enter(&self, workspace: &WorkspaceId) -> Result<(), Denial> {
        if self.scope.holds(workspace) { Ok(()) } else { Err(Denial::Workspace) }
    }

    /// Refuses whoever has none of `roles`; the server itself has them all.
    ///
    /// # Errors
    /// [`Denial::Role`]
    pub fn must_be(&self, roles: &'static [Role]) -> Result<(), Denial> {
        match self.role() {
            Some(role) if !roles.contains(&role) => Err(Denial::Role(roles)),
            None | Some(_) => Ok(()),
        }
    }

    /// Whether it may read a Space of `workspace` that belongs to `owner`.
    ///
    /// # Errors
    /// [`Denial`]: what it lacks.
    pub fn may_read(&self, workspace: &WorkspaceId, owner: &Owner) -> Result<(), Denial> {
        self.must_enter(workspace)?;
        match self.role() {
            Some(Role::RuntimeAgent) if !self.is(owner) => Err(Denial::Owner),
            None | Some(Role::Operator | Role::Auditor | Role::RuntimeAgent) => Ok(()),
        }
    }

    /// Whether it may change a Space of `workspace` that belongs to `owner`.
    ///
    /// # Errors
    /// [`Denial`]: what it lacks.
    pub fn may_act(&self, workspace: &WorkspaceId, owner: &Owner) -> Result<(), Denial> {
        self.may_read(workspace, owner)?;
        self.must_be(&[Role::Operator, Role::RuntimeAgent])
    }

    /// Whether it may make a Space in `workspace` that belongs to `owner`.
    ///
    /// # Errors
    /// [`Denial`]: what it lacks.
    pub fn may_own(&self, workspace: &WorkspaceId, owner: &Owner) -> Result<(), Denial> {
        self.must_enter(workspace)?;
        self.must_be(&[Role::Operator, Role::RuntimeAgent])?;
        match (self.role(), self.owner_id()) {
            (Some(Role::RuntimeAgent), Some(own)) if !self.is(owner) => Err(Denial::OwnId(own.clone())),
            _ => Ok(()),
        }
    }

    fn is(&self, owner: &Owner) -> bool {
        owner.kind == OwnerKind::RuntimeAgent && self.owner_id() == Some(&owner.id)
    }
}

/// What comes with every command: who, in which trace, and until when the caller waits.
#[derive(Debug, Clone)]
pub struct Context {
    /// Who asks.
    pub caller: Caller,
    /// The trace it is asked in; recorded with the events.
    pub trace_id: TraceId,
    /// The caller's span, so that the actor's work is in the same trace.
    pub span: tracing::Span,
    /// When the caller stops waiting; what is not yet queued by then is refused as `overloaded`.
    pub deadline: Instant,
}
