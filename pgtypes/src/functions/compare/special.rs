//! Orders that depend on the types of the arguments: dates against timestamps, arrays, rows, and what is stored as a
//! text but has another order.

use std::cmp::Ordering;

use super::order::sign;
use crate::datetime::{Date, Timestamp, TimestampTz};
use crate::datum::{Array, Datum, Record, compare_same};
use crate::error::ValueError;
use crate::form::invalid;
use crate::functions::args::Args;
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

/// What a comparison asks of the types of elements and fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Equality,
    Order,
}

pub(super) fn eq(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(are_equal(args)?))
}

pub(super) fn ne(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(!are_equal(args)?))
}

pub(super) fn lt(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(order(args, Need::Order)?.is_lt()))
}

pub(super) fn le(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(order(args, Need::Order)?.is_le()))
}

pub(super) fn gt(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(order(args, Need::Order)?.is_gt()))
}

pub(super) fn ge(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(order(args, Need::Order)?.is_ge()))
}

/// -1, 0 or 1; of two vectors the difference of their lengths.
pub(super) fn cmp(args: &Args<'_>) -> Result<Datum, ValueError> {
    let order = order(args, Need::Order)?;
    if args.ty(0).base() == T::OIDVECTOR {
        let length = |at: usize| args.array(at).map(|array| i64::try_from(array.elements().len()).unwrap_or(i64::MAX));
        let difference = length(0)? - length(1)?;
        if difference != 0 {
            return Ok(Datum::Int(difference));
        }
    }
    Ok(sign(order))
}

/// The first argument if it is greater, else the second one.
pub(super) fn larger(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(order(args, Need::Order)?.is_le())).clone())
}

/// The first argument if it is less, else the second one.
pub(super) fn smaller(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(order(args, Need::Order)?.is_ge())).clone())
}

/// Whether a type has an order; `Err` with PostgreSQL's error if not.
pub(in crate::functions) fn check_order(ty: T) -> Result<(), ValueError> {
    check(ty, Need::Order)
}

/// Whether a type has an operator `=`; `Err` with PostgreSQL's error if not.
pub(in crate::functions) fn check_equality(ty: T) -> Result<(), ValueError> {
    check(ty, Need::Equality)
}

/// The order of two values of a type with an order.
pub(in crate::functions) fn order_of(ty: T, left: &Datum, right: &Datum) -> Result<Ordering, ValueError> {
    values(ty, left, right, Need::Order)
}

fn are_equal(args: &Args<'_>) -> Result<bool, ValueError> {
    if let (Datum::Array(left), Datum::Array(right)) = (args.get(0), args.get(1)) {
        // Arrays of different shapes differ, whatever their elements are.
        if left.element() == right.element() && left.dimensions() != right.dimensions() {
            return Ok(false);
        }
    }
    Ok(order(args, Need::Equality)?.is_eq())
}

fn order(args: &Args<'_>, need: Need) -> Result<Ordering, ValueError> {
    let (left, right) = (args.ty(0).base(), args.ty(1).base());
    let zone = args.env().zone;
    Ok(match (left, right) {
        (T::DATE, T::TIMESTAMP) => args.date(0)?.cmp_timestamp(Timestamp(args.int(1)?)),
        (T::TIMESTAMP, T::DATE) => args.date(1)?.cmp_timestamp(Timestamp(args.int(0)?)).reverse(),
        (T::DATE, T::TIMESTAMPTZ) => {
            let date: Date = args.date(0)?;
            date.cmp_timestamptz(TimestampTz(args.int(1)?), zone)
        }
        (T::TIMESTAMPTZ, T::DATE) => args.date(1)?.cmp_timestamptz(TimestampTz(args.int(0)?), zone).reverse(),
        (T::TIMESTAMP, T::TIMESTAMPTZ) => Timestamp(args.int(0)?).cmp_timestamptz(TimestampTz(args.int(1)?), zone),
        (T::TIMESTAMPTZ, T::TIMESTAMP) => {
            Timestamp(args.int(1)?).cmp_timestamptz(TimestampTz(args.int(0)?), zone).reverse()
        }
        _ => values(left, args.get(0), args.get(1), need)?,
    })
}

/// The order of two values of one type that are not NULL.
fn values(ty: T, left: &Datum, right: &Datum, need: Need) -> Result<Ordering, ValueError> {
    match (left, right) {
        (Datum::Array(left), Datum::Array(right)) if ty == T::OIDVECTOR => Ok(vectors(left, right)),
        (Datum::Array(left), Datum::Array(right)) => arrays(left, right, need),
        (Datum::Record(left), Datum::Record(right)) => records(left, right, need),
        (Datum::Text(left), Datum::Text(right)) if ty == T::PG_LSN => Ok(lsn(left)?.cmp(&lsn(right)?)),
        (Datum::Text(left), Datum::Text(right)) if ty == T::TID => Ok(tid(left)?.cmp(&tid(right)?)),
        _ => compare_same(left, right).ok_or_else(|| ValueError::internal("values of two kinds are compared")),
    }
}

