//! Holds the index against the log: every entry that belongs there is there and says what it must, and no other is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    index::{Index as _, sled::SledIndex},
    segment::{
        OpenError,
        map::Heads,
        recover::{INDEX_FOLDER, io_error, list, walk_sealed},
        shared::{REBUILD_FILE, segment_path},
    },
};

/// What the index came to. It is derived: whatever is wrong with it is cured by the next start, which makes it anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexReport {
    /// There is none; the next start makes it.
    Absent,
    /// It says of all the segments that it holds what the log says.
    Fits {
        /// How many sealed segments it holds, …
        segments: usize,
        /// … of how many that there are.
        of: usize,
        /// How many entries it has.
        entries: usize,
    },
    /// It says something else.
    Wrong(String),
}

/// Holds the index of a log that nobody writes to against its sealed segments. Reads a copy, made in `scratch`: sled
/// writes to whatever it opens.
///
/// # Errors
/// [`OpenError`]: the log itself could not be read.
pub fn check_index(folder: &Path, scratch: &Path) -> Result<IndexReport, OpenError> {
    let index = folder.join(INDEX_FOLDER);
    if !index.is_dir() {
        return Ok(IndexReport::Absent);
    }
    if folder.join(REBUILD_FILE).exists() {
        return Ok(IndexReport::Wrong("it failed once, and the next start makes it anew".to_owned()));
    }
    let copy = scratch.join(INDEX_FOLDER);
    copy_folder(&index, &copy).map_err(io_error(&index))?;
    let sealed = list(folder)?.sealed;
    let wrong = |error: crate::index::IndexError| Ok(IndexReport::Wrong(error.0));
    let opened = SledIndex::open(&copy).and_then(|index| Ok((index.marks()?, index)));
    let (marks, index) = match opened {
        Ok(opened) => opened,
        Err(error) => return wrong(error),
    };
    if marks.len() > sealed.len() {
        return Ok(IndexReport::Wrong(format!(
            "it holds {} sealed segments, and the log has {}: the log has lost its end",
            marks.len(),
            sealed.len()
        )));
    }
    let (mut heads, mut entries) = (Heads::new(), 0);
    for file in &sealed[..marks.len()] {
        let scan = walk_sealed(&segment_path(folder, file.sealed.first), file, &mut heads)?;
        match index.compare(&scan.map, scan.global) {
            Ok(count) => entries += count,
            Err(error) => return wrong(error),
        }
    }
    match index.len() {
        // A segment that was on its way in when the server was killed has no mark yet.
        Ok(there) if there > entries && marks.len() == sealed.len() => {
            Ok(IndexReport::Wrong(format!("it has {} entries of nothing in the log", there - entries)))
        }
        Ok(_) => Ok(IndexReport::Fits { segments: marks.len(), of: sealed.len(), entries }),
        Err(error) => wrong(error),
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
