//! The errors of violated constraints, and names of rows in messages.

use bytes::Bytes;
use kv::Key;
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, Oid, SqlType, TimeZone, wire};
use txn::TxnError;

use super::fixed_names::shown_text;
use super::keys;
use super::snapshot::Catalog;
use crate::codec;
use crate::error::{ConstraintFields, SqlError, SqlState};
use crate::table::{Index, Table, quote_identifier};

/// The SQL error of a violated uniqueness: 23505 with PostgreSQL's wording and fields for a row key, 42P07 for a table
/// name taken by a concurrent transaction. `None` for other errors. `inserts`: what the transaction was to write to
/// keys that must not exist.
pub(crate) fn constraint_error(
    catalog: &Catalog,
    (error, inserts): (&TxnError, &[(Key, Bytes)]),
    zone: &TimeZone,
) -> Option<SqlError> {
    let TxnError::AlreadyExists { key } = error else { return None };
    if let Some(name) = keys::name_of(key) {
        return Some(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
    }
    if let Some(name) = keys::schema_name_of(key) {
        return Some(SqlError::new(SqlState::DUPLICATE_SCHEMA, format!("schema \"{name}\" already exists")));
    }
    if let Some(name) = keys::database_name_of(key) {
        return Some(SqlError::new(SqlState::DUPLICATE_DATABASE, format!("database \"{name}\" already exists")));
    }
    let env = IoEnv { names: catalog, ..IoEnv::new(zone, Now(0)) };
    // A key does not tell all of its values: `1.00` is `1` there.
    let value = inserts.iter().find(|(inserted, _)| inserted == key).map(|(_, value)| &**value);
    if let Some((storage, _)) = codec::index::split_entry_key(key.as_bytes()) {
        let (table, index) = catalog.index_of_storage(storage)?;
        let values = codec::index::values(table, index, (key, value)).ok()?;
        return Some(duplicate_entry(table, index, &values, &env));
    }
    let (storage, _) = codec::key::split_row_key(key.as_bytes())?;
    let table = catalog.by_storage(storage)?;
    let mut row = vec![Datum::Null; table.columns.len()];
    codec::key::get_row_key(table, key, &mut row).ok()?;
    if let Some(value) = value {
        let in_key: Vec<bool> = (0..table.columns.len()).map(|at| table.primary_key.contains(&at)).collect();
        codec::row::decode(table, value, &in_key, &mut row).ok()?;
    }
    Some(duplicate_key(table, &row, &env))
}

/// The name of the table of a row, and its key in the words of PostgreSQL's messages, `(id)=(5)`. `None` if the key is
/// of no row of a table of this catalog. A row without a primary key has an empty text.
pub(crate) fn row_name(catalog: &Catalog, key: &Key, zone: &TimeZone) -> Option<(String, String)> {
    let env = IoEnv { names: catalog, ..IoEnv::new(zone, Now(0)) };
    if let Some((storage, _)) = codec::index::split_entry_key(key.as_bytes()) {
        let (table, index) = catalog.index_of_storage(storage)?;
        let entry = codec::index::read_key(table, index, key).ok()?;
        return Some((table.name.clone(), entry_text(table, index, &entry.values, &env)));
    }
    let (storage, _) = codec::key::split_row_key(key.as_bytes())?;
    let table = catalog.by_storage(storage)?;
    if table.has_hidden_key() {
        return Some((table.name.clone(), String::new()));
    }
    let mut row = vec![Datum::Null; table.columns.len()];
    codec::key::get_row_key(table, key, &mut row).ok()?;
    Some((table.name.clone(), key_text(table, &row, &env)))
}

/// The primary key of a row: `(a, b)=(1, 2)`.
fn key_text(table: &Table, row: &[Datum], env: &IoEnv<'_>) -> String {
    let names: Vec<String> = table.primary_key.iter().map(|at| quote_identifier(&table.columns[*at].name)).collect();
    let shown = |value: &Datum, ty| wire::show(value, ty, env);
    let values: Vec<String> = table.primary_key.iter().map(|at| shown(&row[*at], table.columns[*at].ty)).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// The columns of an index entry: `(a, lower(b))=(1, x)`.
fn entry_text(table: &Table, index: &Index, values: &[Datum], env: &IoEnv<'_>) -> String {
    let shown = values.iter().enumerate().map(|(at, value)| match index.type_of(table, at) {
        Some(_) | None if value.is_null() => "null".to_owned(),
        Some(ty) => wire::show(value, ty, env),
        None => String::new(),
    });
    let names = index.column_names(table).join(", ");
    format!("({})=({})", shown_text(&names, env.names), shown.collect::<Vec<_>>().join(", "))
}

/// 23505 for a duplicate primary key.
pub(crate) fn duplicate_key(table: &Table, row: &[Datum], env: &IoEnv<'_>) -> SqlError {
    duplicate(table, &table.key_name, &key_text(table, row, env), env)
}

/// 23505 for a duplicate entry of a unique index with these columns.
pub(crate) fn duplicate_entry(table: &Table, index: &Index, values: &[Datum], env: &IoEnv<'_>) -> SqlError {
    duplicate(table, &index.name, &entry_text(table, index, values, env), env)
}

fn duplicate(table: &Table, constraint: &str, key: &str, env: &IoEnv<'_>) -> SqlError {
    let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
    let detail = format!("Key {key} already exists.");
    unique_violation(table, constraint, message, detail, env)
}

/// 23505 for rows that have the same primary key, or the same entry in an index (`Some`), when it is built.
pub(crate) fn duplicate_rows(
    table: &Table,
    (name, index): (&str, Option<&Index>),
    values: &[Datum],
    env: &IoEnv<'_>,
) -> SqlError {
    let key = match index {
        Some(index) => entry_text(table, index, values, env),
        None => key_text(table, values, env),
    };
    let message = format!("could not create unique index \"{name}\"");
    unique_violation(table, name, message, format!("Key {key} is duplicated."), env)
}

fn unique_violation(table: &Table, constraint: &str, message: String, detail: String, env: &IoEnv<'_>) -> SqlError {
    let mut error = SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(detail);
    error.constraint = Some(Box::new(ConstraintFields {
        schema: schema_name(table, env),
        table: Some(table.name.clone()),
        data_type: None,
        column: None,
        constraint: Some(constraint.to_owned()),
    }));
    error
}

/// The name of a table's schema, for the fields of errors.
pub(crate) fn schema_name(table: &Table, env: &IoEnv<'_>) -> String {
    let shown = env.names.show(SqlType::REGNAMESPACE, Oid(table.schema.0));
    // A quoted name is for people.
    shown.map_or_else(String::new, |name| match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name,
    })
}
