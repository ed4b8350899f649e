//! Events as they are stored, one after another, without decoding them: for trees, proofs and exports.

use std::{fs::File, io, ops::ControlFlow, path::Path, sync::Arc};

use crate::{
    codec::Envelope,
    log::{Hash, ReadError},
    number::{Position, Sequence},
};

use super::{
    frame::{Frame, FrameKind, FrameReader, HEADER_BYTES, Next},
    shared::{io_error, segment_path},
};

/// Where a reader of raw events is; it may go on from there at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPlace {
    segment: Position,
    offset: u64,
    next: Position,
}

impl Default for RawPlace {
    fn default() -> Self {
        Self { segment: Position(1), offset: HEADER_BYTES as u64, next: Position(1) }
    }
}

impl RawPlace {
    /// The position of the next event.
    #[must_use]
    pub const fn next(&self) -> Position {
        self.next
    }
}

/// An event as stored.
#[derive(Debug, Clone, Copy)]
pub struct RawEvent<'a> {
    /// Place in the log.
    pub position: Position,
    /// Its stream, as [`StreamId::to_bytes`](crate::StreamId::to_bytes) writes it.
    pub stream: &'a [u8],
    /// Place in the stream.
    pub sequence: Sequence,
    /// The bytes that its hash covers, beside the hash before it.
    pub envelope: &'a [u8],
    /// Its hash.
    pub hash: Hash,
}

/// Shows every event from `place` on up to the position `until`, which must be whole and durable; moves `place` along.
///
/// Checksums and positions are checked on the way, chains are not.
///
/// # Errors
/// [`ReadError`]: what lies at `place` can not be read.
pub fn each_raw(
    folder: &Path,
    place: &mut RawPlace,
    until: Position,
    see: &mut dyn FnMut(&RawEvent<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    while place.next <= until {
        let file = Arc::new(File::open(segment_path(folder, place.segment)).map_err(io_error)?);
        let length = file.metadata().map_err(io_error)?.len();
        let mut reader = FrameReader::new(file, place.offset, length);
        loop {
            match reader.next().map_err(io_error)? {
                Next::Frame(frame) if frame.kind == FrameKind::Event => {
                    let event = raw(&frame, place.next)?;
                    let flow = see(&event);
                    (place.offset, place.next) = (frame.end(), place.next.next());
                    if flow.is_break() || place.next > until {
                        return Ok(());
                    }
                }
                Next::Frame(frame) => place.offset = frame.end(),
                Next::End if place.segment < place.next => break,
                Next::End => return Err(damaged(place.next, "its segment ends before it")),
                Next::Broken(what) => return Err(damaged(place.next, what)),
            }
        }
        (place.segment, place.offset) = (place.next, HEADER_BYTES as u64);
    }
    Ok(())
}

fn raw<'a>(frame: &Frame<'a>, wanted: Position) -> Result<RawEvent<'a>, ReadError> {
    let (envelope, hash) = frame.event().ok_or_else(|| damaged(wanted, "an event has no hash"))?;
    let read = Envelope::read(envelope).map_err(|error| damaged(wanted, &error.to_string()))?;
    if read.position != wanted {
        return Err(damaged(wanted, "positions have a gap or a repeat"));
    }
    let Envelope { position, stream, sequence, .. } = read;
    Ok(RawEvent { position, stream, sequence, envelope, hash })
}

fn damaged(position: Position, what: &str) -> ReadError {
    ReadError::Damaged { position, last: None, what: what.into() }
}

/// Where the event at `position` lies in nothing.
pub(crate) fn missing(position: Position) -> ReadError {
    let what = format!("there is no event at position {position}");
    ReadError::Io(Arc::new(io::Error::new(io::ErrorKind::NotFound, what)))
}
