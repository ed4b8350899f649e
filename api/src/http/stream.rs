//! Server-sent events: replay, then live, with an id to resume after.
//!
//! A task pulls events from the log into a short queue; the answer's body takes them out. A reader that takes nothing
//! for `stream_stall_seconds` is cut: no event is skipped, and the last id it has read is where it goes on
//! (`Last-Event-ID`). The last thing a stream says is an event `end` without an id, with the reason.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    http::{HeaderMap, HeaderName, header},
    response::{
        IntoResponse as _, Response,
        sse::{Event as Frame, KeepAlive, Sse},
    },
};
use eventlog::{RecordedEvent, log::Events};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    sync::{mpsc, watch},
    time,
};
use tokio_stream::wrappers::ReceiverStream;
use tracing::Instrument as _;

use super::{App, asked::Asked, events::After, wire::event::EventBody};
use crate::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Events that wait for a slow reader, at most.
const QUEUE_EVENTS: usize = 64;

/// What a recorded event becomes in a stream: its id, and its body unless it is not for this reader.
pub(crate) enum Next {
    /// Others may follow.
    More(u64, Option<EventBody>),
    /// Nothing can follow.
    Last(u64, Option<EventBody>),
}

/// Why a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing can follow: the Space is closed.
    Complete,
    /// The reader took nothing for too long.
    SlowReader,
    /// The token was revoked or has expired.
    TokenEnded,
    /// The server stops.
    ServerStopping,
    /// The log could not be read on.
    LogUnavailable,
    /// The reader went away.
    ReaderGone,
}

impl End {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::SlowReader => "slow_reader",
            Self::TokenEnded => "token_ended",
            Self::ServerStopping => "server_stopping",
            Self::LogUnavailable => "log_unavailable",
            Self::ReaderGone => "reader_gone",
        }
    }
}

/// Whether the caller asks for a stream.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts.next().is_some_and(|range| range.eq_ignore_ascii_case("text/event-stream"));
            named && !parts.any(is_weight_of_nothing)
        })
    })
}

/// `q=0`, `q=0.0` …: "not acceptable". Source: RFC 9110, section 12.4.2.
fn is_weight_of_nothing(parameter: &str) -> bool {
    let weight = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    weight.is_some_and(|(_, weight)| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0))
}

/// Where a reader was cut. It wins over the address, which a browser repeats as it was at first.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<After>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    if value.is_empty() {
        return Ok(None);
    }
    // What is no text is no number either, and is refused as such.
    After::read("Last-Event-ID", value.to_str().unwrap_or("?")).map(Some)
}

/// Answers with `events`, mapped one by one, as a stream of the caller.
///
/// # Errors
/// `overloaded`: the caller has as many open streams as it may have.
pub(crate) fn serve(
    app: &App,
    asked: &Asked,
    events: Events,
    after: u64,
    next: impl FnMut(&RecordedEvent) -> Next + Send + 'static,
) -> Result<Response, Problem> {
    let open = app.limits.open_stream(asked.token_id)?;
    let (queue, frames) = mpsc::channel(QUEUE_EVENTS);
    let last_words = Arc::new(Mutex::new(None));
    let mut pump = Pump { app: app.clone(), asked: asked.clone(), queue, last_id: after };
    let (words, span) = (Arc::clone(&last_words), asked.exchange.span.clone());
    tokio::spawn(
        async move {
            let end = pump.run(events, next).await;
            let last_id = pump.last_id;
            // Before the queue closes: its end is what lets the body look for the last words.
            *words.lock() = Some(end_frame(end, last_id));
            drop((pump, open));
            metrics::counter!("browserspace_http_streams_ended_total", "reason" => end.as_str()).increment(1);
            tracing::debug!(reason = end.as_str(), last_id, "Event stream ended.");
        }
        .instrument(span),
    );
    let end = stream::once(async move { last_words.lock().take() }).filter_map(|frame| async { frame });
    let body = ReceiverStream::new(frames).chain(end).map(Ok::<_, Infallible>);
    let heartbeat = Duration::from_secs(app.config.heartbeat_seconds);
    let mut response =
        Sse::new(body).keep_alive(KeepAlive::new().interval(heartbeat).text("heartbeat")).into_response();
    // Proxies in front must not collect what should be live.
    let unbuffered = axum::http::HeaderValue::from_static("no");
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), unbuffered);
    Ok(response)
}

