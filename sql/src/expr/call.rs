//! Calls over evaluated arguments: functions, ANY and ALL, arrays and rows.

use std::borrow::Cow;
use std::sync::Arc;

use super::env::{Env, Value, as_bool, boolean, owned};
use super::subqueries::{SubqueryRows, value_key};
use super::tree::{Call, Elementwise};
use crate::error::{SqlError, SqlState};
use pgtypes::datum::{SliceBounds, compare_same};
use pgtypes::functions::{Args, ProcRow, Run};
use pgtypes::{Array, Datum, Record, SqlType};

/// The value of a call.
pub(super) fn apply<'a>(call: &Call, values: &[Cow<'_, Datum>], env: &Env<'_>) -> Value<'a> {
    owned(run(call.function, &Args::new(values, &call.types, call.result, &env.io))?)
}

fn run(function: &ProcRow, args: &Args<'_>) -> Result<Datum, SqlError> {
    if function.is_strict && args.any_null() {
        return Ok(Datum::Null);
    }
    match function.run {
        Run::Scalar(run) => Ok(run(args)?),
        _ => Err(SqlError::internal("a function of one value is none")),
    }
}

/// ANY and ALL: decided by the first element that decides; NULL if none does and one is NULL.
pub(super) fn decided<'a>(each: &Elementwise, left: &Datum, array: &Datum, env: &Env<'_>) -> Value<'a> {
    let array = match array {
        Datum::Array(array) => array,
        Datum::Null => return owned(Datum::Null),
        _ => return Err(SqlError::internal("ANY is over something that is no array")),
    };
    decided_by(each, left, array.elements().iter(), env)
}

fn decided_by<'a, 'd>(
    each: &Elementwise,
    left: &Datum,
    elements: impl Iterator<Item = &'d Datum>,
    env: &Env<'_>,
) -> Value<'a> {
    let mut saw_null = false;
    for element in elements {
        let values = [Cow::Borrowed(left), Cow::Borrowed(element)];
        match as_bool(&run(each.function, &Args::new(&values, &each.types, SqlType::BOOL, &env.io))?) {
            Some(holds) if holds != each.all => return boolean(Some(holds)),
            Some(_) => {}
            None => saw_null = true,
        }
    }
    boolean(if saw_null { None } else { Some(each.all) })
}

/// `ARRAY[...]`
pub(super) fn array<'a>(element: SqlType, values: Vec<Datum>, is_nested: bool) -> Value<'a> {
    let array = if is_nested { Array::nest(element.oid, values)? } else { Array::of(element.oid, values) };
    owned(Datum::Array(Box::new(array)))
}

/// `ROW(...)`
pub(super) fn row_of<'a>(types: &[SqlType], values: Vec<Datum>, names: Option<&Arc<[Box<str>]>>) -> Value<'a> {
    // A row of a table without any value is one that an outer join has added.
    if names.is_some() && values.iter().all(Datum::is_null) {
        return owned(Datum::Null);
    }
    let row = Record::new(types.iter().copied().zip(values).collect());
    owned(Datum::Record(Box::new(match names {
        Some(names) => row.named(names.clone()),
        None => row,
    })))
}

/// The element of an array at the upper bounds.
pub(super) fn element<'a>(array: &Datum, bounds: &[(Option<i64>, Option<i64>)]) -> Value<'a> {
    let Datum::Array(array) = array else { return owned(Datum::Null) };
    let places: Vec<i64> = bounds.iter().filter_map(|(_, upper)| *upper).collect();
    owned(array.get(&places).cloned().unwrap_or_default())
}

/// An array with a value assigned to the element at the upper bounds, or to a slice. NULL becomes an empty array first.
/// As a slice NULL has no effect.
pub(super) fn assigned(
    array: Datum,
    (bounds, is_slice): (&[SliceBounds], bool),
    value: Datum,
    element: SqlType,
) -> Result<Datum, SqlError> {
    let array = match array {
        Datum::Array(array) => *array,
        _ => Array::empty(element.oid),
    };
    let array = match (is_slice, value) {
        (false, value) => {
            let places: Vec<i64> = bounds.iter().filter_map(|(_, upper)| *upper).collect();
            array.assign(&places, value)?
        }
        (true, Datum::Array(source)) => array.assign_slice(bounds, &source)?,
        (true, _) => array,
    };
    Ok(Datum::Array(Box::new(array)))
}

/// A part of an array.
pub(super) fn slice<'a>(array: &Datum, bounds: &[(Option<i64>, Option<i64>)]) -> Value<'a> {
    let Datum::Array(array) = array else { return owned(Datum::Null) };
    owned(Datum::Array(Box::new(array.slice(bounds))))
}

/// The value of a sub-query of at most one row. 21000 for more.
pub(super) fn only_value<'a>(rows: &SubqueryRows, at: usize) -> Value<'a> {
    match rows.rows.as_slice() {
        [] => owned(Datum::Null),
        [row] => owned(row.get(at).cloned().unwrap_or_default()),
        _ => {
            let message = "more than one row returned by a subquery used as an expression";
            Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message))
        }
    }
}

/// ANY and ALL over the values of a sub-query. Equality looks the value up.
pub(super) fn any_of<'a>(each: &Elementwise, left: &Datum, rows: &SubqueryRows, env: &Env<'_>) -> Value<'a> {
    let Some(set) = &rows.set else {
        return decided_by(each, left, rows.rows.iter().filter_map(|row| row.first()), env);
    };
    if set.is_empty() && !rows.has_null {
        return boolean(Some(false));
    }
    match value_key(left)? {
        None => owned(Datum::Null),
        Some(key) if set.contains(&key) => boolean(Some(true)),
        Some(_) => boolean(if rows.has_null { None } else { Some(false) }),
    }
}

/// Whether a row is among those of a sub-query.
pub(super) fn row_among<'a>(left: &[Datum], rows: &SubqueryRows) -> Value<'a> {
    let mut saw_null = false;
    for row in &rows.rows {
        let mut equal = Some(true);
        for (a, b) in left.iter().zip(row) {
            match (a.is_null() || b.is_null(), compare_same(a, b)) {
                (true, _) => equal = None,
                (false, Some(order)) if order.is_eq() => {}
                (false, Some(_)) => {
                    equal = Some(false);
                    break;
                }
                (false, None) => return Err(SqlError::internal("a comparison is between values of two types")),
            }
        }
        match equal {
            Some(true) => return boolean(Some(true)),
            Some(false) => {}
            None => saw_null = true,
        }
    }
    boolean(if saw_null { None } else { Some(false) })
}
