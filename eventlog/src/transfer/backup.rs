//! Backup and restore: sealed segments are linked where the disk allows it, the one that grows is copied up to its last whole
//! batch, and the copy is checked before it has its name.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use crate::{number::Position, verify::DurableEnd};

use super::{Making, Moved, TransferError, check_whole, export::last_batch, io_error, segments_up_to};

/// The folder of the log in a backup, as in a data folder.
const LOG: &str = "log";

/// What is backed up besides the log: folders whose files never change once they have their names, linked or copied.
pub struct Backup<'a> {
    /// The log.
    pub log: &'a Path,
    /// Name in the backup, and where it lies; one that is not there is left out.
    pub beside: Vec<(&'a str, &'a Path)>,
    /// Single files, likewise; copied.
    pub files: Vec<(&'a str, &'a Path)>,
}

/// Makes a backup in `target`, which must not be there or be empty; also beside a running server. What it holds is laid out as
/// a data folder.
///
/// # Errors
/// [`TransferError`]: there is no backup then.
pub fn backup(from: &Backup<'_>, target: &Path) -> Result<Moved, TransferError> {
    let making = Making::of(target)?;
    let report = check_whole(from.log)?;
    let end = report.end.ok_or(TransferError::NothingThere(Position::ZERO))?;
    let log = making.path.join(LOG);
    copy_log(from.log, end, &log, Links::Allowed)?;
    for (name, folder) in &from.beside {
        copy_tree(folder, &making.path.join(name), Links::Allowed)?;
    }
    for (name, file) in &from.files {
        let to = making.path.join(name);
        if let Some(above) = to.parent() {
            make_folder(above)?;
        }
        match File::open(file) {
            Ok(mut file) => copy_bytes(&mut file, &to)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(file)(error)),
        }
    }
    making.finish(&log)
}

/// Makes a data folder of a backup in `target`, which must not be there or be empty, with the log up to the last batch that
/// ends at or before `to` (0 = all of it). Everything is copied: the backup stays as it is.
///
/// # Errors
/// [`TransferError`]: there is no data folder then.
pub fn restore(from: &Path, target: &Path, to: Position) -> Result<Moved, TransferError> {
    let making = Making::of(target)?;
    let source = from.join(LOG);
    let report = check_whole(&source)?;
    let nothing = || TransferError::NothingThere(to);
    let mut end = report.end.ok_or_else(nothing)?;
    if to > Position::ZERO && to < report.head {
        (end, ..) = last_batch(&source, end, to)?.ok_or_else(nothing)?;
    }
    let log = making.path.join(LOG);
    copy_log(&source, end, &log, Links::Forbidden)?;
    for entry in fs::read_dir(from).map_err(io_error(from))? {
        let entry = entry.map_err(io_error(from))?;
        if entry.file_name() != LOG && entry.file_type().map_err(io_error(from))?.is_dir() {
            copy_tree(&entry.path(), &making.path.join(entry.file_name()), Links::Forbidden)?;
        }
    }
    making.finish(&log)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    Allowed,
    Forbidden,
}

fn copy_log(from: &Path, end: DurableEnd, to: &Path, links: Links) -> Result<(), TransferError> {
    make_folder(to)?;
    let segments = segments_up_to(from, end)?;
    let last = segments.len();
    for ((_, path, length), number) in segments.into_iter().zip(1..) {
        let target = to.join(path.file_name().expect("a segment has a name"));
        // Only what is sealed never changes again.
        if number < last && links == Links::Allowed && fs::hard_link(&path, &target).is_ok() {
            continue;
        }
        let file = File::open(&path).map_err(io_error(&path))?;
        copy_bytes(&mut file.take(length), &target)?;
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path, links: Links) -> Result<(), TransferError> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error(from)(error)),
    };
    make_folder(to)?;
    for entry in entries {
        let entry = entry.map_err(io_error(from))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(io_error(&path))?;
        if kind.is_dir() {
            copy_tree(&path, &target, links)?;
        } else if kind.is_file() && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            // A file with a dot in front is still being made.
            if links == Links::Allowed && fs::hard_link(&path, &target).is_ok() {
                continue;
            }
            copy_bytes(&mut File::open(&path).map_err(io_error(&path))?, &target)?;
        }
    }
    Ok(())
}

fn copy_bytes(from: &mut dyn Read, to: &Path) -> Result<(), TransferError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let mut file = file.map_err(io_error(to))?;
    io::copy(from, &mut file).map_err(io_error(to))?;
    file.sync_all().map_err(io_error(to))
}

fn make_folder(path: &Path) -> Result<(), TransferError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error(path))
}
