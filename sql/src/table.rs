//! Descriptors of tables and columns, used by catalog, codec, binder and executor.

use std::fmt;

use pgtypes::SqlType;
use pgtypes::codec::key::KeyOrder;

use crate::object::SchemaId;

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

/// Identifies a CHECK or a foreign key: its OID in `pg_constraint`. Drawn from the same counter as [`TableId`]. 0
/// before it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstraintId(pub u32);

/// Identifies an index: its OID in `pg_class`. Drawn from the same counter as [`TableId`] and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId(pub u32);

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
    /// Text of GENERATED ALWAYS AS (...) STORED, over the other columns; valid SQL on its own.
    pub generated: Option<String>,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its id.
    pub id: ConstraintId,
    /// The folded name, among those of the table's constraints.
    pub name: String,
    /// Text of the condition, valid SQL on its own.
    pub text: String,
}

/// What a foreign key does when the row that it refers to is deleted, or gets another key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceAction {
    /// An error at the end of the statement.
    #[default]
    NoAction,
    /// An error at once.
    Restrict,
    /// The referring row is deleted, or gets the new key.
    Cascade,
    /// Its columns become NULL.
    SetNull,
    /// Its columns get their default values.
    SetDefault,
}

/// A key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOf {
    /// The primary key.
    Primary,
    /// The unique index at a position.
    Index(usize),
}

/// A foreign key. A key of the table that it refers to makes its columns there unique ([`Table::key_of`]).
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    /// Its id.
    pub id: ConstraintId,
    /// The folded name, among those of the table's constraints.
    pub name: String,
    /// The positions of its columns.
    pub columns: Vec<usize>,
    /// The table that it refers to.
    pub parent: TableId,
    /// The columns there, in the order of its own.
    pub parent_columns: Vec<ColumnId>,
    /// ON DELETE.
    pub on_delete: ReferenceAction,
    /// ON UPDATE.
    pub on_update: ReferenceAction,
    /// MATCH FULL: either all columns are NULL, or none.
    pub is_full: bool,
    /// DEFERRABLE. It is checked at the end of each statement all the same.
    pub is_deferrable: bool,
}

/// What a column of an index holds.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexedValue {
    /// The column of the table at this position.
    Column(usize),
    /// An expression over the table's columns.
    Expression {
        /// Valid SQL on its own.
        text: String,
        /// The type of its values.
        ty: SqlType,
    },
}

/// A key column of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexColumn {
    /// The value.
    pub value: IndexedValue,
    /// Its order.
    pub order: KeyOrder,
}

/// A secondary index. Its entries are in a key range of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The index's id.
    pub id: IndexId,
    /// The id of its storage.
    pub storage: StorageId,
    /// The folded name.
    pub name: String,
    /// The key columns, in key order.
    pub columns: Vec<IndexColumn>,
    /// Whether no two entries without NULL are equal.
    pub unique: bool,
    /// Whether it belongs to a UNIQUE constraint of the same name.
    pub is_constraint: bool,
    /// Text of the condition of the rows that have entries; `None` for all rows.
    pub predicate: Option<String>,
    /// Positions of the columns that its entries hold beside the key.
    pub included: Vec<usize>,
}

impl Index {
    /// The type of a key column.
    pub fn type_of(&self, table: &Table, at: usize) -> Option<SqlType> {
        match &self.columns.get(at)?.value {
            IndexedValue::Column(column) => table.columns.get(*column).map(|column| column.ty),
            IndexedValue::Expression { ty, .. } => Some(*ty),
        }
    }

    /// The key columns as SQL, for messages.
    pub fn column_names(&self, table: &Table) -> Vec<String> {
        let name = |column: &IndexColumn| match &column.value {
            IndexedValue::Column(at) => table.columns.get(*at).map_or_else(String::new, |c| quote_identifier(&c.name)),
            IndexedValue::Expression { text, .. } => expression_text(text),
        };
        self.columns.iter().map(name).collect()
    }

