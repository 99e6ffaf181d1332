//! Lengths of time in microseconds, and the ranges of the types.

/// Microseconds of a second.
pub(super) const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub(super) const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub(super) const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day of 24 hours.
pub(super) const DAY: i64 = 24 * HOUR;
/// Seconds of a day.
pub(super) const SECONDS_PER_DAY: i64 = 86_400;

/// The first finite timestamp: 4714-11-24 BC.
pub(super) const FIRST_TIMESTAMP: i64 = -211_813_488_000_000_000;
/// One after the last finite timestamp: the start of 294277.
pub(super) const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;
/// The first finite date: 4714-11-24 BC.
pub(super) const FIRST_DATE: i64 = -2_451_545;
/// One after the last finite date, 5874897-12-31.
pub(super) const END_DATE: i64 = 2_145_031_949;
/// One after the last date that has a timestamp.
pub(super) const END_TIMESTAMP_DATE: i64 = END_TIMESTAMP / DAY;

/// Rounds microseconds to `digits` after the second, halves away from zero.
pub(super) fn round_to(micros: i64, digits: u32) -> i64 {
    let scale = 10i64.pow(6 - digits.min(6));
    let half = scale / 2;
    if micros >= 0 {
        micros.wrapping_add(half) / scale * scale
    } else {
        (micros.wrapping_neg().wrapping_add(half) / scale * scale).wrapping_neg()
    }
}
