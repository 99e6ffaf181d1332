//! Comparisons: `=`, `<>`, `<`, `<=`, `>`, `>=` of all types, and the functions of the same order.
//!
//! Values of one kind compare in one way, whatever their types, so most rows share the functions of this file. Those
//! of types whose order is not that of the kind are in `special`. The functions that return the order as an integer
//! return PostgreSQL's integer: the distance of short integers and of the first different bytes, else -1, 0 or 1.
//!
//! # Layers
//!
//! 1. `special`: orders that depend on the types
//! 2. `numbers`, `texts`, `times`, `values`: the rows

mod numbers;
mod special;
mod texts;
mod times;
mod values;

use std::cmp::Ordering;

use super::args::Args;
use super::row::ProcRow;
use crate::datum::{Datum, unpadded};
use crate::error::ValueError;
pub(super) use special::{check_equality, check_order, lsn, order_of};

/// Numbers, and what is stored as one.
pub(super) static NUMBERS: &[ProcRow] = numbers::ROWS;
/// Texts and bytes.
pub(super) static TEXTS: &[ProcRow] = texts::ROWS;
/// Dates, times and intervals.
pub(super) static TIMES: &[ProcRow] = times::ROWS;
/// All other types.
pub(super) static VALUES: &[ProcRow] = values::ROWS;

fn eq(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_eq()))
}

fn ne(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_ne()))
}

fn lt(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_lt()))
}

fn le(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_le()))
}

fn gt(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_gt()))
}

fn ge(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_ge()))
}

/// -1, 0 or 1.
fn cmp(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(sign(args.compare(0, 1)?))
}

fn sign(order: Ordering) -> Datum {
    // The discriminants are -1, 0 and 1.
    Datum::Int(i64::from(order as i8))
}

/// The difference of two short integers.
fn cmp_difference(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(args.int(0)?.saturating_sub(args.int(1)?)))
}

/// The first difference of two texts, two byte strings or two UUIDs.
fn cmp_bytes(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (left, right) = match (args.get(0), args.get(1)) {
        (Datum::Bytes(left), Datum::Bytes(right)) => (&**left, &**right),
        (Datum::Padded(left), Datum::Padded(right)) => (unpadded(left).as_bytes(), unpadded(right).as_bytes()),
        (Datum::Uuid(left), Datum::Uuid(right)) => (left.as_bytes().as_slice(), right.as_bytes().as_slice()),
        _ => (args.text(0)?.as_bytes(), args.text(1)?.as_bytes()),
    };
    let mut pairs = left.iter().zip(right);
    let difference = pairs.find_map(|(a, b)| Some(i64::from(*a) - i64::from(*b)).filter(|distance| *distance != 0));
    Ok(difference.map_or_else(|| sign(left.len().cmp(&right.len())), Datum::Int))
}

/// The first difference of two texts that a zero byte ends, as names and `"char"` have it in PostgreSQL.
fn cmp_names(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (left, right) = (args.text(0)?.as_bytes(), args.text(1)?.as_bytes());
    let byte = |text: &[u8], at: usize| text.get(at).map_or(0, |byte| i64::from(*byte));
    let at = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    Ok(Datum::Int(byte(left, at) - byte(right, at)))
}

/// Whether an `xid` has the bits of an `integer`.
fn eq_bits(args: &Args<'_>) -> Result<Datum, ValueError> {
    let bits = i64::from(u32::MAX);
    Ok(Datum::Bool(args.int(0)? & bits == args.int(1)? & bits))
}

fn ne_bits(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(eq_bits(args)? == Datum::Bool(false)))
}

/// The first argument if it is greater, else the second one. Equal values may print differently.
fn larger(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_le())).clone())
}

/// The first argument if it is less, else the second one.
fn smaller(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_ge())).clone())
}

/// As [`larger`], but the first one of equal `character` values.
fn larger_or_first(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_lt())).clone())
}

/// As [`smaller`], but the first one of equal `character` values.
fn smaller_or_first(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_gt())).clone())
}

#[cfg(test)]
mod tests;