    /// The positions of its columns, if its key has no expressions and it has no predicate.
    pub fn plain_columns(&self) -> Option<Vec<usize>> {
        let column = |column: &IndexColumn| match column.value {
            IndexedValue::Column(at) => Some(at),
            IndexedValue::Expression { .. } => None,
        };
        if self.predicate.is_some() { None } else { self.columns.iter().map(column).collect() }
    }
}

/// An expression of an index, in parentheses unless it is a plain call.
fn expression_text(text: &str) -> String {
    let name_end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let mut depth = 0usize;
    let mut closed_early = false;
    for (at, c) in text.char_indices().skip(name_end) {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                closed_early |= depth == 0 && at + 1 < text.len();
            }
            _ => {}
        }
    }
    let is_call = name_end > 0 && text[name_end..].starts_with('(') && text.ends_with(')') && !closed_early;
    if is_call { text.to_owned() } else { format!("({text})") }
}

/// A table. Invariants, checked when a descriptor is read or created:
/// 1. column ids and names are distinct, and there are at most [`MAX_COLUMNS`];
/// 2. `primary_key` holds distinct positions in `columns`, all of them NOT NULL;
/// 3. the names, ids and storages of indexes are distinct, also from those of the primary key and the table, and their
///    columns are columns of the table;
/// 4. the names of constraints are distinct, and their columns are columns of the table;
/// 5. no column has an id above `last_column`.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The table's id.
    pub id: TableId,
    /// The id of its storage.
    pub storage: StorageId,
    /// Its schema.
    pub schema: SchemaId,
    /// The folded name.
    pub name: String,
    /// The columns in the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// Positions of the primary key columns in `columns`, in key order. Empty for a hidden row id.
    pub primary_key: Vec<usize>,
    /// The name of the primary key constraint, and of its index. Empty without one.
    pub key_name: String,
    /// The OID of the primary key's index, whose entries are the rows. 0 without a primary key.
    pub key_id: IndexId,
    /// The secondary indexes, in the order of their ids.
    pub indexes: Vec<Index>,
    /// The CHECK constraints, in the order of their names.
    pub checks: Vec<Check>,
    /// The foreign keys, in the order of their ids.
    pub foreign_keys: Vec<ForeignKey>,
    /// The other tables with a foreign key to this one, in the order of their ids.
    pub referenced_by: Vec<TableId>,
    /// The highest column id that it has ever had.
    pub last_column: ColumnId,
}

/// Limit of columns, as in PostgreSQL.
pub const MAX_COLUMNS: usize = 1600;
/// Limit of the columns of an index, as in PostgreSQL.
pub const MAX_INDEX_COLUMNS: usize = 32;

impl Table {
    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Whether rows are identified by a hidden row id.
    pub fn has_hidden_key(&self) -> bool {
        self.primary_key.is_empty()
    }

    /// The secondary index of a name.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// The highest id of some columns.
    pub fn last_of(columns: &[Column]) -> ColumnId {
        columns.iter().map(|column| column.id).max().unwrap_or(ColumnId(0))
    }

    /// Whether a constraint of the table has a name.
    pub fn has_constraint(&self, name: &str) -> bool {
        !name.is_empty() && self.constraint_names().any(|other| other == name)
    }

    /// The names of all constraints.
    pub fn constraint_names(&self) -> impl Iterator<Item = &str> {
        let keys = self.indexes.iter().filter(|index| index.is_constraint).map(|index| index.name.as_str());
        let checks = self.checks.iter().map(|check| check.name.as_str());
        let foreign = self.foreign_keys.iter().map(|key| key.name.as_str());
        let primary = Some(self.key_name.as_str()).filter(|name| !name.is_empty());
        primary.into_iter().chain(keys).chain(checks).chain(foreign)
    }

