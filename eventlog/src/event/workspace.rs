//! What happened to a Workspace's bindings and tokens: the stream `workspace/<id>`.

use super::events;
use crate::{
    id::{BindingId, CapabilityName, InstanceId, OwnerId, TokenId},
    metadata::{Role, Timestamp},
};

events! {
    /// A fact of a Workspace's stream.
    WorkspaceEvent {
        /// The Workspace exists.
        Created = "workspace_created" {}
        /// A token was made. Only its hash is kept; the token itself was shown once.
        TokenIssued = "token_issued" {
            token: TokenId,
            /// BLAKE3 of the token. It holds 256 random bits, so a plain hash gives nothing away.
            #[serde(with = "serde_bytes")]
            hash: [u8; 32],
            role: Role,
            owner_id: OwnerId,
            /// Whether it may enter every Workspace, and not only this one.
            #[serde(default)]
            all_workspaces: bool,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            expires_at: Option<Timestamp>,
        }
        /// A token may not be used any more.
        TokenRevoked = "token_revoked" {
            token: TokenId,
        }
        /// The Workspace (or one owner in it) may reserve an instance.
        BindingGranted = "binding_granted" {
            binding: BindingId,
            instance: InstanceId,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            owner_id: Option<OwnerId>,
            /// Only these capabilities, where given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            capabilities: Option<Vec<CapabilityName>>,
        }
        /// That right has ended; open Spaces keep what they hold.
        BindingRevoked = "binding_revoked" {
            binding: BindingId,
        }
    }
}
