//! Casts between dates, times and spans of time. Infinite timestamps have no time.

use super::row::mismatch;
use crate::datetime::{Date, Time, Timestamp, TimestampTz};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::row::IoEnv;
use crate::sql_type::SqlType;

fn int(value: &Datum) -> Result<i64, ValueError> {
    if let Datum::Int(value) = value { Ok(*value) } else { Err(mismatch()) }
}

fn date(value: &Datum) -> Result<Date, ValueError> {
    i32::try_from(int(value)?).map(Date).map_err(|_| mismatch())
}

pub(super) fn date_to_timestamp(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(date(&value)?.to_timestamp()?.0))
}

pub(super) fn date_to_timestamptz(value: Datum, _: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(date(&value)?.to_timestamptz(env.zone)?.0))
}

pub(super) fn time_to_interval(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Interval(Time(int(&value)?).to_interval()))
}

pub(super) fn time_to_timetz(value: Datum, _: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::TimeTz(Time(int(&value)?).to_timetz(&env.session())))
}

pub(super) fn timestamp_to_date(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(Timestamp(int(&value)?).to_date().0.into()))
}

pub(super) fn timestamp_to_time(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Timestamp(int(&value)?).to_time().map_or(Datum::Null, |time| Datum::Int(time.0)))
}

pub(super) fn timestamp_to_timestamptz(value: Datum, _: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(Timestamp(int(&value)?).to_timestamptz(env.zone)?.0))
}

pub(super) fn timestamptz_to_date(value: Datum, _: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(TimestampTz(int(&value)?).to_date(env.zone).0.into()))
}

pub(super) fn timestamptz_to_time(value: Datum, _: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(TimestampTz(int(&value)?).to_time(env.zone).map_or(Datum::Null, |time| Datum::Int(time.0)))
}

pub(super) fn timestamptz_to_timestamp(value: Datum, _: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(TimestampTz(int(&value)?).to_timestamp(env.zone)?.0))
}

pub(super) fn timestamptz_to_timetz(value: Datum, _: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(TimestampTz(int(&value)?).to_timetz(env.zone).map_or(Datum::Null, Datum::TimeTz))
}

pub(super) fn interval_to_time(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Interval(interval) = value else { return Err(mismatch()) };
    Ok(Datum::Int(interval.to_time().0))
}

pub(super) fn timetz_to_time(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::TimeTz(time) = value else { return Err(mismatch()) };
    Ok(Datum::Int(time.to_time().0))
}
