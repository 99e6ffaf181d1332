//! Validates a value for a setting and converts it to its display form. Pure.

use std::time::Duration;

use super::number::{self, BadTime, invalid, parse_time};
use super::table::{self, GC_TTL, Kind, SETTINGS, Setting};
use crate::error::{SqlError, SqlState};
use crate::session::control::Isolation;
use crate::session::reads;
use crate::table::{quote_identifier, unquote_identifier};
use pgtypes::TimeZone;
use tso::Timestamp;

/// The longest name, in bytes, as for identifiers.
const MAX_NAME_BYTES: usize = 63;

/// Limit of a text value, in bytes. A session's settings are kept in memory.
pub(crate) const MAX_VALUE_BYTES: usize = 4096;

/// The values that a new one may refer to, in display form.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context<'a> {
    /// The current value; empty if there is none.
    pub(crate) current: &'a str,
    /// The value that RESET restores.
    pub(crate) initial: Option<&'a str>,
}

/// The display form of `words` for a setting. A list has several words. Errors are PostgreSQL's: 22023, 55P02 for a
/// setting that cannot be set, 0A000 for an unsupported value.
pub(crate) fn normalize(setting: &Setting, words: &[String], values: Context<'_>) -> Result<String, SqlError> {
    if setting.kind == Kind::SearchPath {
        return search_path(setting, words);
    }
    let value = match words {
        [one] => one.as_str(),
        _ if setting.kind == Kind::DateStyle => return date_style(setting, &words.join(", "), values),
        _ => {
            let message = format!("SET {} takes only one argument", setting.name);
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    };
    if value.len() > MAX_VALUE_BYTES {
        return Err(invalid(setting.name, "(too long)"));
    }
    match setting.kind {
        Kind::Internal => {
            let message = format!("parameter \"{}\" cannot be changed", setting.name);
            Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message))
        }
        Kind::Node(..) => {
            let message = format!("parameter \"{}\" cannot be changed without restarting the server", setting.name);
            Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message))
        }
        Kind::Configured => {
            let message = format!("parameter \"{}\" cannot be changed now", setting.name);
            Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message))
        }
        Kind::Cluster => {
            let message = format!("parameter \"{}\" cannot be changed now", setting.name);
            let hint = format!("Use ALTER SYSTEM SET {}.", setting.name);
            Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message).hint(hint))
        }
        Kind::Bool => boolean(value).map(|b| on_off(b).to_owned()).ok_or_else(|| {
            let message = format!("parameter \"{}\" requires a Boolean value", setting.name);
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        }),
        Kind::Int(low, high) => number::integer(setting.name, value, (low, high)),
        Kind::Real(low, high) => number::real(setting.name, value, (low, high)),
        Kind::Size(block, low, high) => number::size(setting.name, value, block, (low, high)),
        Kind::Millis => millis(setting, value, 0).map(show_millis),
        Kind::MillisAbove0 => millis(setting, value, 1).map(show_millis),
        Kind::MillisOrOff => millis(setting, value, -1).map(show_millis),
        Kind::OneOf(words) => one_of(words, value)
            .ok_or_else(|| invalid_word(setting, value).hint(format!("Available values: {}.", words.join(", ")))),
        Kind::Fixed(words) => fixed(setting, words, value),
        Kind::Name => Ok(clean_name(value)),
        Kind::SearchPath => search_path(setting, words),
        Kind::Zone => zone_name(setting, value),
        Kind::Encoding => encoding(setting, value),
        Kind::DateStyle => date_style(setting, value, values),
        Kind::Isolation => isolation(setting, value),
        Kind::Staleness => reads::Staleness::parse(value).map(reads::Staleness::show).ok_or_else(|| {
            invalid(setting.name, value).hint("Available values: '' (fresh), an age such as '5s', 'max 5s', unbounded.")
        }),
        Kind::Hedge => reads::hedge(value)
            .map(reads::show_hedge)
            .ok_or_else(|| invalid(setting.name, value).hint("Available values: off, auto, or a delay such as '2ms'.")),
        Kind::Token => token(setting, value).map(reads::show_token),
    }
}

/// The timestamp of a session's token.
pub(crate) fn token(setting: &Setting, value: &str) -> Result<Timestamp, SqlError> {
    let hint = "Take the value that SHOW cortado.session_token prints.";
    reads::parse_token(value).ok_or_else(|| invalid(setting.name, value).hint(hint))
}

/// A boolean in PostgreSQL's syntax: any unambiguous prefix of its words.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(value.as_str());
    if value == "1" || begins("true", 1) || begins("yes", 1) || value == "on" {
        Some(true)
    } else if value == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2) {
        Some(false)
    } else {
        None
    }
}

