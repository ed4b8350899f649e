//! One step, beside its actor: handed to the runtime, watched, and reported as a command.
//!
//! ```text
//!  running ──answer──► report
//!     │ deadline + grace, or the actor fires the token
//!     ▼
//!  cancelling ──answer──► report
//!     │ cancel time-out
//!     ▼
//!  overdue: told to the Space, which fails the task and gives the runtime up;
//!           an answer that still comes is reported and ignored there
//! ```
//!
//! Whatever happens here, panics included, a report is made and insisted on: a running task always has somebody who
//! will end it, or the Space's own recovery does.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use eventlog::{Json, Sensitive, event::space::TaskError};
use futures::FutureExt;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use crate::{
    runtime::{Outcome, Step},
    space::{Command, actor::report_command, effect::Execute, failure::Failure, slot::Slot},
    supervisor::Live,
    world::{Origin, World},
};

/// How long an answer that comes too late is still listened for, so that it can be seen to change nothing.
const AFTERLIFE: Duration = Duration::from_secs(60);

/// One dispatch.
pub(crate) struct Job {
    pub(crate) world: Arc<World>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) execute: Execute,
    pub(crate) origin: Origin,
    pub(crate) cancel: CancellationToken,
}

/// Hands the step to the runtime.
pub(crate) fn start(job: Job, args: Sensitive<Json>) {
    let span = info_span!(
        parent: &job.origin.span, "run_step", space.id = %job.slot.space, task.id = %job.execute.task,
        generation = job.execute.generation.0, code = tracing::field::Empty
    );
    tokio::spawn(
        async move {
            let Execute { instance, fence, generation, .. } = job.execute;
            let outcome = match job.world.fleet.live(instance, fence, generation) {
                None => Outcome::Failed(gone(false)),
                Some(live) => run(&job, live, args).await,
            };
            if let Outcome::Failed(error) = &outcome {
                tracing::Span::current().record("code", error.code.as_str());
            }
            deliver(&job, outcome).await;
        }
        .instrument(span),
    );
}

/// Reports without having asked a runtime.
pub(crate) fn report(job: Job, outcome: Outcome) {
    tokio::spawn(async move { deliver(&job, outcome).await });
}

async fn deliver(job: &Job, outcome: Outcome) {
    let command = report_command(&job.execute, outcome);
    job.world.insist(job.slot.space, command, &job.origin).await;
    // Only now: a state that still says running must find the step in hand.
    job.slot.finish(job.execute.operation);
}

async fn run(job: &Job, live: Live, args: Sensitive<Json>) -> Outcome {
    let config = &job.world.config;
    let now = job.world.clock.now();
    let deadline = Instant::now() + job.execute.deadline.since(now);
    let step = Step {
        task: job.execute.task,
        operation: job.execute.operation,
        fence: job.execute.fence,
        capability: job.execute.capability.clone(),
        args,
        deadline: deadline.into_std(),
    };
    let runtime = live.runtime;
    if eventlog::mutant::is("tells_a_browser_twice") {
        let _ = runtime.execute(step.clone(), job.cancel.clone()).await;
    }
    let working = AssertUnwindSafe(runtime.execute(step, job.cancel.clone())).catch_unwind();
    let mut answer = std::pin::pin!(working.map(|answer| {
        answer.unwrap_or_else(|_| {
            error!("A runtime panicked.");
            Outcome::Failed(gone(true))
        })
    }));
    let by_deadline = tokio::select! {
        // In this order, so that the same world always ends the same way: an answer that is there counts.
        biased;
        outcome = &mut answer => return outcome,
        () = job.cancel.cancelled() => false,
        () = sleep_until(deadline + config.deadline_grace) => {
            job.cancel.cancel();
            true
        }
    };
    if eventlog::mutant::is("waits_for_ever") {
        return answer.await;
    }
    match timeout(config.cancel_timeout, &mut answer).await {
        Ok(Outcome::Cancelled) if by_deadline => Outcome::Failed(timed_out()),
        Ok(outcome) => outcome,
        Err(_) => {
            warn!("A runtime did not acknowledge a cancel in time.");
            let overdue = Command::Overdue { operation: job.execute.operation };
            job.world.insist(job.slot.space, overdue, &job.origin).await;
            timeout(AFTERLIFE, answer).await.unwrap_or_else(|_| Outcome::Failed(gone(true)))
        }
    }
}

fn gone(may_have_run: bool) -> TaskError {
    Failure::RuntimeCrashed.saying("the browser ended while the task ran", may_have_run)
}

fn timed_out() -> TaskError {
    Failure::TaskTimeout.saying("the task did not end in its time", true)
}
