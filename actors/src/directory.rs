//! Finds or wakes the actor of a Space; puts those to sleep that nobody asks; keeps the bounds.
//!
//! There is at most one live actor per Space: waking and putting to sleep happen under the lock of the Space's slot,
//! and a new one is woken only after the last has ended. Putting to sleep can't lose a message: kameo closes the
//! mailbox first and gives what comes later back, and whoever gets it back asks again.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use eventlog::{Sequence, StreamId, Timestamp, id::SpaceId};
use kameo::{
    actor::{ActorRef, Spawn},
    error::SendError,
    mailbox,
};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};
use tracing::{Instrument, info_span, warn};

use crate::{
    config::Config,
    idle::IdleTimer,
    rejection::Rejection,
    space::{
        Command, SpaceState,
        actor::{Answer, Ask, Asked, Birth, Granted, Sent, SpaceActor, rehydrate},
        slot::{Incarnation, Slot},
    },
    world::{Origin, Patience, World},
};

/// One Space that is being read back or waits for that, as a figure.
struct Recovering;

impl Recovering {
    fn new() -> Self {
        metrics::gauge!("browserspace_actor_recovering").increment(1.0);
        Self
    }
}

impl Drop for Recovering {
    fn drop(&mut self) {
        metrics::gauge!("browserspace_actor_recovering").decrement(1.0);
    }
}

/// So often a message is sent again to the next incarnation before its sender hears `overloaded`.
const SENDS_MAX: usize = 16;

/// So long the actor of a closed Space waits for the last questions.
pub(crate) const CLOSED_IDLE_MAX: Duration = Duration::from_secs(2);

/// The Spaces that are known here: every open one, and closed ones while their actors are awake.
pub(crate) struct Directory {
    /// In order, so that whatever is done to all of them is done in the same order each time.
    slots: Mutex<BTreeMap<SpaceId, Arc<Slot>>>,
    live: Arc<Semaphore>,
    recoveries: Semaphore,
    began: Instant,
    pub(crate) idle: IdleTimer,
}

impl Directory {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            slots: Mutex::default(),
            live: Arc::new(Semaphore::new(config.live_actors_max)),
            recoveries: Semaphore::new(config.recoveries_max),
            began: Instant::now(),
            idle: IdleTimer::default(),
        }
    }

    /// The slot of a Space, made if there is none.
    pub(crate) fn slot(&self, space: SpaceId, now: Timestamp) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        Arc::clone(slots.entry(space).or_insert_with(|| Arc::new(Slot::new(space, now))))
    }

    /// The slot of a Space, if it is known here.
    pub(crate) fn known(&self, space: SpaceId) -> Option<Arc<Slot>> {
        self.slots.lock().get(&space).cloned()
    }

    /// Every Space that is known here and not over.
    pub(crate) fn open_spaces(&self) -> Vec<SpaceId> {
        let slots = self.slots.lock();
        let open = slots.values().filter(|slot| !slot.closed.load(Ordering::Relaxed));
        open.map(|slot| slot.space).collect()
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn forget(&self, slot: &Arc<Slot>) {
        let mut slots = self.slots.lock();
        if slots.get(&slot.space).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            slots.remove(&slot.space);
        }
    }
}

impl World {
    /// Asks a Space, waking its actor where need be. A message that an ending actor never saw is sent again.
    pub(crate) async fn ask(self: &Arc<Self>, space: SpaceId, ask: Ask) -> Result<Granted, Rejection> {
        for _ in 0..SENDS_MAX {
            let slot = self.find(space).await?;
            let Some(actor) = self.wake(&slot, &ask.origin).await? else { continue };
            slot.asked_at_ms.store(self.directory.elapsed_ms(), Ordering::Relaxed);
            let sent = actor
                .ask(Sent { ask: ask.clone(), at: Instant::now() })
                .mailbox_timeout(self.config.mailbox_timeout)
                .reply_timeout(self.config.reply_timeout)
                .await;
            match sent {
                Ok(Answer(answer)) => return answer,
                // Not seen, or not answered because the actor ended: every command is safe to say again.
                Err(
                    SendError::ActorNotRunning(_) | SendError::ActorRestarting(_) | SendError::ActorStopped,
                ) => {}
                Err(SendError::MailboxFull(_) | SendError::Timeout(Some(_))) => {
                    return Err(Rejection::Overloaded);
                }
                Err(SendError::Timeout(None)) => return Err(Rejection::OutcomeUnknown),
                Err(SendError::HandlerError(never)) => match never {},
            }
        }
        Err(Rejection::Overloaded)
    }

    /// Tells a Space something of the server's own, again and again until it is recorded or refused for good.
    pub(crate) async fn insist(self: &Arc<Self>, space: SpaceId, command: Command, origin: &Origin) {
        let mut patience = Patience::new();
        loop {
            let ask = Ask { asked: Asked::Server(command.clone()), origin: origin.clone() };
            match self.ask(space, ask).await {
                Ok(_) => return,
                Err(rejection) if rejection.is_passing() => {
                    warn!(space.id = %space, code = rejection.code(), "A Space did not take its news; again.");
                    patience.wait().await;
                }
                Err(rejection) => {
                    warn!(space.id = %space, code = rejection.code(), "A Space refused its news.");
                    return;
                }
            }
        }
    }

