//! Lengths of time as text: PostgreSQL's interval input as far as a point in time needs it, and Go's short form
//! (`-1h30m`). In microseconds. Pure.
//!
//! A sign holds up to the next blank, as in both forms. A month has 30 days and a year 365.25, as PostgreSQL counts
//! them in an interval's length.

use std::time::Duration;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The longest length, in microseconds: about 10,000 years. Keeps later arithmetic within range.
const MAX: f64 = 3.2e17;

/// The length that a text says, in microseconds; `None` if it is not an interval. `bare`: the unit of a number alone,
/// in microseconds.
pub(super) fn parse(text: &str, bare: i64) -> Option<i64> {
    let text = text.trim();
    let (text, is_ago) = match text.len().checked_sub(3).and_then(|at| text.split_at_checked(at)) {
        Some((before, word)) if word.eq_ignore_ascii_case("ago") && before.ends_with(char::is_whitespace) => {
            (before.trim_end(), true)
        }
        _ => (text, false),
    };
    if let Ok(number) = text.parse::<f64>() {
        return in_range(number * bare as f64 * if is_ago { -1.0 } else { 1.0 });
    }
    let mut rest = text;
    let (mut total, mut sign) = (0.0, 1.0);
    while !rest.is_empty() {
        if let Some(next) = rest.strip_prefix(char::is_whitespace) {
            (rest, sign) = (next.trim_start(), 1.0);
        }
        if let Some(next) = rest.strip_prefix(['-', '+']) {
            sign = if rest.starts_with('-') { -1.0 } else { 1.0 };
            rest = next;
        }
        let end = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':'))).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let part = if number.contains(':') {
            rest = after;
            clock(number)?
        } else {
            let after = after.trim_start();
            let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
            let (unit, after) = after.split_at(end);
            rest = after;
            number.parse::<f64>().ok()? * unit_micros(unit)? as f64
        };
        total += sign * part;
    }
    in_range(if is_ago { -total } else { total }).filter(|_| !text.is_empty())
}

/// A length of time in a setting: positive, and at most 100 days. `None` for others.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let micros = parse(text, 1_000)?;
    u64::try_from(micros)
        .ok()
        .filter(|micros| (1..=(100 * DAY).cast_unsigned()).contains(micros))
        .map(Duration::from_micros)
}

/// Prints a length in the largest unit that divides it.
pub(super) fn show(length: Duration) -> String {
    let micros = length.as_micros();
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (1_000, "ms")];
    let unit = units.map(|(size, name)| (u128::from(size.cast_unsigned()), name));
    match unit.into_iter().find(|(size, _)| micros > 0 && micros.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", micros / size),
        None => format!("{micros}us"),
    }
}

/// `hh:mm` or `hh:mm:ss.f`.
fn clock(text: &str) -> Option<f64> {
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let whole = |part: &str| part.parse::<u32>().ok().map(f64::from);
    let seconds = seconds.parse::<f64>().ok()?;
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    let valid = minutes < 60.0 && seconds < 60.0 && parts.next().is_none();
    valid.then_some(hours * HOUR as f64 + minutes * MINUTE as f64 + seconds * SECOND as f64)
}

fn unit_micros(unit: &str) -> Option<i64> {
    Some(match unit.to_lowercase().as_str() {
        "us" | "µs" | "usec" | "usecs" | "microsecond" | "microseconds" => 1,
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hrs" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => 7 * DAY,
        "mon" | "mons" | "month" | "months" => 30 * DAY,
        "y" | "yr" | "yrs" | "year" | "years" => 365 * DAY + 6 * HOUR,
        _ => return None,
    })
}

fn in_range(micros: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
    (micros.abs() <= MAX).then_some(micros.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_postgresql_and_go_write_them() {
        for (text, expected) in [
            ("-5s", Some(-5 * SECOND)),
            ("-1h30m", Some(-90 * MINUTE)),
            ("-1 hour 30 min", Some(-30 * MINUTE)),
            ("-1 hour -30 min", Some(-90 * MINUTE)),
            ("1 day 02:30:00.5 ago", Some(-(DAY + 2 * HOUR + 30 * MINUTE + SECOND / 2))),
            ("-00:00:05", Some(-5 * SECOND)),
            ("5 SECONDS ago", Some(-5 * SECOND)),
            ("-1.5 s", Some(-1_500_000)),
            ("-250ms", Some(-250_000)),
            ("-10", Some(-10 * SECOND)),
            ("  -2w ", Some(-14 * DAY)),
            ("-1 mon", Some(-30 * DAY)),
            ("", None),
            ("-", None),
            ("ago", None),
            ("soon", None),
            ("5 lightyears", None),
            ("2024-01-01", None),
            ("1:75", None),
            ("1:2:3:4", None),
            ("-99999999999 years", None),
            ("nan", None),
            ("é", None),
        ] {
            assert_eq!(parse(text, SECOND), expected, "{text}");
        }
    }

    #[test]
    fn settings_are_positive_and_print_in_their_largest_unit() {
        for (text, shown) in [
            ("5s", Some("5s")),
            ("90s", Some("90s")),
            ("120 s", Some("2min")),
            ("2", Some("2ms")),
            ("1.5ms", Some("1500us")),
            ("0", None),
            ("-1s", None),
            ("101d", None),
        ] {
            assert_eq!(duration(text).map(show).as_deref(), shown, "{text}");
        }
    }
}
