//! Rows as typed structs, and the few statements that read and write them.
//!
//! The statements are built from the names below and bound values, never from text of a caller.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
};

use crate::{
    database::{Array, Record, Transaction},
    instance_health::Health,
    projection::{ApplyError, Misfit},
    space_list::SpaceStatus,
    statement::{Cell, Statement},
    task_history::TaskStatus,
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

/// Rows in one statement, where a database takes no arrays. Few sizes, so that each statement is parsed once and kept: to parse is most of the work of a
/// long one. The largest stays far below the limit of bound values (32 766 in SQLite) at the widest row.
const STATEMENT_ROWS: [usize; 3] = [64, 8, 1];

type BoxError = Box<dyn Error + Send + Sync>;

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

pub(crate) fn read<T: Column>(row: &Record, column: &'static str) -> Result<T, sqlx::Error> {
    let value = if T::IS_TEXT {
        row.text(column)?.map_or_else(T::missing, T::from_text)
    } else {
        row.int(column)?.map_or_else(T::missing, T::from_int)
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
    fn read(row: &Record) -> Result<Self, sqlx::Error>;
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

            fn cells(&self) -> Vec<crate::statement::Cell> {
                vec![$(crate::table::Column::cell(&self.$field)),*]
            }

            fn read(row: &crate::database::Record) -> Result<Self, sqlx::Error> {
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
    transaction: &mut Transaction,
) -> Result<(), ApplyError> {
    let keyed: Vec<(String, &RecordedEvent)> =
        events.iter().filter_map(|event| R::key_of(event).map(|key| (key, event))).collect();
    let mut seen = HashSet::new();
    let unknown: Vec<&str> = keyed
        .iter()
        .filter(|(key, event)| seen.insert(key.as_str()) && !R::is_first(event))
        .map(|(key, _)| key.as_str())
        .collect();
    let mut rows = load::<R>(&unknown, transaction).await?;
    for (key, event) in &keyed {
        let row = rows.remove(key);
        if let Some(row) = R::fold(row, event)? {
            rows.insert(key.clone(), row);
        }
    }
    write(&rows.into_values().collect::<Vec<_>>(), transaction).await
}

async fn load<R: Row>(
    keys: &[&str],
    transaction: &mut Transaction,
) -> Result<HashMap<String, R>, ApplyError> {
    let key = R::COLUMNS[0];
    let mut rows = HashMap::with_capacity(keys.len());
    let mut take_in = |records: Vec<Record>| {
        for record in records {
            let key = record.text(key)?.ok_or_else(|| sqlx::Error::ColumnNotFound(key.to_owned()))?;
            rows.insert(key, R::read(&record)?);
        }
        Ok::<_, sqlx::Error>(())
    };
    if transaction.takes_arrays() {
        if !keys.is_empty() {
            let mut select = select::<R>();
            select.push(" WHERE ").push(key).push(" = ANY($1)");
            let keys = Array::Text(keys.iter().map(|key| Some((*key).to_owned())).collect());
            take_in(transaction.fetch_by_arrays(&select.sql, vec![keys]).await?)?;
        }
        return Ok(rows);
    }
    for keys in statements(keys) {
        let mut select = select::<R>();
        select.push_in(" WHERE ", key, keys);
        take_in(transaction.fetch_all(&select).await?)?;
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
pub(crate) async fn write<R: Row>(rows: &[R], transaction: &mut Transaction) -> Result<(), ApplyError> {
    let names = R::COLUMNS.join(", ");
    let updates: Vec<String> =
        R::COLUMNS[1..].iter().map(|column| format!("{column} = excluded.{column}")).collect();
    let end = format!(" ON CONFLICT ({}) DO UPDATE SET {}", R::COLUMNS[0], updates.join(", "));
    if transaction.takes_arrays() {
        if !rows.is_empty() {
            let columns = columns_of(rows);
            let places: Vec<String> = (1..).zip(&columns).map(|(n, column)| column.place(n)).collect();
            let insert = format!(
                "INSERT INTO {} ({names}) SELECT * FROM UNNEST({}){end}",
                R::TABLE,
                places.join(", ")
            );
            transaction.fetch_by_arrays(&insert, columns).await?;
        }
        return Ok(());
    }
    for rows in statements(rows) {
        let mut insert = Statement::new(format!("INSERT INTO {} ({names}) VALUES ", R::TABLE));
        insert.push_rows(rows.iter().map(Row::cells)).push(&end);
        transaction.execute(&insert).await?;
    }
    Ok(())
}

/// The rows, column by column.
fn columns_of<R: Row>(rows: &[R]) -> Vec<Array> {
    let mut columns: Vec<Array> = Vec::new();
    for (nth, row) in rows.iter().enumerate() {
        for (index, cell) in row.cells().into_iter().enumerate() {
            if nth == 0 {
                columns.push(Array::like(&cell, rows.len()));
            }
            columns[index].push(cell);
        }
    }
    columns
}

/// `SELECT` of all columns of a row's table.
pub(crate) fn select<R: Row>() -> Statement {
    Statement::new(format!("SELECT {} FROM {}", R::COLUMNS.join(", "), R::TABLE))
}
