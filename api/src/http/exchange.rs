//! The outermost layer: every answer, also of a panic, gets its ids, its log position, its safety headers, one log line
//! and one span.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use actors::{Caller, Context};
use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use eventlog::{Position, Redactor, TraceId};
use futures::FutureExt as _;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId as OtelTraceId, TraceState,
};
use tracing::{Instrument as _, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::App;
use crate::problem::{AnsweredCode, Code, Problem};

/// Names one request in the log; echoed where the caller sent a plain one.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// W3C Trace Context, section 3.2.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// A position of the log that the answer knows of: whatever lies up to it was taken into account.
pub(crate) const X_LOG_POSITION: HeaderName = HeaderName::from_static("x-log-position");
/// A position that a read must know of before it answers.
pub(crate) const X_MIN_POSITION: HeaderName = HeaderName::from_static("x-min-position");

/// The longest `x-request-id` that is echoed, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// The headers that keep an answer harmless wherever it is shown; a handler may say something stricter or its own.
const SAFETY: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
];

/// One request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) request_id: Arc<str>,
    pub(crate) trace_id: TraceId,
    pub(crate) span: Span,
    /// The durable head when the request came: what every answer has taken into account.
    pub(crate) head: Position,
    pub(crate) deadline: Instant,
}

impl Exchange {
    /// What goes with a command of this caller.
    pub(crate) fn context(&self, caller: &Caller) -> Context {
        Context {
            caller: caller.clone(),
            trace_id: self.trace_id,
            span: self.span.clone(),
            deadline: self.deadline,
        }
    }
}

/// Put into an answer's extensions by a handler that knows of a later position than the head at the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredPosition(pub(crate) Position);

/// Surrounds the whole router.
pub(crate) async fn surround(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("(none)", MatchedPath::as_str);
    let (span, trace) = open_span(&method, route, request.headers());
    let exchange = Exchange {
        request_id: request_id(request.headers()),
        trace_id: trace.trace_id,
        span: span.clone(),
        head: *app.log.durable_head().borrow(),
        deadline: started + Duration::from_secs(app.config.request_timeout_seconds),
    };
    span.record("request.id", &*exchange.request_id);
    request.extensions_mut().insert(exchange.clone());

    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone()).await;
    let mut response = answered.unwrap_or_else(|_| Problem::new(Code::Internal).into_response());

    finish_headers(&mut response, &exchange, &trace);
    report(&response, &method, route, &exchange, started.elapsed());
    response
}

fn finish_headers(response: &mut Response, exchange: &Exchange, trace: &Trace) {
    let answered =
        response.extensions().get::<AnsweredPosition>().map_or(Position::ZERO, |position| position.0);
    let position = exchange.head.max(answered);
    let headers = response.headers_mut();
    let own = [
        (X_REQUEST_ID, exchange.request_id.to_string()),
        (TRACEPARENT, trace.to_string()),
        (X_LOG_POSITION, position.to_string()),
    ];
    for (name, value) in own {
        headers.insert(name, HeaderValue::from_str(&value).expect("ids and numbers are header values"));
    }
    for (name, value) in SAFETY {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// The access log: ids, codes and numbers; no address, no header, nothing that a caller wrote.
fn report(response: &Response, method: &Method, route: &str, exchange: &Exchange, took: Duration) {
    let status = response.status();
    let code = response.extensions().get::<AnsweredCode>().map_or("", |code| code.0.as_str());
    let span = &exchange.span;
    span.record("http.response.status_code", status.as_u16());
    span.record("code", code);
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let method = known_method(method);
    let labels =
        [("method", method.to_owned()), ("route", route.to_owned()), ("status", status.as_u16().to_string())];
    metrics::counter!("browserspace_http_requests_total", &labels).increment(1);
    metrics::histogram!("browserspace_http_request_duration_seconds", "method" => method, "route" => route.to_owned())
        .record(took.as_secs_f64());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let (request_id, trace_id, status) = (&*exchange.request_id, exchange.trace_id, status.as_u16());
    // Outside the span: the line says all that it has to say, and the span's fields would say it again.
    if code == Code::Internal.as_str() {
        tracing::error!(parent: None, request_id, %trace_id, method, route, status, code, duration_ms, "Request failed by a bug of ours.");
    } else {
        tracing::info!(parent: None, request_id, %trace_id, method, route, status, code, duration_ms, "Request answered.");
    }
}

/// A method as a label: what a caller makes up does not become one.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn request_id(headers: &HeaderMap) -> Arc<str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let sent = headers.get(X_REQUEST_ID).and_then(|value| value.to_str().ok()).filter(|text| {
        // A token sent here by mistake, ours or another's, would be written into the log.
        !text.is_empty()
            && text.len() <= REQUEST_ID_BYTES_MAX
            && text.bytes().all(plain)
            && !text.contains("bst_")
            && Redactor::new().text(text).get() == text
    });
    sent.map_or_else(|| format!("req_{}", hex::encode(rand::random::<[u8; 16]>())).into(), Into::into)
}

