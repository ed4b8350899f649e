//! A Space as its events have made it. States that must not be have no spelling: a Space runs one task or none, a
//! running task has a generation and a deadline, a closed Space has no phase.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use eventlog::{
    Fence, Generation, Json, Position, Redacted, Sequence, Timestamp,
    event::space::{ArtifactRecord, CancelReason, CloseReason, Idempotency, Owner, TaskError},
    id::{BindingId, CapabilityName, InstanceId, OperationId, RequestId, SpaceId, TaskId, WorkspaceId},
    sealing::{Fingerprint, KeyId, Sealed},
};

use super::{
    REQUEST_IDS_KEPT,
    summary::{SpaceStatus, SpaceSummary, TaskStatus, TaskSummary},
};

/// A Space.
#[derive(Debug, Clone, PartialEq)]
pub enum SpaceState {
    /// It does not exist (yet).
    Absent(SpaceId),
    /// It holds its instance.
    Open(Box<OpenSpace>),
    /// It is over.
    Closed(Box<ClosedSpace>),
}

/// A Space that holds its instance.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenSpace {
    /// What outlives its phases.
    pub space: Space,
    /// What it is doing.
    pub phase: Phase,
    /// Why it will close once its task has ended, if it will.
    pub closing: Option<CloseReason>,
}

/// A Space that has let go.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedSpace {
    /// What is left of it: repeats of old submits are still answered.
    pub space: Space,
    /// Why it was closed.
    pub reason: CloseReason,
}

/// What an open Space is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// Its task waits for the runtime.
    Queued(Task),
    /// Its task was handed to the runtime, or is just about to be.
    Running(RunningTask),
    /// Its runtime is being restarted; a task that had not started waits for that.
    Faulted {
        /// What went wrong.
        fault: Fault,
        /// Who waits.
        queued: Option<Task>,
    },
}

/// What went wrong with a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The stable code.
    pub code: String,
    /// Which start is unusable, and all before it.
    pub generation: Option<Generation>,
}

/// What does not depend on what a Space is doing.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// Which.
    pub id: SpaceId,
    /// Its Workspace.
    pub workspace: WorkspaceId,
    /// What it holds, or held.
    pub instance: InstanceId,
    /// By which right, where not by the instance's own list.
    pub binding: Option<BindingId>,
    /// Whose it is.
    pub owner: Owner,
    /// What it may do.
    pub granted_capabilities: Vec<CapabilityName>,
    /// After how long without use it is closed.
    pub idle_timeout: Duration,
    /// Keys the fingerprints of its args.
    pub fingerprint_key: KeyId,
    /// What its create can be recognised by, where it had an idempotency key.
    pub idempotency: Option<Idempotency>,
    /// Its reservation.
    pub fence: Fence,
    /// The newest start of its runtime that its events name.
    pub generation: Generation,
    /// The submits that it remembers.
    pub requests: RequestWindow,
    /// The task that ended last, in full.
    pub last_task: Option<EndedTask>,
    /// Notices recorded since the last submit.
    pub notices: u32,
    /// The code of its last failure.
    pub last_error_code: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When its last event was recorded.
    pub updated_at: Timestamp,
    /// When it was last used, as far as events tell.
    pub last_activity: Timestamp,
    /// Its last sequence.
    pub revision: Sequence,
    /// The position of its last event.
    pub position: Position,
}

/// A task that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
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
    /// For how long it may run.
    pub timeout: Duration,
    /// Its args; `None` once it has ended, and for one that was refused.
    pub sealed_args: Option<Sealed>,
    /// Who wants it to stop.
    pub cancel: Option<Cancel>,
    /// When it was queued.
    pub queued_at: Timestamp,
}

/// A cancel that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancel {
    /// Why.
    pub reason: CancelReason,
    /// When.
    pub requested_at: Timestamp,
}

