//! The promises, as somebody checks them who sees the events, the calls and the answers, and knows none of the rules.
//!
//! | promise | says |
//! |---|---|
//! | I1 | a Space has at most one active task, a browser at most one call |
//! | I2 | a task is told to a browser at most once, over all lives |
//! | I3 | a queued task ends exactly once |
//! | I4 | `queued` is durable before the answer, `started` before the call |
//! | I5 | `cancelled` only on request, and once the browser has stopped |
//! | I6 | an instance is held by one Space; whoever releases it had it |
//! | I7 | one request id, one meaning, one task |
//! | I8 | close, cancel, end, closed: in this order, and nothing after |
//! | I9 | no gaps; what was durable stays; the replay, the views and the answers say the same |

use std::collections::{BTreeMap, BTreeSet};

use actors::{audit::Replay, space::summary::TaskStatus};
use eventlog::{
    Event, Generation, Hash, InstanceEvent, Position, RecordedEvent, SpaceEvent, StreamId,
    id::{InstanceId, RequestId, SpaceId, TaskId},
};

use crate::{
    ledger::{Ack, Acknowledged},
    runtime::Seen,
};

/// What became of a task.
#[derive(Debug, Default)]
struct Task {
    space: Option<SpaceId>,
    queued: Position,
    started: Option<Position>,
    cancel_requested: bool,
    ended: Option<(TaskStatus, Position)>,
}

#[derive(Debug, Default)]
struct Space {
    opened: Position,
    active: Option<TaskId>,
    closing: bool,
    closed: bool,
    revision: u64,
}

#[derive(Debug, Default)]
struct Instance {
    holder: Option<SpaceId>,
    generation: Generation,
    alive: bool,
}

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Monitor {
    hashes: Vec<Hash>,
    sequences: BTreeMap<StreamId, u64>,
    tasks: BTreeMap<TaskId, Task>,
    spaces: BTreeMap<SpaceId, Space>,
    instances: BTreeMap<InstanceId, Instance>,
    requests: BTreeSet<(SpaceId, RequestId)>,
    replay: Replay,
    calls: BTreeMap<TaskId, u32>,
    looked_at: usize,
}

type Checked = Result<(), String>;

fn promise(kept: bool, broken: impl FnOnce() -> String) -> Checked {
    if kept { Ok(()) } else { Err(broken()) }
}

impl Monitor {
    /// The next position to be seen.
    pub(crate) fn next(&self) -> Position {
        Position(self.hashes.len() as u64 + 1)
    }

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// After a crash: what was durable is there, byte for byte.
    pub(crate) fn check_kept(&self, events: &[RecordedEvent]) -> Checked {
        for (index, hash) in self.hashes.iter().enumerate() {
            let kept = events.get(index).is_some_and(|event| event.hash == *hash);
            promise(kept, || format!("I9: the durable event {} was lost or changed", index + 1))?;
        }
        Ok(())
    }

    /// The next event.
    pub(crate) fn take(&mut self, recorded: &RecordedEvent) -> Checked {
        let at = recorded.position;
        promise(at == self.next(), || format!("I9: {at} came where {} was to come", self.next()))?;
        self.hashes.push(recorded.hash);
        let sequence = self.sequences.entry(recorded.stream.clone()).or_default();
        *sequence += 1;
        let gapless = recorded.sequence.0 == *sequence;
        promise(gapless, || format!("I9: {} has a gap at {at}", recorded.stream))?;
        self.replay.take(recorded).map_err(|misfit| format!("I9: at {at} the replay fails: {misfit}"))?;
        match (&recorded.stream, &recorded.event) {
            (StreamId::Space(id), Event::Space(event)) => {
                self.spaces.entry(*id).or_default().revision = recorded.sequence.0;
                self.space(*id, event, at).map_err(|what| format!("{what} (space {id}, position {at})"))
            }
            (StreamId::Instance(id), Event::Instance(event)) => {
                self.instance(*id, event).map_err(|what| format!("{what} (instance {id}, position {at})"))
            }
            _ => Ok(()),
        }
    }

