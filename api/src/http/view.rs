//! The live view of a Space: its browser's newest picture, as parts of one answer that ends with the Space.
//!
//! A part is written when the reader has taken the one before: who is slow misses pictures and never falls behind. On a
//! page at rest the last picture comes again at each heartbeat, so that an answer is never silent for long.

use std::{convert::Infallible, time::Duration};

use actors::runtime::ScreencastFrame;
use axum::{
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use eventlog::id::SpaceId;
use futures::{StreamExt as _, stream::BoxStream};
use projections::SpaceStatus;
use tokio::{sync::mpsc, time};
use tokio_stream::wrappers::ReceiverStream;
use tracing::Instrument as _;

use super::{
    App,
    asked::{Asked, Entered, Id},
    body::Params,
    spaces::readable,
    stream::{self, End},
};
use crate::problem::{Code, Problem};

/// What stands between parts. Source: RFC 2046, section 5.1.1; no JPEG is searched for it, parts give their length.
const BOUNDARY: &str = "frame";
/// The type of the answer: each part takes the place of the one before it.
pub(crate) const MEDIA_TYPE: &str = "multipart/x-mixed-replace; boundary=frame";

/// `GET …/view`
pub(crate) async fn of_space(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let row = readable(&app, &entered, space, &headers).await?;
    Params::new(query.as_deref()).finish()?;
    if row.status == SpaceStatus::Closed {
        return Err(Problem::new(Code::SpaceClosed));
    }
    let open = app.limits.open_stream(entered.asked.token_id)?;
    let frames = app.spaces.screencast(space)?;
    let (queue, parts) = mpsc::channel(1);
    let mut pump = Pump { app: app.clone(), asked: entered.asked.clone(), queue };
    let span = entered.exchange.span.clone();
    tokio::spawn(
        async move {
            let end = pump.run(frames).await;
            // The reader's last word, where it still listens; there is room for it or it is slow.
            let _ = pump.queue.try_send(Bytes::from(format!("--{BOUNDARY}--\r\n")));
            drop((pump, open));
            metrics::counter!("browserspace_http_streams_ended_total", "reason" => end.as_str()).increment(1);
            tracing::debug!(reason = end.as_str(), "Live view ended.");
        }
        .instrument(span),
    );
    let body = Body::from_stream(ReceiverStream::new(parts).map(Ok::<_, Infallible>));
    let mut response = body.into_response();
    let own = [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        // Proxies in front must not collect what should be live.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in own {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// One picture with its head.
fn part(frame: &ScreencastFrame) -> Bytes {
    let head = format!(
        "--{BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\nX-Tab: {}\r\n\r\n",
        frame.jpeg.len(),
        frame.tab
    );
    [head.as_bytes(), &frame.jpeg, b"\r\n"].concat().into()
}

/// Takes the newest picture and hands it to the reader.
struct Pump {
    app: App,
    asked: Asked,
    queue: mpsc::Sender<Bytes>,
}

impl Pump {
    async fn run(&mut self, mut frames: BoxStream<'static, ScreencastFrame>) -> End {
        let period = Duration::from_secs(self.app.config.heartbeat_seconds);
        let stall = Duration::from_secs(self.app.config.stream_stall_seconds);
        let mut check = time::interval(period);
        check.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let mut revoked = self.app.spaces.token_revocations();
        let stopping = self.app.stopping.clone();
        let mut last: Option<Bytes> = None;
        loop {
            let next = tokio::select! {
                biased;
                () = stopping.cancelled() => return End::ServerStopping,
                () = self.queue.closed() => return End::ReaderGone,
                () = stream::doubt(&mut check, &mut revoked) => {
                    if !stream::is_good(&self.app, &self.asked) { return End::TokenEnded }
                    last.take()
                }
                frame = frames.next() => match frame {
                    Some(frame) => Some(part(&frame)),
                    None => return End::Complete,
                },
            };
            let Some(next) = next else { continue };
            if !stream::is_good(&self.app, &self.asked) {
                return End::TokenEnded;
            }
            // Room first, and then nothing is kept that is no longer the newest.
            match time::timeout(stall, self.queue.reserve()).await {
                Ok(Ok(place)) => place.send(next.clone()),
                Ok(Err(_)) => return End::ReaderGone,
                Err(_) => return End::SlowReader,
            }
            last = Some(next);
        }
    }
}
