//! `AT TIME ZONE` (the function `timezone`), and the present time.

use super::super::row::{ProcRow, scalar, session};
use super::value::{Outcome, ts, tstz};
use crate::SqlType as T;
use crate::datetime::TimestampTz;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(2069, "timezone", &[T::TEXT, T::TIMESTAMP], T::TIMESTAMPTZ, |a| ts(a, 1)?.at_zone(a.text(0)?).datum()),
    scalar(2070, "timezone", &[T::INTERVAL, T::TIMESTAMP], T::TIMESTAMPTZ, |a| {
        ts(a, 1)?.at_interval(a.interval(0)?, &a.env().session()).datum()
    }),
    scalar(1159, "timezone", &[T::TEXT, T::TIMESTAMPTZ], T::TIMESTAMP, |a| tstz(a, 1)?.at_zone(a.text(0)?).datum()),
    scalar(1026, "timezone", &[T::INTERVAL, T::TIMESTAMPTZ], T::TIMESTAMP, |a| {
        tstz(a, 1)?.at_interval(a.interval(0)?, &a.env().session()).datum()
    }),
    scalar(2037, "timezone", &[T::TEXT, T::TIMETZ], T::TIMETZ, |a| {
        a.timetz(1)?.at_zone(a.text(0)?, &a.env().session()).datum()
    })
    .stable(),
    scalar(2038, "timezone", &[T::INTERVAL, T::TIMETZ], T::TIMETZ, |a| {
        a.timetz(1)?.at_interval(a.interval(0)?, &a.env().session()).datum()
    }),
    scalar(1299, "now", &[], T::TIMESTAMPTZ, |a| TimestampTz::current(&a.env().session()).datum()).stable(),
    scalar(2647, "transaction_timestamp", &[], T::TIMESTAMPTZ, |a| TimestampTz::current(&a.env().session()).datum())
        .stable(),
    session(2648, "statement_timestamp", &[], T::TIMESTAMPTZ),
    session(2649, "clock_timestamp", &[], T::TIMESTAMPTZ).volatile(),
    session(274, "timeofday", &[], T::TEXT).volatile(),
    session(2626, "pg_sleep", &[T::FLOAT8], T::VOID).volatile(),
    session(3935, "pg_sleep_for", &[T::INTERVAL], T::VOID).volatile(),
    session(3936, "pg_sleep_until", &[T::TIMESTAMPTZ], T::VOID).volatile(),
];
