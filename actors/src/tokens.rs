//! Who bears which token: a table in memory, folded from the Workspaces' streams, so that a request costs one hash.
//!
//! Only hashes are here. A candidate is found by the first bytes of its hash and then compared in constant time, so
//! that the time of a refusal says nothing about how close a guess came.

use std::collections::{BTreeSet, HashMap};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use eventlog::{
    Principal, Role, Sensitive, Timestamp, WorkspaceEvent,
    id::{OwnerId, TokenId, WorkspaceId},
};
use parking_lot::RwLock;
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use crate::caller::{Caller, Scope};

/// What every token begins with.
const PREFIX: &str = "bst_";
/// `bst_` and 32 bytes in base64url without padding.
const TOKEN_BYTES: usize = 47;

/// A token's text from 256 random bits.
#[must_use]
pub fn text(secret: &[u8; 32]) -> Sensitive<String> {
    Sensitive::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret)))
}

/// What is recorded of a token.
#[must_use]
pub fn hash(token: &Sensitive<String>) -> [u8; 32] {
    *blake3::hash(token.expose().as_bytes()).as_bytes()
}

struct Entry {
    hash: [u8; 32],
    token: TokenId,
    role: Role,
    owner: OwnerId,
    scope: Scope,
    expires_at: Option<Timestamp>,
}

/// The table.
#[derive(Default)]
pub(crate) struct Tokens {
    table: RwLock<HashMap<[u8; 8], Vec<Entry>>>,
    /// How many were revoked since the start.
    revocations: watch::Sender<u64>,
}

impl Tokens {
    /// Takes in what happened to a Workspace's tokens.
    pub(crate) fn evolve(&self, workspace: &WorkspaceId, event: &WorkspaceEvent) {
        match event {
            WorkspaceEvent::TokenIssued { token, hash, role, owner_id, all_workspaces, expires_at } => {
                let scope = if *all_workspaces {
                    Scope::All
                } else {
                    Scope::Only(BTreeSet::from([workspace.clone()]))
                };
                let entry = Entry {
                    hash: *hash,
                    token: *token,
                    role: *role,
                    owner: owner_id.clone(),
                    scope,
                    expires_at: *expires_at,
                };
                let mut table = self.table.write();
                let candidates = table.entry(bucket(hash)).or_default();
                candidates.retain(|known| known.token != *token);
                candidates.push(entry);
            }
            WorkspaceEvent::TokenRevoked { token } => {
                self.table.write().retain(|_, candidates| {
                    candidates.retain(|entry| entry.token != *token);
                    !candidates.is_empty()
                });
                self.revocations.send_modify(|count| *count += 1);
            }
            WorkspaceEvent::Created { .. }
            | WorkspaceEvent::BindingGranted { .. }
            | WorkspaceEvent::BindingRevoked { .. } => {}
        }
    }

    /// Changes whenever a token was revoked.
    pub(crate) fn revocations(&self) -> watch::Receiver<u64> {
        self.revocations.subscribe()
    }

    /// Whether any token is valid now.
    pub(crate) fn any_valid(&self, now: Timestamp) -> bool {
        let valid = |entry: &Entry| entry.expires_at.is_none_or(|end| end > now);
        self.table.read().values().flatten().any(valid)
    }

    /// Who bears this text now.
    pub(crate) fn bearer(&self, text: &Sensitive<String>, now: Timestamp) -> Option<Caller> {
        let shown = text.expose();
        if shown.len() != TOKEN_BYTES || !shown.starts_with(PREFIX) {
            return None;
        }
        let hash = hash(text);
        let table = self.table.read();
        let entry =
            table.get(&bucket(&hash))?.iter().find(|entry| bool::from(entry.hash[..].ct_eq(&hash[..])))?;
        if entry.expires_at.is_some_and(|end| end <= now) {
            return None;
        }
        Some(Caller {
            principal: Principal::Token { role: entry.role, id: entry.owner.clone(), token: entry.token },
            scope: entry.scope.clone(),
        })
    }
}

fn bucket(hash: &[u8; 32]) -> [u8; 8] {
    let mut bucket = [0; 8];
    bucket.copy_from_slice(&hash[..8]);
    bucket
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{IdSource, testing::TestIds};

    fn issued(ids: &TestIds, expires_at: Option<Timestamp>) -> (Sensitive<String>, WorkspaceEvent) {
        let text = text(&ids.secret());
        let event = WorkspaceEvent::TokenIssued {
            token: TokenId::from_uuid(ids.uuid()),
            hash: hash(&text),
            role: Role::RuntimeAgent,
            owner_id: "agent-1".parse().unwrap(),
            all_workspaces: false,
            expires_at,
        };
        (text, event)
    }

    #[test]
    fn a_token_names_its_bearer_until_it_is_revoked_or_expires() {
        let (ids, tokens) = (TestIds::seeded(1), Tokens::default());
        let workspace: WorkspaceId = "default".parse().unwrap();
        let (text, event) = issued(&ids, Some(Timestamp(100)));
        tokens.evolve(&workspace, &event);
        assert_eq!(text.expose().len(), TOKEN_BYTES);
        let caller = tokens.bearer(&text, Timestamp(99)).unwrap();
        assert!(caller.scope.holds(&workspace));
        assert!(tokens.bearer(&text, Timestamp(100)).is_none(), "an expired token is none");
        let WorkspaceEvent::TokenIssued { token, .. } = event else { unreachable!() };
        tokens.evolve(&workspace, &WorkspaceEvent::TokenRevoked { token });
        assert!(tokens.bearer(&text, Timestamp(0)).is_none(), "revoked at once");
    }

    #[test]
    fn what_was_never_issued_names_nobody() {
        let (ids, tokens) = (TestIds::seeded(2), Tokens::default());
        for text in ["", "bst_", "bst_short", &"x".repeat(TOKEN_BYTES)] {
            assert!(tokens.bearer(&Sensitive::new(text.to_owned()), Timestamp(0)).is_none());
        }
        let (stranger, _) = issued(&ids, None);
        assert!(tokens.bearer(&stranger, Timestamp(0)).is_none());
    }
}
