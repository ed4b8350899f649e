//! The Spaces: who has which browser, and what it is doing.

use async_trait::async_trait;
use eventlog::{
    Event, Position, RecordedEvent, Sequence, SpaceEvent, StreamId, Timestamp,
    event::space::{CloseReason, OwnerKind},
    id::{BindingId, CapabilityName, InstanceId, OwnerId, SpaceId, TaskId, WorkspaceId},
};
use serde::{Deserialize, Serialize};

use crate::{
    projection::{ApplyError, Misfit, Projection, Transaction},
    table::{Folded, Row, fold_all, row},
};

/// How a Space is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpaceStatus {
    /// It takes a task.
    Idle,
    /// A task is queued or running.
    Running,
    /// Its runtime is unusable and being restarted.
    Error,
    /// It is over.
    Closed,
}

row! {
    /// A Space.
    SpaceRow in "space" {
        /// Its id.
        space_id: SpaceId,
        /// Where it belongs.
        workspace_id: WorkspaceId,
        /// What it holds, or held.
        browser_instance_id: InstanceId,
        /// By which right, if by a binding.
        binding_id: Option<BindingId>,
        /// What kind of owner.
        owner_type: OwnerKind,
        /// Whose it is.
        owner_id: OwnerId,
        /// How it is.
        status: SpaceStatus,
        /// What its tasks may invoke.
        granted_capabilities: Vec<CapabilityName>,
        /// The task that is queued or running.
        active_task: Option<TaskId>,
        /// The last sequence of its stream.
        revision: Sequence,
        /// The code of its last failed task or fault.
        last_error_code: Option<String>,
        /// Why it is over.
        close_reason: Option<CloseReason>,
        /// Unused for so long, it is closed.
        idle_timeout_seconds: u64,
        /// When it was opened.
        created_at: Timestamp,
        /// When its last event was recorded.
        updated_at: Timestamp,
        /// The position at which it was opened; lists go by it.
        place: Position,
    }
}

impl SpaceRow {
    fn opened(id: SpaceId, event: &RecordedEvent) -> Option<Self> {
        let Event::Space(SpaceEvent::Opened {
            workspace,
            instance,
            binding,
            owner,
            granted_capabilities,
            idle_timeout_seconds,
            fingerprint_key: _,
            idempotency: _,
            environment: _,
        }) = &event.event
        else {
            return None;
        };
        Some(Self {
            space_id: id,
            workspace_id: workspace.clone(),
            browser_instance_id: *instance,
            binding_id: *binding,
            owner_type: owner.kind,
            owner_id: owner.id.clone(),
            status: SpaceStatus::Idle,
            granted_capabilities: granted_capabilities.clone(),
            active_task: None,
            revision: event.sequence,
            last_error_code: None,
            close_reason: None,
            idle_timeout_seconds: *idle_timeout_seconds,
            created_at: event.metadata.recorded_at,
            updated_at: event.metadata.recorded_at,
            place: event.position,
        })
    }

    fn change(&mut self, event: &SpaceEvent) {
        match event {
            // A task that was refused and will never run keeps no args, and the Space as it is.
            SpaceEvent::TaskQueued { task, sealed_args: Some(_), .. } => {
                self.active_task = Some(*task);
                self.restatus(self.status == SpaceStatus::Error);
            }
            SpaceEvent::TaskCompleted { task, .. } | SpaceEvent::TaskCancelled { task } => {
                self.end_task(*task);
            }
            SpaceEvent::TaskFailed { task, error } => {
                self.last_error_code = Some(error.code.clone());
                self.end_task(*task);
            }
            SpaceEvent::Faulted { code, .. } => {
                self.last_error_code = Some(code.clone());
                self.restatus(true);
            }
            SpaceEvent::Recovered { .. } => self.restatus(false),
            SpaceEvent::Closed { reason } => {
                self.active_task = None;
                self.close_reason = Some(*reason);
                self.status = SpaceStatus::Closed;
            }
            SpaceEvent::Opened { .. }
            | SpaceEvent::TaskQueued { sealed_args: None, .. }
            | SpaceEvent::TaskStarted { .. }
            | SpaceEvent::CancelRequested { .. }
            | SpaceEvent::CloseRequested { .. }
            | SpaceEvent::DialogOpened { .. }
            | SpaceEvent::Blocked { .. } => {}
        }
    }

    fn end_task(&mut self, task: TaskId) {
        if self.active_task == Some(task) {
            self.active_task = None;
            self.restatus(self.status == SpaceStatus::Error);
        }
    }

    fn restatus(&mut self, is_faulted: bool) {
        self.status = match (self.status, is_faulted, self.active_task) {
            (SpaceStatus::Closed, _, _) => SpaceStatus::Closed,
            (_, true, _) => SpaceStatus::Error,
            (_, false, Some(_)) => SpaceStatus::Running,
            (_, false, None) => SpaceStatus::Idle,
        };
    }
}

impl Folded for SpaceRow {
    fn key_of(event: &RecordedEvent) -> Option<String> {
        match &event.stream {
            StreamId::Space(id) => Some(id.to_string()),
            StreamId::Instance(_) | StreamId::Workspace(_) | StreamId::Server | StreamId::Downloads(_) => {
                None
            }
        }
    }

    fn is_first(event: &RecordedEvent) -> bool {
        matches!(event.event, Event::Space(SpaceEvent::Opened { .. }))
    }

    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit> {
        let StreamId::Space(id) = &event.stream else { return Ok(row) };
        let Some(mut row) = row else {
            let opened = Self::opened(*id, event);
            return opened.map(Some).ok_or_else(|| Misfit::new(event, "its Space was not opened"));
        };
        if Self::is_first(event) {
            return Err(Misfit::new(event, "its Space was opened before"));
        }
        // A kind that this program does not know still moves the Space's revision.
        if let Event::Space(known) = &event.event {
            row.change(known);
        }
        row.revision = event.sequence;
        row.updated_at = event.metadata.recorded_at;
        Ok(Some(row))
    }
}

/// Folds Spaces.
pub struct SpaceList;

#[async_trait]
impl Projection for SpaceList {
    fn name(&self) -> &'static str {
        "space_list"
    }

    fn version(&self) -> u64 {
        1
    }

    fn tables(&self) -> &'static [&'static str] {
        &[SpaceRow::TABLE]
    }

    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError> {
        fold_all::<SpaceRow>(events, transaction).await
    }
}
