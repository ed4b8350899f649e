//! What a start does, in order:
//!
//! 1. `booted` is recorded: a log that takes no writes starts nothing.
//! 2. The log is folded once: instances, Workspaces with their tokens and bindings, and of each open Space the little
//!    that a start needs. Closed Spaces leave nothing behind.
//! 3. Browsers that an earlier server left alive are ended: before anything is decided about their Spaces.
//! 4. The key store is opened; keys that nothing living needs are destroyed there.
//! 5. What was running is failed as `interrupted`, and closes that were begun are finished, through the Spaces' own
//!    rules. Nothing that was running is ever dispatched again (S7).
//! 6. Reservations whose Space is over are released; retired instances' Spaces are closed.
//! 7. The runtimes of open Spaces are started; what was only queued runs once they are ready.
//! 8. The loops begin: idle time, passivation.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use eventlog::{
    Append, Event, EventLog, Metadata, Part, ReadError, ServerEvent, SpaceEvent, StreamId,
    event::space::CloseReason,
    id::{BootId, CommandId, InstanceId, SpaceId, TaskId, WorkspaceId},
    number::ExpectedSequence,
    sealing::{KeyId, KeyStore},
};
use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span, warn};

use crate::{
    StartError,
    directory::{CLOSED_IDLE_MAX, Directory},
    download::{self, Shelf, keeper::Downloads},
    fleet::Fleet,
    instance::{self, InstanceState, RuntimeState, keeper::runtime_spec},
    rejection::Rejection,
    space::{
        Command,
        actor::{Ask, Asked},
    },
    spaces::Parts,
    tokens::Tokens,
    workspace::{self, WorkspaceState},
    world::{Origin, World},
};

/// So many Spaces are brought in order at once.
const RECOVERING_AT_ONCE: usize = 4;

/// What a start needs to know of an open Space.
struct OpenSpace {
    fingerprint_key: KeyId,
    idle_timeout: Duration,
    /// Its task that has not ended, and the key of its args.
    active: Option<(TaskId, Option<KeyId>)>,
    closing: bool,
}

/// What the log comes to.
#[derive(Default)]
struct Fold {
    spaces: BTreeMap<SpaceId, OpenSpace>,
    instances: BTreeMap<InstanceId, InstanceState>,
    workspaces: BTreeMap<WorkspaceId, WorkspaceState>,
    tokens: Tokens,
    shelves: BTreeMap<SpaceId, Shelf>,
    downloads: Downloads,
}

pub(crate) async fn start(parts: Parts) -> Result<Arc<World>, StartError> {
    let origin = Origin::own_work(info_span!(parent: None, "recovery"), &*parts.ids);
    let span = origin.span.clone();
    recover(parts, &origin).instrument(span).await
}

async fn recover(parts: Parts, origin: &Origin) -> Result<Arc<World>, StartError> {
    let boot = BootId::from_uuid(parts.ids.uuid());
    record_boot(&parts, boot, origin).await?;
    let fold = Fold::of(&*parts.log).await?;
    let fleet = Fleet::new(parts.factories.clone());
    let orphans = fleet.end_orphans().await?;
    if orphans > 0 {
        warn!(orphans, "Browsers of an earlier server were ended.");
    }
    let keys = open_keys(&parts, &fold).await?;
    let Fold { spaces, instances, workspaces, tokens, shelves, downloads } = fold;
    let world = Arc::new(World {
        directory: Directory::new(&parts.config),
        log: parts.log,
        clock: parts.clock,
        ids: parts.ids,
        keys,
        catalogue: parts.catalogue,
        config: parts.config,
        data_dir: parts.data_dir,
        boot,
        tokens,
        fleet,
        instances: instance::keeper::Instances::default(),
        workspaces: workspace::keeper::Workspaces::default(),
        downloads,
        draining: AtomicBool::new(false),
        drained: tokio::sync::OnceCell::new(),
        stopping: CancellationToken::new(),
    });
    workspaces.into_values().for_each(|state| world.workspaces.adopt(state));
    instances.values().for_each(|state| world.instances.adopt(state));
    settle_downloads(&world, shelves, origin).await;
    put_in_order(&world, &spaces, origin).await;
    settle_instances(&world, &instances, &spaces, origin).await;
    begin_loops(&world);
    info!(spaces = spaces.len(), instances = instances.len(), "Recovered.");
    Ok(world)
}

