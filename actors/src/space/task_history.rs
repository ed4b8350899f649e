//! One task as its Space's events tell it: for a task that the Space's state has let go of.

use std::time::Duration;

use eventlog::{
    Event, RecordedEvent, SpaceEvent, Timestamp,
    id::{SpaceId, TaskId},
};

use super::{
    state::{Cancel, EndedTask, Task, TaskEnd},
    summary::{TaskStatus, TaskSummary},
};

/// A task in the making: apply the events of its Space's stream from its `queued` on, in order.
#[derive(Debug, Clone)]
pub struct TaskHistory {
    space: SpaceId,
    id: TaskId,
    task: Option<Task>,
    started_at: Option<Timestamp>,
    end: Option<(TaskEnd, Timestamp)>,
}

impl TaskHistory {
    /// Nothing known yet.
    #[must_use]
    pub const fn new(space: SpaceId, id: TaskId) -> Self {
        Self { space, id, task: None, started_at: None, end: None }
    }

    /// Whether nothing more can come.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// One more event; what is not of this task changes nothing.
    pub fn apply(&mut self, recorded: &RecordedEvent) {
        let Event::Space(event) = &recorded.event else { return };
        let at = recorded.metadata.recorded_at;
        match event {
            SpaceEvent::TaskQueued { task, .. } if *task == self.id => self.task = queued(event, at),
            SpaceEvent::TaskStarted { task, .. } if *task == self.id => self.started_at = Some(at),
            SpaceEvent::CancelRequested { task, reason } if *task == self.id => {
                if let Some(task) = &mut self.task {
                    task.cancel.get_or_insert(Cancel { reason: *reason, requested_at: at });
                }
            }
            SpaceEvent::TaskCompleted { task, result, artifacts } if *task == self.id => {
                self.end(TaskEnd::Completed { result: result.clone(), artifacts: artifacts.clone() }, at);
            }
            SpaceEvent::TaskFailed { task, error } if *task == self.id => {
                self.end(TaskEnd::Failed(error.clone()), at);
            }
            SpaceEvent::TaskCancelled { task } if *task == self.id => self.end(TaskEnd::Cancelled, at),
            _ => {}
        }
    }

    /// The task as it stands; `None` if its `queued` was not among the events.
    #[must_use]
    pub fn summary(&self) -> Option<TaskSummary> {
        let task = self.task.clone()?;
        Some(match (&self.end, self.started_at) {
            (Some((end, finished_at)), started_at) => {
                let ended = EndedTask { task, started_at, finished_at: *finished_at, end: end.clone() };
                ended.summary(self.space)
            }
            (None, None) => task.summary(self.space, TaskStatus::Queued),
            (None, Some(_)) => {
                TaskSummary { started_at: self.started_at, ..task.summary(self.space, TaskStatus::Running) }
            }
        })
    }

    fn end(&mut self, end: TaskEnd, at: Timestamp) {
        self.end.get_or_insert((end, at));
    }
}

/// The task that a `queued` event made; `None` for any other event.
pub(super) fn queued(event: &SpaceEvent, at: Timestamp) -> Option<Task> {
    let SpaceEvent::TaskQueued {
        task,
        operation,
        request_id,
        capability,
        arg_keys,
        timeout_seconds,
        sealed_args,
        fingerprint: _,
    } = event
    else {
        return None;
    };
    Some(Task {
        task: *task,
        operation: *operation,
        request_id: request_id.clone(),
        capability: capability.clone(),
        arg_keys: arg_keys.clone(),
        timeout: Duration::from_secs(*timeout_seconds),
        sealed_args: sealed_args.clone(),
        cancel: None,
        queued_at: at,
    })
}
