//! When to look whether a Space is abandoned (S14): one heap of moments for all open Spaces, awake or not.
//!
//! A use does not touch the heap: it moves a number in the Space's slot. Only when a moment comes is the number
//! looked at, and the Space either asked to close or looked at again later. So a use costs one store, and a Space
//! one small entry, however often it is used.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use eventlog::id::SpaceId;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The heap. One task waits on it.
#[derive(Default)]
pub(crate) struct IdleTimer {
    moments: Mutex<BinaryHeap<Reverse<(Instant, SpaceId)>>>,
    earlier: Notify,
}

impl IdleTimer {
    /// Looks at `space` after `delay`.
    pub(crate) fn look_after(&self, delay: Duration, space: SpaceId) {
        let moment = Instant::now() + delay;
        let mut moments = self.moments.lock();
        let first = moments.peek().is_none_or(|Reverse((earliest, _))| moment < *earliest);
        moments.push(Reverse((moment, space)));
        drop(moments);
        if first {
            self.earlier.notify_one();
        }
    }

    /// The next Space whose moment has come. Dropping the wait loses nothing.
    pub(crate) async fn next(&self) -> SpaceId {
        loop {
            let earliest = self.moments.lock().peek().map(|Reverse((moment, _))| *moment);
            match earliest {
                Some(moment) if moment <= Instant::now() => {
                    if let Some(Reverse((_, space))) = self.moments.lock().pop() {
                        return space;
                    }
                }
                Some(moment) => tokio::select! {
                    biased;
                    () = sleep_until(moment) => {}
                    () = self.earlier.notified() => {}
                },
                None => self.earlier.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn spaces_are_looked_at_in_the_order_of_their_moments() {
        let timer = IdleTimer::default();
        let [first, second] = [1, 2].map(|number| SpaceId::from_uuid(Uuid::from_u128(number)));
        timer.look_after(Duration::from_secs(20), second);
        timer.look_after(Duration::from_secs(10), first);
        let began = Instant::now();
        assert_eq!(timer.next().await, first);
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        assert_eq!(timer.next().await, second);
        assert_eq!(began.elapsed(), Duration::from_secs(20));
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_moment_wakes_a_wait_that_began_before_it() {
        let timer = std::sync::Arc::new(IdleTimer::default());
        let space = SpaceId::from_uuid(Uuid::from_u128(7));
        let waiting = tokio::spawn({
            let timer = std::sync::Arc::clone(&timer);
            async move { timer.next().await }
        });
        tokio::task::yield_now().await;
        timer.look_after(Duration::from_millis(5), space);
        assert_eq!(waiting.await.unwrap(), space);
    }
}