fn end_frame(end: End, last_id: u64) -> Frame {
    Frame::default().event("end").data(json!({ "reason": end.as_str(), "last_id": last_id }).to_string())
}

/// Waits until the token may have ended.
pub(crate) async fn doubt(check: &mut time::Interval, revoked: &mut watch::Receiver<u64>) {
    tokio::select! {
        _ = check.tick() => {}
        Ok(()) = revoked.changed() => {}
    }
}

/// Whether the token that asked is still one.
pub(crate) fn is_good(app: &App, asked: &Asked) -> bool {
    app.spaces.authenticate(&asked.token).is_ok()
}

/// Pulls events and pushes frames.
struct Pump {
    app: App,
    asked: Asked,
    queue: mpsc::Sender<Frame>,
    last_id: u64,
}

impl Pump {
    async fn run(&mut self, mut events: Events, mut next: impl FnMut(&RecordedEvent) -> Next) -> End {
        let period = Duration::from_secs(self.app.config.heartbeat_seconds);
        // What expires is found by the clock, what is revoked by its word; also what was revoked a moment ago.
        let mut check = time::interval(period);
        let mut revoked = self.app.spaces.token_revocations();
        check.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let stopping = self.app.stopping.clone();
        loop {
            let recorded = tokio::select! {
                biased;
                () = stopping.cancelled() => break End::ServerStopping,
                () = self.queue.closed() => break End::ReaderGone,
                () = doubt(&mut check, &mut revoked) => {
                    if self.may_go_on() { continue } else { break End::TokenEnded }
                }
                recorded = events.next() => recorded,
            };
            let step = match recorded {
                None => break End::ServerStopping,
                Some(Err(_)) => break End::LogUnavailable,
                Some(Ok(recorded)) => next(&recorded),
            };
            if let Err(end) = self.push(step).await {
                break end;
            }
        }
    }

    async fn push(&mut self, step: Next) -> Result<(), End> {
        let (id, body, is_last) = match step {
            Next::More(id, body) => (id, body, false),
            Next::Last(id, body) => (id, body, true),
        };
        if let Some(body) = body {
            // A token that ended since the last event must not see this one (F11).
            if !self.may_go_on() {
                return Err(End::TokenEnded);
            }
            let data = serde_json::to_string(&body).expect("a body has no map with keys that are no text");
            let frame = Frame::default().id(id.to_string()).data(data);
            let stall = Duration::from_secs(self.app.config.stream_stall_seconds);
            match time::timeout(stall, self.queue.send(frame)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(End::ReaderGone),
                Err(_) => return Err(End::SlowReader),
            }
            self.last_id = id;
        }
        if is_last { Err(End::Complete) } else { Ok(()) }
    }

    fn may_go_on(&self) -> bool {
        is_good(&self.app, &self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a header value"));
        headers
    }

    #[test]
    fn a_stream_is_given_to_who_asks_for_it() {
        assert!(is_wanted(&headers("accept", "text/event-stream")));
        assert!(is_wanted(&headers("accept", "application/json;q=0.5, Text/Event-Stream; q=1")));
        assert!(!is_wanted(&headers("accept", "*/*")));
        assert!(!is_wanted(&HeaderMap::new()));
    }

    #[test]
    fn a_last_event_id_is_a_number_or_refused() {
        let read = last_event_id(&headers("last-event-id", "12"));
        assert_eq!(read.map(|after| after.map(|after| after.place)), Ok(Some(12)));
        assert_eq!(last_event_id(&HeaderMap::new()), Ok(None));
        for bad in ["-1", "spc_x", "1 2"] {
            assert!(last_event_id(&headers("last-event-id", bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_stream_is_wanted_unless_it_is_weighed_with_nothing() {
        let wanted = |accept| is_wanted(&headers("accept", accept));
        for yes in ["text/event-stream", "Text/Event-Stream; q=0.5", "application/json, text/event-stream"] {
            assert!(wanted(yes), "{yes}");
        }
        for no in ["text/event-stream;q=0", "text/event-stream; Q=0.000", "application/json", "*/*"] {
            assert!(!wanted(no), "{no}");
        }
    }
}
