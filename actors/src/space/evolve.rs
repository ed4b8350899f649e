//! How a Space's events make its state: `(state, event) -> state`. Pure and total: what does not fit changes nothing
//! but the Space's place, because a log that was once written must always be readable.

use std::time::Duration;

use eventlog::{
    Event, Fence, Generation, RecordedEvent, SpaceEvent,
    event::space::CloseReason,
    id::{SpaceId, TaskId},
};

use super::{
    state::{
        Cancel, ClosedSpace, EndedTask, Fault, OpenSpace, Phase, Remembered, RequestWindow, RunningTask,
        Space, SpaceState, TaskEnd,
    },
    task_history,
};
use crate::place::Place;

/// The state after one more event.
#[must_use]
pub fn evolve(state: SpaceState, event: &SpaceEvent, at: Place) -> SpaceState {
    match state {
        SpaceState::Absent(id) => opened(id, event, at),
        SpaceState::Open(mut open) => {
            open.space.note(at);
            if let SpaceEvent::Closed { reason } = event {
                return SpaceState::Closed(Box::new(ClosedSpace { space: open.space, reason: *reason }));
            }
            let OpenSpace { space, phase, closing } = *open;
            SpaceState::Open(Box::new(step(space, phase, closing, event, at)))
        }
        SpaceState::Closed(mut closed) => {
            closed.space.note(at);
            SpaceState::Closed(closed)
        }
    }
}

/// The state after the events of one append to its stream, the first of which lies at `first`.
#[must_use]
pub fn evolve_all(state: SpaceState, events: &[SpaceEvent], first: Place) -> SpaceState {
    let places = std::iter::successors(Some(first), |place| Some(place.next()));
    events.iter().zip(places).fold(state, |state, (event, at)| evolve(state, event, at))
}

/// The state after an event as read back. One of a kind that this program does not know only moves its place.
#[must_use]
pub fn evolve_recorded(state: SpaceState, recorded: &RecordedEvent) -> SpaceState {
    let at = Place::from(recorded);
    match &recorded.event {
        Event::Space(event) => evolve(state, event, at),
        Event::Instance(_)
        | Event::Workspace(_)
        | Event::Server(_)
        | Event::Download(_)
        | Event::Unknown(_) => noted(state, at),
    }
}

fn noted(mut state: SpaceState, at: Place) -> SpaceState {
    match &mut state {
        SpaceState::Absent(_) => {}
        SpaceState::Open(open) => open.space.note(at),
        SpaceState::Closed(closed) => closed.space.note(at),
    }
    state
}

fn opened(id: SpaceId, event: &SpaceEvent, at: Place) -> SpaceState {
    let SpaceEvent::Opened {
        workspace,
        instance,
        binding,
        owner,
        granted_capabilities,
        idle_timeout_seconds,
        fingerprint_key,
        idempotency,
        // Read where a browser is started.
        environment: _,
    } = event
    else {
        return SpaceState::Absent(id);
    };
    let space = Space {
        id,
        workspace: workspace.clone(),
        instance: *instance,
        binding: *binding,
        owner: owner.clone(),
        granted_capabilities: granted_capabilities.clone(),
        idle_timeout: Duration::from_secs(*idle_timeout_seconds),
        fingerprint_key: *fingerprint_key,
        idempotency: *idempotency,
        fence: Fence(at.position),
        generation: Generation::ZERO,
        requests: RequestWindow::default(),
        last_task: None,
        notices: 0,
        last_error_code: None,
        created_at: at.recorded_at,
        updated_at: at.recorded_at,
        last_activity: at.recorded_at,
        revision: at.sequence,
        position: at.position,
    };
    SpaceState::Open(Box::new(OpenSpace { space, phase: Phase::Idle, closing: None }))
}

impl Space {
    fn note(&mut self, at: Place) {
        self.revision = at.sequence;
        self.position = at.position;
        self.updated_at = at.recorded_at;
    }

    fn saw(&mut self, generation: Generation) {
        self.generation = self.generation.max(generation);
    }
}