/// A task that was handed to a runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningTask {
    /// The task.
    pub task: Task,
    /// To which start of it.
    pub generation: Generation,
    /// Until when it may run.
    pub deadline: Timestamp,
    /// When.
    pub started_at: Timestamp,
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedTask {
    /// The task, without its args.
    pub task: Task,
    /// When it was handed over, if it was.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
    /// How.
    pub end: TaskEnd,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEnd {
    /// It did what it was asked.
    Completed {
        /// What it gave.
        result: Redacted<Json>,
        /// What files it made.
        artifacts: Vec<ArtifactRecord>,
    },
    /// It did not.
    Failed(TaskError),
    /// It stopped on request.
    Cancelled,
}

/// The active task of a Space, whichever phase it is in.
#[derive(Debug, Clone, Copy)]
pub enum ActiveTask<'a> {
    /// Not handed over yet.
    Queued(&'a Task),
    /// Handed over.
    Running(&'a RunningTask),
}

/// The last [`REQUEST_IDS_KEPT`] submits of a Space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestWindow {
    oldest_first: VecDeque<Arc<RequestId>>,
    submits: HashMap<Arc<RequestId>, Remembered>,
}

/// What is remembered of a submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// What tells a repeat from a conflict.
    pub fingerprint: Fingerprint,
    /// The task that it made.
    pub task: TaskId,
}

impl RequestWindow {
    /// What is remembered under this id.
    #[must_use]
    pub fn get(&self, id: &RequestId) -> Option<Remembered> {
        self.submits.get(id).copied()
    }

    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.oldest_first.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.oldest_first.is_empty()
    }

    /// Remembers a submit and forgets the oldest beyond the bound; the first under an id stays.
    pub(super) fn remember(&mut self, id: RequestId, submit: Remembered) {
        let id = Arc::new(id);
        if self.submits.contains_key(&id) {
            return;
        }
        self.submits.insert(Arc::clone(&id), submit);
        self.oldest_first.push_back(id);
        if self.oldest_first.len() > REQUEST_IDS_KEPT
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.submits.remove(&oldest);
        }
    }
}

impl SpaceState {
    /// Which Space.
    #[must_use]
    pub fn id(&self) -> SpaceId {
        match self {
            Self::Absent(id) => *id,
            Self::Open(open) => open.space.id,
            Self::Closed(closed) => closed.space.id,
        }
    }

    /// What does not depend on its phase; `None` if it does not exist.
    #[must_use]
    pub fn space(&self) -> Option<&Space> {
        match self {
            Self::Absent(_) => None,
            Self::Open(open) => Some(&open.space),
            Self::Closed(closed) => Some(&closed.space),
        }
    }

    /// Its last sequence; 0 if it does not exist.
    #[must_use]
    pub fn revision(&self) -> Sequence {
        self.space().map_or(Sequence::ZERO, |space| space.revision)
    }

    /// The task that is queued or running.
    #[must_use]
    pub fn active_task(&self) -> Option<ActiveTask<'_>> {
        match self {
            Self::Open(open) => open.active_task(),
            Self::Absent(_) | Self::Closed(_) => None,
        }
    }

    /// The keys that it still needs: of its active task's args, and of its fingerprints while it is open.
    /// Whatever key was in here before an event and is not after it is to be destroyed (S12).
    #[must_use]
    pub fn live_keys(&self) -> Vec<KeyId> {
        let Self::Open(open) = self else { return Vec::new() };
        let args = open.active_task().and_then(|active| active.task().sealed_args.as_ref());
        std::iter::once(open.space.fingerprint_key).chain(args.map(|sealed| sealed.key)).collect()
    }

    /// When it is to be closed for want of use, if nothing more happens; `None` while it has a task or is closing.
    #[must_use]
    pub fn idle_at(&self, last_use: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Open(open) => open.idle_at(last_use),
            Self::Absent(_) | Self::Closed(_) => None,
        }
    }

    /// The Space as it stands; `None` if it does not exist.
    #[must_use]
    pub fn summary(&self) -> Option<SpaceSummary> {
        let space = self.space()?;
        Some(SpaceSummary {
            space: space.id,
            workspace: space.workspace.clone(),
            instance: space.instance,
            binding: space.binding,
            owner: space.owner.clone(),
            status: self.status(),
            granted_capabilities: space.granted_capabilities.clone(),
            active_task: self.active_task().map(|active| active.summary(space.id)),
            revision: space.revision,
            last_error_code: space.last_error_code.clone(),
            idle_timeout_seconds: space.idle_timeout.as_secs(),
            created_at: space.created_at,
            updated_at: space.updated_at,
            position: space.position,
        })
    }

    /// The task of this id as it stands, if it is the active one or the one that ended last; older ones are in the log.
    #[must_use]
    pub fn task(&self, task: TaskId) -> Option<TaskSummary> {
        let space = self.space()?;
        let active = self.active_task().filter(|active| active.task().task == task);
        let ended = space.last_task.as_ref().filter(|ended| ended.task.task == task);
        active.map(|active| active.summary(space.id)).or_else(|| ended.map(|ended| ended.summary(space.id)))
    }

    fn status(&self) -> SpaceStatus {
        match self {
            Self::Absent(_) | Self::Closed(_) => SpaceStatus::Closed,
            Self::Open(open) => match open.phase {
                Phase::Idle => SpaceStatus::Idle,
                Phase::Queued(_) | Phase::Running(_) => SpaceStatus::Running,
                Phase::Faulted { .. } => SpaceStatus::Error,
            },
        }
    }
}