    fn space(&mut self, id: SpaceId, event: &SpaceEvent, at: Position) -> Checked {
        let space = self.spaces.entry(id).or_default();
        promise(!space.closed, || "I8: something follows closed".into())?;
        match event {
            SpaceEvent::Opened { instance, .. } => {
                space.opened = at;
                let holder = self.instances.get(instance).and_then(|instance| instance.holder);
                promise(holder == Some(id), || "I6: opened without the reservation".into())
            }
            SpaceEvent::TaskQueued { task, request_id, .. } => {
                promise(space.active.is_none(), || "I1: a second task is queued".into())?;
                promise(!space.closing, || "I8: a task is queued in a closing Space".into())?;
                promise(!self.tasks.contains_key(task), || "I3: a task is queued twice".into())?;
                let fresh = self.requests.insert((id, request_id.clone()));
                promise(fresh, || format!("I7: {request_id} made two tasks"))?;
                space.active = Some(*task);
                self.tasks.insert(*task, Task { space: Some(id), queued: at, ..Task::default() });
                Ok(())
            }
            SpaceEvent::TaskStarted { task, .. } => {
                promise(space.active == Some(*task), || "I4: what starts was not queued".into())?;
                let started = &mut self.tasks.entry(*task).or_default().started;
                promise(started.replace(at).is_none(), || "I2: a task starts twice".into())
            }
            SpaceEvent::TaskCompleted { task, .. } => self.end(id, *task, TaskStatus::Completed, at),
            SpaceEvent::TaskFailed { task, .. } => self.end(id, *task, TaskStatus::Failed, at),
            SpaceEvent::TaskCancelled { task } => {
                let asked = self.tasks.get(task).is_some_and(|task| task.cancel_requested);
                promise(asked, || "I5: cancelled, and nobody had asked".into())?;
                self.end(id, *task, TaskStatus::Cancelled, at)
            }
            SpaceEvent::CancelRequested { task, .. } => {
                promise(space.active == Some(*task), || "I5: a cancel of what does not run".into())?;
                let requested = &mut self.tasks.entry(*task).or_default().cancel_requested;
                promise(!std::mem::replace(requested, true), || "I5: a cancel is requested twice".into())
            }
            SpaceEvent::CloseRequested { .. } => {
                promise(!std::mem::replace(&mut space.closing, true), || "I8: two closes".into())
            }
            SpaceEvent::Closed { .. } => {
                promise(space.closing, || "I8: closed, and nobody had asked".into())?;
                promise(space.active.is_none(), || "I8: closed over a task".into())?;
                space.closed = true;
                Ok(())
            }
            SpaceEvent::Faulted { .. }
            | SpaceEvent::Recovered { .. }
            | SpaceEvent::DialogOpened { .. }
            | SpaceEvent::Blocked { .. } => Ok(()),
        }
    }

    fn end(&mut self, id: SpaceId, task: TaskId, how: TaskStatus, at: Position) -> Checked {
        let space = self.spaces.entry(id).or_default();
        let known = self.tasks.entry(task).or_default();
        // A refusal that is recorded is queued and failed in one append.
        promise(space.active == Some(task), || "I3: what ends does not run".into())?;
        promise(known.ended.is_none(), || "I3: a task ends twice".into())?;
        let stopped_first = !space.closing || known.started.is_none() || known.cancel_requested;
        promise(stopped_first, || "I8: a closing Space has not cancelled its task".into())?;
        space.active = None;
        known.ended = Some((how, at));
        Ok(())
    }

    fn instance(&mut self, id: InstanceId, event: &InstanceEvent) -> Checked {
        let instance = self.instances.entry(id).or_default();
        match event {
            InstanceEvent::Reserved { space, .. } => {
                promise(instance.holder.replace(*space).is_none(), || "I6: reserved twice".into())
            }
            InstanceEvent::Released { space, .. } => {
                promise(instance.holder.take() == Some(*space), || "I6: released by another".into())
            }
            InstanceEvent::RuntimeStarting { space, generation } => {
                promise(instance.holder == Some(*space), || "I6: a start for nobody".into())?;
                promise(!instance.alive, || "two browsers at once are recorded".into())?;
                let rises = *generation > instance.generation;
                (instance.generation, instance.alive) = (*generation, true);
                promise(rises, || "a generation does not rise".into())
            }
            InstanceEvent::RuntimeReady { generation } => {
                let right = instance.alive && *generation == instance.generation;
                promise(right, || "a browser is ready that was not started".into())
            }
            InstanceEvent::RuntimeLost { .. } | InstanceEvent::RuntimeStopped { .. } => {
                promise(std::mem::replace(&mut instance.alive, false), || "what ended had not begun".into())
            }
            InstanceEvent::Registered { .. }
            | InstanceEvent::CircuitOpened { .. }
            | InstanceEvent::CircuitClosed {}
            | InstanceEvent::Retired {} => Ok(()),
        }
    }

