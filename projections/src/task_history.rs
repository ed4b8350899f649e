//! The tasks of every Space, and the files that they made.

use async_trait::async_trait;
use eventlog::{
    Event, Json, Position, RecordedEvent, Redacted, SpaceEvent, StreamId, Timestamp,
    event::space::{ArtifactRecord, TaskError},
    id::{ArtifactId, CapabilityName, OperationId, RequestId, SpaceId, TaskId},
};
use serde::{Deserialize, Serialize};

use crate::{
    projection::{ApplyError, Misfit, Projection, Transaction},
    table::{Folded, Row, fold_all, row, write},
};

/// How a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Accepted, not begun.
    Queued,
    /// Handed to the runtime.
    Running,
    /// It did what it was asked.
    Completed,
    /// It did not.
    Failed,
    /// It was stopped before its end.
    Cancelled,
}

impl TaskStatus {
    /// Whether the task has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

row! {
    /// A task.
    TaskRow in "task" {
        /// Its id.
        task_id: TaskId,
        /// Its Space.
        space_id: SpaceId,
        /// Its one dispatch.
        operation_id: OperationId,
        /// The client's own id of it.
        request_id: RequestId,
        /// What it invokes.
        capability: CapabilityName,
        /// The names of its args; never their values.
        arg_keys: Vec<Redacted<String>>,
        /// How it is.
        status: TaskStatus,
        /// Whether somebody wants it to stop.
        cancel_requested: bool,
        /// What it came to, if it completed.
        result: Option<Redacted<Json>>,
        /// Why it failed, if it did.
        error: Option<TaskError>,
        /// It may run for so long.
        timeout_seconds: u64,
        /// When it was accepted.
        created_at: Timestamp,
        /// When it was handed to the runtime.
        started_at: Option<Timestamp>,
        /// When it ended.
        finished_at: Option<Timestamp>,
        /// The position at which it was accepted; lists go by it.
        place: Position,
    }
}

impl TaskRow {
    fn queued(event: &RecordedEvent) -> Option<Self> {
        let (
            StreamId::Space(space),
            Event::Space(SpaceEvent::TaskQueued {
                task,
                operation,
                request_id,
                capability,
                arg_keys,
                fingerprint: _,
                timeout_seconds,
                sealed_args: _,
            }),
        ) = (&event.stream, &event.event)
        else {
            return None;
        };
        Some(Self {
            task_id: *task,
            space_id: *space,
            operation_id: *operation,
            request_id: request_id.clone(),
            capability: capability.clone(),
            arg_keys: arg_keys.clone(),
            status: TaskStatus::Queued,
            cancel_requested: false,
            result: None,
            error: None,
            timeout_seconds: *timeout_seconds,
            created_at: event.metadata.recorded_at,
            started_at: None,
            finished_at: None,
            place: event.position,
        })
    }

    fn end(&mut self, status: TaskStatus, at: Timestamp) {
        self.status = status;
        self.finished_at = Some(at);
    }
}

fn task_of(event: &RecordedEvent) -> Option<TaskId> {
    let Event::Space(event) = &event.event else { return None };
    match event {
        SpaceEvent::TaskQueued { task, .. }
        | SpaceEvent::TaskStarted { task, .. }
        | SpaceEvent::TaskCompleted { task, .. }
        | SpaceEvent::TaskFailed { task, .. }
        | SpaceEvent::CancelRequested { task, .. }
        | SpaceEvent::TaskCancelled { task } => Some(*task),
        SpaceEvent::Opened { .. }
        | SpaceEvent::CloseRequested { .. }
        | SpaceEvent::Closed { .. }
        | SpaceEvent::Faulted { .. }
        | SpaceEvent::Recovered { .. }
        | SpaceEvent::DialogOpened { .. }
        | SpaceEvent::Blocked { .. } => None,
    }
}

impl Folded for TaskRow {
    fn key_of(event: &RecordedEvent) -> Option<String> {
        task_of(event).map(|task| task.to_string())
    }

    fn is_first(event: &RecordedEvent) -> bool {
        matches!(event.event, Event::Space(SpaceEvent::TaskQueued { .. }))
    }

    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit> {
        let Some(mut row) = row else {
            let queued = Self::queued(event);
            return queued.map(Some).ok_or_else(|| Misfit::new(event, "its task was not queued"));
        };
        if row.status.is_terminal() {
            return Err(Misfit::new(event, "its task has ended before"));
        }
        let at = event.metadata.recorded_at;
        match &event.event {
            Event::Space(SpaceEvent::TaskQueued { .. }) => {
                return Err(Misfit::new(event, "its task was queued before"));
            }
            Event::Space(SpaceEvent::TaskStarted { .. }) => {
                row.status = TaskStatus::Running;
                row.started_at = Some(at);
            }
            Event::Space(SpaceEvent::TaskCompleted { result, .. }) => {
                row.result = Some(result.clone());
                row.end(TaskStatus::Completed, at);
            }
            Event::Space(SpaceEvent::TaskFailed { error, .. }) => {
                row.error = Some(error.clone());
                row.end(TaskStatus::Failed, at);
            }
            Event::Space(SpaceEvent::CancelRequested { .. }) => row.cancel_requested = true,
            Event::Space(SpaceEvent::TaskCancelled { .. }) => row.end(TaskStatus::Cancelled, at),
            _ => {}
        }
        Ok(Some(row))
    }
}

/// More files than this of one task are listed in no certain order.
const ARTIFACT_PLACES_PER_EVENT: u64 = 1 << 10;

row! {
    /// A file that a task made.
    ArtifactRow in "artifact" with ARTIFACT_PLACES_PER_EVENT {
        /// Its id.
        artifact_id: ArtifactId,
        /// Its Space.
        space_id: SpaceId,
        /// Which task made it.
        task_id: TaskId,
        /// What it is: `screenshot`, …
        kind: String,
        /// Its media type.
        media_type: String,
        /// Its size.
        bytes: u64,
        /// SHA-256 of the bytes, lower-case hex.
        sha256: String,
        /// When its task completed.
        created_at: Timestamp,
        /// Where it stands in lists: the position of its event, then its place in the event.
        place: u64,
    }
}

impl ArtifactRow {
    fn all_of(event: &RecordedEvent) -> Vec<Self> {
        let (StreamId::Space(space), Event::Space(SpaceEvent::TaskCompleted { task, artifacts, .. })) =
            (&event.stream, &event.event)
        else {
            return Vec::new();
        };
        let row = |(ordinal, artifact): (u64, &ArtifactRecord)| Self {
            artifact_id: artifact.id,
            space_id: *space,
            task_id: *task,
            kind: artifact.kind.clone(),
            media_type: artifact.media_type.clone(),
            bytes: artifact.bytes,
            sha256: artifact.sha256.clone(),
            created_at: event.metadata.recorded_at,
            place: event.position.0 * ARTIFACT_PLACES_PER_EVENT + ordinal.min(ARTIFACT_PLACES_PER_EVENT - 1),
        };
        (0..).zip(artifacts).map(row).collect()
    }
}

/// Folds tasks and artifacts.
pub struct TaskHistory;

#[async_trait]
impl Projection for TaskHistory {
    fn name(&self) -> &'static str {
        "task_history"
    }

    fn version(&self) -> u64 {
        1
    }

    fn tables(&self) -> &'static [&'static str] {
        &[TaskRow::TABLE, ArtifactRow::TABLE]
    }

    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError> {
        fold_all::<TaskRow>(events, transaction).await?;
        let artifacts: Vec<ArtifactRow> = events.iter().flat_map(ArtifactRow::all_of).collect();
        write(&artifacts, transaction).await
    }
}
