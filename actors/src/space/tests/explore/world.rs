//! A Space, what is in hand for it, and the runtimes around it, as a walk steps through them.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use eventlog::{
    Generation, Position, Sequence, SpaceEvent, Timestamp,
    event::{
        instance::LossReason,
        space::{CancelReason, CloseReason},
    },
    id::{OperationId, RequestId, WorkspaceId},
    sealing::Fingerprint,
};

use super::monitor::{Broken, Monitor, TASKS, number};
use crate::{
    caller::Caller,
    place::Place,
    rejection::Rejection,
    runtime::Outcome,
    space::{
        Asker, Command, Decision, Effect, Facts, InHand, RuntimeStatus, SpaceState, StartFault, Submit,
        decide, due, evolve, evolve_all,
        scenario::{self, NOW},
        state::{ActiveTask, Phase, TaskEnd},
    },
};

/// The newest start that a walk brings about.
const GENERATIONS: u64 = 2;
/// More steps than any progress needs.
const SETTLE_STEPS_MAX: usize = 40;

/// Made once: a walk asks for them millions of times.
static OPERATIONS: LazyLock<[OperationId; TASKS]> = LazyLock::new(|| [1, 2, 3].map(scenario::operation));
static REQUESTS: LazyLock<[RequestId; 2]> = LazyLock::new(|| [0, 1].map(scenario::request));
static SUBMITS: LazyLock<[Submit; TASKS]> = LazyLock::new(|| [1, 2, 3].map(scenario::submit));
static OWNER: LazyLock<(Caller, WorkspaceId)> =
    LazyLock::new(|| (scenario::agent("agent-1"), scenario::workspace_id()));

fn operation(n: usize) -> OperationId {
    OPERATIONS[n]
}

pub(super) type Decide = fn(&SpaceState, &Command, &Facts<'_>) -> Result<Decision, Rejection>;
pub(super) type Fold = fn(SpaceState, &[SpaceEvent], Place) -> SpaceState;
pub(super) type Due = fn(&SpaceState, RuntimeStatus, &InHand) -> Vec<Effect>;

/// The rules that a walk obeys: the real ones, or ones that were broken on purpose.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) decide: Decide,
    pub(super) fold: Fold,
    pub(super) due: Due,
}

impl Rules {
    pub(super) const REAL: Self = Self { decide, fold: evolve_all, due };
}

const NO_RUNTIME: RuntimeStatus =
    RuntimeStatus::Unavailable { retry_after_ms: 1, fault: StartFault::Overdue };

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Submit {
        request: usize,
        meaning: u8,
        granted: bool,
    },
    Tell(Box<Tell>),
    Report {
        call: usize,
        outcome: Reported,
    },
    Effect(Box<Effect>),
    /// The supervisor sees something; nobody has told the Space yet.
    Runtime(RuntimeStatus),
    /// The server is killed: nothing in hand, no runtime left, the log stays.
    ServerDies,
    /// The Space's actor begins anew; what executes goes on.
    ActorRestarts,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Tell {
    Cancel,
    Close,
    Tick,
    Overdue(usize),
    Ready(u64),
    Lost(u64),
    Unavailable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reported {
    Completed,
    Failed,
    Crashed,
    Cancelled,
}

/// A call that a runtime has not answered; it may do so late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Call {
    task: usize,
    generation: u64,
    signalled: bool,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    /// Shared by the worlds in which nothing was appended since.
    state: Arc<SpaceState>,
    runtime: RuntimeStatus,
    newest: u64,
    in_hand: InHand,
    calls: Vec<Call>,
    monitor: Monitor,
}

/// All that a rule, an effect or the monitor can tell apart; not times, places and texts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    phase: u8,
    active: Option<(usize, u64, Option<CancelReason>, bool)>,
    fault: Option<Generation>,
    closing: Option<CloseReason>,
    generation: u64,
    requests: [Option<(Fingerprint, usize)>; 2],
    last: Option<(usize, u8)>,
    runtime: RuntimeStatus,
    newest: u64,
    in_hand: InHand,
    calls: Vec<Call>,
    monitor: Monitor,
}

