//! The last position that a projection has absorbed, saved in the transaction that absorbed it.

use eventlog::Position;

use crate::{
    database::Transaction,
    projection::Projection,
    statement::Statement,
    table::{Column, read},
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
    transaction: &mut Transaction,
) -> Result<Position, sqlx::Error> {
    let mut select = Statement::new("SELECT version, pos FROM projection_checkpoint WHERE name = ");
    select.bind(projection.name());
    let found = transaction.fetch_all(&select).await?;
    if let Some(row) = found.first()
        && read::<u64>(row, "version")? == projection.version()
    {
        return read(row, "pos");
    }
    reset(projection, transaction).await?;
    Ok(Position::ZERO)
}

/// Empties the projection's tables and puts its checkpoint to 0.
pub(crate) async fn reset(
    projection: &dyn Projection,
    transaction: &mut Transaction,
) -> Result<(), sqlx::Error> {
    for table in projection.tables() {
        transaction.execute(&Statement::new(format!("DELETE FROM {table}"))).await?;
    }
    let mut insert = Statement::new("INSERT INTO projection_checkpoint (name, version, pos) VALUES ");
    insert.push_rows([vec![projection.name().into(), projection.version().cell(), 0_i64.into()]]);
    insert.push(" ON CONFLICT (name) DO UPDATE SET version = excluded.version, pos = excluded.pos");
    transaction.execute(&insert).await?;
    Ok(())
}

/// Moves the checkpoint from where it was left. The condition is what makes a second projector fail and not fold twice.
pub(crate) async fn advance(
    name: &'static str,
    from: Position,
    to: Position,
    transaction: &mut Transaction,
) -> Result<Result<(), Moved>, sqlx::Error> {
    let mut update = Statement::new("UPDATE projection_checkpoint SET pos = ");
    update.bind(to.cell()).push(" WHERE name = ").bind(name).push(" AND pos = ").bind(from.cell());
    let moved = transaction.execute(&update).await?;
    Ok(if moved == 1 { Ok(()) } else { Err(Moved { name, expected: from }) })
}

/// The position up to which every projection has come.
pub(crate) async fn lowest(transaction: &mut Transaction) -> Result<Position, sqlx::Error> {
    one_of_all("SELECT MIN(pos) AS pos FROM projection_checkpoint", transaction).await
}

/// The position up to which any projection has come.
pub(crate) async fn highest(transaction: &mut Transaction) -> Result<Position, sqlx::Error> {
    one_of_all("SELECT MAX(pos) AS pos FROM projection_checkpoint", transaction).await
}

async fn one_of_all(select: &str, transaction: &mut Transaction) -> Result<Position, sqlx::Error> {
    let rows = transaction.fetch_all(&Statement::new(select)).await?;
    let position = rows.first().map(|row| read::<Option<Position>>(row, "pos")).transpose()?;
    Ok(position.flatten().unwrap_or_default())
}