impl OpenSpace {
    /// The task that is queued or running.
    #[must_use]
    pub fn active_task(&self) -> Option<ActiveTask<'_>> {
        match &self.phase {
            Phase::Idle | Phase::Faulted { queued: None, .. } => None,
            Phase::Queued(task) | Phase::Faulted { queued: Some(task), .. } => Some(ActiveTask::Queued(task)),
            Phase::Running(running) => Some(ActiveTask::Running(running)),
        }
    }

    /// As [`SpaceState::idle_at`].
    #[must_use]
    pub fn idle_at(&self, last_use: Option<Timestamp>) -> Option<Timestamp> {
        if self.active_task().is_some() || self.closing.is_some() {
            return None;
        }
        let last_activity = self.space.last_activity;
        let last_use = last_use.map_or(last_activity, |at| at.max(last_activity));
        Some(last_use.plus(self.space.idle_timeout))
    }
}

impl<'a> ActiveTask<'a> {
    /// The task.
    #[must_use]
    pub const fn task(self) -> &'a Task {
        match self {
            Self::Queued(task) => task,
            Self::Running(running) => &running.task,
        }
    }

    /// The task as it stands.
    #[must_use]
    pub fn summary(self, space: SpaceId) -> TaskSummary {
        match self {
            Self::Queued(task) => task.summary(space, TaskStatus::Queued),
            Self::Running(running) => TaskSummary {
                started_at: Some(running.started_at),
                ..running.task.summary(space, TaskStatus::Running)
            },
        }
    }
}

impl Task {
    pub(super) fn summary(&self, space: SpaceId, status: TaskStatus) -> TaskSummary {
        TaskSummary {
            space,
            task: self.task,
            operation: self.operation,
            request_id: self.request_id.clone(),
            capability: self.capability.clone(),
            arg_keys: self.arg_keys.clone(),
            status,
            cancel_requested: self.cancel.is_some(),
            result: None,
            error: None,
            created_at: self.queued_at,
            started_at: None,
            finished_at: None,
        }
    }
}

impl EndedTask {
    /// The task as it stands.
    #[must_use]
    pub fn summary(&self, space: SpaceId) -> TaskSummary {
        let (status, result, error) = match &self.end {
            TaskEnd::Completed { result, .. } => (TaskStatus::Completed, Some(result.clone()), None),
            TaskEnd::Failed(error) => (TaskStatus::Failed, None, Some(error.clone())),
            TaskEnd::Cancelled => (TaskStatus::Cancelled, None, None),
        };
        TaskSummary {
            result,
            error,
            started_at: self.started_at,
            finished_at: Some(self.finished_at),
            ..self.task.summary(space, status)
        }
    }
}
