//! What the views say, as bodies; and the waits that make an answer know what its caller knows.
//!
//! A read waits until the views have what was durable when it came, and what its `x-min-position` names: so a client
//! sees its own writes. Beyond `view_wait_ms` it is refused, never answered with something older.

use std::time::Duration;

use axum::http::HeaderMap;
use eventlog::{Position, event::space::Owner};
use projections::{Condition, SpaceRow, ViewError, WaitError};

use super::{
    App,
    answer::Page,
    body::{Params, whole_text},
    exchange::{Exchange, X_MIN_POSITION},
    wire,
};
use crate::problem::{Code, Problem};

/// Entries of a page where `limit` is not given.
const PAGE_DEFAULT: u64 = 20;
/// Entries of a page at most.
const PAGE_MAX: u64 = 100;
/// How often a Space is read again because its active task had ended in between.
const SPACE_READS_MAX: usize = 3;

/// Waits until the views know what this read must know.
pub(crate) async fn caught_up(app: &App, exchange: &Exchange, headers: &HeaderMap) -> Result<(), Problem> {
    let least = min_position(headers)?.unwrap_or_default();
    absorbed(app, exchange.head.max(least)).await
}

/// Waits until the views have this position.
pub(crate) async fn absorbed(app: &App, position: Position) -> Result<(), Problem> {
    app.views.wait_for(position, wait(app)).await.map_err(|error| match error {
        WaitError::Behind { .. } => behind("the views have not come that far yet", position),
        WaitError::Stopped { .. } => stopped(),
    })?;
    Ok(())
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
            ViewError::InvalidCursor(_) => {
                Self::invalid_cursor("cursor", "must be the `next` of a page of this same list")
            }
            ViewError::Database(error) => {
                tracing::error!(error = %error, "The views could not be read.");
                Self::new(Code::Overloaded).saying("the views could not be read")
            }
        }
    }
}

/// Events that the views are behind the log, where they still move.
pub(crate) fn lag(app: &App) -> Result<u64, Problem> {
    let lag = app.views.lag(*app.log.durable_head().borrow());
    match app.views.progress().condition {
        Condition::Stopped { .. } => Err(stopped()),
        Condition::Idle | Condition::Running => Ok(lag),
        // Whoever reads would wait in vain for what the views lack.
        Condition::Retrying { .. } if lag > 0 => Err(Problem::new(Code::Overloaded)
            .saying("the views can not be written at the moment")
            .detail("view_lag_events", lag)),
        Condition::Retrying { .. } => Ok(lag),
    }
}

fn stopped() -> Problem {
    Problem::new(Code::Overloaded).saying("the views have stopped; an operator must look")
}

/// A Space's body, with its active task.
///
/// The two rows are read one after the other, so the task may have ended in between; then the Space is read again.
pub(crate) async fn space_body(app: &App, mut row: SpaceRow) -> Result<wire::Space, Problem> {
    for _ in 0..SPACE_READS_MAX {
        let Some(active) = row.active_task else { break };
        match app.views.task(active).await? {
            Some(task) if !task.status.is_terminal() => return Ok(wire::Space::new(&row, Some(&task))),
            Some(_) | None => {}
        }
        let Some(now) = app.views.space(row.space_id).await? else { break };
        row = now;
    }
    Ok(wire::Space::new(&row, None))
}

/// Whose a Space is.
pub(crate) fn owner(row: &SpaceRow) -> Owner {
    Owner { kind: row.owner_type, id: row.owner_id.clone() }
}

/// Which page of a list is asked for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) cursor: Option<String>,
    pub(crate) limit: usize,
}

impl Wanted {
    /// `limit` and `cursor`, for lists that have no other parameter.
    pub(crate) fn only(query: Option<&str>) -> Result<Self, Problem> {
        let mut params = Params::new(query);
        let wanted = Self::of(&mut params)?;
        params.finish().map(|()| wanted)
    }

    /// `limit` and `cursor`, out of these parameters.
    pub(crate) fn of(params: &mut Params) -> Result<Self, Problem> {
        let limit = params.optional("limit", whole_text(1..=PAGE_MAX))?.unwrap_or(PAGE_DEFAULT);
        let limit = usize::try_from(limit).expect("the range was checked");
        Ok(Self { cursor: params.take("cursor")?, limit })
    }

    /// What the views are asked for.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}

impl<T, R> From<projections::Page<R>> for Page<T>
where
    T: for<'row> From<&'row R>,
{
    fn from(page: projections::Page<R>) -> Self {
        Self { data: page.items.iter().map(T::from).collect(), next: page.next }
    }
}
