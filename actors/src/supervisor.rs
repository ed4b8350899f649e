//! Who restarts a runtime, how often, and what is recorded when it gives up.
//!
//! ```text
//!            ┌──────────── back-off ◄───────────┐
//!            ▼                                  │ fewer than 5 losses in 60 s
//!  start ► starting ──ok──► ready ──ended──► losing ──5th──► circuit open
//!            ▲ │                                ▲                 │ 60 s
//!            │ └────────── did not start ───────┘                 │
//!            └───────────────────── one probe ◄───────────────────┘
//! ```
//!
//! kameo's own supervisor is not used: it has no back-off, its window does not slide, and it starts the next
//! incarnation while the last one still cleans up, which would be two browsers on one reservation. Here one loop owns
//! one instance's runtime: the next start is written down only after the last `stop()` has returned, so two
//! incarnations have no way to meet. What it learns it tells to a [`Reports`]; it knows neither log nor Space.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use async_trait::async_trait;
use eventlog::{Generation, event::instance::LossReason};
use futures::{FutureExt as _, StreamExt as _};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{
    clock::IdSource,
    runtime::{End, Runtime, RuntimeFactory, RuntimeSpec, RuntimeStartError},
    space::{Notice, StartFault},
};

/// How patient a supervisor is.
#[derive(Debug, Clone, Copy)]
pub struct RestartPolicy {
    /// Pause before the first restart; doubles with every loss in the window. Default 100 ms.
    pub backoff_base: Duration,
    /// The longest pause. Default 30 s.
    pub backoff_max: Duration,
    /// How far a pause may be off, as a share of it, in either direction. Default 0.2.
    pub jitter: f64,
    /// So many losses within `window` open the circuit. Default 5.
    pub losses_max: usize,
    /// How far back a loss counts. Default 60 s.
    pub window: Duration,
    /// How long the circuit stays open before one probe. Default 60 s.
    pub circuit_open: Duration,
    /// The longest that a start may take. Default 45 s: the factory's own limit and its cleaning up.
    pub start_timeout: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            backoff_base: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            jitter: 0.2,
            losses_max: 5,
            window: Duration::from_secs(60),
            circuit_open: Duration::from_secs(60),
            start_timeout: Duration::from_secs(45),
        }
    }
}

/// Where a supervisor's news go. Every method returns once the news is recorded, or can't be.
#[async_trait]
pub(crate) trait Reports: Send + Sync + 'static {
    /// Records that the next start begins; answers with its generation, or `None` if it can't be recorded now (then
    /// nothing is started).
    async fn starting(&self) -> Option<Generation>;
    /// It takes steps.
    async fn ready(&self, generation: Generation);
    /// Its browser did something by itself.
    async fn noticed(&self, notice: Notice);
    /// It is gone without having been asked.
    async fn lost(&self, generation: Generation, reason: LossReason);
    /// No start for so long, and why.
    async fn circuit_opened(&self, losses: u32, retry_after: Duration, fault: StartFault);
    /// It was stopped because it was asked.
    async fn stopped(&self, generation: Generation);
}

/// A runtime that takes steps.
#[derive(Clone)]
pub(crate) struct Live {
    /// Which start it is.
    pub(crate) generation: Generation,
    /// What takes the steps.
    pub(crate) runtime: Arc<dyn Runtime>,
}

/// How a supervised runtime stands.
#[derive(Clone)]
pub(crate) enum Standing {
    /// It is being started, at once or after a back-off.
    Starting,
    /// It takes steps.
    Ready(Live),
    /// None is started for a while.
    Unavailable {
        /// The next start is tried at this moment.
        probe_at: Instant,
        /// Why the last one came to nothing.
        fault: StartFault,
    },
}

/// The owner of one instance's runtime. Cheap to clone; the loop ends with [`stop`](Self::stop).
#[derive(Clone)]
pub(crate) struct Supervisor {
    standing: watch::Receiver<Standing>,
    condemned: watch::Sender<Generation>,
    stop: CancellationToken,
    done: CancellationToken,
}

