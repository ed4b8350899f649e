//! The bytes of a segment file: header, event frames, commit frames, footer. `docs/log-format.md` draws them.
//!
//! Every number is little-endian. A frame is `magic (4) ‖ length (u32) ‖ CRC-32C (u32) ‖ body`; the checksum covers
//! magic, length and body, so no flipped bit can pass one frame off as another.

use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use crate::{
    codec::Envelope,
    log::{EVENT_BYTES_MAX, Hash},
    number::Position,
    stream::StreamId,
};

/// The size of a file header.
pub(crate) const HEADER_BYTES: usize = 64;
/// The size of what precedes a frame's body.
pub(crate) const FRAME_HEADER_BYTES: usize = 12;
/// The size of the hash at the end of an event's body.
pub(crate) const HASH_BYTES: usize = 32;
/// The longest body: the longest event and what surrounds it.
pub(crate) const BODY_BYTES_MAX: usize = EVENT_BYTES_MAX + 1024;

const FILE_MAGIC: [u8; 8] = *b"BSPACLOG";
const FILE_VERSION: u32 = 1;
const READ_BYTES: usize = 256 * 1024;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An envelope and its hash.
    Event,
    /// The end of a batch: everything since the last one is whole.
    Commit,
    /// The end of a sealed segment.
    Footer,
}

impl FrameKind {
    pub(crate) const ALL: [Self; 3] = [Self::Event, Self::Commit, Self::Footer];

    /// The first byte is no UTF-8 and the rest names the kind and its version.
    pub(crate) const fn magic(self) -> [u8; 4] {
        match self {
            Self::Event => *b"\xb5ev\x01",
            Self::Commit => *b"\xb5cm\x01",
            Self::Footer => *b"\xb5ft\x01",
        }
    }

    /// Whether a body of this kind can be so long.
    pub(crate) const fn may_hold(self, body_bytes: u64) -> bool {
        match self {
            Self::Event => body_bytes <= BODY_BYTES_MAX as u64,
            Self::Commit => body_bytes == Commit::BYTES as u64,
            Self::Footer => body_bytes == Footer::BYTES as u64,
        }
    }

    fn of(magic: [u8; 4]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.magic() == magic)
    }
}

/// What the header of a segment says: where it begins and what came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) first: Position,
    /// The global hash before the first event.
    pub(crate) global: Hash,
}

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        bytes[8..12].copy_from_slice(&FILE_VERSION.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[20..52].copy_from_slice(&self.global.0);
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// `None`: these are not the bytes of a header that this program knows.
    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let good = bytes[..8] == FILE_MAGIC
            && u32_at(bytes, 8) == FILE_VERSION
            && u32_at(bytes, 60) == crc32c::crc32c(&bytes[..60]);
        good.then(|| Self { first: Position(u64_at(bytes, 12)), global: hash_at(bytes, 20) })
    }

    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Self::from_bytes(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The body of a commit frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) first: Position,
    pub(crate) last: Position,
    /// The global hash after the last event.
    pub(crate) global: Hash,
}

impl Commit {
    const BYTES: usize = 52;

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let count =
            u32::try_from(self.last.0 - self.first.0 + 1).expect("a batch is smaller than 2^32 events");
        let mut body = [0; Self::BYTES];
        body[..8].copy_from_slice(&self.first.0.to_le_bytes());
        body[8..16].copy_from_slice(&self.last.0.to_le_bytes());
        body[16..20].copy_from_slice(&count.to_le_bytes());
        body[20..].copy_from_slice(&self.global.0);
        write_frame(FrameKind::Commit, &body, out);
    }

    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let body: &[u8; Self::BYTES] = body.try_into().ok()?;
        let (first, last) = (u64_at(body, 0), u64_at(body, 8));
        let counted = first.checked_add(u64::from(u32_at(body, 16)))?.checked_sub(1)?;
        (counted == last && first >= 1).then(|| Self {
            first: Position(first),
            last: Position(last),
            global: hash_at(body, 20),
        })
    }
}

/// The body of a footer: what the segment as a whole holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) first: Position,
    pub(crate) last: Position,
    /// The bytes before the footer, file header included.
    pub(crate) bytes: u64,
    /// The global hash after the last event.
    pub(crate) global: Hash,
    /// BLAKE3 of the bytes before the footer.
    pub(crate) content: Hash,
}

