//! What every actor of this crate shares: log, clock, ids, keys, limits; and the one way to append.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use eventlog::{
    Append, AppendError, Appended, EventLog, Metadata, Part, Principal, TraceId,
    id::{BootId, CommandId, WorkspaceId},
    sealing::KeyStore,
};
use opentelemetry::trace::TraceContextExt as _;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{
    caller::Context,
    capability::Catalogue,
    clock::{Clock, IdSource},
    config::Config,
    directory::Directory,
    download::keeper::Downloads,
    fleet::Fleet,
    instance::keeper::Instances,
    tokens::Tokens,
    workspace::keeper::Workspaces,
};

/// The shared things. One per server.
pub(crate) struct World {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) keys: Arc<KeyStore>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) config: Config,
    pub(crate) data_dir: PathBuf,
    pub(crate) boot: BootId,
    pub(crate) tokens: Tokens,
    pub(crate) fleet: Fleet,
    pub(crate) directory: Directory,
    pub(crate) instances: Instances,
    pub(crate) workspaces: Workspaces,
    pub(crate) downloads: Downloads,
    pub(crate) draining: AtomicBool,
    /// Set once a drain has come to its end.
    pub(crate) drained: tokio::sync::OnceCell<()>,
    /// Ends the loops.
    pub(crate) stopping: CancellationToken,
}

/// On whose behalf and in which trace something is done.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) principal: Principal,
    pub(crate) trace_id: TraceId,
    pub(crate) span: Span,
    /// Nobody's request led here: it is a piece of the server's own work, in a trace of its own.
    pub(crate) is_own_work: bool,
}

impl Origin {
    /// The server itself, at a piece of work of its own: `span` is its root, and its events carry the trace's id.
    ///
    /// The id is the exporter's, where there is one, else random: the events carry it either way.
    pub(crate) fn own_work(span: Span, ids: &dyn IdSource) -> Self {
        let exported = span.context().span().span_context().trace_id();
        let trace_id = if exported == opentelemetry::TraceId::INVALID {
            TraceId(*ids.uuid().as_bytes())
        } else {
            TraceId(exported.to_bytes())
        };
        Self { principal: Principal::System, trace_id, span, is_own_work: true }
    }

    /// The server itself, going on with what somebody else asked.
    pub(crate) fn on_behalf(&self) -> Self {
        Self { principal: Principal::System, ..self.clone() }
    }
}

impl From<&Context> for Origin {
    fn from(context: &Context) -> Self {
        Self {
            principal: context.caller.principal.clone(),
            trace_id: context.trace_id,
            span: context.span.clone(),
            is_own_work: false,
        }
    }
}

impl World {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// A new name for one append.
    pub(crate) fn command_id(&self) -> CommandId {
        CommandId::from_uuid(self.ids.uuid())
    }

    /// What is kept beside the events of one append.
    pub(crate) fn metadata(&self, origin: &Origin, workspace: Option<WorkspaceId>) -> Metadata {
        Metadata {
            principal: origin.principal.clone(),
            workspace,
            recorded_at: self.clock.now(),
            trace_id: origin.trace_id,
            causation: None,
            boot: self.boot,
        }
    }

    /// Appends, within the time that an append may take; beyond it the outcome is unknown, as with a failed sync.
    pub(crate) async fn append(
        &self,
        origin: &Origin,
        id: CommandId,
        metadata: Metadata,
        parts: Vec<Part>,
    ) -> Result<Appended, AppendError> {
        let span = tracing::debug_span!(parent: &origin.span, "append", position = field::Empty);
        let append = self.log.append(Append { id, metadata, parts });
        let outcome = tokio::time::timeout(self.config.append_timeout, append.instrument(span.clone()))
            .await
            .unwrap_or(Err(AppendError::Unknown));
        if let Ok(Appended::Stored(stored)) = &outcome {
            span.record("position", stored.last.0);
        }
        outcome
    }
}

/// Pauses between attempts to do what must be done: doubling from 50 ms to 5 s.
pub(crate) struct Patience(Duration);

impl Patience {
    pub(crate) const fn new() -> Self {
        Self(Duration::from_millis(50))
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(5));
    }
}
