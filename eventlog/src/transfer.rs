//! Moving a log: exported for other tools or exactly, imported after it was checked, backed up while a server writes,
//! restored up to a position. What comes out is byte for byte what went in.
//!
//! Every copy is made under another name, checked from its first byte to its last, and only then given its name.

mod backup;
mod export;
mod import;
mod line;

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::{
    log::Hash,
    number::Position,
    segment::OpenError,
    verify::{DurableEnd, Fault, Options, Report, check},
};

pub(crate) use self::export::last_batch;
pub use self::{
    backup::{Backup, backup, restore},
    export::{Exported, Format, Selection, export},
    import::import,
};

/// Why a log was not moved. What was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file system refused.
    #[error("{path} can not be used", path = path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The log is not what was written; the first bad place.
    #[error("the log is broken in {file} at byte {offset}, position {position}: {what}", file = .0.file.display(), offset = .0.offset, position = .0.position, what = .0.what)]
    Broken(Box<Fault>),
    /// The log could not be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Something lies there already.
    #[error("{0} is not empty: name a folder that is, or that is not there yet")]
    NotEmpty(PathBuf),
    /// The export is no export of a whole log, or is damaged.
    #[error("the export can not be taken, in line {line}: {what}")]
    Line {
        /// Which line.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A binary export is damaged.
    #[error("the export can not be taken: {0}")]
    Container(&'static str),
    /// The log has no event at or before the position that was asked for.
    #[error("no batch of the log ends at or before position {0}")]
    NothingThere(Position),
}

/// Adds a path to an error of the file system.
pub(crate) fn io_error(path: &Path) -> impl Fn(io::Error) -> TransferError + '_ {
    |source| TransferError::Io { path: path.to_owned(), source }
}

/// What a log that was moved holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Its last position.
    pub head: Position,
    /// The hash of the whole log there.
    pub global: Hash,
}

/// Checks a log that must be whole; a torn tail is left out.
fn check_whole(folder: &Path) -> Result<Report, TransferError> {
    let mut report = check(folder, &Options::default())?;
    match report.faults.is_empty() {
        true => Ok(report),
        false => Err(TransferError::Broken(Box::new(report.faults.swap_remove(0)))),
    }
}

/// A folder in the making beside the one that it will be; removed again unless it is finished.
struct Making {
    path: PathBuf,
    target: PathBuf,
}

impl Making {
    /// The target must not be there, or be empty.
    fn of(target: &Path) -> Result<Self, TransferError> {
        match fs::read_dir(target) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(TransferError::NotEmpty(target.to_owned()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(target)(error)),
        }
        let mut name = target.as_os_str().to_owned();
        name.push(".making");
        let path = PathBuf::from(name);
        // What an attempt that was killed has left.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(&path)(error)),
            _ => {}
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(io_error(&path))?;
        Ok(Self { path, target: target.to_owned() })
    }

    /// Checks the log in it, and gives it its name, durably.
    fn finish(self, log: &Path) -> Result<Moved, TransferError> {
        let report = check_whole(log)?;
        if report.torn_tail.is_some() {
            return Err(TransferError::Container("it ends in the middle of a batch"));
        }
        let moved = Moved { head: report.head, global: report.global };
        sync_folder(log)?;
        sync_folder(&self.path)?;
        match fs::remove_dir(&self.target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error(&self.target)(error));
            }
            _ => {}
        }
        fs::rename(&self.path, &self.target).map_err(io_error(&self.target))?;
        let above = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_folder(above.unwrap_or(Path::new(".")))?;
        Ok(moved)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // It is not there any more when it was finished.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn sync_folder(folder: &Path) -> Result<(), TransferError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_error(folder))
}

/// The segments of a log and how much of each counts, up to where it was checked.
fn segments_up_to(folder: &Path, end: DurableEnd) -> Result<Vec<(Position, PathBuf, u64)>, TransferError> {
    let mut segments = Vec::new();
    for (first, path) in crate::segment::recover::segment_files(folder)? {
        if first > end.segment {
            break;
        }
        let length = fs::metadata(&path).map_err(io_error(&path))?.len();
        segments.push((first, path, if first == end.segment { end.offset } else { length }));
    }
    Ok(segments)
}
