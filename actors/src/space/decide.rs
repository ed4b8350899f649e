//! The rules of a Space: `(state, command) -> events or rejection`. Pure.
//!
//! What ends a task of a closing Space also ends the Space, in the same append: a Space that is closing and has no
//! task is never durable. What makes a runtime unusable ends the running task in the same append.

use eventlog::{
    Event, ExpectedSequence, Generation, InstanceEvent, Part, Redactor, SpaceEvent, StreamId,
    event::{
        instance::LossReason,
        space::{CancelReason, CloseReason, TaskError},
    },
    id::{InstanceId, OperationId, TaskId},
};
use serde_json::json;

use super::{
    NOTICES_PER_TASK_MAX, RESULT_BYTES_MAX,
    command::{Asker, Command, Facts, Notice, Report, RuntimeStatus},
    failure::{Failure, fault_code, means_runtime_is_gone},
    start_fault::StartFault,
    state::{ActiveTask, OpenSpace, Phase, RunningTask, Space, SpaceState},
    submit::submit,
};
use crate::{
    rejection::{Denial, Rejection},
    runtime::Outcome,
};

/// What a command comes to: what to append, and what to answer once that is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// For the Space's stream. None means that there is nothing to append.
    pub events: Vec<SpaceEvent>,
    /// In the same append, for the stream of its instance.
    pub release: Option<(InstanceId, InstanceEvent)>,
    /// The answer.
    pub reply: Reply,
}

/// What the asker hears once the events are durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// It is so now: the state says how.
    Done,
    /// The task was accepted.
    Queued(TaskId),
    /// An earlier submit had made this task.
    Repeated(TaskId),
    /// Refused, and the refusal is recorded as the task that it names.
    Refused(Rejection),
}

impl Decision {
    /// Nothing to record.
    #[must_use]
    pub const fn nothing() -> Self {
        Self::record(Vec::new())
    }

    pub(super) const fn record(events: Vec<SpaceEvent>) -> Self {
        Self { events, release: None, reply: Reply::Done }
    }

    pub(super) fn reply(self, reply: Reply) -> Self {
        Self { reply, ..self }
    }

    /// The parts of the append, the Space's first; none if there is nothing to append.
    #[must_use]
    pub fn parts(&self, state: &SpaceState) -> Vec<Part> {
        if self.events.is_empty() {
            return Vec::new();
        }
        let space = Part {
            stream: StreamId::Space(state.id()),
            expected: ExpectedSequence::Exact(state.revision()),
            events: self.events.iter().cloned().map(Event::from).collect(),
        };
        // Any: the instance's fold knows by the fence whether it is this Space that lets go.
        let instance = self.release.as_ref().map(|(instance, event)| Part {
            stream: StreamId::Instance(*instance),
            expected: ExpectedSequence::Any,
            events: vec![event.clone().into()],
        });
        std::iter::once(space).chain(instance).collect()
    }
}

/// Decides `command` on `state`.
///
/// # Errors
/// [`Rejection`]: nothing is to be appended. A refusal that is recorded comes as [`Reply::Refused`].
pub fn decide(state: &SpaceState, command: &Command, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let space = access(state, facts.asker)?;
    match (command, state) {
        (Command::Submit(asked), _) => submit(state, space, asked, facts),
        (_, SpaceState::Absent(_) | SpaceState::Closed(_)) => {
            may_ask(command, facts.asker).map(|()| Decision::nothing())
        }
        (_, SpaceState::Open(open)) => {
            may_ask(command, facts.asker)?;
            Ok(decide_open(open, command, facts))
        }
    }
}

fn decide_open(open: &OpenSpace, command: &Command, facts: &Facts<'_>) -> Decision {
    match command {
        // Decided by `decide`: it is also answered on a closed Space.
        Command::Submit(_) => Decision::nothing(),
        Command::Cancel { reason } => cancel(open, *reason),
        Command::Close { reason } => close(open, *reason),
        Command::Report(report) => report_of(open, report),
        Command::Overdue { operation } => overdue(open, *operation),
        Command::RuntimeReady { generation } => runtime_ready(open, *generation, facts),
        Command::RuntimeLost { generation, reason } => runtime_lost(open, *generation, *reason),
        Command::RuntimeUnavailable(fault) => runtime_unavailable(open, *fault),
        Command::Recover { executing } => recover(open, *executing),
        Command::IdleTick { last_use } => idle_tick(open, *last_use, facts),
        Command::Notice(notice) => record_notice(open, notice),
    }
}

/// Workspace entry, then whether the Space is there, then whether the asker may change it (S5).
fn access<'a>(state: &'a SpaceState, asker: Asker<'_>) -> Result<&'a Space, Rejection> {
    match asker {
        Asker::Server => state.space().ok_or(Rejection::SpaceNotFound),
        Asker::Caller { caller, workspace } => {
            caller.must_enter(workspace)?;
            let here = state.space().filter(|space| space.workspace == *workspace);
            let space = here.ok_or(Rejection::SpaceNotFound)?;
            caller.may_act(workspace, &space.owner)?;
            Ok(space)
        }
    }
}

