//! Casts of `jsonb` to scalars.

use super::mismatch;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::json::Jsonb;
use crate::numeric::Numeric;
use crate::row::IoEnv;
use crate::sql_type::SqlType;

fn json(value: &Datum) -> Result<&Jsonb, ValueError> {
    if let Datum::Jsonb(json) = value { Ok(json) } else { Err(mismatch()) }
}

pub(super) fn to_bool(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    json(&value)?.to_bool().map(Datum::Bool)
}

pub(super) fn to_numeric(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Numeric::parse(json(&value)?.to_number()?.as_str()).map(Datum::Numeric)
}

pub(super) fn to_int(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let json = json(&value)?;
    Ok(Datum::Int(match to.base() {
        SqlType::INT2 => json.to_i16()?.into(),
        SqlType::INT4 => json.to_i32()?.into(),
        _ => json.to_i64()?,
    }))
}

pub(super) fn to_real(value: Datum, to: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let number = Numeric::parse(json(&value)?.to_number_for_real()?.as_str())?;
    super::numbers::numeric_to_float(Datum::Numeric(number), to, env)
}

pub(super) fn to_double(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    json(&value)?.to_f64().map(Datum::Float)
}
