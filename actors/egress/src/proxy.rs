//! The proxy of one browser: takes its connections, asks the policy, and answers a refusal so that it is one.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::{
    net::TcpStream,
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};
use url::Url;

use crate::{
    dial::{Resolver, dial},
    door::Door,
    forward::{self, Kept},
    host::Host,
    ledger::{Ledger, Report, WINDOW, Why},
    meter::{Meter, Metered},
    policy::{Policy, Rule},
    tunnel,
};

/// A connection through which nothing has gone for so long is closed.
pub(crate) const IDLE_WAIT: Duration = Duration::from_secs(600);
/// The longest head of a request or an answer, in bytes: as Chromium itself takes it.
pub(crate) const HEAD_BYTES_MAX: usize = 256 * 1024;
/// So many header fields.
pub(crate) const HEADERS_MAX: usize = 256;
/// How long the browser's head may take, and its connection be without one.
const HEAD_WAIT: Duration = Duration::from_secs(300);
/// So many connections out at once, whatever the policy says. Chromium itself has 32 to a proxy.
const CONNECTIONS_MAX: usize = 256;
/// How long a request waits for a connection of the policy's to become free.
const CONNECTION_WAIT: Duration = Duration::from_secs(5);
/// So many reports wait for their reader; more are left out.
const REPORTS_WAITING_MAX: usize = 64;

pub(crate) type Body = BoxBody<Bytes, hyper::Error>;

/// A running proxy. Ends with [`Proxy::close`], or when it is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
}

