//! The Workspaces, and who may do what in them: bindings and tokens. Never a token's hash.

use async_trait::async_trait;
use eventlog::{
    Event, Position, RecordedEvent, Role, StreamId, Timestamp, WorkspaceEvent,
    id::{BindingId, CapabilityName, InstanceId, OwnerId, TokenId, WorkspaceId},
};

use crate::{
    projection::{ApplyError, Misfit, Projection, Transaction},
    table::{Folded, Row, fold_all, row},
};

row! {
    /// A Workspace.
    WorkspaceRow in "workspace" {
        /// Its id.
        workspace_id: WorkspaceId,
        /// When it was made.
        created_at: Timestamp,
        /// The position at which it was made; lists go by it.
        place: Position,
    }
}

row! {
    /// A right to reserve an instance.
    BindingRow in "binding" {
        /// Its id.
        binding_id: BindingId,
        /// Who has it.
        workspace_id: WorkspaceId,
        /// On what.
        browser_instance_id: InstanceId,
        /// The one owner who has it; every owner of the Workspace if none is named.
        owner_id: Option<OwnerId>,
        /// Only these capabilities, where given.
        capabilities: Option<Vec<CapabilityName>>,
        /// When it was granted.
        created_at: Timestamp,
        /// When it ended.
        revoked_at: Option<Timestamp>,
        /// The position at which it was granted; lists go by it.
        place: Position,
    }
}

row! {
    /// A token, as far as it may be shown.
    TokenRow in "token" {
        /// Its id, which is not the token.
        token_id: TokenId,
        /// Where it was made.
        workspace_id: WorkspaceId,
        /// What its bearer may be.
        role: Role,
        /// Who its bearer is.
        owner_id: OwnerId,
        /// Whether it opens every Workspace.
        all_workspaces: bool,
        /// When it was made.
        created_at: Timestamp,
        /// When it ends by itself.
        expires_at: Option<Timestamp>,
        /// When it was revoked.
        revoked_at: Option<Timestamp>,
        /// The position at which it was made; lists go by it.
        place: Position,
    }
}

fn of_workspace(event: &RecordedEvent) -> Option<(&WorkspaceId, &WorkspaceEvent)> {
    match (&event.stream, &event.event) {
        (StreamId::Workspace(id), Event::Workspace(event)) => Some((id, event)),
        _ => None,
    }
}

impl Folded for WorkspaceRow {
    fn key_of(event: &RecordedEvent) -> Option<String> {
        let (id, event) = of_workspace(event)?;
        matches!(event, WorkspaceEvent::Created {}).then(|| id.to_string())
    }

    fn is_first(_: &RecordedEvent) -> bool {
        true
    }

    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit> {
        match (row, of_workspace(event)) {
            (None, Some((id, _))) => Ok(Some(Self {
                workspace_id: id.clone(),
                created_at: event.metadata.recorded_at,
                place: event.position,
            })),
            (Some(_), _) => Err(Misfit::new(event, "its Workspace was made before")),
            (None, None) => Ok(None),
        }
    }
}

impl Folded for BindingRow {
    fn key_of(event: &RecordedEvent) -> Option<String> {
        match of_workspace(event)?.1 {
            WorkspaceEvent::BindingGranted { binding, .. } | WorkspaceEvent::BindingRevoked { binding } => {
                Some(binding.to_string())
            }
            WorkspaceEvent::Created {}
            | WorkspaceEvent::TokenIssued { .. }
            | WorkspaceEvent::TokenRevoked { .. } => None,
        }
    }

    fn is_first(event: &RecordedEvent) -> bool {
        matches!(event.event, Event::Workspace(WorkspaceEvent::BindingGranted { .. }))
    }

    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit> {
        match (row, of_workspace(event)) {
            (
                None,
                Some((
                    workspace,
                    WorkspaceEvent::BindingGranted { binding, instance, owner_id, capabilities },
                )),
            ) => Ok(Some(Self {
                binding_id: *binding,
                workspace_id: workspace.clone(),
                browser_instance_id: *instance,
                owner_id: owner_id.clone(),
                capabilities: capabilities.clone(),
                created_at: event.metadata.recorded_at,
                revoked_at: None,
                place: event.position,
            })),
            (Some(row), Some((_, WorkspaceEvent::BindingRevoked { .. }))) => {
                Ok(Some(Self { revoked_at: row.revoked_at.or(Some(event.metadata.recorded_at)), ..row }))
            }
            (None, _) => Err(Misfit::new(event, "its binding was not granted")),
            (Some(_), _) => Err(Misfit::new(event, "its binding was granted before")),
        }
    }
}

impl Folded for TokenRow {
    fn key_of(event: &RecordedEvent) -> Option<String> {
        match of_workspace(event)?.1 {
            WorkspaceEvent::TokenIssued { token, .. } | WorkspaceEvent::TokenRevoked { token } => {
                Some(token.to_string())
            }
            WorkspaceEvent::Created {}
            | WorkspaceEvent::BindingGranted { .. }
            | WorkspaceEvent::BindingRevoked { .. } => None,
        }
    }

    fn is_first(event: &RecordedEvent) -> bool {
        matches!(event.event, Event::Workspace(WorkspaceEvent::TokenIssued { .. }))
    }

    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit> {
        match (row, of_workspace(event)) {
            (
                None,
                Some((
                    workspace,
                    WorkspaceEvent::TokenIssued {
                        token,
                        hash: _,
                        role,
                        owner_id,
                        all_workspaces,
                        expires_at,
                    },
                )),
            ) => Ok(Some(Self {
                token_id: *token,
                workspace_id: workspace.clone(),
                role: *role,
                owner_id: owner_id.clone(),
                all_workspaces: *all_workspaces,
                created_at: event.metadata.recorded_at,
                expires_at: *expires_at,
                revoked_at: None,
                place: event.position,
            })),
            (Some(row), Some((_, WorkspaceEvent::TokenRevoked { .. }))) => {
                Ok(Some(Self { revoked_at: row.revoked_at.or(Some(event.metadata.recorded_at)), ..row }))
            }
            (None, _) => Err(Misfit::new(event, "its token was not issued")),
            (Some(_), _) => Err(Misfit::new(event, "its token was issued before")),
        }
    }
}

/// Folds Workspaces, bindings and tokens.
pub struct WorkspaceAccess;

#[async_trait]
impl Projection for WorkspaceAccess {
    fn name(&self) -> &'static str {
        "workspace_access"
    }

    fn version(&self) -> u64 {
        1
    }

    fn tables(&self) -> &'static [&'static str] {
        &[WorkspaceRow::TABLE, BindingRow::TABLE, TokenRow::TABLE]
    }

    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError> {
        fold_all::<WorkspaceRow>(events, transaction).await?;
        fold_all::<BindingRow>(events, transaction).await?;
        fold_all::<TokenRow>(events, transaction).await
    }
}
