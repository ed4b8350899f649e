//! The refusal of a command: nothing was recorded (but for the refusals that an auditor must see; those name their task).

use eventlog::{StreamId, id::TaskId};

/// Why a command was refused. `code()` is stable and listed in `docs/errors.md`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The caller may not enter the Workspace, is not the Space's owner, or its role does not allow this.
    #[error("you may not do this here")]
    Forbidden,
    /// There is no such Space in this Workspace.
    #[error("there is no such Space")]
    SpaceNotFound,
    /// There is no such instance, or it is not for this Workspace.
    #[error("there is no such browser instance")]
    InstanceNotFound,
    /// There is no such binding, it is revoked, or it is for another owner or instance.
    #[error("there is no such binding")]
    BindingNotFound,
    /// There is no such task in this Space.
    #[error("there is no such task")]
    TaskNotFound,
    /// There is no such token.
    #[error("there is no such token")]
    TokenNotFound,
    /// Another Space holds the instance.
    #[error("another Space holds this browser instance")]
    BrowserInstanceInUse,
    /// The instance is retired.
    #[error("this browser instance is retired")]
    InstanceRetired,
    /// The Space is closed or closing.
    #[error("the Space is closed")]
    SpaceClosed,
    /// A task of this Space is queued or running.
    #[error("a task of this Space is in progress")]
    SpaceTaskInProgress {
        /// Which.
        task: TaskId,
    },
    /// The Space's runtime is being restarted.
    #[error("the Space's browser is being restarted")]
    SpaceInError,
    /// The same `request_id` (or idempotency key) was used for something else.
    #[error("this id was used for a different request")]
    RequestIdConflict,
    /// A field is out of its range.
    #[error("{field}: {problem}")]
    InvalidRequest {
        /// Which field.
        field: &'static str,
        /// What is wrong with it, in words of ours.
        problem: String,
    },
    /// No such capability in the catalogue.
    #[error("there is no such capability")]
    CapabilityUnknown,
    /// The Space was not granted it, or the instance's bundle has it not.
    #[error("this Space was not granted that capability")]
    CapabilityNotGranted {
        /// The task that records the refusal, where one was asked for.
        task: Option<TaskId>,
    },
    /// The args do not fit the capability's schema.
    #[error("the args do not fit the capability's schema")]
    InvalidArgs {
        /// JSON pointer and what is wrong there; never the value itself.
        problems: Vec<String>,
    },
    /// The runtime can't take tasks: browser missing, circuit open.
    #[error("the browser is not ready")]
    RuntimeNotReady {
        /// The task that records the refusal, where one was asked for.
        task: Option<TaskId>,
        /// After how long a retry is sensible.
        retry_after_ms: u64,
    },
    /// A mailbox or a bound is full; nothing was done.
    #[error("the server is overloaded")]
    Overloaded,
    /// The server is draining; nothing was done.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The log takes no writes; nothing was done.
    #[error("the log is unavailable")]
    LogUnavailable,
    /// The append was sent, and nobody knows whether it is durable: repeat with the same id.
    #[error("the outcome is unknown; repeat with the same request_id")]
    OutcomeUnknown,
    /// Its stream can't be read back as a whole; it is quarantined, others live.
    #[error("the recorded history of {stream} is damaged")]
    CorruptStream {
        /// Which.
        stream: StreamId,
    },
    /// A bug of ours.
    #[error("internal error")]
    Internal,
}

impl Rejection {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::SpaceNotFound => "space_not_found",
            Self::InstanceNotFound => "instance_not_found",
            Self::BindingNotFound => "binding_not_found",
            Self::TaskNotFound => "task_not_found",
            Self::TokenNotFound => "token_not_found",
            Self::BrowserInstanceInUse => "browser_instance_in_use",
            Self::InstanceRetired => "instance_retired",
            Self::SpaceClosed => "space_closed",
            Self::SpaceTaskInProgress { .. } => "space_task_in_progress",
            Self::SpaceInError => "space_in_error",
            Self::RequestIdConflict => "request_id_conflict",
            Self::InvalidRequest { .. } => "invalid_request",
            Self::CapabilityUnknown => "capability_unknown",
            Self::CapabilityNotGranted { .. } => "capability_not_granted",
            Self::InvalidArgs { .. } => "invalid_args",
            Self::RuntimeNotReady { .. } => "runtime_not_ready",
            Self::Overloaded => "overloaded",
            Self::ShuttingDown => "shutting_down",
            Self::LogUnavailable => "log_unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::CorruptStream { .. } => "corrupt_stream",
            Self::Internal => "internal",
        }
    }

    /// Whether the same command may go through later although nothing else has changed: the server itself, which must
    /// get its news recorded, then tries again.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Overloaded
                | Self::LogUnavailable
                | Self::OutcomeUnknown
                | Self::Internal
                | Self::ShuttingDown
        )
    }
}
