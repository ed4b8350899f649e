//! Waiting for an observable condition, with a deadline: the only way that a test waits.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// How long a condition may take to come true before the test fails. Generous: it is reached only on failure.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const INTERVAL: Duration = Duration::from_millis(10);

/// Looks until `probe` gives a value, at most [`DEADLINE`].
///
/// # Panics
/// When the condition does not come true in time; `what` says which.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, probe: impl FnMut() -> F) -> T {
    eventually_within(DEADLINE, what, probe).await
}

/// Looks until `probe` gives a value, at most `deadline`.
///
/// # Panics
/// When the condition does not come true in time; `what` says which.
pub async fn eventually_within<T, F: Future<Output = Option<T>>>(
    deadline: Duration,
    what: &str,
    mut probe: impl FnMut() -> F,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(begun.elapsed() < deadline, "not within {deadline:?}: {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}
