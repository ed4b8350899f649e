//! What a Workspace can be asked, by operators.

use eventlog::{
    Role, Timestamp,
    id::{BindingId, CapabilityName, InstanceId, OwnerId, TokenId},
};

use crate::{caller::Caller, capability::Catalogue, instance::InstanceState};

/// What a Workspace is asked.
#[derive(Debug, Clone)]
pub enum Command {
    /// Make it; idempotent. Only who may enter every Workspace can.
    Create,
    /// Make a token; makes the Workspace too where it does not exist and the caller may enter every one.
    IssueToken(IssueToken),
    /// End a token; idempotent.
    RevokeToken {
        /// Which.
        token: TokenId,
    },
    /// Grant a binding.
    GrantBinding(GrantBinding),
    /// End a binding; idempotent. Open Spaces keep what they hold.
    RevokeBinding {
        /// Which.
        binding: BindingId,
    },
}

/// A token to make. The text itself is made, hashed and shown by the caller of `decide`; it never comes in here.
#[derive(Debug, Clone)]
pub struct IssueToken {
    /// Its name.
    pub token: TokenId,
    /// BLAKE3 of its text.
    pub hash: [u8; 32],
    /// What its bearer may do.
    pub role: Role,
    /// Who its bearer is.
    pub owner_id: OwnerId,
    /// Whether it may enter every Workspace.
    pub all_workspaces: bool,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// A binding to grant.
#[derive(Debug, Clone)]
pub struct GrantBinding {
    /// Its id.
    pub binding: BindingId,
    /// Of which instance.
    pub instance: InstanceId,
    /// Only for this owner, where given.
    pub owner_id: Option<OwnerId>,
    /// Only these capabilities, where given.
    pub capabilities: Option<Vec<CapabilityName>>,
}

/// What `decide` has to know besides state and command.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The time.
    pub now: Timestamp,
    /// Who asks; the server itself is [`Caller::system`].
    pub caller: &'a Caller,
    /// The instance that a binding is asked for; not read for other commands.
    pub instance: Option<&'a InstanceState>,
    /// What there is to be granted.
    pub catalogue: &'a Catalogue,
}
