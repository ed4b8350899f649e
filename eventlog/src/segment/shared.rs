//! What the writer, the readers and the indexer share: the ends of all streams, the list of segments, and where
//! everything lies. Only durable things are in here.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::{
    id::CommandId,
    index::{Index, IndexError, Place, filter::Filter},
    log::{AppendError, ReadError, Stored},
    number::{Position, Sequence},
    stream::StreamId,
};

use super::{
    Limits,
    disk::Disk,
    frame::HEADER_BYTES,
    map::{Head, Heads, SegmentMap},
};

/// A file that, when it is there, tells the next open to throw the index away.
pub(crate) const REBUILD_FILE: &str = "index.rebuild";

/// A sealed segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealed {
    pub(crate) first: Position,
    pub(crate) last: Position,
    /// Where its footer begins.
    pub(crate) frames_end: u64,
}

/// The segment that grows.
pub(crate) struct Active {
    pub(crate) map: SegmentMap,
    pub(crate) file: Arc<File>,
    /// The end of the last durable batch.
    pub(crate) end: u64,
}

/// What changes with every batch.
pub(crate) struct State {
    pub(crate) heads: Heads,
    /// Ascending.
    pub(crate) sealed: Vec<Sealed>,
    /// Sealed segments that the index does not have yet, ascending.
    pub(crate) unindexed: Vec<Arc<SegmentMap>>,
    /// Of those it has, ascending: the first position, and the filter of the command ids.
    pub(crate) filters: Vec<(Position, Arc<Filter>)>,
    pub(crate) active: Active,
}

impl State {
    /// The append of this id, if it lies in memory.
    pub(crate) fn command(&self, id: CommandId) -> Option<Stored> {
        let maps = self.unindexed.iter().map(|map| &**map).chain([&self.active.map]);
        maps.into_iter().find_map(|map| map.command(id))
    }
}

/// Whether the log takes appends.
#[derive(Debug, Clone)]
pub(crate) enum Status {
    Open,
    /// A write or a sync failed; why.
    Poisoned(Arc<str>),
    Closed,
}

/// That the disk had no room for a batch.
pub(crate) struct Refused {
    pub(crate) why: Arc<str>,
    /// So much must be free before an append may be expected to be taken.
    pub(crate) free_bytes_wanted: u64,
}

pub(crate) struct Shared {
    pub(crate) folder: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) limits: Limits,
    pub(crate) state: RwLock<State>,
    /// `None` once the log is gone: readers may outlive it, the index's own lock may not.
    pub(crate) index: RwLock<Option<Box<dyn Index>>>,
    pub(crate) status: RwLock<Status>,
    /// The last batch did not fit on the disk: why, and how much must be free before the next one may.
    pub(crate) refused: Mutex<Option<Refused>>,
    /// Streams that a read has met damage in.
    pub(crate) damaged: RwLock<HashSet<StreamId>>,
    /// Kept so that there is always a head to look at; ends when the writer ends.
    pub(crate) head: watch::Receiver<Position>,
    /// Held until the writer and the index are gone: nobody else uses this folder meanwhile.
    pub(crate) lock: Mutex<Option<[File; 2]>>,
    /// Streams that somebody follows.
    pub(crate) followed: Mutex<HashMap<StreamId, watch::Sender<Sequence>>>,
}

/// A segment opened for reading, up to what is durable.
pub(crate) struct OpenSegment {
    pub(crate) first: Position,
    pub(crate) last: Position,
    pub(crate) file: Arc<File>,
    pub(crate) end: u64,
}

/// The name of the segment that begins at this position.
pub(crate) fn segment_path(folder: &Path, first: Position) -> PathBuf {
    folder.join(format!("seg-{:020}.log", first.0))
}

pub(crate) fn io_error(error: io::Error) -> ReadError {
    ReadError::Io(Arc::new(error))
}

impl Shared {
    pub(crate) fn check_open(&self) -> Result<(), AppendError> {
        match &*self.status.read() {
            Status::Open => Ok(()),
            Status::Poisoned(why) => Err(AppendError::Unavailable(Arc::clone(why))),
            Status::Closed => Err(AppendError::Unavailable("the log is closed".into())),
        }
    }

    pub(crate) fn check_space(&self) -> Result<(), AppendError> {
        let refuse = |why: String| Err(AppendError::Unavailable(why.into()));
        match self.disk.free_bytes(&self.folder) {
            Ok(free) if free < self.limits.free_bytes_min => refuse("the disk is nearly full".into()),
            Ok(_) => Ok(()),
            Err(error) => refuse(format!("the disk does not say how much is free: {error}")),
        }
    }

    /// Whether the next append would be taken, as far as can be told without one: after the disk was full, there must be
    /// more room than there was then.
    pub(crate) fn check_room(&self) -> Result<(), AppendError> {
        let mut refused = self.refused.lock();
        let Some(Refused { why, free_bytes_wanted }) = &*refused else { return Ok(()) };
        if self.disk.free_bytes(&self.folder).is_ok_and(|free| free >= *free_bytes_wanted) {
            *refused = None;
            return Ok(());
        }
        Err(AppendError::Unavailable(Arc::clone(why)))
    }