fn step(
    mut space: Space,
    phase: Phase,
    closing: Option<CloseReason>,
    event: &SpaceEvent,
    at: Place,
) -> OpenSpace {
    let mut closing = closing;
    let phase = match event {
        SpaceEvent::Opened { .. } | SpaceEvent::Closed { .. } => phase,
        SpaceEvent::TaskQueued { .. } => queued(&mut space, phase, event, at),
        SpaceEvent::TaskStarted { task, generation, deadline } => {
            space.saw(*generation);
            match phase {
                Phase::Queued(queued) if queued.task == *task => Phase::Running(RunningTask {
                    task: queued,
                    generation: *generation,
                    deadline: *deadline,
                    started_at: at.recorded_at,
                }),
                other => other,
            }
        }
        SpaceEvent::TaskCompleted { task, result, artifacts } => {
            let end = TaskEnd::Completed { result: result.clone(), artifacts: artifacts.clone() };
            ended(&mut space, phase, *task, end, at)
        }
        SpaceEvent::TaskFailed { task, error } => {
            space.last_error_code = Some(error.code.clone());
            ended(&mut space, phase, *task, TaskEnd::Failed(error.clone()), at)
        }
        SpaceEvent::TaskCancelled { task } => ended(&mut space, phase, *task, TaskEnd::Cancelled, at),
        SpaceEvent::CancelRequested { task, reason } => {
            let cancel = Cancel { reason: *reason, requested_at: at.recorded_at };
            cancelling(&mut space, phase, *task, cancel)
        }
        SpaceEvent::CloseRequested { reason } => {
            closing = Some(*reason);
            phase
        }
        SpaceEvent::Faulted { code, generation } => {
            space.saw(generation.unwrap_or_default());
            space.last_error_code = Some(code.clone());
            faulted(phase, Fault { code: code.clone(), generation: *generation })
        }
        SpaceEvent::Recovered { generation } => {
            space.saw(*generation);
            recovered(phase)
        }
        SpaceEvent::DialogOpened { .. } | SpaceEvent::Blocked { .. } => {
            space.notices = space.notices.saturating_add(1);
            phase
        }
    };
    OpenSpace { space, phase, closing }
}

fn queued(space: &mut Space, phase: Phase, event: &SpaceEvent, at: Place) -> Phase {
    let (SpaceEvent::TaskQueued { fingerprint, .. }, Some(task)) =
        (event, task_history::queued(event, at.recorded_at))
    else {
        return phase;
    };
    let submit = Remembered { fingerprint: *fingerprint, task: task.task };
    space.requests.remember(task.request_id.clone(), submit);
    space.last_activity = at.recorded_at;
    space.notices = 0;
    match phase {
        Phase::Idle => Phase::Queued(task),
        Phase::Faulted { fault, queued: None } => Phase::Faulted { fault, queued: Some(task) },
        busy @ (Phase::Queued(_) | Phase::Running(_) | Phase::Faulted { queued: Some(_), .. }) => busy,
    }
}

fn ended(space: &mut Space, phase: Phase, id: TaskId, end: TaskEnd, at: Place) -> Phase {
    let (mut task, started_at, phase) = match phase {
        Phase::Queued(task) if task.task == id => (task, None, Phase::Idle),
        Phase::Running(running) if running.task.task == id => {
            (running.task, Some(running.started_at), Phase::Idle)
        }
        Phase::Faulted { fault, queued: Some(task) } if task.task == id => {
            (task, None, Phase::Faulted { fault, queued: None })
        }
        other => return other,
    };
    task.sealed_args = None;
    space.last_activity = at.recorded_at;
    space.last_task = Some(EndedTask { task, started_at, finished_at: at.recorded_at, end });
    phase
}

fn cancelling(space: &mut Space, mut phase: Phase, id: TaskId, cancel: Cancel) -> Phase {
    let active = match &mut phase {
        Phase::Queued(task) | Phase::Faulted { queued: Some(task), .. } => Some(task),
        Phase::Running(running) => Some(&mut running.task),
        Phase::Idle | Phase::Faulted { queued: None, .. } => None,
    };
    if let Some(task) = active.filter(|task| task.task == id) {
        space.last_activity = cancel.requested_at;
        // The first request stands: whoever waits for the acknowledgement waits since then.
        task.cancel.get_or_insert(cancel);
    }
    phase
}

fn faulted(phase: Phase, fault: Fault) -> Phase {
    match phase {
        Phase::Idle => Phase::Faulted { fault, queued: None },
        Phase::Queued(task) => Phase::Faulted { fault, queued: Some(task) },
        Phase::Faulted { queued, .. } => Phase::Faulted { fault, queued },
        Phase::Running(running) => Phase::Running(running),
    }
}

fn recovered(phase: Phase) -> Phase {
    match phase {
        Phase::Faulted { queued: None, .. } => Phase::Idle,
        Phase::Faulted { queued: Some(task), .. } => Phase::Queued(task),
        other @ (Phase::Idle | Phase::Queued(_) | Phase::Running(_)) => other,
    }
}
