//! Rows of plain columns: from stored bytes to borrowed values, without a row in between.

use kv::Key;
use txn::Transaction;

use super::rows::Row;
use crate::codec::{CodecError, key, row};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use crate::plan::{AccessPath, PLAIN_COLUMNS, PlainOutput, TableAccess};
use pgtypes::DatumRef;

/// Receives the values of a row, in the order of the output columns.
pub(crate) type Sink<'s> = dyn FnMut(&[DatumRef<'_>]) -> Result<(), SqlError> + Send + 's;

/// Passes a stored row to `sink`. `scratch` has a place for every column of the table, or for none if the output has no
/// column of the key.
pub(super) fn emit(
    access: &TableAccess,
    output: &PlainOutput,
    (key, value): (&Key, &[u8]),
    scratch: &mut Row,
    sink: &mut Sink<'_>,
) -> Result<(), SqlError> {
    if output.reads_key {
        key::get_row_key(&access.table, key, scratch)?;
    }
    let mut values: [DatumRef<'_>; PLAIN_COLUMNS] = std::array::from_fn(|_| DatumRef::Null);
    let mut put = |at: usize, value| {
        let place = output.places.get(at).copied().flatten();
        if let Some(slot) = place.and_then(|place| values.get_mut(place)) {
            *slot = value;
        }
    };
    if output.reads_key {
        access.table.primary_key.iter().for_each(|at| put(*at, scratch[*at].borrow()));
    }
    row::visit(&access.table, value, &access.needed, put)?;
    sink(values.get(..output.width).ok_or(CodecError::new("plain row", "too wide"))?)
}

/// The row for `emit` to decode keys into.
pub(super) fn scratch(access: &TableAccess, output: &PlainOutput) -> Row {
    if output.reads_key { super::rows::empty_row(&access.table) } else { Row::new() }
}

/// Passes the row of a query for one key to `sink`, if it exists. Returns the number of rows, or `None` if the query
/// is for more, or the read would take a message or a wait: the caller then runs it as any other.
pub(super) fn try_point(
    access: &TableAccess,
    output: &PlainOutput,
    txn: &Transaction,
    env: &Env<'_>,
    sink: &mut Sink<'_>,
) -> Result<Option<usize>, SqlError> {
    let AccessPath::Points(points) = &access.path else { return Ok(None) };
    let [columns] = points.as_slice() else { return Ok(None) };
    if columns.iter().any(|column| matches!(column, Expr::Each(_))) {
        return Ok(None);
    }
    let mut bytes = key::row_prefix(access.table.storage);
    for column in columns {
        if key::put(&*eval(column, &[], env)?, &mut bytes).is_none() {
            // A key column is never NULL.
            return Ok(Some(0));
        }
    }
    let key = Key::new(bytes);
    let Some(stored) = txn.try_get(&key) else { return Ok(None) };
    let Some(stored) = stored else { return Ok(Some(0)) };
    emit(access, output, (&key, &stored), &mut scratch(access, output), sink)?;
    Ok(Some(1))
}
