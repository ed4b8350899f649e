//! Time and ids come in here, and nowhere else in this crate.
//!
//! Delays and time-outs run on tokio's clock, so that a test with paused time moves everything at once.

use std::time::Instant;

use eventlog::Timestamp;
use uuid::Uuid;

/// What time it is.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock: informative, recorded with events.
    fn now(&self) -> Timestamp;

    /// The monotonic clock: deadlines and durations.
    fn instant(&self) -> Instant;
}

/// Where ids and secrets come from.
pub trait IdSource: Send + Sync + 'static {
    /// A new UUIDv7; those of one process rise.
    fn uuid(&self) -> Uuid;

    /// Bytes nobody can guess.
    fn secret(&self) -> [u8; 32];

    /// A number from 0 up to, but not including, 1: for jitter.
    fn fraction(&self) -> f64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::default().plus(elapsed)
    }

    fn instant(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// The machine's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn secret(&self) -> [u8; 32] {
        rand::random()
    }

    fn fraction(&self) -> f64 {
        rand::random()
    }
}

/// A clock that stands still but for tokio's paused time, and ids that count up: a run can be repeated exactly.
#[cfg(feature = "testing")]
pub mod testing {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Clock, IdSource, Instant, Timestamp, Uuid};

    /// 2026-01-01T00:00:00Z and what tokio's clock has moved since.
    #[derive(Debug, Clone, Copy)]
    pub struct TestClock {
        start: tokio::time::Instant,
    }

    impl TestClock {
        /// Starts now; needs a tokio runtime.
        #[must_use]
        pub fn start() -> Self {
            Self { start: tokio::time::Instant::now() }
        }
    }

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp(1_767_225_600_000_000).plus(self.start.elapsed())
        }

        fn instant(&self) -> Instant {
            tokio::time::Instant::now().into_std()
        }
    }

    /// Ids that count up from a seed.
    #[derive(Debug, Default)]
    pub struct TestIds(AtomicU64);

    impl TestIds {
        /// The ids of `seed`; two seeds never meet.
        #[must_use]
        pub fn seeded(seed: u32) -> Self {
            Self(AtomicU64::new(u64::from(seed) << 32))
        }

        fn next(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    impl IdSource for TestIds {
        fn uuid(&self) -> Uuid {
            Uuid::from_u64_pair(0x0190_0000_0000_7000, 0x8000_0000_0000_0000 | self.next())
        }

        fn secret(&self) -> [u8; 32] {
            *blake3::hash(&self.next().to_be_bytes()).as_bytes()
        }

        fn fraction(&self) -> f64 {
            0.5
        }
    }
}
