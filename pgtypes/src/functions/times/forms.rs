//! `to_char`, `to_date` and `to_timestamp`: dates and times by a template.

use super::super::row::{ProcRow, scalar};
use super::value::{Outcome, ts, tstz};
use crate::SqlType as T;
use crate::datetime::{Date, TimestampTz};

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(2049, "to_char", &[T::TIMESTAMP, T::TEXT], T::TEXT, |a| ts(a, 0)?.to_char(a.text(1)?).datum()).stable(),
    scalar(1770, "to_char", &[T::TIMESTAMPTZ, T::TEXT], T::TEXT, |a| {
        tstz(a, 0)?.to_char(a.text(1)?, a.env().zone).datum()
    })
    .stable(),
    scalar(1768, "to_char", &[T::INTERVAL, T::TEXT], T::TEXT, |a| a.interval(0)?.to_char(a.text(1)?).datum()).stable(),
    scalar(1778, "to_timestamp", &[T::TEXT, T::TEXT], T::TIMESTAMPTZ, |a| {
        TimestampTz::from_template(a.text(0)?, a.text(1)?, &a.env().session()).datum()
    })
    .stable(),
    scalar(1780, "to_date", &[T::TEXT, T::TEXT], T::DATE, |a| Date::from_template(a.text(0)?, a.text(1)?).datum())
        .stable(),
];
