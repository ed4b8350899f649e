//! The runtimes of this server: at most one supervisor per held instance.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use eventlog::{
    Fence, Generation,
    event::instance::{InstanceKind, LossReason},
    id::{InstanceId, SpaceId},
};
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{field, info_span, warn};

use crate::{
    environment::InEnvironment,
    instance,
    runtime::{Runtime, RuntimeFactory, RuntimeSpec, RuntimeStartError},
    space::{self, RuntimeStatus, StartFault},
    supervisor::{Live, Reports, Standing, Supervisor},
    world::{Origin, Patience, World},
};

/// Starts what each kind of instance is driven by.
#[derive(Clone, Default)]
pub struct Factories(HashMap<InstanceKind, Arc<dyn RuntimeFactory>>);

impl Factories {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with `factory` for instances of `kind`.
    #[must_use]
    pub fn with(mut self, kind: InstanceKind, factory: Arc<dyn RuntimeFactory>) -> Self {
        self.0.insert(kind, factory);
        self
    }
}

#[async_trait]
impl RuntimeFactory for Factories {
    async fn start(&self, spec: RuntimeSpec) -> Result<Arc<dyn Runtime>, RuntimeStartError> {
        match self.0.get(&spec.kind) {
            Some(factory) => factory.start(spec).await,
            None => Err(StartFault::KindNotDriven.into()),
        }
    }

    async fn end_orphans(&self) -> std::io::Result<usize> {
        let mut ended = 0;
        for factory in self.0.values() {
            ended += factory.end_orphans().await?;
        }
        Ok(ended)
    }
}

/// The supervisors, by instance.
pub(crate) struct Fleet {
    factory: Arc<dyn RuntimeFactory>,
    /// In order: they are stopped in the same order each time.
    kept: Mutex<BTreeMap<InstanceId, Kept>>,
}

#[derive(Clone)]
struct Kept {
    space: SpaceId,
    fence: Fence,
    supervisor: Supervisor,
}

impl Fleet {
    pub(crate) fn new(factories: Factories) -> Self {
        Self { factory: Arc::new(factories), kept: Mutex::default() }
    }

    /// Ends what an earlier server left alive.
    pub(crate) async fn end_orphans(&self) -> std::io::Result<usize> {
        self.factory.end_orphans().await
    }

    /// Keeps a runtime for this reservation; does nothing if it is kept already. The runtime of an earlier reservation
    /// is ended first, and only then is the new one started.
    pub(crate) fn keep(&self, world: &Arc<World>, spec: RuntimeSpec) {
        let mut kept = self.kept.lock();
        let last = kept.get(&spec.instance);
        if world.is_draining() || last.is_some_and(|last| last.fence >= spec.fence) {
            return;
        }
        let spec = RuntimeSpec { desk: crate::download::Desk::of(world, spec.space), ..spec };
        let reports = HeldReports::new(Arc::clone(world), spec.instance, spec.space);
        let (instance, space, fence) = (spec.instance, spec.space, spec.fence);
        let supervisor = Supervisor::start(
            last.map(|last| last.supervisor.clone()),
            spec,
            Arc::new(InEnvironment { factory: Arc::clone(&self.factory), log: Arc::clone(&world.log) }),
            Arc::new(reports),
            Arc::clone(&world.ids),
            world.config.restarts,
        );
        kept.insert(instance, Kept { space, fence, supervisor });
    }

    /// Ends the runtime of this reservation, and forgets it once nothing of it is left.
    pub(crate) fn release(&self, world: &Arc<World>, instance: InstanceId, fence: Fence) {
        let Some(kept) = self.kept(instance, fence) else { return };
        let world = Arc::clone(world);
        tokio::spawn(async move {
            kept.supervisor.stop().await;
            let mut all = world.fleet.kept.lock();
            if all.get(&instance).is_some_and(|kept| kept.fence == fence) {
                all.remove(&instance);
            }
        });
    }

    /// Gives one start up: it no longer answers.
    pub(crate) fn condemn(&self, instance: InstanceId, generation: Generation) {
        if let Some(kept) = self.kept.lock().get(&instance) {
            kept.supervisor.condemn(generation);
        }
    }

    /// How the runtime of this reservation stands.
    pub(crate) fn status(&self, instance: InstanceId, fence: Fence) -> RuntimeStatus {
        match self.kept(instance, fence).map(|kept| kept.supervisor.standing()) {
            None => RuntimeStatus::Stopped,
            Some(Standing::Starting) => RuntimeStatus::Starting,
            Some(Standing::Ready(live)) => RuntimeStatus::Ready(live.generation),
            Some(Standing::Unavailable { probe_at, fault }) => {
                let left = probe_at.saturating_duration_since(tokio::time::Instant::now());
                let retry_after_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
                RuntimeStatus::Unavailable { retry_after_ms, fault }
            }
        }
    }

