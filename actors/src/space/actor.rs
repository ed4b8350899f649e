//! The actor of one Space: decide, append, evolve, carry out what is due; in this order, one message at a time.
//!
//! - It is only ever asked, and its answer is a `Result` inside the reply: in kameo an `Err` as a reply to a tell
//!   would stop it.
//! - It is never killed, for that would cut it between append and evolve; it is stopped, or it stops itself.
//! - It never waits for a runtime, a supervisor or another actor: what takes time runs beside it and comes back as a
//!   message. So a cancel never waits behind a step, and two mailboxes can't wait for each other.
//! - An append of unknown outcome ends it: what it believes may be wrong. The next message wakes a new one, which
//!   reads the truth.

mod figures;
mod submit;

use std::{sync::Arc, time::Duration};

use eventlog::{
    AppendError, Appended, EventLog, Redacted, Sensitive, SpaceEvent, StreamId,
    id::{CapabilityName, CommandId, OperationId, RequestId, SpaceId, TaskId, WorkspaceId},
    sealing::args_context,
};
use futures::StreamExt;
use kameo::{
    Actor, Reply,
    actor::ActorRef,
    message::{Context, Message},
};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::Instant,
};
use tracing::{Instrument, error, info_span, warn};

use self::figures::ActiveTasks;
use super::{
    Asker, Command, Decision, Effect, Facts, InHand, Reply as Decided, Report, RuntimeStatus, SpaceState,
    decide, due,
    effect::Execute,
    evolve_all, evolve_recorded,
    failure::Failure,
    slot::{Ended, Slot},
    summary::{SpaceSummary, TaskSummary},
};
use crate::{
    caller::Caller,
    capability::CheckError,
    execution::{self, Job},
    instance::keeper::refusal,
    place::Place,
    rejection::Rejection,
    runtime::Outcome,
    world::{Origin, World},
};

/// What may follow from one message at most: each round is something that the Space had missed.
const ROUNDS_MAX: usize = 8;

/// The actor.
pub(crate) struct SpaceActor {
    world: Arc<World>,
    slot: Arc<Slot>,
    state: SpaceState,
    /// The dispatch whose `started` this incarnation has appended.
    started: Option<OperationId>,
    /// What it believes may be wrong: it stops after this message.
    lost: bool,
    /// Whether it has a task, as a figure.
    active: ActiveTasks,
    /// Its share of the live actors.
    _permit: OwnedSemaphorePermit,
}

/// What an actor begins with.
pub(crate) struct Birth {
    pub(crate) world: Arc<World>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) state: SpaceState,
    pub(crate) permit: OwnedSemaphorePermit,
}

/// One message.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) asked: Asked,
    pub(crate) origin: Origin,
}

/// One message on its way.
pub(crate) struct Sent {
    pub(crate) ask: Ask,
    pub(crate) at: Instant,
}

/// What is asked.
#[derive(Clone)]
pub(crate) enum Asked {
    /// A task, by a caller.
    Submit(By, Arc<Submission>),
    /// Something else, by a caller.
    Caller(By, Command),
    /// Something by the server itself.
    Server(Command),
    /// The Space as it stands; carries out what is due.
    Look,
}

impl Asked {
    /// Its name, as a label: one of a closed list.
    fn name(&self) -> &'static str {
        match self {
            Self::Submit(..) => "submit",
            Self::Caller(_, command) | Self::Server(command) => command.name(),
            Self::Look => "look",
        }
    }
}

/// Which caller, in which Workspace it believes the Space to be.
#[derive(Clone)]
pub(crate) struct By {
    pub(crate) caller: Caller,
    pub(crate) workspace: WorkspaceId,
}

/// A submit, checked by the catalogue.
pub(crate) struct Submission {
    pub(crate) request_id: RequestId,
    pub(crate) capability: CapabilityName,
    pub(crate) args: Sensitive<eventlog::Json>,
    pub(crate) arg_keys: Vec<Redacted<String>>,
    pub(crate) checked: Result<(), CheckError>,
    pub(crate) timeout: Duration,
    pub(crate) task: TaskId,
    pub(crate) operation: OperationId,
    /// The append's id, derived from Space and request id.
    pub(crate) append: CommandId,
}

