//! Who calls, and what that lets them do: pure rules, the same for every command and every read.

use std::{collections::BTreeSet, time::Instant};

use eventlog::{
    Principal, Role, TraceId,
    event::space::{Owner, OwnerKind},
    id::{OwnerId, WorkspaceId},
};

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

    /// Whether it may read a Space of `workspace` that belongs to `owner`.
    #[must_use]
    pub fn may_read(&self, workspace: &WorkspaceId, owner: &Owner) -> bool {
        self.scope.holds(workspace)
            && match self.role() {
                None | Some(Role::Operator | Role::Auditor) => true,
                Some(Role::RuntimeAgent) => self.is(owner),
            }
    }

    /// Whether it may change a Space of `workspace` that belongs to `owner`.
    #[must_use]
    pub fn may_act(&self, workspace: &WorkspaceId, owner: &Owner) -> bool {
        self.scope.holds(workspace)
            && match self.role() {
                None | Some(Role::Operator) => true,
                Some(Role::Auditor) => false,
                Some(Role::RuntimeAgent) => self.is(owner),
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
