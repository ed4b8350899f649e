//! What an open does with a folder, in order: list the segments, check how they join, bring the index up to date, walk
//! the last segment, and cut what a crash left of a batch that nobody was told of.
//!
//! The last segment has three outcomes: clean; a torn tail, which is kept beside the segment and cut; anything else,
//! which is damage and refuses the open, because cutting it would silently drop what was acknowledged. A tail is only
//! torn if a crash explains it and nobody is known to have seen the log beyond it. A refused open changes nothing.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    index::{Index, IndexError, Mark, filter::Filter, sled::SledIndex},
    log::Hash,
    number::Position,
};

use super::{
    OpenError,
    disk::Disk,
    frame::{Footer, HEADER_BYTES, Header},
    map::{Heads, SegmentMap},
    scan::{Contradiction, End, Scan, ScanError, Start, is_torn, scan},
    shared::{REBUILD_FILE, Sealed, segment_path},
    writer::create,
};

/// The folder's index.
pub(crate) const INDEX_FOLDER: &str = "index";

/// A sealed segment and what its footer says.
pub(crate) struct SealedFile {
    pub(crate) sealed: Sealed,
    start: Start,
    global: Hash,
}

impl SealedFile {
    fn mark(&self) -> Mark {
        Mark { first: self.sealed.first, last: self.sealed.last, global: self.global }
    }
}

/// The segments of a folder as far as headers and footers tell.
pub(crate) struct Listing {
    pub(crate) sealed: Vec<SealedFile>,
    /// Where the segment that grows begins, and its length; `None`: it has no whole header yet.
    pub(crate) start: Start,
    pub(crate) length: Option<u64>,
}

/// Names a place in a file, for [`OpenError::Damaged`].
pub(crate) fn damaged(path: &Path, offset: u64, what: &str) -> OpenError {
    OpenError::Damaged { file: path.to_owned(), offset, what: what.to_owned() }
}

pub(crate) fn io_error(path: &Path) -> impl Fn(io::Error) -> OpenError + '_ {
    |error| OpenError::Io { path: path.to_owned(), source: error }
}

pub(crate) fn scan_error(path: &Path) -> impl Fn(ScanError) -> OpenError + '_ {
    |error| match error {
        ScanError::Io(error) => io_error(path)(error),
        ScanError::Contradiction(Contradiction { offset, what }) => damaged(path, offset, what),
    }
}