/// The reply: never an `Err` in kameo's sense.
#[derive(Reply)]
pub(crate) struct Answer(pub(crate) Result<Granted, Rejection>);

/// What was granted.
pub(crate) struct Granted {
    pub(crate) space: SpaceSummary,
    pub(crate) task: Option<GrantedTask>,
}

/// A task that was accepted or found.
pub(crate) enum GrantedTask {
    /// In memory still.
    Here { task: Box<TaskSummary>, repeated: bool, ended: watch::Receiver<Ended> },
    /// An old one; the log knows it.
    Older(TaskId),
}

impl Actor for SpaceActor {
    type Args = Birth;
    type Error = kameo::error::Infallible;

    async fn on_start(birth: Birth, _: ActorRef<Self>) -> Result<Self, Self::Error> {
        metrics::gauge!("browserspace_actor_live").increment(1.0);
        let Birth { world, slot, state, permit } = birth;
        let mut actor = Self {
            world,
            slot,
            state,
            started: None,
            lost: false,
            active: ActiveTasks::default(),
            _permit: permit,
        };
        actor.tell_slot();
        Ok(actor)
    }
}

impl Drop for SpaceActor {
    fn drop(&mut self) {
        metrics::gauge!("browserspace_actor_live").decrement(1.0);
    }
}

impl Message<Sent> for SpaceActor {
    type Reply = Answer;

    async fn handle(&mut self, sent: Sent, context: &mut Context<Self, Answer>) -> Answer {
        let Sent { ask, at: sent_at } = sent;
        let began = Instant::now();
        let command = ask.asked.name();
        metrics::histogram!("browserspace_actor_mailbox_wait_duration_seconds", "command" => command)
            .record(began.duration_since(sent_at).as_secs_f64());
        let name = match &ask.asked {
            Asked::Submit(..) => "submit_task",
            Asked::Caller(..) | Asked::Server(_) => "ask_space",
            Asked::Look => "look",
        };
        let asked_in = self.trace_of(ask.origin);
        let span = info_span!(
            parent: &asked_in.span, "space", otel.name = name, space.id = %self.slot.space,
            task.id = tracing::field::Empty, code = tracing::field::Empty
        );
        let origin = Origin { span: span.clone(), ..asked_in };
        let answer = self.answer(ask.asked, &origin).instrument(span.clone()).await;
        if let Err(rejection) = &answer {
            span.record("code", rejection.code());
            metrics::counter!("browserspace_actor_rejected_total", "code" => rejection.code()).increment(1);
        }
        if self.lost {
            context.stop();
        }
        metrics::histogram!("browserspace_actor_handle_duration_seconds", "command" => command)
            .record(began.elapsed().as_secs_f64());
        Answer(answer)
    }
}

impl SpaceActor {
    /// What the server tells a Space in the course of its own work belongs to the trace of the task that waits for it.
    fn trace_of(&self, origin: Origin) -> Origin {
        if !origin.is_own_work {
            return origin;
        }
        let active = self.state.active_task().map(|active| active.task().task);
        active.and_then(|task| self.slot.origin_of(task)).unwrap_or(origin)
    }

    async fn answer(&mut self, asked: Asked, origin: &Origin) -> Result<Granted, Rejection> {
        let answer = match asked {
            Asked::Submit(by, submission) => self.submit(&by, &submission, origin).await.map(Some),
            Asked::Caller(By { caller, workspace }, command) => {
                let asker = Asker::Caller { caller: &caller, workspace: &workspace };
                self.command(&command, asker, origin, None).await.map(|_| None)
            }
            Asked::Server(command) => self.command(&command, Asker::Server, origin, None).await.map(|_| None),
            Asked::Look => Ok(None),
        };
        self.carry_out(origin).await;
        let task = answer?;
        let space = self.state.summary().ok_or(Rejection::SpaceNotFound)?;
        Ok(Granted { space, task })
    }