/// `on` or `off`.
pub(crate) fn on_off(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}

/// A time zone: a database name, a POSIX description, or a POSIX offset without a name.
pub(crate) fn zone(value: &str) -> Option<TimeZone> {
    let value = value.strip_prefix(':').unwrap_or(value);
    if let Some(zone) = posix_offset(value) {
        return Some(zone);
    }
    if let Ok(zone) = jiff::tz::TimeZone::get(value) {
        return Some(TimeZone::new(zone));
    }
    let posix_like = value.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && value.len() <= 64;
    if posix_like { jiff::tz::TimeZone::posix(value).ok().map(TimeZone::new) } else { None }
}

/// `[<name>][+-]hh[:mm]`, as POSIX has it: positive west of Greenwich. Without a name, times are shown without one.
/// A name has ASCII letters, digits, signs and colons.
fn posix_offset(value: &str) -> Option<TimeZone> {
    let (name, offset) = match value.strip_prefix('<') {
        Some(rest) => {
            let (name, offset) = rest.split_once('>')?;
            let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b':');
            if name.is_empty() || !name.bytes().all(in_name) {
                return None;
            }
            (name, offset)
        }
        None => ("", value),
    };
    let (sign, digits) = match offset.as_bytes().first()? {
        b'-' => (1, &offset[1..]),
        b'+' => (-1, &offset[1..]),
        _ => (-1, offset),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let number = |text: &str, most: i32| {
        let fits = (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i32>().ok().filter(|value| fits && *value <= most)
    };
    TimeZone::fixed(sign * (number(hours, 167)? * 3600 + number(minutes, 59)? * 60), name)
}

fn zone_name(setting: &Setting, value: &str) -> Result<String, SqlError> {
    if let Ok(hours) = value.trim_start().parse::<f64>() {
        let named = (hours.abs() < 168.0).then(|| offset_zone(hours)).filter(|name| zone(name).is_some());
        return named.ok_or_else(|| invalid(setting.name, value).detail("UTC timezone offset is out of range."));
    }
    let found = zone(value).ok_or_else(|| invalid(setting.name, value))?;
    Ok(found.name().map_or_else(|| value.to_ascii_uppercase(), str::to_owned))
}

/// The POSIX description of a fixed offset. POSIX signs are positive west of Greenwich.
fn offset_zone(hours: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "less than 168 hours")]
    let minutes = (hours.abs() * 60.0).round() as i64;
    let (sign, inverse) = if hours < 0.0 { ('-', '+') } else { ('+', '-') };
    let (h, m) = (minutes / 60, minutes % 60);
    let size = if m == 0 { format!("{h:02}") } else { format!("{h:02}:{m:02}") };
    format!("<{sign}{size}>{inverse}{size}")
}

