//! What drives a browser: the contract between the actors and the work, and its implementations.
//!
//! A [`Runtime`] is one start of a browser for one Space: one generation. It is told one step at a time and answers
//! with an [`Outcome`]; it does not know events or states. [`RuntimeFactory`] starts them and, at the server's start,
//! ends what an earlier server left behind.

pub mod chromium;
pub(crate) mod fence;
pub mod journal;
pub(crate) mod sample;
pub mod scripted;

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
/// One picture of a live view.
pub use browser::ScreencastFrame;
/// Finds the Chromium to run: the configured one, or that of the usual places.
pub use browser::find_executable;
/// Whether a process can be given a network of its own here.
pub use browser::try_seclusion;
use eventlog::{
    Fence, Generation, Json, Redacted, Sensitive,
    event::{
        environment::Environment,
        instance::{Bundle, InstanceKind, LossReason, NetworkPolicy},
        space::{ArtifactRecord, TaskError},
    },
    id::{CapabilityName, InstanceId, OperationId, SpaceId, TaskId},
};
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use crate::space::{Notice, StartFault};

/// What to start.
#[derive(Debug, Clone)]
pub struct RuntimeSpec {
    /// For which Space.
    pub space: SpaceId,
    /// On which instance.
    pub instance: InstanceId,
    /// Of which kind.
    pub kind: InstanceKind,
    /// With which capabilities.
    pub bundle: Bundle,
    /// Reaching what.
    pub network_policy: NetworkPolicy,
    /// With or without a window.
    pub headless: bool,
    /// Which start this is.
    pub generation: Generation,
    /// Under which reservation.
    pub fence: Fence,
    /// What its pages are told of the place that they are in.
    pub environment: Environment,
    /// Where it hands in what pages download.
    pub desk: crate::download::Desk,
}

/// One invocation.
#[derive(Debug, Clone)]
pub struct Step {
    /// Of which task.
    pub task: TaskId,
    /// Its one dispatch.
    pub operation: OperationId,
    /// Under which reservation; an older one than the runtime's is refused.
    pub fence: Fence,
    /// What to do.
    pub capability: CapabilityName,
    /// With what; already checked against the schema.
    pub args: Sensitive<Json>,
    /// The runtime has stopped by then, with or without a result.
    pub deadline: Instant,
}

/// What a step came to. In every case the runtime has stopped working on it and has cleaned up.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It did what it was asked. `result` is redacted and bounded (S13).
    Completed {
        /// What it gave.
        result: Redacted<Json>,
        /// What files it made; their bytes are on disk.
        artifacts: Vec<ArtifactRecord>,
    },
    /// It did not.
    Failed(TaskError),
    /// It stopped because its token was cancelled, and has cleaned up.
    Cancelled,
}

/// How a runtime ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// [`Runtime::stop`] was asked.
    Stopped,
    /// By itself.
    Lost(LossReason),
}

/// One start of a browser.
#[async_trait]
pub trait Runtime: Send + Sync + 'static {
    /// Does one step. Cancel-safe by token, not by drop: after `cancel` fires it returns once it has cleaned up.
    /// If the browser is gone it returns at once with `runtime_crashed`.
    async fn execute(&self, step: Step, cancel: CancellationToken) -> Outcome;

    /// `Some` once the browser has ended, for whatever reason.
    fn ended(&self) -> watch::Receiver<Option<End>>;

    /// What the browser does by itself from now on, for the audit trail. Asked once, when it takes steps; bounded, so
    /// what comes faster than it is taken may be left out.
    fn notices(&self) -> BoxStream<'static, Notice> {
        stream::empty().boxed()
    }

    /// Its picture as it changes, drawn while somebody watches; `None` where it has none.
    fn screencast(&self) -> Option<watch::Receiver<Option<ScreencastFrame>>> {
        None
    }

    /// Ends the browser and everything it started, and removes what it kept; returns once nothing of it is left.
    async fn stop(&self);
}

/// Why a runtime did not start.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{said}")]
pub struct RuntimeStartError {
    /// What callers are told.
    pub fault: StartFault,
    /// What the system said; for the log of the program alone.
    pub said: Redacted<String>,
}

impl From<StartFault> for RuntimeStartError {
    fn from(fault: StartFault) -> Self {
        Self { fault, said: Redacted::own(fault.message()) }
    }
}

/// Starts runtimes of one or more kinds.
#[async_trait]
pub trait RuntimeFactory: Send + Sync + 'static {
    /// Starts one; returns once it takes steps.
    async fn start(&self, spec: RuntimeSpec) -> Result<Arc<dyn Runtime>, RuntimeStartError>;

    /// Ends every runtime that an earlier server on the same data folder left alive, and removes what it kept.
    /// Nobody else's browser is touched: identity is pid, start time and profile. Returns how many were ended.
    async fn end_orphans(&self) -> std::io::Result<usize>;
}
