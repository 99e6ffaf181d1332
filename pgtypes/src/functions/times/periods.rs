//! `overlaps` and `generate_series`.

use super::super::args::Args;
use super::super::row::{ProcRow, SetRows, scalar, set};
use super::value::{Outcome, time, ts, tstz};
use crate::SqlType as T;
use crate::datetime::{Interval, Series, overlaps};
use crate::datum::Datum;
use crate::error::ValueError;

const fn overlap(oid: u32, args: &'static [T], run: fn(&Args<'_>) -> Result<Datum, ValueError>) -> ProcRow {
    scalar(oid, "overlaps", args, T::BOOL, run).on_null()
}

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    overlap(1304, &[T::TIMESTAMPTZ, T::TIMESTAMPTZ, T::TIMESTAMPTZ, T::TIMESTAMPTZ], overlaps_timestamptz),
    overlap(1305, &[T::TIMESTAMPTZ, T::INTERVAL, T::TIMESTAMPTZ, T::INTERVAL], overlaps_timestamptz).stable(),
    overlap(1306, &[T::TIMESTAMPTZ, T::TIMESTAMPTZ, T::TIMESTAMPTZ, T::INTERVAL], overlaps_timestamptz).stable(),
    overlap(1307, &[T::TIMESTAMPTZ, T::INTERVAL, T::TIMESTAMPTZ, T::TIMESTAMPTZ], overlaps_timestamptz).stable(),
    overlap(2041, &[T::TIMESTAMP, T::TIMESTAMP, T::TIMESTAMP, T::TIMESTAMP], overlaps_timestamp),
    overlap(2042, &[T::TIMESTAMP, T::INTERVAL, T::TIMESTAMP, T::INTERVAL], overlaps_timestamp),
    overlap(2043, &[T::TIMESTAMP, T::TIMESTAMP, T::TIMESTAMP, T::INTERVAL], overlaps_timestamp),
    overlap(2044, &[T::TIMESTAMP, T::INTERVAL, T::TIMESTAMP, T::TIMESTAMP], overlaps_timestamp),
    overlap(1308, &[T::TIME, T::TIME, T::TIME, T::TIME], overlaps_time),
    overlap(1309, &[T::TIME, T::INTERVAL, T::TIME, T::INTERVAL], overlaps_time),
    overlap(1310, &[T::TIME, T::TIME, T::TIME, T::INTERVAL], overlaps_time),
    overlap(1311, &[T::TIME, T::INTERVAL, T::TIME, T::TIME], overlaps_time),
    overlap(1271, &[T::TIMETZ, T::TIMETZ, T::TIMETZ, T::TIMETZ], overlaps_timetz),
    set(938, "generate_series", &[T::TIMESTAMP, T::TIMESTAMP, T::INTERVAL], T::TIMESTAMP, series_timestamp),
    set(939, "generate_series", &[T::TIMESTAMPTZ, T::TIMESTAMPTZ, T::INTERVAL], T::TIMESTAMPTZ, series_timestamptz)
        .stable(),
];

fn overlaps_timestamptz(args: &Args<'_>) -> Result<Datum, ValueError> {
    overlaps_of(args, tstz, |start, length| start.plus(length, args.env().zone))
}

fn overlaps_timestamp(args: &Args<'_>) -> Result<Datum, ValueError> {
    overlaps_of(args, ts, |start, length| start.plus(length))
}

fn overlaps_time(args: &Args<'_>) -> Result<Datum, ValueError> {
    overlaps_of(args, time, |start, length| Ok(start.plus(length)))
}

fn overlaps_timetz(args: &Args<'_>) -> Result<Datum, ValueError> {
    overlaps_of(args, |args, at| args.timetz(at), |start, length| Ok(start.plus(length)))
}

/// Whether two periods overlap. Each is two ends, or an end and a length to add.
fn overlaps_of<T: Ord + Copy>(
    args: &Args<'_>,
    read: fn(&Args<'_>, usize) -> Result<T, ValueError>,
    add: impl Fn(T, Interval) -> Result<T, ValueError>,
) -> Result<Datum, ValueError> {
    let end = |at: usize| if args.is_null(at) { Ok(None) } else { read(args, at).map(Some) };
    let period = |at: usize| -> Result<_, ValueError> {
        let start = end(at)?;
        let stop = match (start, args.get(at + 1)) {
            (Some(start), Datum::Interval(length)) => Some(add(start, *length)?),
            (None, Datum::Interval(_)) => None,
            _ => end(at + 1)?,
        };
        Ok((start, stop))
    };
    overlaps(period(0)?, period(2)?).datum()
}

fn series_timestamp(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let mut series = Series::new(ts(args, 0)?, ts(args, 1)?, args.interval(2)?)?;
    Ok(rows(move || series.next_value()))
}

fn series_timestamptz(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let mut series = Series::new(tstz(args, 0)?, tstz(args, 1)?, args.interval(2)?)?;
    let zone = args.env().zone.clone();
    Ok(rows(move || series.next_value(&zone)))
}

/// The rows until there is no further value. An error is the last row.
fn rows<T: Outcome>(mut next: impl FnMut() -> Result<Option<T>, ValueError> + Send + Sync + 'static) -> SetRows {
    let mut failed = false;
    Box::new(std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let row = next().transpose()?.datum().map(|value| vec![value]);
        failed = row.is_err();
        Some(row)
    }))
}
