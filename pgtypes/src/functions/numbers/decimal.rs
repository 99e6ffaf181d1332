//! Arithmetic and mathematics of `numeric`.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, scalar};
use crate::numeric::Numeric;
use crate::sql_type::SqlType as T;

type Checked = Result<Numeric, ValueError>;

fn unary(args: &Args<'_>, function: fn(&Numeric) -> Checked) -> Result<Datum, ValueError> {
    function(args.numeric(0)?).map(Datum::Numeric)
}

/// A function that never fails.
fn total(args: &Args<'_>, function: fn(&Numeric) -> Numeric) -> Result<Datum, ValueError> {
    Ok(Datum::Numeric(function(args.numeric(0)?)))
}

fn binary(args: &Args<'_>, function: fn(&Numeric, &Numeric) -> Checked) -> Result<Datum, ValueError> {
    function(args.numeric(0)?, args.numeric(1)?).map(Datum::Numeric)
}

/// A function with a scale.
fn scaled(args: &Args<'_>, function: fn(&Numeric, i32) -> Checked) -> Result<Datum, ValueError> {
    function(args.numeric(0)?, args.i32(1)?).map(Datum::Numeric)
}

/// A scale; NULL of values that are no numbers.
fn scale_of(args: &Args<'_>, function: fn(&Numeric) -> Option<u16>) -> Result<Datum, ValueError> {
    Ok(function(args.numeric(0)?).map_or(Datum::Null, |scale| Datum::Int(scale.into())))
}

pub(super) static ROWS: &[ProcRow] = &[
    scalar(1376, "factorial", &[T::INT8], T::NUMERIC, |args| Numeric::factorial(args.int(0)?).map(Datum::Numeric)),
    scalar(1481, "log10", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::log10)),
    scalar(1704, "numeric_abs", &[T::NUMERIC], T::NUMERIC, |args| total(args, Numeric::abs)),
    scalar(1705, "abs", &[T::NUMERIC], T::NUMERIC, |args| total(args, Numeric::abs)),
    scalar(1706, "sign", &[T::NUMERIC], T::NUMERIC, |args| total(args, Numeric::sign)),
    scalar(1707, "round", &[T::NUMERIC, T::INT4], T::NUMERIC, |args| scaled(args, Numeric::round)),
    scalar(1708, "round", &[T::NUMERIC], T::NUMERIC, |args| unary(args, |value| value.round(0))),
    scalar(1709, "trunc", &[T::NUMERIC, T::INT4], T::NUMERIC, |args| scaled(args, Numeric::trunc)),
    scalar(1710, "trunc", &[T::NUMERIC], T::NUMERIC, |args| unary(args, |value| value.trunc(0))),
    scalar(1711, "ceil", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::ceil)),
    scalar(1712, "floor", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::floor)),
    scalar(1724, "numeric_add", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::add)),
    scalar(1725, "numeric_sub", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::sub)),
    scalar(1726, "numeric_mul", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::mul)),
    scalar(1727, "numeric_div", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::div)),
    scalar(1728, "mod", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::rem)),
    scalar(1729, "numeric_mod", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::rem)),
    scalar(1730, "sqrt", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::sqrt)),
    scalar(1731, "numeric_sqrt", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::sqrt)),
    scalar(1732, "exp", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::exp)),
    scalar(1733, "numeric_exp", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::exp)),
    scalar(1734, "ln", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::ln)),
    scalar(1735, "numeric_ln", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::ln)),
    scalar(1736, "log", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::log)),
    scalar(1737, "numeric_log", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::log)),
    scalar(1738, "pow", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::power)),
    scalar(1739, "numeric_power", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::power)),
    scalar(1741, "log", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::log10)),
    scalar(1764, "numeric_inc", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::inc)),
    scalar(1771, "numeric_uminus", &[T::NUMERIC], T::NUMERIC, |args| total(args, Numeric::neg)),
    scalar(1915, "numeric_uplus", &[T::NUMERIC], T::NUMERIC, |args| total(args, Clone::clone)),
    scalar(1973, "div", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::div_trunc)),
    scalar(1980, "numeric_div_trunc", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::div_trunc)),
    scalar(2167, "ceiling", &[T::NUMERIC], T::NUMERIC, |args| unary(args, Numeric::ceil)),
    scalar(2169, "power", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::power)),
    scalar(3281, "scale", &[T::NUMERIC], T::INT4, |args| scale_of(args, Numeric::scale)),
    scalar(5042, "min_scale", &[T::NUMERIC], T::INT4, |args| scale_of(args, Numeric::min_scale)),
    scalar(5043, "trim_scale", &[T::NUMERIC], T::NUMERIC, |args| total(args, Numeric::trim_scale)),
    scalar(5048, "gcd", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::gcd)),
    scalar(5049, "lcm", &[T::NUMERIC, T::NUMERIC], T::NUMERIC, |args| binary(args, Numeric::lcm)),
];
