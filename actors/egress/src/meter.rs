//! What goes through: counted where it leaves the machine, and cut when it is too much.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

/// Counts what one Space sends and receives. Shared by all its runtimes.
#[derive(Debug, Default)]
pub struct Meter {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Meter {
    /// Bytes sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Bytes received so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether more than `max` went through by now.
    #[must_use]
    pub fn is_spent(&self, max: Option<u64>) -> bool {
        max.is_some_and(|max| self.sent().saturating_add(self.received()) >= max)
    }
}

/// When something went through last.
#[derive(Debug, Clone)]
pub(crate) struct Pulse {
    began: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Pulse {
    fn new() -> Self {
        Self { began: Instant::now(), last_ms: Arc::default() }
    }

    fn beat(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }

    /// Returns once nothing has gone through for so long.
    pub(crate) async fn stopped(&self, idle: Duration) {
        loop {
            let until = self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed)) + idle;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

/// A connection whose bytes are counted. Fails once the bytes of the policy are spent.
pub(crate) struct Metered<S> {
    stream: S,
    meter: Arc<Meter>,
    bytes_max: Option<u64>,
    pulse: Pulse,
}

impl<S> Metered<S> {
    pub(crate) fn new(stream: S, meter: Arc<Meter>, bytes_max: Option<u64>) -> Self {
        Self { stream, meter, bytes_max, pulse: Pulse::new() }
    }

    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    fn admit(&self) -> io::Result<()> {
        if self.meter.is_spent(self.bytes_max) {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "the bytes of the policy are spent"));
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.admit()?;
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        let count = (into.filled().len() - before) as u64;
        self.meter.received.fetch_add(count, Ordering::Relaxed);
        self.pulse.beat();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.admit()?;
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, from))?;
        self.meter.sent.fetch_add(count as u64, Ordering::Relaxed);
        self.pulse.beat();
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn bytes_are_counted_each_way_and_end_where_the_policy_does() {
        let (near, mut far) = duplex(64);
        let meter = Arc::new(Meter::default());
        let mut metered = Metered::new(near, Arc::clone(&meter), Some(8));
        metered.write_all(b"abc").await.expect("within");
        far.write_all(b"defgh").await.expect("within");
        let mut into = [0; 5];
        metered.read_exact(&mut into).await.expect("within");
        assert_eq!((meter.sent(), meter.received()), (3, 5));
        let over = metered.write_all(b"i").await.expect_err("spent");
        assert_eq!(over.kind(), io::ErrorKind::QuotaExceeded);
    }
}
