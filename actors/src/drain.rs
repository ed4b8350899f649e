//! The end of a server, in order: nothing new, every end recorded, every reservation released, every browser ended.
//!
//! Half of the time is for tasks to finish by themselves; then they are cancelled. What does not acknowledge by the end
//! loses its browser and is recorded as `interrupted`. A second signal may end the process at any point of this: the
//! log makes that a crash like any other, and the next start finishes it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use eventlog::{
    Part, ServerEvent, StreamId, event::space::CloseReason, id::SpaceId, number::ExpectedSequence,
};
use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{Instrument, info, info_span, warn};

use crate::{
    space::Command,
    world::{Origin, World},
};

/// How often it is looked whether tasks have ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the last words may take once the time is up: the log may be gone.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Begins at the call; what it gives waits for the end.
pub(crate) fn drain(world: &Arc<World>, within: Duration) -> impl Future<Output = ()> + use<> {
    // Before anybody can be told that the drain has begun: after that nothing new may begin.
    world.draining.store(true, Ordering::Release);
    let world = Arc::clone(world);
    async move {
        // The first drain does the work in a task of its own; whoever comes later, or hangs up, changes nothing.
        let work = || async {
            let world = Arc::clone(&world);
            let origin = Origin::own_work(info_span!(parent: None, "drain"), &*world.ids);
            let span = origin.span.clone();
            let work = async move { run(&world, within, &origin).await };
            if let Err(panic) = tokio::spawn(work.instrument(span)).await {
                tracing::error!(%panic, "The drain panicked.");
            }
        };
        world.drained.get_or_init(work).await;
    }
}

async fn run(world: &Arc<World>, within: Duration, origin: &Origin) {
    let deadline = Instant::now() + within;
    record(world, ServerEvent::DrainStarted { boot: world.boot }, origin).await;
    let spaces = world.directory.open_spaces();
    info!(spaces = spaces.len(), "Draining.");
    wait_for_tasks(world, &spaces, Instant::now() + within / 2).await;
    if !eventlog::mutant::is("drains_without_closing") {
        close_all(world, deadline, origin).await;
    }
    wait_for_tasks(world, &world.directory.open_spaces(), deadline).await;
    world.stopping.cancel();
    world.fleet.stop_all().await;
    interrupt_rest(world, origin).await;
    world.stop_actors().await;
    if let Err(failure) = world.keys.flush().await {
        warn!(%failure, "Destroyed keys may still be on the disk.");
    }
    record(world, ServerEvent::Stopped { boot: world.boot }, origin).await;
    info!("Drained.");
}

async fn wait_for_tasks(world: &World, spaces: &[SpaceId], until: Instant) {
    let busy =
        |space: &SpaceId| world.directory.known(*space).is_some_and(|slot| slot.busy.load(Ordering::Relaxed));
    while Instant::now() < until && spaces.iter().any(busy) {
        sleep(LOOK_EVERY).await;
    }
}

/// Idle ones are over at once; running ones are cancelled and are over when that is acknowledged.
async fn close_all(world: &Arc<World>, deadline: Instant, origin: &Origin) {
    let close = |space| async move {
        let command = Command::Close { reason: CloseReason::Drained };
        let _ = timeout_at(deadline + LAST_WORDS, world.insist(space, command, origin)).await;
    };
    join_all(world.directory.open_spaces().into_iter().map(close)).await;
}

/// What has not ended now has no browser any more.
async fn interrupt_rest(world: &Arc<World>, origin: &Origin) {
    let until = Instant::now() + LAST_WORDS;
    let interrupt = |space| async move {
        let command = Command::Recover { executing: None };
        if timeout_at(until, world.insist(space, command, origin)).await.is_err() {
            warn!(space.id = %space, "The end of a Space could not be recorded.");
        }
    };
    join_all(world.directory.open_spaces().into_iter().map(interrupt)).await;
}

async fn record(world: &World, event: ServerEvent, origin: &Origin) {
    let part = Part { stream: StreamId::Server, expected: ExpectedSequence::Any, events: vec![event.into()] };
    let metadata = world.metadata(origin, None);
    if let Err(failure) = world.append(origin, world.command_id(), metadata, vec![part]).await {
        warn!(%failure, "The end of this server could not be recorded.");
    }
}
