//! What happened to a browser instance: the stream `instance/<id>`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{events, space::CloseReason};
use crate::{
    id::{DisplayName, SpaceId, WorkspaceId},
    number::{Fence, Generation},
};

/// What drives an instance's browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstanceKind {
    /// A Chromium launched by this server.
    Chromium,
    /// A runtime that plays a script; for tests, and only where the server's configuration allows it.
    Scripted,
}

/// Which set of capabilities an instance loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bundle {
    /// Everything but `evaluate`.
    Standard,
    /// Standard and `evaluate`; only where the server's configuration allows it.
    Trusted,
}

/// Which addresses the instance's browser may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkPolicy {
    /// `host` or `host:port` that may be reached although the floor or its port denies it; `data:` and `blob:` for
    /// documents that a page brings itself, in its frames.
    pub allow: Vec<String>,
    /// `host` or `host:port` that may not be reached, nor names below it; wins over `allow`.
    pub deny: Vec<String>,
    /// Bytes over the life of a Space, both ways together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Connections at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
}

/// Why a runtime is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// It ended by itself: crash, kill, out of memory.
    Crashed,
    /// It did not start, or not in time.
    StartFailed,
    /// It did not acknowledge a cancel in time, and was ended.
    Wedged,
    /// It was found alive after a restart of the server, and was ended.
    Orphaned,
}

events! {
    /// A fact of an instance's stream.
    InstanceEvent {
        /// The instance exists.
        Registered = "registered" {
            instance_kind: InstanceKind,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            name: Option<DisplayName>,
            /// Who may reserve it without a binding.
            workspaces: Vec<WorkspaceId>,
            bundle: Bundle,
            network_policy: NetworkPolicy,
            headless: bool,
        }
        /// A Space holds it; in one append with the Space's `opened`, whose position is the fence.
        Reserved = "reserved" {
            space: SpaceId,
            workspace: WorkspaceId,
        }
        /// The Space of this fence let go; in one append with the Space's `closed`.
        Released = "released" {
            space: SpaceId,
            fence: Fence,
            reason: CloseReason,
        }
        /// A start of its runtime was begun; recorded before the process exists.
        RuntimeStarting = "runtime_starting" {
            space: SpaceId,
            generation: Generation,
        }
        /// That runtime is ready for calls.
        RuntimeReady = "runtime_ready" {
            generation: Generation,
        }
        /// That runtime is gone without having been asked.
        RuntimeLost = "runtime_lost" {
            generation: Generation,
            reason: LossReason,
        }
        /// That runtime was stopped because its Space ended.
        RuntimeStopped = "runtime_stopped" {
            generation: Generation,
        }
        /// Too many losses in the window: no start before `retry_at_ms` from now, then one probe.
        CircuitOpened = "circuit_opened" {
            losses: u32,
            retry_after_ms: u64,
        }
        /// A probe succeeded.
        CircuitClosed = "circuit_closed" {}
        /// It takes no new Space; nothing but a release follows.
        Retired = "retired" {}
    }
}