/// What the server tells a Space, no caller can.
fn may_ask(command: &Command, asker: Asker<'_>) -> Result<(), Rejection> {
    match (command, asker) {
        (_, Asker::Server)
        | (Command::Submit(_) | Command::Cancel { .. } | Command::Close { .. }, Asker::Caller { .. }) => {
            Ok(())
        }
        (
            Command::Report(_)
            | Command::Overdue { .. }
            | Command::RuntimeReady { .. }
            | Command::RuntimeLost { .. }
            | Command::RuntimeUnavailable(_)
            | Command::Recover { .. }
            | Command::IdleTick { .. }
            | Command::Notice(_),
            Asker::Caller { .. },
        ) => Err(Denial::ServerOnly.into()),
    }
}

/// S8: what runs keeps its status until the runtime has acknowledged; what does not run is cancelled at once.
fn cancel(open: &OpenSpace, reason: CancelReason) -> Decision {
    match open.active_task() {
        None => Decision::nothing(),
        Some(ActiveTask::Queued(task)) => {
            let task = task.task;
            let events =
                vec![SpaceEvent::CancelRequested { task, reason }, SpaceEvent::TaskCancelled { task }];
            ended(open, events)
        }
        Some(ActiveTask::Running(running)) if running.task.cancel.is_some() => Decision::nothing(),
        Some(ActiveTask::Running(running)) => {
            let task = running.task.task;
            let requested = SpaceEvent::CancelRequested { task, reason };
            if eventlog::mutant::is("cancelled_before_it_stopped") {
                return ended(open, vec![requested, SpaceEvent::TaskCancelled { task }]);
            }
            Decision::record(vec![requested])
        }
    }
}

/// S10: cancels first what runs; closes at once what does not.
fn close(open: &OpenSpace, reason: CloseReason) -> Decision {
    if open.closing.is_some() {
        return Decision::nothing();
    }
    let mut events = vec![SpaceEvent::CloseRequested { reason }];
    events.extend(cancel(open, CancelReason::Closing).events);
    match open.phase {
        Phase::Running(_) if eventlog::mutant::is("closes_over_a_task") => closed(open, events, reason),
        Phase::Running(_) => Decision::record(events),
        Phase::Idle | Phase::Queued(_) | Phase::Faulted { .. } => closed(open, events, reason),
    }
}

/// `events` have ended the active task; a closing Space ends with it.
fn ended(open: &OpenSpace, events: Vec<SpaceEvent>) -> Decision {
    match open.closing {
        None => Decision::record(events),
        Some(_) if eventlog::mutant::is("closing_for_ever") => Decision::record(events),
        Some(reason) => closed(open, events, reason),
    }
}

fn closed(open: &OpenSpace, mut events: Vec<SpaceEvent>, reason: CloseReason) -> Decision {
    let Space { id, instance, fence, .. } = open.space;
    events.push(SpaceEvent::Closed { reason });
    let released = InstanceEvent::Released { space: id, fence, reason };
    if eventlog::mutant::is("keeps_the_instance") {
        return Decision::record(events);
    }
    Decision { release: Some((instance, released)), ..Decision::record(events) }
}

fn running(open: &OpenSpace) -> Option<&RunningTask> {
    match &open.phase {
        Phase::Running(running) => Some(running),
        Phase::Idle | Phase::Queued(_) | Phase::Faulted { .. } => None,
    }
}

/// The report of another start, of another dispatch or of an ended task changes nothing.
fn report_of(open: &OpenSpace, report: &Report) -> Decision {
    let asked = running(open).filter(|running| {
        running.task.task == report.task
            && running.task.operation == report.operation
            && running.generation == report.generation
    });
    let Some(running) = asked else { return Decision::nothing() };
    let task = report.task;
    match &report.outcome {
        Outcome::Completed { result, artifacts } => {
            let (result, artifacts) = (bounded(result), artifacts.clone());
            ended(open, vec![SpaceEvent::TaskCompleted { task, result, artifacts }])
        }
        Outcome::Failed(error) if means_runtime_is_gone(error) => {
            faulted(open, running, error.clone(), running.generation)
        }
        Outcome::Failed(error) => ended(open, vec![SpaceEvent::TaskFailed { task, error: error.clone() }]),
        Outcome::Cancelled if running.task.cancel.is_some() || eventlog::mutant::is("cancelled_unasked") => {
            ended(open, vec![SpaceEvent::TaskCancelled { task }])
        }
        // The core names the outcome, not the executor: nobody had asked for a cancel.
        Outcome::Cancelled => failed(open, task, Failure::RuntimeStopped),
    }
}

fn failed(open: &OpenSpace, task: TaskId, failure: Failure) -> Decision {
    ended(open, vec![SpaceEvent::TaskFailed { task, error: failure.error() }])
}

/// The running task fails and the Space is in error, or over if it was closing.
fn faulted(open: &OpenSpace, running: &RunningTask, error: TaskError, generation: Generation) -> Decision {
    let code = error.code.clone();
    let mut events = vec![SpaceEvent::TaskFailed { task: running.task.task, error }];
    if open.closing.is_none() {
        events.push(SpaceEvent::Faulted { code, generation: Some(generation) });
    }
    ended(open, events)
}

