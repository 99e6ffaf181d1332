//! Reads one row by its primary key within one call: from the key's bytes to the borrowed values of the stored row.

use std::borrow::Cow;

use kv::Key;
use txn::Transaction;

use crate::codec::{key, row};
use crate::error::SqlError;
use crate::expr::eval::{Env, eval};
use crate::plan::{AccessPath, POINT_COLUMNS, PointPlan, SelectPlan, Source};
use crate::types::{Datum, DatumRef};

/// Passes the row to `found`, if it exists. Returns the number of rows, or `None` if the read would take a message or a
/// wait: the caller then runs the query as any other.
pub(super) fn read(
    select: &SelectPlan,
    point: &PointPlan,
    txn: &Transaction,
    env: &Env<'_>,
    found: impl FnOnce(&[DatumRef<'_>]) -> Result<(), SqlError>,
) -> Result<Option<usize>, SqlError> {
    let Source::Table(access) = &select.source else { return Ok(None) };
    let AccessPath::Points(points) = &access.path else { return Ok(None) };
    let [columns] = points.as_slice() else { return Ok(None) };
    let mut bytes = key::row_prefix(access.table.storage);
    let mut in_key: Vec<Cow<'_, Datum>> = Vec::new();
    for column in columns {
        let value = eval(column, &[], env)?;
        if key::put(&value, &mut bytes).is_none() {
            // A key column is never NULL.
            return Ok(Some(0));
        }
        if !point.from_key.is_empty() {
            in_key.push(value);
        }
    }
    let Some(stored) = txn.try_get(&Key::new(bytes)) else { return Ok(None) };
    let Some(stored) = stored else { return Ok(Some(0)) };
    let mut values = [DatumRef::Null; POINT_COLUMNS];
    for (place, column) in &point.from_key {
        if let (Some(slot), Some(value)) = (values.get_mut(*place), in_key.get(*column)) {
            *slot = value.borrow();
        }
    }
    row::visit(&access.table, &stored, &access.needed, |at, value| {
        let place = point.stored.get(at).copied().flatten();
        if let Some(slot) = place.and_then(|place| values.get_mut(place)) {
            *slot = value;
        }
    })?;
    found(values.get(..point.width).unwrap_or_default())?;
    Ok(Some(1))
}
