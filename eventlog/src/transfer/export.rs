//! Export: lines for other tools, or the segments as they are, in one file.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read, Write},
    path::Path,
    sync::Arc,
};

use crate::{
    codec::Envelope,
    log::Hash,
    number::Position,
    segment::frame::{Commit, Footer, Frame, FrameKind, FrameReader, HEADER_BYTES, Header, Next},
    stream::StreamId,
    verify::DurableEnd,
};

use super::{
    TransferError, check_whole, io_error,
    line::{EventLine, FORMAT, Line, is_whole},
    segments_up_to,
};

/// Opens a binary export.
pub(super) const MAGIC: [u8; 8] = *b"BSPACEXP";
pub(super) const VERSION: u32 = 1;

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line: what each event says, its hashes, and its bytes.
    Lines,
    /// The segments as they are.
    Binary,
}

/// What is exported.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// From this position on; 0 and 1 = from the first.
    pub from: Position,
    /// Up to this position; 0 = to the end. A whole export ends at the last batch that ends at or before it.
    pub to: Position,
    /// Only of this stream.
    pub stream: Option<StreamId>,
}

/// What was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// How many events.
    pub events: u64,
    /// The last position that was looked at.
    pub head: Position,
    /// The hash of the whole log there.
    pub global: Hash,
    /// Whether it can be imported.
    pub whole: bool,
}

