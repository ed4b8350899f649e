//! Import: an export of a whole log becomes a log again, byte for byte, or nothing.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufWriter, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::{
    log::{EVENT_BYTES_MAX, Hash},
    number::Position,
    segment::{
        frame::{Commit, Footer, FrameKind, HASH_BYTES, HEADER_BYTES, Header, write_frame},
        shared::segment_path,
    },
};

use super::{
    Making, Moved, TransferError,
    export::{MAGIC, VERSION},
    io_error,
    line::{EventLine, FORMAT, Line, bytes_of, hash_of},
};

/// The longest line that is read: the longest event as base64 and as JSON, whose escapes take six letters for one.
const LINE_BYTES_MAX: u64 = EVENT_BYTES_MAX as u64 * 9;
/// The longest segment: a batch that is larger than a segment has one of its own.
const SEGMENT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Makes the log of an export in `folder`, which must not be there or be empty. It is checked before it gets its name.
///
/// # Errors
/// [`TransferError`]: there is no log in `folder` then.
pub fn import(from: &mut dyn BufRead, folder: &Path) -> Result<Moved, TransferError> {
    let making = Making::of(folder)?;
    let start = from.fill_buf().map_err(io_error(Path::new("the export")))?;
    let wanted = if start.starts_with(&MAGIC) {
        binary(from, &making.path)?;
        None
    } else {
        Some(Lines::new(making.path.clone()).read(from)?)
    };
    let path = making.path.clone();
    let moved = making.finish(&path)?;
    match wanted {
        Some(wanted) if wanted != moved => {
            let _ = std::fs::remove_dir_all(folder);
            Err(TransferError::Container("it does not end where it says"))
        }
        Some(_) | None => Ok(moved),
    }
}

fn create(folder: &Path, first: Position) -> Result<(PathBuf, BufWriter<File>), TransferError> {
    let path = segment_path(folder, first);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let file = file.map_err(io_error(&path))?;
    Ok((path, BufWriter::with_capacity(256 * 1024, file)))
}

fn close(path: &Path, file: BufWriter<File>) -> Result<(), TransferError> {
    let file = file.into_inner().map_err(|error| io_error(path)(error.into_error()))?;
    file.sync_all().map_err(io_error(path))
}

/// Reads what [`export`](super::export) wrote in binary.
fn binary(from: &mut dyn BufRead, folder: &Path) -> Result<(), TransferError> {
    let mut hasher = blake3::Hasher::new();
    let cut = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => TransferError::Container("it is cut short"),
        _ => io_error(Path::new("the export"))(error),
    };
    let mut read = |from: &mut dyn BufRead, bytes: &mut [u8]| {
        from.read_exact(bytes).map_err(cut)?;
        hasher.update(bytes);
        Ok::<(), TransferError>(())
    };
    let mut front = [0; 16];
    read(from, &mut front)?;
    if front[8..12] != VERSION.to_le_bytes() {
        return Err(TransferError::Container("it is of a version that this program does not know"));
    }
    let count = u32::from_le_bytes(front[12..].try_into().expect("four bytes"));
    let mut buffer = vec![0; 256 * 1024];
    for _ in 0..count {
        let mut place = [0; 16];
        read(from, &mut place)?;
        let first = u64::from_le_bytes(place[..8].try_into().expect("eight bytes"));
        let mut left = u64::from_le_bytes(place[8..].try_into().expect("eight bytes"));
        if left > SEGMENT_BYTES_MAX {
            return Err(TransferError::Container("a segment in it is longer than any"));
        }
        let (path, mut file) = create(folder, Position(first))?;
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            read(from, &mut buffer[..piece])?;
            file.write_all(&buffer[..piece]).map_err(io_error(&path))?;
            left -= piece as u64;
        }
        close(&path, file)?;
    }
    let mut told = [0; 32];
    from.read_exact(&mut told).map_err(cut)?;
    let more = from.fill_buf().map_err(cut)?;
    if told != *hasher.finalize().as_bytes() || !more.is_empty() {
        return Err(TransferError::Container("its hash does not match"));
    }
    Ok(())
}

/// Reads what [`export`](super::export) wrote as lines.
struct Lines {
    folder: PathBuf,
    number: u64,
    begun: bool,
    segment: Option<(PathBuf, BufWriter<File>)>,
}