    /// Decides, appends and evolves. A conflict means that somebody else wrote to the stream: once more, on the truth.
    async fn command(
        &mut self,
        command: &Command,
        asker: Asker<'_>,
        origin: &Origin,
        append: Option<CommandId>,
    ) -> Result<Decided, Rejection> {
        for _ in 0..2 {
            let facts = Facts {
                now: self.world.clock.now(),
                asker,
                runtime: self.runtime(),
                draining: self.world.is_draining(),
            };
            let decision = decide(&self.state, command, &facts)?;
            if self.append(&decision, origin, append).await? {
                return Ok(decision.reply);
            }
            self.reload().await?;
        }
        Err(Rejection::Overloaded)
    }

    /// Appends what was decided and takes it in. `false`: nothing was written now, the stream is not as it was believed.
    async fn append(
        &mut self,
        decision: &Decision,
        origin: &Origin,
        id: Option<CommandId>,
    ) -> Result<bool, Rejection> {
        let parts = decision.parts(&self.state);
        if parts.is_empty() {
            return Ok(true);
        }
        let workspace = self.state.space().map(|space| space.workspace.clone());
        let metadata = self.world.metadata(origin, workspace);
        let recorded_at = metadata.recorded_at;
        let id = id.unwrap_or_else(|| self.world.command_id());
        match self.world.append(origin, id, metadata, parts).await {
            Ok(Appended::Stored(stored)) => {
                self.absorb(
                    &decision.events,
                    Place { sequence: self.state.revision().next(), position: stored.first, recorded_at },
                );
                Ok(true)
            }
            Ok(Appended::Conflict { .. } | Appended::Duplicate { .. }) => Ok(false),
            Err(failure) => {
                self.lost = matches!(failure, AppendError::Unknown);
                Err(refusal(&failure))
            }
        }
    }

    /// Takes in events that are durable now.
    fn absorb(&mut self, events: &[SpaceEvent], first: Place) {
        let keys = self.state.live_keys();
        let before = std::mem::replace(&mut self.state, SpaceState::Absent(self.slot.space));
        self.state = evolve_all(before, events, first);
        let live = self.state.live_keys();
        for key in keys.into_iter().filter(|key| !live.contains(key)) {
            self.world.keys.destroy(key);
        }
        if events.iter().any(|event| matches!(event, SpaceEvent::TaskStarted { .. })) {
            self.started = self.state.active_task().map(|active| active.task().operation);
        }
        self.count(events);
        self.tell_slot();
    }

    /// What the directory and who waits must know of the state.
    fn tell_slot(&mut self) {
        use std::sync::atomic::Ordering::Relaxed;
        let busy = self.state.active_task().is_some();
        self.active.is(busy);
        self.slot.busy.store(busy, Relaxed);
        if !busy {
            self.slot.forget_origin();
        }
        self.slot.closed.store(matches!(self.state, SpaceState::Closed(_)), Relaxed);
        let Some(space) = self.state.space() else { return };
        self.slot.set_owner(space.workspace.clone(), space.owner.clone());
        if let Some(task) = self.slot.awaited().and_then(|task| self.state.task(task))
            && task.status.is_terminal()
        {
            self.slot.publish(task, space.position);
        }
    }

    /// Reads the truth back.
    async fn reload(&mut self) -> Result<(), Rejection> {
        match rehydrate(&*self.world.log, self.slot.space).await {
            Ok(state) => {
                self.state = state;
                self.tell_slot();
                Ok(())
            }
            Err(rejection) => {
                self.lost = true;
                Err(rejection)
            }
        }
    }

    fn runtime(&self) -> RuntimeStatus {
        self.state
            .space()
            .map_or(RuntimeStatus::Stopped, |space| self.world.fleet.status(space.instance, space.fence))
    }

