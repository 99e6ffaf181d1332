//! The comparisons of values whose order is that of their kind.
//!
//! The functions that return the order as an integer return PostgreSQL's integer: the distance of short integers and of
//! the first different bytes, else -1, 0 or 1.

use std::cmp::Ordering;

use crate::datum::{Datum, unpadded};
use crate::error::ValueError;
use crate::functions::args::Args;

pub(super) fn eq(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_eq()))
}

pub(super) fn ne(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_ne()))
}

pub(super) fn lt(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_lt()))
}

pub(super) fn le(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_le()))
}

pub(super) fn gt(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_gt()))
}

pub(super) fn ge(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.compare(0, 1)?.is_ge()))
}

/// -1, 0 or 1.
pub(super) fn cmp(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(sign(args.compare(0, 1)?))
}

pub(super) fn sign(order: Ordering) -> Datum {
    // The discriminants are -1, 0 and 1.
    Datum::Int(i64::from(order as i8))
}

/// The difference of two short integers.
pub(super) fn cmp_difference(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(args.int(0)?.saturating_sub(args.int(1)?)))
}

/// The first difference of two texts, two byte strings or two UUIDs.
pub(super) fn cmp_bytes(args: &Args<'_>) -> Result<Datum, ValueError> {
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
pub(super) fn cmp_names(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (left, right) = (args.text(0)?.as_bytes(), args.text(1)?.as_bytes());
    let byte = |text: &[u8], at: usize| text.get(at).map_or(0, |byte| i64::from(*byte));
    let at = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    Ok(Datum::Int(byte(left, at) - byte(right, at)))
}

/// Whether an `xid` has the bits of an `integer`.
pub(super) fn eq_bits(args: &Args<'_>) -> Result<Datum, ValueError> {
    let bits = i64::from(u32::MAX);
    Ok(Datum::Bool(args.int(0)? & bits == args.int(1)? & bits))
}

pub(super) fn ne_bits(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(eq_bits(args)? == Datum::Bool(false)))
}

/// The first argument if it is greater, else the second one. Equal values may print differently.
pub(super) fn larger(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_le())).clone())
}

/// The first argument if it is less, else the second one.
pub(super) fn smaller(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_ge())).clone())
}

/// As [`larger`], but the first one of equal `character` values.
pub(super) fn larger_or_first(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_lt())).clone())
}

/// As [`smaller`], but the first one of equal `character` values.
pub(super) fn smaller_or_first(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(args.get(usize::from(args.compare(0, 1)?.is_gt())).clone())
}
