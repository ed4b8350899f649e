//! The events of a Space: a page, or replay and then live.
//!
//! Who may read them is taken from the Space's first event and not from a view, so that events stay readable while the
//! views are rebuilt.

use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use eventlog::{Event, Sequence, SpaceEvent, StreamId, id::SpaceId};
use futures::StreamExt as _;

use super::{
    App,
    answer::Page,
    asked::{Entered, Id},
    body::{Params, whole_text},
    reads,
    stream::{self, Next},
    wire::event::EventBody,
};
use crate::problem::{Code, Problem};

/// Events of a page at most (S11).
pub(crate) const EVENTS_MAX: u64 = 100;

/// `GET …/events`
pub(crate) async fn of_space(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    entered.exchange.span.record("space.id", tracing::field::display(space));
    must_read(&app, &entered, space).await?;
    app.spaces.touch(&entered.caller, space);
    let mut params = Params::new(query.as_deref());
    let limit = params.optional("limit", whole_text(1..=EVENTS_MAX))?.unwrap_or(EVENTS_MAX);
    let after = cursor(params.take("after_sequence")?.as_deref())?;
    params.finish()?;
    reads::recorded(&app, &headers).await?;
    if stream::is_wanted(&headers) {
        let after = stream::last_event_id(&headers)?.unwrap_or(after);
        replay(&app, &entered, space, Sequence(after)).await
    } else {
        page(&app, space, Sequence(after), limit).await.map(IntoResponse::into_response)
    }
}

/// Refuses who may not read the Space; one of another Workspace is one that does not exist.
async fn must_read(app: &App, entered: &Entered, space: SpaceId) -> Result<(), Problem> {
    let first = app.log.read_stream(&StreamId::Space(space), Sequence(1)).next().await.transpose()?;
    match first.map(|recorded| recorded.event) {
        Some(Event::Space(SpaceEvent::Opened { workspace, owner, .. })) if workspace == entered.workspace => {
            if entered.caller.may_read(&workspace, &owner) {
                Ok(())
            } else {
                Err(Problem::new(Code::Forbidden))
            }
        }
        _ => Err(Problem::new(Code::SpaceNotFound)),
    }
}

/// A place to go on from: digits, no more than 64 bits.
pub(crate) fn cursor(text: Option<&str>) -> Result<u64, Problem> {
    let number = text.map_or(Ok(0), whole_text(0..=u64::MAX));
    number.map_err(|_| Problem::new(Code::InvalidCursor))
}

/// A cursor beyond the end is of another stream, or of another server.
fn within(after: u64, head: u64) -> Result<(), Problem> {
    if after <= head { Ok(()) } else { Err(Problem::new(Code::InvalidCursor).detail("head", head)) }
}

async fn page(app: &App, space: SpaceId, after: Sequence, limit: u64) -> Result<Page<EventBody>, Problem> {
    let id = StreamId::Space(space);
    let head = app.log.stream_head(&id).await?;
    within(after.0, head.0)?;
    let mut events = app.log.read_stream(&id, after.next());
    let mut data = Vec::new();
    while (data.len() as u64) < limit {
        let Some(recorded) = events.next().await.transpose()? else { break };
        data.push(EventBody::of_stream(&recorded));
    }
    let last = data.last().map_or(after.0, |event| event.sequence);
    Ok(Page { data, next: (last < head.0).then(|| last.to_string()) })
}

async fn replay(app: &App, entered: &Entered, space: SpaceId, after: Sequence) -> Result<Response, Problem> {
    let id = StreamId::Space(space);
    let head = app.log.stream_head(&id).await?;
    within(after.0, head.0)?;
    if after == head && is_closed(app, &id, head).await? {
        // 204 tells a browser's EventSource that there is nothing to come back for.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let events = app.log.follow_stream(&id, after.next());
    let response = stream::serve(app, &entered.asked, events, after.0, |recorded| {
        let body = EventBody::of_stream(recorded);
        let is_last = matches!(recorded.event, Event::Space(SpaceEvent::Closed { .. }));
        let (id, body) = (body.sequence, Some(body));
        if is_last { Next::Last(id, body) } else { Next::More(id, body) }
    })?;
    Ok(response)
}

async fn is_closed(app: &App, id: &StreamId, head: Sequence) -> Result<bool, Problem> {
    let last = app.log.read_stream(id, head).next().await.transpose()?;
    Ok(last.is_some_and(|recorded| matches!(recorded.event, Event::Space(SpaceEvent::Closed { .. }))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_digits_and_within_the_stream_or_refused() {
        assert_eq!(cursor(None), Ok(0));
        assert_eq!(cursor(Some("17")), Ok(17));
        for bad in ["-1", "+1", "1.0", "x", " 1", "18446744073709551616", "1e3"] {
            assert_eq!(cursor(Some(bad)).expect_err(bad).code(), Code::InvalidCursor);
        }
        assert!(within(3, 3).is_ok());
        assert_eq!(within(4, 3).expect_err("beyond").code(), Code::InvalidCursor);
    }
}