    pub(crate) fn stream_head(&self, stream: &StreamId) -> Head {
        self.state.read().heads.get(stream).copied().unwrap_or_default()
    }

    /// Asks the index; if it cannot answer, the next open rebuilds it.
    pub(crate) fn ask_index<T>(
        &self,
        ask: impl FnOnce(&dyn Index) -> Result<T, IndexError>,
    ) -> Result<T, ReadError> {
        let index = self.index.read();
        let index = index.as_ref().ok_or_else(|| io_error(io::Error::other("the log is closed")))?;
        ask(&**index).map_err(|error| {
            let written = std::fs::write(self.folder.join(REBUILD_FILE), b"");
            tracing::error!(%error, marked = written.is_ok(), "The index failed; a restart rebuilds it.");
            io_error(io::Error::new(io::ErrorKind::InvalidData, error))
        })
    }

    /// The segment that holds this position.
    pub(crate) fn open_segment_of(&self, position: Position) -> Result<OpenSegment, ReadError> {
        let sealed = {
            let state = self.state.read();
            if position >= state.active.map.first {
                let active = &state.active;
                return Ok(OpenSegment {
                    first: active.map.first,
                    last: active.map.last(),
                    file: Arc::clone(&active.file),
                    end: active.end,
                });
            }
            let after = state.sealed.partition_point(|sealed| sealed.first <= position);
            state.sealed[after.saturating_sub(1)]
        };
        let file = File::open(segment_path(&self.folder, sealed.first)).map_err(io_error)?;
        let Sealed { first, last, frames_end: end } = sealed;
        Ok(OpenSegment { first, last, file: Arc::new(file), end })
    }

    /// A position in `segment` at or before `position`, and where it lies.
    pub(crate) fn near(&self, segment: Position, position: Position) -> Result<(Position, u64), ReadError> {
        if position == segment {
            return Ok((segment, HEADER_BYTES as u64));
        }
        {
            let state = self.state.read();
            let in_memory = state.unindexed.iter().map(|map| &**map).chain([&state.active.map]);
            if let Some(map) = in_memory.into_iter().find(|map| map.first == segment) {
                return Ok((position, map.offset(position).unwrap_or(state.active.end)));
            }
        }
        self.ask_index(|index| index.near(segment, position))
    }

    /// At most `count` places of `stream` from `from` on; fewer do not mean that there are no more.
    pub(crate) fn stream_places(
        &self,
        stream: &StreamId,
        from: Sequence,
        count: usize,
    ) -> Result<Vec<Place>, ReadError> {
        if let Some(places) = self.stream_places_in_memory(stream, from, count) {
            return Ok(places);
        }
        // What is in neither is nowhere: a segment leaves memory only after the index has it.
        self.ask_index(|index| index.stream_places(stream, from, count))
    }

    fn stream_places_in_memory(&self, stream: &StreamId, from: Sequence, count: usize) -> Option<Vec<Place>> {
        let state = self.state.read();
        let maps = state.unindexed.iter().map(|map| &**map).chain([&state.active.map]);
        maps.into_iter().find_map(|map| {
            let offsets = map.stream_offsets(stream, from, count)?;
            let place = |offset: &u32| Place { segment: map.first, offset: u64::from(*offset) };
            Some(offsets.iter().map(place).collect())
        })
    }

    /// The append of this id, if it lies in memory, and which segments of the index behind `seen` may hold it. One
    /// look at both, so that a segment on its way from memory to the index is in exactly one of them.
    pub(crate) fn look_for_append(&self, id: CommandId, seen: Position) -> (Option<Stored>, Candidates) {
        let state = self.state.read();
        (state.command(id), candidates(&state, id, seen))
    }

    /// Looks an id up in segments whose filter lets it through. Reads from the disk.
    pub(crate) fn find_append_in_index(
        &self,
        id: CommandId,
        candidates: &Candidates,
    ) -> Result<Option<Stored>, ReadError> {
        for segment in &candidates.segments {
            for first in self.ask_index(|index| index.append_candidates(*segment, id))? {
                if let Some(stored) = self.run_at(first, id)? {
                    return Ok(Some(stored));
                }
            }
        }
        Ok(None)
    }
}

/// Segments in the index that may hold an id.
pub(crate) struct Candidates {
    pub(crate) segments: Vec<Position>,
    /// The first position of the newest segment in the index when this was asked.
    pub(crate) seen: Position,
}

fn candidates(state: &State, id: CommandId, after: Position) -> Candidates {
    let newer = state.filters.iter().rev().take_while(|(first, _)| *first > after);
    Candidates {
        segments: newer.filter(|(_, filter)| filter.may_hold(id)).map(|(first, _)| *first).collect(),
        seen: state.filters.last().map_or(Position::ZERO, |(first, _)| *first),
    }
}
