//! Casts of `jsonb` to scalars.

use super::numbers;
use super::row::mismatch;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::json::Jsonb;
use crate::row::IoEnv;
use crate::sql_type::SqlType;

fn json(value: &Datum) -> Result<&Jsonb, ValueError> {
    if let Datum::Jsonb(json) = value { Ok(json) } else { Err(mismatch()) }
}

pub(super) fn to_bool(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    json(&value)?.to_bool().map(Datum::Bool)
}

pub(super) fn to_numeric(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    json(&value)?.to_number(to.base_name()).cloned().map(Datum::Numeric)
}

pub(super) fn to_int(value: Datum, to: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    numbers::numeric_to_int(to_numeric(value, to, env)?, to, env)
}

pub(super) fn to_float(value: Datum, to: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    numbers::numeric_to_float(to_numeric(value, to, env)?, to, env)
}