impl Footer {
    const BYTES: usize = 88;
    /// The size of the whole frame.
    pub(crate) const FRAME_BYTES: u64 = (FRAME_HEADER_BYTES + Self::BYTES) as u64;

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let mut body = [0; Self::BYTES];
        body[..8].copy_from_slice(&self.first.0.to_le_bytes());
        body[8..16].copy_from_slice(&self.last.0.to_le_bytes());
        body[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        body[24..56].copy_from_slice(&self.global.0);
        body[56..].copy_from_slice(&self.content.0);
        write_frame(FrameKind::Footer, &body, out);
    }

    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let body: &[u8; Self::BYTES] = body.try_into().ok()?;
        Some(Self {
            first: Position(u64_at(body, 0)),
            last: Position(u64_at(body, 8)),
            bytes: u64_at(body, 16),
            global: hash_at(body, 24),
            content: hash_at(body, 56),
        })
    }

    /// The footer at the end of a file of `length` bytes, if the file ends in one.
    pub(crate) fn at_end(file: &Arc<File>, length: u64) -> io::Result<Option<Self>> {
        let Some(start) = length.checked_sub(Self::FRAME_BYTES) else { return Ok(None) };
        let mut reader = FrameReader::new(Arc::clone(file), start, length);
        Ok(match reader.next()? {
            Next::Frame(frame) if frame.kind == FrameKind::Footer => {
                Self::read(frame.body()).filter(|footer| footer.bytes == start)
            }
            _ => None,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn hash_at(bytes: &[u8], at: usize) -> Hash {
    Hash(bytes[at..at + HASH_BYTES].try_into().expect("32 bytes"))
}

fn checksum(magic_and_length: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(magic_and_length), body)
}

/// Appends a frame with this body to `out`.
pub(crate) fn write_frame(kind: FrameKind, body: &[u8], out: &mut Vec<u8>) {
    let start = begin_frame(kind, out);
    out.extend_from_slice(body);
    end_frame(start, out);
}

/// Leaves room for a frame's header; the body is then written behind it.
pub(crate) fn begin_frame(kind: FrameKind, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&kind.magic());
    out.extend_from_slice(&[0; 8]);
    start
}

/// Completes the frame begun at `start` with its length and checksum.
pub(crate) fn end_frame(start: usize, out: &mut [u8]) {
    let body = start + FRAME_HEADER_BYTES;
    let length = u32::try_from(out.len() - body).expect("a body is shorter than BODY_BYTES_MAX");
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    let checksum = checksum(&out[start..start + 8], &out[body..]);
    out[start + 8..body].copy_from_slice(&checksum.to_le_bytes());
}

/// A whole frame with a good checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: FrameKind,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// All of its bytes.
    pub(crate) raw: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(crate) fn body(&self) -> &'a [u8] {
        &self.raw[FRAME_HEADER_BYTES..]
    }

    /// Where the next one begins.
    pub(crate) const fn end(&self) -> u64 {
        self.offset + self.raw.len() as u64
    }

    /// Envelope and hash of an event frame; `None` if it is too short to hold a hash.
    pub(crate) fn event(&self) -> Option<(&'a [u8], Hash)> {
        let body = self.body();
        let envelope = body.len().checked_sub(HASH_BYTES)?;
        Some((&body[..envelope], hash_at(body, envelope)))
    }
}

