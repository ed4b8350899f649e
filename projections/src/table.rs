//! Rows as typed structs, and the few statements that read and write them.
//!
//! The statements are built from the names below and bound values, never from text of a caller.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
};

use eventlog::{
    Json, Position, RecordedEvent, Redacted, Role, Sequence, Timestamp,
    event::{
        instance::{Bundle, InstanceKind, NetworkPolicy},
        space::{CloseReason, OwnerKind, TaskError},
    },
    id::{
        ArtifactId, BindingId, CapabilityName, DisplayName, InstanceId, OperationId, OwnerId, RequestId,
        SpaceId, TaskId, TokenId, WorkspaceId,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned, de::IntoDeserializer};
use sqlx::{QueryBuilder, Row as _};

use crate::{
    instance_health::Health,
    projection::{ApplyError, Misfit},
    space_list::SpaceStatus,
    task_history::TaskStatus,
};

/// The database whose native driver is used; the statements keep to what PostgreSQL reads alike.
pub(crate) type Db = sqlx::Sqlite;
/// A connection to it.
pub type Connection = sqlx::SqliteConnection;
pub(crate) type SqlRow = sqlx::sqlite::SqliteRow;

/// Rows in one statement. Few sizes, so that each statement is parsed once and kept: to parse is most of the work of a
/// long one. The largest stays far below the limit of bound values (32 766 in SQLite) at the widest row.
const STATEMENT_ROWS: [usize; 3] = [64, 8, 1];

type BoxError = Box<dyn Error + Send + Sync>;

/// A value as the database holds it.
pub(crate) enum Cell {
    Text(Option<String>),
    Int(Option<i64>),
}

/// A type that a column can hold.
pub(crate) trait Column: Sized {
    const IS_TEXT: bool;
    fn cell(&self) -> Cell;
    fn from_text(text: String) -> Result<Self, BoxError> {
        Err(format!("a text of {} bytes where a number belongs", text.len()).into())
    }
    fn from_int(int: i64) -> Result<Self, BoxError> {
        Err(format!("{int} where a text belongs").into())
    }
    fn missing() -> Result<Self, BoxError> {
        Err("nothing where a value belongs".into())
    }
}

impl<T: Column> Column for Option<T> {
    const IS_TEXT: bool = T::IS_TEXT;

    fn cell(&self) -> Cell {
        match self {
            Some(value) => value.cell(),
            None if T::IS_TEXT => Cell::Text(None),
            None => Cell::Int(None),
        }
    }

    fn from_text(text: String) -> Result<Self, BoxError> {
        T::from_text(text).map(Some)
    }

    fn from_int(int: i64) -> Result<Self, BoxError> {
        T::from_int(int).map(Some)
    }

    fn missing() -> Result<Self, BoxError> {
        Ok(None)
    }
}

macro_rules! columns {
    (text: $($text:ty),*; number: $($number:ident),*; name: $($name:ty),*; json: $($json:ty),*;) => {
        $(impl Column for $text {
            const IS_TEXT: bool = true;
            fn cell(&self) -> Cell { Cell::Text(Some(self.to_string())) }
            fn from_text(text: String) -> Result<Self, BoxError> { Ok(text.parse()?) }
        })*
        $(impl Column for $number {
            const IS_TEXT: bool = false;
            fn cell(&self) -> Cell { self.0.cell() }
            fn from_int(int: i64) -> Result<Self, BoxError> { Ok(Self(Column::from_int(int)?)) }
        })*
        $(impl Column for $name {
            const IS_TEXT: bool = true;
            fn cell(&self) -> Cell { Cell::Text(Some(name_of(self))) }
            fn from_text(text: String) -> Result<Self, BoxError> {
                let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = text.as_str().into_deserializer();
                Ok(Self::deserialize(name)?)
            }
        })*
        $(impl Column for $json {
            const IS_TEXT: bool = true;
            fn cell(&self) -> Cell { Cell::Text(Some(json_of(self))) }
            fn from_text(text: String) -> Result<Self, BoxError> { from_json(&text) }
        })*
    };
}

columns! {
    text: SpaceId, TaskId, OperationId, InstanceId, BindingId, ArtifactId, TokenId, WorkspaceId, OwnerId, RequestId,
        CapabilityName, DisplayName, String;
    number: Sequence, Position, Timestamp;
    name: SpaceStatus, TaskStatus, Health, OwnerKind, CloseReason, InstanceKind, Bundle, Role;
    json: Vec<CapabilityName>, Vec<WorkspaceId>, Vec<Redacted<String>>, Redacted<Json>, TaskError, NetworkPolicy;
}

impl Column for i64 {
    const IS_TEXT: bool = false;

    fn cell(&self) -> Cell {
        Cell::Int(Some(*self))
    }

    fn from_int(int: i64) -> Result<Self, BoxError> {
        Ok(int)
    }
}

impl Column for u64 {
    const IS_TEXT: bool = false;

    /// What is beyond 63 bits is nothing that was ever counted; it is kept as the greatest number.
    fn cell(&self) -> Cell {
        Cell::Int(Some(i64::try_from(*self).unwrap_or(i64::MAX)))
    }

    fn from_int(int: i64) -> Result<Self, BoxError> {
        Ok(Self::try_from(int)?)
    }
}

impl Column for bool {
    const IS_TEXT: bool = false;

    fn cell(&self) -> Cell {
        Cell::Int(Some(i64::from(*self)))
    }

    fn from_int(int: i64) -> Result<Self, BoxError> {
        Ok(int != 0)
    }
}

/// The wire name of a value of a closed list.
pub(crate) fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Json::String(name)) => name,
        _ => unreachable!("a value of a closed list is written as its name"),
    }
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what was read from the log can be written")
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, BoxError> {
    Ok(serde_json::from_str(text)?)
}

