//! Arithmetic and mathematics of floats.
//!
//! A finite result of finite arguments that does not fit is an error, as in PostgreSQL: infinities and zeros come only
//! from themselves. NaN passes through.

use std::f64::consts::PI;

use super::angle;
use super::fault::{division_by_zero, overflow, underflow};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::float::narrow;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, scalar, session};
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

type Checked = Result<f64, ValueError>;

/// What an operator makes of two floats, in the precision of the result. Twice the precision is enough for the
/// result of an operation to be the same as if it was computed in the lower one.
fn binary(args: &Args<'_>, operator: fn(f64, f64) -> f64) -> Result<(f64, f64, f64), ValueError> {
    let (a, b) = (args.float(0)?, args.float(1)?);
    let wide = operator(a, b);
    let value = if args.result().base() == T::FLOAT4 { narrow(wide).into() } else { wide };
    Ok((a, b, value))
}

fn sum(args: &Args<'_>, operator: fn(f64, f64) -> f64) -> Result<Datum, ValueError> {
    let (a, b, value) = binary(args, operator)?;
    if value.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    Ok(Datum::Float(value))
}

fn add(args: &Args<'_>) -> Result<Datum, ValueError> {
    sum(args, |a, b| a + b)
}

fn subtract(args: &Args<'_>) -> Result<Datum, ValueError> {
    sum(args, |a, b| a - b)
}

fn multiply(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (a, b, value) = binary(args, |a, b| a * b)?;
    product(a, b, value).map(Datum::Float)
}

fn product(a: f64, b: f64, value: f64) -> Checked {
    if value.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    if value == 0.0 && a != 0.0 && b != 0.0 { Err(underflow()) } else { Ok(value) }
}

fn divide(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (a, b, value) = binary(args, |a, b| a / b)?;
    quotient(a, b, value).map(Datum::Float)
}

fn quotient(a: f64, b: f64, value: f64) -> Checked {
    if b == 0.0 && !a.is_nan() {
        return Err(division_by_zero());
    }
    if value.is_infinite() && !a.is_infinite() {
        return Err(overflow());
    }
    if value == 0.0 && a != 0.0 && !b.is_infinite() { Err(underflow()) } else { Ok(value) }
}

/// A function of one float.
fn unary(args: &Args<'_>, function: fn(f64) -> Checked) -> Result<Datum, ValueError> {
    function(args.float(0)?).map(Datum::Float)
}

/// A function that never fails.
fn total(args: &Args<'_>, function: fn(f64) -> f64) -> Result<Datum, ValueError> {
    Ok(Datum::Float(function(args.float(0)?)))
}

fn negate(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, |value| -value)
}

fn plus(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, |value| value)
}

fn absolute(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, f64::abs)
}

fn ceil(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, f64::ceil)
}

fn floor(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, f64::floor)
}

fn round(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, f64::round_ties_even)
}

fn trunc(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, f64::trunc)
}

/// That of NaN is 0.
fn sign(args: &Args<'_>) -> Result<Datum, ValueError> {
    total(args, |value| f64::from(i8::from(value > 0.0) - i8::from(value < 0.0)))
}

/// Checks a result against the argument: infinity comes from infinity, zero from zero.
fn bounded(argument: f64, value: f64) -> Checked {
    if value.is_infinite() && !argument.is_infinite() {
        return Err(overflow());
    }
    if value == 0.0 && argument != 0.0 { Err(underflow()) } else { Ok(value) }
}

fn sqrt(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| {
        if value < 0.0 {
            return Err(ValueError::new(SqlState::INVALID_POWER, "cannot take square root of a negative number"));
        }
        bounded(value, value.sqrt())
    })
}

fn cbrt(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| bounded(value, value.cbrt()))
}

fn exp(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| {
        let power = value.exp();
        match () {
            () if !value.is_finite() => Ok(power),
            () if power.is_infinite() => Err(overflow()),
            () if power == 0.0 => Err(underflow()),
            () => Ok(power),
        }
    })
}