impl Supervisor {
    /// Starts the loop, and with it the first runtime: once `after`, the instance's last supervisor, has ended its own.
    pub(crate) fn start(
        after: Option<Self>,
        spec: RuntimeSpec,
        factory: Arc<dyn RuntimeFactory>,
        reports: Arc<dyn Reports>,
        ids: Arc<dyn IdSource>,
        policy: RestartPolicy,
    ) -> Self {
        let (standing, receiver) = watch::channel(Standing::Starting);
        let (condemned, condemnations) = watch::channel(Generation::ZERO);
        let (stop, done) = (CancellationToken::new(), CancellationToken::new());
        let mut supervision = Supervision {
            spec,
            factory,
            reports,
            ids,
            policy,
            standing,
            condemnations,
            stop: stop.clone(),
            losses: VecDeque::new(),
            figure: Figure::default(),
        };
        let ended = done.clone().drop_guard();
        tokio::spawn(async move {
            // Held by the task, so that a panic in here also releases who waits in `stop`.
            let _ended = ended;
            if let Some(last) = after {
                last.stop().await;
            }
            supervision.run().await;
        });
        Self { standing: receiver, condemned, stop, done }
    }

    /// How the runtime stands now.
    pub(crate) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// How the runtime stands, from now on; ends with the supervisor.
    pub(crate) fn watch(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// The runtime, where one takes steps now.
    pub(crate) fn live(&self) -> Option<Live> {
        match self.standing() {
            Standing::Ready(live) => Some(live),
            Standing::Starting | Standing::Unavailable { .. } => None,
        }
    }

    /// Gives this start up: it no longer answers. The loop ends it and starts the next.
    pub(crate) fn condemn(&self, generation: Generation) {
        self.condemned.send_if_modified(|newest| {
            let newer = generation > *newest;
            if newer {
                *newest = generation;
            }
            newer
        });
    }

    /// Ends the runtime for good; returns once nothing of it is left. Idempotent.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.done.cancelled().await;
    }
}

/// What the loop owns.
struct Supervision {
    spec: RuntimeSpec,
    factory: Arc<dyn RuntimeFactory>,
    reports: Arc<dyn Reports>,
    ids: Arc<dyn IdSource>,
    policy: RestartPolicy,
    standing: watch::Sender<Standing>,
    condemnations: watch::Receiver<Generation>,
    stop: CancellationToken,
    losses: VecDeque<Instant>,
    figure: Figure,
}

