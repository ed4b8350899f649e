//! The promises of `docs/architecture.md`, as somebody checks them who sees events, calls and answers only.

use std::sync::LazyLock;

use eventlog::{SpaceEvent, id::TaskId};

use crate::{
    rejection::Rejection,
    space::{Decision, Reply, scenario::task},
};

/// How many tasks there can be: two that are followed, and one id that is never accepted by right rules.
pub(super) const TASKS: usize = 3;

/// A promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Broken {
    /// I1: a Space has at most one active task.
    TwoActive,
    /// I1 as the runtime sees it: two calls at once on one start.
    Overlap,
    /// I2: a task is handed to a runtime at most once.
    CalledTwice,
    /// I3: a queued task ends exactly once.
    EndedTwice,
    /// I3: and it does end.
    NeverEnds,
    /// I4: `queued` before `started` before the call.
    OutOfOrder,
    /// I5: `cancelled` only on request, and after the runtime has acknowledged if it had started.
    CancelledTooSoon,
    /// I6: the instance is released with `closed`, and only then.
    NotReleased,
    /// I7: one request id, one meaning, one task.
    RequestId,
    /// I8: `close_requested`, cancel, end, `closed`, and nothing after.
    CloseOrder,
    /// I9: the state is what the events say.
    StateDiffers,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Stage {
    #[default]
    Unknown,
    Queued,
    Started,
    Ended,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Seen {
    stage: Stage,
    cancel_requested: bool,
    acknowledged: bool,
    calls: u8,
}

/// What was seen so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Monitor {
    tasks: [Seen; TASKS],
    /// The first meaning and task under each request id.
    requests: [Option<(u8, u8)>; 2],
    close_requested: bool,
    closed: bool,
}

/// Ids are made once: a walk asks for them millions of times.
static TASK_IDS: LazyLock<[TaskId; TASKS]> = LazyLock::new(|| [1, 2, 3].map(task));

/// The number of a task, from 0.
pub(super) fn number(id: TaskId) -> usize {
    TASK_IDS.iter().position(|known| *known == id).expect("a walk names tasks 1 to 3")
}

impl Monitor {
    /// The tasks that were never seen.
    pub(super) fn unused(&self) -> Option<usize> {
        (0..TASKS - 1).find(|n| self.tasks[*n].stage == Stage::Unknown)
    }

    pub(super) fn active(&self) -> Option<usize> {
        (0..TASKS).find(|n| self.is_active(*n))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn is_closing(&self) -> bool {
        self.close_requested
    }

    fn is_active(&self, n: usize) -> bool {
        matches!(self.tasks[n].stage, Stage::Queued | Stage::Started)
    }

    /// An append.
    pub(super) fn see(&mut self, decision: &Decision) -> Result<(), Broken> {
        decision.events.iter().try_for_each(|event| self.event(event))?;
        let closes = decision.events.iter().any(|event| matches!(event, SpaceEvent::Closed { .. }));
        if closes == decision.release.is_some() { Ok(()) } else { Err(Broken::NotReleased) }
    }

    fn event(&mut self, event: &SpaceEvent) -> Result<(), Broken> {
        if self.closed {
            return Err(Broken::CloseOrder);
        }
        match event {
            SpaceEvent::TaskQueued { task, .. } => {
                if (0..TASKS).any(|n| self.is_active(n)) {
                    return Err(Broken::TwoActive);
                }
                let seen = &mut self.tasks[number(*task)];
                if seen.stage != Stage::Unknown {
                    return Err(Broken::EndedTwice);
                }
                seen.stage = Stage::Queued;
            }
            SpaceEvent::TaskStarted { task, .. } => {
                let seen = &mut self.tasks[number(*task)];
                if seen.stage != Stage::Queued {
                    return Err(Broken::OutOfOrder);
                }
                seen.stage = Stage::Started;
            }
            SpaceEvent::TaskCompleted { task, .. } | SpaceEvent::TaskFailed { task, .. } => {
                self.end(number(*task))?;
            }
            SpaceEvent::TaskCancelled { task } => {
                let seen = self.tasks[number(*task)];
                let started = seen.stage == Stage::Started;
                if !seen.cancel_requested || (started && !seen.acknowledged) {
                    return Err(Broken::CancelledTooSoon);
                }
                self.end(number(*task))?;
            }
            SpaceEvent::CancelRequested { task, .. } => {
                let n = number(*task);
                if !self.is_active(n) || self.tasks[n].cancel_requested {
                    return Err(Broken::CancelledTooSoon);
                }
                self.tasks[n].cancel_requested = true;
            }
            SpaceEvent::CloseRequested { .. } if self.close_requested => return Err(Broken::CloseOrder),
            SpaceEvent::CloseRequested { .. } => self.close_requested = true,
            SpaceEvent::Closed { .. } => {
                if !self.close_requested || self.active().is_some() {
                    return Err(Broken::CloseOrder);
                }
                self.closed = true;
            }
            SpaceEvent::Opened { .. }
            | SpaceEvent::Faulted { .. }
            | SpaceEvent::Recovered { .. }
            | SpaceEvent::DialogOpened { .. }
            | SpaceEvent::Blocked { .. } => {}
        }
        Ok(())
    }

    fn end(&mut self, n: usize) -> Result<(), Broken> {
        if !self.is_active(n) {
            return Err(Broken::EndedTwice);
        }
        // A Space that closes over a running task has asked it to stop first.
        if self.close_requested && self.tasks[n].stage == Stage::Started && !self.tasks[n].cancel_requested {
            return Err(Broken::CloseOrder);
        }
        self.tasks[n].stage = Stage::Ended;
        Ok(())
    }

    /// A call on a runtime.
    pub(super) fn call(&mut self, n: usize) -> Result<(), Broken> {
        let seen = &mut self.tasks[n];
        seen.calls += 1;
        if seen.calls > 1 {
            return Err(Broken::CalledTwice);
        }
        if seen.stage == Stage::Started { Ok(()) } else { Err(Broken::OutOfOrder) }
    }

    /// A runtime says that it has stopped and cleaned up.
    pub(super) fn acknowledge(&mut self, n: usize) {
        self.tasks[n].acknowledged = true;
    }

    /// The answer to a submit with this request id and meaning, before its events are seen.
    pub(super) fn answer(
        &mut self,
        request: usize,
        meaning: u8,
        decided: &Result<Decision, Rejection>,
    ) -> Result<(), Broken> {
        let right = match (self.requests[request], decided) {
            (Some((first, n)), Ok(Decision { reply: Reply::Repeated(task), .. })) => {
                first == meaning && number(*task) == usize::from(n)
            }
            (Some((first, _)), Err(Rejection::RequestIdConflict)) => first != meaning,
            (Some(_), _) | (None, Err(Rejection::RequestIdConflict)) => false,
            (None, Ok(Decision { reply: Reply::Repeated(_), .. })) => false,
            (None, Ok(decision)) => {
                let made = decision.events.iter().find_map(|event| match event {
                    SpaceEvent::TaskQueued { task, .. } => Some(number(*task)),
                    _ => None,
                });
                self.requests[request] = made.and_then(|n| Some((meaning, u8::try_from(n).ok()?)));
                made.is_some()
            }
            (None, Err(_)) => true,
        };
        if right { Ok(()) } else { Err(Broken::RequestId) }
    }
}
