//! The one owner of each instance's state: who asks, waits in line.
//!
//! An instance is small, rarely asked and never passivated, so its line is an async mutex and not an actor: there is no
//! mailbox to lose a message in and no lifecycle to race with. What must not be torn apart (append, evolve, start the
//! runtime) runs in a task of its own, so a caller that hangs up tears nothing. Before every decision the state takes
//! in the tail of its stream: a Space that closes writes there too, and after an append of unknown outcome the log is
//! the only one who knows.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use eventlog::{
    AppendError, Appended, Generation, Position, RecordedEvent, StreamId,
    event::instance::LossReason,
    id::{CommandId, InstanceId, SpaceId},
};
use futures::StreamExt;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use tracing::error;

use super::{Allowed, Command, Facts, InstanceState, RuntimeState, decide, evolve_recorded};
use crate::{
    caller::Caller,
    rejection::Rejection,
    runtime::RuntimeSpec,
    space::{Open, OpenFacts, open},
    workspace::WorkspaceState,
    world::{Origin, World},
};

/// So many callers wait for one instance at once; the next is refused as `overloaded`.
const WAITING_MAX: usize = 256;

/// The owners, by instance.
#[derive(Default)]
pub(crate) struct Instances(RwLock<HashMap<InstanceId, Arc<Keeper>>>);

struct Keeper {
    state: Mutex<InstanceState>,
    waiting: AtomicUsize,
}

/// A create, ready to be decided.
pub(crate) struct OpenAsk {
    pub(crate) open: Open,
    pub(crate) caller: Caller,
    pub(crate) workspace: WorkspaceState,
    /// The append's id, so that a repeat of the same create is one append.
    pub(crate) append: CommandId,
    pub(crate) origin: Origin,
}

/// What a create came to.
pub(crate) enum OpenOutcome {
    /// The Space is there.
    Opened,
    /// An append of this id was there before.
    Repeated,
}

impl Instances {
    /// Takes over what recovery has folded.
    pub(crate) fn adopt(&self, state: &InstanceState) {
        let keeper = Keeper { state: Mutex::new(state.clone()), waiting: AtomicUsize::new(0) };
        self.0.write().insert(state.id(), Arc::new(keeper));
    }

    /// Every instance that is known.
    pub(crate) fn ids(&self) -> Vec<InstanceId> {
        let mut ids: Vec<_> = self.0.read().keys().copied().collect();
        ids.sort();
        ids
    }

    /// The instance as it stands.
    pub(crate) async fn look(&self, world: &World, id: InstanceId) -> Result<InstanceState, Rejection> {
        let keeper = self.keeper(id)?;
        let mut state = keeper.state.lock().await;
        catch_up(world, &mut state).await?;
        Ok(state.clone())
    }

    /// Decides and records a command of the server itself.
    pub(crate) async fn tell(
        &self,
        world: &Arc<World>,
        id: InstanceId,
        command: Command,
        origin: &Origin,
    ) -> Result<InstanceState, Rejection> {
        self.ask(world, id, command, Caller::system(), origin.clone()).await
    }

    /// Decides and records a command; answers with the state after it.
    pub(crate) async fn ask(
        &self,
        world: &Arc<World>,
        id: InstanceId,
        command: Command,
        caller: Caller,
        origin: Origin,
    ) -> Result<InstanceState, Rejection> {
        let registering = matches!(command, Command::Register(_));
        let keeper = if registering {
            Arc::new(Keeper { state: Mutex::new(InstanceState::Absent(id)), waiting: AtomicUsize::new(0) })
        } else {
            self.keeper(id)?
        };
        let world = Arc::clone(world);
        detached(async move {
            let state = keeper.ask(&world, &command, &caller, &origin).await?;
            if registering {
                // In here, so that a caller who hangs up does not leave an instance that is recorded and not known.
                world.instances.0.write().entry(id).or_insert(keeper);
            }
            Ok(state)
        })
        .await
    }

