//! A create, from the door to the answer (S1).

use std::sync::Arc;

use eventlog::{
    Event, SpaceEvent, Stored, StreamId,
    event::space::Idempotency,
    id::{CommandId, SpaceId},
};
use futures::StreamExt;
use tracing::{Instrument, info_span, warn};

use crate::{
    caller::Context,
    instance::keeper::{OpenAsk, OpenOutcome},
    rejection::Rejection,
    repeat,
    request::{CreateSpace, Created},
    space::{
        Open,
        actor::{Ask, Asked},
    },
    world::{Origin, Patience, World},
};

/// So often it is looked whether a create of unknown outcome is there after all.
const SETTLE_ATTEMPTS: u32 = 8;

pub(crate) async fn create(
    world: &Arc<World>,
    context: &Context,
    create: CreateSpace,
) -> Result<Created, Rejection> {
    let span = info_span!(parent: &context.span, "create_space", instance.id = %create.instance);
    let origin = Origin { span: span.clone(), ..Origin::from(context) };
    try_create(world, context, create, &origin).instrument(span).await
}

async fn try_create(
    world: &Arc<World>,
    context: &Context,
    create: CreateSpace,
    origin: &Origin,
) -> Result<Created, Rejection> {
    context.caller.must_enter(&create.workspace)?;
    let idempotency = repeat::idempotency(&context.caller.principal, &create)?;
    let append = idempotency.as_ref().map_or_else(|| world.command_id(), repeat::create_id);
    if let Some(idempotency) = &idempotency
        && let Some(first) = find(world, append, idempotency, origin).await?
    {
        return Ok(first);
    }
    let key = world.keys.take().await.map_err(|failure| {
        warn!(%failure, "No key for a new Space.");
        Rejection::LogUnavailable
    })?;
    let space = SpaceId::from_uuid(world.ids.uuid());
    let ask = OpenAsk {
        workspace: world.workspaces.look(world, &create.workspace).await?,
        open: Open {
            space,
            workspace: create.workspace,
            instance: create.instance,
            binding: create.binding,
            owner: create.owner,
            granted_capabilities: create.granted_capabilities,
            idle_timeout: create.idle_timeout.unwrap_or(world.config.idle_timeout),
            fingerprint_key: key,
            idempotency,
            environment: create.environment,
        },
        caller: context.caller.clone(),
        append,
        origin: origin.clone(),
    };
    match world.instances.open(world, ask).await {
        Ok(OpenOutcome::Opened) => stand(world, space, false, origin).await,
        Ok(OpenOutcome::Repeated) => {
            world.keys.destroy(key);
            let idempotency = idempotency.as_ref().ok_or(Rejection::Internal)?;
            find(world, append, idempotency, origin).await?.ok_or(Rejection::OutcomeUnknown)
        }
        Err(Rejection::OutcomeUnknown) => {
            tokio::spawn(settle(Arc::clone(world), space, origin.on_behalf()));
            Err(Rejection::OutcomeUnknown)
        }
        Err(rejection) => {
            world.keys.destroy(key);
            Err(rejection)
        }
    }
}

/// The Space that an earlier create with the same key had made.
async fn find(
    world: &Arc<World>,
    append: CommandId,
    idempotency: &Idempotency,
    origin: &Origin,
) -> Result<Option<Created>, Rejection> {
    let found = world.log.find_append(append).await.map_err(|_| Rejection::LogUnavailable)?;
    let Some(stored) = found else { return Ok(None) };
    let (space, first) = opened_in(world, stored).await?;
    if first != Some(*idempotency) {
        return Err(Rejection::RequestIdConflict);
    }
    stand(world, space, true, origin).await.map(Some)
}

async fn opened_in(world: &World, stored: Stored) -> Result<(SpaceId, Option<Idempotency>), Rejection> {
    let mut events = world.log.read_all(stored.first);
    while let Some(recorded) = events.next().await {
        let recorded = recorded.map_err(|_| Rejection::LogUnavailable)?;
        if recorded.position > stored.last {
            break;
        }
        if let (StreamId::Space(space), Event::Space(SpaceEvent::Opened { idempotency, .. })) =
            (&recorded.stream, &recorded.event)
        {
            return Ok((*space, *idempotency));
        }
    }
    Err(Rejection::Internal)
}

/// The Space as it stands; from here on its idle time runs.
async fn stand(
    world: &Arc<World>,
    space: SpaceId,
    repeated: bool,
    origin: &Origin,
) -> Result<Created, Rejection> {
    let granted = world.ask(space, Ask { asked: Asked::Look, origin: origin.clone() }).await;
    // Even if nobody can look at it now, it is there.
    let idle = granted.as_ref().map_or(0, |granted| granted.space.idle_timeout_seconds);
    if !repeated {
        world.directory.slot(space, world.clock.now());
        world.directory.idle.look_after(std::time::Duration::from_secs(idle.max(1)), space);
    }
    Ok(Created { space: granted?.space, repeated })
}

/// A create of unknown outcome may be there. Then it must not be forgotten: its runtime and its idle time begin.
async fn settle(world: Arc<World>, space: SpaceId, origin: Origin) {
    let mut patience = Patience::new();
    for _ in 0..SETTLE_ATTEMPTS {
        patience.wait().await;
        if stand(&world, space, false, &origin).await.is_ok() {
            return;
        }
    }
}
