//! About the server itself: is it alive, is it ready, its figures, what it can do, and its drain.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use eventlog::Role;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    App,
    answer::{Answer, Page},
    asked::{Asked, identify, peer},
    body::{RawBody, whole},
    reads, wire,
};
use crate::problem::{Code, Problem};

/// How long a drain waits for running tasks where the caller does not say, in seconds.
const DRAIN_SECONDS_DEFAULT: u64 = 30;
/// Events that the views may be behind a ready server's log.
const READY_LAG_EVENTS_MAX: u64 = 10_000;

/// That the server answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alive {
    /// Always true.
    alive: bool,
}

/// That the server takes work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// Always true.
    ready: bool,
    /// Events that the views have yet to take in.
    view_lag_events: u64,
}

/// That a drain has begun.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Draining {
    /// Always true.
    draining: bool,
    /// Until when running tasks may go on, in seconds from now.
    deadline_seconds: u64,
}

/// `GET /healthz`
pub(crate) async fn healthz() -> Answer<Alive> {
    Answer::ok(Alive { alive: true })
}

/// `GET /readyz`
pub(crate) async fn readyz(State(app): State<App>) -> Result<Answer<Ready>, Problem> {
    if app.spaces.is_draining() || app.stopping.is_cancelled() {
        return Err(Problem::new(Code::ShuttingDown));
    }
    app.log.check_writable().map_err(|_| Problem::new(Code::LogUnavailable))?;
    let view_lag_events = reads::lag(&app)?;
    if view_lag_events > READY_LAG_EVENTS_MAX {
        return Err(Problem::new(Code::Overloaded)
            .saying("the views are behind the log")
            .detail("view_lag_events", view_lag_events));
    }
    Ok(Answer::ok(Ready { ready: true, view_lag_events }))
}

/// `GET /metrics`
pub(crate) async fn metrics(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let is_local = peer(request.extensions()).is_some_and(|peer| peer.ip().to_canonical().is_loopback());
    if !(app.config.metrics_public && is_local) {
        let (caller, _) = identify(&app, request.headers(), request.extensions())?;
        if caller.role() == Some(Role::RuntimeAgent) {
            return Err(Problem::new(Code::Forbidden));
        }
    }
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((content_type, app.metrics.render()).into_response())
}

/// `GET /capabilities`
pub(crate) async fn capabilities(State(app): State<App>, _: Asked) -> Page<wire::Capability> {
    Page::whole(app.spaces.catalogue().rows().iter().map(wire::Capability::from).collect())
}

/// `POST /server/drain`: about every Workspace, so only for who may enter every one.
pub(crate) async fn drain(
    State(app): State<App>,
    asked: Asked,
    body: RawBody,
) -> Result<Answer<Draining>, Problem> {
    asked.must_operate()?;
    asked.must_hold_all()?;
    let mut fields = body.fields_or_none()?;
    let deadline_seconds =
        fields.optional("deadline_seconds", whole(0..=600))?.unwrap_or(DRAIN_SECONDS_DEFAULT);
    fields.finish()?;
    let spaces = app.spaces.clone();
    // Before the answer: whoever has read it is not let in any more.
    spaces.begin_drain();
    // The drain goes on when the caller leaves; its end shows in `/readyz`, in the log, and in the program's own end.
    tokio::spawn(async move { spaces.drain(Duration::from_secs(deadline_seconds)).await });
    Ok(Answer::with(StatusCode::ACCEPTED, Draining { draining: true, deadline_seconds }))
}
