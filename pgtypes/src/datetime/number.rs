//! Numbers in dates and times, as C's `strtol` and `strtod` read them.

use super::fault::Fault;
use super::units::SECOND;
use crate::letters::is_space;

/// The integer that a text starts with, after blanks; 0 if it starts with none; and the rest. `None` out of `i64`.
pub(super) fn leading_i64(text: &str) -> Option<(i64, &str)> {
    let signed = text.trim_start_matches(is_space);
    let digits_from = usize::from(signed.starts_with(['+', '-']));
    let digits = signed.get(digits_from..).unwrap_or("");
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return Some((0, text));
    }
    let (number, rest) = signed.split_at(digits_from + count);
    Some((number.parse().ok()?, rest))
}

/// As [`leading_i64`], `None` out of `i32`.
pub(super) fn leading_i32(text: &str) -> Option<(i64, &str)> {
    leading_i64(text).filter(|(value, _)| i32::try_from(*value).is_ok())
}

/// A text that is a point and digits, as a fraction.
pub(super) fn fraction(text: &str) -> Result<f64, Fault> {
    let digits = text.strip_prefix('.').ok_or(Fault::Format)?;
    if digits.is_empty() {
        return Ok(0.0);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    text.parse().map_err(|_| Fault::Format)
}

/// The microseconds of a point and digits after seconds, 0 to 1000000.
pub(super) fn fraction_micros(text: &str) -> Result<i64, Fault> {
    Ok(whole(fraction(text)? * 1e6))
}

/// The nearest integer, halves to even. Out of range, the nearest end.
pub(super) fn whole(value: f64) -> i64 {
    value.round_ties_even() as i64
}

/// Multiplies a fraction below 1 with a unit, in microseconds, halves towards zero.
pub(super) fn scaled_micros(fraction: f64, unit: i64) -> i64 {
    let exact = fraction * unit as f64;
    let micros = exact.trunc();
    let rest = exact - micros;
    let adjusted = micros as i64;
    if rest > 0.5 {
        adjusted + 1
    } else if rest < -0.5 {
        adjusted - 1
    } else {
        adjusted
    }
}

/// The hours, minutes, seconds and microseconds of `h:m`, `h:m:s`, `m:s.f`, `h:m:s.f`. With `minutes_first`, two
/// numbers are minutes and seconds. Hours are not bounded here.
pub(super) fn clock(text: &str, minutes_first: bool) -> Result<(i64, i64, i64, i64), Fault> {
    let (mut hour, rest) = leading_i64(text).ok_or(Fault::Field)?;
    let rest = rest.strip_prefix(':').ok_or(Fault::Format)?;
    let (mut minute, rest) = leading_i32(rest).ok_or(Fault::Field)?;
    let (mut second, mut micros) = (0, 0);
    if rest.is_empty() {
        if minutes_first {
            (hour, minute, second) = (0, hour, minute);
        }
    } else if rest.starts_with('.') {
        micros = fraction_micros(rest)?;
        (hour, minute, second) = (0, hour, minute);
    } else {
        let rest = rest.strip_prefix(':').ok_or(Fault::Format)?;
        let (value, rest) = leading_i32(rest).ok_or(Fault::Field)?;
        second = value;
        if !rest.is_empty() {
            micros = fraction_micros(rest)?;
        }
    }
    let fits = hour >= 0 && (0..=59).contains(&minute) && (0..=60).contains(&second) && (0..=SECOND).contains(&micros);
    if fits { Ok((hour, minute, second, micros)) } else { Err(Fault::Field) }
}

/// Whether a time of the day is after 24:00:00, or has a field out of its range.
pub(super) fn clock_overflows(hour: i64, minute: i64, second: i64, micros: i64) -> bool {
    let fits = (0..=24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (0..=SECOND).contains(&micros);
    !fits || (hour * 3600 + minute * 60 + second) * SECOND + micros > super::units::DAY
}

/// The offset of a zone such as `+8`, `-08:30`, `+0530`, `-08:00:30`, in seconds east of Greenwich.
pub(super) fn zone_offset(text: &str) -> Result<i64, Fault> {
    let unsigned = text.strip_prefix(['+', '-']).ok_or(Fault::Format)?;
    let (mut hour, mut rest) = leading_i32(unsigned).ok_or(Fault::Offset)?;
    let (mut minute, mut second) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minute, rest) = leading_i32(after).ok_or(Fault::Offset)?;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = leading_i32(after).ok_or(Fault::Offset)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hour, minute) = (hour / 100, hour % 100);
    }
    if !(0..=15).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(Fault::Offset);
    }
    if !rest.is_empty() {
        return Err(Fault::Format);
    }
    let size = (hour * 60 + minute) * 60 + second;
    Ok(if text.starts_with('-') { -size } else { size })
}
