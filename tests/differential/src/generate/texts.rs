//! Texts that make sense as an argument of a function: fields of times, zones, formats, patterns.

use crate::catalog::Function;

const FIELDS: &[&str] = &[
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "milliseconds",
    "microseconds",
    "week",
    "quarter",
    "decade",
    "century",
    "millennium",
    "dow",
    "isodow",
    "doy",
    "isoyear",
    "epoch",
    "julian",
    "timezone",
    "timezone_hour",
    "Years",
    "sec",
    "y",
    "nonsense",
];
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "PST",
    "+02:00",
    "-5",
    "Australia/Lord_Howe",
    "EST5EDT",
    "Nowhere/City",
];
const MOMENTS: &[&str] = &[
    "YYYY-MM-DD HH24:MI:SS",
    "DD Mon YYYY",
    "Day, FMDDth Month",
    "HH12:MI:SS.MS AM",
    "IYYY-IW-ID",
    "J",
    "Q",
    "CC BC",
    "US MS FF3",
    "TZ OF TZH:TZM",
    "Y,YYY",
    "RM",
    "\"text\" YY",
    "FMHH24:FMMI",
    "SSSS",
    "D DDD WW W",
    "TMMonth",
    "YYYYMMDD",
    "YYYY-MM-DD",
    "MON DD",
    "a.m. A.D.",
];
const NUMBERS: &[&str] = &[
    "999.99",
    "FM9990.00",
    "S999,999",
    "9999MI",
    "0009",
    "999PR",
    "9.99EEEE",
    "RN",
    "L999",
    "99th",
    "999D9",
    "9G999",
    "PL99",
    "V99",
    "999V99",
    "SG9",
    "FM999.999",
    "00",
    "XX",
    ".9",
];
const FORMATS: &[&str] = &["hex", "base64", "escape", "HEX", "utf8"];
const ENCODINGS: &[&str] = &["UTF8", "LATIN1", "utf-8", "SQL_ASCII", "nope"];
const PATTERNS: &[&str] =
    &["a", "[a-c]+", "(b)(.)", "^a.*c$", "\\d+", "b?", "", "(", "a|b", "(?i)ABC", "\\s", "x*", ".", "\\m\\w+"];
const FLAGS: &[&str] = &["", "g", "i", "gi", "n", "x", "z"];
const JUSTIFIED: &[&str] = &["%s", "%I %L", "%1$s-%2$s", "%%", "%-10s|", "%5s", "%s %s %s", "%", "%x", "%2$s"];

/// Texts that make sense as an argument of a function; empty if any do.
pub fn useful_texts(function: &Function, argument: usize) -> &'static [&'static str] {
    let of_text = |at: usize| function.arguments.get(at).is_some_and(|of| [25, 19].contains(of));
    match (&*function.name, argument) {
        ("date_part" | "extract" | "date_trunc", 0) => FIELDS,
        ("timezone", 0) if of_text(0) => ZONES,
        ("date_trunc", 2) => ZONES,
        ("make_timestamptz", 6) => ZONES,
        ("to_char", 1) if [1114, 1184, 1186].contains(&function.arguments[0]) => MOMENTS,
        ("to_date" | "to_timestamp", 1) => MOMENTS,
        ("to_char" | "to_number", 1) => NUMBERS,
        ("encode" | "decode", 1) => FORMATS,
        ("convert_from" | "convert_to" | "convert" | "length", 1) => ENCODINGS,
        ("convert", 2) => ENCODINGS,
        ("format", 0) => JUSTIFIED,
        (name, 1) if name.starts_with("regexp_") => PATTERNS,
        ("regexp_replace", 3) | ("regexp_match" | "regexp_matches" | "regexp_like", 2) => FLAGS,
        (name, 2) if name.starts_with("regexp_split") => FLAGS,
        _ => &[],
    }
}
