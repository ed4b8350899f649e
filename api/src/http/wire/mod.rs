//! Bodies as they go over the wire. What is not written here does not leave the server: args, hashes, key names,
//! fingerprints and sealed bytes have no field.

pub(crate) mod event;
mod rows;

use actors::{
    capability::Row,
    space::summary::{SpaceStatus, SpaceSummary, TaskStatus, TaskSummary},
};
use eventlog::{
    Json, Role, Timestamp,
    event::{
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::{ArtifactRecord, OwnerKind, TaskError},
    },
    id::{ArtifactId, TaskId},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Code;

/// A browser Space: an owner's exclusive hold of one browser instance.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Space {
    #[schema(example = "spc_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) space_id: String,
    pub(crate) workspace_id: String,
    pub(crate) browser_instance_id: String,
    pub(crate) binding_id: Option<String>,
    #[schema(inline)]
    pub(crate) owner_type: OwnerType,
    pub(crate) owner_id: String,
    #[schema(inline)]
    pub(crate) status: SpaceState,
    pub(crate) granted_capabilities: Vec<String>,
    /// The task that is queued or running; null when there is none.
    pub(crate) active_task: Option<Task>,
    /// The sequence of its last event.
    pub(crate) revision: u64,
    pub(crate) last_error_code: Option<String>,
    pub(crate) idle_timeout_seconds: u64,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

/// A task: one invocation of one capability. Its args are never shown, only their names.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Task {
    pub(crate) space_id: String,
    #[schema(example = "tsk_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) task_id: String,
    /// Its one dispatch to the browser.
    pub(crate) operation_id: String,
    pub(crate) request_id: String,
    pub(crate) capability: String,
    pub(crate) arg_keys: Vec<String>,
    #[schema(inline)]
    pub(crate) status: TaskState,
    /// Whether it was asked to stop; its status stays until it has.
    pub(crate) cancel_requested: bool,
    /// What it gave, redacted and at most 64 KiB; as its capability's result schema says. Null until completed.
    #[schema(value_type = Option<Object>)]
    pub(crate) result: Option<Json>,
    /// Why it failed, or how far it was when it was cancelled. Null otherwise.
    pub(crate) error: Option<TaskFailure>,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) started_at: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) finished_at: Option<String>,
}

/// Why a task did not complete.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct TaskFailure {
    /// One of the codes of `ErrorCode`.
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) details: Option<Json>,
    /// Whether a new task with the same capability and args is sensible.
    pub(crate) retryable: bool,
    /// Whether the browser may have seen the step.
    pub(crate) may_have_run: bool,
}

/// A browser that this server knows. Where it runs is not shown.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Instance {
    #[schema(example = "ins_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) browser_instance_id: String,
    #[schema(inline)]
    pub(crate) kind: Kind,
    pub(crate) name: Option<String>,
    /// Workspaces that may reserve it without a binding; only those that you may enter.
    pub(crate) workspaces: Vec<String>,
    #[schema(inline)]
    pub(crate) bundle: BundleName,
    /// What its bundle can do.
    pub(crate) capabilities: Vec<String>,
    #[schema(inline)]
    pub(crate) health: Health,
    /// Whether a Space holds it.
    pub(crate) reserved: bool,
    pub(crate) network_policy: Policy,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
}

/// Which addresses an instance's browser may reach: the public web (ports 80 and 443), and what `allow` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = NetworkPolicy)]
pub(crate) struct Policy {
    /// `host` or `host:port` that may be reached although it would be denied by default; `data:` and `blob:` for
    /// documents that a page brings itself, in its frames.
    pub(crate) allow: Vec<String>,
    /// `host` or `host:port` that may not be reached, nor names below it; wins over `allow`.
    pub(crate) deny: Vec<String>,
    /// Bytes over the life of a Space, both ways together.
    pub(crate) max_bytes: Option<u64>,
    /// Connections at once.
    pub(crate) max_connections: Option<u32>,
}

/// A Workspace's right to reserve an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Binding {
    #[schema(example = "bnd_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) binding_id: String,
    pub(crate) workspace_id: String,
    pub(crate) browser_instance_id: String,
    /// Only for this owner, where given.
    pub(crate) owner_id: Option<String>,
    /// Only these capabilities, where given.
    pub(crate) capabilities: Option<Vec<String>>,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) revoked_at: Option<String>,
}

/// A token of a Workspace; its text was shown once, when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Token {
    #[schema(example = "tok_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) token_id: String,
    pub(crate) workspace_id: String,
    #[schema(inline)]
    pub(crate) role: RoleName,
    pub(crate) owner_id: String,
    pub(crate) all_workspaces: bool,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    #[schema(format = DateTime)]
    pub(crate) expires_at: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) revoked_at: Option<String>,
}