/// What lies at the reader's place.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    /// A good frame.
    Frame(Frame<'a>),
    /// The limit, exactly.
    End,
    /// Something else, and what is wrong with it.
    Broken(&'static str),
}

/// Reads frames one after another, or from any offset on, with one buffer.
pub(crate) struct FrameReader {
    file: Arc<File>,
    /// Nothing is read from here on.
    limit: u64,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins, and how much of it is filled.
    buffer_offset: u64,
    filled: usize,
    offset: u64,
    read_bytes: usize,
}

impl FrameReader {
    pub(crate) fn new(file: Arc<File>, offset: u64, limit: u64) -> Self {
        Self {
            file,
            limit,
            buffer: Vec::new(),
            buffer_offset: offset,
            filled: 0,
            offset,
            read_bytes: READ_BYTES,
        }
    }

    /// Reads so much ahead instead of 256 KiB; for frames that lie apart.
    pub(crate) const fn with_read_bytes(mut self, read_bytes: usize) -> Self {
        self.read_bytes = read_bytes;
        self
    }

    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes to another frame's offset.
    pub(crate) const fn seek(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// The frame at the current offset; the offset moves behind it. It stays where it is if the frame is broken.
    pub(crate) fn next(&mut self) -> io::Result<Next<'_>> {
        if self.offset >= self.limit {
            return Ok(Next::End);
        }
        let Some(at) = self.fill(FRAME_HEADER_BYTES)? else {
            return Ok(Next::Broken("a frame is cut short"));
        };
        let header = &self.buffer[at..at + FRAME_HEADER_BYTES];
        let Some(kind) = FrameKind::of(header[..4].try_into().expect("four bytes")) else {
            return Ok(Next::Broken("no frame begins here"));
        };
        let (length, expected) = (u32_at(header, 4) as usize, u32_at(header, 8));
        if length > BODY_BYTES_MAX {
            return Ok(Next::Broken("a frame is longer than any"));
        }
        let whole = FRAME_HEADER_BYTES + length;
        let Some(at) = self.fill(whole)? else { return Ok(Next::Broken("a frame is cut short")) };
        let raw = &self.buffer[at..at + whole];
        if checksum(&raw[..8], &raw[FRAME_HEADER_BYTES..]) != expected
            && !crate::mutant::is("checksums_are_ignored")
        {
            return Ok(Next::Broken("a checksum does not match"));
        }
        let offset = self.offset;
        self.offset += whole as u64;
        Ok(Next::Frame(Frame { kind, offset, raw }))
    }

    /// Whose event the broken frame here claims to hold, if it still says that it is the one at `position`.
    pub(crate) fn claimed_stream(&mut self, position: Position) -> io::Result<Option<StreamId>> {
        let Some(at) = self.fill(FRAME_HEADER_BYTES)? else { return Ok(None) };
        let length = u32_at(&self.buffer[at..], 4) as usize;
        if !(HASH_BYTES..=BODY_BYTES_MAX).contains(&length) {
            return Ok(None);
        }
        let Some(at) = self.fill(FRAME_HEADER_BYTES + length)? else { return Ok(None) };
        let envelope = &self.buffer[at + FRAME_HEADER_BYTES..at + FRAME_HEADER_BYTES + length - HASH_BYTES];
        let envelope = Envelope::read(envelope).ok().filter(|envelope| envelope.position == position);
        Ok(envelope.and_then(|envelope| StreamId::from_bytes(envelope.stream).ok()))
    }

    /// Makes `count` bytes from the current offset on available, and says where in the buffer; `None` if the limit
    /// or the end of the file comes first.
    fn fill(&mut self, count: usize) -> io::Result<Option<usize>> {
        let end = self.offset + count as u64;
        if end > self.limit {
            return Ok(None);
        }
        let held = self.buffer_offset..self.buffer_offset + self.filled as u64;
        if held.contains(&self.offset) {
            let at = in_memory(self.offset - self.buffer_offset);
            if end <= held.end {
                return Ok(Some(at));
            }
            self.buffer.copy_within(at..self.filled, 0);
            self.filled -= at;
        } else {
            self.filled = 0;
        }
        self.buffer_offset = self.offset;
        let wanted = in_memory((self.limit - self.offset).min(self.read_bytes.max(count) as u64));
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.filled < count {
            let at = self.buffer_offset + self.filled as u64;
            match self.file.read_at(&mut self.buffer[self.filled..wanted], at) {
                Ok(0) => return Ok(None),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(0))
    }
}

fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a buffer is smaller than memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_anywhere_in_a_frame_is_noticed() {
        let mut good = Vec::new();
        Commit { first: Position(3), last: Position(5), global: Hash([7; 32]) }.write(&mut good);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("frame");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bad).expect("it is written");
            let file = Arc::new(File::open(&path).expect("it opens"));
            let mut reader = FrameReader::new(file, 0, bad.len() as u64);
            assert!(matches!(reader.next().expect("it reads"), Next::Broken(_)), "bit {bit}");
        }
    }

    #[test]
    fn a_header_a_commit_and_a_footer_read_back_as_written() {
        let header = Header { first: Position(9), global: Hash([1; 32]) };
        assert_eq!(Header::from_bytes(&header.to_bytes()), Some(header));
        let commit = Commit { first: Position(9), last: Position(12), global: Hash([2; 32]) };
        let footer = Footer {
            first: Position(9),
            last: Position(12),
            bytes: 64,
            global: Hash([2; 32]),
            content: Hash([3; 32]),
        };
        let mut bytes = Vec::new();
        commit.write(&mut bytes);
        let second = bytes.len();
        footer.write(&mut bytes);
        assert_eq!(Commit::read(&bytes[FRAME_HEADER_BYTES..second]), Some(commit));
        assert_eq!(Footer::read(&bytes[second + FRAME_HEADER_BYTES..]), Some(footer));
        assert_eq!(bytes.len() - second, usize::try_from(Footer::FRAME_BYTES).expect("small"));
    }
}
