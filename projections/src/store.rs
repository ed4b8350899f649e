//! The database of the views: one writer, a few readers, and who is told how far it is.

use std::{
    collections::BTreeMap,
    fs::{OpenOptions, remove_file},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use eventlog::Position;
use sqlx::{
    Column as _, ConnectOptions as _, Connection as _, Pool, QueryBuilder, Row as _, SqliteConnection,
    TypeInfo as _, ValueRef as _,
    migrate::{MigrateError, Migrator},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::watch;

use crate::{
    checkpoint, projection,
    projector::Progress,
    table::{Db, SqlRow},
    views::Views,
};

/// One head of migrations for every database that the views may lie in.
static MIGRATIONS: Migrator = sqlx::migrate!("src/migrations");

/// Connections that read at once; more queries wait.
const READERS_MAX: u32 = 4;
/// How long a query waits for a connection, or a statement for another program's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Page cache of the writer. The default of 2 MB slows a rebuild down once the indexes have outgrown it.
const WRITER_CACHE_KIB: u32 = 8 * 1024;

/// Why the views could not be opened. They are disposable: [`Store::remove`] and a rebuild bring them back.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file could not be made or removed.
    #[error("the file of the views could not be made or removed")]
    File(#[source] io::Error),
    /// It is no database, or a damaged one, or cannot be read.
    #[error("the views could not be read or written")]
    Database(#[from] sqlx::Error),
    /// Its tables are those of another version of this program.
    #[error("the tables of the views do not fit this program")]
    Migration(#[from] MigrateError),
}

impl StoreError {
    /// Whether making the views anew would help: true for what is wrong with their content.
    #[must_use]
    pub fn is_cured_by_rebuild(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Migration(_) => true,
            // SQLITE_CORRUPT and SQLITE_NOTADB; sqlite.org/rescode.html.
            Self::Database(error) => error
                .as_database_error()
                .and_then(sqlx::error::DatabaseError::code)
                .is_some_and(|code| matches!(code.as_ref(), "11" | "26")),
        }
    }
}

/// The rows of every view as text, by table, in the order of their keys: what two equal builds have in common.
pub type Dump = BTreeMap<&'static str, Vec<String>>;

/// The database of the views. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    writer: Pool<Db>,
    readers: Pool<Db>,
    progress: Arc<watch::Sender<Progress>>,
    wanted: Arc<watch::Sender<Position>>,
    reached: Position,
}

impl Store {
    /// Opens the views in the file `path` (made if it is not there, 0600) and brings their tables up to date.
    ///
    /// # Errors
    /// [`StoreError`]; see [`StoreError::is_cured_by_rebuild`].
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
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
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS_MAX)
            .test_before_acquire(false)
            .acquire_timeout(BUSY_TIMEOUT)
            .connect_with(options.read_only(true))
            .await?;
        let mut connection = writer.acquire().await?;
        let checkpoint = checkpoint::lowest(&mut connection).await?;
        let reached = checkpoint::highest(&mut connection).await?;
        drop(connection);
        let (progress, _) = watch::channel(Progress::at(checkpoint));
        let (wanted, _) = watch::channel(Position::ZERO);
        Ok(Self { writer, readers, progress: Arc::new(progress), wanted: Arc::new(wanted), reached })
    }

    /// How far any view in the file `path` has come, without changing it; `None` if there are no views.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn reached_in(path: &Path) -> Result<Option<Position>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY_TIMEOUT);
        let mut connection = options.connect().await?;
        let reached = checkpoint::highest(&mut connection).await;
        connection.close().await?;
        Ok(Some(reached?))
    }

    /// The position that some view had absorbed when this was opened: the log was acknowledged at least so far.
    #[must_use]
    pub const fn reached(&self) -> Position {
        self.reached
    }

    /// Removes the views in the file `path`, which must not be open.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn remove(path: &Path) -> Result<(), StoreError> {
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

    /// What reads the views.
    #[must_use]
    pub fn views(&self) -> Views {
        Views::new(self.readers.clone(), self.progress.subscribe(), Arc::clone(&self.wanted))
    }

    /// How far the views are, and a notice of each change.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Empties every view and puts every checkpoint to 0, in one transaction. No projector may be running.
    ///
    /// # Errors
    /// [`StoreError::Database`]: nothing was emptied.
    pub async fn reset(&self) -> Result<(), StoreError> {
        let mut transaction = self.writer.begin().await?;
        for projection in projection::all() {
            checkpoint::reset(projection.as_ref(), &mut transaction).await?;
        }
        transaction.commit().await?;
        self.progress.send_replace(Progress::at(Position::ZERO));
        Ok(())
    }

    /// Every row of every view, as text: equal for two builds from the same events.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn dump(&self) -> Result<Dump, StoreError> {
        let mut transaction = self.readers.begin().await?;
        let mut dump = Dump::new();
        for table in projection::all().iter().flat_map(|projection| projection.tables()) {
            dump.insert(table, dump_table(table, &mut transaction).await?);
        }
        Ok(dump)
    }

    /// Closes every connection, once its statement has ended.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    pub(crate) const fn writer(&self) -> &Pool<Db> {
        &self.writer
    }

    /// The highest position that a reader waits for, or has waited for.
    pub(crate) fn wanted(&self) -> watch::Receiver<Position> {
        self.wanted.subscribe()
    }

    pub(crate) fn publish(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }
}

/// Whether a connection may be used again. A full disk makes SQLite take a transaction back by itself; the pool's own
/// ROLLBACK then fails, and its count of nested transactions stays too high: what comes next would be a savepoint in a
/// transaction that nobody ever commits.
async fn is_at_rest(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    // A transaction that was dropped is rolled back on the connection's own thread; this waits for it.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

async fn dump_table(
    table: &'static str,
    connection: &mut SqliteConnection,
) -> Result<Vec<String>, sqlx::Error> {
    let mut select = QueryBuilder::<Db>::new("SELECT * FROM ");
    let rows = select.push(table).push(" ORDER BY 1").build().fetch_all(connection).await?;
    rows.iter().map(dump_row).collect()
}

fn dump_row(row: &SqlRow) -> Result<String, sqlx::Error> {
    let mut fields = serde_json::Map::new();
    for column in row.columns() {
        let value = row.try_get_raw(column.ordinal())?;
        let value = if value.is_null() {
            serde_json::Value::Null
        } else if value.type_info().name() == "INTEGER" {
            row.try_get::<i64, _>(column.ordinal())?.into()
        } else {
            row.try_get::<String, _>(column.ordinal())?.into()
        };
        fields.insert(column.name().to_owned(), value);
    }
    Ok(serde_json::Value::Object(fields).to_string())
}