/// The trace that a request belongs to, and the span of it that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trace {
    trace_id: TraceId,
    span_id: [u8; 8],
    sampled: bool,
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, hex::encode(self.span_id), u8::from(self.sampled))
    }
}

/// Opens the request's span below the caller's, where it sent one.
///
/// The trace id is the exporter's, where there is one, else the caller's, else random: the events carry it either way.
fn open_span(method: &Method, route: &str, headers: &HeaderMap) -> (Span, Trace) {
    let span = tracing::info_span!(
        "http_request",
        otel.name = format!("{} {route}", known_method(method)),
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.request.method = known_method(method),
        http.route = route,
        http.response.status_code = field::Empty,
        request.id = field::Empty,
        space.id = field::Empty,
        task.id = field::Empty,
        code = field::Empty,
    );
    let parent = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok()).and_then(parse_traceparent);
    if let Some(parent) = parent {
        let context = SpanContext::new(
            OtelTraceId::from_bytes(parent.trace_id.0),
            SpanId::from_bytes(parent.span_id),
            if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() },
            true,
            TraceState::default(),
        );
        // Without an exporter there is no layer to take a parent, and the caller's trace id is used as it is.
        let _ = span.set_parent(opentelemetry::Context::new().with_remote_span_context(context));
    }
    let exported = span.context().span().span_context().clone();
    let trace = if exported.is_valid() {
        Trace {
            trace_id: TraceId(exported.trace_id().to_bytes()),
            span_id: exported.span_id().to_bytes(),
            sampled: exported.is_sampled(),
        }
    } else {
        Trace {
            trace_id: parent.map_or_else(|| TraceId(rand::random()), |parent| parent.trace_id),
            span_id: rand::random(),
            sampled: parent.is_some_and(|parent| parent.sampled),
        }
    };
    (span, trace)
}

/// Source: W3C Trace Context, section 3.2.2: `version-trace-parent-flags`, lower-case hex, ids not all zero.
fn parse_traceparent(text: &str) -> Option<Trace> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let lower = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let well_formed = lower(version, 2) && lower(trace, 32) && lower(span, 16) && lower(flags, 2);
    // Version ff is forbidden, and version 00 has exactly four parts; later ones may have more.
    if !well_formed || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
    hex::decode_to_slice(trace, &mut trace_id).ok()?;
    hex::decode_to_slice(span, &mut span_id).ok()?;
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (trace_id != [0; 16] && span_id != [0; 8]).then_some(Trace {
        trace_id: TraceId(trace_id),
        span_id,
        sampled: flags & 1 == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_taken_only_if_well_formed() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(parse_traceparent(good).expect("it is well-formed").to_string(), good);
        assert!(parse_traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more").is_some());
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        ] {
            assert_eq!(parse_traceparent(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_request_id_is_echoed_only_if_plain() {
        let id = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, HeaderValue::from_str(text).expect("a header value"));
            request_id(&headers).to_string()
        };
        assert_eq!(id("job-17.2_a"), "job-17.2_a");
        for bad in ["", "a b", "a\"b", "bst_SECRET", "ghp_0123456789abcdefABCD", &"x".repeat(65)] {
            let made = id(bad);
            assert!(made.starts_with("req_") && made.len() == 36, "{bad:?} gave {made}");
        }
    }
}
