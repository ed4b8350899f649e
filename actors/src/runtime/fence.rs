//! Which reservation a runtime works for: a call of an older one is refused.

use std::sync::atomic::{AtomicU64, Ordering};

use eventlog::{Fence, event::space::TaskError};

use crate::space::failure::Failure;

/// Remembers the highest fence that it has seen.
#[derive(Debug)]
pub(crate) struct FenceGate(AtomicU64);

impl FenceGate {
    /// Of a runtime that was started under `fence`.
    pub(crate) const fn new(fence: Fence) -> Self {
        Self(AtomicU64::new(fence.0.0))
    }

    /// Whether a call under `fence` may pass.
    pub(crate) fn admits(&self, fence: Fence) -> bool {
        self.0.fetch_max(fence.0.0, Ordering::AcqRel) <= fence.0.0
    }
}

/// What a call of an ended reservation is answered.
pub(crate) fn reservation_ended() -> TaskError {
    Failure::RuntimeStopped.saying("the reservation of this browser has ended", false)
}

#[cfg(test)]
mod tests {
    use eventlog::Position;

    use super::*;

    #[test]
    fn an_older_reservation_is_refused_from_the_first_call_on() {
        let gate = FenceGate::new(Fence(Position(5)));
        assert!(!gate.admits(Fence(Position(4))));
        assert!(gate.admits(Fence(Position(5))));
        assert!(gate.admits(Fence(Position(7))));
        assert!(!gate.admits(Fence(Position(5))));
    }
}