    /// Records that the next start of the holder's runtime begins.
    ///
    /// The supervisor has ended the last one. If that was never recorded (the log took no writes), it is now: only so
    /// can a start follow, and the record says what is known.
    pub(crate) async fn begin_start(
        &self,
        world: &Arc<World>,
        id: InstanceId,
        space: SpaceId,
        origin: &Origin,
    ) -> Result<Generation, Rejection> {
        let before = self.look(world, id).await?;
        let before = before.instance().ok_or(Rejection::InstanceNotFound)?;
        if before.holder.as_ref().is_none_or(|holder| holder.space != space) {
            return Err(Rejection::SpaceClosed);
        }
        if before.runtime != RuntimeState::Down {
            let lost = Command::NoteLost { generation: before.generation, reason: LossReason::Orphaned };
            self.tell(world, id, lost, origin).await?;
        }
        let after = self.tell(world, id, Command::BeginStart, origin).await?;
        after.instance().map(|instance| instance.generation).ok_or(Rejection::InstanceNotFound)
    }

    /// Reserves the instance and opens the Space in one append, and has its runtime started.
    pub(crate) async fn open(&self, world: &Arc<World>, ask: OpenAsk) -> Result<OpenOutcome, Rejection> {
        let keeper = self.keeper(ask.open.instance)?;
        let world = Arc::clone(world);
        detached(async move { keeper.open(&world, &ask).await }).await
    }

    /// Has the holder's runtime kept, if `space` holds the instance.
    pub(crate) async fn keep_runtime(
        &self,
        world: &Arc<World>,
        id: InstanceId,
        space: SpaceId,
    ) -> Result<(), Rejection> {
        let state = self.look(world, id).await?;
        if let Some(spec) = runtime_spec(&state).filter(|spec| spec.space == space) {
            world.fleet.keep(world, spec);
        }
        Ok(())
    }

    fn keeper(&self, id: InstanceId) -> Result<Arc<Keeper>, Rejection> {
        self.0.read().get(&id).cloned().ok_or(Rejection::InstanceNotFound)
    }
}

impl Keeper {
    async fn ask(
        &self,
        world: &Arc<World>,
        command: &Command,
        caller: &Caller,
        origin: &Origin,
    ) -> Result<InstanceState, Rejection> {
        let _place = self.stand_in_line()?;
        let mut state = self.state.lock().await;
        for _ in 0..2 {
            catch_up(world, &mut state).await?;
            let workspaces = world.workspaces.ids();
            let facts = Facts { caller, allowed: allowed(world), workspaces: &workspaces };
            let parts = decide(&state, command, &facts)?.parts(&state);
            if parts.is_empty() {
                return Ok(state.clone());
            }
            let metadata = world.metadata(origin, None);
            match world.append(origin, world.command_id(), metadata, parts).await {
                Ok(Appended::Stored(_) | Appended::Duplicate { .. }) => {
                    catch_up(world, &mut state).await?;
                    return Ok(state.clone());
                }
                Ok(Appended::Conflict { .. }) => {}
                Err(failure) => return Err(refusal(&failure)),
            }
        }
        Err(Rejection::Overloaded)
    }

    async fn open(&self, world: &Arc<World>, ask: &OpenAsk) -> Result<OpenOutcome, Rejection> {
        let _place = self.stand_in_line()?;
        let mut state = self.state.lock().await;
        for _ in 0..2 {
            catch_up(world, &mut state).await?;
            // Asked in line and before the rules: while this create stood here, the first one with the same key may
            // have taken the instance, and then "in use" is said of the caller's own Space.
            if ask.open.idempotency.is_some() && is_recorded(world, ask.append).await? {
                return Ok(OpenOutcome::Repeated);
            }
            let facts = OpenFacts {
                caller: &ask.caller,
                instance: &state,
                workspace: &ask.workspace,
                catalogue: &world.catalogue,
                draining: world.is_draining(),
            };
            let opening = open(&ask.open, &facts)?;
            let metadata = world.metadata(&ask.origin, Some(ask.open.workspace.clone()));
            match world.append(&ask.origin, ask.append, metadata, opening.parts()).await {
                Ok(Appended::Stored(_)) => {
                    catch_up(world, &mut state).await?;
                    if let Some(spec) = runtime_spec(&state) {
                        world.fleet.keep(world, spec);
                    }
                    return Ok(OpenOutcome::Opened);
                }
                Ok(Appended::Duplicate { .. }) => return Ok(OpenOutcome::Repeated),
                Ok(Appended::Conflict { .. }) => {
                    metrics::counter!("browserspace_reservation_conflicts_total").increment(1);
                }
                Err(failure) => return Err(refusal(&failure)),
            }
        }
        Err(Rejection::BrowserInstanceInUse)
    }

