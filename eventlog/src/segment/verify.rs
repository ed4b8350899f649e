//! Checks a folder from its first byte to its last: frames, positions, sequences, both chains, footers.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{log::Hash, number::Position};

use super::{
    OpenError,
    map::Heads,
    recover::{damaged, io_error, scan_error, segment_files},
    scan::{End, Start, is_torn, scan},
};

/// What a folder holds, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The last position.
    pub head: Position,
    /// The global hash there: two logs with the same one hold the same events.
    pub global: Hash,
    /// How many streams.
    pub streams: usize,
    /// How many segment files.
    pub segments: usize,
    /// A batch that a crash cut short; the next open cuts it off. It was never acknowledged.
    pub torn_tail: Option<TornTail>,
}

/// Where a torn tail begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The last segment.
    pub file: PathBuf,
    /// The end of its last whole batch.
    pub offset: u64,
}

/// Checks the log in a folder without changing anything; needs no lock. Beside a running server the batch that is
/// just being written looks like a torn tail.
///
/// The index is not looked at: it is derived, and rebuilt when in doubt.
///
/// # Errors
/// [`OpenError::Damaged`] names the first bad place, [`OpenError::Io`] what could not be read.
pub fn verify(folder: &Path) -> Result<Verified, OpenError> {
    let files = segment_files(folder)?;
    let mut heads = Heads::new();
    let mut start = Start { first: Position(1), global: Hash::default() };
    let mut torn_tail = None;
    let count = files.len();
    for ((first, path), number) in files.into_iter().zip(1..) {
        if first != start.first {
            return Err(damaged(&path, 0, "a segment is missing before this one"));
        }
        let file = Arc::new(File::open(&path).map_err(io_error(&path))?);
        let length = file.metadata().map_err(io_error(&path))?.len();
        let is_last = number == count;
        if is_last && length < super::frame::HEADER_BYTES as u64 {
            torn_tail = Some(TornTail { file: path, offset: 0 });
            break;
        }
        let scan = scan(&file, length, start, &mut heads).map_err(scan_error(&path))?;
        start = scan.next_start();
        match scan.end {
            End::Sealed => {}
            End::Clean if is_last => {}
            End::Clean => return Err(damaged(&path, length, "a sealed segment has no footer")),
            End::Broken { offset, what } => {
                if !is_last || !is_torn(&file, length, start.first, offset).map_err(io_error(&path))? {
                    return Err(damaged(&path, offset, what));
                }
                torn_tail = Some(TornTail { file: path, offset: scan.good_end });
            }
        }
    }
    let head = Position(start.first.0 - 1);
    Ok(Verified { head, global: start.global, streams: heads.len(), segments: count, torn_tail })
}