fn ln(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| logarithm(value, f64::ln))
}

fn log10(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| logarithm(value, f64::log10))
}

fn logarithm(value: f64, function: fn(f64) -> f64) -> Checked {
    let invalid = |what: &str| {
        let message = format!("cannot take logarithm of {what}");
        Err(ValueError::new(SqlState::INVALID_LOGARITHM, message))
    };
    match () {
        () if value == 0.0 => invalid("zero"),
        () if value < 0.0 => invalid("a negative number"),
        () => Ok(function(value)),
    }
}

fn power(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (base, exponent) = (args.float(0)?, args.float(1)?);
    let invalid = |message: &'static str| Err(ValueError::new(SqlState::INVALID_POWER, message));
    if base == 0.0 && exponent < 0.0 {
        return invalid("zero raised to a negative power is undefined");
    }
    if base < 0.0 && !exponent.is_nan() && exponent.floor() != exponent {
        return invalid("a negative number raised to a non-integer power yields a complex result");
    }
    // The powers of infinities and NaN are those of IEEE 754.
    let value = base.powf(exponent);
    match () {
        () if !base.is_finite() || !exponent.is_finite() => Ok(Datum::Float(value)),
        () if value.is_infinite() => Err(overflow()),
        () if value == 0.0 && base != 0.0 => Err(underflow()),
        () => Ok(Datum::Float(value)),
    }
}

fn pi(_: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Float(PI))
}

fn degrees(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| quotient(value, angle::DEGREE, value / angle::DEGREE))
}

fn radians(args: &Args<'_>) -> Result<Datum, ValueError> {
    unary(args, |value| product(value, angle::DEGREE, value * angle::DEGREE))
}

/// The angle of a point, in radians.
fn atan2(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Float(args.float(0)?.atan2(args.float(1)?)))
}

/// The angle of a point, in degrees.
fn atan2d(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Float(angle::quarters(args.float(0)?.atan2(args.float(1)?))))
}

