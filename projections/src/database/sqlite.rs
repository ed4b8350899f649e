//! Views in a file of SQLite: nobody else's, 0600.

use std::{
    fs::{OpenOptions, remove_file},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use sqlx::{
    Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{BUSY_TIMEOUT, Connections, Database, MIGRATIONS, READERS_MAX};
use crate::store::StoreError;

/// Page cache of the writer. The default of 2 MB slows a rebuild down once the indexes have outgrown it.
const WRITER_CACHE_KIB: u32 = 8 * 1024;

pub(super) async fn open(path: &Path) -> Result<Database, StoreError> {
    // The database would make it readable for all; its side files take over the mode of this one.
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(StoreError::File)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        // A power cut may take the last batches, with their checkpoint: they are folded again.
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(BUSY_TIMEOUT);
    let writer = SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .after_release(|connection, _| Box::pin(is_at_rest(connection)))
        .acquire_timeout(BUSY_TIMEOUT)
        .connect_with(options.clone().pragma("cache_size", format!("-{WRITER_CACHE_KIB}")))
        .await?;
    MIGRATIONS.run(&writer).await?;
    let readers = readers(READERS_MAX, options).await?;
    Ok(Database { writer: Connections::Sqlite(writer), readers })
}

pub(super) async fn open_existing(path: &Path) -> Result<Option<Connections>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT);
    readers(1, options).await.map(Some)
}

async fn readers(count: u32, options: SqliteConnectOptions) -> Result<Connections, StoreError> {
    let pool = SqlitePoolOptions::new()
        .max_connections(count)
        .test_before_acquire(false)
        .acquire_timeout(BUSY_TIMEOUT)
        .connect_with(options.read_only(true))
        .await?;
    Ok(Connections::Sqlite(pool))
}

pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        match remove_file(PathBuf::from(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(StoreError::File(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a connection may be used again. A full disk makes SQLite take a transaction back by itself; the pool's own
/// ROLLBACK then fails, and its count of nested transactions stays too high: what comes next would be a savepoint in a
/// transaction that nobody ever commits.
async fn is_at_rest(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    // A transaction that was dropped is rolled back on the connection's own thread; this waits for it.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}
