//! Where the views lie: a file of SQLite, or a schema of PostgreSQL. All that the two do not share is in here.
//!
//! | | SQLite | PostgreSQL |
//! |---|---|---|
//! | named by | a file | a URL, with `schema=` |
//! | to throw away | remove the file | drop the schema |
//! | a power cut | may take the last batches, with their checkpoint | the same |
//! | while it writes | one writer, readers beside it | the same |
//!
//! Tables and statements are the same for both (`migrations/`, `statement.rs`).

mod place;
mod postgres;
mod sqlite;

use sqlx::{
    AssertSqlSafe, Column as _, Pool, Postgres, Row as _, Sqlite, TypeInfo as _, ValueRef as _,
    migrate::Migrator, postgres::PgRow, sqlite::SqliteRow,
};
use std::time::Duration;

pub use self::place::{InvalidPlace, Place};
use crate::{
    statement::{Cell, Statement},
    store::StoreError,
};

/// One head of migrations for every database.
static MIGRATIONS: Migrator = sqlx::migrate!("src/migrations");

/// Connections that read at once; more queries wait.
const READERS_MAX: u32 = 4;
/// How long a query waits for a connection, or a statement for another program's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections to a database: one that writes, and a few that read.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    writer: Connections,
    readers: Connections,
}

/// Connections of one kind. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Connections {
    Sqlite(Pool<Sqlite>),
    Postgres(Pool<Postgres>),
}

/// A transaction: what it wrote is taken back unless it is committed.
#[derive(Debug)]
pub struct Transaction(Under);

#[derive(Debug)]
enum Under {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

/// A row that was read.
#[derive(Debug)]
pub(crate) enum Record {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// The statement as the driver of `$db` takes it.
macro_rules! query {
    ($db:ty, $statement:expr) => {{
        let mut query = sqlx::query::<$db>(AssertSqlSafe($statement.sql.as_str()));
        for value in &$statement.values {
            query = match value {
                Cell::Text(text) => query.bind(text.as_deref()),
                Cell::Int(int) => query.bind(*int),
            };
        }
        query
    }};
}

impl Database {
    /// Opens it, makes it where it is not there, and brings its tables up to date.
    pub(crate) async fn open(place: &Place) -> Result<Self, StoreError> {
        match place {
            Place::Sqlite(path) => sqlite::open(path).await,
            Place::Postgres { url, schema } => postgres::open(url, schema).await,
        }
    }

    /// Opens it to read only, if it is there.
    pub(crate) async fn open_existing(place: &Place) -> Result<Option<Connections>, StoreError> {
        match place {
            Place::Sqlite(path) => sqlite::open_existing(path).await,
            Place::Postgres { url, schema } => postgres::open_existing(url, schema).await,
        }
    }

    /// Throws it away; it must not be open.
    pub(crate) async fn remove(place: &Place) -> Result<(), StoreError> {
        match place {
            Place::Sqlite(path) => sqlite::remove(path),
            Place::Postgres { url, schema } => postgres::remove(url, schema).await,
        }
    }

    pub(crate) const fn readers(&self) -> &Connections {
        &self.readers
    }

    /// Begins to write.
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        self.writer.begin().await
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

impl Connections {
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        Ok(Transaction(match self {
            Self::Sqlite(pool) => Under::Sqlite(pool.begin().await?),
            Self::Postgres(pool) => Under::Postgres(pool.begin().await?),
        }))
    }