/// The segment files in a folder, by first position.
pub(crate) fn segment_files(folder: &Path) -> Result<Vec<(Position, PathBuf)>, OpenError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error(folder))? {
        let path = entry.map_err(io_error(folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(digits) = name.strip_prefix("seg-").and_then(|rest| rest.strip_suffix(".log")) else {
            continue;
        };
        let first =
            digits.parse().map(Position).map_err(|_| damaged(&path, 0, "its name has no position"))?;
        files.push((first, path));
    }
    files.sort_unstable();
    Ok(files)
}

/// Reads headers and footers, and checks that each segment begins where the one before it ended.
pub(crate) fn list(folder: &Path) -> Result<Listing, OpenError> {
    let files = segment_files(folder)?;
    let mut listing = Listing {
        sealed: Vec::new(),
        start: Start { first: Position(1), global: Hash::default() },
        length: None,
    };
    let count = files.len();
    for ((first, path), number) in files.into_iter().zip(1..) {
        let start = listing.start;
        if first != start.first {
            return Err(damaged(&path, 0, "a segment is missing before this one"));
        }
        let file = Arc::new(File::open(&path).map_err(io_error(&path))?);
        let length = file.metadata().map_err(io_error(&path))?.len();
        let is_last = number == count;
        // A crash while the file was made leaves less than a header, or a header that never reached the disk.
        let header = Header::read(&file).map_err(io_error(&path))?;
        if is_last && header.is_none() && length <= HEADER_BYTES as u64 {
            return Ok(listing);
        }
        if header != Some(Header { first: start.first, global: start.global }) {
            return Err(damaged(&path, 0, "the file header is not the one that belongs here"));
        }
        match Footer::at_end(&file, length).map_err(io_error(&path))? {
            Some(footer) if footer.first == first && footer.last >= first => {
                let sealed = Sealed { first, last: footer.last, frames_end: footer.bytes };
                listing.sealed.push(SealedFile { sealed, start, global: footer.global });
                listing.start = Start { first: footer.last.next(), global: footer.global };
            }
            _ if is_last => listing.length = Some(length),
            _ => return Err(damaged(&path, length, "a sealed segment has no good footer")),
        }
    }
    Ok(listing)
}

/// Makes a sealed end of the log durable, where nothing follows it yet. Its process may have been killed between writing
/// the footer and its sync: then the footer is in memory only, and what is about to be built on it (the next segment,
/// the index) must not outlive it.
pub(crate) fn settle_end(folder: &Path, disk: &dyn Disk, listing: &Listing) -> Result<(), OpenError> {
    match (listing.sealed.last(), listing.length) {
        (Some(last), None) if !crate::mutant::is("recovery_trusts_the_cache") => {
            let path = segment_path(folder, last.sealed.first);
            disk.sync_file(&path).map_err(io_error(&path))
        }
        _ => Ok(()),
    }
}

/// The index, up to date, and what it tells.
pub(crate) struct Indexed {
    pub(crate) index: SledIndex,
    pub(crate) heads: Heads,
    pub(crate) filters: Vec<(Position, Arc<Filter>)>,
}

/// Opens the index and puts in what it lacks; throws it away first if it does not fit the segments.
pub(crate) fn bring_up_index(folder: &Path, sealed: &[SealedFile]) -> Result<Indexed, OpenError> {
    let path = folder.join(INDEX_FOLDER);
    let in_doubt = folder.join(REBUILD_FILE);
    let kept =
        if in_doubt.exists() { Err(IndexError("it failed before".into())) } else { load(&path, sealed) };
    let (mut indexed, known) = match kept {
        Ok(Loaded::Ahead(mark)) => return Err(lost_its_end(folder, mark)),
        Ok(Loaded::Fits(indexed, known)) => (*indexed, known),
        Err(error) => {
            tracing::warn!(%error, segments = sealed.len(), "The index is thrown away and rebuilt.");
            if path.exists() {
                fs::remove_dir_all(&path).map_err(io_error(&path))?;
            }
            let index = SledIndex::open(&path).map_err(|error| OpenError::Index(error.to_string()))?;
            (Indexed { index, heads: Heads::new(), filters: Vec::new() }, 0)
        }
    };
    for file in &sealed[known..] {
        let path = segment_path(folder, file.sealed.first);
        let scan = walk_sealed(&path, file, &mut indexed.heads)?;
        let filter = indexed.index.add(&scan.map, file.global);
        let filter = filter.map_err(|error| OpenError::Index(error.to_string()))?;
        indexed.filters.push((file.sealed.first, Arc::new(filter)));
        tracing::info!(first = %file.sealed.first, last = %file.sealed.last, "Segment indexed.");
    }
    match fs::remove_file(&in_doubt) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(&in_doubt)(error)),
        _ => Ok(indexed),
    }
}

/// What became of the index that is there.
enum Loaded {
    /// It holds the first so many of the segments.
    Fits(Box<Indexed>, usize),
    /// It holds all of them, and this one that went on from there.
    Ahead(Mark),
}

/// Opens the index and checks that it holds the first of these segments and no other.
fn load(path: &Path, sealed: &[SealedFile]) -> Result<Loaded, IndexError> {
    let index = SledIndex::open(path)?;
    let marks = index.marks()?;
    if marks.iter().zip(sealed).any(|(mark, file)| *mark != file.mark()) {
        return Err(IndexError("it belongs to other segments".into()));
    }
    if let Some(ahead) = marks.get(sealed.len()) {
        return Ok(Loaded::Ahead(*ahead));
    }
    let mut heads = Heads::new();
    index.heads(&mut |stream, head| {
        heads.insert(stream, head);
    })?;
    let filter = |mark: &Mark| index.filter(mark.first).map(|filter| (mark.first, Arc::new(filter)));
    let filters = marks.iter().map(filter).collect::<Result<_, _>>()?;
    Ok(Loaded::Fits(Box::new(Indexed { index, heads, filters }), marks.len()))
}

/// A segment comes into the index only after its footer is durable; so it was whole, and is not any more.
fn lost_its_end(folder: &Path, mark: Mark) -> OpenError {
    let path = segment_path(folder, mark.first);
    let offset = fs::metadata(&path).map_or(0, |found| found.len());
    let what = format!(
        "by the index it was sealed at position {}, and its end is gone; if an older copy of the log was put here on \
         purpose, delete the folder {INDEX_FOLDER}",
        mark.last
    );
    OpenError::Damaged { file: path, offset, what }
}

