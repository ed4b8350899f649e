//! The bounds of one call: when it must have ended, and who may end it before.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an action waits when the caller does not say.
pub(crate) const ACTION_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a navigation waits when the caller does not say.
pub(crate) const NAVIGATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The bounds that every capability takes.
#[derive(Debug, Clone)]
pub struct Call {
    /// Nothing waits past this moment, whatever `timeout_ms` says; cleaning up may take a little longer.
    pub deadline: Instant,
    /// Ends the call early; when the function returns, it has cleaned up.
    pub cancel: CancellationToken,
}

impl Call {
    /// A call that ends after `timeout` at the latest.
    pub fn within(timeout: Duration) -> Self {
        Self { deadline: Instant::now() + timeout, cancel: CancellationToken::new() }
    }

    pub(crate) fn deadline(&self, timeout_ms: Option<u32>, default: Duration) -> Instant {
        let wanted = timeout_ms.map_or(default, |ms| Duration::from_millis(ms.into()));
        self.deadline.min(Instant::now() + wanted)
    }
}