    /// Carries out what the state is owed. Derived from the state and not from the events just appended, so that a new
    /// incarnation finds the same work again.
    async fn carry_out(&mut self, origin: &Origin) {
        for _ in 0..ROUNDS_MAX {
            let revision = self.state.revision();
            if self.lost {
                return;
            }
            let (executing, cancel_signalled) = self.slot.executing();
            let in_hand = InHand { started: self.started, executing, cancel_signalled };
            for effect in due(&self.state, self.runtime(), &in_hand) {
                self.carry_out_one(effect, executing, origin).await;
            }
            if self.state.revision() == revision {
                return;
            }
        }
    }

    async fn carry_out_one(&mut self, effect: Effect, executing: Option<OperationId>, origin: &Origin) {
        let missed = match effect {
            Effect::KeepRuntime { instance, .. } => {
                let (world, space) = (Arc::clone(&self.world), self.slot.space);
                // Beside the actor, for the instance has a line of its own.
                tokio::spawn(async move { world.instances.keep_runtime(&world, instance, space).await });
                return;
            }
            Effect::StopRuntime { instance, fence } => {
                return self.world.fleet.release(&self.world, instance, fence);
            }
            Effect::ReplaceRuntime { instance, generation } => {
                return self.world.fleet.condemn(instance, generation);
            }
            Effect::Execute(execute) => return self.execute(*execute, origin),
            Effect::SignalCancel { operation, .. } => return self.slot.cancel(operation),
            Effect::NoteReady { generation } => Command::RuntimeReady { generation },
            Effect::NoteUnavailable(fault) => Command::RuntimeUnavailable(fault),
            Effect::Recover => Command::Recover { executing },
        };
        if let Err(rejection) = self.command(&missed, Asker::Server, &origin.on_behalf(), None).await {
            // It stays due, and whoever comes next finds it again.
            warn!(space.id = %self.slot.space, code = rejection.code(), "What was due could not be recorded.");
        }
    }

    /// Hands the step over. From here on it runs beside the actor and comes back as a report.
    fn execute(&mut self, execute: Execute, origin: &Origin) {
        let context = args_context(&StreamId::Space(self.slot.space), execute.task);
        let opened = self.world.keys.unseal(&execute.sealed_args, &context).map_err(|failure| {
            error!(space.id = %self.slot.space, task.id = %execute.task, %failure, "Args could not be opened.");
        });
        let args = opened
            .and_then(|plain| serde_json::from_slice(plain.expose()).map(Sensitive::new).map_err(|_| ()));
        let cancel = self.slot.begin(execute.operation);
        let job = Job {
            world: Arc::clone(&self.world),
            slot: Arc::clone(&self.slot),
            execute,
            origin: origin.on_behalf(),
            cancel,
        };
        match args {
            Ok(args) => execution::start(job, args),
            Err(()) => execution::report(
                job,
                Outcome::Failed(Failure::Internal.saying("the args could not be opened", false)),
            ),
        }
    }
}

/// Reads a Space's state back from its stream.
pub(crate) async fn rehydrate(log: &dyn EventLog, space: SpaceId) -> Result<SpaceState, Rejection> {
    let stream = StreamId::Space(space);
    let mut events = log.read_stream(&stream, eventlog::Sequence(1));
    let mut state = SpaceState::Absent(space);
    while let Some(recorded) = events.next().await {
        match recorded {
            Ok(recorded) => state = evolve_recorded(state, &recorded),
            Err(damage @ eventlog::ReadError::Damaged { .. }) => {
                error!(space.id = %space, %damage, "A Space could not be read back.");
                return Err(Rejection::CorruptStream { stream });
            }
            Err(failure @ eventlog::ReadError::Io(_)) => {
                warn!(space.id = %space, %failure, "A Space could not be read back.");
                return Err(Rejection::LogUnavailable);
            }
        }
    }
    Ok(state)
}

/// What a runtime's answer is as a command.
pub(crate) fn report_command(execute: &Execute, outcome: Outcome) -> Command {
    Command::Report(Report {
        task: execute.task,
        operation: execute.operation,
        generation: execute.generation,
        outcome,
    })
}