async fn record_boot(parts: &Parts, boot: BootId, origin: &Origin) -> Result<(), StartError> {
    let booted = ServerEvent::Booted { boot, version: env!("CARGO_PKG_VERSION").to_owned() };
    let append = Append {
        id: CommandId::from_uuid(parts.ids.uuid()),
        metadata: Metadata {
            principal: origin.principal.clone(),
            workspace: None,
            recorded_at: parts.clock.now(),
            trace_id: origin.trace_id,
            causation: None,
            boot,
        },
        parts: vec![Part {
            stream: StreamId::Server,
            expected: ExpectedSequence::Any,
            events: vec![booted.into()],
        }],
    };
    parts.log.append(append).await?;
    Ok(())
}

impl Fold {
    async fn of(log: &dyn EventLog) -> Result<Self, StartError> {
        let mut fold = Self::default();
        let mut events = log.read_all(eventlog::Position(1));
        let mut damage = None;
        while let Some(recorded) = events.next().await {
            let recorded = match recorded {
                Ok(recorded) => recorded,
                // The streams that it is in are refused to whoever asks for them, and the others live.
                Err(passed @ ReadError::Damaged { last: Some(_), .. }) => {
                    error!(%passed, "A part of the log is damaged.");
                    damage = Some(passed);
                    continue;
                }
                Err(failure) => return Err(failure.into()),
            };
            match &recorded.stream {
                StreamId::Space(space) => fold.space(*space, &recorded.event),
                StreamId::Instance(id) => {
                    let state = fold.instances.remove(id).unwrap_or(InstanceState::Absent(*id));
                    fold.instances.insert(*id, instance::evolve_recorded(state, &recorded));
                }
                StreamId::Workspace(id) => {
                    let state =
                        fold.workspaces.remove(id).unwrap_or_else(|| WorkspaceState::Absent(id.clone()));
                    fold.workspaces.insert(id.clone(), workspace::evolve_recorded(state, &recorded));
                    if let Event::Workspace(event) = &recorded.event {
                        fold.tokens.evolve(id, event);
                    }
                }
                StreamId::Downloads(space) => {
                    let shelf = fold.shelves.remove(space).unwrap_or_else(|| Shelf::empty(*space));
                    fold.shelves.insert(*space, download::evolve::evolve_recorded(shelf, &recorded));
                    if let Event::Download(event) = &recorded.event {
                        fold.downloads.note(*space, event);
                    }
                }
                StreamId::Server => {}
            }
        }
        match damage {
            // Who may enter is in these streams. A revocation may be what was lost, so nobody is let in.
            Some(damage) if log.damaged_streams().iter().any(|at| matches!(at, StreamId::Workspace(_))) => {
                Err(damage.into())
            }
            _ => Ok(fold),
        }
    }

    fn space(&mut self, id: SpaceId, event: &Event) {
        let Event::Space(event) = event else { return };
        match event {
            SpaceEvent::Opened { fingerprint_key, idle_timeout_seconds, .. } => {
                self.spaces.insert(
                    id,
                    OpenSpace {
                        fingerprint_key: *fingerprint_key,
                        idle_timeout: Duration::from_secs(*idle_timeout_seconds),
                        active: None,
                        closing: false,
                    },
                );
            }
            SpaceEvent::Closed { .. } => {
                self.spaces.remove(&id);
            }
            SpaceEvent::TaskQueued { task, sealed_args, .. } => {
                if let Some(space) = self.spaces.get_mut(&id) {
                    space.active = Some((*task, sealed_args.as_ref().map(|sealed| sealed.key)));
                }
            }
            SpaceEvent::TaskCompleted { task, .. }
            | SpaceEvent::TaskFailed { task, .. }
            | SpaceEvent::TaskCancelled { task } => {
                if let Some(space) = self.spaces.get_mut(&id) {
                    space.active.take_if(|(active, _)| active == task);
                }
            }
            SpaceEvent::CloseRequested { .. } => {
                if let Some(space) = self.spaces.get_mut(&id) {
                    space.closing = true;
                }
            }
            SpaceEvent::TaskStarted { .. }
            | SpaceEvent::CancelRequested { .. }
            | SpaceEvent::Faulted { .. }
            | SpaceEvent::Recovered { .. }
            | SpaceEvent::DialogOpened { .. }
            | SpaceEvent::Blocked { .. } => {}
        }
    }

