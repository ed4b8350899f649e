//! The connections: how many there are at once, and how long one may stay on which nothing moves (C16).
//!
//! ```text
//!  accept ─► a place is free? ─► served, and looked at every second:
//!                 │ no             first byte of a request, but not all of its head ─► cut after `header_read_seconds`
//!                 ▼                no request, or an answer that is not taken       ─► cut after `keep_alive_seconds`
//!            answered `overloaded`, and closed
//! ```
//!
//! Without this whoever can reach the port holds descriptors for ever and for nothing, and the disk and the browsers
//! need them too. While a request is worked on, its route's own bounds count.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, Request},
    response::Response,
};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use tracing::{info, warn};

use crate::limits::HttpConfig;

/// How often each connection is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So many connections beyond the bound are told so at once; what comes beyond these is closed without a word.
const REFUSED_AT_ONCE: usize = 32;
/// How long a connection beyond the bound may take to hear that it is one.
const REFUSAL_TIME: Duration = Duration::from_secs(3);
/// The pause after an accept that the system refused; most often there is no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);
/// So often at most it is logged that connections are refused.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// How long a connection may stay on which nothing moves.
#[derive(Debug, Clone, Copy)]
struct Patience {
    header_read: Duration,
    keep_alive: Duration,
}

/// Serves `router` to everybody who connects, and `refusal` to those for whom there is no place. Returns once
/// `stopping` is cancelled and every request that was under way is answered.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    refusal: Router,
    config: &HttpConfig,
    stopping: CancellationToken,
) {
    let most = places(config);
    let places = Arc::new(Semaphore::new(most as usize));
    let refusals = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
    let patience = Patience {
        header_read: Duration::from_secs(config.header_read_seconds),
        keep_alive: Duration::from_secs(config.keep_alive_seconds),
    };
    let mut complaints = Complaints::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopping.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_the_peers(&error) => continue,
            Err(error) => {
                metrics::counter!("browserspace_http_accept_errors_total").increment(1);
                complaints.warn(|| warn!(%error, "No connection could be accepted."));
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Answers are small and whole: waiting for more to send only delays them. A socket that refuses is gone.
        let _ = stream.set_nodelay(true);
        let stopping = stopping.clone();
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let router = router.clone();
            tokio::spawn(async move {
                serve_one(stream, peer, router, patience, true, stopping).await;
                drop(place);
            });
            continue;
        }
        metrics::counter!("browserspace_http_connections_refused_total").increment(1);
        complaints.warn(|| {
            warn!(connections_max = most, "There are as many connections as there may be; more are refused.");
        });
        if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
            let router = refusal.clone();
            tokio::spawn(async move {
                let refused = serve_one(stream, peer, router, patience, false, stopping);
                let _ = tokio::time::timeout(REFUSAL_TIME, refused).await;
                drop(place);
            });
        }
    }
    drop(listener);
    // All places are free once every connection has ended.
    let _ = places.acquire_many(most).await;
}

/// So many connections as are configured, if the process may have that many: half of its descriptors are for the rest.
fn places(config: &HttpConfig) -> u32 {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let half = descriptors.map_or(u32::MAX, |most| u32::try_from(most / 2).unwrap_or(u32::MAX)).max(1);
    if half < config.connections_max {
        warn!(
            connections_max = config.connections_max,
            used = half,
            "Fewer connections than configured: the process may have too few open files (ulimit -n)."
        );
    }
    half.min(config.connections_max)
}

/// What says something about one peer only, and nothing about the next accept.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Says a thing once a while, however often it happens.
#[derive(Default)]
struct Complaints(Option<Instant>);

impl Complaints {
    fn warn(&mut self, say: impl FnOnce()) {
        let now = Instant::now();
        if self.0.is_none_or(|last| now.duration_since(last) >= WARN_EVERY) {
            self.0 = Some(now);
            say();
        }
    }
}

