//! The envelope of every answer that is no error: `{"data": …}`, and `{"data": […], "next": cursor | null}` for lists.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use eventlog::Position;
use serde::Serialize;

use super::exchange::AnsweredPosition;

/// One thing.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    status: StatusCode,
    data: T,
    position: Option<Position>,
}

impl<T> Answer<T> {
    /// With 200.
    pub(crate) const fn ok(data: T) -> Self {
        Self::with(StatusCode::OK, data)
    }

    /// With another status.
    pub(crate) const fn with(status: StatusCode, data: T) -> Self {
        Self { status, data, position: None }
    }

    /// Saying which position of the log it rests on.
    pub(crate) const fn at(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }
}

#[derive(Serialize)]
struct One<T> {
    data: T,
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(One { data: self.data })).into_response();
        if let Some(position) = self.position {
            response.extensions_mut().insert(AnsweredPosition(position));
        }
        response
    }
}

/// One page of a list.
#[derive(Debug, Serialize)]
pub(crate) struct Page<T> {
    /// At most so many as asked for.
    pub(crate) data: Vec<T>,
    /// Asks for the rest, where there is one. Opaque.
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    /// A list that has no further page.
    pub(crate) const fn whole(data: Vec<T>) -> Self {
        Self { data, next: None }
    }
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}
