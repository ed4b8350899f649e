//! The layer inside the outermost one: what is refused before a route is even looked at, and how long a route may take.

use std::time::Duration;

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{
    App,
    body::{Params, not_as_documented},
    prefer,
};
use crate::{
    identity,
    problem::{Code, Problem},
};

/// How much later than a body's own bound a route is cut: "not arrived" comes before "outcome unknown".
const BODY_MARGIN: Duration = Duration::from_secs(1);

/// The routes that take parameters, all of them reads. Each refuses those that it does not know.
const ROUTES_WITH_PARAMETERS: [&str; 10] = [
    "/browser-spaces",
    "/tasks",
    "/events",
    "/artifacts",
    "/downloads",
    "/bindings",
    "/tokens",
    "/audit-trail",
    "/browser-instances",
    "/log",
];

/// Refuses parameters where there are none: whoever sends one believes that it does something.
pub(crate) async fn parameters(request: Request, next: Next) -> Result<Response, Problem> {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let takes_some = is_read && ROUTES_WITH_PARAMETERS.iter().any(|end| route.ends_with(end));
    if !takes_some {
        Params::new(request.uri().query()).finish()?;
    }
    Ok(next.run(request).await)
}

/// Refuses foreign names and pages (C1, C2), tokens in addresses (C4), and headers and addresses beyond their bounds.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Result<Response, Problem> {
    bounds(&app, request.headers(), request.uri())?;
    app.names.check(request.headers(), request.uri())?;
    identity::refuse_token_in_query(request.uri())?;
    Ok(next.run(request).await)
}

fn bounds(app: &App, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > app.config.header_bytes_max {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(not_as_documented(status, "the headers are larger than they may be"));
    }
    if uri.path().len() + uri.query().map_or(0, str::len) > app.config.uri_bytes_max {
        return Err(not_as_documented(StatusCode::URI_TOO_LONG, "the address is longer than it may be"));
    }
    Ok(())
}

/// Ends a route that takes too long. A read that was cut may be repeated; of a command nobody knows whether it was
/// recorded, and the same id settles it.
pub(crate) async fn time_out(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    // A wait that is not well-formed is refused by its route; here it only must not be counted.
    let wait = prefer::wait(request.headers()).ok().flatten().unwrap_or_default();
    // A body has until the request's deadline to arrive, and its route says so itself.
    let limit = Duration::from_secs(app.config.request_timeout_seconds) + wait + BODY_MARGIN;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let code = if is_read { Code::Overloaded } else { Code::OutcomeUnknown };
            Problem::new(code).saying("the server did not answer in time").into_response()
        }
    }
}

/// The answer on a connection beyond those that there may be.
pub(crate) async fn no_place() -> Problem {
    Problem::new(Code::Overloaded).saying("there are as many connections as there may be")
}

/// The answer for addresses that lead nowhere.
pub(crate) async fn no_route() -> Problem {
    Problem::new(Code::RouteNotFound)
}

/// The answer for methods that a route has not; axum adds `Allow`.
pub(crate) async fn no_method() -> Problem {
    Problem::new(Code::MethodNotAllowed)
}
