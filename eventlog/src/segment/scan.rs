//! Walks a segment from its first byte and checks everything that can be checked: frames, positions, sequences, both
//! chains. Recovery, the rebuild of the index and `verify` are this walk.

use std::{fs::File, io, sync::Arc};

use crate::{
    chain::{global_hash, stream_hash},
    codec::Envelope,
    log::Hash,
    number::Position,
    stream::StreamId,
};

use super::{
    frame::{Commit, FRAME_HEADER_BYTES, Footer, Frame, FrameKind, FrameReader, HEADER_BYTES, Header, Next},
    map::{Head, Heads, Noted, SegmentMap},
};

/// Where a walk begins: what lies before the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) first: Position,
    pub(crate) global: Hash,
}

/// What a walk found.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) map: SegmentMap,
    /// The end of the last whole batch.
    pub(crate) good_end: u64,
    /// The global hash there.
    pub(crate) global: Hash,
    /// BLAKE3 state over the bytes up to there.
    pub(crate) content: blake3::Hasher,
    pub(crate) end: End,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Right after a whole batch, or after the file header.
    Clean,
    /// After a footer that fits.
    Sealed,
    /// In the middle of a batch: `offset` is the first byte that is no good frame.
    Broken {
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

/// A place where a good frame says something that cannot be: no crash explains that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contradiction {
    pub(crate) offset: u64,
    pub(crate) what: &'static str,
}

/// Why a walk gave no answer.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    Contradiction(Contradiction),
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn contradiction<T>(offset: u64, what: &'static str) -> Result<T, ScanError> {
    Err(ScanError::Contradiction(Contradiction { offset, what }))
}

/// Walks the segment in `file` up to `length`, and brings `heads` to its end.
pub(crate) fn scan(
    file: &Arc<File>,
    length: u64,
    start: Start,
    heads: &mut Heads,
) -> Result<Scan, ScanError> {
    let header = Header::read(file)?;
    if header != Some(Header { first: start.first, global: start.global }) {
        return contradiction(0, "the file header is not the one that belongs here");
    }
    let mut walk = Walk::new(start, heads, header.expect("it was just compared"));
    let mut reader = FrameReader::new(Arc::clone(file), HEADER_BYTES as u64, length);
    loop {
        let offset = reader.offset();
        let end = match reader.next()? {
            Next::Frame(frame) => match walk.frame(&frame)? {
                None => continue,
                Some(end) => end,
            },
            Next::End if walk.pending.is_empty() => End::Clean,
            Next::End => End::Broken { offset, what: "a batch has no commit" },
            Next::Broken(what) => End::Broken { offset, what },
        };
        if end == End::Sealed && reader.offset() != length {
            return contradiction(reader.offset(), "something follows the footer");
        }
        return Ok(walk.scan.finish(end));
    }
}

