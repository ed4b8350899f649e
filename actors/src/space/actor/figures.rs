//! What the metrics hear of a Space's tasks.

use eventlog::SpaceEvent;

use super::SpaceActor;
use crate::space::state::TaskEnd;

/// One actor's part in `browserspace_task_active`: 1 while its Space has a task that has not ended.
#[derive(Default)]
pub(super) struct ActiveTasks(bool);

impl ActiveTasks {
    pub(super) fn is(&mut self, active: bool) {
        if std::mem::replace(&mut self.0, active) != active {
            metrics::gauge!("browserspace_task_active").increment(if active { 1.0 } else { -1.0 });
        }
    }
}

impl Drop for ActiveTasks {
    fn drop(&mut self) {
        self.is(false);
    }
}

impl SpaceActor {
    /// Counts a task that these events have ended.
    pub(super) fn count(&self, events: &[SpaceEvent]) {
        let ended = |event: &SpaceEvent| {
            matches!(
                event,
                SpaceEvent::TaskCompleted { .. }
                    | SpaceEvent::TaskFailed { .. }
                    | SpaceEvent::TaskCancelled { .. }
            )
        };
        let Some(last) = self.state.space().and_then(|space| space.last_task.as_ref()) else { return };
        if !events.iter().any(ended) {
            return;
        }
        let outcome = match &last.end {
            TaskEnd::Completed { .. } => "completed",
            TaskEnd::Failed(_) => "failed",
            TaskEnd::Cancelled => "cancelled",
        };
        metrics::counter!("browserspace_task_outcomes_total", "outcome" => outcome).increment(1);
        let duration = last.finished_at.since(last.task.queued_at);
        metrics::histogram!("browserspace_task_duration_seconds", "outcome" => outcome)
            .record(duration.as_secs_f64());
        if let Some(cancel) = last.task.cancel {
            let waited = last.finished_at.since(cancel.requested_at);
            metrics::histogram!("browserspace_task_cancel_duration_seconds").record(waited.as_secs_f64());
        }
    }
}
