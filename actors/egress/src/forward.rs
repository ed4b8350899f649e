//! Plain HTTP, request by request: absolute form in, origin form out (RFC 9112 section 3.2), hop-by-hop fields left out
//! (RFC 9110 section 7.6.1).

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::{Body as _, Incoming},
    client::conn::http1::{self, SendRequest},
    header::{self, HeaderName, HeaderValue},
    http::uri::PathAndQuery,
};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::{
    host::Host,
    ledger::Why,
    proxy::{Body, HEAD_BYTES_MAX, HEADERS_MAX, IDLE_WAIT, Shared, empty},
};

/// Fields that are for the next hop only.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// The connection to the origin that was asked last, for the next request of the same connection of the browser.
#[derive(Default)]
pub(crate) struct Kept(Option<((Host, u16), SendRequest<Body>)>);

/// Asks the origin.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn forward(
    shared: &Arc<Shared>,
    kept: &mut Kept,
    host: Host,
    port: u16,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Why> {
    let method = request.method().as_str().to_owned();
    to_origin(&mut request)?;
    let place = (host, port);
    // A connection that was kept may be closed at the moment at which it is used. So only what can be asked again
    // without harm, and without its body, is asked over one.
    let again = is_repeatable(&request).then(|| without_body(&request));
    if let Some((_, mut sender)) = kept.0.take().filter(|(of, _)| *of == place)
        && let Some(first) = again
        && sender.ready().await.is_ok()
        && let Ok(answer) = ask(&mut sender, first).await
    {
        return keep(shared, kept, place, sender, answer);
    }
    let mut sender = connect(shared, &place, &method).await?;
    let answer = ask(&mut sender, request.map(BodyExt::boxed)).await?;
    keep(shared, kept, place, sender, answer)
}

fn is_repeatable(request: &Request<Incoming>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD) && request.body().is_end_stream()
}

fn without_body(request: &Request<Incoming>) -> Request<Body> {
    let mut same = Request::new(empty());
    same.method_mut().clone_from(request.method());
    same.uri_mut().clone_from(request.uri());
    same.headers_mut().clone_from(request.headers());
    same
}

async fn ask(sender: &mut SendRequest<Body>, request: Request<Body>) -> Result<Response<Incoming>, Why> {
    match timeout(IDLE_WAIT, sender.send_request(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if error.is_parse() => Err(Why::Failed("net::ERR_INVALID_HTTP_RESPONSE")),
        Ok(Err(_)) => Err(Why::Failed("net::ERR_EMPTY_RESPONSE")),
        Err(_) => Err(Why::Failed("net::ERR_TIMED_OUT")),
    }
}

fn keep(
    shared: &Shared,
    kept: &mut Kept,
    place: (Host, u16),
    sender: SendRequest<Body>,
    mut answer: Response<Incoming>,
) -> Result<Response<Incoming>, Why> {
    // The browser would take it for a question of the proxy's.
    if answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return Err(Why::Failed("net::ERR_UNEXPECTED_PROXY_AUTH"));
    }
    // Where connections are counted, none is held for later.
    if shared.policy.limits.connections_max.is_none() {
        kept.0 = Some((place, sender));
    }
    strip(answer.headers_mut());
    Ok(answer)
}

async fn connect(
    shared: &Arc<Shared>,
    (host, port): &(Host, u16),
    method: &str,
) -> Result<SendRequest<Body>, Why> {
    let upstream = shared.reach(host, *port, method).await?;
    let pulse = upstream.stream.pulse();
    let mut settings = http1::Builder::new();
    settings
        .preserve_header_case(true)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true);
    let (sender, connection) = settings
        .handshake(TokioIo::new(upstream.stream))
        .await
        .map_err(|_| Why::Failed("net::ERR_CONNECTION_CLOSED"))?;
    let (permit, token) = (upstream.permit, shared.closing.clone());
    shared.tasks.spawn(async move {
        let _permit = permit;
        tokio::select! {
            // How it ended is told by the request that it carried.
            _ = connection => {}
            () = pulse.stopped(IDLE_WAIT) => {}
            () = token.cancelled() => {}
        }
    });
    Ok(sender)
}

/// Rewrites a request for the proxy into one for the origin.
fn to_origin(request: &mut Request<Incoming>) -> Result<(), Why> {
    const INVALID: Why = Why::Failed("net::ERR_INVALID_URL");
    let authority = request.uri().authority().ok_or(INVALID)?.as_str();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let named = HeaderValue::from_str(authority).map_err(|_| INVALID)?;
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    strip(request.headers_mut());
    request.headers_mut().insert(header::HOST, named);
    Ok(())
}

fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.remove("proxy-connection");
}
