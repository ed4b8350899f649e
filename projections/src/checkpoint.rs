//! The last position that a projection has absorbed, saved in the transaction that absorbed it.

use eventlog::Position;

use crate::{
    projection::Projection,
    table::{Column, Connection, read},
};

/// A checkpoint was not where its projector had left it: another one is at work on the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the checkpoint of {name} is not at {expected} any more")]
pub struct Moved {
    /// Whose checkpoint.
    pub name: &'static str,
    /// Where it was left.
    pub expected: Position,
}

/// Where the projection stands; at 0, with its tables emptied, if it has no checkpoint or one of another version.
pub(crate) async fn load(
    projection: &dyn Projection,
    connection: &mut Connection,
) -> Result<Position, sqlx::Error> {
    let found = sqlx::query("SELECT version, pos FROM projection_checkpoint WHERE name = $1")
        .bind(projection.name())
        .fetch_optional(&mut *connection)
        .await?;
    if let Some(row) = found
        && read::<u64>(&row, "version")? == projection.version()
    {
        return read(&row, "pos");
    }
    reset(projection, connection).await?;
    Ok(Position::ZERO)
}

/// Empties the projection's tables and puts its checkpoint to 0.
pub(crate) async fn reset(
    projection: &dyn Projection,
    connection: &mut Connection,
) -> Result<(), sqlx::Error> {
    for table in projection.tables() {
        sqlx::QueryBuilder::new("DELETE FROM ").push(table).build().execute(&mut *connection).await?;
    }
    sqlx::query(
        "INSERT INTO projection_checkpoint (name, version, pos) VALUES ($1, $2, 0) \
         ON CONFLICT (name) DO UPDATE SET version = excluded.version, pos = excluded.pos",
    )
    .bind(projection.name())
    .bind(i64::try_from(projection.version()).unwrap_or(i64::MAX))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Moves the checkpoint from where it was left. The condition is what makes a second projector fail and not fold twice.
pub(crate) async fn advance(
    name: &'static str,
    from: Position,
    to: Position,
    connection: &mut Connection,
) -> Result<Result<(), Moved>, sqlx::Error> {
    let moved = sqlx::query("UPDATE projection_checkpoint SET pos = $1 WHERE name = $2 AND pos = $3")
        .bind(as_int(to))
        .bind(name)
        .bind(as_int(from))
        .execute(&mut *connection)
        .await?;
    Ok(if moved.rows_affected() == 1 { Ok(()) } else { Err(Moved { name, expected: from }) })
}

/// The position up to which every projection has come.
pub(crate) async fn lowest(connection: &mut Connection) -> Result<Position, sqlx::Error> {
    let row = sqlx::query("SELECT MIN(pos) AS pos FROM projection_checkpoint").fetch_one(connection).await?;
    Ok(read::<Option<Position>>(&row, "pos")?.unwrap_or_default())
}

/// The position up to which any projection has come.
pub(crate) async fn highest(connection: &mut Connection) -> Result<Position, sqlx::Error> {
    let row = sqlx::query("SELECT MAX(pos) AS pos FROM projection_checkpoint").fetch_one(connection).await?;
    Ok(read::<Option<Position>>(&row, "pos")?.unwrap_or_default())
}

fn as_int(position: Position) -> Option<i64> {
    match position.cell() {
        crate::table::Cell::Int(int) => int,
        crate::table::Cell::Text(text) => unreachable!("a position is a number, not {text:?}"),
    }
}
