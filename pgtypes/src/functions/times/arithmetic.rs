//! The operators `+`, `-`, `*` and `/`, `age`, and `justify_*`.

use super::super::row::{ProcRow, scalar};
use super::value::{Outcome, time, ts, tstz};
use crate::SqlType as T;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    // Dates
    scalar(1140, "date_mi", &[T::DATE, T::DATE], T::INT4, |a| a.date(0)?.minus(a.date(1)?).datum()),
    scalar(1141, "date_pli", &[T::DATE, T::INT4], T::DATE, |a| a.date(0)?.plus_days(a.i32(1)?).datum()),
    scalar(1142, "date_mii", &[T::DATE, T::INT4], T::DATE, |a| a.date(0)?.minus_days(a.i32(1)?).datum()),
    scalar(2550, "integer_pl_date", &[T::INT4, T::DATE], T::DATE, |a| a.date(1)?.plus_days(a.i32(0)?).datum()),
    scalar(2071, "date_pl_interval", &[T::DATE, T::INTERVAL], T::TIMESTAMP, |a| {
        a.date(0)?.plus_interval(a.interval(1)?).datum()
    }),
    scalar(2072, "date_mi_interval", &[T::DATE, T::INTERVAL], T::TIMESTAMP, |a| {
        a.date(0)?.minus_interval(a.interval(1)?).datum()
    }),
    scalar(2546, "interval_pl_date", &[T::INTERVAL, T::DATE], T::TIMESTAMP, |a| {
        a.date(1)?.plus_interval(a.interval(0)?).datum()
    }),
    scalar(1272, "datetime_pl", &[T::DATE, T::TIME], T::TIMESTAMP, |a| a.date(0)?.plus_time(time(a, 1)?).datum()),
    scalar(2025, "timestamp", &[T::DATE, T::TIME], T::TIMESTAMP, |a| a.date(0)?.plus_time(time(a, 1)?).datum()),
    scalar(1296, "timedate_pl", &[T::TIME, T::DATE], T::TIMESTAMP, |a| a.date(1)?.plus_time(time(a, 0)?).datum()),
    scalar(1176, "timestamptz", &[T::DATE, T::TIME], T::TIMESTAMPTZ, |a| {
        a.date(0)?.plus_time(time(a, 1)?)?.to_timestamptz(a.env().zone).datum()
    })
    .stable(),
    scalar(1297, "datetimetz_pl", &[T::DATE, T::TIMETZ], T::TIMESTAMPTZ, |a| {
        a.date(0)?.plus_timetz(a.timetz(1)?).datum()
    }),
    scalar(1359, "timestamptz", &[T::DATE, T::TIMETZ], T::TIMESTAMPTZ, |a| {
        a.date(0)?.plus_timetz(a.timetz(1)?).datum()
    }),
    scalar(1298, "timetzdate_pl", &[T::TIMETZ, T::DATE], T::TIMESTAMPTZ, |a| {
        a.date(1)?.plus_timetz(a.timetz(0)?).datum()
    }),
    // Times of the day
    scalar(1690, "time_mi_time", &[T::TIME, T::TIME], T::INTERVAL, |a| time(a, 0)?.minus(time(a, 1)?).datum()),
    scalar(1747, "time_pl_interval", &[T::TIME, T::INTERVAL], T::TIME, |a| time(a, 0)?.plus(a.interval(1)?).datum()),
    scalar(1848, "interval_pl_time", &[T::INTERVAL, T::TIME], T::TIME, |a| time(a, 1)?.plus(a.interval(0)?).datum()),
    scalar(1748, "time_mi_interval", &[T::TIME, T::INTERVAL], T::TIME, |a| {
        time(a, 0)?.minus_interval(a.interval(1)?).datum()
    }),
    scalar(1749, "timetz_pl_interval", &[T::TIMETZ, T::INTERVAL], T::TIMETZ, |a| {
        a.timetz(0)?.plus(a.interval(1)?).datum()
    }),
    scalar(2547, "interval_pl_timetz", &[T::INTERVAL, T::TIMETZ], T::TIMETZ, |a| {
        a.timetz(1)?.plus(a.interval(0)?).datum()
    }),
    scalar(1750, "timetz_mi_interval", &[T::TIMETZ, T::INTERVAL], T::TIMETZ, |a| {
        a.timetz(0)?.minus_interval(a.interval(1)?).datum()
    }),
    // Timestamps
    scalar(2031, "timestamp_mi", &[T::TIMESTAMP, T::TIMESTAMP], T::INTERVAL, |a| ts(a, 0)?.minus(ts(a, 1)?).datum()),
    scalar(2032, "timestamp_pl_interval", &[T::TIMESTAMP, T::INTERVAL], T::TIMESTAMP, |a| {
        ts(a, 0)?.plus(a.interval(1)?).datum()
    }),
    scalar(2548, "interval_pl_timestamp", &[T::INTERVAL, T::TIMESTAMP], T::TIMESTAMP, |a| {
        ts(a, 1)?.plus(a.interval(0)?).datum()
    }),
    scalar(2033, "timestamp_mi_interval", &[T::TIMESTAMP, T::INTERVAL], T::TIMESTAMP, |a| {
        ts(a, 0)?.minus_interval(a.interval(1)?).datum()
    }),
    scalar(1188, "timestamptz_mi", &[T::TIMESTAMPTZ, T::TIMESTAMPTZ], T::INTERVAL, |a| {
        tstz(a, 0)?.minus(tstz(a, 1)?).datum()
    }),
    scalar(1189, "timestamptz_pl_interval", &[T::TIMESTAMPTZ, T::INTERVAL], T::TIMESTAMPTZ, |a| {
        tstz(a, 0)?.plus(a.interval(1)?, a.env().zone).datum()
    })
    .stable(),
    scalar(2549, "interval_pl_timestamptz", &[T::INTERVAL, T::TIMESTAMPTZ], T::TIMESTAMPTZ, |a| {
        tstz(a, 1)?.plus(a.interval(0)?, a.env().zone).datum()
    })
    .stable(),
    scalar(1190, "timestamptz_mi_interval", &[T::TIMESTAMPTZ, T::INTERVAL], T::TIMESTAMPTZ, |a| {
        tstz(a, 0)?.minus_interval(a.interval(1)?, a.env().zone).datum()
    })
    .stable(),
    scalar(2058, "age", &[T::TIMESTAMP, T::TIMESTAMP], T::INTERVAL, |a| ts(a, 0)?.age(ts(a, 1)?).datum()),
    scalar(2059, "age", &[T::TIMESTAMP], T::INTERVAL, |a| ts(a, 0)?.age_today(&a.env().session()).datum()).stable(),
    scalar(1199, "age", &[T::TIMESTAMPTZ, T::TIMESTAMPTZ], T::INTERVAL, |a| {
        tstz(a, 0)?.age(tstz(a, 1)?, a.env().zone).datum()
    }),
    scalar(1386, "age", &[T::TIMESTAMPTZ], T::INTERVAL, |a| tstz(a, 0)?.age_today(&a.env().session()).datum()).stable(),
    // Intervals
    scalar(1168, "interval_um", &[T::INTERVAL], T::INTERVAL, |a| a.interval(0)?.negate().datum()),
    scalar(1169, "interval_pl", &[T::INTERVAL, T::INTERVAL], T::INTERVAL, |a| {
        a.interval(0)?.plus(a.interval(1)?).datum()
    }),
    scalar(1170, "interval_mi", &[T::INTERVAL, T::INTERVAL], T::INTERVAL, |a| {
        a.interval(0)?.minus(a.interval(1)?).datum()
    }),
    scalar(1618, "interval_mul", &[T::INTERVAL, T::FLOAT8], T::INTERVAL, |a| {
        a.interval(0)?.multiply(a.float(1)?).datum()
    }),
    scalar(1624, "mul_d_interval", &[T::FLOAT8, T::INTERVAL], T::INTERVAL, |a| {
        a.interval(1)?.multiply(a.float(0)?).datum()
    }),
    scalar(1326, "interval_div", &[T::INTERVAL, T::FLOAT8], T::INTERVAL, |a| {
        a.interval(0)?.divide(a.float(1)?).datum()
    }),
    scalar(1175, "justify_hours", &[T::INTERVAL], T::INTERVAL, |a| a.interval(0)?.justify_hours().datum()),
    scalar(1295, "justify_days", &[T::INTERVAL], T::INTERVAL, |a| a.interval(0)?.justify_days().datum()),
    scalar(2711, "justify_interval", &[T::INTERVAL], T::INTERVAL, |a| a.interval(0)?.justify_interval().datum()),
];