    /// This start of this reservation's runtime, while it takes steps.
    pub(crate) fn live(&self, instance: InstanceId, fence: Fence, generation: Generation) -> Option<Live> {
        self.kept(instance, fence)?.supervisor.live().filter(|live| live.generation == generation)
    }

    /// How the runtime of this Space stands, from now on; `None` where it holds none.
    pub(crate) fn watch(&self, space: SpaceId) -> Option<watch::Receiver<Standing>> {
        let kept = self.kept.lock();
        kept.values().find(|kept| kept.space == space).map(|kept| kept.supervisor.watch())
    }

    /// Ends every runtime; returns once nothing of them is left.
    pub(crate) async fn stop_all(&self) {
        let supervisors: Vec<_> = self.kept.lock().values().map(|kept| kept.supervisor.clone()).collect();
        futures::future::join_all(supervisors.iter().map(Supervisor::stop)).await;
        self.kept.lock().clear();
    }

    fn kept(&self, instance: InstanceId, fence: Fence) -> Option<Kept> {
        self.kept.lock().get(&instance).filter(|kept| kept.fence == fence).cloned()
    }
}

/// Records a supervisor's news and tells them to the Space that holds the instance.
struct HeldReports {
    world: Arc<World>,
    instance: InstanceId,
    space: SpaceId,
    /// The piece of work that the news belong to: one start of the runtime, up to its end.
    start: Mutex<Origin>,
}

/// How long a supervisor waits for the Space to hear its news. Telling goes on beyond that, beside it.
const TELL_TIMEOUT: Duration = Duration::from_secs(2);
/// So often a supervisor tries to record its news before it goes on without: the next start heals the record.
const RECORD_ATTEMPTS: u32 = 4;

impl HeldReports {
    fn new(world: Arc<World>, instance: InstanceId, space: SpaceId) -> Self {
        let start = Mutex::new(Self::next_start(&world, instance, space));
        Self { world, instance, space, start }
    }

    fn next_start(world: &World, instance: InstanceId, space: SpaceId) -> Origin {
        let span = info_span!(
            parent: None, "runtime", instance.id = %instance, space.id = %space, generation = field::Empty
        );
        Origin::own_work(span, &*world.ids)
    }

    fn origin(&self) -> Origin {
        self.start.lock().clone()
    }

    /// Tells the Space, however long that takes, and waits for it a little.
    async fn tell(&self, command: space::Command) {
        let (world, space, origin) = (Arc::clone(&self.world), self.space, self.origin());
        let told = tokio::spawn(async move { world.insist(space, command, &origin).await });
        // Beyond the time-out the task goes on by itself.
        let _ = tokio::time::timeout(TELL_TIMEOUT, told).await;
    }

    async fn record(&self, command: instance::Command) {
        let (mut patience, origin) = (Patience::new(), self.origin());
        for _ in 0..RECORD_ATTEMPTS {
            let recorded =
                self.world.instances.tell(&self.world, self.instance, command.clone(), &origin).await;
            match recorded {
                Ok(_) => return,
                Err(rejection) if rejection.is_passing() => patience.wait().await,
                Err(rejection) => {
                    warn!(instance.id = %self.instance, code = rejection.code(), "News of a runtime refused.");
                    return;
                }
            }
        }
        warn!(instance.id = %self.instance, "News of a runtime could not be recorded.");
    }
}

#[async_trait]
impl Reports for HeldReports {
    async fn starting(&self) -> Option<Generation> {
        let origin = Self::next_start(&self.world, self.instance, self.space);
        *self.start.lock() = origin.clone();
        let begun = self.world.instances.begin_start(&self.world, self.instance, self.space, &origin).await;
        let generation = begun.ok()?;
        origin.span.record("generation", generation.0);
        Some(generation)
    }

    async fn ready(&self, generation: Generation) {
        self.record(instance::Command::NoteReady { generation }).await;
        self.tell(space::Command::RuntimeReady { generation }).await;
    }

    async fn lost(&self, generation: Generation, reason: LossReason) {
        self.tell(space::Command::RuntimeLost { generation, reason }).await;
        self.record(instance::Command::NoteLost { generation, reason }).await;
    }

    async fn circuit_opened(&self, losses: u32, retry_after: Duration, fault: StartFault) {
        let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        self.record(instance::Command::OpenCircuit { losses, retry_after_ms }).await;
        self.tell(space::Command::RuntimeUnavailable(fault)).await;
    }

    async fn noticed(&self, notice: space::Notice) {
        self.tell(space::Command::Notice(notice)).await;
    }

    async fn stopped(&self, generation: Generation) {
        self.record(instance::Command::NoteStopped { generation }).await;
    }
}
