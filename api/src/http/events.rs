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
    let after = After::of_query(&mut params, "after_sequence")?;
    params.finish()?;
    reads::recorded(&app, &headers).await?;
    if stream::is_wanted(&headers) {
        replay(&app, &entered, space, stream::last_event_id(&headers)?.unwrap_or(after)).await
    } else {
        page(&app, space, after, limit).await.map(IntoResponse::into_response)
    }
}

/// Refuses who may not read the Space; one of another Workspace is one that does not exist.
async fn must_read(app: &App, entered: &Entered, space: SpaceId) -> Result<(), Problem> {
    let first = app.log.read_stream(&StreamId::Space(space), Sequence(1)).next().await.transpose()?;
    match first.map(|recorded| recorded.event) {
        Some(Event::Space(SpaceEvent::Opened { workspace, owner, .. })) if workspace == entered.workspace => {
            Ok(entered.caller.may_read(&workspace, &owner)?)
        }
        _ => Err(Problem::new(Code::SpaceNotFound)),
    }
}

/// A place to go on from, and which parameter or header named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct After {
    pub(crate) place: u64,
    field: &'static str,
}

impl After {
    /// Digits, no more than 64 bits.
    pub(crate) fn read(field: &'static str, text: &str) -> Result<Self, Problem> {
        let place = whole_text(0..=u64::MAX)(text);
        let place = place.map_err(|_| {
            Problem::invalid_cursor(
                field,
                "must be a whole number: the place of the last event that you have",
            )
        })?;
        Ok(Self { place, field })
    }

    /// The parameter of this name; the start where it is left out.
    pub(crate) fn of_query(params: &mut Params, field: &'static str) -> Result<Self, Problem> {
        let text = params.take(field)?;
        text.map_or(Ok(Self { place: 0, field }), |text| Self::read(field, &text))
    }

    /// A cursor beyond the end is of another stream, or of another server.
    pub(crate) fn within(self, head: u64) -> Result<(), Problem> {
        if self.place <= head {
            return Ok(());
        }
        Err(Problem::invalid_cursor(self.field, format!("is beyond the end, which is {head}"))
            .detail("head", head))
    }
}

async fn page(app: &App, space: SpaceId, after: After, limit: u64) -> Result<Page<EventBody>, Problem> {
    let id = StreamId::Space(space);
    let head = app.log.stream_head(&id).await?;
    after.within(head.0)?;
    let after = Sequence(after.place);
    let mut events = app.log.read_stream(&id, after.next());
    let mut data = Vec::new();
    while (data.len() as u64) < limit {
        let Some(recorded) = events.next().await.transpose()? else { break };
        data.push(EventBody::of_stream(&recorded));
    }
    let last = data.last().map_or(after.0, |event| event.sequence);
    Ok(Page { data, next: (last < head.0).then(|| last.to_string()) })
}

async fn replay(app: &App, entered: &Entered, space: SpaceId, after: After) -> Result<Response, Problem> {
    let id = StreamId::Space(space);
    let head = app.log.stream_head(&id).await?;
    after.within(head.0)?;
    let after = Sequence(after.place);
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
        let read = |text| After::read("after_sequence", text);
        assert_eq!(read("17").map(|after| after.place), Ok(17));
        for bad in ["-1", "+1", "1.0", "x", " 1", "18446744073709551616", "1e3"] {
            assert_eq!(read(bad).expect_err(bad).code(), Code::InvalidCursor);
        }
        let three = read("3").expect("digits");
        assert!(three.within(3).is_ok());
        assert_eq!(three.within(2).expect_err("beyond").code(), Code::InvalidCursor);
    }
}
