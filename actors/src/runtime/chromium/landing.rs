//! The folder that a browser downloads into: `runtime/<name>.in`, its user's and nobody else's, gone with the browser.
//!
//! Where this process may mount, it is a tmpfs of a fixed size: what a page sends without saying how much comes to an end
//! there, however late Chromium tells of it. Elsewhere the limit on the files that the browser's main process writes is
//! what holds.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, chown},
    path::{Path, PathBuf},
};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tracing::{info, warn};

use crate::download::FILE_BYTES_MAX;

/// So many files of the largest size fit beside each other.
const SLOTS: u64 = 8;
/// What Chromium's main process may write into one file: its own databases are far below.
const WRITTEN_BYTES_MAX: u64 = 4 * FILE_BYTES_MAX;

/// One landing folder.
#[derive(Debug, Clone)]
pub(super) struct LandingFolder {
    path: PathBuf,
}

impl LandingFolder {
    /// Where the browser of this profile downloads into.
    pub(super) fn beside(profile: &Path) -> Self {
        Self { path: profile.with_extension("in") }
    }

    /// Makes it for the browser's user.
    pub(super) fn make(&self, uid: Option<u32>) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(&self.path)?;
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (owner, group) = uid.map_or((user, group), |uid| (uid, uid));
        let size = SLOTS * FILE_BYTES_MAX;
        let options = format!("size={size},nr_inodes=1024,mode=0700,uid={owner},gid={group}");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        match mount(Some("browserspace"), &self.path, Some("tmpfs"), flags, Some(options.as_str())) {
            Ok(()) => Ok(()),
            Err(reason) => {
                info!(%reason, "A landing folder is no tmpfs: only the limit on written files bounds it.");
                chown(&self.path, Some(owner), Some(group)).inspect_err(|_| self.remove())
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How the browser is told.
    pub(super) fn spec(&self) -> browser::Landing {
        browser::Landing { folder: self.path.clone(), file_bytes_max: WRITTEN_BYTES_MAX }
    }

    /// Removes it with what is in it. Blocks.
    pub(super) fn remove(&self) {
        // It is no mount where this process may not mount.
        let _ = umount2(&self.path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                warn!(%error, "The landing folder of an ended browser could not be removed.");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