pub(super) static ROWS: &[ProcRow] = &[
    scalar(202, "float4mul", &[T::FLOAT4, T::FLOAT4], T::FLOAT4, multiply),
    scalar(203, "float4div", &[T::FLOAT4, T::FLOAT4], T::FLOAT4, divide),
    scalar(204, "float4pl", &[T::FLOAT4, T::FLOAT4], T::FLOAT4, add),
    scalar(205, "float4mi", &[T::FLOAT4, T::FLOAT4], T::FLOAT4, subtract),
    scalar(206, "float4um", &[T::FLOAT4], T::FLOAT4, negate),
    scalar(207, "float4abs", &[T::FLOAT4], T::FLOAT4, absolute),
    scalar(216, "float8mul", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, multiply),
    scalar(217, "float8div", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, divide),
    scalar(218, "float8pl", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, add),
    scalar(219, "float8mi", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, subtract),
    scalar(220, "float8um", &[T::FLOAT8], T::FLOAT8, negate),
    scalar(221, "float8abs", &[T::FLOAT8], T::FLOAT8, absolute),
    scalar(228, "dround", &[T::FLOAT8], T::FLOAT8, round),
    scalar(229, "dtrunc", &[T::FLOAT8], T::FLOAT8, trunc),
    scalar(230, "dsqrt", &[T::FLOAT8], T::FLOAT8, sqrt),
    scalar(231, "dcbrt", &[T::FLOAT8], T::FLOAT8, cbrt),
    scalar(232, "dpow", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, power),
    scalar(233, "dexp", &[T::FLOAT8], T::FLOAT8, exp),
    scalar(234, "dlog1", &[T::FLOAT8], T::FLOAT8, ln),
    scalar(279, "float48mul", &[T::FLOAT4, T::FLOAT8], T::FLOAT8, multiply),
    scalar(280, "float48div", &[T::FLOAT4, T::FLOAT8], T::FLOAT8, divide),
    scalar(281, "float48pl", &[T::FLOAT4, T::FLOAT8], T::FLOAT8, add),
    scalar(282, "float48mi", &[T::FLOAT4, T::FLOAT8], T::FLOAT8, subtract),
    scalar(283, "float84mul", &[T::FLOAT8, T::FLOAT4], T::FLOAT8, multiply),
    scalar(284, "float84div", &[T::FLOAT8, T::FLOAT4], T::FLOAT8, divide),
    scalar(285, "float84pl", &[T::FLOAT8, T::FLOAT4], T::FLOAT8, add),
    scalar(286, "float84mi", &[T::FLOAT8, T::FLOAT4], T::FLOAT8, subtract),
    scalar(1194, "log10", &[T::FLOAT8], T::FLOAT8, log10),
    scalar(1339, "dlog10", &[T::FLOAT8], T::FLOAT8, log10),
    scalar(1340, "log", &[T::FLOAT8], T::FLOAT8, log10),
    scalar(1341, "ln", &[T::FLOAT8], T::FLOAT8, ln),
    scalar(1342, "round", &[T::FLOAT8], T::FLOAT8, round),
    scalar(1343, "trunc", &[T::FLOAT8], T::FLOAT8, trunc),
    scalar(1344, "sqrt", &[T::FLOAT8], T::FLOAT8, sqrt),
    scalar(1345, "cbrt", &[T::FLOAT8], T::FLOAT8, cbrt),
    scalar(1346, "pow", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, power),
    scalar(1347, "exp", &[T::FLOAT8], T::FLOAT8, exp),
    scalar(1368, "power", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, power),
    scalar(1394, "abs", &[T::FLOAT4], T::FLOAT4, absolute),
    scalar(1395, "abs", &[T::FLOAT8], T::FLOAT8, absolute),
    scalar(1600, "asin", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::asin)),
    scalar(1601, "acos", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::acos)),
    scalar(1602, "atan", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::atan)),
    scalar(1603, "atan2", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, atan2),
    scalar(1604, "sin", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::sin)),
    scalar(1605, "cos", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::cos)),
    scalar(1606, "tan", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::tan)),
    scalar(1607, "cot", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::cot)),
    scalar(1608, "degrees", &[T::FLOAT8], T::FLOAT8, degrees),
    scalar(1609, "radians", &[T::FLOAT8], T::FLOAT8, radians),
    scalar(1610, "pi", &[], T::FLOAT8, pi),
    scalar(1913, "float4up", &[T::FLOAT4], T::FLOAT4, plus),
    scalar(1914, "float8up", &[T::FLOAT8], T::FLOAT8, plus),
    scalar(2308, "ceil", &[T::FLOAT8], T::FLOAT8, ceil),
    scalar(2309, "floor", &[T::FLOAT8], T::FLOAT8, floor),
    scalar(2310, "sign", &[T::FLOAT8], T::FLOAT8, sign),
    scalar(2320, "ceiling", &[T::FLOAT8], T::FLOAT8, ceil),
    scalar(2462, "sinh", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::sinh)),
    scalar(2463, "cosh", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::cosh)),
    scalar(2464, "tanh", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::tanh)),
    scalar(2465, "asinh", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::asinh)),
    scalar(2466, "acosh", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::acosh)),
    scalar(2467, "atanh", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::atanh)),
    scalar(2731, "asind", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::asind)),
    scalar(2732, "acosd", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::acosd)),
    scalar(2733, "atand", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::atand)),
    scalar(2734, "atan2d", &[T::FLOAT8, T::FLOAT8], T::FLOAT8, atan2d),
    scalar(2735, "sind", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::sind)),
    scalar(2736, "cosd", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::cosd)),
    scalar(2737, "tand", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::tand)),
    scalar(2738, "cotd", &[T::FLOAT8], T::FLOAT8, |args| unary(args, angle::cotd)),
    session(1598, "random", &[], T::FLOAT8).volatile(),
    session(1599, "setseed", &[T::FLOAT8], T::VOID).volatile(),
];