pub(crate) fn read<T: Column>(row: &SqlRow, column: &'static str) -> Result<T, sqlx::Error> {
    let value = if T::IS_TEXT {
        row.try_get::<Option<String>, _>(column)?.map_or_else(T::missing, T::from_text)
    } else {
        row.try_get::<Option<i64>, _>(column)?.map_or_else(T::missing, T::from_int)
    };
    value.map_err(|source| sqlx::Error::ColumnDecode { index: column.to_owned(), source })
}

/// A row of a view.
pub(crate) trait Row: Sized + Send + Sync {
    const TABLE: &'static str;
    /// The first one is the primary key.
    const COLUMNS: &'static [&'static str];
    /// How many places in lists belong to one position of the log.
    const PLACES_PER_EVENT: u64 = 1;
    fn cells(&self) -> Vec<Cell>;
    fn read(row: &SqlRow) -> Result<Self, sqlx::Error>;
}

/// A row that is folded from the events of one thing.
pub(crate) trait Folded: Row {
    /// The primary key of the row that the event changes, if it changes one.
    fn key_of(event: &RecordedEvent) -> Option<String>;
    /// Whether the event makes the row, so that there is none to load.
    fn is_first(event: &RecordedEvent) -> bool;
    /// The row after the event.
    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit>;
}

/// Declares a row: the struct, its table and its columns; each field is the column of its name.
macro_rules! row {
    ($(#[$meta:meta])* $name:ident in $table:literal $(with $places:ident)? { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl crate::table::Row for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];
            $(const PLACES_PER_EVENT: u64 = $places;)?

            fn cells(&self) -> Vec<crate::table::Cell> {
                vec![$(crate::table::Column::cell(&self.$field)),*]
            }

            fn read(row: &crate::table::SqlRow) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: crate::table::read(row, stringify!($field))?),* })
            }
        }
    };
}
pub(crate) use row;

/// Loads the rows that the events change, folds the events into them, and writes each row once.
///
/// Once, because PostgreSQL refuses to touch a row twice in one statement, and because it is what makes a batch fast.
pub(crate) async fn fold_all<R: Folded>(
    events: &[RecordedEvent],
    connection: &mut Connection,
) -> Result<(), ApplyError> {
    let keyed: Vec<(String, &RecordedEvent)> =
        events.iter().filter_map(|event| R::key_of(event).map(|key| (key, event))).collect();
    let mut seen = HashSet::new();
    let unknown: Vec<&str> = keyed
        .iter()
        .filter(|(key, event)| seen.insert(key.as_str()) && !R::is_first(event))
        .map(|(key, _)| key.as_str())
        .collect();
    let mut rows = load::<R>(&unknown, connection).await?;
    for (key, event) in &keyed {
        let row = rows.remove(key);
        if let Some(row) = R::fold(row, event)? {
            rows.insert(key.clone(), row);
        }
    }
    write(&rows.into_values().collect::<Vec<_>>(), connection).await
}

async fn load<R: Row>(keys: &[&str], connection: &mut Connection) -> Result<HashMap<String, R>, ApplyError> {
    let mut rows = HashMap::with_capacity(keys.len());
    for keys in statements(keys) {
        let mut select = select::<R>();
        push_in(&mut select, " WHERE ", R::COLUMNS[0], keys);
        for row in select.build().persistent(true).fetch_all(&mut *connection).await? {
            rows.insert(row.try_get(R::COLUMNS[0])?, R::read(&row)?);
        }
    }
    Ok(rows)
}

/// These rows in the pieces of [`STATEMENT_ROWS`], largest first.
fn statements<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = STATEMENT_ROWS.into_iter().find(|size| *size <= rows.len())?;
        let (piece, rest) = rows.split_at(size);
        rows = rest;
        Some(piece)
    })
}

/// Writes rows whole: a row that is there is replaced.
pub(crate) async fn write<R: Row>(rows: &[R], connection: &mut Connection) -> Result<(), ApplyError> {
    for rows in statements(rows) {
        let mut insert = QueryBuilder::<Db>::new("INSERT INTO ");
        insert.push(R::TABLE).push(" (").push(R::COLUMNS.join(", ")).push(") ");
        insert.push_values(rows, |mut values, row| {
            for cell in row.cells() {
                match cell {
                    Cell::Text(text) => values.push_bind(text),
                    Cell::Int(int) => values.push_bind(int),
                };
            }
        });
        let updates: Vec<String> =
            R::COLUMNS[1..].iter().map(|column| format!("{column} = excluded.{column}")).collect();
        insert.push(" ON CONFLICT (").push(R::COLUMNS[0]).push(") DO UPDATE SET ").push(updates.join(", "));
        insert.build().persistent(true).execute(&mut *connection).await?;
    }
    Ok(())
}

/// `SELECT` of all columns of a row's table.
pub(crate) fn select<R: Row>() -> QueryBuilder<Db> {
    let mut select = QueryBuilder::new("SELECT ");
    select.push(R::COLUMNS.join(", ")).push(" FROM ").push(R::TABLE);
    select
}

/// `<before><column> IN (…)`; of no values, what is never true.
pub(crate) fn push_in<T: ToString>(
    query: &mut QueryBuilder<Db>,
    before: &'static str,
    column: &'static str,
    values: &[T],
) {
    query.push(before);
    if values.is_empty() {
        query.push("1 = 0");
        return;
    }
    query.push(column).push(" IN (");
    let mut list = query.separated(", ");
    for value in values {
        list.push_bind(value.to_string());
    }
    query.push(")");
}