    /// The slot; none is made for a Space that the log does not know, so that guesses cost no memory.
    async fn find(&self, space: SpaceId) -> Result<Arc<Slot>, Rejection> {
        if let Some(slot) = self.directory.known(space) {
            return Ok(slot);
        }
        let head = self.log.stream_head(&StreamId::Space(space)).await;
        if head.map_err(|_| Rejection::LogUnavailable)? == Sequence::ZERO {
            return Err(Rejection::SpaceNotFound);
        }
        Ok(self.directory.slot(space, self.clock.now()))
    }

    /// The live actor; `None` if the slot was retired meanwhile.
    async fn wake(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        origin: &Origin,
    ) -> Result<Option<ActorRef<SpaceActor>>, Rejection> {
        let mut incarnation = slot.incarnation.lock().await;
        match &*incarnation {
            Incarnation::Retired => return Ok(None),
            Incarnation::Live(actor) if actor.is_alive() => return Ok(Some(actor.clone())),
            // Its last append may still be on its way into its state: never two at once.
            Incarnation::Live(actor) => actor.wait_for_shutdown().await,
            Incarnation::None => {}
        }
        *incarnation = Incarnation::None;
        let permit = self.live_permit().await?;
        let state = self.recover(slot.space, origin).await?;
        let birth = Birth { world: Arc::clone(self), slot: Arc::clone(slot), state, permit };
        let actor = SpaceActor::spawn_with_mailbox(birth, mailbox::bounded(self.config.mailbox_capacity));
        *incarnation = Incarnation::Live(actor.clone());
        Ok(Some(actor))
    }

    async fn live_permit(self: &Arc<Self>) -> Result<OwnedSemaphorePermit, Rejection> {
        let live = &self.directory.live;
        if let Ok(permit) = Arc::clone(live).try_acquire_owned() {
            return Ok(permit);
        }
        // Full: those that nobody asked for a second make room, beside this caller, who may hold a slot's lock.
        let world = Arc::clone(self);
        tokio::spawn(async move { world.passivate(Duration::from_secs(1)).await });
        timeout(self.config.mailbox_timeout, Arc::clone(live).acquire_owned())
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(Rejection::Overloaded)
    }

    async fn recover(&self, space: SpaceId, origin: &Origin) -> Result<SpaceState, Rejection> {
        let _recovering = Recovering::new();
        let waited = timeout(
            self.config.mailbox_timeout.max(Duration::from_secs(1)),
            self.directory.recoveries.acquire(),
        );
        let _permit = waited.await.ok().and_then(Result::ok).ok_or(Rejection::Overloaded)?;
        let began = Instant::now();
        let span = info_span!(parent: &origin.span, "rehydrate", space.id = %space);
        let read = rehydrate(&*self.log, space).instrument(span);
        let state =
            timeout(self.config.recovery_timeout, read).await.unwrap_or(Err(Rejection::LogUnavailable))?;
        metrics::histogram!("browserspace_actor_rehydrate_duration_seconds")
            .record(began.elapsed().as_secs_f64());
        match state {
            SpaceState::Absent(_) => Err(Rejection::SpaceNotFound),
            state @ (SpaceState::Open(_) | SpaceState::Closed(_)) => Ok(state),
        }
    }

    /// Puts the actors to sleep that nobody has asked for `idle` and that have no task. Runtimes stay. Those of closed
    /// Spaces go after [`CLOSED_IDLE_MAX`]: nothing happens there any more, and there is no end to them.
    pub(crate) async fn passivate(&self, idle: Duration) -> usize {
        let millis = |idle: Duration| u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        let (idle_ms, closed_ms) = (millis(idle), millis(idle.min(CLOSED_IDLE_MAX)));
        let candidates: Vec<_> = {
            let now = self.directory.elapsed_ms();
            let slots = self.directory.slots.lock();
            let sleepy = |slot: &&Arc<Slot>| {
                let enough = if slot.closed.load(Ordering::Relaxed) { closed_ms } else { idle_ms };
                !slot.busy.load(Ordering::Relaxed)
                    && now.saturating_sub(slot.asked_at_ms.load(Ordering::Relaxed)) >= enough
            };
            slots.values().filter(sleepy).cloned().collect()
        };
        let mut passivated = 0;
        for slot in candidates {
            passivated += usize::from(self.put_to_sleep(&slot).await);
        }
        passivated
    }

    async fn put_to_sleep(&self, slot: &Arc<Slot>) -> bool {
        // Somebody is waking it: then it is not idle.
        let Ok(mut incarnation) = slot.incarnation.try_lock() else { return false };
        let slept = match &*incarnation {
            Incarnation::Live(actor) => {
                let actor = actor.clone();
                // It takes in what was sent before, and gives back what is sent from now on.
                let _ = actor.stop_gracefully().await;
                actor.wait_for_shutdown().await;
                metrics::counter!("browserspace_actor_passivations_total").increment(1);
                true
            }
            Incarnation::None | Incarnation::Retired => false,
        };
        *incarnation = Incarnation::None;
        if slot.closed.load(Ordering::Relaxed) {
            *incarnation = Incarnation::Retired;
            self.directory.forget(slot);
        }
        slept
    }

    /// Stops every actor; what they were told before is done first.
    pub(crate) async fn stop_actors(&self) {
        let slots: Vec<_> = self.directory.slots.lock().values().cloned().collect();
        for slot in slots {
            let mut incarnation = slot.incarnation.lock().await;
            if let Incarnation::Live(actor) = &*incarnation {
                let _ = actor.stop_gracefully().await;
                actor.wait_for_shutdown().await;
            }
            *incarnation = Incarnation::None;
        }
    }
}