/// A token that was just made, with its text.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct NewToken {
    pub(crate) token_id: String,
    pub(crate) workspace_id: String,
    #[schema(inline)]
    pub(crate) role: RoleName,
    pub(crate) owner_id: String,
    pub(crate) all_workspaces: bool,
    #[schema(format = DateTime)]
    pub(crate) expires_at: Option<String>,
    /// The token itself. It is shown this once and kept nowhere.
    pub(crate) token: String,
}

/// Who did what, when, under which authority, to what, and with what outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// The task's id, or the position of the event.
    pub(crate) entry_id: String,
    /// The position of its first event.
    pub(crate) position: u64,
    #[schema(format = DateTime)]
    pub(crate) recorded_at: String,
    pub(crate) workspace_id: Option<String>,
    /// What its principal was then; `null` for the server itself.
    #[schema(inline)]
    pub(crate) role: Option<RoleName>,
    pub(crate) owner_id: Option<String>,
    /// Which token was shown.
    pub(crate) token_id: Option<String>,
    /// `task`, or the kind of the event.
    #[schema(example = "task")]
    pub(crate) action: String,
    pub(crate) space_id: Option<String>,
    pub(crate) browser_instance_id: Option<String>,
    /// The task, token or binding that it is about.
    pub(crate) subject_id: Option<String>,
    pub(crate) capability: Option<String>,
    /// `open`, `completed`, `failed`, `cancelled`; `done` for what is no task.
    #[schema(example = "completed")]
    pub(crate) outcome: String,
    /// Why it failed, or by which rule it was blocked.
    pub(crate) error_code: Option<String>,
    /// From submit to end.
    pub(crate) duration_ms: Option<u64>,
    /// From the hand-over to the browser to the end.
    pub(crate) browser_ms: Option<u64>,
    /// Host, and port where it is not the usual one, of the page that it led to, or that was blocked.
    pub(crate) site: Option<String>,
    /// More than 1 only for requests that were blocked alike.
    pub(crate) times: u64,
    pub(crate) artifact_bytes: u64,
    pub(crate) trace_id: String,
}

/// A file that a task made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Artifact {
    #[schema(example = "art_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) artifact_id: String,
    #[schema(example = "screenshot")]
    pub(crate) kind: String,
    #[schema(example = "image/png")]
    pub(crate) media_type: String,
    pub(crate) bytes: u64,
    /// Lower-case hex.
    pub(crate) sha256: String,
    pub(crate) task_id: String,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
}

/// What a Space can be asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Capability {
    #[schema(example = "navigate")]
    pub(crate) name: String,
    pub(crate) summary: String,
    /// Args as you might send them.
    #[schema(value_type = Object)]
    pub(crate) example: Json,
    /// JSON Schema of the args.
    #[schema(value_type = Object)]
    pub(crate) args_schema: Json,
    /// JSON Schema of the result.
    #[schema(value_type = Object)]
    pub(crate) result_schema: Json,
    /// Bundles that load it.
    #[schema(inline)]
    pub(crate) bundles: Vec<BundleName>,
}

/// Turns a closed list of ours into the same list on the wire, variant by variant.
macro_rules! words {
    ($(impl $name:ident from $source:ty { $($variant:ident),* $(,)? })*) => {$(
        impl From<$source> for $name {
            fn from(value: $source) -> Self {
                match value { $(<$source>::$variant => Self::$variant,)* }
            }
        }
    )*};
}
use words;

words! {
    impl OwnerType from OwnerKind { Operator, RuntimeAgent }
    impl SpaceState from SpaceStatus { Idle, Running, Error, Closed }
    impl TaskState from TaskStatus { Queued, Running, Completed, Failed, Cancelled }
    impl Kind from InstanceKind { Chromium, Scripted }
    impl BundleName from Bundle { Standard, Trusted }
    impl RoleName from Role { RuntimeAgent, Operator, Auditor }
}

