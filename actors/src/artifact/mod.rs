//! Files that tasks made: written before their event, read back by id; no path leaves this crate.
//!
//! Layout: `artifacts/<space>/<artifact>` holds the bytes, `<artifact>.json` beside it what they are. Both are 0600 in
//! folders of 0700, written under another name, synced, and then renamed: a file with its name is whole.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use eventlog::{
    event::space::ArtifactRecord,
    id::{ArtifactId, SpaceId},
};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::{rejection::Rejection, request::ArtifactFile};

/// The folder below the data folder.
pub(crate) const FOLDER: &str = "artifacts";

/// Why an artifact was not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// It is larger than one may be.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// The Space has no room left for it.
    #[error("the Space's files would take more than {0} bytes")]
    SpaceFull(u64),
    /// The disk refused.
    #[error("the file could not be written")]
    Io(#[from] io::Error),
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes_max: u64,
    pub(crate) space_bytes_max: u64,
}

/// Keeps `bytes`; durable when this returns. Blocks on the disk.
pub(crate) fn store(
    folder: &Path,
    space: SpaceId,
    id: ArtifactId,
    kind: &str,
    media_type: &str,
    bytes: &[u8],
    limits: Limits,
) -> Result<ArtifactRecord, StoreError> {
    let size = bytes.len() as u64;
    if size > limits.bytes_max {
        return Err(StoreError::TooLarge(limits.bytes_max));
    }
    let folder = folder.join(space.to_string());
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    if used(&folder)?.saturating_add(size) > limits.space_bytes_max {
        return Err(StoreError::SpaceFull(limits.space_bytes_max));
    }
    let record = ArtifactRecord {
        id,
        kind: kind.to_owned(),
        media_type: media_type.to_owned(),
        bytes: size,
        sha256: hex::encode(Sha256::digest(bytes)),
    };
    let description = serde_json::to_vec(&record).map_err(io::Error::from)?;
    write(&folder, &format!("{id}.json"), &description)?;
    write(&folder, &id.to_string(), bytes)?;
    File::open(&folder)?.sync_all()?;
    Ok(record)
}

fn used(folder: &Path) -> io::Result<u64> {
    fs::read_dir(folder)?.try_fold(0u64, |sum, entry| Ok(sum.saturating_add(entry?.metadata()?.len())))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let making = folder.join(format!(".{name}"));
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&making)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(making, folder.join(name))
}

/// Opens what was kept. Blocks on the disk.
pub(crate) fn open(folder: &Path, space: SpaceId, id: ArtifactId) -> Result<ArtifactFile, Rejection> {
    let folder = folder.join(space.to_string());
    let missing = |_| Rejection::TaskNotFound;
    let description = fs::read(folder.join(format!("{id}.json"))).map_err(missing)?;
    let record: ArtifactRecord = serde_json::from_slice(&description).map_err(|_| Rejection::Internal)?;
    // What stands in the place of a file, a link or a folder, is none; and one of another size is not what was kept.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(folder.join(id.to_string()))
        .map_err(missing)?;
    let found = file.metadata().map_err(missing)?;
    if !found.is_file() || found.len() != record.bytes {
        return Err(Rejection::TaskNotFound);
    }
    Ok(ArtifactFile { file, media_type: record.media_type, bytes: record.bytes, sha256: record.sha256 })
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::fs::PermissionsExt};

    use uuid::Uuid;

    use super::*;

    const LIMITS: Limits = Limits { bytes_max: 10, space_bytes_max: 400 };

    #[test]
    fn c11_what_was_kept_reads_back_under_its_own_space_and_nothing_in_its_place_does() {
        let folder = tempfile::tempdir().unwrap();
        let [mine, other] = [1, 2].map(|number| SpaceId::from_uuid(Uuid::from_u128(number)));
        let id = ArtifactId::from_uuid(Uuid::from_u128(3));
        let record = store(folder.path(), mine, id, "screenshot", "image/png", b"picture", LIMITS).unwrap();
        let mut opened = open(folder.path(), mine, id).unwrap();
        let mut bytes = Vec::new();
        opened.file.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.as_slice(), opened.sha256), (&b"picture"[..], record.sha256));
        assert_eq!(open(folder.path(), other, id).unwrap_err(), Rejection::TaskNotFound);
        // What is put in its place is not taken for it.
        let path = folder.path().join(mine.to_string()).join(id.to_string());
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        fs::write(elsewhere.path(), b"picture").unwrap();
        let refused = || open(folder.path(), mine, id).unwrap_err() == Rejection::TaskNotFound;
        fs::write(&path, b"longer than it was").unwrap();
        assert!(refused());
        fs::remove_file(&path).unwrap();
        assert!(refused());
        std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
        assert!(refused());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(refused());
        let mode = opened.file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn one_file_and_one_space_have_their_limits() {
        let folder = tempfile::tempdir().unwrap();
        let space = SpaceId::from_uuid(Uuid::from_u128(1));
        let keep = |number, bytes: &[u8]| {
            let id = ArtifactId::from_uuid(Uuid::from_u128(number));
            store(folder.path(), space, id, "screenshot", "image/png", bytes, LIMITS)
        };
        assert!(matches!(keep(1, &[0; 11]), Err(StoreError::TooLarge(10))));
        assert!(keep(2, &[0; 10]).is_ok());
        assert!((3..9).any(|number| matches!(keep(number, &[0; 10]), Err(StoreError::SpaceFull(400)))));
    }
}
