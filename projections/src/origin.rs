//! Which log the views are of, so that none are ever folded from two: a schema of PostgreSQL may be named by the settings
//! of two data folders, and a file may be copied into another one.
//!
//! A log is known by the hash of its first event, which holds the moment and the random ids of its first start. A copy, a
//! backup or an exact import of a log has the same, and is the same log to the views.

use eventlog::{EventLog, Hash, Position};
use futures::StreamExt;

use crate::{database::Transaction, statement::Statement, table::read};

/// The views are of another log than the one that they were to follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the views are of a log whose first event has the hash {of_views}, and that of this log has {of_log}"
)]
pub struct AnotherLog {
    /// Of the log that was folded.
    pub of_views: String,
    /// Of the log that was to be followed.
    pub of_log: String,
}

/// The hash of the first event; `None` of an empty log, and where the first event is damaged, which its reader tells.
pub(crate) async fn of(log: &dyn EventLog) -> Option<Hash> {
    if *log.durable_head().borrow() == Position::ZERO {
        return None;
    }
    let first = log.read_all(Position(1)).next().await?.ok()?;
    (first.position == Position(1)).then_some(first.hash)
}

/// Holds the log against the one that the views are of; views of none become views of this one.
pub(crate) async fn hold(
    log: Hash,
    transaction: &mut Transaction,
) -> Result<Result<(), AnotherLog>, sqlx::Error> {
    let of_log = log.to_string();
    let found = transaction.fetch_all(&Statement::new("SELECT first_event FROM log_identity")).await?;
    let Some(row) = found.first() else {
        // Two at once can not both: the second one's statement is refused.
        let mut insert = Statement::new("INSERT INTO log_identity (one, first_event) VALUES (1, ");
        insert.bind(of_log).push(")");
        transaction.execute(&insert).await?;
        return Ok(Ok(()));
    };
    let of_views: String = read(row, "first_event")?;
    Ok(if of_views == of_log { Ok(()) } else { Err(AnotherLog { of_views, of_log }) })
}

/// The views are of no log any more.
pub(crate) async fn forget(transaction: &mut Transaction) -> Result<(), sqlx::Error> {
    transaction.execute(&Statement::new("DELETE FROM log_identity")).await.map(drop)
}
