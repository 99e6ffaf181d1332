//! Transaction errors as SQL errors: violated constraints by name, and all others.

use txn::TxnError;

use super::keys::{self, PUBLIC};
use super::snapshot::Catalog;
use crate::codec;
use crate::error::{ConstraintFields, SqlError, SqlState};
use crate::table::{Table, quote_identifier};
use crate::types::{Datum, TimeZone, output};

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

/// The SQL error of a transaction error that no constraint explains.
pub(crate) fn storage_error(error: TxnError) -> SqlError {
    let code = match &error {
        TxnError::Conflict(_) => SqlState::SERIALIZATION_FAILURE,
        TxnError::AlreadyExists { .. } => SqlState::UNIQUE_VIOLATION,
        TxnError::Undetermined => SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        TxnError::Unavailable(_) => SqlState::CANNOT_CONNECT_NOW,
        TxnError::TooLarge(_) => SqlState::PROGRAM_LIMIT_EXCEEDED,
        TxnError::Internal(_) => SqlState::INTERNAL_ERROR,
    };
    SqlError::new(code, error.to_string())
}