    fn live_keys(&self) -> HashSet<KeyId> {
        let keys = |space: &OpenSpace| {
            let args = space.active.as_ref().and_then(|(_, key)| *key);
            std::iter::once(space.fingerprint_key).chain(args)
        };
        self.spaces.values().flat_map(keys).collect()
    }
}

async fn open_keys(parts: &Parts, fold: &Fold) -> Result<Arc<KeyStore>, StartError> {
    if let Some(keys) = &parts.keys {
        return Ok(Arc::clone(keys));
    }
    let (folder, live) = (parts.data_dir.join("keys"), fold.live_keys());
    let needed: Vec<KeyId> = fold.spaces.values().map(|space| space.fingerprint_key).collect();
    let opened = tokio::task::spawn_blocking(move || {
        KeyStore::open_remaking(&folder, |key| live.contains(&key), &needed)
    });
    let (keys, remade) = opened.await.map_err(std::io::Error::other)??;
    if !remade.is_empty() {
        warn!(
            spaces = remade.len(),
            "Keys of open Spaces were lost and made anew: args that were waiting are gone, and a repeated request_id of \
             an older task is refused."
        );
    }
    Ok(Arc::new(keys))
}

/// Makes the open Spaces known, and ends what can't go on.
async fn put_in_order(world: &Arc<World>, spaces: &BTreeMap<SpaceId, OpenSpace>, origin: &Origin) {
    let now = world.clock.now();
    for (id, space) in spaces {
        // A Space could not be used while there was no server: its idle time begins anew.
        world.directory.slot(*id, now);
        world.directory.idle.look_after(space.idle_timeout, *id);
    }
    let owed = spaces.iter().filter(|(_, space)| space.active.is_some() || space.closing);
    let owed: Vec<SpaceId> = owed.map(|(id, _)| *id).collect();
    stream::iter(owed)
        .for_each_concurrent(RECOVERING_AT_ONCE, |space| async move {
            let command = Command::Recover { executing: None };
            let ask = Ask { asked: Asked::Server(command.clone()), origin: origin.clone() };
            match world.ask(space, ask).await {
                Ok(_) => {}
                Err(rejection) if rejection.is_passing() => {
                    let (world, origin) = (Arc::clone(world), origin.clone());
                    tokio::spawn(async move { world.insist(space, command, &origin).await });
                }
                // Quarantined: it is refused to whoever asks for it, and the others live.
                Err(rejection) => {
                    warn!(space.id = %space, code = rejection.code(), "A Space was not recovered.");
                }
            }
        })
        .await;
}

/// What nobody goes on with is ended, what was approved is published, what nobody accounts for is deleted. The state of each
/// Space's downloads is let go again; who asks for it reads it back.
async fn settle_downloads(world: &Arc<World>, shelves: BTreeMap<SpaceId, Shelf>, origin: &Origin) {
    for (space, shelf) in shelves {
        world.downloads.adopt(shelf);
        if let Err(rejection) = download::keeper::recover(world, space, origin).await {
            warn!(space.id = %space, code = rejection.code(), "The downloads of a Space were not settled.");
        }
    }
}

async fn settle_instances(
    world: &Arc<World>,
    instances: &BTreeMap<InstanceId, InstanceState>,
    spaces: &BTreeMap<SpaceId, OpenSpace>,
    origin: &Origin,
) {
    for (id, state) in instances {
        if let Err(rejection) = settle_instance(world, *id, state, spaces, origin).await {
            warn!(instance.id = %id, code = rejection.code(), "An instance was not settled.");
        }
    }
}

