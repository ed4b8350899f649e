//! Signed statements of what the log held at a position: "so many events, this root, this hash of the whole log". Kept where
//! the writer of the log can not reach them, they show a history that was made anew and a tail that was cut.
//!
//! Written as a signed note (c2sp.org/signed-note) whose text is a checkpoint (c2sp.org/tlog-checkpoint), so that tools that
//! are not ours can check them: Ed25519 (RFC 8032) over the text, root of an RFC 6962 tree. `docs/proofs.md` has vectors.

use std::{
    fmt,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    str::FromStr,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::{log::Hash, merkle::TreeHash, metadata::Timestamp, number::Position, verify::Known};

/// The longest note that is read.
pub const NOTE_BYTES_MAX: usize = 4096;
/// The longest name of a log and its key.
const NAME_BYTES_MAX: usize = 128;
/// Ed25519, in key ids and texts of keys.
const ALGORITHM: u8 = 1;
const PRIVATE_PREFIX: &str = "PRIVATE+KEY+";
/// Opens each line of a signature: an em dash and a space.
const SIGNATURE_MARK: &str = "— ";
const GLOBAL_LINE: &str = "global ";
const TIME_LINE: &str = "time ";

/// Why a text is no checkpoint or no key, or not a good one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// It is not of the form that it must have.
    #[error("it is not a checkpoint: {0}")]
    Form(&'static str),
    /// No signature in it is of this key.
    #[error("it is not signed by the key {0}")]
    OtherKey(String),
    /// The signature does not fit the text: one of both was changed.
    #[error("its signature does not fit: the checkpoint or the signature was changed")]
    Signature,
    /// The text is no key of ours.
    #[error("that is not a key: it looks like NAME+8 HEX DIGITS+BASE64")]
    Key,
}

/// What the log held at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log: its name, which is also the name of its key.
    pub origin: String,
    /// How many events: the position of the last one.
    pub size: Position,
    /// The root of the Merkle tree over them.
    pub root: TreeHash,
    /// The hash of the whole log there.
    pub global: Hash,
    /// When it was made, RFC 3339; by the signer's clock, informative.
    pub time: String,
}

impl Checkpoint {
    /// The text that is signed.
    fn text(&self) -> String {
        let Self { origin, size, root, global, time } = self;
        let root = BASE64_STANDARD.encode(root.0);
        format!("{origin}\n{size}\n{root}\n{GLOBAL_LINE}{global}\n{TIME_LINE}{time}\n")
    }

    fn of_text(text: &str) -> Result<Self, CheckpointError> {
        let wrong = CheckpointError::Form;
        let mut lines = text.lines();
        let origin = lines.next().filter(|name| is_name(name)).ok_or(wrong("it names no log"))?;
        let digits = lines.next().ok_or(wrong("it has no size"))?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let size = digits.parse().ok().filter(|_| plain).ok_or(wrong("its size is no number"))?;
        let root = lines.next().and_then(hash_of_base64).ok_or(wrong("it has no root"))?;
        let (mut global, mut time) = (None, String::new());
        // Lines that a later program adds mean nothing to this one.
        for line in lines {
            if let Some(hex_digits) = line.strip_prefix(GLOBAL_LINE) {
                let mut bytes = [0; 32];
                hex::decode_to_slice(hex_digits, &mut bytes).map_err(|_| wrong("its hash is none"))?;
                global = Some(Hash(bytes));
            } else if let Some(said) = line.strip_prefix(TIME_LINE) {
                said.clone_into(&mut time);
            }
        }
        Ok(Self {
            origin: origin.to_owned(),
            size: Position(size),
            root: TreeHash(root),
            global: global.ok_or(wrong("it has no hash of the whole log"))?,
            time,
        })
    }

    /// What it lets a log be held against.
    #[must_use]
    pub fn known(&self, source: String) -> Known {
        Known { position: self.size, global: Some(self.global), root: Some(self.root), source }
    }
}

fn is_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_graphic() && letter != '+';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(plain)
}

fn hash_of_base64(text: &str) -> Option<[u8; 32]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

/// The first four bytes of SHA-256 over name, newline, algorithm and public key: c2sp.org/signed-note.
fn key_id(name: &str, key: &VerifyingKey) -> [u8; 4] {
    let hash = Sha256::new_with_prefix(name).chain_update([b'\n', ALGORITHM]).chain_update(key.as_bytes());
    *hash.finalize().first_chunk().expect("a hash has 32 bytes")
}

/// Checks checkpoints of one log. Its text may be given to anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    name: String,
    key: VerifyingKey,
}

