//! A release on disk: three files below `artifacts/downloads/<space>/`, each published without replacing anything (Q5, Q7).
//!
//! ```text
//!   <id>               the bytes           first
//!   <id>.json          where they are from, the same bytes whoever releases them
//!   <id>.approval.json who let them out    last: with it the release is there
//! ```
//!
//! Each is written under another name, synced, renamed, and its folder synced. A kill at any point leaves whole files under
//! final names or none, and the same release goes on from there. What is there already is compared and never written.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use eventlog::{
    event::download::{Approval, DownloadId, Receipt},
    id::SpaceId,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;

use super::quarantine::{Quarantine, open_plain, read_through};

/// The folder below that of artifacts.
const FOLDER: &str = "downloads";

/// Why the files are not all there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    /// The captured bytes are not there any more.
    #[error("the captured file is gone")]
    Gone,
    /// They are not those that were approved.
    #[error("the captured file is not what it was")]
    Tampered,
    /// Something else lies under a final name; it was left as it is.
    #[error("another file has its name")]
    Conflict,
    /// The disk refused; the same may be asked again.
    #[error("the files could not be published")]
    Io(#[from] io::Error),
}

/// Where the bytes come from. What it says never changes, whoever releases them and when.
#[derive(Serialize)]
struct Provenance<'a> {
    sha256: &'a str,
    bytes: u64,
    url: &'a str,
    suggested_filename: &'a str,
    space_id: String,
    workspace_id: String,
    captured_at: String,
}

/// Who let them out.
#[derive(Serialize)]
struct ApprovalFile<'a> {
    guid: String,
    space_id: String,
    workspace_id: String,
    sha256: &'a str,
    bytes: u64,
    approved_at: String,
    authorized_principal: String,
    authorized_principal_scope: &'a str,
    declared_operator: &'a str,
}

/// One release, ready for the disk.
pub(crate) struct Publication<'a> {
    pub(crate) space: SpaceId,
    pub(crate) download: DownloadId,
    pub(crate) receipt: &'a Receipt,
    pub(crate) approval: &'a Approval,
}

/// Called before each thing that is asked of the disk; tests let it fail there.
pub(crate) type Step<'a> = &'a mut dyn FnMut(&'static str) -> io::Result<()>;

/// Where the released files of a Space are, below the data folder.
pub(crate) fn folder(data_dir: &Path, space: SpaceId) -> PathBuf {
    data_dir.join(crate::artifact::FOLDER).join(FOLDER).join(space.to_string())
}

impl Publication<'_> {
    /// Publishes what is missing of the three files. Blocks.
    pub(crate) fn publish(
        &self,
        data_dir: &Path,
        quarantine: &Quarantine,
        step: Step<'_>,
    ) -> Result<(), PublishError> {
        let folder = folder(data_dir, self.space);
        step("folder")?;
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let [bytes, provenance, approval] = self.names();
        if !self.has_bytes(&folder.join(&bytes))? {
            self.publish_bytes(&folder, &bytes, quarantine, step)?;
        }
        self.publish_text(&folder, &provenance, &self.provenance()?, step)?;
        self.publish_text(&folder, &approval, &self.approval()?, step)
    }

    /// Holds the three files against what was recorded; changes nothing. Blocks.
    pub(crate) fn check(&self, data_dir: &Path) -> Result<File, PublishError> {
        let folder = folder(data_dir, self.space);
        let [bytes, provenance, approval] = self.names();
        for (name, wanted) in [(provenance, self.provenance()?), (approval, self.approval()?)] {
            match has_text(&folder.join(name), &wanted)? {
                true => {}
                false => return Err(PublishError::Gone),
            }
        }
        if !self.has_bytes(&folder.join(&bytes))? {
            return Err(PublishError::Gone);
        }
        Ok(open_plain(&folder.join(bytes))?)
    }

    /// The names of the three files, in the order in which they are published.
    pub(crate) fn names(&self) -> [String; 3] {
        let id = self.download;
        [id.to_string(), format!("{id}.json"), format!("{id}.approval.json")]
    }

    fn publish_bytes(
        &self,
        folder: &Path,
        name: &str,
        quarantine: &Quarantine,
        step: Step<'_>,
    ) -> Result<(), PublishError> {
        let source = match quarantine.open(self.download) {
            Err(error) if is_absent(&error) => return Err(PublishError::Gone),
            source => source?,
        };
        let mut making = Making::begin(folder, name, step)?;
        let found = read_through(source, |chunk| making.write(chunk, step))?;
        if (&found.sha256, found.bytes) != (&self.approval.sha256, self.approval.bytes) {
            return Err(PublishError::Tampered);
        }
        making.publish(step)
    }

    fn publish_text(
        &self,
        folder: &Path,
        name: &str,
        text: &[u8],
        step: Step<'_>,
    ) -> Result<(), PublishError> {
        if has_text(&folder.join(name), text)? {
            return Ok(());
        }
        let mut making = Making::begin(folder, name, step)?;
        let (one, other) = text.split_at(text.len() / 2);
        making.write(one, step)?;
        making.write(other, step)?;
        making.publish(step)
    }

    /// Whether the published bytes are there.
    fn has_bytes(&self, path: &Path) -> Result<bool, PublishError> {
        let file = match open_existing(path)? {
            Some(file) => file,
            None => return Ok(false),
        };
        let found = read_through(file, |_| Ok(()))?;
        let is_same = (&found.sha256, found.bytes) == (&self.approval.sha256, self.approval.bytes);
        if is_same { Ok(true) } else { Err(PublishError::Conflict) }
    }

    fn provenance(&self) -> io::Result<Vec<u8>> {
        let receipt = self.receipt;
        Ok(serde_json::to_vec(&Provenance {
            sha256: &receipt.sha256,
            bytes: receipt.bytes,
            url: receipt.url.get(),
            suggested_filename: receipt.suggested_filename.get(),
            space_id: self.space.to_string(),
            workspace_id: receipt.workspace.to_string(),
            captured_at: receipt.captured_at.to_rfc3339(),
        })?)
    }

    fn approval(&self) -> io::Result<Vec<u8>> {
        let approval = self.approval;
        Ok(serde_json::to_vec(&ApprovalFile {
            guid: self.download.to_string(),
            space_id: self.space.to_string(),
            workspace_id: self.receipt.workspace.to_string(),
            sha256: &approval.sha256,
            bytes: approval.bytes,
            approved_at: approval.approved_at.to_rfc3339(),
            authorized_principal: approval.authorized_principal.to_string(),
            authorized_principal_scope: &approval.authorized_principal_scope,
            declared_operator: approval.declared_operator.get(),
        })?)
    }
}

