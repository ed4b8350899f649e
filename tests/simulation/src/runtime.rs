//! Simulated browsers: scripted ones that also end by themselves, and are watched from outside.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actors::runtime::{
    End, Outcome, Runtime, RuntimeFactory, RuntimeSpec, RuntimeStartError, Step, scripted::ScriptedFactory,
};
use async_trait::async_trait;
use eventlog::{
    Generation, Position, Redacted,
    event::{instance::LossReason, space::TaskError},
    id::{InstanceId, TaskId},
};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::log::SimLog;

/// What the browsers saw, over all lives.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Each task that a browser was told, with the durable head of the log at that moment.
    pub(crate) called: Vec<(TaskId, Position)>,
    /// Each task that a browser has said to have stopped on request, with the head at that moment.
    pub(crate) acknowledged: BTreeMap<TaskId, Position>,
    /// Promises that were broken before a browser's eyes.
    pub(crate) broken: Vec<String>,
}

/// Starts the browsers of one life.
pub(crate) struct SimFactory {
    pub(crate) scripted: ScriptedFactory,
    pub(crate) log: SimLog,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) living: Living,
}

/// Browsers of which something is left.
pub(crate) type Living = Arc<Mutex<BTreeMap<InstanceId, Vec<Arc<SimRuntime>>>>>;

/// One browser.
pub(crate) struct SimRuntime {
    inner: Arc<dyn Runtime>,
    instance: InstanceId,
    generation: Generation,
    ended: watch::Sender<Option<End>>,
    /// It has ended by itself: whatever it does is over.
    lost: CancellationToken,
    busy: AtomicBool,
    log: SimLog,
    seen: Arc<Mutex<Seen>>,
    living: Living,
}

impl SimRuntime {
    /// Ends by itself.
    pub(crate) fn lose(&self) {
        end(&self.ended, End::Lost(LossReason::Crashed));
        self.lost.cancel();
    }

    fn broken(&self, what: &str) {
        let Self { instance, generation, .. } = self;
        self.seen.lock().broken.push(format!("{what} (instance {instance}, generation {generation})"));
    }
}

fn end(ended: &watch::Sender<Option<End>>, how: End) {
    ended.send_if_modified(|ended| {
        let first = ended.is_none();
        ended.get_or_insert(how);
        first
    });
}

#[async_trait]
impl RuntimeFactory for SimFactory {
    async fn start(&self, spec: RuntimeSpec) -> Result<Arc<dyn Runtime>, RuntimeStartError> {
        let (instance, generation) = (spec.instance, spec.generation);
        if self.living.lock().get(&instance).is_some_and(|living| !living.is_empty()) {
            let what = format!("a browser is started while another one of {instance} is left");
            self.seen.lock().broken.push(what);
        }
        let inner = self.scripted.start(spec).await?;
        let runtime = Arc::new(SimRuntime {
            instance,
            generation,
            ended: watch::Sender::new(None),
            lost: CancellationToken::new(),
            busy: AtomicBool::new(false),
            log: self.log.clone(),
            seen: Arc::clone(&self.seen),
            living: Arc::clone(&self.living),
            inner,
        });
        self.living.lock().entry(instance).or_default().push(Arc::clone(&runtime));
        let (mut inner_ended, ended) = (runtime.inner.ended(), runtime.ended.clone());
        tokio::spawn(async move {
            if let Ok(Some(how)) = inner_ended.wait_for(Option::is_some).await.as_deref() {
                end(&ended, *how);
            }
        });
        Ok(runtime)
    }

    async fn end_orphans(&self) -> std::io::Result<usize> {
        Ok(0)
    }
}

#[async_trait]
impl Runtime for SimRuntime {
    async fn execute(&self, step: Step, cancel: CancellationToken) -> Outcome {
        let task = step.task;
        self.seen.lock().called.push((task, self.log.head()));
        if self.busy.swap(true, Ordering::Relaxed) {
            self.broken("I1: a browser is told two tasks at once");
        }
        let outcome = tokio::select! {
            biased;
            outcome = self.inner.execute(step, cancel) => outcome,
            () = self.lost.cancelled() => Outcome::Failed(crashed()),
        };
        if outcome == Outcome::Cancelled {
            self.seen.lock().acknowledged.insert(task, self.log.head());
        }
        self.busy.store(false, Ordering::Relaxed);
        outcome
    }

    fn ended(&self) -> watch::Receiver<Option<End>> {
        self.ended.subscribe()
    }

    async fn stop(&self) {
        self.inner.stop().await;
        // Ending a browser takes a while; nobody may start the next one meanwhile.
        tokio::time::sleep(Duration::from_millis(5)).await;
        if let Some(living) = self.living.lock().get_mut(&self.instance) {
            living.retain(|runtime| runtime.generation != self.generation);
        }
    }
}

fn crashed() -> TaskError {
    TaskError {
        code: "runtime_crashed".to_owned(),
        message: Redacted::own("the simulated browser ended"),
        retryable: true,
        may_have_run: true,
        details: None,
    }
}