impl PublicKey {
    /// The name of the log.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks a signed note, which must be the whole of `note`.
    ///
    /// # Errors
    /// [`CheckpointError`]: nothing that it says is to be believed.
    pub fn check(&self, note: &str) -> Result<Checkpoint, CheckpointError> {
        if note.len() > NOTE_BYTES_MAX {
            return Err(CheckpointError::Form("it is too long"));
        }
        let (text, signatures) =
            note.split_once("\n\n").ok_or(CheckpointError::Form("it has no signature"))?;
        let text = format!("{text}\n");
        let id = key_id(&self.name, &self.key);
        for line in signatures.lines() {
            let signed = line.strip_prefix(SIGNATURE_MARK).and_then(|rest| rest.split_once(' '));
            let (name, signature) = signed.ok_or(CheckpointError::Form("a line of it is no signature"))?;
            let signature = BASE64_STANDARD
                .decode(signature)
                .map_err(|_| CheckpointError::Form("a signature is no base64"))?;
            // Other names are those of witnesses; we know nothing of them.
            let Some(bytes) = signature.strip_prefix(&id).filter(|_| name == self.name) else { continue };
            let signature = Signature::from_slice(bytes).map_err(|_| CheckpointError::Signature)?;
            self.key.verify_strict(text.as_bytes(), &signature).map_err(|_| CheckpointError::Signature)?;
            let checkpoint = Checkpoint::of_text(&text)?;
            if checkpoint.origin != self.name {
                return Err(CheckpointError::OtherKey(self.name.clone()));
            }
            return Ok(checkpoint);
        }
        Err(CheckpointError::OtherKey(self.name.clone()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = hex::encode(key_id(&self.name, &self.key));
        let key = [&[ALGORITHM], self.key.as_bytes().as_slice()].concat();
        write!(f, "{}+{id}+{}", self.name, BASE64_STANDARD.encode(key))
    }
}

impl FromStr for PublicKey {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        let (name, id, bytes) = parts_of_key(text.trim())?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| CheckpointError::Key)?;
        if hex::encode(key_id(name, &key)) != id {
            return Err(CheckpointError::Key);
        }
        Ok(Self { name: name.to_owned(), key })
    }
}

/// `NAME+ID+BASE64`; the name and the base64 may not be confused, for a name holds no plus.
fn parts_of_key(text: &str) -> Result<(&str, &str, Zeroizing<[u8; 32]>), CheckpointError> {
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(CheckpointError::Key);
    };
    let bytes = Zeroizing::new(BASE64_STANDARD.decode(key).map_err(|_| CheckpointError::Key)?);
    let bytes = bytes.strip_prefix(&[ALGORITHM]).and_then(|key| <[u8; 32]>::try_from(key).ok());
    let bytes = bytes.filter(|_| is_name(name)).ok_or(CheckpointError::Key)?;
    Ok((name, id, Zeroizing::new(bytes)))
}

/// Signs checkpoints of one log. Whoever has it can sign any history: keep it away from what it protects, if you can.
pub struct Signer {
    name: String,
    key: SigningKey,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Signer {
    /// The name of the log whose first event has this hash.
    #[must_use]
    pub fn name_of(first: Hash) -> String {
        format!("browserspace-{}", hex::encode(&first.0[..8]))
    }

    /// A signer with this secret.
    ///
    /// # Panics
    /// When the name is none: it comes from [`name_of`](Self::name_of).
    #[must_use]
    pub fn new(name: String, secret: &[u8; 32]) -> Self {
        assert!(is_name(&name), "a log's name is plain");
        Self { name, key: SigningKey::from_bytes(secret) }
    }

    /// Reads the key in a file.
    ///
    /// # Errors
    /// It can not be read, or is none (`InvalidData`).
    pub fn load(path: &Path) -> io::Result<Self> {
        let text = Zeroizing::new(fs::read_to_string(path)?);
        let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, CheckpointError::Key);
        let rest = text.trim().strip_prefix(PRIVATE_PREFIX).ok_or(()).map_err(invalid)?;
        let (name, id, secret) = parts_of_key(rest).map_err(|_| ()).map_err(invalid)?;
        let signer = Self::new(name.to_owned(), &secret);
        if hex::encode(key_id(name, &signer.key.verifying_key())) == id {
            Ok(signer)
        } else {
            Err(invalid(()))
        }
    }

    /// Writes the key to a new file that only its owner may read, durably.
    ///
    /// # Errors
    /// The file is there already (`AlreadyExists`), or can not be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let id = hex::encode(key_id(&self.name, &self.key.verifying_key()));
        let secret = Zeroizing::new([&[ALGORITHM], self.key.as_bytes().as_slice()].concat());
        let encoded = Zeroizing::new(BASE64_STANDARD.encode(&*secret));
        let text = Zeroizing::new(format!("{PRIVATE_PREFIX}{}+{id}+{}\n", self.name, *encoded));
        // Whole or not at all: half a key would be no key, and in the way of one.
        let half = path.with_extension("key.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        // A link and no renaming: what is there already stays.
        let placed = written.and_then(|()| std::fs::hard_link(&half, path));
        std::fs::remove_file(&half).and(placed)?;
        path.parent().map_or(Ok(()), |folder| std::fs::File::open(folder)?.sync_all())
    }