    /// What the browsers have seen since the last look.
    pub(crate) fn check_seen(&mut self, seen: &Seen) -> Checked {
        if let Some(broken) = seen.broken.first() {
            return Err(broken.clone());
        }
        for (task, head) in &seen.called[self.looked_at..] {
            let calls = self.calls.entry(*task).or_default();
            *calls += 1;
            promise(*calls == 1, || format!("I2: {task} is told to a browser twice"))?;
            let started = self.tasks.get(task).and_then(|task| task.started);
            let recorded = started.is_some_and(|started| started <= *head);
            promise(recorded, || format!("I4: {task} is told to a browser and is not started"))?;
        }
        self.looked_at = seen.called.len();
        for (id, task) in &self.tasks {
            if let (Some((TaskStatus::Cancelled, at)), Some(_)) = (task.ended, task.started) {
                let stopped = seen.acknowledged.get(id).is_some_and(|head| *head < at);
                promise(stopped, || format!("I5: {id} is cancelled before its browser has stopped"))?;
            }
        }
        Ok(())
    }

    /// What a client was told.
    pub(crate) fn check_ack(&self, ack: &Ack) -> Checked {
        let Ack { position, head, of } = ack;
        promise(position <= head, || format!("I4: {of:?} is told before it is durable, at {position}"))?;
        let known = |kept: bool| promise(kept, || format!("I4: {of:?} is told, and the log says otherwise"));
        match of {
            Acknowledged::Space(space) => {
                known(self.spaces.get(space).is_some_and(|space| space.opened != Position::ZERO))
            }
            Acknowledged::Task(space, task) => known(
                self.tasks.get(task).is_some_and(|task| task.space == Some(*space) && task.queued <= *head),
            ),
            Acknowledged::Ended(task, how) => known(
                self.tasks
                    .get(task)
                    .and_then(|task| task.ended)
                    .is_some_and(|(ended, at)| ended == *how && at <= *head),
            ),
            Acknowledged::Taken(space) => {
                promise(self.spaces.get(space).is_some_and(|space| space.closed), || {
                    format!("I7: a request id of {space} was taken for two meanings")
                })
            }
            Acknowledged::Closing(space) => known(self.spaces.get(space).is_some_and(|space| space.closing)),
        }
    }

    /// When all is quiet: nothing is left over.
    pub(crate) fn check_quiet(&self, asked: &BTreeSet<SpaceId>) -> Checked {
        for (id, task) in &self.tasks {
            promise(task.ended.is_some(), || format!("I3: {id} never ended"))?;
        }
        for (id, space) in &self.spaces {
            promise(!space.closing || space.closed, || format!("I8: {id} is closing for ever"))?;
            promise(asked.contains(id), || format!("I6: {id} is nobody's: its create was refused"))?;
        }
        for (id, instance) in &self.instances {
            if let Some(holder) = instance.holder {
                let held = self.spaces.get(&holder).is_some_and(|space| !space.closed);
                promise(held, || format!("I6: {id} is held by {holder}, which is over"))?;
            }
        }
        Ok(())
    }

    /// When the server has been stopped in order.
    pub(crate) fn check_stopped(&self) -> Checked {
        for (id, space) in &self.spaces {
            promise(space.closed, || format!("I8: {id} is open after the drain"))?;
        }
        for (id, instance) in &self.instances {
            promise(!instance.alive, || format!("{id} has a browser after the drain, by the log"))?;
        }
        Ok(())
    }

    /// Spaces that are open, and the last sequence of each.
    pub(crate) fn open_spaces(&self) -> Vec<(SpaceId, u64)> {
        let open = self.spaces.iter().filter(|(_, space)| !space.closed);
        open.map(|(id, space)| (*id, space.revision)).collect()
    }
}
