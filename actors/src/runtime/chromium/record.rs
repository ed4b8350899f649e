//! What is written down of a running Chromium, so that the next server can end it if this one dies.
//!
//! `runtime/<name>.json` is written before the process exists and again once it has a pid; `runtime/<name>` is its
//! profile. A name is random and never used twice, so a process that runs with that profile is ours, whoever has its
//! pid now. The folder may be passed through but not read: each browser runs as another uid and must reach its own.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use eventlog::{Generation, id::SpaceId};
use serde::{Deserialize, Serialize};

/// The folder below the data folder.
pub(super) const FOLDER: &str = "runtime";
/// It may be passed through, and not listed: the names in it are secrets of their browsers.
const FOLDER_MODE: u32 = 0o711;
/// Random bytes in a name.
pub(super) const NAME_BYTES: usize = 6;
/// What a profile's path has behind the data folder's: `/runtime/<name>`, the name in hex.
pub(super) const PROFILE_BELOW_BYTES: usize = 1 + FOLDER.len() + 1 + 2 * NAME_BYTES;

/// One running Chromium.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RuntimeRecord {
    /// For which Space.
    pub(super) space: SpaceId,
    /// Which start.
    pub(super) generation: Generation,
    /// Its profile.
    pub(super) profile: PathBuf,
    /// Its process, once it has one.
    pub(super) pid: Option<i32>,
    /// When that started, in clock ticks since the machine's boot.
    pub(super) start_ticks: Option<u64>,
}

/// Makes the folder. Passing through the folders above it is all that a browser's user may do there.
pub(super) fn prepare(data_dir: &Path) -> io::Result<PathBuf> {
    let folder = data_dir.join(FOLDER);
    fs::create_dir_all(data_dir)?;
    match fs::DirBuilder::new().mode(FOLDER_MODE).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // The mode above counts only for a new folder, and less what the umask takes away.
    fs::set_permissions(&folder, fs::Permissions::from_mode(FOLDER_MODE))?;
    let mode = fs::metadata(data_dir)?.permissions().mode();
    if mode & 0o011 != 0o011 {
        fs::set_permissions(data_dir, fs::Permissions::from_mode((mode & 0o7777) | 0o011))?;
    }
    Ok(folder)
}

impl RuntimeRecord {
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        let making = path.with_extension("new");
        let mut file =
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&making)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(making, path)
    }
}

/// Ends what the records name, and removes it with its profile. Blocks. Returns how many processes were ended.
pub(super) fn end_recorded(data_dir: &Path) -> io::Result<usize> {
    let folder = data_dir.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut ended = 0;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            ended += end_one(&path)?;
        }
    }
    Ok(ended)
}

fn end_one(path: &Path) -> io::Result<usize> {
    let Ok(record) = serde_json::from_slice::<RuntimeRecord>(&fs::read(path)?) else {
        // A power cut in the middle of a write; the record written first names the same profile.
        tracing::warn!("A record of a runtime can't be read.");
        return Ok(0);
    };
    let mut ended = end_all(&record.profile)?;
    let late = || end_all(&record.profile).map(|count| ended += count);
    super::landing::LandingFolder::beside(&record.profile).remove();
    match browser::remove_profile(&record.profile, late) {
        Ok(()) => fs::remove_file(path)?,
        // Every start has a folder of its own, so what is left takes room and nothing else; the next start tries again.
        Err(error) => tracing::warn!(%error, "The profile of an ended browser could not be removed."),
    }
    Ok(ended)
}

/// Ends every process that runs on this profile.
fn end_all(profile: &Path) -> io::Result<usize> {
    let leftovers = browser::leftovers(profile);
    for process in &leftovers {
        if !browser::end_orphan(process)? {
            return Err(io::Error::other("a browser of an earlier server does not end"));
        }
    }
    Ok(leftovers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_may_be_passed_through_and_not_listed_also_one_that_was_made_otherwise() {
        let dir = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
        let folder = prepare(dir.path()).expect("it is made");
        assert_eq!(mode(&folder), 0o711);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
        prepare(dir.path()).expect("it is there");
        assert_eq!(mode(&folder), 0o711);
    }
}