/// The order of values that may be NULL, which is last.
fn nullable(ty: T, left: &Datum, right: &Datum, need: Need) -> Result<Ordering, ValueError> {
    match (left.is_null(), right.is_null()) {
        (false, false) => values(ty, left, right, need),
        (left, right) => Ok(left.cmp(&right)),
    }
}

/// Shorter vectors are first.
fn vectors(left: &Array, right: &Array) -> Ordering {
    left.elements().len().cmp(&right.elements().len()).then_with(|| left.compare(right))
}

fn arrays(left: &Array, right: &Array, need: Need) -> Result<Ordering, ValueError> {
    if left.element() != right.element() {
        let message = "cannot compare arrays of different element types";
        return Err(ValueError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let ty = T::new(left.element());
    check(ty, need)?;
    if !matches!(ty, T::RECORD | T::PG_LSN | T::TID | T::OIDVECTOR) {
        return Ok(left.compare(right));
    }
    for (a, b) in left.elements().iter().zip(right.elements()) {
        let order = nullable(ty, a, b, need)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    // Their elements are equal as far as both have some, so this compares the shapes.
    let shape = |array: &Array| {
        let dimensions = array.dimensions();
        let lengths: Vec<i32> = dimensions.iter().map(|dimension| dimension.length).collect();
        let lowers: Vec<i32> = dimensions.iter().map(|dimension| dimension.lower).collect();
        (array.elements().len(), dimensions.len(), lengths, lowers)
    };
    Ok(shape(left).cmp(&shape(right)))
}

fn records(left: &Record, right: &Record, need: Need) -> Result<Ordering, ValueError> {
    for (at, ((left_ty, a), (right_ty, b))) in left.fields().iter().zip(right.fields()).enumerate() {
        if left_ty.oid != right_ty.oid {
            let (left, right) = (left_ty.base_name(), right_ty.base_name());
            let message =
                format!("cannot compare dissimilar column types {left} and {right} at record column {}", at + 1);
            return Err(ValueError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let ty = left_ty.base();
        check(ty, need)?;
        let order = nullable(ty, a, b, need)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    if left.fields().len() != right.fields().len() {
        let message = "cannot compare record types with different numbers of columns";
        return Err(ValueError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    Ok(Ordering::Equal)
}

/// 42883 if values of a type cannot be compared.
fn check(ty: T, need: Need) -> Result<(), ValueError> {
    const ACLITEM: T = T { oid: crate::oid::Oid(1033), typmod: -1 };
    let ty = ty.base();
    let fails = match ty {
        T::JSON | T::REFCURSOR | T::CSTRING | T::PG_NODE_TREE | T::VOID => true,
        T::XID | T::CID | ACLITEM => need == Need::Order,
        _ => return Ok(()),
    };
    if fails { Err(missing(ty, need)) } else { Ok(()) }
}

/// 42883 for a type whose values cannot be compared.
fn missing(ty: T, need: Need) -> ValueError {
    let what = if need == Need::Order { "a comparison function" } else { "an equality operator" };
    let message = format!("could not identify {what} for type {}", ty.base_name());
    ValueError::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// Whether the values of a type have an order: PostgreSQL has an operator class for it.
pub fn has_order(ty: T) -> bool {
    check(ty.scalar(), Need::Order).is_ok()
}

/// Whether the values of a type can be equal.
pub fn has_equality(ty: T) -> bool {
    check(ty.scalar(), Need::Equality).is_ok()
}

/// 42883 for a row in which a field has a type without equality, or without an order if that is asked. The type of the
/// row does not tell.
pub fn check_fields(value: &Datum, is_ordered: bool) -> Result<(), ValueError> {
    let need = if is_ordered { Need::Order } else { Need::Equality };
    match value {
        Datum::Record(record) => record.fields().iter().try_for_each(|(ty, field)| {
            if check(ty.scalar(), need).is_err() {
                return Err(missing(*ty, need));
            }
            check_fields(field, is_ordered)
        }),
        Datum::Array(array) if array.element() == T::RECORD.oid => {
            array.elements().iter().try_for_each(|element| check_fields(element, is_ordered))
        }
        _ => Ok(()),
    }
}

/// The position that the text form of a `pg_lsn` denotes.
pub(in crate::functions) fn lsn(text: &str) -> Result<u64, ValueError> {
    let half = |digits: &str| {
        let is_hex = !digits.is_empty() && digits.len() <= 8 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    let halves = text.split_once('/').and_then(|(high, low)| Some((half(high)?, half(low)?)));
    halves.map(|(high, low)| high << 32 | low).ok_or_else(|| invalid("pg_lsn", text))
}

/// The block and the place in it that the text form of a `tid` denotes.
fn tid(text: &str) -> Result<(u32, u16), ValueError> {
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let parts = inner.and_then(|inner| inner.split_once(','));
    parts
        .and_then(|(block, place)| Some((block.parse().ok()?, place.parse().ok()?)))
        .ok_or_else(|| invalid("tid", text))
}