    /// The position of the column of an id.
    pub fn position_of(&self, id: ColumnId) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// The key that makes these columns unique, in any order of them: the primary key, else a unique index of all rows.
    pub fn key_of(&self, columns: &[usize]) -> Option<KeyOf> {
        let is_same = |key: &[usize]| key.len() == columns.len() && key.iter().all(|column| columns.contains(column));
        if !self.has_hidden_key() && is_same(&self.primary_key) {
            return Some(KeyOf::Primary);
        }
        let unique = |index: &Index| index.unique && index.plain_columns().is_some_and(|key| is_same(&key));
        self.indexes.iter().position(unique).map(KeyOf::Index)
    }

    /// Whether a foreign key leads from it or to it.
    pub fn has_references(&self) -> bool {
        !self.foreign_keys.is_empty() || !self.referenced_by.is_empty()
    }

    /// All storages of the table: that of its rows and those of its indexes.
    pub fn storages(&self) -> impl Iterator<Item = StorageId> {
        std::iter::once(self.storage).chain(self.indexes.iter().map(|index| index.storage))
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
            None => self.check_indexes().and_then(|()| self.check_constraints()),
        }
    }

    fn check_constraints(&self) -> Result<(), String> {
        let mut names: Vec<&str> = self.constraint_names().collect();
        names.sort_unstable();
        if names.windows(2).any(|w| w[0] == w[1]) {
            return Err("duplicate constraint".to_owned());
        }
        if self.columns.iter().any(|column| column.id > self.last_column) {
            return Err("column id above the last one".to_owned());
        }
        for key in &self.foreign_keys {
            let exist = key.columns.iter().all(|at| *at < self.columns.len());
            if !exist || key.columns.is_empty() || key.columns.len() != key.parent_columns.len() {
                return Err(format!("columns of foreign key {}", key.name));
            }
        }
        Ok(())
    }

    fn check_indexes(&self) -> Result<(), String> {
        let mut names: Vec<&str> = self.indexes.iter().map(|index| index.name.as_str()).collect();
        names.extend([self.name.as_str(), self.key_name.as_str()].iter().filter(|name| !name.is_empty()));
        let mut ids: Vec<u32> = self.indexes.iter().map(|index| index.id.0).collect();
        ids.extend([self.id.0, self.key_id.0].iter().filter(|id| **id != 0));
        let mut storages: Vec<StorageId> = self.storages().collect();
        names.sort_unstable();
        ids.sort_unstable();
        storages.sort_unstable();
        let repeats = names.windows(2).any(|w| w[0] == w[1])
            || ids.windows(2).any(|w| w[0] == w[1])
            || storages.windows(2).any(|w| w[0] == w[1]);
        if repeats {
            return Err("duplicate index".to_owned());
        }
        for index in &self.indexes {
            let columns = index.columns.iter().filter_map(|column| match column.value {
                IndexedValue::Column(at) => Some(at),
                IndexedValue::Expression { .. } => None,
            });
            let exist = columns.chain(index.included.iter().copied()).all(|at| at < self.columns.len());
            let count = index.columns.len() + index.included.len();
            if !exist || index.columns.is_empty() || count > MAX_INDEX_COLUMNS {
                return Err(format!("columns of index {}", index.name));
            }
        }
        Ok(())
    }
}

/// An identifier as SQL text: quoted unless it is plain lower case.
pub(crate) fn quote_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// An identifier in quotes, behind the opening one, and what follows it. A doubled quote stands for one. `None` without
/// the closing quote.
pub(crate) fn unquote_identifier(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"')?;
        part.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                part.push('"');
                rest = after;
            }
            None => return Some((part, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_parentheses_unless_they_are_calls() {
        assert_eq!(expression_text("lower(a)"), "lower(a)");
        assert_eq!(expression_text("a + 1"), "(a + 1)");
        assert_eq!(expression_text("f(a) + g(b)"), "(f(a) + g(b))");
        assert_eq!(expression_text("f(g(a), b)"), "f(g(a), b)");
    }

    #[test]
    fn identifiers_are_quoted_when_needed() {
        assert_eq!(quote_identifier("abc_1"), "abc_1");
        assert_eq!(quote_identifier("Abc"), "\"Abc\"");
        assert_eq!(quote_identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_identifier("1a"), "\"1a\"");
    }
}