    fn stand_in_line(&self) -> Result<PlaceInLine<'_>, Rejection> {
        let place = PlaceInLine(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return Err(Rejection::Overloaded);
        }
        Ok(place)
    }
}

/// Counts who waits; leaves when dropped.
pub(crate) struct PlaceInLine<'a>(&'a AtomicUsize);

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What to start for the holder, if there is one.
pub(crate) fn runtime_spec(state: &InstanceState) -> Option<RuntimeSpec> {
    let instance = state.instance()?;
    let holder = instance.holder.as_ref()?;
    Some(RuntimeSpec {
        space: holder.space,
        instance: instance.id,
        kind: instance.kind,
        bundle: instance.bundle,
        network_policy: instance.network_policy.clone(),
        headless: instance.headless,
        generation: instance.generation,
        fence: holder.fence,
        // It stands in the Space's stream, and is read there at each start.
        environment: eventlog::event::environment::Environment::default(),
        // The fleet knows it.
        desk: crate::download::Desk::default(),
    })
}

fn allowed(world: &World) -> Allowed {
    Allowed { trusted: world.config.allow_trusted_bundle, scripted: world.config.allow_scripted_runtime }
}

async fn is_recorded(world: &World, append: CommandId) -> Result<bool, Rejection> {
    let found = world.log.find_append(append).await;
    found.map(|found| found.is_some()).map_err(|_| Rejection::LogUnavailable)
}

/// Takes in what others have written to the stream.
async fn catch_up(world: &World, state: &mut InstanceState) -> Result<(), Rejection> {
    let stream = StreamId::Instance(state.id());
    if world.log.is_damaged(&stream) {
        return Err(Rejection::CorruptStream { stream });
    }
    let head = world.log.stream_head(&stream).await.map_err(|_| Rejection::LogUnavailable)?;
    if head <= state.revision() {
        return Ok(());
    }
    let mut tail = world.log.read_stream(&stream, state.revision().next());
    let mut caught = state.clone();
    while let Some(recorded) = tail.next().await {
        let recorded: RecordedEvent = recorded.map_err(|damage| {
            error!(instance.id = %state.id(), %damage, "An instance could not be read back.");
            Rejection::LogUnavailable
        })?;
        caught = evolve_recorded(caught, &recorded);
    }
    *state = caught;
    Ok(())
}

/// Runs a piece of work that must not be torn apart when its caller hangs up.
pub(crate) async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Rejection>> + Send + 'static,
) -> Result<T, Rejection> {
    tokio::spawn(work).await.unwrap_or_else(|panic| {
        error!(%panic, "A command panicked.");
        Err(Rejection::Internal)
    })
}

/// What a caller hears of an append that was not answered with certainty, or not taken.
pub(crate) fn refusal(failure: &AppendError) -> Rejection {
    match failure {
        AppendError::Unknown => Rejection::OutcomeUnknown,
        AppendError::Unavailable(_) => Rejection::LogUnavailable,
        AppendError::Malformed(what) => {
            error!(what, "An append of ours was malformed.");
            Rejection::Internal
        }
    }
}

/// Where the instance's last event lies.
pub(crate) fn position_of(state: &InstanceState) -> Position {
    state.instance().map_or(Position::ZERO, |instance| instance.position)
}
