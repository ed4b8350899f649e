//! A wall clock that goes on over the lives of the server and moves with tokio's paused time.

use std::time::{Duration, Instant};

use actors::clock::Clock;
use eventlog::Timestamp;

/// 2026-01-01T00:00:00Z.
const BEGINNING: Timestamp = Timestamp(1_767_225_600_000_000);

/// The clock of one life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimClock {
    before: Duration,
    start: tokio::time::Instant,
}

impl SimClock {
    /// Goes on after so much time in earlier lives; needs a tokio runtime.
    pub(crate) fn after(before: Duration) -> Self {
        Self { before, start: tokio::time::Instant::now() }
    }

    /// How much time has passed over all lives.
    pub(crate) fn passed(&self) -> Duration {
        self.before + self.start.elapsed()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        BEGINNING.plus(self.passed())
    }

    fn instant(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}
