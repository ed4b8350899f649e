//! What the views say, as bodies; and the waits that make an answer know what its caller knows.
//!
//! A read waits until the views have what was durable when it came, and what its `x-min-position` names: so a client
//! sees its own writes. Beyond `view_wait_ms` it is refused, never answered with something older.

use std::time::Duration;

use axum::http::HeaderMap;
use eventlog::{
    Position, Timestamp,
    event::{
        instance::Bundle,
        space::{ArtifactRecord, Owner},
    },
    id::{InstanceId, SpaceId, TaskId, WorkspaceId},
};
use projections::{ViewError, WaitError};

use super::{
    App,
    answer::Page,
    body::whole_text,
    exchange::{Exchange, X_MIN_POSITION},
    wire::{self, Health, SpaceState, TaskState},
};
use crate::problem::{Code, Problem};

/// A Space as the views have it, with what decides who may see it.
#[derive(Debug)]
pub(crate) struct SpaceRow {
    pub(crate) workspace: WorkspaceId,
    pub(crate) owner: Owner,
    pub(crate) body: wire::Space,
}

/// An instance as the views have it, with what decides who may see it.
#[derive(Debug)]
pub(crate) struct InstanceRow {
    pub(crate) id: InstanceId,
    pub(crate) workspaces: Vec<WorkspaceId>,
    pub(crate) body: wire::Instance,
}

/// Which Spaces a list shows.
#[derive(Debug)]
pub(crate) struct SpaceFilter {
    pub(crate) workspace: WorkspaceId,
    pub(crate) owner: Option<Owner>,
    pub(crate) status: Option<SpaceState>,
    pub(crate) cursor: Option<String>,
    pub(crate) limit: u64,
}

/// Waits until the views know what this read must know.
pub(crate) async fn caught_up(app: &App, exchange: &Exchange, headers: &HeaderMap) -> Result<(), Problem> {
    let least = min_position(headers)?.unwrap_or_default();
    absorbed(app, exchange.head.max(least)).await
}

/// Waits until the views have this position.
pub(crate) async fn absorbed(app: &App, position: Position) -> Result<(), Problem> {
    app.views.wait_for(position, wait(app)).await.map_err(|error| match error {
        WaitError::Late { .. } => behind("the views have not come that far yet", position),
        WaitError::Stopped { .. } => behind("the views have stopped; an operator must look", position),
    })
}

/// Waits until the log itself has what `x-min-position` names, for reads that need no view.
pub(crate) async fn recorded(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(least) = min_position(headers)? else { return Ok(()) };
    let mut head = app.log.durable_head();
    let reached = head.wait_for(|head| *head >= least);
    match tokio::time::timeout(wait(app), reached).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(Problem::new(Code::LogUnavailable)),
        Err(_) => Err(behind("the log has not come that far yet", least)),
    }
}

fn wait(app: &App) -> Duration {
    Duration::from_millis(app.config.view_wait_ms)
}

fn behind(message: &'static str, position: Position) -> Problem {
    Problem::new(Code::Overloaded).saying(message).detail("position", position.0)
}

fn min_position(headers: &HeaderMap) -> Result<Option<Position>, Problem> {
    let Some(value) = headers.get(X_MIN_POSITION) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| whole_text(0..=u64::MAX)(text).ok());
    let number = number.ok_or_else(|| Problem::invalid("x-min-position", "must be a position of the log"))?;
    Ok(Some(Position(number)))
}

impl From<ViewError> for Problem {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::InvalidCursor => Self::new(Code::InvalidCursor),
            ViewError::Store(_) => Self::new(Code::Overloaded).saying("the views could not be read"),
        }
    }
}

/// Events that the views are behind the log, where they still move.
pub(crate) fn lag(app: &App) -> Result<u64, Problem> {
    app.views
        .lag()
        .map_err(|_| Problem::new(Code::Overloaded).saying("the views have stopped; an operator must look"))
}

pub(crate) async fn space(app: &App, space: SpaceId) -> Result<Option<SpaceRow>, Problem> {
    Ok(app.views.space(space).await?.map(space_row))
}

pub(crate) async fn spaces(app: &App, filter: SpaceFilter) -> Result<Page<wire::Space>, Problem> {
    let SpaceFilter { workspace, owner, status, cursor, limit } = filter;
    let page = app.views.spaces(todo).await?;
    Ok(page)
}
