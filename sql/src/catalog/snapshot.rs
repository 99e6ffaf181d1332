//! The tables of one catalog version, and the errors of violated constraints.

use std::collections::HashMap;
use std::sync::Arc;

use txn::TxnError;

use super::keys::{self, PUBLIC};
use crate::codec;
use crate::error::{ConstraintFields, SqlError, SqlState};
use crate::table::{StorageId, Table, quote_identifier};
use crate::types::{Datum, TimeZone, output};

/// The catalog at one snapshot, cached per version. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Grows with every committed schema change. Plans of another version are bound again. After a transaction's own
    /// schema change, a number that no other catalog has.
    pub version: u64,
    tables: Arc<HashMap<String, Arc<Table>>>,
}

impl Catalog {
    /// A catalog of these tables.
    pub fn new(version: u64, tables: impl IntoIterator<Item = Table>) -> Catalog {
        let tables = tables.into_iter().map(|table| (table.name.clone(), Arc::new(table))).collect();
        Catalog { version, tables: Arc::new(tables) }
    }

    /// A table of the schema `public` by its folded name.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The table with this storage.
    pub(super) fn by_storage(&self, storage: StorageId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.storage == storage)
    }
}

/// The SQL error of a violated uniqueness: 23505 with PostgreSQL's wording and fields for a row key, 42P07 for a table
/// name taken by a concurrent transaction. `None` for other errors.
pub(crate) fn constraint_error(catalog: &Catalog, error: &TxnError, zone: &TimeZone) -> Option<SqlError> {
    let TxnError::AlreadyExists { key } = error else { return None };
    if let Some(name) = keys::name_of(key) {
        return Some(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
    }
    let (storage, _) = codec::key::split_row_key(key.as_bytes())?;
    let table = catalog.by_storage(storage)?;
    let mut row = vec![Datum::Null; table.columns.len()];
    codec::key::get_row_key(table, key, &mut row).ok()?;
    Some(duplicate_key(table, &row, zone))
}

/// 23505 for a duplicate primary key.
pub(crate) fn duplicate_key(table: &Table, row: &[Datum], zone: &TimeZone) -> SqlError {
    let message = format!("duplicate key value violates unique constraint \"{}\"", table.key_name);
    let names: Vec<String> = table.primary_key.iter().map(|at| quote_identifier(&table.columns[*at].name)).collect();
    let values: Vec<String> = table.primary_key.iter().map(|at| output::to_text(&row[*at], zone)).collect();
    let detail = format!("Key ({})=({}) already exists.", names.join(", "), values.join(", "));
    let mut error = SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(detail);
    error.constraint = Some(Box::new(ConstraintFields {
        schema: PUBLIC.to_owned(),
        table: table.name.clone(),
        column: None,
        constraint: Some(table.key_name.clone()),
    }));
    error
}