/// S13: the last gate before the log. Runtimes bound their results themselves.
fn bounded(result: &eventlog::Redacted<eventlog::Json>) -> eventlog::Redacted<eventlog::Json> {
    let mut size = ByteCount(0);
    match serde_json::to_writer(&mut size, result.get()) {
        Ok(()) => result.clone(),
        Err(_too_large) => Redactor::new().json(json!({ "truncated": true, "reason": "result_too_large" })),
    }
}

/// Counts what is written to it, and refuses what is beyond [`RESULT_BYTES_MAX`].
struct ByteCount(usize);

impl std::io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        if self.0 > RESULT_BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The runtime did not stop when it should: its task fails, and it is replaced.
fn overdue(open: &OpenSpace, operation: OperationId) -> Decision {
    let Some(running) = running(open).filter(|running| running.task.operation == operation) else {
        return Decision::nothing();
    };
    let failure = if running.task.cancel.is_some() { Failure::CancelTimeout } else { Failure::TaskTimeout };
    faulted(open, running, failure.error(), running.generation)
}

/// Ends the error, and starts who waits, in one append: one sync before the call.
fn runtime_ready(open: &OpenSpace, generation: Generation, facts: &Facts<'_>) -> Decision {
    if generation < open.space.generation {
        return Decision::nothing();
    }
    let mut events = Vec::new();
    let queued = match &open.phase {
        Phase::Idle | Phase::Running(_) => None,
        Phase::Queued(task) => Some(task),
        Phase::Faulted { fault, .. } if fault.generation.is_some_and(|unusable| generation <= unusable) => {
            None
        }
        Phase::Faulted { queued, .. } => {
            events.push(SpaceEvent::Recovered { generation });
            queued.as_ref()
        }
    };
    let queued = queued.filter(|_| !eventlog::mutant::is("forgets_the_queue"));
    events.extend(queued.map(|task| SpaceEvent::TaskStarted {
        task: task.task,
        generation,
        deadline: facts.now.plus(task.timeout),
    }));
    Decision::record(events)
}

/// What runs fails, what waits goes on waiting (S7, S9).
fn runtime_lost(open: &OpenSpace, generation: Generation, reason: LossReason) -> Decision {
    if generation < open.space.generation {
        return Decision::nothing();
    }
    let code = fault_code(reason).to_owned();
    match &open.phase {
        Phase::Idle | Phase::Queued(_) => {
            Decision::record(vec![SpaceEvent::Faulted { code, generation: Some(generation) }])
        }
        Phase::Running(running) => faulted(open, running, Failure::RuntimeCrashed.error(), generation),
        // The instance's stream counts the losses; the Space is in error already.
        Phase::Faulted { .. } => Decision::nothing(),
    }
}

/// Nothing will be started for a while, so who waits hears it now. It certainly did not run.
fn runtime_unavailable(open: &OpenSpace, fault: StartFault) -> Decision {
    match open.active_task() {
        Some(ActiveTask::Queued(task)) => failed(open, task.task, Failure::RuntimeNotReady(fault)),
        Some(ActiveTask::Running(_)) | None => Decision::nothing(),
    }
}

/// S7: what ran when its executor was lost may have run to its end; nobody knows, so it is never dispatched again.
fn recover(open: &OpenSpace, executing: Option<OperationId>) -> Decision {
    match (running(open), open.closing) {
        (Some(running), _)
            if executing != Some(running.task.operation)
                && !eventlog::mutant::is("forgets_what_was_interrupted") =>
        {
            failed(open, running.task.task, Failure::Interrupted)
        }
        (None, Some(reason)) if !eventlog::mutant::is("closing_for_ever") => closed(open, Vec::new(), reason),
        (Some(_) | None, _) => Decision::nothing(),
    }
}

/// S14, by the same path as a close.
fn idle_tick(open: &OpenSpace, last_use: Option<eventlog::Timestamp>, facts: &Facts<'_>) -> Decision {
    if open.idle_at(last_use).is_some_and(|idle_at| facts.now >= idle_at) {
        close(open, CloseReason::IdleTimeout)
    } else {
        Decision::nothing()
    }
}

fn record_notice(open: &OpenSpace, notice: &Notice) -> Decision {
    if open.space.notices >= NOTICES_PER_TASK_MAX {
        return Decision::nothing();
    }
    Decision::record(vec![match notice {
        Notice::DialogOpened { dialog } => SpaceEvent::DialogOpened { dialog: dialog.clone() },
        Notice::Blocked { rule, target, count } => {
            SpaceEvent::Blocked { rule: rule.clone(), target: target.clone(), count: *count }
        }
    }])
}

/// The start of the runtime that takes a task right now, if it is not older than what the Space has seen.
pub(super) fn usable(space: &Space, runtime: RuntimeStatus) -> Option<Generation> {
    match runtime {
        RuntimeStatus::Ready(generation) if generation >= space.generation => Some(generation),
        RuntimeStatus::Ready(_)
        | RuntimeStatus::Stopped
        | RuntimeStatus::Starting
        | RuntimeStatus::Unavailable { .. } => None,
    }
}