/// A file that has not its name yet. What is left of it goes with it, but for a kill; the next try then removes it.
struct Making {
    folder: PathBuf,
    making: PathBuf,
    last: PathBuf,
    file: File,
}

impl Making {
    fn begin(folder: &Path, name: &str, step: Step<'_>) -> Result<Self, PublishError> {
        let making = folder.join(format!(".{name}"));
        // One of a try that was killed. Nobody else makes it: there is one line for each Space.
        let _ = fs::remove_file(&making);
        step("create")?;
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&making)?;
        Ok(Self { folder: folder.to_owned(), making, last: folder.join(name), file })
    }

    fn write(&mut self, bytes: &[u8], step: Step<'_>) -> io::Result<()> {
        step("write")?;
        self.file.write_all(bytes)
    }

    fn publish(&self, step: Step<'_>) -> Result<(), PublishError> {
        step("sync")?;
        self.file.sync_all()?;
        step("rename")?;
        match renameat_with(CWD, &self.making, CWD, &self.last, RenameFlags::NOREPLACE) {
            Err(rustix::io::Errno::EXIST) => return Err(PublishError::Conflict),
            renamed => renamed.map_err(io::Error::from)?,
        }
        step("sync_folder")?;
        File::open(&self.folder)?.sync_all()?;
        Ok(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Gone already where it has got its name.
        let _ = fs::remove_file(&self.making);
    }
}

fn has_text(path: &Path, wanted: &[u8]) -> Result<bool, PublishError> {
    let Some(file) = open_existing(path)? else { return Ok(false) };
    let mut there = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, wanted.len() as u64 + 1), &mut there)?;
    if there == wanted { Ok(true) } else { Err(PublishError::Conflict) }
}

/// What lies under a final name; a link or a folder there is a conflict, and is not followed.
fn open_existing(path: &Path) -> Result<Option<File>, PublishError> {
    match fs::symlink_metadata(path) {
        Err(error) if is_absent(&error) => Ok(None),
        Ok(meta) if meta.is_file() => Ok(Some(open_plain(path)?)),
        Ok(_) => Err(PublishError::Conflict),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    // A link that is not followed is no file of ours either.
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
