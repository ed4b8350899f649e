//! The refusal of a command: nothing was recorded (but for the refusals that an auditor must see; those name their task).

use eventlog::{
    Redactor, Role, StreamId,
    id::{CapabilityName, OwnerId, TaskId},
};

use crate::space::StartFault;

/// Why somebody may not do something: what they lack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The caller has none of these roles.
    #[error("this needs the role {}", or(.0))]
    Role(&'static [Role]),
    /// The caller may not enter the Workspace, be it there or not.
    #[error("your token does not enter this Workspace")]
    Workspace,
    /// What is asked is about every Workspace.
    #[error("this needs a token that enters every Workspace")]
    EveryWorkspace,
    /// What is asked is also about Workspaces that the caller may not enter.
    #[error("this needs a token that enters each of the instance's Workspaces")]
    EachWorkspace,
    /// The Space is somebody else's.
    #[error("this Space belongs to another owner")]
    Owner,
    /// An agent wanted to make something for somebody else.
    #[error("owner_type must be runtime_agent and owner_id your own: {0}")]
    OwnId(OwnerId),
    /// Nobody may tell this but the server itself.
    #[error("only the server itself does this")]
    ServerOnly,
}

fn or(roles: &[Role]) -> String {
    let word = |role: &Role| match role {
        Role::RuntimeAgent => "runtime_agent",
        Role::Operator => "operator",
        Role::Auditor => "auditor",
    };
    roles.iter().map(word).collect::<Vec<_>>().join(" or ")
}

/// Why a command was refused. `code()` is stable and listed in `docs/errors.md`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The caller may not enter the Workspace, is not the Space's owner, or its role does not allow this.
    #[error(transparent)]
    Forbidden(#[from] Denial),
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
    /// There is no such download, it is not captured, or it is gone: rejected, expired, removed, or not on the disk.
    #[error("the download is not there")]
    DownloadGone,
    /// The captured bytes are not those of the receipt.
    #[error("the download is not what was captured")]
    DownloadTampered,
    /// The download was decided otherwise, or something else has the name of one of its files.
    #[error("the download was decided otherwise, or another file has its place")]
    DownloadConflict,
    /// The disk refused; what was asked may be asked again.
    #[error("the disk refused")]
    StorageUnavailable,
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
    #[error("{}", unknown(*.at))]
    CapabilityUnknown {
        /// In which list and at which index, where it was one of many. Its name is not told: a secret may be there.
        at: Option<(&'static str, usize)>,
    },
    /// The Space was not granted it, or the instance's bundle has it not.
    #[error("{}", not_granted(.capability, .task.is_some()))]
    CapabilityNotGranted {
        /// Which.
        capability: CapabilityName,
        /// The task that records the refusal, where one was asked for.
        task: Option<TaskId>,
    },
    /// The args do not fit the capability's schema.
    #[error("the args do not fit: {}", .problems.first().map_or("", String::as_str))]
    InvalidArgs {
        /// JSON pointer and what is wrong there; never the value itself.
        problems: Vec<String>,
    },
    /// A runtime of this kind has no picture.
    #[error("this kind of browser instance has no live view")]
    NoLiveView,
    /// The runtime can't take tasks: browser missing, circuit open.
    #[error("{}", .fault.map_or("the browser is not ready", StartFault::message))]
    RuntimeNotReady {
        /// The task that records the refusal, where one was asked for.
        task: Option<TaskId>,
        /// After how long it is tried again.
        retry_after_ms: u64,
        /// Why it could not be started, where that was tried.
        fault: Option<StartFault>,
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

fn unknown(at: Option<(&'static str, usize)>) -> String {
    let listed = |(field, index)| format!("{field}: entry {index} is no capability");
    at.map_or_else(|| "there is no such capability".to_owned(), listed)
}

fn not_granted(capability: &CapabilityName, of_space: bool) -> String {
    if of_space {
        format!("this Space was not granted {capability}")
    } else {
        format!("{capability} is not in the instance's bundle, or not in the binding")
    }
}

/// Refuses an id or a name that looks like a secret (S4). What a caller calls things is recorded and shown as it is:
/// masked, two of them could become one. The refusal does not repeat it.
///
/// # Errors
/// [`Rejection::InvalidRequest`] about `field`.
pub(crate) fn check_plain(field: &'static str, text: &str) -> Result<(), Rejection> {
    if Redactor::new().text(text).get() == text {
        return Ok(());
    }
    let problem = "must not look like a secret: it is recorded, and shown as it is".to_owned();
    Err(Rejection::InvalidRequest { field, problem })
}

impl Rejection {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Forbidden(_) => "forbidden",
            Self::SpaceNotFound => "space_not_found",
            Self::InstanceNotFound => "instance_not_found",
            Self::BindingNotFound => "binding_not_found",
            Self::TaskNotFound => "task_not_found",
            Self::TokenNotFound => "token_not_found",
            Self::DownloadGone => "download_gone",
            Self::DownloadTampered => "download_tampered",
            Self::DownloadConflict => "download_conflict",
            Self::StorageUnavailable => "storage_unavailable",
            Self::BrowserInstanceInUse => "browser_instance_in_use",
            Self::InstanceRetired => "instance_retired",
            Self::SpaceClosed => "space_closed",
            Self::SpaceTaskInProgress { .. } => "space_task_in_progress",
            Self::SpaceInError => "space_in_error",
            Self::NoLiveView => "no_live_view",
            Self::RequestIdConflict => "request_id_conflict",
            Self::InvalidRequest { .. } => "invalid_request",
            Self::CapabilityUnknown { .. } => "capability_unknown",
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
