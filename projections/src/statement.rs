//! A statement of SQL with its values, for any database: `$1`, `$2`, … and text or whole numbers.
//!
//! The text is put together from names of ours only; whatever a caller says is a bound value.

/// A value as a database holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Text(Option<String>),
    Int(Option<i64>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<i64> for Cell {
    fn from(int: i64) -> Self {
        Self::Int(Some(int))
    }
}

/// A statement and its values.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Cell>,
}

impl Statement {
    pub(crate) fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), values: Vec::new() }
    }

    /// More text of ours.
    pub(crate) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// The place of a value, and the value.
    pub(crate) fn bind(&mut self, value: impl Into<Cell>) -> &mut Self {
        self.values.push(value.into());
        self.sql.push('$');
        self.sql.push_str(&self.values.len().to_string());
        self
    }

    /// `(…), (…)`: places for rows of values.
    pub(crate) fn push_rows(&mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> &mut Self {
        for (index, row) in rows.into_iter().enumerate() {
            self.push(if index == 0 { "(" } else { ", (" });
            for (index, value) in row.into_iter().enumerate() {
                if index > 0 {
                    self.push(", ");
                }
                self.bind(value);
            }
            self.push(")");
        }
        self
    }

    /// `<before><column> IN (…)`; of no values, what is never true.
    pub(crate) fn push_in<T: ToString>(&mut self, before: &str, column: &str, values: &[T]) -> &mut Self {
        self.push(before);
        if values.is_empty() {
            return self.push("1 = 0");
        }
        self.push(column).push(" IN ");
        self.push("(");
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            self.bind(value.to_string());
        }
        self.push(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bound_and_never_part_of_the_text() {
        let mut statement = Statement::new("SELECT 1 WHERE a = ");
        statement.bind("'; DROP TABLE space").push_in(" AND ", "b", &["x", "y"]);
        statement.push_in::<&str>(" AND ", "c", &[]);
        assert_eq!(statement.sql, "SELECT 1 WHERE a = $1 AND b IN ($2, $3) AND 1 = 0");
        assert_eq!(statement.values.len(), 3);
    }
}