impl World {
    pub(super) fn new() -> Self {
        let at = Place { sequence: Sequence(1), position: Position(2), recorded_at: NOW };
        Self {
            state: Arc::new(evolve(SpaceState::Absent(scenario::space_id()), &scenario::opened(), at)),
            runtime: RuntimeStatus::Stopped,
            newest: 0,
            in_hand: InHand::default(),
            calls: Vec::new(),
            monitor: Monitor::default(),
        }
    }

    pub(super) fn key(&self) -> Key {
        let space = self.state.space().expect("it was opened");
        let (phase, fault, closing) = match &*self.state {
            SpaceState::Absent(_) => (0, None, None),
            SpaceState::Closed(closed) => (1, None, Some(closed.reason)),
            SpaceState::Open(open) => match &open.phase {
                Phase::Idle => (2, None, open.closing),
                Phase::Queued(_) => (3, None, open.closing),
                Phase::Running(_) => (4, None, open.closing),
                Phase::Faulted { fault, .. } => (5, fault.generation, open.closing),
            },
        };
        let active = self.state.active_task().map(|active| {
            let generation = match active {
                ActiveTask::Queued(_) => 0,
                ActiveTask::Running(running) => running.generation.0,
            };
            let task = active.task();
            let cancel = task.cancel.map(|cancel| cancel.reason);
            (number(task.task), generation, cancel, task.sealed_args.is_some())
        });
        Key {
            phase,
            active,
            fault,
            closing,
            generation: space.generation.0,
            requests: [0, 1].map(|n| {
                space.requests.get(&REQUESTS[n]).map(|first| (first.fingerprint, number(first.task)))
            }),
            last: space.last_task.as_ref().map(|ended| {
                let end = match ended.end {
                    TaskEnd::Completed { .. } => 0,
                    TaskEnd::Failed(_) => 1,
                    TaskEnd::Cancelled => 2,
                };
                (number(ended.task.task), end)
            }),
            runtime: self.runtime,
            newest: self.newest,
            in_hand: self.in_hand,
            calls: self.calls.clone(),
            monitor: self.monitor.clone(),
        }
    }

    /// Every step that can be taken here.
    pub(super) fn actions(&self, rules: Rules) -> Vec<Action> {
        let mut actions = Vec::new();
        for request in 0..2 {
            for meaning in 0..2 {
                actions.push(Action::Submit { request, meaning, granted: true });
            }
            actions.push(Action::Submit { request, meaning: 0, granted: false });
        }
        let starts = || 1..=self.newest;
        let told = [Tell::Cancel, Tell::Close, Tell::Tick, Tell::Unavailable].into_iter();
        let told = told.chain((0..TASKS - 1).map(Tell::Overdue));
        let told = told.chain(starts().map(Tell::Ready));
        let dead = starts().filter(|n| self.runtime != RuntimeStatus::Ready(Generation(*n)));
        actions.extend(told.chain(dead.map(Tell::Lost)).map(|tell| Action::Tell(Box::new(tell))));
        for call in 0..self.calls.len() {
            let outcomes = [Reported::Completed, Reported::Failed, Reported::Crashed, Reported::Cancelled];
            actions.extend(outcomes.map(|outcome| Action::Report { call, outcome }));
        }
        let effects = (rules.due)(&self.state, self.runtime, &self.in_hand);
        actions.extend(effects.into_iter().map(|effect| Action::Effect(Box::new(effect))));
        actions.extend(self.runtime_turns().into_iter().map(Action::Runtime));
        actions.extend([Action::ServerDies, Action::ActorRestarts]);
        actions
    }

    fn runtime_turns(&self) -> Vec<RuntimeStatus> {
        let next = RuntimeStatus::Ready(Generation(self.newest + 1));
        match self.runtime {
            RuntimeStatus::Stopped => vec![],
            RuntimeStatus::Starting if self.newest < GENERATIONS => {
                vec![next, NO_RUNTIME]
            }
            RuntimeStatus::Starting => vec![NO_RUNTIME],
            RuntimeStatus::Ready(_) | RuntimeStatus::Unavailable { .. } => vec![RuntimeStatus::Starting],
        }
    }