impl Scan {
    fn finish(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

struct Walk<'a> {
    scan: Scan,
    heads: &'a mut Heads,
    /// Events since the last commit; they count only once it is there.
    pending: Vec<Noted>,
    pending_heads: Heads,
    /// Their bytes, for the content hash.
    pending_content: blake3::Hasher,
    pending_global: Hash,
}

impl<'a> Walk<'a> {
    fn new(start: Start, heads: &'a mut Heads, header: Header) -> Self {
        let mut content = blake3::Hasher::new();
        content.update(&header.to_bytes());
        let scan = Scan {
            map: SegmentMap::new(start.first),
            good_end: HEADER_BYTES as u64,
            global: start.global,
            content: content.clone(),
            end: End::Clean,
        };
        Self {
            scan,
            heads,
            pending: Vec::new(),
            pending_heads: Heads::new(),
            pending_content: content,
            pending_global: start.global,
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<Option<End>, ScanError> {
        match frame.kind {
            FrameKind::Event => self.event(frame).map(|()| None),
            FrameKind::Commit => self.commit(frame).map(|()| None),
            FrameKind::Footer => self.footer(frame).map(Some),
        }
    }

    fn event(&mut self, frame: &Frame<'_>) -> Result<(), ScanError> {
        let at = frame.offset;
        let Some((bytes, hash)) = frame.event() else { return contradiction(at, "an event has no hash") };
        let Ok(envelope) = Envelope::read(bytes) else {
            return contradiction(at, "an envelope is not of a format that this program knows");
        };
        let Ok(stream) = StreamId::from_bytes(envelope.stream) else {
            return contradiction(at, "an event belongs to no stream that this program knows");
        };
        if envelope.position.0 != self.scan.map.last().0 + 1 + self.pending.len() as u64 {
            return contradiction(at, "positions have a gap or a repeat");
        }
        let head = self.head(&stream);
        if envelope.sequence != head.sequence.next() {
            return contradiction(at, "sequences of a stream have a gap or a repeat");
        }
        if stream_hash(head.hash, bytes) != hash {
            return contradiction(at, "the chain of a stream is broken");
        }
        self.pending_global = global_hash(self.pending_global, hash);
        self.pending_content.update(frame.raw);
        let (sequence, command) = (envelope.sequence, envelope.command);
        self.pending_heads.insert(stream.clone(), Head { sequence, hash });
        self.pending.push(Noted { stream, sequence, hash, command, offset: at });
        Ok(())
    }

    /// The end of a stream, with what the open batch adds to it.
    fn head(&self, stream: &StreamId) -> Head {
        self.pending_heads.get(stream).or_else(|| self.heads.get(stream)).copied().unwrap_or_default()
    }

    fn commit(&mut self, frame: &Frame<'_>) -> Result<(), ScanError> {
        let first = self.scan.map.last().next();
        let last = Position(self.scan.map.last().0 + self.pending.len() as u64);
        if Commit::read(frame.body()) != Some(Commit { first, last, global: self.pending_global }) {
            return contradiction(frame.offset, "a commit does not fit the events before it");
        }
        for noted in self.pending.drain(..) {
            self.scan.map.add(0, &noted);
        }
        self.heads.extend(self.pending_heads.drain());
        self.pending_content.update(frame.raw);
        self.scan.content = self.pending_content.clone();
        self.scan.global = self.pending_global;
        self.scan.good_end = frame.end();
        Ok(())
    }

    fn footer(&mut self, frame: &Frame<'_>) -> Result<End, ScanError> {
        let fits = Footer {
            first: self.scan.map.first,
            last: self.scan.map.last(),
            bytes: frame.offset,
            global: self.scan.global,
            content: Hash(*self.scan.content.finalize().as_bytes()),
        };
        if !self.pending.is_empty() || Footer::read(frame.body()) != Some(fits) {
            return contradiction(frame.offset, "a footer does not fit its segment");
        }
        Ok(End::Sealed)
    }
}

/// Whether what lies from `break_at` on can be what a crash in the middle of one batch left behind; `next` is the
/// position that this batch begins with.
///
/// A crash leaves the bytes that were written, up to where the file ends, and a power cut may also leave sectors of
/// zeros among them. So it is torn if the frame at the break goes on beyond the end of the file, or if a hole explains
/// the break, and if whatever good frames follow are of that same batch. Anything else was once whole (and so perhaps
/// acknowledged), and is damage.
pub(crate) fn is_torn(file: &Arc<File>, length: u64, next: Position, break_at: u64) -> io::Result<bool> {
    let mut reader = FrameReader::new(Arc::clone(file), break_at, length);
    let mut committed = false;
    let mut followed_at = None;
    let mut at = break_at + 1;
    while let Some(found) = find_magic(file, at, length)? {
        reader.seek(found);
        let Next::Frame(frame) = reader.next()? else {
            at = found + 1;
            continue;
        };
        let of_this_batch = match frame.kind {
            FrameKind::Event => {
                let envelope = frame.event().and_then(|(bytes, _)| Envelope::read(bytes).ok());
                !committed && envelope.is_some_and(|envelope| envelope.position >= next)
            }
            FrameKind::Commit => {
                let first = Commit::read(frame.body()).map(|commit| commit.first);
                !std::mem::replace(&mut committed, true) && first == Some(next)
            }
            FrameKind::Footer => false,
        };
        if !of_this_batch {
            return Ok(false);
        }
        followed_at.get_or_insert(found);
        at = frame.end();
    }
    match followed_at {
        Some(followed_at) => has_hole(file, break_at, followed_at, length),
        None => Ok(is_cut_short(file, break_at, length)? || has_hole(file, break_at, length, length)?),
    }
}

/// Whether a frame begins here that the end of the file cuts off.
fn is_cut_short(file: &File, at: u64, length: u64) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let mut header = [0; FRAME_HEADER_BYTES];
    let there = usize::try_from(length - at).unwrap_or(usize::MAX).min(header.len());
    file.read_exact_at(&mut header[..there], at)?;
    let kind = FrameKind::ALL.into_iter().find(|kind| {
        let magic = kind.magic();
        header[..there.min(4)] == magic[..there.min(4)]
    });
    let Some(kind) = kind else { return Ok(false) };
    if there < header.len() {
        return Ok(true);
    }
    let body = u64::from(u32::from_le_bytes(header[4..8].try_into().expect("four bytes")));
    Ok(kind.may_hold(body) && at + FRAME_HEADER_BYTES as u64 + body > length)
}

/// The next place from `at` on where a frame could begin.
pub(crate) fn find_magic(file: &File, mut at: u64, length: u64) -> io::Result<Option<u64>> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0; 64 * 1024];
    while at + 4 <= length {
        let wanted = usize::try_from(length - at).unwrap_or(usize::MAX).min(buffer.len());
        file.read_exact_at(&mut buffer[..wanted], at)?;
        let found = buffer[..wanted]
            .windows(4)
            .position(|window| window[0] == 0xb5 && FrameKind::ALL.iter().any(|kind| kind.magic() == window));
        if let Some(found) = found {
            return Ok(Some(at + found as u64));
        }
        at += wanted as u64 - 3;
    }
    Ok(None)
}

/// Whether a sector from `from` on, as far as this range and the file reach, is zeros: what a page that never reached
/// the disk reads as. Sectors that go on behind `to` do not count. No frame of ours holds so many zeros by itself, other
/// than in a payload made of them.
fn has_hole(file: &File, from: u64, to: u64, length: u64) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    const SECTOR: u64 = 512;
    let mut sector = [0; 512];
    let mut at = from;
    while at < to {
        let end = (at + 1).next_multiple_of(SECTOR).min(length);
        if end > to {
            return Ok(false);
        }
        let part = &mut sector[..usize::try_from(end - at).expect("at most a sector")];
        file.read_exact_at(part, at)?;
        if part.iter().all(|byte| *byte == 0) {
            return Ok(true);
        }
        at = end;
    }
    Ok(false)
}
