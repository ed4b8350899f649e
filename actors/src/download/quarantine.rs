//! Where captured files wait: `quarantine/<space>/<id>`, 0600 in folders of 0700, ours and not the browser's. A file with
//! its name is whole: it is written under another one, synced, and renamed without replacing.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use eventlog::{event::download::DownloadId, id::SpaceId};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use sha2::{Digest, Sha256};

use super::{FILE_BYTES_MAX, media};

/// The folder below the data folder.
pub(crate) const FOLDER: &str = "quarantine";
const CHUNK_BYTES: usize = 256 * 1024;

/// What was taken into the quarantine, or found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) sniffed: &'static str,
}

/// Why a file was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TakeError {
    /// It is larger than a file may be.
    #[error("the file is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// It is a link, a folder, or not there.
    #[error("there is no plain file")]
    NotAFile,
    /// The disk refused.
    #[error("the file could not be kept")]
    Io(#[from] io::Error),
}

/// The quarantine of one Space.
#[derive(Debug, Clone)]
pub(crate) struct Quarantine {
    folder: PathBuf,
}

impl Quarantine {
    pub(crate) fn new(data_dir: &Path, space: SpaceId) -> Self {
        Self { folder: data_dir.join(FOLDER).join(space.to_string()) }
    }

    /// Takes a copy of `name` in the folder of the browser's user; hashed as it is read from the opened descriptor, so
    /// that nothing put into its place counts. Blocks.
    pub(crate) fn take(&self, landing: &Path, name: &str, id: DownloadId) -> Result<Found, TakeError> {
        let folder = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let landing = openat(CWD, landing, folder, Mode::empty()).map_err(|_| TakeError::NotAFile)?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = openat(&landing, name, flags, Mode::empty()).map_err(|_| TakeError::NotAFile)?;
        let source = File::from(source);
        let meta = source.metadata()?;
        if !meta.is_file() || meta.nlink() != 1 {
            return Err(TakeError::NotAFile);
        }
        if meta.len() > FILE_BYTES_MAX {
            return Err(TakeError::TooLarge);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let making = self.folder.join(format!(".{id}"));
        let taken = self.copy(source, &making, id);
        if taken.is_err() {
            // What is left of a copy that failed is nobody's.
            let _ = fs::remove_file(&making);
        }
        taken
    }

    fn copy(&self, source: File, making: &Path, id: DownloadId) -> Result<Found, TakeError> {
        // One of an earlier try, if any.
        let _ = fs::remove_file(making);
        let mut copy = OpenOptions::new().create_new(true).write(true).mode(0o600).open(making)?;
        let found = read_through(source, |chunk| copy.write_all(chunk))?;
        if found.bytes > FILE_BYTES_MAX {
            return Err(TakeError::TooLarge);
        }
        copy.sync_all()?;
        renameat_with(CWD, making, CWD, self.folder.join(id.to_string()), RenameFlags::NOREPLACE)
            .map_err(io::Error::from)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(found)
    }

    /// Opens a captured file; a link or a folder in its place is none.
    pub(crate) fn open(&self, id: DownloadId) -> io::Result<File> {
        open_plain(&self.folder.join(id.to_string()))
    }

    /// Reads a captured file again, whole. Blocks.
    pub(crate) fn examine(&self, id: DownloadId) -> io::Result<Found> {
        read_through(self.open(id)?, |_| Ok(()))
    }

    /// Deletes a file; that it is gone already is well. Blocks.
    pub(crate) fn forget(&self, id: DownloadId) -> io::Result<()> {
        for name in [id.to_string(), format!(".{id}")] {
            match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Deletes whatever no download of the Space accounts for. Blocks.
    pub(crate) fn keep_only(&self, is_kept: impl Fn(DownloadId) -> bool) -> io::Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if !id.is_some_and(&is_kept) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Opens a plain file and follows no link.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Reads a file to its end, or one byte beyond what a download may have.
pub(crate) fn read_through(source: File, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Found> {
    let (mut hasher, mut bytes, mut first) = (Sha256::new(), 0u64, Vec::new());
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut source = source.take(FILE_BYTES_MAX + 1);
    loop {
        let count = source.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        let read = &chunk[..count];
        if first.len() < media::SNIFFED_BYTES {
            first.extend_from_slice(&read[..count.min(media::SNIFFED_BYTES - first.len())]);
        }
        hasher.update(read);
        bytes += count as u64;
        each(read)?;
    }
    Ok(Found { bytes, sha256: hex::encode(hasher.finalize()), sniffed: media::sniffed(&first) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use uuid::Uuid;

    use super::*;

    fn id(number: u128) -> DownloadId {
        DownloadId::from_uuid(Uuid::from_u128(number))
    }

    fn quarantine(folder: &Path) -> Quarantine {
        Quarantine::new(folder, SpaceId::from_uuid(Uuid::from_u128(1)))
    }

    #[test]
    fn c10_what_is_taken_is_a_copy_under_an_opaque_id_that_nobody_can_run() {
        let (data, landing) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let quarantine = quarantine(data.path());
        fs::write(landing.path().join("a"), b"%PDF-1.7").unwrap();
        let found = quarantine.take(landing.path(), "a", id(1)).unwrap();
        assert_eq!((found.bytes, found.sniffed), (8, "application/pdf"));
        assert_eq!(found, quarantine.examine(id(1)).unwrap());
        let path = quarantine.folder.join(id(1).to_string());
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        // A second of this id replaces nothing, and leaves nothing.
        fs::write(landing.path().join("a"), b"other").unwrap();
        assert!(quarantine.take(landing.path(), "a", id(1)).is_err());
        assert_eq!(found, quarantine.examine(id(1)).unwrap());
        assert_eq!(fs::read_dir(&quarantine.folder).unwrap().count(), 1);
    }

    #[test]
    fn c10_a_link_a_folder_and_what_is_too_large_are_not_taken_and_leave_nothing() {
        let (data, landing) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let quarantine = quarantine(data.path());
        fs::write(data.path().join("secret"), b"secret").unwrap();
        symlink(data.path().join("secret"), landing.path().join("link")).unwrap();
        fs::hard_link(data.path().join("secret"), landing.path().join("hard")).unwrap();
        fs::create_dir(landing.path().join("folder")).unwrap();
        File::create(landing.path().join("large")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        for name in ["link", "hard", "folder", "missing", "../secret"] {
            let refused = quarantine.take(landing.path(), name, id(1)).unwrap_err();
            assert!(matches!(refused, TakeError::NotAFile) || name == "../secret", "{name}: {refused}");
        }
        assert!(matches!(quarantine.take(landing.path(), "large", id(2)), Err(TakeError::TooLarge)));
        File::options()
            .write(true)
            .open(landing.path().join("large"))
            .unwrap()
            .set_len(FILE_BYTES_MAX)
            .unwrap();
        assert_eq!(quarantine.take(landing.path(), "large", id(3)).unwrap().bytes, FILE_BYTES_MAX);
    }

    #[test]
    fn a_link_in_place_of_a_captured_file_is_not_that_file() {
        let data = tempfile::tempdir().unwrap();
        let quarantine = quarantine(data.path());
        fs::create_dir_all(&quarantine.folder).unwrap();
        fs::write(data.path().join("other"), b"other").unwrap();
        symlink(data.path().join("other"), quarantine.folder.join(id(1).to_string())).unwrap();
        assert!(quarantine.examine(id(1)).is_err());
    }
}