    pub(crate) async fn fetch_all(&self, statement: &Statement) -> Result<Vec<Record>, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(pool) => wrapped(query!(Sqlite, statement).fetch_all(pool).await?, Record::Sqlite),
            Self::Postgres(pool) => {
                wrapped(query!(Postgres, statement).fetch_all(pool).await?, Record::Postgres)
            }
        })
    }

    pub(crate) async fn fetch_optional(&self, statement: &Statement) -> Result<Option<Record>, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(pool) => query!(Sqlite, statement).fetch_optional(pool).await?.map(Record::Sqlite),
            Self::Postgres(pool) => {
                query!(Postgres, statement).fetch_optional(pool).await?.map(Record::Postgres)
            }
        })
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Transaction {
    /// Gives the number of rows that were changed.
    pub(crate) async fn execute(&mut self, statement: &Statement) -> Result<u64, sqlx::Error> {
        Ok(match &mut self.0 {
            Under::Sqlite(open) => query!(Sqlite, statement).execute(&mut **open).await?.rows_affected(),
            Under::Postgres(open) => query!(Postgres, statement).execute(&mut **open).await?.rows_affected(),
        })
    }

    pub(crate) async fn fetch_all(&mut self, statement: &Statement) -> Result<Vec<Record>, sqlx::Error> {
        Ok(match &mut self.0 {
            Under::Sqlite(open) => {
                wrapped(query!(Sqlite, statement).fetch_all(&mut **open).await?, Record::Sqlite)
            }
            Under::Postgres(open) => {
                wrapped(query!(Postgres, statement).fetch_all(&mut **open).await?, Record::Postgres)
            }
        })
    }

    /// Whether rows are best written and looked for as one array for each column.
    pub(crate) const fn takes_arrays(&self) -> bool {
        match self.0 {
            Under::Sqlite(_) => false,
            Under::Postgres(_) => true,
        }
    }

    /// Runs a statement whose values are whole columns; only where [`takes_arrays`](Self::takes_arrays).
    pub(crate) async fn fetch_by_arrays(
        &mut self,
        sql: &str,
        columns: Vec<Array>,
    ) -> Result<Vec<Record>, sqlx::Error> {
        let Under::Postgres(open) = &mut self.0 else {
            return Err(sqlx::Error::Protocol("this database takes no arrays".to_owned()));
        };
        let mut query = sqlx::query::<Postgres>(AssertSqlSafe(sql));
        for column in columns {
            query = match column {
                Array::Text(texts) => query.bind(texts),
                Array::Int(ints) => query.bind(ints),
            };
        }
        Ok(wrapped(query.fetch_all(&mut **open).await?, Record::Postgres))
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self.0 {
            Under::Sqlite(open) => open.commit().await,
            Under::Postgres(open) => open.commit().await,
        }
    }

    /// Runs text of a script of ours, statement by statement.
    #[cfg(test)]
    pub(crate) async fn run_script(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        use sqlx::Executor as _;
        let script = sqlx::raw_sql(AssertSqlSafe(sql));
        match &mut self.0 {
            Under::Sqlite(open) => (&mut **open).execute(script).await.map(drop),
            Under::Postgres(open) => (&mut **open).execute(script).await.map(drop),
        }
    }
}

/// A column of values.
#[derive(Debug)]
pub(crate) enum Array {
    Text(Vec<Option<String>>),
    Int(Vec<Option<i64>>),
}

impl Array {
    /// An empty one for values like this.
    pub(crate) fn like(cell: &Cell, capacity: usize) -> Self {
        match cell {
            Cell::Text(_) => Self::Text(Vec::with_capacity(capacity)),
            Cell::Int(_) => Self::Int(Vec::with_capacity(capacity)),
        }
    }

    /// One more value. A column holds values of one kind: its field's type says which.
    pub(crate) fn push(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Text(texts), Cell::Text(text)) => texts.push(text),
            (Self::Int(ints), Cell::Int(int)) => ints.push(int),
            (Self::Text(_) | Self::Int(_), _) => unreachable!("a column has one kind of values"),
        }
    }

    /// Where it stands as the `nth` value, with its type.
    pub(crate) fn place(&self, nth: usize) -> String {
        match self {
            Self::Text(_) => format!("${nth}::text[]"),
            Self::Int(_) => format!("${nth}::bigint[]"),
        }
    }
}

fn wrapped<R>(rows: Vec<R>, wrap: fn(R) -> Record) -> Vec<Record> {
    rows.into_iter().map(wrap).collect()
}

impl Record {
    pub(crate) fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    pub(crate) fn int(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// The columns and what is in them, as JSON.
    pub(crate) fn to_json(&self) -> Result<serde_json::Map<String, serde_json::Value>, sqlx::Error> {
        macro_rules! fields {
            ($row:expr) => {{
                let mut fields = serde_json::Map::new();
                for column in $row.columns() {
                    let value = $row.try_get_raw(column.ordinal())?;
                    let value = if value.is_null() {
                        serde_json::Value::Null
                    } else if matches!(value.type_info().name(), "INTEGER" | "INT8") {
                        $row.try_get::<i64, _>(column.ordinal())?.into()
                    } else {
                        $row.try_get::<String, _>(column.ordinal())?.into()
                    };
                    fields.insert(column.name().to_owned(), value);
                }
                Ok(fields)
            }};
        }
        match self {
            Self::Sqlite(row) => fields!(row),
            Self::Postgres(row) => fields!(row),
        }
    }
}
