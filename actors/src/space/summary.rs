//! A Space and a task as they stand: what a command's answer shows. Args are never in here, only their keys.

use eventlog::{
    Json, Position, Redacted, Sequence, Timestamp,
    event::space::{Owner, TaskError},
    id::{BindingId, CapabilityName, InstanceId, OperationId, RequestId, SpaceId, TaskId, WorkspaceId},
};

/// Where a Space stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpaceStatus {
    /// Ready for a task.
    Idle,
    /// A task is queued or running.
    Running,
    /// Its runtime is being restarted.
    Error,
    /// Over.
    Closed,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// Durable, not yet handed to the runtime.
    Queued,
    /// Handed to the runtime.
    Running,
    /// Did what it was asked.
    Completed,
    /// Did not.
    Failed,
    /// Stopped on request, and cleaned up.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSummary {
    /// Whose.
    pub space: SpaceId,
    /// Which.
    pub task: TaskId,
    /// Its one dispatch.
    pub operation: OperationId,
    /// The client's id of it.
    pub request_id: RequestId,
    /// What it invokes.
    pub capability: CapabilityName,
    /// The names of its args.
    pub arg_keys: Vec<Redacted<String>>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Whether somebody asked it to stop.
    pub cancel_requested: bool,
    /// What it gave, once completed.
    pub result: Option<Redacted<Json>>,
    /// Why not, once failed.
    pub error: Option<TaskError>,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When it was handed over.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// A Space as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceSummary {
    /// Which.
    pub space: SpaceId,
    /// Its Workspace.
    pub workspace: WorkspaceId,
    /// What it holds.
    pub instance: InstanceId,
    /// By which right, where not by the instance's own list.
    pub binding: Option<BindingId>,
    /// Whose it is.
    pub owner: Owner,
    /// Where it stands.
    pub status: SpaceStatus,
    /// What it may do.
    pub granted_capabilities: Vec<CapabilityName>,
    /// The task that is queued or running.
    pub active_task: Option<TaskSummary>,
    /// Its last sequence.
    pub revision: Sequence,
    /// The code of its last failure.
    pub last_error_code: Option<String>,
    /// After how long without use it is closed.
    pub idle_timeout_seconds: u64,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When its last event was recorded.
    pub updated_at: Timestamp,
    /// The position of its last event.
    pub position: Position,
}
