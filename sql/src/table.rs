//! Descriptors of tables and columns, used by catalog, codec, binder and executor.

use std::fmt;

use pgtypes::SqlType;

/// Identifies a table: its OID in `pg_class`. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// Identifies the key range of a table's rows. TRUNCATE gives a table a new one. Drawn from the same counter as
/// [`TableId`] and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageId(pub u32);

/// Identifies a column within its table across schema changes, from 1. Also its number in `pg_attribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u16);

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for StorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Stable within the table.
    pub id: ColumnId,
    /// The folded name.
    pub name: String,
    /// The type, never `Unknown`.
    pub ty: SqlType,
    /// Whether NULL is refused. True for primary key columns.
    pub not_null: bool,
    /// Text of the DEFAULT expression, valid SQL on its own.
    pub default: Option<String>,
}

/// A table. Invariants, checked when a descriptor is read or created:
/// 1. column ids and names are distinct, and there are at most [`MAX_COLUMNS`];
/// 2. `primary_key` holds distinct positions in `columns`, all of them NOT NULL.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The table's id.
    pub id: TableId,
    /// The id of its storage.
    pub storage: StorageId,
    /// The folded name.
    pub name: String,
    /// The columns in the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// Positions of the primary key columns in `columns`, in key order. Empty for a hidden row id.
    pub primary_key: Vec<usize>,
    /// The name of the primary key constraint. Empty without one.
    pub key_name: String,
}

/// Limit of columns, as in PostgreSQL.
pub const MAX_COLUMNS: usize = 1600;

impl Table {
    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Whether rows are identified by a hidden row id.
    pub fn has_hidden_key(&self) -> bool {
        self.primary_key.is_empty()
    }

    /// Checks the invariants. The error names the first violated one.
    pub fn check(&self) -> Result<(), String> {
        if self.columns.len() > MAX_COLUMNS {
            return Err(format!("{} columns", self.columns.len()));
        }
        let mut names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        let mut ids: Vec<ColumnId> = self.columns.iter().map(|c| c.id).collect();
        names.sort_unstable();
        ids.sort_unstable();
        if names.windows(2).any(|w| w[0] == w[1]) || ids.windows(2).any(|w| w[0] == w[1]) {
            return Err("duplicate column".to_owned());
        }
        let mut key = self.primary_key.clone();
        key.sort_unstable();
        if key.windows(2).any(|w| w[0] == w[1]) {
            return Err("duplicate primary key column".to_owned());
        }
        match key.iter().find(|at| !self.columns.get(**at).is_some_and(|c| c.not_null)) {
            Some(at) => Err(format!("primary key column {at} is missing or nullable")),
            None => Ok(()),
        }
    }
}

/// An identifier as SQL text: quoted unless it is plain lower case.
pub(crate) fn quote_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_quoted_when_needed() {
        assert_eq!(quote_identifier("abc_1"), "abc_1");
        assert_eq!(quote_identifier("Abc"), "\"Abc\"");
        assert_eq!(quote_identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_identifier("1a"), "\"1a\"");
    }
}