/// 22023 for a setting with a list of words: PostgreSQL names it as SET does.
fn invalid_word(setting: &Setting, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{}\": \"{value}\"", setting.name.to_ascii_lowercase());
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn refused(setting: &Setting, value: &str) -> SqlError {
    let message = format!("{} \"{value}\" is not supported", setting.name);
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// A time of at least `least` milliseconds.
fn millis(setting: &Setting, value: &str, least: i32) -> Result<i32, SqlError> {
    let parsed = parse_time(value).map_err(|bad| match bad {
        BadTime::NoNumber => invalid(setting.name, value),
        BadTime::Unit => invalid(setting.name, value)
            .hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."),
        BadTime::TooLong => invalid(setting.name, value).hint("Value exceeds integer range."),
    })?;
    if parsed < least {
        let (name, most) = (setting.name, i32::MAX);
        let message = format!("{parsed} ms is outside the valid range for parameter \"{name}\" ({least} .. {most})");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(parsed)
}

/// The value of `cortado.gc_ttl`. 22023 if it is no time, or below `least`.
pub(crate) fn gc_ttl(words: &[String], least: Duration) -> Result<Duration, SqlError> {
    let Some(setting) = table::find(GC_TTL).map(|index| &SETTINGS[index]) else {
        return Err(SqlError::internal("a setting is missing"));
    };
    let [value] = words else {
        let message = format!("SET {} takes only one argument", setting.name);
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    };
    let ttl = Duration::from_millis(millis(setting, value, 0)?.unsigned_abs().into());
    if ttl < least {
        let (given, least) = (show_time(ttl), show_time(least));
        let message = format!("{given} is outside the valid range for parameter \"{}\" ({least} ..)", setting.name);
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(ttl)
}

/// Prints a time as settings show it.
pub(crate) fn show_time(time: Duration) -> String {
    show_millis(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// Prints a time in the largest unit that divides it.
fn show_millis(millis: impl Into<i64>) -> String {
    let millis: i64 = millis.into();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    match units.iter().find(|(size, _)| millis > 0 && millis % size == 0) {
        Some((size, unit)) => format!("{}{unit}", millis / size),
        None if millis <= 0 => millis.to_string(),
        None => format!("{millis}ms"),
    }
}

fn one_of(words: &[&str], value: &str) -> Option<String> {
    words.iter().find(|w| w.eq_ignore_ascii_case(value.trim())).map(|w| (*w).to_owned())
}

fn fixed(setting: &Setting, words: &[&str], value: &str) -> Result<String, SqlError> {
    if words.contains(&"on") || words.contains(&"off") {
        let Some(flag) = boolean(value) else {
            let message = format!("parameter \"{}\" requires a Boolean value", setting.name);
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        };
        return if words.contains(&on_off(flag)) { Ok(on_off(flag).to_owned()) } else { Err(refused(setting, value)) };
    }
    match one_of(words, value) {
        // All words mean the same as the first.
        Some(_) => Ok(setting.default.to_owned()),
        None => Err(refused(setting, value)),
    }
}

fn clean_name(value: &str) -> String {
    let end = value.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= MAX_NAME_BYTES).last();
    value[..end.unwrap_or(0)].chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

fn search_path(setting: &Setting, words: &[String]) -> Result<String, SqlError> {
    let [text] = words else {
        let shown: Vec<String> = words.iter().map(|word| quote_identifier(word)).collect();
        return Ok(shown.join(", "));
    };
    // PostgreSQL reads SET search_path TO 'a, b' as one name with a comma. Drivers send it in the startup packet and
    // mean a list.
    if !text.contains([',', '"']) {
        let name = text.trim();
        return Ok(if name.is_empty() { String::new() } else { quote_identifier(name) });
    }
    match list_of_names(text) {
        Some(names) => Ok(names.iter().map(|name| quote_identifier(name)).collect::<Vec<_>>().join(", ")),
        None => Err(invalid(setting.name, text).detail("List syntax is invalid.")),
    }
}

/// The names of a search path, folded; none if it is no list of names.
pub(super) fn path_names(text: &str) -> Vec<String> {
    list_of_names(text).unwrap_or_default()
}

/// The folded names of a list: `"$user", public`.
fn list_of_names(text: &str) -> Option<Vec<String>> {
    let (mut names, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let after = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, tail) = unquote_identifier(quoted)?;
                names.push(name);
                tail
            }
            None => {
                let end = rest.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(rest.len());
                if end == 0 {
                    return None;
                }
                names.push(rest[..end].to_lowercase());
                &rest[end..]
            }
        };
        match after.trim_start().strip_prefix(',') {
            Some(next) if !next.trim().is_empty() => rest = next.trim_start(),
            Some(_) => return None,
            None if after.trim().is_empty() => break,
            None => return None,
        }
    }
    Some(names)
}

fn encoding(setting: &Setting, value: &str) -> Result<String, SqlError> {
    let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match plain.as_str() {
        "utf8" | "unicode" => Ok("UTF8".to_owned()),
        _ => Err(refused(setting, value).hint("The only encoding is UTF8.")),
    }
}

/// The format and the order of a list of words. A word that is not given keeps its part of the current value, except
/// that German brings its order.
fn date_style(setting: &Setting, value: &str, values: Context<'_>) -> Result<String, SqlError> {
    let refuse = |detail: &str| invalid(setting.name, value).detail(detail);
    let (mut format, mut order): (Option<&str>, Option<&str>) = (None, None);
    let (mut default_format, mut default_order) = parts(values.current, setting);
    let words: Vec<&str> = value.split(',').map(str::trim).collect();
    let empty = words.iter().all(|word| word.is_empty()) && words.len() == 1;
    for word in words.iter().filter(|_| !empty) {
        if word.is_empty() || word.contains(char::is_whitespace) {
            return Err(refuse("List syntax is invalid."));
        }
        let lower = word.to_ascii_lowercase();
        let (format_word, order_word) = match lower.as_str() {
            "iso" => (Some("ISO"), None),
            "sql" => (Some("SQL"), None),
            "german" => (Some("German"), None),
            "ymd" => (None, Some("YMD")),
            "dmy" => (None, Some("DMY")),
            "mdy" | "us" => (None, Some("MDY")),
            "default" => {
                (default_format, default_order) = parts(values.initial.unwrap_or(setting.default), setting);
                continue;
            }
            other if other.starts_with("postgres") => (Some("Postgres"), None),
            other if other.starts_with("euro") => (None, Some("DMY")),
            other if other.starts_with("noneuro") => (None, Some("MDY")),
            _ => return Err(refuse(&format!("Unrecognized key word: \"{lower}\"."))),
        };
        let conflict = |old: Option<&str>, new: Option<&str>| old.zip(new).is_some_and(|(old, new)| old != new);
        if conflict(format, format_word) || conflict(order, order_word) {
            return Err(refuse("Conflicting \"datestyle\" specifications."));
        }
        (format, order) = (format.or(format_word), order.or(order_word));
    }
    if format == Some("German") {
        default_order = "DMY";
    }
    Ok(format!("{}, {}", format.unwrap_or(default_format), order.unwrap_or(default_order)))
}

/// The format and the order of a normalized value.
fn parts<'a>(value: &'a str, setting: &Setting) -> (&'a str, &'a str) {
    value.split_once(", ").or_else(|| setting.default.split_once(", ")).unwrap_or(("ISO", "MDY"))
}

fn isolation(setting: &Setting, value: &str) -> Result<String, SqlError> {
    let level = Isolation::from_name(&value.trim().to_ascii_lowercase()).ok_or_else(|| {
        let words = "serializable, repeatable read, read committed, read uncommitted";
        invalid(setting.name, value).hint(format!("Available values: {words}."))
    })?;
    crate::session::txn_state::check_isolation(Some(level))?;
    Ok(level.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::table::{SETTINGS, find};
    use super::*;

    fn set(name: &str, words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        normalize(&SETTINGS[find(name).expect(name)], &words, Context::default()).map_err(|e| e.code.0.to_owned())
    }

    #[test]
    fn every_default_is_a_valid_value() {
        for setting in SETTINGS.iter().filter(|s| !s.is_fixed()) {
            let words = [setting.default.to_owned()];
            assert_eq!(
                normalize(setting, &words, Context::default()).as_deref(),
                Ok(setting.default),
                "{}",
                setting.name
            );
        }
    }

    #[test]
    fn values_of_reads_are_normalized() {
        let cases: [(&str, &[&str], Result<&str, &str>); 12] = [
            ("cortado.replica_read", &["CLOSEST"], Ok("closest")),
            ("cortado.replica_read", &["nearest"], Err("22023")),
            ("cortado.read_staleness", &["Max 5000ms"], Ok("max 5s")),
            ("cortado.read_staleness", &["-5s"], Err("22023")),
            ("cortado.hedge", &["2ms"], Ok("2ms")),
            ("cortado.hedge", &["on"], Err("22023")),
            ("cortado.grants", &["false"], Ok("off")),
            ("cortado.replica_wait", &["500"], Ok("500ms")),
            ("cortado.last_read", &["none"], Err("55P02")),
            ("cortado.gc_ttl", &["1h"], Err("55P02")),
            ("cortado.session_token", &["1700000000000.7"], Ok("c1.062f3f95a0000007645498b4")),
            ("cortado.session_token", &["yesterday"], Err("22023")),
        ];
        for (name, words, expected) in cases {
            assert_eq!(set(name, words).as_deref().map_err(String::as_str), expected, "{name} {words:?}");
        }
    }

    /// A setting, the words of its value, and what becomes of them.
    type Case = (&'static str, &'static [&'static str], Result<&'static str, &'static str>);

    fn check(cases: &[Case]) {
        for (name, words, expected) in cases {
            assert_eq!(set(name, words).as_deref().map_err(String::as_str), *expected, "{name} {words:?}");
        }
    }

    #[test]
    fn styles_of_dates_are_normalized() {
        let cases: [Case; 19] = [
            ("datestyle", &["ISO"], Ok("ISO, MDY")),
            ("datestyle", &["iso", "mdy"], Ok("ISO, MDY")),
            ("datestyle", &["german"], Ok("German, DMY")),
            ("datestyle", &["MDY", "german"], Ok("German, MDY")),
            ("datestyle", &["SQL, dmy"], Ok("SQL, DMY")),
            ("datestyle", &["PostgreSQL"], Ok("Postgres, MDY")),
            ("datestyle", &["European"], Ok("ISO, DMY")),
            ("datestyle", &["NonEuropean"], Ok("ISO, MDY")),
            ("datestyle", &["us"], Ok("ISO, MDY")),
            ("datestyle", &["ymd"], Ok("ISO, YMD")),
            ("datestyle", &[""], Ok("ISO, MDY")),
            ("datestyle", &["default"], Ok("ISO, MDY")),
            ("datestyle", &["iso, iso"], Ok("ISO, MDY")),
            ("datestyle", &["iso, sql"], Err("22023")),
            ("datestyle", &["mdy, dmy"], Err("22023")),
            ("datestyle", &["iso mdy"], Err("22023")),
            ("datestyle", &["ISO,"], Err("22023")),
            ("datestyle", &["ger"], Err("22023")),
            ("datestyle", &["nonsense"], Err("22023")),
        ];
        check(&cases);
    }

    #[test]
    fn values_are_normalized() {
        let cases: [Case; 57] = [
            ("STATEMENT_TIMEOUT", &["1500"], Ok("1500ms")),
            ("statement_timeout", &["90s"], Ok("90s")),
            ("statement_timeout", &["120 s"], Ok("2min")),
            ("statement_timeout", &["-1"], Err("22023")),
            ("statement_timeout", &["5 weeks"], Err("22023")),
            ("statement_timeout", &["99999999999"], Err("22023")),
            ("default_transaction_read_only", &["TRUE"], Ok("on")),
            ("default_transaction_read_only", &["of"], Ok("off")),
            ("default_transaction_read_only", &["o"], Err("22023")),
            ("extra_float_digits", &["3"], Ok("3")),
            ("extra_float_digits", &["0"], Ok("0")),
            ("extra_float_digits", &["-0x2"], Ok("-2")),
            ("extra_float_digits", &["0.5"], Ok("0")),
            ("extra_float_digits", &["4"], Err("22023")),
            ("extra_float_digits", &["1 kB"], Err("22023")),
            ("work_mem", &["64"], Ok("64kB")),
            ("work_mem", &["1.5MB"], Ok("1536kB")),
            ("work_mem", &["1 GB"], Ok("1GB")),
            ("work_mem", &["1e3kB"], Ok("1000kB")),
            ("work_mem", &["63kB"], Err("22023")),
            ("work_mem", &["3TB"], Err("22023")),
            ("work_mem", &["1 XB"], Err("22023")),
            ("effective_cache_size", &["10"], Ok("80kB")),
            ("random_page_cost", &["1.10"], Ok("1.1")),
            ("random_page_cost", &["-1"], Err("22023")),
            ("random_page_cost", &["nan"], Err("22023")),
            ("log_min_duration_statement", &["-1"], Ok("-1")),
            ("server_version", &["16"], Err("55P02")),
            ("standard_conforming_strings", &["off"], Err("0A000")),
            ("bytea_output", &["ESCAPE"], Ok("escape")),
            ("client_encoding", &["utf-8"], Ok("UTF8")),
            ("client_encoding", &["LATIN1"], Err("0A000")),
            ("search_path", &["$user", "public"], Ok("\"$user\", public")),
            ("search_path", &[""], Ok("")),
            ("search_path", &["app"], Ok("app")),
            ("timezone", &["europe/berlin"], Ok("Europe/Berlin")),
            ("timezone", &["-7"], Ok("<-07>+07")),
            ("timezone", &["5.5"], Ok("<+05:30>-05:30")),
            ("timezone", &["+02:00"], Ok("+02:00")),
            // Its first 10 bytes end within a character.
            ("timezone", &["<aéééééé>+2"], Err("22023")),
            ("timezone", &["<>+2"], Err("22023")),
            ("timezone", &["<abcdefghijklmno>+2"], Ok("<ABCDEFGHIJKLMNO>+2")),
            ("timezone", &["-02:30"], Ok("-02:30")),
            ("timezone", &["+2"], Ok("<+02>-02")),
            ("timezone", &["<+02>-02"], Ok("<+02>-02")),
            ("timezone", &["utc+02:00"], Ok("UTC+02:00")),
            ("timezone", &[":UTC"], Ok("UTC")),
            ("timezone", &["+02:60"], Err("22023")),
            ("timezone", &["+0200"], Err("22023")),
            ("timezone", &["170"], Err("22023")),
            ("timezone", &[""], Err("22023")),
            ("timezone", &["GMT-03:00"], Ok("GMT-03:00")),
            ("timezone", &["Mars/Olympus"], Err("22023")),
            ("transaction_isolation", &["Repeatable Read"], Ok("repeatable read")),
            ("transaction_isolation", &["serializable"], Err("0A000")),
            ("application_name", &["é!"], Ok("?!")),
            ("application_name", &["a", "b"], Err("22023")),
        ];
        check(&cases);
        let long = "é".repeat(60);
        assert_eq!(set("application_name", &[&long]).unwrap().len(), 31);
    }
}
