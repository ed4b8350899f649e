//! A Workspace as its events have made it.

use std::collections::{BTreeMap, BTreeSet};

use eventlog::{
    Position, Principal, Role, Sequence, Timestamp,
    id::{BindingId, CapabilityName, InstanceId, OwnerId, TokenId, WorkspaceId},
};

use crate::caller::{Caller, Scope};

/// A Workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceState {
    /// It does not exist (yet).
    Absent(WorkspaceId),
    /// It does.
    Existing(Box<Workspace>),
}

/// A Workspace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Which.
    pub id: WorkspaceId,
    /// Its tokens, the revoked ones too.
    pub tokens: BTreeMap<TokenId, Token>,
    /// Its bindings, the revoked ones too.
    pub bindings: BTreeMap<BindingId, Binding>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its last sequence.
    pub revision: Sequence,
    /// The position of its last event.
    pub position: Position,
}

/// A token, by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// BLAKE3 of its text.
    pub hash: [u8; 32],
    /// What its bearer may do.
    pub role: Role,
    /// Who its bearer is.
    pub owner_id: OwnerId,
    /// Whether it may enter every Workspace.
    pub all_workspaces: bool,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// Whether it was ended.
    pub revoked: bool,
    /// When it was made.
    pub issued_at: Timestamp,
}

/// A right to reserve an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Of which instance.
    pub instance: InstanceId,
    /// Only for this owner, where given.
    pub owner_id: Option<OwnerId>,
    /// Only these capabilities, where given.
    pub capabilities: Option<Vec<CapabilityName>>,
    /// Whether it was ended.
    pub revoked: bool,
}

impl WorkspaceState {
    /// Which Workspace.
    #[must_use]
    pub fn id(&self) -> &WorkspaceId {
        match self {
            Self::Absent(id) => id,
            Self::Existing(workspace) => &workspace.id,
        }
    }

    /// The Workspace, if it exists.
    #[must_use]
    pub fn workspace(&self) -> Option<&Workspace> {
        match self {
            Self::Absent(_) => None,
            Self::Existing(workspace) => Some(workspace),
        }
    }

    /// Its last sequence; 0 if it does not exist.
    #[must_use]
    pub fn revision(&self) -> Sequence {
        self.workspace().map_or(Sequence::ZERO, |workspace| workspace.revision)
    }

    /// A binding of this Workspace.
    #[must_use]
    pub fn binding(&self, id: BindingId) -> Option<&Binding> {
        self.workspace()?.bindings.get(&id)
    }
}

impl Binding {
    /// Whether it lets this owner reserve this instance.
    #[must_use]
    pub fn permits(&self, instance: InstanceId, owner: &OwnerId) -> bool {
        !self.revoked && self.instance == instance && self.owner_id.as_ref().is_none_or(|only| only == owner)
    }
}

impl Token {
    /// Whether it opens a door at `now`.
    #[must_use]
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        !self.revoked && self.expires_at.is_none_or(|end| now < end)
    }

    /// Who bears it, and what that opens.
    #[must_use]
    pub fn caller(&self, id: TokenId, workspace: &WorkspaceId) -> Caller {
        let scope =
            if self.all_workspaces { Scope::All } else { Scope::Only(BTreeSet::from([workspace.clone()])) };
        Caller {
            principal: Principal::Token { role: self.role, id: self.owner_id.clone(), token: id },
            scope,
        }
    }
}
