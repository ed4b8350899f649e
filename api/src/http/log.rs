//! The whole log, for operators and auditors: of it, what belongs to the Workspaces that they may enter.

use actors::Scope;
use axum::{
    extract::{RawQuery, State},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use eventlog::{Position, RecordedEvent};
use futures::StreamExt as _;

use super::{
    App,
    answer::Page,
    asked::Asked,
    body::{Params, whole_text},
    events::{After, EVENTS_MAX},
    reads,
    stream::{self, Next},
    wire::event::EventBody,
};
use crate::problem::Problem;

/// Events that one page looks at, at most: those of other Workspaces are passed over, and that must not take for ever.
const SCAN_EVENTS_MAX: u64 = 5_000;

/// `GET /log`
pub(crate) async fn events(
    State(app): State<App>,
    asked: Asked,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    asked.must_oversee()?;
    let mut params = Params::new(query.as_deref());
    let limit = params.optional("limit", whole_text(1..=EVENTS_MAX))?.unwrap_or(EVENTS_MAX);
    let after = After::of_query(&mut params, "after_position")?;
    params.finish()?;
    reads::recorded(&app, &headers).await?;
    let live = stream::is_wanted(&headers);
    let after = if live { stream::last_event_id(&headers)?.unwrap_or(after) } else { after };
    let head = *app.log.durable_head().borrow();
    after.within(head.0)?;
    let after = after.place;
    if !live {
        return page(&app, &asked.caller.scope, Position(after), head, limit)
            .await
            .map(IntoResponse::into_response);
    }
    let scope = asked.caller.scope.clone();
    let events = app.log.follow(Position(after).next());
    stream::serve(&app, &asked, events, after, move |recorded| {
        Next::More(recorded.position.0, is_in(&scope, recorded).then(|| EventBody::of_log(recorded)))
    })
}

/// What belongs to no Workspace belongs to the server, and is for those who may enter every Workspace.
fn is_in(scope: &Scope, recorded: &RecordedEvent) -> bool {
    match (scope, &recorded.metadata.workspace) {
        (Scope::All, _) => true,
        (Scope::Only(own), Some(workspace)) => own.contains(workspace),
        (Scope::Only(_), None) => false,
    }
}

async fn page(
    app: &App,
    scope: &Scope,
    after: Position,
    head: Position,
    limit: u64,
) -> Result<Page<EventBody>, Problem> {
    let mut events = app.log.read_all(after.next());
    let mut data = Vec::new();
    let mut seen = after.0;
    while (data.len() as u64) < limit && seen < after.0.saturating_add(SCAN_EVENTS_MAX) {
        let recorded = match events.next().await {
            Some(Ok(recorded)) => recorded,
            // First what lies before it; the next page begins with it, and its details say where to go on.
            Some(Err(_)) if seen > after.0 => break,
            Some(Err(failure)) => return Err(failure.into()),
            None => break,
        };
        seen = recorded.position.0;
        if is_in(scope, &recorded) {
            data.push(EventBody::of_log(&recorded));
        }
    }
    Ok(Page { data, next: (seen < head.0).then(|| seen.to_string()) })
}
