//! What happened to a Space and its tasks: the stream `space/<id>`.

use serde::{Deserialize, Serialize};

use super::{environment::Environment, events};
use crate::{
    id::{
        ArtifactId, BindingId, CapabilityName, InstanceId, OperationId, OwnerId, RequestId, TaskId,
        WorkspaceId,
    },
    metadata::Timestamp,
    number::Generation,
    redaction::{Json, Redacted},
    sealing::{Fingerprint, KeyId, Sealed},
};

/// Whose Space it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// What kind of principal.
    #[serde(rename = "type")]
    pub kind: OwnerKind,
    /// Its opaque id.
    pub id: OwnerId,
}

/// Who may own a Space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// A person who runs the server.
    Operator,
    /// A program that works through the API.
    RuntimeAgent,
}

/// Why a task did not complete. `code` is one of the stable error codes (`docs/errors.md`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// The stable code.
    pub code: String,
    /// One sentence for a person, redacted.
    pub message: Redacted<String>,
    /// Whether a new task with the same capability and args is sensible.
    pub retryable: bool,
    /// Whether the browser may have seen the step: `false` only if it certainly did not.
    pub may_have_run: bool,
    /// What else the code says (which check failed, what covers the element, …), redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Redacted<Json>>,
}

/// A file that a task made, as recorded; the bytes lie in the artifact folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRecord {
    /// Its id.
    pub id: ArtifactId,
    /// What it is: `screenshot`, …
    pub kind: String,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of the bytes, lower-case hex.
    pub sha256: String,
}

/// Why a Space was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// Its owner or an operator asked.
    Requested,
    /// Nobody used it for its idle time-out.
    IdleTimeout,
    /// Its instance was retired.
    InstanceRetired,
    /// The server was drained.
    Drained,
}

/// Why a cancel was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// Its owner or an operator asked.
    Requested,
    /// The Space is closing.
    Closing,
    /// The server is draining.
    Draining,
}

events! {
    /// A fact of a Space's stream.
    SpaceEvent {
        /// The Space exists and holds its instance; recorded in one append with the instance's `reserved`.
        /// The position of this event is the Space's fence.
        Opened = "opened" {
            workspace: WorkspaceId,
            instance: InstanceId,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            binding: Option<BindingId>,
            owner: Owner,
            granted_capabilities: Vec<CapabilityName>,
            idle_timeout_seconds: u64,
            /// Keys the fingerprints of this Space's args; destroyed when the Space closes.
            fingerprint_key: KeyId,
            /// BLAKE3 of the caller's idempotency key and request, where one was given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            idempotency: Option<Idempotency>,
            /// What its pages are told of the place that they are in.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            environment: Option<Box<Environment>>,
        }
        /// A task was accepted; it is durable from here on.
        TaskQueued = "queued" {
            task: TaskId,
            operation: OperationId,
            request_id: RequestId,
            capability: CapabilityName,
            arg_keys: Vec<Redacted<String>>,
            fingerprint: Fingerprint,
            timeout_seconds: u64,
            /// The args, sealed; `None` for a task that was refused and will never run.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            sealed_args: Option<Sealed>,
        }
        /// The task is about to be handed to the runtime; recorded before the call, so that it happens at most once.
        TaskStarted = "started" {
            task: TaskId,
            generation: Generation,
            deadline: Timestamp,
        }
        /// The task did what it was asked.
        TaskCompleted = "completed" {
            task: TaskId,
            result: Redacted<Json>,
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            artifacts: Vec<ArtifactRecord>,
        }
        /// The task did not.
        TaskFailed = "failed" {
            task: TaskId,
            error: TaskError,
        }
        /// Somebody wants the task to stop; its status stays until the runtime has acknowledged.
        CancelRequested = "cancel_requested" {
            task: TaskId,
            reason: CancelReason,
        }
        /// The task stopped before its end, and the runtime has cleaned up (or it had never started).
        TaskCancelled = "cancelled" {
            task: TaskId,
        }
        /// The Space will close once its task has ended.
        CloseRequested = "close_requested" {
            reason: CloseReason,
        }
        /// The Space is over and its instance is free; nothing follows.
        Closed = "closed" {
            reason: CloseReason,
        }
        /// The runtime became unusable; a supervisor is restarting it.
        Faulted = "faulted" {
            code: String,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            generation: Option<Generation>,
        }
        /// A new runtime is ready.
        Recovered = "recovered" {
            generation: Generation,
        }
        /// A page's dialog opened and waits for an answer.
        DialogOpened = "dialog_opened" {
            dialog: Redacted<Json>,
        }
        /// A network request was refused by policy.
        Blocked = "blocked" {
            rule: String,
            target: Redacted<String>,
            /// How many of them; none: one.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            count: Option<u32>,
        }
    }
}

/// What makes a repeated create recognisable, without keeping what the caller sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Idempotency {
    /// BLAKE3 of Workspace, principal and the `Idempotency-Key` header.
    #[serde(with = "serde_bytes")]
    pub key: [u8; 32],
    /// BLAKE3 of the request's meaning; another one under the same key is a conflict.
    #[serde(with = "serde_bytes")]
    pub request: [u8; 32],
}
