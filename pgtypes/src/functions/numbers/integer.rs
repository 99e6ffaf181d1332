//! Arithmetic and bit operators of the integers. The type of the result bounds it: 22003 beyond.

use num_integer::Integer;

use super::fault::{division_by_zero, out_of_range};
use crate::cast::to_int;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, scalar};
use crate::sql_type::SqlType as T;

/// What an operator makes of two integers; `None` beyond 64 bits.
fn binary(args: &Args<'_>, operator: fn(i64, i64) -> Option<i64>) -> Result<Datum, ValueError> {
    let value = operator(args.int(0)?, args.int(1)?).ok_or_else(|| out_of_range(args.result()))?;
    to_int(value, args.result())
}

fn unary(args: &Args<'_>, operator: fn(i64) -> Option<i64>) -> Result<Datum, ValueError> {
    let value = operator(args.int(0)?).ok_or_else(|| out_of_range(args.result()))?;
    to_int(value, args.result())
}

fn add(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, i64::checked_add)
}

fn subtract(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, i64::checked_sub)
}

fn multiply(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, i64::checked_mul)
}

fn divide(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.int(1)? == 0 {
        return Err(division_by_zero());
    }
    binary(args, i64::checked_div)
}

fn remainder(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.int(1)? == 0 {
        return Err(division_by_zero());
    }
    // The remainder of the least integer and -1 is 0, though their quotient does not exist.
    binary(args, |a, b| Some(a.wrapping_rem(b)))
}

fn negate(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, i64::checked_neg)
}

fn plus(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, Some)
}

fn absolute(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, i64::checked_abs)
}

fn increment(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| value.checked_add(1))
}

fn decrement(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| value.checked_sub(1))
}

fn and(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, |a, b| Some(a & b))
}

fn or(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, |a, b| Some(a | b))
}

fn xor(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, |a, b| Some(a ^ b))
}

fn not(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| Some(!value))
}

/// Shifts a `bigint` in 64 bits, the others in 32, of which a `smallint` keeps 16. The count is taken modulo the bits.
fn shift(args: &Args<'_>, narrow: fn(i32, u32) -> i32, wide: fn(i64, u32) -> i64) -> Result<Datum, ValueError> {
    let count = args.i32(1)?.cast_unsigned();
    Ok(Datum::Int(match args.result().base() {
        T::INT8 => wide(args.int(0)?, count),
        T::INT4 => narrow(args.i32(0)?, count).into(),
        _ => i64::from(narrow(args.i32(0)?, count) as i16),
    }))
}

fn shift_left(args: &Args<'_>) -> Result<Datum, ValueError> {
    shift(args, i32::wrapping_shl, i64::wrapping_shl)
}

fn shift_right(args: &Args<'_>) -> Result<Datum, ValueError> {
    shift(args, i32::wrapping_shr, i64::wrapping_shr)
}

/// The greatest common divisor. That of the least integer and 0 or itself is out of range.
fn gcd(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, |a, b| i64::try_from(a.unsigned_abs().gcd(&b.unsigned_abs())).ok())
}

/// The least common multiple. It is out of range where the divisor is.
fn lcm(args: &Args<'_>) -> Result<Datum, ValueError> {
    binary(args, |a, b| {
        let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
        if a == 0 || b == 0 {
            return Some(0);
        }
        i64::try_from((a / a.gcd(&b)).checked_mul(b)?).ok()
    })
}

