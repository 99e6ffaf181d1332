//! Rows, and operations on them that several parts of the executor share.

use std::cmp::Ordering;

use crate::catalog::schema_name;
use crate::error::{ConstraintFields, SqlError, SqlState};
use crate::table::Table;
use pgtypes::codec::key::{KeyOrder, put_ordered};
use pgtypes::datum::compare;
use pgtypes::functions::check_fields;
use pgtypes::{Datum, IoEnv, wire};

/// A row of a result.
pub type Row = Vec<Datum>;

/// A row of NULLs.
pub(super) fn empty_row(table: &Table) -> Row {
    vec![Datum::Null; table.columns.len()]
}

/// The approximate bytes of a row.
pub(super) fn row_bytes(row: &Row) -> usize {
    size_of::<Row>() + row.iter().map(Datum::memory).sum::<usize>()
}

/// The order of two values of a sort key.
pub(super) fn key_order(a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending => compare(b, a),
        (false, false) => compare(a, b),
    }
}

/// Bytes that are equal if and only if the values are. NULLs are equal to each other. 42883 for rows without an order:
/// PostgreSQL sorts the values.
pub(super) fn distinct_key<'a>(values: impl IntoIterator<Item = &'a Datum>) -> Result<Vec<u8>, SqlError> {
    key_with(values, true)
}

/// The same of values that an operator compares. 42883 for rows without equality.
pub(super) fn equality_key<'a>(values: impl IntoIterator<Item = &'a Datum>) -> Result<Vec<u8>, SqlError> {
    key_with(values, false)
}

fn key_with<'a>(values: impl IntoIterator<Item = &'a Datum>, is_ordered: bool) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::new();
    for value in values {
        check_fields(value, is_ordered)?;
        // As in an index, NULL has a mark of its own.
        put_ordered(value, KeyOrder::default(), &mut out);
    }
    Ok(out)
}

/// 23502 if a NOT NULL column of a row is NULL.
pub(super) fn check_not_null(table: &Table, row: &[Datum], env: &IoEnv<'_>) -> Result<(), SqlError> {
    let Some((column, _)) = table.columns.iter().zip(row).find(|(column, value)| column.not_null && value.is_null())
    else {
        return Ok(());
    };
    let message =
        format!("null value in column \"{}\" of relation \"{}\" violates not-null constraint", column.name, table.name);
    let detail = format!("Failing row contains {}.", describe(table, row, env));
    let mut error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message).detail(detail);
    error.constraint = Some(Box::new(ConstraintFields {
        schema: schema_name(table, env),
        table: Some(table.name.clone()),
        data_type: None,
        column: Some(column.name.clone()),
        constraint: None,
    }));
    Err(error)
}

/// A row for an error message, with long values truncated.
pub(super) fn describe(table: &Table, row: &[Datum], env: &IoEnv<'_>) -> String {
    const SHOWN: usize = 64;
    let values: Vec<String> = row
        .iter()
        .zip(&table.columns)
        .map(|(value, column)| {
            if value.is_null() {
                return "null".to_owned();
            }
            let text = wire::show(value, column.ty, env);
            if text.len() <= SHOWN {
                return text;
            }
            let mut end = SHOWN;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            format!("{}...", &text[..end])
        })
        .collect();
    format!("({})", values.join(", "))
}