/// How one runtime stands, as a figure: `browserspace_runtime_state` counts the runtimes in each state.
#[derive(Default)]
struct Figure(Option<&'static str>);

impl Figure {
    fn is(&mut self, state: Option<&'static str>) {
        if let Some(last) = std::mem::replace(&mut self.0, state) {
            metrics::gauge!("browserspace_runtime_state", "state" => last).decrement(1.0);
        }
        if let Some(state) = state {
            metrics::gauge!("browserspace_runtime_state", "state" => state).increment(1.0);
        }
    }
}

impl Drop for Figure {
    fn drop(&mut self) {
        self.is(None);
    }
}

/// How one incarnation ended.
enum Ended {
    Asked,
    Lost(StartFault),
    /// A retry would change nothing.
    Unusable(StartFault),
    /// The log took no `starting`: nothing was started.
    NotRecorded,
}

impl Supervision {
    async fn run(&mut self) {
        while !self.stop.is_cancelled() {
            self.figure.is(Some("starting"));
            let ended = self.incarnation().await;
            self.figure.is(Some("backoff"));
            let pause = match ended {
                Ended::Asked => return,
                Ended::NotRecorded => self.policy.backoff_base * 10,
                Ended::Lost(fault) => self.count_loss(fault).await,
                Ended::Unusable(fault) => self.open_circuit(fault).await,
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// One start and its life; when this returns, nothing of it is left.
    async fn incarnation(&mut self) -> Ended {
        // A probe does not make an open circuit look closed: only its success does.
        let Some(generation) = self.reports.starting().await else {
            return Ended::NotRecorded;
        };
        let spec = RuntimeSpec { generation, ..self.spec.clone() };
        // A stop waits for the start to come to its end: a half-started browser is nobody's to kill but the factory's.
        let started = timeout(self.policy.start_timeout, self.factory.start(spec)).await;
        let runtime = match started {
            Ok(Ok(runtime)) => runtime,
            Ok(Err(reason)) => return self.did_not_start(generation, &reason).await,
            Err(_) => {
                error!(instance.id = %self.spec.instance, %generation, "A runtime's start overran its limit.");
                self.reports.lost(generation, LossReason::StartFailed).await;
                return Ended::Lost(StartFault::Overdue);
            }
        };
        let live = Live { generation, runtime: Arc::clone(&runtime) };
        self.standing.send_replace(Standing::Ready(live));
        self.figure.is(Some("ready"));
        self.reports.ready(generation).await;
        info!(instance.id = %self.spec.instance, %generation, "Runtime ready.");
        let lost = self.life(generation, &*runtime).await;
        self.standing.send_replace(Standing::Starting);
        if let Some(reason) = lost {
            metrics::counter!("browserspace_runtime_restarts_total").increment(1);
            warn!(instance.id = %self.spec.instance, %generation, ?reason, "Runtime lost.");
            // Told before the cleaning up: the running task fails now, not when the last process is reaped.
            self.reports.lost(generation, reason).await;
            if !eventlog::mutant::is("starts_before_the_last_is_gone") {
                runtime.stop().await;
            }
            Ended::Lost(StartFault::LostAgain)
        } else {
            runtime.stop().await;
            self.reports.stopped(generation).await;
            Ended::Asked
        }
    }

    async fn did_not_start(&self, generation: Generation, reason: &RuntimeStartError) -> Ended {
        warn!(instance.id = %self.spec.instance, %generation, %reason, "Runtime did not start.");
        self.reports.lost(generation, LossReason::StartFailed).await;
        if reason.fault.may_pass() { Ended::Lost(reason.fault) } else { Ended::Unusable(reason.fault) }
    }

    /// Waits for the end of a ready runtime; `None` if it was asked to end.
    async fn life(&mut self, generation: Generation, runtime: &dyn Runtime) -> Option<LossReason> {
        let mut ended = runtime.ended();
        let gone = async {
            match ended.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(End::Lost(reason))) => *reason,
                // Nobody but this loop may stop it: an end without our asking is a loss, whatever it calls itself.
                Ok(_) | Err(_) => LossReason::Crashed,
            }
        };
        let condemned = self.condemnations.wait_for(|condemned| *condemned >= generation);
        // Told beside the watch: a Space that is slow to hear a notice does not delay the news of an end.
        let notices = runtime.notices().for_each(|notice| self.reports.noticed(notice));
        let noticing = notices.then(|()| std::future::pending());
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            reason = gone => Some(reason),
            Ok(_) = condemned => Some(LossReason::Wedged),
            never = noticing => match never {},
        }
    }

    /// The pause before the next start.
    async fn count_loss(&mut self, fault: StartFault) -> Duration {
        let now = Instant::now();
        self.losses.push_back(now);
        while self.losses.front().is_some_and(|loss| now.duration_since(*loss) >= self.policy.window) {
            self.losses.pop_front();
        }
        if self.losses.len() >= self.policy.losses_max {
            return self.open_circuit(fault).await;
        }
        let doublings = u32::try_from(self.losses.len() - 1).unwrap_or(u32::MAX).min(30);
        let pause = self.policy.backoff_base.saturating_mul(1 << doublings).min(self.policy.backoff_max);
        pause.mul_f64(1.0 + self.policy.jitter * (2.0 * self.ids.fraction() - 1.0))
    }

    /// One loss short of the limit stays in the window, so that a probe which fails opens the circuit again at once.
    async fn open_circuit(&mut self, fault: StartFault) -> Duration {
        self.figure.is(Some("open"));
        let losses = u32::try_from(self.losses.len().max(1)).unwrap_or(u32::MAX);
        let probe_at = Instant::now() + self.policy.circuit_open;
        self.standing.send_replace(Standing::Unavailable { probe_at, fault });
        self.reports.circuit_opened(losses, self.policy.circuit_open, fault).await;
        self.losses = std::iter::repeat_n(probe_at, self.policy.losses_max.saturating_sub(1)).collect();
        self.policy.circuit_open
    }
}

#[cfg(test)]
#[path = "supervisor_tests.rs"]
mod tests;