async fn settle_instance(
    world: &Arc<World>,
    id: InstanceId,
    folded: &InstanceState,
    spaces: &BTreeMap<SpaceId, OpenSpace>,
    origin: &Origin,
) -> Result<(), Rejection> {
    let Some(instance) = folded.instance() else { return Ok(()) };
    if let Some(holder) = &instance.holder
        && world.log.is_damaged(&StreamId::Space(holder.space))
    {
        // Nobody can use that Space or end it, and a good copy of the log may bring it back: the browser stays its own.
        warn!(instance.id = %id, space.id = %holder.space, "A reservation of a damaged Space is kept.");
        return Ok(());
    }
    if let Some(holder) = &instance.holder
        && !spaces.contains_key(&holder.space)
    {
        // Both are one append, so this is a log that somebody has cut; the instance must not be lost for that.
        warn!(instance.id = %id, space.id = %holder.space, "A reservation without an open Space is released.");
        let release = instance::Command::Release { space: holder.space, reason: CloseReason::Requested };
        world.instances.tell(world, id, release, origin).await?;
    }
    let state = world.instances.look(world, id).await?;
    match state.instance() {
        Some(free) if free.holder.is_none() && free.runtime != RuntimeState::Down => {
            let stopped = instance::Command::NoteStopped { generation: free.generation };
            world.instances.tell(world, id, stopped, origin).await?;
        }
        Some(_) | None => {}
    }
    if let Some(spec) = runtime_spec(&state) {
        world.fleet.keep(world, spec);
    }
    close_holder(world, &state, origin);
    Ok(())
}

/// Asks the Space of a retired instance to close, where there is one.
pub(crate) fn close_holder(world: &Arc<World>, state: &InstanceState, origin: &Origin) {
    for effect in instance::due(state) {
        match effect {
            instance::Effect::CloseHolder { space, reason } => {
                let (world, origin) = (Arc::clone(world), origin.clone());
                tokio::spawn(async move { world.insist(space, Command::Close { reason }, &origin).await });
            }
            // The supervisor's own.
            instance::Effect::StartRuntime { .. } | instance::Effect::StopRuntime { .. } => {}
        }
    }
}

/// The loops end with `stopping`.
fn begin_loops(world: &Arc<World>) {
    let idle = Arc::clone(world);
    tokio::spawn(async move {
        let stopping = idle.stopping.clone();
        stopping.run_until_cancelled(idle_loop(&idle)).await;
    });
    let expiry = Arc::clone(world);
    tokio::spawn(async move {
        let stopping = expiry.stopping.clone();
        stopping.run_until_cancelled(expiry_loop(&expiry)).await;
    });
    let sleep = Arc::clone(world);
    tokio::spawn(async move {
        let stopping = sleep.stopping.clone();
        stopping.run_until_cancelled(passivation_loop(&sleep)).await;
    });
}

/// What waits in a quarantine does not wait for ever.
async fn expiry_loop(world: &Arc<World>) {
    let age = world.config.downloads.quarantine_age;
    loop {
        tokio::time::sleep((age / 4).clamp(Duration::from_millis(250), Duration::from_secs(60))).await;
        let span = info_span!(parent: None, "expire_downloads");
        download::keeper::expire(world, &Origin::own_work(span, &*world.ids)).await;
    }
}

/// S14, for Spaces awake and asleep.
async fn idle_loop(world: &Arc<World>) {
    loop {
        let space = world.directory.idle.next().await;
        let Some(slot) = world.directory.known(space) else { continue };
        let command = Command::IdleTick { last_use: Some(slot.used_at()) };
        let origin = Origin::own_work(info_span!(parent: None, "idle_tick", space.id = %space), &*world.ids);
        let ask = Ask { asked: Asked::Server(command), origin };
        let world = Arc::clone(world);
        tokio::spawn(async move {
            let next = match world.ask(space, ask).await {
                Ok(granted) if granted.space.status == crate::space::summary::SpaceStatus::Closed => return,
                Ok(granted) => {
                    let timeout = Duration::from_secs(granted.space.idle_timeout_seconds);
                    let used = slot.used_at().max(granted.space.updated_at);
                    timeout.saturating_sub(world.clock.now().since(used)).max(Duration::from_secs(1))
                }
                Err(Rejection::SpaceNotFound | Rejection::CorruptStream { .. }) => return,
                Err(_) => Duration::from_secs(5),
            };
            world.directory.idle.look_after(next, space);
        });
    }
}

async fn passivation_loop(world: &Arc<World>) {
    let idle = world.config.passivate_after;
    loop {
        tokio::time::sleep((idle.min(CLOSED_IDLE_MAX) / 4).max(Duration::from_millis(250))).await;
        world.passivate(idle).await;
    }
}