pub(crate) fn walk_sealed(path: &Path, sealed: &SealedFile, heads: &mut Heads) -> Result<Scan, OpenError> {
    let file = Arc::new(File::open(path).map_err(io_error(path))?);
    let length = file.metadata().map_err(io_error(path))?.len();
    let scan = scan(&file, length, sealed.start, heads).map_err(scan_error(path))?;
    match scan.end {
        End::Sealed => Ok(scan),
        End::Clean => Err(damaged(path, length, "a sealed segment has no footer")),
        End::Broken { offset, what } => Err(damaged(path, offset, what)),
    }
}

/// The segment that grows, ready for its next batch.
pub(crate) struct Grown {
    pub(crate) map: SegmentMap,
    pub(crate) length: u64,
    pub(crate) global: Hash,
    pub(crate) content: blake3::Hasher,
}

/// Walks the segment that grows, or makes it; cuts a torn tail, unless somebody has seen the log reach `known`.
pub(crate) fn bring_up_active(
    folder: &Path,
    disk: &dyn Disk,
    listing: &Listing,
    heads: &mut Heads,
    known: Position,
) -> Result<Grown, OpenError> {
    let start = listing.start;
    let path = segment_path(folder, start.first);
    let check_known = |head: Position| {
        if head < known { Err(OpenError::Behind { head, known }) } else { Ok(()) }
    };
    let Some(length) = listing.length else {
        check_known(Position(start.first.0 - 1))?;
        keep_beside(folder, disk, start.first, 0)?;
        let header = Header { first: start.first, global: start.global };
        let (_, content) = create(disk, folder, header).map_err(io_error(&path))?;
        let (map, length) = (SegmentMap::new(start.first), HEADER_BYTES as u64);
        return Ok(Grown { map, length, global: start.global, content });
    };
    let file = Arc::new(File::open(&path).map_err(io_error(&path))?);
    // What a dead process wrote may so far be in memory only; it is about to be told as durable.
    if !crate::mutant::is("recovery_trusts_the_cache") {
        disk.sync_file(&path).map_err(io_error(&path))?;
    }
    let scan = scan(&file, length, start, heads).map_err(scan_error(&path))?;
    let mut end = scan.good_end;
    if let End::Broken { offset, what } = scan.end {
        let next = scan.map.last().next();
        if !is_torn(&file, length, next, offset).map_err(io_error(&path))? {
            return Err(damaged(&path, offset, what));
        }
        if scan.map.last() < known {
            let what = format!("{what}, and events up to position {known} were acknowledged");
            return Err(OpenError::Damaged { file: path, offset, what });
        }
        let kept = keep_beside(folder, disk, start.first, scan.good_end)?;
        let kept = kept.map(|kept| kept.display().to_string()).unwrap_or_default();
        let bytes = length - scan.good_end;
        tracing::warn!(file = %path.display(), at = scan.good_end, bytes, %kept, "A torn tail was cut and kept: a crash in the middle of a batch that nobody was told of.");
        if crate::mutant::is("a_torn_tail_stays") {
            end = length;
        }
        let cut = disk.open(&path, end).and_then(|mut file| file.sync());
        cut.map_err(io_error(&path))?;
    }
    check_known(scan.map.last())?;
    Ok(Grown { map: scan.map, length: end, global: scan.global, content: scan.content })
}

/// Writes what lies in a segment from `from` on into a file of its own beside it, durably, before it is cut off: should
/// it have been worth something after all, it is not gone. Nobody reads it but people.
fn keep_beside(
    folder: &Path,
    disk: &dyn Disk,
    first: Position,
    from: u64,
) -> Result<Option<PathBuf>, OpenError> {
    let path = segment_path(folder, first);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(&path)(error)),
    };
    let tail = &bytes[usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len())..];
    if tail.is_empty() {
        return Ok(None);
    }
    let name = |suffix: &str| folder.join(format!("seg-{:020}.at-{from}.torn{suffix}", first.0));
    let mut kept = name("");
    let mut number = 1;
    while kept.exists() {
        number += 1;
        kept = name(&format!("-{number}"));
    }
    let written = disk.open(&kept, 0).and_then(|mut file| {
        file.append(tail)?;
        file.sync()
    });
    written.and_then(|()| disk.sync_folder(folder)).map_err(io_error(&kept))?;
    Ok(Some(kept))
}