/// Checks the log in a folder, then writes what is selected of it. Works beside a running server: it ends at the last batch
/// that was whole when it began.
///
/// # Errors
/// [`TransferError`]: what was written by then is no export.
pub fn export(
    folder: &Path,
    format: Format,
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<Exported, TransferError> {
    let report = check_whole(folder)?;
    let nothing = || TransferError::NothingThere(selection.to);
    let mut end = report.end.ok_or_else(nothing)?;
    let (mut head, mut global) = (report.head, report.global);
    let whole = is_whole(selection.from, selection.stream.is_some());
    if selection.to > Position::ZERO && selection.to < head {
        (end, head, global) = if whole {
            last_batch(folder, end, selection.to)?.ok_or_else(nothing)?
        } else {
            (end, selection.to, Hash::default())
        };
    }
    let events = match format {
        Format::Binary if whole => {
            binary(folder, end, out)?;
            head.0
        }
        Format::Binary => {
            return Err(TransferError::Container("a part of a log has no segments; export it as lines"));
        }
        Format::Lines => {
            let mut lines = Lines { out, selection, whole, head, previous: HashMap::new(), events: 0 };
            lines.write_all(folder, end, global)?;
            lines.events
        }
    };
    out.flush().map_err(io_error(Path::new("the export")))?;
    Ok(Exported { events, head, global, whole })
}

/// The end of the last batch that ends at or before `to`, its position and global hash.
pub(crate) fn last_batch(
    folder: &Path,
    end: DurableEnd,
    to: Position,
) -> Result<Option<(DurableEnd, Position, Hash)>, TransferError> {
    let mut segments = segments_up_to(folder, end)?;
    while let Some((first, path, length)) = segments.pop() {
        if first > to {
            continue;
        }
        let mut found = None;
        each_frame(&path, length, &mut |frame| {
            if frame.kind == FrameKind::Commit
                && let Some(commit) = Commit::read(frame.body()).filter(|commit| commit.last <= to)
            {
                found =
                    Some((DurableEnd { segment: first, offset: frame.end() }, commit.last, commit.global));
            }
            // A segment that is wanted to its end keeps its footer.
            if frame.kind == FrameKind::Footer
                && let (Some((end, last, _)), Some(footer)) = (&mut found, Footer::read(frame.body()))
                && footer.last == *last
                && footer.last == to
            {
                end.offset = frame.end();
            }
            Ok(())
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn each_frame(
    path: &Path,
    length: u64,
    see: &mut dyn FnMut(&Frame<'_>) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let file = Arc::new(File::open(path).map_err(io_error(path))?);
    let mut reader = FrameReader::new(file, HEADER_BYTES as u64, length);
    loop {
        match reader.next().map_err(io_error(path))? {
            Next::Frame(frame) => see(&frame)?,
            Next::End => return Ok(()),
            Next::Broken(what) => {
                return Err(io_error(path)(io::Error::new(io::ErrorKind::InvalidData, what)));
            }
        }
    }
}

/// Magic, version, number of segments; each segment's first position, length and bytes; BLAKE3 of it all.
fn binary(folder: &Path, end: DurableEnd, out: &mut dyn Write) -> Result<(), TransferError> {
    let told = io_error(Path::new("the export"));
    let segments = segments_up_to(folder, end)?;
    let mut hasher = blake3::Hasher::new();
    let mut write = |bytes: &[u8]| {
        hasher.update(bytes);
        out.write_all(bytes)
    };
    write(&MAGIC).map_err(&told)?;
    write(&VERSION.to_le_bytes()).map_err(&told)?;
    let count = u32::try_from(segments.len()).expect("there are fewer segments");
    write(&count.to_le_bytes()).map_err(&told)?;
    let mut buffer = vec![0; 256 * 1024];
    for (first, path, length) in segments {
        write(&first.0.to_le_bytes()).map_err(&told)?;
        write(&length.to_le_bytes()).map_err(&told)?;
        let mut rest = File::open(&path).map_err(io_error(&path))?.take(length);
        loop {
            let read = rest.read(&mut buffer).map_err(io_error(&path))?;
            if read == 0 {
                break;
            }
            write(&buffer[..read]).map_err(&told)?;
        }
        if rest.limit() > 0 {
            return Err(io_error(&path)(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    out.write_all(hasher.finalize().as_bytes()).map_err(told)
}

struct Lines<'a> {
    out: &'a mut dyn Write,
    selection: &'a Selection,
    whole: bool,
    head: Position,
    /// The last hash of each stream so far.
    previous: HashMap<Box<[u8]>, Hash>,
    events: u64,
}

impl Lines<'_> {
    fn write_all(&mut self, folder: &Path, end: DurableEnd, global: Hash) -> Result<(), TransferError> {
        self.line(&Line::Log {
            format: FORMAT,
            whole: self.whole,
            from: self.selection.from.0.max(1),
            to: self.head.0,
            stream: self.selection.stream.as_ref().map(ToString::to_string),
        })?;
        for (first, path, length) in segments_up_to(folder, end)? {
            if first > self.head {
                break;
            }
            if self.whole {
                let file = File::open(&path).map_err(io_error(&path))?;
                let header = Header::read(&file).map_err(io_error(&path))?;
                let global = header.map(|header| header.global).unwrap_or_default().to_string();
                self.line(&Line::Segment { first: first.0, global })?;
            }
            each_frame(&path, length, &mut |frame| self.frame(frame))?;
        }
        let global = if self.whole { global.to_string() } else { String::new() };
        self.line(&Line::End { events: self.events, global })
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), TransferError> {
        match frame.kind {
            FrameKind::Event => self.event(frame),
            FrameKind::Commit if self.whole => {
                let commit = Commit::read(frame.body()).expect("it was checked");
                let (first, last, global) = (commit.first.0, commit.last.0, commit.global.to_string());
                self.line(&Line::Commit { first, last, global })
            }
            FrameKind::Footer if self.whole => {
                let footer = Footer::read(frame.body()).expect("it was checked");
                self.line(&Line::Footer {
                    first: footer.first.0,
                    last: footer.last.0,
                    bytes: footer.bytes,
                    global: footer.global.to_string(),
                    content: footer.content.to_string(),
                })
            }
            FrameKind::Commit | FrameKind::Footer => Ok(()),
        }
    }

    fn event(&mut self, frame: &Frame<'_>) -> Result<(), TransferError> {
        let unreadable = |error: crate::codec::CodecError| TransferError::Io {
            path: "an event".into(),
            source: io::Error::new(io::ErrorKind::InvalidData, error),
        };
        let (bytes, hash) = frame.event().expect("it was checked");
        let envelope = Envelope::read(bytes).map_err(unreadable)?;
        let previous = match self.previous.get_mut(envelope.stream) {
            Some(known) => std::mem::replace(known, hash),
            None => self.previous.insert(envelope.stream.into(), hash).unwrap_or_default(),
        };
        let in_range = envelope.position >= self.selection.from && envelope.position <= self.head;
        let of_stream =
            self.selection.stream.as_ref().is_none_or(|stream| {
                StreamId::from_bytes(envelope.stream).is_ok_and(|found| found == *stream)
            });
        if !in_range || !of_stream {
            return Ok(());
        }
        self.events += 1;
        let line = EventLine::new(bytes, hash, previous).map_err(unreadable)?;
        self.line(&Line::Event(Box::new(line)))
    }

    fn line(&mut self, line: &Line) -> Result<(), TransferError> {
        let mut text = serde_json::to_vec(line).expect("a line is plain text");
        text.push(b'\n');
        self.out.write_all(&text).map_err(io_error(Path::new("the export")))
    }
}
