//! Views in a schema of PostgreSQL that is ours alone: made where it is missing, dropped to be made anew.

use std::str::FromStr as _;

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use url::Url;

use super::{BUSY_TIMEOUT, Connections, Database, MIGRATIONS, READERS_MAX};
use crate::store::StoreError;

/// The schema's name is checked where it is read, so that it can stand in a statement.
fn options(url: &Url, schema: &str) -> Result<PgConnectOptions, StoreError> {
    let options = PgConnectOptions::from_str(url.as_str())?
        .application_name("browserspace")
        .options([("search_path", schema)]);
    Ok(options)
}

pub(super) async fn open(url: &Url, schema: &str) -> Result<Database, StoreError> {
    let options = options(url, schema)?;
    let mut connection = options.clone().connect().await?;
    let is_there = exists(&mut connection, schema).await?;
    if !is_there {
        // Only where it is missing: who may not make schemas can be given one.
        connection.execute(AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS {schema}"))).await?;
    }
    connection.close().await?;
    let writer = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(BUSY_TIMEOUT)
        // A power cut may take the last batches, with their checkpoint: they are folded again.
        .connect_with(options.clone().options([("synchronous_commit", "off")]))
        .await?;
    MIGRATIONS.run(&writer).await?;
    let readers = readers(READERS_MAX, options).await?;
    Ok(Database { writer: Connections::Postgres(writer), readers })
}

pub(super) async fn open_existing(url: &Url, schema: &str) -> Result<Option<Connections>, StoreError> {
    let options = options(url, schema)?;
    let mut connection = options.clone().connect().await?;
    let is_there = exists(&mut connection, schema).await?;
    connection.close().await?;
    if !is_there {
        return Ok(None);
    }
    readers(1, options).await.map(Some)
}

async fn exists(connection: &mut PgConnection, schema: &str) -> Result<bool, sqlx::Error> {
    let found = sqlx::query("SELECT 1 FROM pg_namespace WHERE nspname = $1").bind(schema);
    Ok(found.fetch_optional(connection).await?.is_some())
}

async fn readers(count: u32, options: PgConnectOptions) -> Result<Connections, StoreError> {
    let options = options.options([("default_transaction_read_only", "on")]);
    let pool = PgPoolOptions::new().max_connections(count).acquire_timeout(BUSY_TIMEOUT);
    Ok(Connections::Postgres(pool.connect_with(options).await?))
}

pub(super) async fn remove(url: &Url, schema: &str) -> Result<(), StoreError> {
    let mut connection = options(url, schema)?.connect().await?;
    connection.execute(AssertSqlSafe(format!("DROP SCHEMA IF EXISTS {schema} CASCADE"))).await?;
    Ok(connection.close().await?)
}