impl Lines {
    const fn new(folder: PathBuf) -> Self {
        Self { folder, number: 0, begun: false, segment: None }
    }

    fn wrong(&self, what: impl Into<String>) -> TransferError {
        TransferError::Line { line: self.number, what: what.into() }
    }

    /// Answers where the log says that it ends.
    fn read(mut self, from: &mut dyn BufRead) -> Result<Moved, TransferError> {
        let mut text = Vec::new();
        loop {
            self.number += 1;
            text.clear();
            let read = from.take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
            read.map_err(io_error(Path::new("the export")))?;
            if !text.ends_with(b"\n") {
                let what =
                    if text.len() as u64 == LINE_BYTES_MAX { "it is too long" } else { "it is cut short" };
                return Err(self.wrong(what));
            }
            let line: Line =
                serde_json::from_slice(&text).map_err(|_| self.wrong("it is no line of an export"))?;
            if let Some(end) = self.line(line)? {
                let rest = from.fill_buf().map_err(io_error(Path::new("the export")))?;
                return if rest.is_empty() { Ok(end) } else { Err(self.wrong("something follows the end")) };
            }
        }
    }

    fn line(&mut self, line: Line) -> Result<Option<Moved>, TransferError> {
        match line {
            Line::Log { format: FORMAT, whole: true, .. } if !self.begun => self.begun = true,
            Line::Log { format: FORMAT, whole: false, .. } if !self.begun => {
                return Err(self.wrong("it is a part of a log, and only a whole one can be imported"));
            }
            Line::Log { .. } => return Err(self.wrong("it is of a format that this program does not know")),
            _ if !self.begun => return Err(self.wrong("an export begins with a line of the type log")),
            Line::Segment { first, global } => {
                self.end_segment()?;
                let global = self.hash(&global)?;
                let (path, file) = create(&self.folder, Position(first))?;
                self.segment = Some((path, file));
                self.write(&Header { first: Position(first), global }.to_bytes())?;
            }
            Line::Event(line) => self.event(&line)?,
            Line::Commit { first, last, global } => {
                if first == 0 || last < first || last - first >= u64::from(u32::MAX) {
                    return Err(self.wrong("a batch has no such positions"));
                }
                let mut bytes = Vec::new();
                let (first, last, global) = (Position(first), Position(last), self.hash(&global)?);
                Commit { first, last, global }.write(&mut bytes);
                self.write(&bytes)?;
            }
            Line::Footer { first, last, bytes: length, global, content } => {
                let (global, content) = (self.hash(&global)?, self.hash(&content)?);
                let mut bytes = Vec::new();
                let (first, last) = (Position(first), Position(last));
                Footer { first, last, bytes: length, global, content }.write(&mut bytes);
                self.write(&bytes)?;
            }
            Line::End { events, global } => {
                self.end_segment()?;
                return Ok(Some(Moved { head: Position(events), global: self.hash(&global)? }));
            }
        }
        Ok(None)
    }

    fn event(&mut self, line: &EventLine) -> Result<(), TransferError> {
        let (envelope, hash) = bytes_of(line).ok_or_else(|| self.wrong("its bytes are no bytes"))?;
        let previous = self.hash(&line.previous)?;
        // What other tools read must be what is stored.
        let wanted = EventLine::new(&envelope, hash, previous).ok();
        if wanted.as_ref() != Some(line)
            || envelope.len() + HASH_BYTES > crate::segment::frame::BODY_BYTES_MAX
        {
            return Err(self.wrong("what it says of the event is not what the event's own bytes say"));
        }
        let body = [envelope.as_slice(), &hash.0].concat();
        let mut bytes = Vec::with_capacity(body.len() + HEADER_BYTES);
        write_frame(FrameKind::Event, &body, &mut bytes);
        self.write(&bytes)
    }

    fn hash(&self, text: &str) -> Result<Hash, TransferError> {
        hash_of(text).ok_or_else(|| self.wrong("a hash in it is none"))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TransferError> {
        let Some((path, file)) = &mut self.segment else {
            return Err(self.wrong("it belongs to no segment"));
        };
        file.write_all(bytes).map_err(io_error(path))
    }

    fn end_segment(&mut self) -> Result<(), TransferError> {
        self.segment.take().map_or(Ok(()), |(path, file)| close(&path, file))
    }
}
