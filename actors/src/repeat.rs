//! How a repeat is recognised: the id of its append is derived from what the client sent, so the log itself finds the
//! first one, however old, and can never take a second.

use eventlog::{
    Principal, Role,
    event::space::Idempotency,
    id::{CapabilityName, CommandId, RequestId, SpaceId, WorkspaceId},
};
use uuid::Uuid;

use crate::{rejection::Rejection, request::CreateSpace};

/// The longest idempotency key.
const KEY_BYTES_MAX: usize = 255;

/// The id of the append of a submit.
pub(crate) fn submit_id(space: SpaceId, request: &RequestId) -> CommandId {
    let mut hash = blake3::Hasher::new_derive_key("browserspace submit: append id");
    hash.update(space.as_uuid().as_bytes()).update(request.as_str().as_bytes());
    id(hash.finalize().as_bytes())
}

/// The id of the append of a create with this key.
pub(crate) fn create_id(idempotency: &Idempotency) -> CommandId {
    id(&idempotency.key)
}

fn id(hash: &[u8; 32]) -> CommandId {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    CommandId::from_uuid(Uuid::from_bytes(half))
}

/// What a create is recognised by, where it has a key. A key belongs to a principal, not to the token it showed: a
/// client that renews its token between two tries is still the same.
///
/// # Errors
/// [`Rejection::InvalidRequest`]: the key is empty, too long, or has control characters.
pub(crate) fn idempotency(
    principal: &Principal,
    create: &CreateSpace,
) -> Result<Option<Idempotency>, Rejection> {
    let Some(key) = &create.idempotency_key else { return Ok(None) };
    if key.is_empty() || key.len() > KEY_BYTES_MAX || key.chars().any(char::is_control) {
        return Err(Rejection::InvalidRequest {
            field: "Idempotency-Key",
            problem: format!("must be 1 to {KEY_BYTES_MAX} bytes without control characters"),
        });
    }
    let (role, owner) = match principal {
        Principal::System => ("system", ""),
        Principal::Token { role: Role::RuntimeAgent, id, .. } => ("runtime_agent", id.as_str()),
        Principal::Token { role: Role::Operator, id, .. } => ("operator", id.as_str()),
        Principal::Token { role: Role::Auditor, id, .. } => ("auditor", id.as_str()),
    };
    let mut hash = blake3::Hasher::new_derive_key("browserspace create: idempotency key");
    for part in [create.workspace.as_str(), role, owner, key] {
        update(&mut hash, part);
    }
    let key = *hash.finalize().as_bytes();
    Ok(Some(Idempotency { key, request: meaning(&create.workspace, create) }))
}

/// What the create means, whatever order its grants stand in.
fn meaning(workspace: &WorkspaceId, create: &CreateSpace) -> [u8; 32] {
    let mut hash = blake3::Hasher::new_derive_key("browserspace create: request");
    update(&mut hash, workspace.as_str());
    update(&mut hash, &create.instance.to_string());
    update(&mut hash, &create.binding.map(|binding| binding.to_string()).unwrap_or_default());
    update(
        &mut hash,
        match create.owner.kind {
            eventlog::event::space::OwnerKind::Operator => "operator",
            eventlog::event::space::OwnerKind::RuntimeAgent => "runtime_agent",
        },
    );
    update(&mut hash, create.owner.id.as_str());
    let timeout = create.idle_timeout.map(|timeout| timeout.as_millis().to_string());
    update(&mut hash, &timeout.unwrap_or_default());
    let mut grants: Vec<_> = create.granted_capabilities.iter().map(CapabilityName::as_str).collect();
    grants.sort_unstable();
    grants.dedup();
    for grant in grants {
        update(&mut hash, grant);
    }
    // Nothing where there is none, so that what was hashed before there were environments stays the same.
    if !create.environment.is_plain() {
        update(&mut hash, "environment");
        update(&mut hash, &serde_json::to_string(&create.environment).unwrap_or_default());
    }
    *hash.finalize().as_bytes()
}

/// Length first, so that no two lists of parts are one text.
fn update(hash: &mut blake3::Hasher, part: &str) {
    hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
}