    /// The name of the log.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its checkpoints are checked with.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey { name: self.name.clone(), key: self.key.verifying_key() }
    }

    /// The signed note that says this of the log.
    #[must_use]
    pub fn sign(&self, size: Position, root: TreeHash, global: Hash, at: Timestamp) -> String {
        let origin = self.name.clone();
        let text = Checkpoint { origin, size, root, global, time: at.to_rfc3339() }.text();
        let signature = self.key.sign(text.as_bytes()).to_bytes();
        let id = key_id(&self.name, &self.key.verifying_key());
        let line = BASE64_STANDARD.encode([id.as_slice(), &signature].concat());
        format!("{text}\n{SIGNATURE_MARK}{} {line}\n", self.name)
    }
}

/// A note of a file of many, and the line that it begins in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Counted from 1.
    pub line: usize,
    /// Its text, signatures included.
    pub text: String,
}

/// The notes of a text that holds many, one behind the other, with or without empty lines between. What was cut off in the
/// middle of the last one is not told: a crash of the writer explains it.
///
/// # Errors
/// The line that belongs to no note, or in which one gets too long.
pub fn notes(text: &str) -> Result<Vec<Note>, usize> {
    let mut notes = Vec::new();
    let mut note = String::new();
    let (mut begun, mut has_text, mut has_signature) = (0, false, false);
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let is_signature = line.starts_with(SIGNATURE_MARK);
        if has_signature && !is_signature {
            notes.push(Note { line: begun, text: std::mem::take(&mut note) });
            (has_text, has_signature) = (false, false);
        }
        let is_empty = line.trim_end_matches('\n').is_empty();
        if is_empty && !has_text {
            continue;
        }
        if is_signature && !note.ends_with("\n\n") && !has_signature {
            return Err(number);
        }
        if !has_text {
            begun = number;
        }
        has_text = true;
        has_signature = is_signature;
        note.push_str(line);
        if note.len() > NOTE_BYTES_MAX {
            return Err(begun);
        }
    }
    if has_signature && note.ends_with('\n') {
        notes.push(Note { line: begun, text: note });
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        Signer::new("browserspace-0011223344556677".to_owned(), &[7; 32])
    }

    fn note(size: u64) -> String {
        signer().sign(Position(size), TreeHash([1; 32]), Hash([2; 32]), Timestamp(1_796_052_600_000_000))
    }

    #[test]
    fn what_was_signed_reads_back_under_its_key_and_under_no_other() {
        let checked = signer().public_key().check(&note(9)).expect("it is good");
        assert_eq!((checked.size, checked.root), (Position(9), TreeHash([1; 32])));
        assert_eq!((checked.global, checked.origin.as_str()), (Hash([2; 32]), signer().name()));
        let other = Signer::new(signer().name().to_owned(), &[8; 32]).public_key();
        assert!(matches!(other.check(&note(9)), Err(CheckpointError::OtherKey(_))));
    }

    #[test]
    fn no_byte_of_a_note_can_be_changed_and_none_can_be_cut_off() {
        let (key, good) = (signer().public_key(), note(9));
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone().into_bytes();
                bad[at] ^= 1 << bit;
                if let Ok(bad) = String::from_utf8(bad) {
                    assert!(key.check(&bad).is_err(), "bit {bit} of byte {at}: {bad}");
                }
            }
            // Its last newline carries nothing.
            if at + 1 < good.len() && good.is_char_boundary(at) {
                assert!(key.check(&good[..at]).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn keys_read_back_from_their_texts_and_files() {
        let key = signer().public_key();
        assert_eq!(key.to_string().parse(), Ok(key.clone()));
        for bad in ["", "a+b", "a+00000000+AAAA", &key.to_string().replace('0', "1")] {
            assert_eq!(bad.parse::<PublicKey>(), Err(CheckpointError::Key), "{bad}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        signer().save(&path).expect("it is written");
        assert_eq!(Signer::load(&path).expect("it reads").public_key(), key);
        let again = signer().save(&path).expect_err("a key is never overwritten");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        fs::write(&path, "PRIVATE+KEY+nothing").expect("it is written");
        assert_eq!(Signer::load(&path).expect_err("it is none").kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_of_notes_is_taken_apart_and_an_unfinished_one_at_its_end_is_left() {
        let whole = format!("{}\n{}{}", note(1), note(2), note(3));
        let found = notes(&whole).expect("they are notes");
        assert_eq!(found.iter().map(|note| note.line).collect::<Vec<_>>(), [1, 9, 16]);
        for (found, size) in found.iter().zip(1..) {
            assert_eq!(signer().public_key().check(&found.text).expect("it is good").size, Position(size));
        }
        for cut in 1..note(3).len() {
            if whole.is_char_boundary(whole.len() - cut) {
                let notes = notes(&whole[..whole.len() - cut]).expect("a crash is no harm");
                assert_eq!(notes.len(), 2, "{cut} bytes cut");
            }
        }
        assert_eq!(notes(&format!("nonsense\n{}", note(1).replace("\n\n", "\n"))), Err(7));
    }

    #[test]
    fn the_test_vector_of_the_docs_comes_out() {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/proofs.md"))
            .expect("the page is there");
        assert!(page.contains(&note(9)), "{}", note(9));
        assert!(page.contains(&signer().public_key().to_string()), "{}", signer().public_key());
    }
}