/// Declares a closed list of words.
macro_rules! word_lists {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name { $($(#[$variant_doc])* $variant,)* }
    )*};
}

word_lists! {
    /// Who may own a Space.
    OwnerType { Operator, RuntimeAgent }
    /// Where a Space stands.
    SpaceState { Idle, Running, Error, Closed }
    /// Where a task stands.
    TaskState { Queued, Running, Completed, Failed, Cancelled }
    /// What drives an instance's browser.
    Kind { Chromium, Scripted }
    /// Which set of capabilities an instance loads.
    BundleName { Standard, Trusted }
    /// What a token's bearer may do.
    RoleName { RuntimeAgent, Operator, Auditor }
    /// How an instance is.
    Health {
        /// Its browser is being started.
        Starting,
        /// It takes Spaces and tasks.
        Ready,
        /// It failed too often; it is tried again from time to time.
        Unavailable,
        /// It takes no new Space.
        Retired,
    }
}

impl From<&SpaceSummary> for Space {
    fn from(space: &SpaceSummary) -> Self {
        Self {
            space_id: space.space.to_string(),
            workspace_id: space.workspace.to_string(),
            browser_instance_id: space.instance.to_string(),
            binding_id: space.binding.map(|binding| binding.to_string()),
            owner_type: space.owner.kind.into(),
            owner_id: space.owner.id.to_string(),
            status: space.status.into(),
            granted_capabilities: space.granted_capabilities.iter().map(ToString::to_string).collect(),
            active_task: space.active_task.as_ref().map(Task::from),
            revision: space.revision.0,
            last_error_code: space.last_error_code.clone(),
            idle_timeout_seconds: space.idle_timeout_seconds,
            created_at: space.created_at.to_rfc3339(),
            updated_at: space.updated_at.to_rfc3339(),
        }
    }
}

impl From<&TaskSummary> for Task {
    fn from(task: &TaskSummary) -> Self {
        Self {
            space_id: task.space.to_string(),
            task_id: task.task.to_string(),
            operation_id: task.operation.to_string(),
            request_id: task.request_id.to_string(),
            capability: task.capability.to_string(),
            arg_keys: task.arg_keys.iter().map(|key| key.get().clone()).collect(),
            status: task.status.into(),
            cancel_requested: task.cancel_requested,
            result: task.result.as_ref().map(|result| result.get().clone()),
            error: TaskFailure::of(task.error.as_ref(), task.status.into(), task.started_at.is_some()),
            created_at: task.created_at.to_rfc3339(),
            started_at: task.started_at.map(Timestamp::to_rfc3339),
            finished_at: task.finished_at.map(Timestamp::to_rfc3339),
        }
    }
}

impl From<&TaskError> for TaskFailure {
    fn from(error: &TaskError) -> Self {
        let TaskError { code, message, retryable, may_have_run, details } = error;
        Self {
            code: code.clone(),
            message: message.get().clone(),
            details: details.as_ref().map(|details| details.get().clone()),
            retryable: *retryable,
            may_have_run: *may_have_run,
        }
    }
}

impl TaskFailure {
    /// What a task of this status shows. No event holds an error of a cancelled one: its start says all there is.
    fn of(error: Option<&TaskError>, status: TaskState, started: bool) -> Option<Self> {
        if status != TaskState::Cancelled {
            return error.map(Self::from);
        }
        let code = Code::Cancelled;
        let message = if started {
            "the task was cancelled while it ran"
        } else {
            "the task was cancelled before it was started"
        };
        Some(Self {
            code: code.as_str().to_owned(),
            message: message.to_owned(),
            details: None,
            retryable: code.retryable(),
            may_have_run: started,
        })
    }
}

impl From<&NetworkPolicy> for Policy {
    fn from(policy: &NetworkPolicy) -> Self {
        let NetworkPolicy { allow, deny, max_bytes, max_connections } = policy;
        Self {
            allow: allow.clone(),
            deny: deny.clone(),
            max_bytes: *max_bytes,
            max_connections: *max_connections,
        }
    }
}

impl From<&Row> for Capability {
    fn from(row: &Row) -> Self {
        Self {
            name: row.name.to_string(),
            summary: row.summary.to_owned(),
            example: row.example.clone(),
            args_schema: row.args_schema.clone(),
            result_schema: row.result_schema.clone(),
            bundles: [Bundle::Standard, Bundle::Trusted]
                .into_iter()
                .filter(|bundle| row.is_in(*bundle))
                .map(BundleName::from)
                .collect(),
        }
    }
}

impl Artifact {
    /// An artifact as its task recorded it.
    pub(crate) fn new(record: &ArtifactRecord, task: TaskId, created_at: Timestamp) -> Self {
        let ArtifactRecord { id, kind, media_type, bytes, sha256 } = record;
        Self {
            artifact_id: id.to_string(),
            kind: kind.clone(),
            media_type: media_type.clone(),
            bytes: *bytes,
            sha256: sha256.clone(),
            task_id: task.to_string(),
            created_at: created_at.to_rfc3339(),
        }
    }
}

/// The name under which an artifact is saved: its id and the ending of its media type; never a page's own name.
pub(crate) fn file_name(artifact: ArtifactId, media_type: &str) -> String {
    let ending = match media_type {
        "image/png" => ".png",
        "image/jpeg" => ".jpg",
        "image/webp" => ".webp",
        "application/pdf" => ".pdf",
        _ => "",
    };
    format!("{artifact}{ending}")
}
