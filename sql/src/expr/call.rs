//! Calls over evaluated arguments: functions, ANY and ALL, arrays and rows.

use std::borrow::Cow;

use super::env::{Env, Value, as_bool, boolean, owned};
use super::tree::{Call, Elementwise};
use crate::error::SqlError;
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
    let mut saw_null = false;
    for element in array.elements() {
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
pub(super) fn row_of<'a>(types: &[SqlType], values: Vec<Datum>) -> Value<'a> {
    let fields = types.iter().copied().zip(values).collect();
    owned(Datum::Record(Box::new(Record::new(fields))))
}

/// The element of an array at the upper bounds.
pub(super) fn element<'a>(array: &Datum, bounds: &[(Option<i64>, Option<i64>)]) -> Value<'a> {
    let Datum::Array(array) = array else { return owned(Datum::Null) };
    let places: Vec<i64> = bounds.iter().filter_map(|(_, upper)| *upper).collect();
    owned(array.get(&places).cloned().unwrap_or_default())
}

/// A part of an array.
pub(super) fn slice<'a>(array: &Datum, bounds: &[(Option<i64>, Option<i64>)]) -> Value<'a> {
    let Datum::Array(array) = array else { return owned(Datum::Null) };
    owned(Datum::Array(Box::new(array.slice(bounds))))
}
