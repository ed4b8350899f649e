//! Where and when an event was recorded: what a fold needs to know of it besides the fact itself.

use eventlog::{Position, RecordedEvent, Sequence, Timestamp};

/// The two places of a recorded event, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Place in its stream.
    pub sequence: Sequence,
    /// Place in the whole log.
    pub position: Position,
    /// When the server decided it.
    pub recorded_at: Timestamp,
}

impl Place {
    /// The place of the next event of the same stream in the same append.
    #[must_use]
    pub const fn next(self) -> Self {
        Self { sequence: self.sequence.next(), position: self.position.next(), recorded_at: self.recorded_at }
    }
}

impl From<&RecordedEvent> for Place {
    fn from(recorded: &RecordedEvent) -> Self {
        Self {
            sequence: recorded.sequence,
            position: recorded.position,
            recorded_at: recorded.metadata.recorded_at,
        }
    }
}
