//! Functions of enums. They ask the catalog for the labels of the type; the values of arguments do not matter but as
//! bounds.

use super::args::Args;
use super::row::{ProcRow, scalar};
use crate::datum::{Array, Datum};
use crate::error::ValueError;
use crate::row::Label;
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

pub(super) static ROWS: &[ProcRow] = &[
    scalar(3528, "enum_first", &[T::ANYENUM], T::ANYENUM, |args| end(args, <[Label]>::first)).stable().on_null(),
    scalar(3529, "enum_last", &[T::ANYENUM], T::ANYENUM, |args| end(args, <[Label]>::last)).stable().on_null(),
    scalar(3530, "enum_range", &[T::ANYENUM, T::ANYENUM], T::ANYARRAY, range).stable().on_null(),
    scalar(3531, "enum_range", &[T::ANYENUM], T::ANYARRAY, all).stable().on_null(),
];

fn labels<'a>(args: &Args<'a>) -> Result<&'a [Label], ValueError> {
    args.env()
        .names
        .labels(args.ty(0).oid)
        .ok_or_else(|| ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "could not determine actual enum type"))
}

fn end(args: &Args<'_>, choose: fn(&[Label]) -> Option<&Label>) -> Result<Datum, ValueError> {
    match choose(labels(args)?) {
        Some(label) => Ok(Datum::Int(label.order)),
        None => {
            let name = args.env().names.show(T::REGTYPE, args.ty(0).oid).unwrap_or_default();
            let message = format!("enum {name} contains no values");
            Err(ValueError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
        }
    }
}

fn array(args: &Args<'_>, orders: impl Iterator<Item = i64>) -> Datum {
    Datum::Array(Box::new(Array::of(args.ty(0).oid, orders.map(Datum::Int).collect())))
}

fn all(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(array(args, labels(args)?.iter().map(|label| label.order)))
}

/// Labels between two, which are left out as NULL.
fn range(args: &Args<'_>) -> Result<Datum, ValueError> {
    let bound = |at: usize, open: i64| if args.is_null(at) { Ok(open) } else { args.int(at) };
    let bounds = bound(0, i64::MIN)?..=bound(1, i64::MAX)?;
    let orders = labels(args)?.iter().map(|label| label.order);
    Ok(array(args, orders.filter(|order| bounds.contains(order))))
}

#[cfg(test)]
#[path = "enum_tests.rs"]
mod tests;
