//! The one owner of each Workspace's state: the same line of waiters as [`crate::instance::keeper`], for the same
//! reasons. What it records of tokens is taken into the token table before the caller hears of it, so that a revoked
//! token opens no door from that answer on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use eventlog::{Appended, Event, Position, StreamId, id::WorkspaceId};
use futures::StreamExt;
use parking_lot::RwLock;
use tokio::sync::Mutex;
use tracing::error;

use super::{Command, Facts, WorkspaceState, decide, evolve_recorded};
use crate::{
    caller::Caller,
    instance::{
        InstanceState,
        keeper::{detached, refusal},
    },
    rejection::Rejection,
    world::{Origin, World},
};

/// The owners, by Workspace. One that does not exist has none.
#[derive(Default)]
pub(crate) struct Workspaces {
    known: RwLock<BTreeMap<WorkspaceId, Arc<Mutex<WorkspaceState>>>>,
    /// Held while a Workspace is made: those who make the same one at once stand in one line as well.
    births: Mutex<()>,
}

impl Workspaces {
    /// Takes over what recovery has folded.
    pub(crate) fn adopt(&self, state: WorkspaceState) {
        self.known.write().insert(state.id().clone(), Arc::new(Mutex::new(state)));
    }

    /// Every Workspace that exists.
    pub(crate) fn ids(&self) -> BTreeSet<WorkspaceId> {
        self.known.read().keys().cloned().collect()
    }

    /// The Workspace as it stands; an absent one is absent.
    pub(crate) async fn look(&self, world: &World, id: &WorkspaceId) -> Result<WorkspaceState, Rejection> {
        let Some(keeper) = self.keeper(id) else {
            return Ok(WorkspaceState::Absent(id.clone()));
        };
        let mut state = keeper.lock().await;
        catch_up(world, &mut state).await?;
        Ok(state.clone())
    }

    /// Decides and records a command; answers with the position of the Workspace's last event.
    pub(crate) async fn ask(
        &self,
        world: &Arc<World>,
        id: &WorkspaceId,
        command: Command,
        instance: Option<InstanceState>,
        caller: Caller,
        origin: Origin,
    ) -> Result<Position, Rejection> {
        let (world, id) = (Arc::clone(world), id.clone());
        detached(async move {
            let record =
                |keeper| decide_and_record(&world, keeper, &command, instance.as_ref(), &caller, &origin);
            let workspaces = &world.workspaces;
            if let Some(keeper) = workspaces.keeper(&id) {
                return record(&*keeper).await;
            }
            let _birth = workspaces.births.lock().await;
            let absent = || Arc::new(Mutex::new(WorkspaceState::Absent(id.clone())));
            let keeper = workspaces.keeper(&id).unwrap_or_else(absent);
            let position = record(&*keeper).await?;
            if position > Position::ZERO {
                workspaces.known.write().entry(id.clone()).or_insert(keeper);
            }
            Ok(position)
        })
        .await
    }

    fn keeper(&self, id: &WorkspaceId) -> Option<Arc<Mutex<WorkspaceState>>> {
        self.known.read().get(id).cloned()
    }
}

async fn decide_and_record(
    world: &World,
    keeper: &Mutex<WorkspaceState>,
    command: &Command,
    instance: Option<&InstanceState>,
    caller: &Caller,
    origin: &Origin,
) -> Result<Position, Rejection> {
    let mut state = keeper.lock().await;
    for _ in 0..2 {
        catch_up(world, &mut state).await?;
        let facts = Facts { now: world.clock.now(), caller, instance, catalogue: &world.catalogue };
        let parts = decide(&state, command, &facts)?.parts(&state);
        if parts.is_empty() {
            return Ok(position_of(&state));
        }
        let metadata = world.metadata(origin, Some(state.id().clone()));
        match world.append(origin, world.command_id(), metadata, parts).await {
            Ok(Appended::Stored(_) | Appended::Duplicate { .. }) => {
                catch_up(world, &mut state).await?;
                return Ok(position_of(&state));
            }
            Ok(Appended::Conflict { .. }) => {}
            Err(failure) => return Err(refusal(&failure)),
        }
    }
    Err(Rejection::Overloaded)
}

fn position_of(state: &WorkspaceState) -> Position {
    state.workspace().map_or(Position::ZERO, |workspace| workspace.position)
}

async fn catch_up(world: &World, state: &mut WorkspaceState) -> Result<(), Rejection> {
    let id = state.id().clone();
    let stream = StreamId::Workspace(id.clone());
    if world.log.is_damaged(&stream) {
        return Err(Rejection::CorruptStream { stream });
    }
    let head = world.log.stream_head(&stream).await.map_err(|_| Rejection::LogUnavailable)?;
    if head <= state.revision() {
        return Ok(());
    }
    let mut tail = world.log.read_stream(&stream, state.revision().next());
    while let Some(recorded) = tail.next().await {
        let recorded = recorded.map_err(|damage| {
            error!(workspace.id = %id, %damage, "A Workspace could not be read back.");
            Rejection::LogUnavailable
        })?;
        *state = evolve_recorded(std::mem::replace(state, WorkspaceState::Absent(id.clone())), &recorded);
        if let Event::Workspace(event) = &recorded.event {
            world.tokens.evolve(&id, event);
        }
    }
    Ok(())
}
