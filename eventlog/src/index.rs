//! What sealed segments hold and where, so that nobody has to walk them: derived, and rebuilt whenever in doubt.
//!
//! It never decides an acknowledgement and never holds the only copy of anything. The growing segment is not in it
//! (`segment/map.rs` keeps that one in memory), so it is written once per sealed segment, off the ack path.

pub(crate) mod filter;
pub(crate) mod sled;

use crate::{
    id::CommandId,
    log::Hash,
    number::{Position, Sequence},
    segment::map::{Head, SegmentMap},
    stream::StreamId,
};

use self::filter::Filter;

/// Why the index gave no answer. It is then thrown away and rebuilt at the next open.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the index is damaged or cannot be read: {0}")]
pub(crate) struct IndexError(pub(crate) String);

/// That a segment is in the index as a whole, and which one it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) first: Position,
    pub(crate) last: Position,
    /// The global hash at its end: another log with the same positions has another one.
    pub(crate) global: Hash,
}

/// One event's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The segment, by its first position.
    pub(crate) segment: Position,
    pub(crate) offset: u64,
}

/// The index of sealed segments.
pub(crate) trait Index: Send + Sync {
    /// The segments that are in it, ascending.
    fn marks(&self) -> Result<Vec<Mark>, IndexError>;

    /// Puts a segment in, and answers the filter of its command ids.
    fn add(&self, segment: &SegmentMap, global: Hash) -> Result<Filter, IndexError>;

    /// Tells the ends of all streams as of the last segment that is in it, after checking every entry of streams.
    fn heads(&self, tell: &mut dyn FnMut(StreamId, Head)) -> Result<(), IndexError>;

    /// At most `count` places of `stream` from `from` on, without a gap; empty if `from` is not in it.
    fn stream_places(
        &self,
        stream: &StreamId,
        from: Sequence,
        count: usize,
    ) -> Result<Vec<Place>, IndexError>;

    /// Whose events lie in this range of offsets of a segment, one entry for each event. Looks at every entry of streams.
    fn streams_between(&self, segment: Position, from: u64, to: u64) -> Result<Vec<StreamId>, IndexError>;

    /// A position at or before `position` in this segment, and the offset of its frame.
    fn near(&self, segment: Position, position: Position) -> Result<(Position, u64), IndexError>;

    /// The filter of a segment's command ids.
    fn filter(&self, segment: Position) -> Result<Filter, IndexError>;

    /// Positions in this segment where an append with this id may begin; the frame there tells.
    fn append_candidates(&self, segment: Position, id: CommandId) -> Result<Vec<Position>, IndexError>;
}
