//! Where everything of one segment lies, in memory: kept for the segment that grows, and for a sealed one until the
//! index has it.

use std::collections::HashMap;

use crate::{
    id::CommandId,
    log::{Hash, Stored},
    number::{Position, Sequence},
    stream::StreamId,
};

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    pub(crate) sequence: Sequence,
    pub(crate) hash: Hash,
}

/// The ends of all streams.
pub(crate) type Heads = HashMap<StreamId, Head>;

/// One event's place, as the writer and a scan note it before its batch is whole.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    pub(crate) stream: StreamId,
    pub(crate) sequence: Sequence,
    pub(crate) hash: Hash,
    pub(crate) command: CommandId,
    /// Of its frame, in the file or (in a batch that is not written) from the batch's first byte.
    pub(crate) offset: u64,
}

/// The places of one stream in a segment.
#[derive(Debug, Clone)]
pub(crate) struct StreamPlaces {
    pub(crate) first: Sequence,
    /// Offsets of its frames, rising.
    pub(crate) offsets: Vec<u32>,
    /// The hash of its last event there.
    pub(crate) last_hash: Hash,
}

/// An append's events in a segment: they lie together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// From the segment's first event, counted from 0.
    pub(crate) index: u32,
    pub(crate) count: u32,
}

/// The places of one segment.
#[derive(Debug)]
pub(crate) struct SegmentMap {
    pub(crate) first: Position,
    /// By position, from the first.
    pub(crate) offsets: Vec<u32>,
    pub(crate) streams: HashMap<StreamId, StreamPlaces>,
    pub(crate) commands: HashMap<CommandId, Run>,
}

impl SegmentMap {
    pub(crate) fn new(first: Position) -> Self {
        Self { first, offsets: Vec::new(), streams: HashMap::new(), commands: HashMap::new() }
    }

    /// The position of the last event; one before `first` if there is none.
    pub(crate) fn last(&self) -> Position {
        Position(self.first.0 + self.offsets.len() as u64 - 1)
    }

    /// Adds the next event; its offset counts from `start`.
    pub(crate) fn add(&mut self, start: u64, event: &Noted) {
        let index = u32::try_from(self.offsets.len()).expect("a segment holds fewer than 2^32 events");
        let offset = u32::try_from(start + event.offset).expect("a segment is shorter than 4 GiB");
        self.offsets.push(offset);
        let places = self.streams.entry(event.stream.clone()).or_insert_with(|| StreamPlaces {
            first: event.sequence,
            offsets: Vec::new(),
            last_hash: event.hash,
        });
        places.offsets.push(offset);
        places.last_hash = event.hash;
        self.commands.entry(event.command).or_insert(Run { index, count: 0 }).count += 1;
    }

    /// The offset of the event at this position; `None` if it is not here.
    pub(crate) fn offset(&self, position: Position) -> Option<u64> {
        let index = usize::try_from(position.0.checked_sub(self.first.0)?).ok()?;
        self.offsets.get(index).map(|offset| u64::from(*offset))
    }

    /// The append of this id, if it lies here.
    pub(crate) fn command(&self, id: CommandId) -> Option<Stored> {
        let run = self.commands.get(&id)?;
        let first = Position(self.first.0 + u64::from(run.index));
        Some(Stored { first, last: Position(first.0 + u64::from(run.count) - 1) })
    }

    /// Whose events lie at these offsets, one entry for each event.
    pub(crate) fn streams_between(&self, from: u64, to: u64) -> Vec<StreamId> {
        let lies_there = |offset: &&u32| (from..to).contains(&u64::from(**offset));
        let of = |(stream, places): (&StreamId, &StreamPlaces)| {
            let count = places.offsets.iter().filter(lies_there).count();
            std::iter::repeat_n(stream.clone(), count)
        };
        self.streams.iter().flat_map(of).collect()
    }

    /// At most `count` offsets of events of `stream` from `from` on, if `from` lies here.
    pub(crate) fn stream_offsets(&self, stream: &StreamId, from: Sequence, count: usize) -> Option<&[u32]> {
        let places = self.streams.get(stream)?;
        let skip = usize::try_from(from.0.checked_sub(places.first.0)?).ok()?;
        let rest = places.offsets.get(skip..).filter(|rest| !rest.is_empty())?;
        Some(&rest[..rest.len().min(count)])
    }
}
