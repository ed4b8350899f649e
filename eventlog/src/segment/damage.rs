//! Damage inside a segment: how far it goes, and whose events it took.
//!
//! A broken frame says nothing that can be trusted, so its stream is asked of the index (or of the map in memory), which
//! knows what lies at each offset. Only if that accounts for every lost event does a reader go on behind them.

use std::{fs::File, io, sync::Arc};

use crate::{codec::Envelope, log::ReadError, number::Position, stream::StreamId};

use super::{
    frame::{Commit, Frame, FrameKind, FrameReader, Next},
    scan::find_magic,
    shared::{OpenSegment, Shared, io_error, segment_path},
};

/// A stretch of a segment that holds no good frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The position that was to come, and the one that comes behind it; equal if only the end of a batch is damaged.
    pub(crate) first: Position,
    pub(crate) next: Position,
    /// From the first bad byte to the next good frame.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// How far the damage at `from` goes, where `first` was to come.
fn measure(segment: &OpenSegment, from: u64, first: Position) -> io::Result<Damage> {
    let mut reader = FrameReader::new(Arc::clone(&segment.file), from, segment.end);
    let found = |to, next| Damage { first, next, from, to };
    // Its own length first: what looks like a frame inside of a payload is none.
    let declared = declared_end(&segment.file, from, segment.end)?;
    let mut at = declared.unwrap_or(from + 1);
    loop {
        if at == segment.end {
            return Ok(found(at, segment.last.next()));
        }
        reader.seek(at);
        if let Next::Frame(frame) = reader.next()?
            && let Some(next) = goes_on_at(&frame, first, segment.last)
        {
            return Ok(found(at, next));
        }
        let after = if Some(at) == declared { from + 1 } else { at + 1 };
        at = find_magic(&segment.file, after, segment.end)?.unwrap_or(segment.end);
    }
}

/// Where the frame ends if its length is not what is damaged.
fn declared_end(file: &File, from: u64, end: u64) -> io::Result<Option<u64>> {
    use std::os::unix::fs::FileExt;
    let mut header = [0; super::frame::FRAME_HEADER_BYTES];
    if from + header.len() as u64 > end {
        return Ok(None);
    }
    file.read_exact_at(&mut header, from)?;
    let body = u64::from(u32::from_le_bytes(header[4..8].try_into().expect("four bytes")));
    let declared = from + header.len() as u64 + body;
    Ok(Some(declared).filter(|declared| *declared <= end && body > 0))
}

/// The position that comes next, if this frame can stand behind the damage.
fn goes_on_at(frame: &Frame<'_>, first: Position, last: Position) -> Option<Position> {
    let next = match frame.kind {
        FrameKind::Event => Envelope::read(frame.event()?.0).ok()?.position,
        FrameKind::Commit => Commit::read(frame.body())?.last.next(),
        FrameKind::Footer => return None,
    };
    (next >= first && next <= last.next()).then_some(next)
}

impl Shared {
    /// Takes note of the damage at `from`, where `first` was to come, and of the streams that it is in.
    ///
    /// # Errors
    /// It can not be told whose events were lost: nothing behind it can be trusted.
    pub(crate) fn note_damage(
        &self,
        segment: &OpenSegment,
        from: u64,
        first: Position,
        what: &'static str,
    ) -> Result<Damage, ReadError> {
        let damage = measure(segment, from, first).map_err(io_error)?;
        let streams = self.streams_between(segment.first, damage.from, damage.to)?;
        if streams.len() as u64 != damage.next.0 - damage.first.0 {
            let what = format!("{what}, and whose events were there can not be told").into();
            return Err(ReadError::Damaged { position: first, last: None, what });
        }
        for stream in &streams {
            self.note_damaged_stream(stream, segment.first, from, what);
        }
        Ok(damage)
    }

    /// Takes note that a stream can not be read as a whole.
    pub(crate) fn note_damaged_stream(
        &self,
        stream: &StreamId,
        segment: Position,
        offset: u64,
        what: &'static str,
    ) {
        if !self.damaged.read().contains(stream) && self.damaged.write().insert(stream.clone()) {
            let file = segment_path(&self.folder, segment);
            tracing::error!(%stream, file = %file.display(), offset, what, "The log is damaged; this stream is refused from here on, and the others live.");
            metrics::counter!("browserspace_log_damaged_streams_total").increment(1);
        }
    }

    /// Whose events lie in this range of a segment, one entry for each event.
    fn streams_between(&self, segment: Position, from: u64, to: u64) -> Result<Vec<StreamId>, ReadError> {
        {
            let state = self.state.read();
            let in_memory = state.unindexed.iter().map(|map| &**map).chain([&state.active.map]);
            if let Some(map) = in_memory.into_iter().find(|map| map.first == segment) {
                return Ok(map.streams_between(from, to));
            }
        }
        self.ask_index(|index| index.streams_between(segment, from, to))
    }
}