    /// Takes a step and looks at what came of it.
    pub(super) fn take(&mut self, action: &Action, rules: Rules) -> Result<(), Broken> {
        match action {
            Action::Submit { request, meaning, granted } => {
                return self.submit(*request, *meaning, *granted, rules);
            }
            Action::Tell(tell) => return self.tell(&told(**tell), rules),
            Action::Report { call, outcome } => return self.report(*call, *outcome, rules),
            Action::Effect(effect) => return self.carry_out(effect, rules),
            Action::Runtime(status) => self.runtime_is(*status),
            Action::ServerDies => {
                self.runtime = RuntimeStatus::Stopped;
                self.in_hand = InHand::default();
                self.calls.clear();
            }
            Action::ActorRestarts => {
                self.in_hand = InHand { executing: self.in_hand.executing, ..InHand::default() };
            }
        }
        Ok(())
    }

    fn runtime_is(&mut self, status: RuntimeStatus) {
        if let RuntimeStatus::Ready(generation) = status {
            self.newest = generation.0;
        }
        self.runtime = status;
    }

    fn submit(&mut self, n: usize, meaning: u8, granted: bool, rules: Rules) -> Result<(), Broken> {
        let unused = self.monitor.unused().unwrap_or(TASKS - 1);
        let mut asked = Submit {
            request_id: REQUESTS[n].clone(),
            fingerprint: Fingerprint([meaning; 32]),
            ..SUBMITS[unused].clone()
        };
        if !granted {
            asked.capability = scenario::capability("fill");
        }
        let asker = Asker::Caller { caller: &OWNER.0, workspace: &OWNER.1 };
        let decided = self.decide(&asked.into(), asker, rules);
        // A third task would make the walk endless; it is only asked whether a repeat is known.
        if unused == TASKS - 1 && decided.as_ref().is_ok_and(|decision| !decision.events.is_empty()) {
            return Ok(());
        }
        self.monitor.answer(n, meaning, &decided)?;
        decided.map_or(Ok(()), |decision| self.append(&decision, rules))
    }

    fn tell(&mut self, command: &Command, rules: Rules) -> Result<(), Broken> {
        let decided = self.decide(command, Asker::Server, rules);
        decided.map_or(Ok(()), |decision| self.append(&decision, rules))
    }

    fn decide(&self, command: &Command, asker: Asker<'_>, rules: Rules) -> Result<Decision, Rejection> {
        // Late enough that a tick always finds an idle Space over its time.
        let now = NOW.plus(Duration::from_secs(3_600));
        let facts = Facts { now, asker, runtime: self.runtime, draining: false };
        (rules.decide)(&self.state, command, &facts)
    }

    fn append(&mut self, decision: &Decision, rules: Rules) -> Result<(), Broken> {
        if decision.events.is_empty() {
            return Ok(());
        }
        self.monitor.see(decision)?;
        let space = self.state.space().expect("it was opened");
        let first = Place {
            sequence: space.revision.next(),
            position: space.position.next(),
            recorded_at: Timestamp(NOW.0),
        };
        self.state = Arc::new((rules.fold)(SpaceState::clone(&self.state), &decision.events, first));
        for event in &decision.events {
            if let SpaceEvent::TaskStarted { task, .. } = event {
                self.in_hand.started = Some(operation(number(*task)));
            }
        }
        let active = self.state.active_task().map(|active| number(active.task().task));
        let closed = matches!(*self.state, SpaceState::Closed(_));
        if active == self.monitor.active() && closed == self.monitor.is_closed() {
            Ok(())
        } else {
            Err(Broken::StateDiffers)
        }
    }

