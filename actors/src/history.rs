//! Old tasks: what the state of a Space has forgotten, read from its stream.

use eventlog::{
    Event, EventLog, Position, Sequence, StreamId,
    id::{SpaceId, TaskId},
};
use futures::StreamExt;

use crate::{
    rejection::Rejection,
    space::{SpaceState, evolve_recorded, summary::TaskSummary},
};

/// The task as it stands, and the position of its last event. Reads the Space's stream up to the task's end.
///
/// # Errors
/// [`Rejection::TaskNotFound`]: this Space has had no such task.
pub(crate) async fn task(
    log: &dyn EventLog,
    space: SpaceId,
    task: TaskId,
) -> Result<(TaskSummary, Position), Rejection> {
    let mut events = log.read_stream(&StreamId::Space(space), Sequence(1));
    let mut state = SpaceState::Absent(space);
    let mut found = None;
    while let Some(recorded) = events.next().await {
        let recorded = recorded.map_err(|_| Rejection::LogUnavailable)?;
        state = evolve_recorded(state, &recorded);
        if let (Event::Space(_), Some(summary)) = (&recorded.event, state.task(task)) {
            let ended = summary.status.is_terminal();
            found = Some((summary, recorded.position));
            if ended {
                break;
            }
        }
    }
    found.ok_or(Rejection::TaskNotFound)
}