/// What all connections of a proxy have in common.
pub(crate) struct Shared {
    pub(crate) policy: Policy,
    resolver: Arc<dyn Resolver>,
    meter: Arc<Meter>,
    ledger: Mutex<Ledger>,
    reports: mpsc::Sender<Report>,
    connections: Arc<Semaphore>,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// A way out that was granted.
pub(crate) struct Upstream {
    pub(crate) stream: Metered<TcpStream>,
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Proxy {
    /// Begins to serve `door`. What is refused comes out of the receiver; it ends with the proxy.
    ///
    /// Has to be called within a tokio runtime.
    pub fn serve(
        door: Door,
        policy: Policy,
        resolver: Arc<dyn Resolver>,
        meter: Arc<Meter>,
    ) -> (Self, mpsc::Receiver<Report>) {
        let (reports, receiver) = mpsc::channel(REPORTS_WAITING_MAX);
        let wanted = policy.limits.connections_max.and_then(|max| usize::try_from(max).ok());
        let shared = Arc::new(Shared {
            connections: Arc::new(Semaphore::new(wanted.unwrap_or(CONNECTIONS_MAX).min(CONNECTIONS_MAX))),
            policy,
            resolver,
            meter,
            ledger: Mutex::default(),
            reports,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(accept(Arc::clone(&shared), door));
        shared.tasks.spawn(tell_late(Arc::clone(&shared)));
        (Self { shared }, receiver)
    }

    /// Why an address was not reached since then; `None` if it was, or was not asked for.
    #[must_use]
    pub fn why(&self, address: &Url, since: Instant) -> Option<Why> {
        let host = Host::parse(address.host_str()?)?;
        let port = address.port_or_known_default()?;
        self.shared.ledger.lock().why(&host, port, since)
    }

    /// Ends every connection and returns once nothing of the proxy is left.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

async fn accept(shared: Arc<Shared>, door: Door) {
    let closing = shared.closing.clone();
    loop {
        let next = tokio::select! {
            () = closing.cancelled() => return,
            next = door.next() => next,
        };
        match next {
            Ok(stream) => {
                let serving = serve(Arc::clone(&shared), stream);
                shared.tasks.spawn(serving);
            }
            Err(error) => {
                warn!(%error, "A browser's proxy could not take a connection.");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Tells what was counted, once its window is over.
async fn tell_late(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(WINDOW / 4);
    loop {
        tokio::select! {
            () = shared.closing.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let due = shared.ledger.lock().due(Instant::now());
        due.into_iter().for_each(|report| shared.tell(report));
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    // A socket that can't be told to hurry works as well.
    let _ = stream.set_nodelay(true);
    let kept = Arc::new(AsyncMutex::new(Kept::default()));
    let service = service_fn(|request| {
        let (shared, kept) = (Arc::clone(&shared), Arc::clone(&kept));
        async move { Ok::<_, Infallible>(shared.answer(&kept, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .preserve_header_case(true)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::select! {
        ended = connection => debug!(ended = ended.is_ok(), "A connection of a browser ended."),
        () = shared.closing.cancelled() => {}
    }
}

impl Shared {
    async fn answer(self: &Arc<Self>, kept: &AsyncMutex<Kept>, request: Request<Incoming>) -> Response<Body> {
        let method = request.method().clone();
        let is_tunnel = method == Method::CONNECT;
        let Some((host, port)) = destination(&request) else {
            let report = self.ledger.lock().refuse(None, 0, Rule::Host, method.as_str(), Instant::now());
            report.into_iter().for_each(|report| self.tell(report));
            return refusal(StatusCode::BAD_REQUEST, is_tunnel);
        };
        let reached = if is_tunnel {
            self.reach(&host, port, method.as_str()).await.map(|upstream| {
                tunnel::join(self, request, upstream);
                Response::new(empty())
            })
        } else if request.uri().scheme_str() == Some("http") {
            let answer = forward::forward(self, &mut *kept.lock().await, host.clone(), port, request).await;
            answer.map(|answer| answer.map(BodyExt::boxed))
        } else {
            Err(Why::Blocked(Rule::Protocol))
        };
        match reached {
            Ok(response) => {
                self.ledger.lock().forget(&host, port);
                response
            }
            Err(why) => self.refuse(&host, port, &method, why),
        }
    }

    /// Connects to where the policy allows it.
    pub(crate) async fn reach(&self, host: &Host, port: u16, method: &str) -> Result<Upstream, Why> {
        let limits = self.policy.limits;
        if self.meter.is_spent(limits.bytes_max) {
            return Err(Why::Blocked(Rule::Bytes));
        }
        // What the rules refuse does not wait for a place.
        self.policy.may_resolve(host, port).map_err(Why::Blocked)?;
        let place = timeout(CONNECTION_WAIT, Arc::clone(&self.connections).acquire_owned()).await;
        let Ok(Ok(permit)) = place else { return Err(Why::Blocked(Rule::Connections)) };
        let stream = dial(&self.policy, &*self.resolver, host, port).await?;
        debug!(method, "A way out was granted.");
        Ok(Upstream { stream: Metered::new(stream, Arc::clone(&self.meter), limits.bytes_max), permit })
    }

    fn refuse(&self, host: &Host, port: u16, method: &Method, why: Why) -> Response<Body> {
        let why = match why {
            // What was cut in the middle failed for the same reason as what was not begun.
            Why::Failed(_) if self.meter.is_spent(self.policy.limits.bytes_max) => Why::Blocked(Rule::Bytes),
            why => why,
        };
        let now = Instant::now();
        let report = {
            let mut ledger = self.ledger.lock();
            ledger.remember(host, port, why, now);
            match why {
                Why::Blocked(Rule::Background) => None,
                Why::Blocked(rule) => ledger.refuse(Some(host), port, rule, method.as_str(), now),
                Why::Failed(_) => None,
            }
        };
        report.into_iter().for_each(|report| self.tell(report));
        let status = match why {
            Why::Blocked(_) => StatusCode::FORBIDDEN,
            Why::Failed(_) => StatusCode::BAD_GATEWAY,
        };
        refusal(status, method == Method::CONNECT)
    }

    fn tell(&self, report: Report) {
        if self.reports.try_send(report).is_err() {
            warn!("A report of what was refused was left out: nobody takes them.");
        }
    }
}

fn destination(request: &Request<Incoming>) -> Option<(Host, u16)> {
    let authority = request.uri().authority()?;
    let default = if request.method() == Method::CONNECT { None } else { Some(80) };
    let port = authority.port_u16().or(default)?;
    Some((Host::parse(authority.host())?, port))
}

/// An answer that is an error for whatever asked.
///
/// A page's own error text would be shown as a page, and an image or an opaque fetch would take it for an answer. Two
/// different `Location` fields make every browser refuse the response as a whole (Fetch standard, "location URL").
fn refusal(status: StatusCode, is_tunnel: bool) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    if !is_tunnel {
        response.headers_mut().append(header::LOCATION, HeaderValue::from_static("about:blank#refused"));
        response.headers_mut().append(header::LOCATION, HeaderValue::from_static("about:blank#by-policy"));
    }
    response
}

pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed()
}
