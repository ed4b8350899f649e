//! A key file: random keys, made ahead, each overwritten with zeros when it is destroyed.
//!
//! ```text
//! offset 0    16 bytes  "browserspace-key"
//! offset 16    8 bytes  version, u64 little-endian: 1
//! offset 24    8 bytes  count of slots, u64 little-endian
//! offset 32   32 bytes  slot 0: a key, or zeros
//! offset 64   32 bytes  slot 1
//! …
//! ```
//!
//! A file is written under another name, synced, and then renamed, so that a file of this name is always complete.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions, remove_file, rename, set_permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use super::{Key, KeyError, KeyId, random_key};

/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 32;
/// Keys in a file. One file is made per so many tasks, and at worst one live key keeps so many slots on disk (128 KiB).
pub(super) const SLOTS: u16 = 4096;

const HEADER_BYTES: usize = 32;
const MAGIC: &[u8; 16] = b"browserspace-key";
const VERSION: u64 = 1;
const SUFFIX: &str = ".keys";
const SUFFIX_UNFINISHED: &str = ".new";
const ZEROS: [u8; KEY_BYTES] = [0; KEY_BYTES];

/// Makes the folder, or makes sure that only we can enter it.
pub(super) fn prepare_folder(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    set_permissions(dir, Permissions::from_mode(0o700))
}

/// The numbers of the key files in the folder. Unfinished ones are removed: none of their keys was ever given out.
pub(super) fn list(dir: &Path) -> io::Result<Vec<u64>> {
    let mut files = Vec::new();
    for entry in dir.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.ends_with(SUFFIX_UNFINISHED) {
            remove_file(entry.path())?;
        } else if let Some(number) = name.strip_suffix(SUFFIX) {
            files.extend(u64::from_str_radix(number, 16));
        }
    }
    Ok(files)
}

/// Makes a file of fresh keys, durable when this returns.
pub(super) fn create(dir: &Path) -> io::Result<Vec<(KeyId, Key)>> {
    let file: u64 = rand::random();
    let keys: Vec<(KeyId, Key)> =
        (0..u64::from(SLOTS)).map(|slot| (KeyId { file, slot }, random_key())).collect();
    write(dir, file, keys.iter().map(|(_, key)| key.as_slice()))?;
    Ok(keys)
}

/// Puts a key into its slot, durable when this returns; makes its file, with no other key in it, if there is none.
pub(super) fn put(dir: &Path, id: KeyId, key: &Key) -> Result<(), KeyError> {
    if id.slot >= u64::from(SLOTS) {
        return Err(KeyError::Missing(id));
    }
    if !path(dir, id.file).exists() {
        write(dir, id.file, (0..SLOTS).map(|_| ZEROS.as_slice()))?;
    }
    let out = OpenOptions::new().write(true).open(path(dir, id.file))?;
    out.write_all_at(key.as_slice(), HEADER_BYTES as u64 + id.slot * KEY_BYTES as u64)?;
    Ok(out.sync_data()?)
}

fn write<'a>(dir: &Path, file: u64, keys: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(file_bytes()));
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&u64::from(SLOTS).to_le_bytes());
    for key in keys {
        bytes.extend_from_slice(key);
    }
    let unfinished = dir.join(format!("{file:016x}{SUFFIX_UNFINISHED}"));
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    out.write_all(&bytes)?;
    out.sync_all()?;
    rename(&unfinished, path(dir, file))?;
    File::open(dir)?.sync_all()
}

/// The keys of a file that are still needed; every other one is zeros on disk when this returns.
pub(super) fn keep_live(
    dir: &Path,
    file: u64,
    live: impl Fn(KeyId) -> bool,
) -> Result<Vec<(KeyId, Key)>, KeyError> {
    let bytes = Zeroizing::new(std::fs::read(path(dir, file))?);
    let (header, slots) = bytes.split_at_checked(HEADER_BYTES).ok_or(KeyError::Damaged(file))?;
    if !is_header(header) || bytes.len() != file_bytes() {
        return Err(KeyError::Damaged(file));
    }
    let mut kept = Vec::new();
    let mut dead = Vec::new();
    for (slot, bytes) in (0..u64::from(SLOTS)).zip(slots.chunks_exact(KEY_BYTES)) {
        let id = KeyId { file, slot };
        if bytes == ZEROS {
            continue;
        }
        if live(id) {
            let mut key = Key::default();
            key.copy_from_slice(bytes);
            kept.push((id, key));
        } else {
            dead.push(slot);
        }
    }
    zero(dir, file, &dead)?;
    Ok(kept)
}

/// Overwrites these slots with zeros, durable when this returns. A file that is not there holds no key either.
pub(super) fn zero(dir: &Path, file: u64, slots: &[u64]) -> io::Result<()> {
    if slots.is_empty() {
        return Ok(());
    }
    let out = match OpenOptions::new().write(true).open(path(dir, file)) {
        Ok(out) => out,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for slot in slots {
        out.write_all_at(&ZEROS, HEADER_BYTES as u64 + slot * KEY_BYTES as u64)?;
    }
    out.sync_data()
}

/// Removes a file whose keys are all zeros. Should it come back after a power cut, it holds nothing.
pub(super) fn remove(dir: &Path, file: u64) -> io::Result<()> {
    match remove_file(path(dir, file)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn is_header(header: &[u8]) -> bool {
    header[..16] == *MAGIC
        && header[16..24] == VERSION.to_le_bytes()
        && header[24..] == u64::from(SLOTS).to_le_bytes()
}

const fn file_bytes() -> usize {
    HEADER_BYTES + SLOTS as usize * KEY_BYTES
}

fn path(dir: &Path, file: u64) -> PathBuf {
    dir.join(format!("{file:016x}{SUFFIX}"))
}