/// Serves one connection to its end.
async fn serve_one(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    patience: Patience,
    keep_alive: bool,
    stopping: CancellationToken,
) {
    let _open = Counted::new();
    let pulse = Pulse::new();
    let io = TokioIo::new(Watched { stream, pulse: pulse.clone() });
    let beating = pulse.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let at_work = beating.begin();
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let router = router.clone();
        async move {
            let response = router.oneshot(request).await?;
            Ok::<Response, Infallible>(response.map(|body| Body::new(Answered { body, _at_work: at_work })))
        }
    });
    let mut connection = pin!(http1::Builder::new().keep_alive(keep_alive).serve_connection(io, service));
    let mut look = tokio::time::interval(LOOK_EVERY);
    let mut asked_to_end = false;
    loop {
        tokio::select! {
            // An error is the peer's: it went away, or spoke no HTTP.
            _ended = connection.as_mut() => return,
            () = stopping.cancelled(), if !asked_to_end => {
                asked_to_end = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = look.tick() => {
                if let Some(reason) = pulse.overdue(patience) {
                    metrics::counter!("browserspace_http_connections_cut_total", "reason" => reason).increment(1);
                    info!(reason, "A connection was cut on which nothing moved.");
                    return;
                }
            }
        }
    }
}

/// One open connection, as a figure.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!("browserspace_http_connections").increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!("browserspace_http_connections").decrement(1.0);
    }
}

/// What a connection is at. Cheap to clone.
#[derive(Clone)]
struct Pulse(Arc<Mutex<State>>);

struct State {
    phase: Phase,
    /// Since when the peer takes nothing of what is to be sent.
    blocked: Option<Instant>,
}

enum Phase {
    /// Nothing is asked.
    Idle(Instant),
    /// The first byte of a request is there, and not yet its whole head.
    Head(Instant),
    /// A request is worked on, or its answer is on its way.
    AtWork,
}

impl Pulse {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State { phase: Phase::Idle(Instant::now()), blocked: None })))
    }

    fn has_read(&self) {
        let mut state = self.0.lock();
        if let Phase::Idle(_) = state.phase {
            state.phase = Phase::Head(Instant::now());
        }
    }

    fn has_written(&self, taken: bool) {
        let mut state = self.0.lock();
        if taken {
            state.blocked = None;
        } else {
            state.blocked.get_or_insert_with(Instant::now);
        }
    }

    /// A request begins; it ends when what this gives is dropped.
    fn begin(&self) -> AtWork {
        self.0.lock().phase = Phase::AtWork;
        AtWork(self.clone())
    }

    /// Why this connection is to be cut, if it is.
    fn overdue(&self, patience: Patience) -> Option<&'static str> {
        let state = self.0.lock();
        if state.blocked.is_some_and(|since| since.elapsed() >= patience.keep_alive) {
            return Some("answer_not_taken");
        }
        match state.phase {
            Phase::Idle(since) if since.elapsed() >= patience.keep_alive => Some("idle"),
            Phase::Head(since) if since.elapsed() >= patience.header_read => Some("header_not_sent"),
            Phase::Idle(_) | Phase::Head(_) | Phase::AtWork => None,
        }
    }
}

/// A request that is worked on.
struct AtWork(Pulse);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.0.lock().phase = Phase::Idle(Instant::now());
    }
}

/// An answer's body; dropped when all of it was handed on.
struct Answered {
    body: Body,
    _at_work: AtWork,
}

impl hyper::body::Body for Answered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The socket, noting when something moves.
struct Watched {
    stream: TcpStream,
    pulse: Pulse,
}

impl Watched {
    fn note<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.pulse.has_written(polled.is_ready());
        polled
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.pulse.has_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_taken_cuts_a_connection_also_while_it_is_made() {
        let patience = Patience { header_read: Duration::from_secs(1), keep_alive: Duration::from_secs(2) };
        let pulse = Pulse::new();
        let at_work = pulse.begin();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(pulse.overdue(patience), None, "a request may take its time");
        pulse.has_written(false);
        assert_eq!(pulse.overdue(patience), None);
        sleep(Duration::from_secs(1)).await;
        pulse.has_written(true);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(pulse.overdue(patience), None, "it was taken late");
        pulse.has_written(false);
        sleep(Duration::from_secs(1)).await;
        pulse.has_written(false);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(
            pulse.overdue(patience),
            Some("answer_not_taken"),
            "since the first byte that was not taken"
        );
        drop(at_work);
    }
}
