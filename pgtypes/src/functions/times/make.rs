//! `make_*` and `to_timestamp(float8)`: dates and times of numbers.

use super::super::args::Args;
use super::super::row::{ProcRow, scalar};
use super::value::Outcome;
use crate::SqlType as T;
use crate::datetime::{Date, Interval, IntervalArgs, Time, Timestamp, TimestampTz};
use crate::datum::Datum;
use crate::error::ValueError;

/// The types of a date and a time in numbers, and of a zone.
const MOMENT: [T; 7] = [T::INT4, T::INT4, T::INT4, T::INT4, T::INT4, T::FLOAT8, T::TEXT];
const MOMENT_NAMES: [&str; 7] = ["year", "month", "mday", "hour", "min", "sec", "timezone"];
const LOCAL: &[T] = MOMENT.split_at(6).0;
const LOCAL_NAMES: &[&str] = MOMENT_NAMES.split_at(6).0;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(3846, "make_date", &[T::INT4, T::INT4, T::INT4], T::DATE, |a| {
        Date::make(a.i32(0)?, a.i32(1)?, a.i32(2)?).datum()
    })
    .named(&["year", "month", "day"]),
    scalar(3847, "make_time", &[T::INT4, T::INT4, T::FLOAT8], T::TIME, |a| {
        Time::make(a.i32(0)?, a.i32(1)?, a.float(2)?).datum()
    })
    .named(&["hour", "min", "sec"]),
    scalar(3461, "make_timestamp", LOCAL, T::TIMESTAMP, |a| {
        Timestamp::make(ymd(a)?, a.i32(3)?, a.i32(4)?, a.float(5)?).datum()
    })
    .named(LOCAL_NAMES),
    scalar(3462, "make_timestamptz", LOCAL, T::TIMESTAMPTZ, |a| {
        TimestampTz::make(ymd(a)?, a.i32(3)?, a.i32(4)?, a.float(5)?, a.env().zone).datum()
    })
    .stable()
    .named(LOCAL_NAMES),
    scalar(3463, "make_timestamptz", &MOMENT, T::TIMESTAMPTZ, |a| {
        TimestampTz::make_in(ymd(a)?, a.i32(3)?, a.i32(4)?, a.float(5)?, a.text(6)?).datum()
    })
    .stable()
    .named(&MOMENT_NAMES),
    scalar(
        3464,
        "make_interval",
        &[T::INT4, T::INT4, T::INT4, T::INT4, T::INT4, T::INT4, T::FLOAT8],
        T::INTERVAL,
        make_interval,
    )
    .named(&["years", "months", "weeks", "days", "hours", "mins", "secs"])
    .defaults(&[Some("0"), Some("0"), Some("0"), Some("0"), Some("0"), Some("0"), Some("0.0")]),
    scalar(1158, "to_timestamp", &[T::FLOAT8], T::TIMESTAMPTZ, |a| TimestampTz::from_unix(a.float(0)?).datum()),
];

fn ymd(args: &Args<'_>) -> Result<(i32, i32, i32), ValueError> {
    Ok((args.i32(0)?, args.i32(1)?, args.i32(2)?))
}

fn make_interval(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (years, months, weeks) = ymd(args)?;
    let (days, hours, minutes) = (args.i32(3)?, args.i32(4)?, args.i32(5)?);
    Interval::make(IntervalArgs { years, months, weeks, days, hours, minutes, seconds: args.float(6)? }).datum()
}
