//! `extract`, `date_part`, `date_trunc`, `date_bin`, and `isfinite`.

use super::super::row::{ProcRow, scalar};
use super::value::{Outcome, time, ts, tstz};
use crate::SqlType as T;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(6199, "extract", &[T::TEXT, T::DATE], T::NUMERIC, |a| a.date(1)?.extract(a.text(0)?).datum()),
    scalar(6200, "extract", &[T::TEXT, T::TIME], T::NUMERIC, |a| time(a, 1)?.extract(a.text(0)?).datum()),
    scalar(6201, "extract", &[T::TEXT, T::TIMETZ], T::NUMERIC, |a| a.timetz(1)?.extract(a.text(0)?).datum()),
    scalar(6202, "extract", &[T::TEXT, T::TIMESTAMP], T::NUMERIC, |a| ts(a, 1)?.extract(a.text(0)?).datum()),
    scalar(6203, "extract", &[T::TEXT, T::TIMESTAMPTZ], T::NUMERIC, |a| {
        tstz(a, 1)?.extract(a.text(0)?, a.env().zone).datum()
    })
    .stable(),
    scalar(6204, "extract", &[T::TEXT, T::INTERVAL], T::NUMERIC, |a| a.interval(1)?.extract(a.text(0)?).datum()),
    scalar(1384, "date_part", &[T::TEXT, T::DATE], T::FLOAT8, |a| a.date(1)?.date_part(a.text(0)?).datum()),
    scalar(1385, "date_part", &[T::TEXT, T::TIME], T::FLOAT8, |a| time(a, 1)?.date_part(a.text(0)?).datum()),
    scalar(1273, "date_part", &[T::TEXT, T::TIMETZ], T::FLOAT8, |a| a.timetz(1)?.date_part(a.text(0)?).datum()),
    scalar(2021, "date_part", &[T::TEXT, T::TIMESTAMP], T::FLOAT8, |a| ts(a, 1)?.date_part(a.text(0)?).datum()),
    scalar(1171, "date_part", &[T::TEXT, T::TIMESTAMPTZ], T::FLOAT8, |a| {
        tstz(a, 1)?.date_part(a.text(0)?, a.env().zone).datum()
    })
    .stable(),
    scalar(1172, "date_part", &[T::TEXT, T::INTERVAL], T::FLOAT8, |a| a.interval(1)?.date_part(a.text(0)?).datum()),
    scalar(2020, "date_trunc", &[T::TEXT, T::TIMESTAMP], T::TIMESTAMP, |a| ts(a, 1)?.trunc(a.text(0)?).datum()),
    scalar(1217, "date_trunc", &[T::TEXT, T::TIMESTAMPTZ], T::TIMESTAMPTZ, |a| {
        tstz(a, 1)?.trunc(a.text(0)?, a.env().zone).datum()
    })
    .stable(),
    scalar(1284, "date_trunc", &[T::TEXT, T::TIMESTAMPTZ, T::TEXT], T::TIMESTAMPTZ, |a| {
        tstz(a, 1)?.trunc_in(a.text(0)?, a.text(2)?).datum()
    })
    .stable(),
    scalar(1218, "date_trunc", &[T::TEXT, T::INTERVAL], T::INTERVAL, |a| a.interval(1)?.trunc(a.text(0)?).datum()),
    scalar(6177, "date_bin", &[T::INTERVAL, T::TIMESTAMP, T::TIMESTAMP], T::TIMESTAMP, |a| {
        ts(a, 1)?.bin(a.interval(0)?, ts(a, 2)?).datum()
    }),
    scalar(6178, "date_bin", &[T::INTERVAL, T::TIMESTAMPTZ, T::TIMESTAMPTZ], T::TIMESTAMPTZ, |a| {
        tstz(a, 1)?.bin(a.interval(0)?, tstz(a, 2)?).datum()
    }),
    scalar(1373, "isfinite", &[T::DATE], T::BOOL, |a| a.date(0)?.is_finite().datum()),
    scalar(2048, "isfinite", &[T::TIMESTAMP], T::BOOL, |a| ts(a, 0)?.is_finite().datum()),
    scalar(1389, "isfinite", &[T::TIMESTAMPTZ], T::BOOL, |a| tstz(a, 0)?.is_finite().datum()),
    scalar(1390, "isfinite", &[T::INTERVAL], T::BOOL, |a| a.interval(0)?.is_finite().datum()),
];
