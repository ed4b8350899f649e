//! What callers may ask, as types: the requests and answers of the one door, [`crate::Spaces`].

use std::time::Duration;

use eventlog::{
    Json, Position, Sensitive, Timestamp,
    event::{
        environment::Environment,
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::Owner,
    },
    id::{
        BindingId, CapabilityName, DisplayName, InstanceId, OwnerId, RequestId, SpaceId, TokenId, WorkspaceId,
    },
    metadata::Role,
};

use crate::space::summary::{SpaceSummary, TaskSummary};

/// A request for a Space.
#[derive(Debug, Clone)]
pub struct CreateSpace {
    /// In which Workspace.
    pub workspace: WorkspaceId,
    /// Which instance to hold.
    pub instance: InstanceId,
    /// By which binding, where the instance does not name the Workspace itself.
    pub binding: Option<BindingId>,
    /// Whose it shall be. An agent may only name itself.
    pub owner: Owner,
    /// What it may do; each in the instance's bundle and, if the binding narrows, in the binding.
    pub granted_capabilities: Vec<CapabilityName>,
    /// 10 s to 24 h; the server's default where `None`.
    pub idle_timeout: Option<Duration>,
    /// The `Idempotency-Key` header, 1–255 bytes.
    pub idempotency_key: Option<String>,
    /// What its pages shall be told of the place that they are in.
    pub environment: Environment,
}

/// A Space that was made, or found by its idempotency key.
#[derive(Debug, Clone)]
pub struct Created {
    /// The Space as it stands.
    pub space: SpaceSummary,
    /// Whether an earlier create with the same key had made it.
    pub repeated: bool,
}

/// A request for a task.
#[derive(Debug, Clone)]
pub struct SubmitTask {
    /// Of which Workspace.
    pub workspace: WorkspaceId,
    /// Of which Space.
    pub space: SpaceId,
    /// The client's id; a repeat with the same meaning answers with the first task.
    pub request_id: RequestId,
    /// What to invoke.
    pub capability: CapabilityName,
    /// Its args: checked against the capability's schema, sealed, never returned.
    pub args: Sensitive<Json>,
    /// 1–600 s.
    pub timeout: Duration,
}

/// A task that was accepted, or found by its request id.
#[derive(Debug)]
pub struct Submitted {
    /// The task as it stands.
    pub task: TaskSummary,
    /// Whether an earlier submit with the same id had made it.
    pub repeated: bool,
    /// Resolves when the task is terminal.
    pub ended: TaskEnd,
    /// The position of the last event that this answer rests on.
    pub position: Position,
}

/// A wait for a task's end. Dropping it changes nothing for the task.
#[derive(Debug)]
pub struct TaskEnd {
    pub(crate) receiver: tokio::sync::watch::Receiver<Option<(TaskSummary, Position)>>,
}

impl TaskEnd {
    /// The ended task, or `None` if it has not ended within `timeout`.
    pub async fn within(mut self, timeout: Duration) -> Option<(TaskSummary, Position)> {
        let ended = self.receiver.wait_for(Option::is_some);
        tokio::time::timeout(timeout, ended).await.ok()?.ok()?.clone()
    }
}

/// A request for an instance.
#[derive(Debug, Clone)]
pub struct RegisterInstance {
    /// What drives it.
    pub kind: InstanceKind,
    /// For people.
    pub name: Option<DisplayName>,
    /// Who may reserve it without a binding; the caller's Workspaces where `None`.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// Which capabilities it loads.
    pub bundle: Bundle,
    /// What its browser may reach.
    pub network_policy: NetworkPolicy,
    /// Whether it runs without a window.
    pub headless: bool,
}

/// A request for a token.
#[derive(Debug, Clone)]
pub struct IssueToken {
    /// For which Workspace; made if it does not exist and the caller may enter every Workspace.
    pub workspace: WorkspaceId,
    /// May it enter every Workspace? Only a caller who may itself can give this.
    pub all_workspaces: bool,
    /// What its bearer may do.
    pub role: Role,
    /// Who its bearer is.
    pub owner_id: OwnerId,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// A token that was made. The text is shown this once.
#[derive(Debug, Clone)]
pub struct IssuedToken {
    /// Its name.
    pub id: TokenId,
    /// `bst_` and 43 characters of base64url: 256 random bits.
    pub token: Sensitive<String>,
    /// Position of the event.
    pub position: Position,
}

/// A request for a binding.
#[derive(Debug, Clone)]
pub struct GrantBinding {
    /// To which Workspace.
    pub workspace: WorkspaceId,
    /// Of which instance.
    pub instance: InstanceId,
    /// Only for this owner, where given.
    pub owner_id: Option<OwnerId>,
    /// Only these capabilities, where given.
    pub capabilities: Option<Vec<CapabilityName>>,
}

/// An artifact's bytes, ready to be read.
#[derive(Debug)]
pub struct ArtifactFile {
    /// The open file; no path leaves this crate.
    pub file: std::fs::File,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256, lower-case hex.
    pub sha256: String,
}

/// Why a token does not authenticate. Deliberately says no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no or bad identity")]
pub struct Unauthenticated;