pub(super) static ROWS: &[ProcRow] = &[
    scalar(141, "int4mul", &[T::INT4, T::INT4], T::INT4, multiply),
    scalar(152, "int2mul", &[T::INT2, T::INT2], T::INT2, multiply),
    scalar(153, "int2div", &[T::INT2, T::INT2], T::INT2, divide),
    scalar(154, "int4div", &[T::INT4, T::INT4], T::INT4, divide),
    scalar(155, "int2mod", &[T::INT2, T::INT2], T::INT2, remainder),
    scalar(156, "int4mod", &[T::INT4, T::INT4], T::INT4, remainder),
    scalar(170, "int24mul", &[T::INT2, T::INT4], T::INT4, multiply),
    scalar(171, "int42mul", &[T::INT4, T::INT2], T::INT4, multiply),
    scalar(172, "int24div", &[T::INT2, T::INT4], T::INT4, divide),
    scalar(173, "int42div", &[T::INT4, T::INT2], T::INT4, divide),
    scalar(176, "int2pl", &[T::INT2, T::INT2], T::INT2, add),
    scalar(177, "int4pl", &[T::INT4, T::INT4], T::INT4, add),
    scalar(178, "int24pl", &[T::INT2, T::INT4], T::INT4, add),
    scalar(179, "int42pl", &[T::INT4, T::INT2], T::INT4, add),
    scalar(180, "int2mi", &[T::INT2, T::INT2], T::INT2, subtract),
    scalar(181, "int4mi", &[T::INT4, T::INT4], T::INT4, subtract),
    scalar(182, "int24mi", &[T::INT2, T::INT4], T::INT4, subtract),
    scalar(183, "int42mi", &[T::INT4, T::INT2], T::INT4, subtract),
    scalar(212, "int4um", &[T::INT4], T::INT4, negate),
    scalar(213, "int2um", &[T::INT2], T::INT2, negate),
    scalar(462, "int8um", &[T::INT8], T::INT8, negate),
    scalar(463, "int8pl", &[T::INT8, T::INT8], T::INT8, add),
    scalar(464, "int8mi", &[T::INT8, T::INT8], T::INT8, subtract),
    scalar(465, "int8mul", &[T::INT8, T::INT8], T::INT8, multiply),
    scalar(466, "int8div", &[T::INT8, T::INT8], T::INT8, divide),
    scalar(766, "int4inc", &[T::INT4], T::INT4, increment),
    scalar(837, "int82pl", &[T::INT8, T::INT2], T::INT8, add),
    scalar(838, "int82mi", &[T::INT8, T::INT2], T::INT8, subtract),
    scalar(839, "int82mul", &[T::INT8, T::INT2], T::INT8, multiply),
    scalar(840, "int82div", &[T::INT8, T::INT2], T::INT8, divide),
    scalar(841, "int28pl", &[T::INT2, T::INT8], T::INT8, add),
    scalar(940, "mod", &[T::INT2, T::INT2], T::INT2, remainder),
    scalar(941, "mod", &[T::INT4, T::INT4], T::INT4, remainder),
    scalar(942, "int28mi", &[T::INT2, T::INT8], T::INT8, subtract),
    scalar(943, "int28mul", &[T::INT2, T::INT8], T::INT8, multiply),
    scalar(945, "int8mod", &[T::INT8, T::INT8], T::INT8, remainder),
    scalar(947, "mod", &[T::INT8, T::INT8], T::INT8, remainder),
    scalar(948, "int28div", &[T::INT2, T::INT8], T::INT8, divide),
    scalar(1219, "int8inc", &[T::INT8], T::INT8, increment),
    scalar(1230, "int8abs", &[T::INT8], T::INT8, absolute),
    scalar(1251, "int4abs", &[T::INT4], T::INT4, absolute),
    scalar(1253, "int2abs", &[T::INT2], T::INT2, absolute),
    scalar(1274, "int84pl", &[T::INT8, T::INT4], T::INT8, add),
    scalar(1275, "int84mi", &[T::INT8, T::INT4], T::INT8, subtract),
    scalar(1276, "int84mul", &[T::INT8, T::INT4], T::INT8, multiply),
    scalar(1277, "int84div", &[T::INT8, T::INT4], T::INT8, divide),
    scalar(1278, "int48pl", &[T::INT4, T::INT8], T::INT8, add),
    scalar(1279, "int48mi", &[T::INT4, T::INT8], T::INT8, subtract),
    scalar(1280, "int48mul", &[T::INT4, T::INT8], T::INT8, multiply),
    scalar(1281, "int48div", &[T::INT4, T::INT8], T::INT8, divide),
    scalar(1396, "abs", &[T::INT8], T::INT8, absolute),
    scalar(1397, "abs", &[T::INT4], T::INT4, absolute),
    scalar(1398, "abs", &[T::INT2], T::INT2, absolute),
    scalar(1892, "int2and", &[T::INT2, T::INT2], T::INT2, and),
    scalar(1893, "int2or", &[T::INT2, T::INT2], T::INT2, or),
    scalar(1894, "int2xor", &[T::INT2, T::INT2], T::INT2, xor),
    scalar(1895, "int2not", &[T::INT2], T::INT2, not),
    scalar(1896, "int2shl", &[T::INT2, T::INT4], T::INT2, shift_left),
    scalar(1897, "int2shr", &[T::INT2, T::INT4], T::INT2, shift_right),
    scalar(1898, "int4and", &[T::INT4, T::INT4], T::INT4, and),
    scalar(1899, "int4or", &[T::INT4, T::INT4], T::INT4, or),
    scalar(1900, "int4xor", &[T::INT4, T::INT4], T::INT4, xor),
    scalar(1901, "int4not", &[T::INT4], T::INT4, not),
    scalar(1902, "int4shl", &[T::INT4, T::INT4], T::INT4, shift_left),
    scalar(1903, "int4shr", &[T::INT4, T::INT4], T::INT4, shift_right),
    scalar(1904, "int8and", &[T::INT8, T::INT8], T::INT8, and),
    scalar(1905, "int8or", &[T::INT8, T::INT8], T::INT8, or),
    scalar(1906, "int8xor", &[T::INT8, T::INT8], T::INT8, xor),
    scalar(1907, "int8not", &[T::INT8], T::INT8, not),
    scalar(1908, "int8shl", &[T::INT8, T::INT4], T::INT8, shift_left),
    scalar(1909, "int8shr", &[T::INT8, T::INT4], T::INT8, shift_right),
    scalar(1910, "int8up", &[T::INT8], T::INT8, plus),
    scalar(1911, "int2up", &[T::INT2], T::INT2, plus),
    scalar(1912, "int4up", &[T::INT4], T::INT4, plus),
    scalar(3546, "int8dec", &[T::INT8], T::INT8, decrement),
    scalar(5044, "gcd", &[T::INT4, T::INT4], T::INT4, gcd),
    scalar(5045, "gcd", &[T::INT8, T::INT8], T::INT8, gcd),
    scalar(5046, "lcm", &[T::INT4, T::INT4], T::INT4, lcm),
    scalar(5047, "lcm", &[T::INT8, T::INT8], T::INT8, lcm),
];
