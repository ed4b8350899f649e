//! What a Space can be asked: by callers, by its runtime, by its supervisor and by the clock. One way in.

use std::time::Duration;

use eventlog::{
    Generation, Json, Redacted, Timestamp,
    event::{
        instance::LossReason,
        space::{CancelReason, CloseReason},
    },
    id::{CapabilityName, OperationId, RequestId, TaskId, WorkspaceId},
    sealing::{Fingerprint, Sealed},
};

use super::start_fault::StartFault;
use crate::{caller::Caller, capability::CheckError, runtime::Outcome};

/// What a Space is asked. (To make one is [`super::Open`]: it is decided over two streams.)
///
/// `Submit`, `Cancel` and `Close` come from callers; the rest only from the server itself and is refused to others.
#[derive(Debug, Clone)]
pub enum Command {
    /// Invoke a capability (S2, S3, S5, S6, S7).
    Submit(Box<Submit>),
    /// Stop the active task (S8). Nothing happens where there is none.
    Cancel {
        /// Why.
        reason: CancelReason,
    },
    /// End the Space (S10). Nothing happens where it is closed or closing.
    Close {
        /// Why.
        reason: CloseReason,
    },
    /// The runtime is done with a step.
    Report(Report),
    /// The runtime did not answer in its time: a cancel was not acknowledged, or the deadline is well past.
    Overdue {
        /// Which dispatch.
        operation: OperationId,
    },
    /// This start of the runtime takes steps.
    RuntimeReady {
        /// Which start.
        generation: Generation,
    },
    /// This start of the runtime is gone.
    RuntimeLost {
        /// Which start.
        generation: Generation,
        /// How.
        reason: LossReason,
    },
    /// The supervisor has given up for a while, and why: the circuit is open.
    RuntimeUnavailable(StartFault),
    /// The state was read back. A running task that nobody executes here was interrupted (S7).
    Recover {
        /// The dispatch that this process is executing for this Space, if any.
        executing: Option<OperationId>,
    },
    /// Time has passed (S14).
    IdleTick {
        /// The last call of the owner that left no event, where one is known.
        last_use: Option<Timestamp>,
    },
    /// The browser did something that the audit trail shall know.
    Notice(Notice),
}

impl Command {
    /// Its name in spans and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Submit(_) => "submit",
            Self::Cancel { .. } => "cancel",
            Self::Close { .. } => "close",
            Self::Report(_) => "report",
            Self::Overdue { .. } => "overdue",
            Self::RuntimeReady { .. } => "runtime_ready",
            Self::RuntimeLost { .. } => "runtime_lost",
            Self::RuntimeUnavailable(_) => "runtime_unavailable",
            Self::Recover { .. } => "recover",
            Self::IdleTick { .. } => "idle_tick",
            Self::Notice(_) => "notice",
        }
    }
}

/// One submit. Ids, the sealed args and the verdict of the catalogue come from the caller of `decide`.
#[derive(Debug, Clone)]
pub struct Submit {
    /// The id that the task will have.
    pub task: TaskId,
    /// The id that its one dispatch will have.
    pub operation: OperationId,
    /// The client's id of this submit.
    pub request_id: RequestId,
    /// What to invoke.
    pub capability: CapabilityName,
    /// What the catalogue says of capability and args: [`Catalogue::check`](crate::capability::Catalogue::check).
    pub checked: Result<(), CheckError>,
    /// The names of the args.
    pub arg_keys: Vec<Redacted<String>>,
    /// What tells a repeat from a conflict.
    pub fingerprint: Fingerprint,
    /// For how long it may run; from 1 s to 600 s.
    pub timeout: Duration,
    /// The args, sealed. Not recorded where the submit is refused: destroy the key then.
    pub sealed_args: Sealed,
}

/// What a runtime reports of a step.
#[derive(Debug, Clone)]
pub struct Report {
    /// Of which task.
    pub task: TaskId,
    /// Of which dispatch.
    pub operation: OperationId,
    /// From which start of the runtime.
    pub generation: Generation,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a browser does by itself.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A page opened a dialog, which waits for an answer.
    DialogOpened {
        /// What it says.
        dialog: Redacted<Json>,
    },
    /// A network request was refused by policy.
    Blocked {
        /// By which rule.
        rule: String,
        /// To where.
        target: Redacted<String>,
        /// How many, where they are not told one by one.
        count: Option<u32>,
    },
}

/// What `decide` has to know besides state and command.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The time.
    pub now: Timestamp,
    /// Who asks.
    pub asker: Asker<'a>,
    /// How the Space's runtime stands, as its supervisor knows it.
    pub runtime: RuntimeStatus,
    /// Whether the server drains.
    pub draining: bool,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub enum Asker<'a> {
    /// The server itself: runtime, supervisor, clock, recovery, drain.
    Server,
    /// A caller, under the Workspace that its request names.
    Caller {
        /// Who.
        caller: &'a Caller,
        /// In which Workspace it believes the Space to be.
        workspace: &'a WorkspaceId,
    },
}

/// How the runtime of a Space stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuntimeStatus {
    /// There is none, and nobody is starting one.
    Stopped,
    /// One is being started, at once or after a back-off.
    Starting,
    /// This start takes steps.
    Ready(Generation),
    /// None will be started for a while: no browser here, or the circuit is open.
    Unavailable {
        /// After how long it is tried again.
        retry_after_ms: u64,
        /// Why not now.
        fault: StartFault,
    },
}
