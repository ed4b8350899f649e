//! Where a page of a list ended: opaque to clients, and checked when it comes back.
//!
//! ```text
//! byte 0      version: 1
//! byte 1..9   which list, with its filters: BLAKE3, first 8 bytes
//! byte 9..17  the place of the last item, u64 big-endian
//! byte 17..21 check: BLAKE3 of all before, first 4 bytes
//! ```
//! in base64url. A cursor gives no right: whoever makes one up sees what the list would have shown anyway.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

const VERSION: u8 = 1;
const BYTES: usize = 21;

/// A cursor that is malformed, or of another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not one of this list")]
pub struct InvalidCursor;

/// Which list, with its filters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope([u8; 8]);

impl Scope {
    /// Of a list and its filters; each is framed by its length, so that no two lists write the same.
    pub(crate) fn new(list: &'static str, filters: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in std::iter::once(&list).chain(filters) {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        Self(first(&hasher.finalize()))
    }
}

/// The cursor behind the item at `place`.
pub(crate) fn encode(scope: Scope, place: u64) -> String {
    let mut bytes = Vec::with_capacity(BYTES);
    bytes.push(VERSION);
    bytes.extend_from_slice(&scope.0);
    bytes.extend_from_slice(&place.to_be_bytes());
    bytes.extend_from_slice(&first::<4>(&blake3::hash(&bytes)));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The place behind which the next page begins.
pub(crate) fn decode(scope: Scope, cursor: &str) -> Result<u64, InvalidCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| InvalidCursor)?;
    if bytes.len() != BYTES || encode(scope, place_in(&bytes)) != cursor {
        return Err(InvalidCursor);
    }
    Ok(place_in(&bytes))
}

fn place_in(bytes: &[u8]) -> u64 {
    bytes[9..17].iter().fold(0, |place, byte| (place << 8) | u64::from(*byte))
}

fn first<const COUNT: usize>(hash: &blake3::Hash) -> [u8; COUNT] {
    std::array::from_fn(|index| hash.as_bytes()[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_only_the_list_that_made_it() {
        let scope = Scope::new("tasks", &["a", "bc"]);
        let cursor = encode(scope, 4711);
        assert_eq!(decode(scope, &cursor), Ok(4711));
        for other in [Scope::new("tasks", &["ab", "c"]), Scope::new("spaces", &["a", "bc"])] {
            assert_eq!(decode(other, &cursor), Err(InvalidCursor));
        }
    }

    #[test]
    fn a_changed_cursor_is_refused() {
        let scope = Scope::new("tasks", &[]);
        let cursor = encode(scope, 1);
        for at in 0..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("it is ASCII");
            assert_eq!(decode(scope, &changed), Err(InvalidCursor), "{changed}");
        }
        for bad in ["", "0", "-1", "%", "🙂", &cursor[1..], &format!("{cursor}A"), &format!("{cursor}=")] {
            assert_eq!(decode(scope, bad), Err(InvalidCursor), "{bad}");
        }
    }
}
