//! Files that are handed to the browser: copies of its own, which it may read and nothing more.
//!
//! The copies lie in a folder of ours inside the profile. The browser's user owns the profile and could put anything
//! there, so nothing is found by a path after it was made: all goes through the descriptor of our folder, and what is
//! there already is never taken. With the document that they were chosen in the copies go; at the latest with the
//! profile.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, Gid, Mode, OFlags, fchmod, fchown, fstat, mkdirat, openat};

/// A file that a page is to get.
#[derive(Debug)]
pub struct OutsideFile {
    /// What the page sees as its name; a single part of a path.
    pub name: String,
    /// Its bytes.
    pub file: File,
    /// How many there are.
    pub bytes: u64,
}

/// Copies that the browser may read, until this is dropped.
#[derive(Debug)]
pub(crate) struct HandedOver {
    folder: PathBuf,
    pub(crate) paths: Vec<PathBuf>,
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        let folder = std::mem::take(&mut self.folder);
        let remove = move || {
            // The profile may be gone by now, and these with it; what stays goes with it.
            let _ = std::fs::remove_dir_all(folder);
        };
        // Dropped by the reader of the connection too, which must not wait for a disk.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

/// Copies the files for the browser of this profile, whose user has this group. Blocks.
pub(crate) fn hand_over(
    profile: &Path,
    group: Option<u32>,
    files: Vec<OutsideFile>,
) -> io::Result<HandedOver> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("given-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let profile_at = openat(CWD, profile, directory, Mode::empty())?;
    mkdirat(&profile_at, &name, Mode::RWXU)?;
    let mut handed = HandedOver { folder: profile.join(&name), paths: Vec::new() };
    let folder = openat(&profile_at, &name, directory, Mode::empty())?;
    if fstat(&folder)?.st_uid != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the folder for the files was replaced"));
    }
    for outside in files {
        let path = handed.folder.join(&outside.name);
        copy(&folder, group, outside)?;
        handed.paths.push(path);
    }
    if let Some(group) = group {
        fchown(&folder, None, Some(Gid::from_raw(group)))?;
        fchmod(&folder, Mode::RWXU | Mode::RGRP | Mode::XGRP)?;
    }
    Ok(handed)
}

fn copy(folder: &OwnedFd, group: Option<u32>, outside: OutsideFile) -> io::Result<()> {
    let OutsideFile { name, file, bytes } = outside;
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(io::Error::other("the name of a file is no name"));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(openat(folder, &name, flags, Mode::RUSR)?);
    // One more than there should be, so that a file that has grown is noticed.
    let copied = io::copy(&mut file.take(bytes.saturating_add(1)), &mut copy)?;
    if copied != bytes {
        return Err(io::Error::other("a file has another size than it should"));
    }
    if let Some(group) = group {
        fchown(&copy, None, Some(Gid::from_raw(group)))?;
        fchmod(&copy, Mode::RUSR | Mode::RGRP)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn outside(name: &str, text: &str, bytes: u64) -> OutsideFile {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("it is written");
        std::io::Seek::rewind(&mut file).expect("it is rewound");
        OutsideFile { name: name.to_owned(), file, bytes }
    }

    #[test]
    fn c11_copies_can_be_read_only_and_are_gone_with_what_holds_them() {
        let profile = tempfile::tempdir().expect("a folder");
        let handed = hand_over(profile.path(), None, vec![outside("a.png", "tea", 3)]).expect("copied");
        let path = handed.paths[0].clone();
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "tea");
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o400);
        drop(handed);
        assert!(!path.exists() && std::fs::read_dir(profile.path()).expect("it is there").next().is_none());
    }

    #[test]
    fn c11_a_name_that_leads_elsewhere_and_a_file_of_another_size_are_refused_and_leave_nothing() {
        let profile = tempfile::tempdir().expect("a folder");
        for (name, bytes) in [("../a", 3), ("..", 3), ("", 3), ("/etc/x", 3), ("a", 2), ("a", 4)] {
            assert!(
                hand_over(profile.path(), None, vec![outside(name, "tea", bytes)]).is_err(),
                "{name} {bytes}"
            );
        }
        assert!(std::fs::read_dir(profile.path()).expect("it is there").next().is_none());
        let elsewhere = tempfile::tempdir().expect("a folder");
        let link = elsewhere.path().join("link");
        symlink(profile.path(), &link).expect("a link");
        assert!(hand_over(&link, None, vec![outside("a", "tea", 3)]).is_err(), "a profile that is a link");
    }
}
