//! The database of the views: one writer, a few readers, and who is told how far it is.

use std::{collections::BTreeMap, io, sync::Arc};

use eventlog::Position;
use sqlx::migrate::MigrateError;
use tokio::sync::watch;

use crate::{
    checkpoint,
    database::{Database, Place, Transaction},
    origin, projection,
    projector::Progress,
    statement::Statement,
    views::Views,
};

/// Why the views could not be opened. They are disposable: [`Store::remove`] and a rebuild bring them back.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file could not be made or removed.
    #[error("the file of the views could not be made or removed")]
    File(#[source] io::Error),
    /// It is no database, or a damaged one, or cannot be read, or does not answer.
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
            // A PostgreSQL that does not answer, or refuses, is not cured by dropping what it holds.
            Self::Migration(MigrateError::Execute(error)) => is_of_content(error) || !is_of_postgres(error),
            Self::Migration(_) => true,
            Self::Database(error) => is_of_content(error),
        }
    }
}

/// `SQLITE_CORRUPT` and `SQLITE_NOTADB` (sqlite.org/rescode.html); no code of PostgreSQL has two digits.
fn is_of_content(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| matches!(code.as_ref(), "11" | "26"))
}

fn is_of_postgres(error: &sqlx::Error) -> bool {
    match error.as_database_error() {
        Some(error) => error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some(),
        None => matches!(error, sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed),
    }
}

/// The rows of every view as text, by table, in the order of their keys: what two equal builds have in common.
pub type Dump = BTreeMap<&'static str, Vec<String>>;

/// The database of the views. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    progress: Arc<watch::Sender<Progress>>,
    wanted: Arc<watch::Sender<Position>>,
    reached: Position,
}

impl Store {
    /// Opens the views (made where they are not there) and brings their tables up to date.
    ///
    /// # Errors
    /// [`StoreError`]; see [`StoreError::is_cured_by_rebuild`].
    pub async fn open(place: &Place) -> Result<Self, StoreError> {
        let database = Database::open(place).await?;
        let mut transaction = database.begin().await?;
        let checkpoint = checkpoint::lowest(&mut transaction).await?;
        let reached = checkpoint::highest(&mut transaction).await?;
        drop(transaction);
        let (progress, _) = watch::channel(Progress::at(checkpoint));
        let (wanted, _) = watch::channel(Position::ZERO);
        Ok(Self { database, progress: Arc::new(progress), wanted: Arc::new(wanted), reached })
    }

    /// How far any view in that place has come, without changing it; `None` if there are no views.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn reached_in(place: &Place) -> Result<Option<Position>, StoreError> {
        let Some(connections) = Database::open_existing(place).await? else { return Ok(None) };
        let mut transaction = connections.begin().await?;
        let reached = checkpoint::highest(&mut transaction).await;
        drop(transaction);
        connections.close().await;
        Ok(Some(reached?))
    }

    /// The position that some view had absorbed when this was opened: the log was acknowledged at least so far.
    #[must_use]
    pub const fn reached(&self) -> Position {
        self.reached
    }

    /// Throws the views in that place away; they must not be open.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove(place: &Place) -> Result<(), StoreError> {
        Database::remove(place).await
    }

    /// What reads the views.
    #[must_use]
    pub fn views(&self) -> Views {
        Views::new(self.database.readers().clone(), self.progress.subscribe(), Arc::clone(&self.wanted))
    }

    /// How far the views are, and a notice of each change.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Empties every view, puts every checkpoint to 0, and lets the views be of any log, in one transaction. No projector may be running.
    ///
    /// # Errors
    /// [`StoreError::Database`]: nothing was emptied.
    pub async fn reset(&self) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for projection in projection::all() {
            checkpoint::reset(projection.as_ref(), &mut transaction).await?;
        }
        origin::forget(&mut transaction).await?;
        transaction.commit().await?;
        self.progress.send_replace(Progress::at(Position::ZERO));
        Ok(())
    }

    /// Every row of every view, as text: equal for two builds from the same events.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn dump(&self) -> Result<Dump, StoreError> {
        let mut transaction = self.database.readers().begin().await?;
        Ok(dump(&mut transaction).await?)
    }

    /// How far all of the views in that place have come, and their rows, without changing any; `None` if there are none.
    ///
    /// # Errors
    /// [`StoreError`]: they can not be read, or are those of another version.
    pub async fn look(place: &Place) -> Result<Option<(Position, Dump)>, StoreError> {
        let Some(connections) = Database::open_existing(place).await? else { return Ok(None) };
        let mut transaction = connections.begin().await?;
        let seen = checkpoint::lowest(&mut transaction).await?;
        let dump = dump(&mut transaction).await;
        drop(transaction);
        connections.close().await;
        Ok(Some((seen, dump?)))
    }

    /// Closes every connection, once its statement has ended.
    pub async fn close(&self) {
        self.database.close().await;
    }

    /// Begins to write. There is one writer: it waits for the one before it.
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        self.database.begin().await
    }

    /// The highest position that a reader waits for, or has waited for.
    pub(crate) fn wanted(&self) -> watch::Receiver<Position> {
        self.wanted.subscribe()
    }

    pub(crate) fn publish(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }
}

async fn dump(transaction: &mut Transaction) -> Result<Dump, sqlx::Error> {
    let mut dump = Dump::new();
    for table in projection::all().iter().flat_map(|projection| projection.tables()) {
        dump.insert(table, dump_table(table, transaction).await?);
    }
    Ok(dump)
}

/// In an order that does not depend on how a database compares texts.
async fn dump_table(table: &str, transaction: &mut Transaction) -> Result<Vec<String>, sqlx::Error> {
    let records = transaction.fetch_all(&Statement::new(format!("SELECT * FROM {table}"))).await?;
    let rows = records.iter().map(|record| Ok(serde_json::Value::Object(record.to_json()?).to_string()));
    let mut rows = rows.collect::<Result<Vec<_>, sqlx::Error>>()?;
    rows.sort_unstable();
    Ok(rows)
}
