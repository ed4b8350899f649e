//! The tree and the chain of the whole log, kept up with a log that grows: incremental, in memory of a few hashes, and never
//! on the way of an append. It reads the segments, as anybody may, up to what is durable.

use std::{ops::ControlFlow, path::Path};

use crate::{
    chain::global_hash,
    log::{Hash, ReadError},
    merkle::{Range, TreeHash},
    number::Position,
    segment::{RawPlace, each_raw},
};

/// How many events are read between two looks at whether it should end.
const SLICE_EVENTS: u64 = 100_000;

/// The log up to a position, as its hashes.
#[derive(Debug, Clone)]
pub struct LogTree {
    place: RawPlace,
    range: Range,
    global: Hash,
    first: Option<Hash>,
}

impl Default for LogTree {
    fn default() -> Self {
        Self { place: RawPlace::default(), range: Range::new(0), global: Hash::default(), first: None }
    }
}

impl LogTree {
    /// The last position that is in it.
    #[must_use]
    pub const fn size(&self) -> Position {
        Position(self.range.end())
    }

    /// The root of the tree up to there.
    #[must_use]
    pub fn root(&self) -> TreeHash {
        self.range.root().expect("it begins with the first event")
    }

    /// The hash of the whole log up to there.
    #[must_use]
    pub const fn global(&self) -> Hash {
        self.global
    }

    /// The hash of the first event, which names the log.
    #[must_use]
    pub const fn first(&self) -> Option<Hash> {
        self.first
    }

    /// Takes in what lies behind it up to the position `until`, which must be durable. Stops early, between two events, where
    /// `goes_on` says no; what it has then is good.
    ///
    /// # Errors
    /// [`ReadError`]: it stands before what could not be read.
    pub fn advance(
        &mut self,
        folder: &Path,
        until: Position,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(), ReadError> {
        while self.size() < until && goes_on() {
            let slice = Position(until.0.min(self.size().0 + SLICE_EVENTS));
            let Self { place, range, global, first } = self;
            each_raw(folder, place, slice, &mut |event| {
                first.get_or_insert(event.hash);
                range.push(event.hash);
                *global = global_hash(*global, event.hash);
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    }
}