    fn report(&mut self, call: usize, outcome: Reported, rules: Rules) -> Result<(), Broken> {
        let call = self.calls.remove(call);
        let n = call.task as u64 + 1;
        if self.in_hand.executing == Some(operation(call.task)) {
            self.in_hand.executing = None;
        }
        let outcome = match outcome {
            Reported::Completed => scenario::done(),
            Reported::Failed => Outcome::Failed(scenario::runtime_error("element_not_found")),
            Reported::Crashed => Outcome::Failed(scenario::runtime_error("runtime_crashed")),
            Reported::Cancelled => {
                self.monitor.acknowledge(call.task);
                Outcome::Cancelled
            }
        };
        self.tell(&scenario::report(n, call.generation, outcome).into(), rules)
    }

    fn carry_out(&mut self, effect: &Effect, rules: Rules) -> Result<(), Broken> {
        match effect {
            Effect::KeepRuntime { .. } | Effect::ReplaceRuntime { .. } => {
                self.runtime = RuntimeStatus::Starting;
            }
            Effect::StopRuntime { .. } => self.runtime = RuntimeStatus::Stopped,
            Effect::Execute(step) => return self.call(number(step.task), step.generation, step.operation),
            Effect::SignalCancel { operation, .. } => {
                self.in_hand.cancel_signalled = Some(*operation);
                for call in &mut self.calls {
                    call.signalled |= self::operation(call.task) == *operation;
                }
            }
            Effect::NoteReady { generation } => {
                return self.tell(&Command::RuntimeReady { generation: *generation }, rules);
            }
            Effect::NoteUnavailable(fault) => return self.tell(&Command::RuntimeUnavailable(*fault), rules),
            Effect::Recover => {
                let executing = self.in_hand.executing;
                return self.tell(&Command::Recover { executing }, rules);
            }
        }
        Ok(())
    }

    fn call(&mut self, n: usize, generation: Generation, operation: OperationId) -> Result<(), Broken> {
        self.monitor.call(n)?;
        if self.calls.iter().any(|other| other.generation == generation.0) {
            return Err(Broken::Overlap);
        }
        self.calls.push(Call { task: n, generation: generation.0, signalled: false });
        self.in_hand.executing = Some(operation);
        Ok(())
    }

    /// With nothing but progress from here on, the active task ends and a closing Space closes.
    pub(super) fn settles(&self, rules: Rules) -> Result<(), Broken> {
        let mut world = self.clone();
        for _ in 0..SETTLE_STEPS_MAX {
            let Some(action) = world.progress(rules) else { break };
            world.take(&action, rules)?;
        }
        let settled =
            world.monitor.active().is_none() && world.monitor.is_closing() == world.monitor.is_closed();
        if settled { Ok(()) } else { Err(Broken::NeverEnds) }
    }

    fn progress(&self, rules: Rules) -> Option<Action> {
        let effect = (rules.due)(&self.state, self.runtime, &self.in_hand).into_iter().next();
        let answer = self.calls.iter().position(|call| self.in_hand.executing == Some(operation(call.task)));
        let outcome = |call: usize| {
            if self.calls[call].signalled { Reported::Cancelled } else { Reported::Completed }
        };
        let ready = RuntimeStatus::Ready(Generation(self.newest + 1));
        let starting = self.runtime == RuntimeStatus::Starting;
        effect
            .map(|effect| Action::Effect(Box::new(effect)))
            .or_else(|| answer.map(|call| Action::Report { call, outcome: outcome(call) }))
            .or_else(|| starting.then_some(Action::Runtime(ready)))
    }
}

fn told(tell: Tell) -> Command {
    match tell {
        Tell::Cancel => scenario::cancel(),
        Tell::Close => scenario::close(),
        Tell::Tick => Command::IdleTick { last_use: None },
        Tell::Overdue(n) => Command::Overdue { operation: operation(n) },
        Tell::Ready(n) => scenario::ready(n),
        Tell::Lost(n) => scenario::lost(n, LossReason::Crashed),
        Tell::Unavailable => Command::RuntimeUnavailable(StartFault::Overdue),
    }
}
