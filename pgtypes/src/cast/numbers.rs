//! Casts between numbers, and of what is stored as a number.

use super::mismatch;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::integer::int_range;
use crate::numeric::Numeric;
use crate::row::IoEnv;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

fn out_of_range(ty: SqlType) -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", ty.base_name()))
}

/// An integer as a value of a possibly narrower integer type.
pub fn to_int(value: i64, ty: SqlType) -> Result<Datum, ValueError> {
    let (low, high) = int_range(ty);
    if (low..=high).contains(&value) { Ok(Datum::Int(value)) } else { Err(out_of_range(ty)) }
}

/// The nearest float. Not exact above 2^53, as in PostgreSQL.
pub fn int_to_float(value: i64) -> f64 {
    value as f64
}

fn int(value: &Datum) -> Result<i64, ValueError> {
    if let Datum::Int(value) = value { Ok(*value) } else { Err(mismatch()) }
}

fn float(value: &Datum) -> Result<f64, ValueError> {
    if let Datum::Float(value) = value { Ok(*value) } else { Err(mismatch()) }
}

pub(super) fn to_narrower(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    to_int(int(&value)?, to)
}

pub(super) fn int_to_double(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Float(int_to_float(int(&value)?)))
}

pub(super) fn int_to_real(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Float((int(&value)? as f32).into()))
}

pub(super) fn to_real(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let wide = float(&value)?;
    let narrow = crate::float::narrow(wide);
    let problem = match () {
        () if narrow.is_infinite() && wide.is_finite() => "overflow",
        () if narrow == 0.0 && wide != 0.0 => "underflow",
        () => return Ok(Datum::Float(narrow.into())),
    };
    Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {problem}")))
}

pub(super) fn float_to_int(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let rounded = float(&value)?.round_ties_even();
    // The upper bound 2^63 is exact as a float, and excluded.
    let (low, end) = match to.base() {
        SqlType::INT2 => (-32_768.0, 32_768.0),
        SqlType::INT4 => (-2_147_483_648.0, 2_147_483_648.0),
        _ => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0),
    };
    if rounded.is_nan() || rounded < low || rounded >= end {
        return Err(out_of_range(to));
    }
    // Checked against the type's range above.
    Ok(Datum::Int(rounded as i64))
}

/// A `bigint` as an OID. A negative one is out of range.
pub(super) fn wide_to_oid(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    match int(&value)? {
        value if (0..=i64::from(u32::MAX)).contains(&value) => Ok(Datum::Int(value)),
        _ => Err(oid_out_of_range()),
    }
}

fn oid_out_of_range() -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range")
}

/// A narrower integer as an OID.
pub(super) fn to_oid(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    match int(&value)? {
        value if (0..=i64::from(u32::MAX)).contains(&value) => Ok(Datum::Int(value)),
        // A negative integer is the OID of the same bits.
        value if (i64::from(i32::MIN)..0).contains(&value) => Ok(Datum::Int(value & i64::from(u32::MAX))),
        _ => Err(oid_out_of_range()),
    }
}

pub(super) fn oid_to_int4(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let bits = u32::try_from(int(&value)?).map_err(|_| mismatch())?;
    Ok(Datum::Int(bits.cast_signed().into()))
}

pub(super) fn int_to_bool(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(int(&value)? != 0))
}

pub(super) fn bool_to_int(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(i64::from(value == Datum::Bool(true))))
}

pub(super) fn int_to_numeric(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Numeric(Numeric::from(int(&value)?)))
}

pub(super) fn real_to_numeric(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Numeric::from_f32(crate::float::narrow(float(&value)?)).map(Datum::Numeric)
}

pub(super) fn double_to_numeric(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Numeric::from_f64(float(&value)?).map(Datum::Numeric)
}

fn numeric(value: &Datum) -> Result<&Numeric, ValueError> {
    if let Datum::Numeric(value) = value { Ok(value) } else { Err(mismatch()) }
}

pub(super) fn numeric_to_int(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let number = numeric(&value)?;
    Ok(Datum::Int(match to.base() {
        SqlType::INT2 => number.to_i16()?.into(),
        SqlType::INT4 => number.to_i32()?.into(),
        _ => number.to_i64()?,
    }))
}

pub(super) fn numeric_to_float(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let number = numeric(&value)?;
    Ok(Datum::Float(if to.base() == SqlType::FLOAT4 { number.to_f32()?.into() } else { number.to_f64()? }))
}

pub(super) fn xid8_to_xid(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(int(&value)? & i64::from(u32::MAX)))
}
