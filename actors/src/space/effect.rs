//! What the world still owes to a Space: derived from its state, never from the event just appended, so that a
//! restart finds the same work again. Carrying out an effect twice does no harm, with one exception: a step.
//! Its guard is [`InHand::started`], which only the process that appended `started` can fill.

use eventlog::{
    Fence, Generation, Timestamp,
    event::space::CancelReason,
    id::{CapabilityName, InstanceId, OperationId, TaskId},
    sealing::Sealed,
};

use super::{
    command::RuntimeStatus,
    start_fault::StartFault,
    state::{OpenSpace, Phase, RunningTask, SpaceState},
};

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the supervisor to keep a runtime for this Space.
    KeepRuntime {
        /// On which instance.
        instance: InstanceId,
        /// Under which reservation.
        fence: Fence,
    },
    /// Ask the supervisor to end the Space's runtime: the Space is closed.
    StopRuntime {
        /// On which instance.
        instance: InstanceId,
        /// Under which reservation.
        fence: Fence,
    },
    /// Ask the supervisor to end this start and to begin the next: it is wedged, or its browser is gone.
    ReplaceRuntime {
        /// On which instance.
        instance: InstanceId,
        /// Which start.
        generation: Generation,
    },
    /// Hand the step to the runtime. At most once per dispatch (S7).
    Execute(Box<Execute>),
    /// Fire the cancel token of the step, and say [`Overdue`](super::Command::Overdue) if no report follows in time.
    SignalCancel {
        /// Of which dispatch.
        operation: OperationId,
        /// Why.
        reason: CancelReason,
        /// Since when somebody waits.
        requested_at: Timestamp,
    },
    /// Say [`RuntimeReady`](super::Command::RuntimeReady) to this Space: it has missed it.
    NoteReady {
        /// Which start.
        generation: Generation,
    },
    /// Say [`RuntimeUnavailable`](super::Command::RuntimeUnavailable) to this Space: its queued task waits for nothing.
    NoteUnavailable(StartFault),
    /// Say [`Recover`](super::Command::Recover) to this Space: its running task is not executed by anybody, or its close
    /// was not finished.
    Recover,
}

/// One step for the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// Of which task.
    pub task: TaskId,
    /// Its one dispatch.
    pub operation: OperationId,
    /// On which start of the runtime; no other may take it.
    pub generation: Generation,
    /// On which instance.
    pub instance: InstanceId,
    /// Under which reservation.
    pub fence: Fence,
    /// What to do.
    pub capability: CapabilityName,
    /// With what.
    pub sealed_args: Sealed,
    /// The runtime has stopped by then.
    pub deadline: Timestamp,
}

/// What this process has already done for the Space. A new incarnation of its actor begins with an empty one, but for
/// what is still executing outside the actor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct InHand {
    /// The dispatch whose `started` this incarnation has appended, and knows to be durable.
    pub started: Option<OperationId>,
    /// The dispatch that was handed to the runtime and has not reported.
    pub executing: Option<OperationId>,
    /// The dispatch whose cancel token was fired.
    pub cancel_signalled: Option<OperationId>,
}

/// The effects that `state` is owed, given how its runtime stands and what is in hand.
#[must_use]
pub fn due(state: &SpaceState, runtime: RuntimeStatus, in_hand: &InHand) -> Vec<Effect> {
    match state {
        SpaceState::Absent(_) => Vec::new(),
        SpaceState::Open(open) => due_open(open, runtime, in_hand),
        SpaceState::Closed(closed) => match runtime {
            RuntimeStatus::Stopped => Vec::new(),
            RuntimeStatus::Starting | RuntimeStatus::Ready(_) | RuntimeStatus::Unavailable { .. } => {
                vec![Effect::StopRuntime { instance: closed.space.instance, fence: closed.space.fence }]
            }
        },
    }
}

fn due_open(open: &OpenSpace, runtime: RuntimeStatus, in_hand: &InHand) -> Vec<Effect> {
    let mut effects = Vec::new();
    if runtime == RuntimeStatus::Stopped {
        effects.push(Effect::KeepRuntime { instance: open.space.instance, fence: open.space.fence });
    }
    match &open.phase {
        Phase::Idle => {}
        Phase::Queued(_) => effects.extend(wake(open, None, true, runtime)),
        Phase::Faulted { fault, queued } => {
            effects.extend(wake(open, fault.generation, queued.is_some(), runtime));
        }
        Phase::Running(running) => due_running(open, running, in_hand, &mut effects),
    }
    if open.closing.is_some() && open.active_task().is_none() {
        effects.push(Effect::Recover);
    }
    effects
}

/// What a Space that waits for its runtime has missed.
fn wake(
    open: &OpenSpace,
    faulted: Option<Generation>,
    has_task: bool,
    runtime: RuntimeStatus,
) -> Option<Effect> {
    match runtime {
        RuntimeStatus::Ready(generation) if faulted.is_some_and(|fault| generation <= fault) => {
            Some(Effect::ReplaceRuntime { instance: open.space.instance, generation })
        }
        RuntimeStatus::Ready(generation) => Some(Effect::NoteReady { generation }),
        RuntimeStatus::Unavailable { fault, .. } if has_task => Some(Effect::NoteUnavailable(fault)),
        RuntimeStatus::Unavailable { .. } | RuntimeStatus::Starting | RuntimeStatus::Stopped => None,
    }
}

fn due_running(open: &OpenSpace, running: &RunningTask, in_hand: &InHand, effects: &mut Vec<Effect>) {
    let operation = Some(running.task.operation);
    if in_hand.executing != operation {
        match (&running.task.sealed_args, in_hand.started == operation) {
            (Some(sealed_args), true) => effects.push(Effect::Execute(Box::new(Execute {
                task: running.task.task,
                operation: running.task.operation,
                generation: running.generation,
                instance: open.space.instance,
                fence: open.space.fence,
                capability: running.task.capability.clone(),
                sealed_args: sealed_args.clone(),
                deadline: running.deadline,
            }))),
            (Some(_) | None, _) => {
                effects.push(Effect::Recover);
                return;
            }
        }
    }
    if let Some(cancel) = running.task.cancel
        && in_hand.cancel_signalled != operation
    {
        effects.push(Effect::SignalCancel {
            operation: running.task.operation,
            reason: cancel.reason,
            requested_at: cancel.requested_at,
        });
    }
}
