//! Compares with the outputs of a PostgreSQL 15 server, which the files in `golden` record.
//!
//! A line has an operation, the zone and the styles of the session, the arguments, and the output or the error.

use super::*;
use crate::error::ValueError;

/// The start of the transaction of all cases: 2026-11-26 12:00 UTC.
const NOW: Now = Now(849_009_600_000_000);

type Outcome = Result<String, ValueError>;

/// The session of a case: `zone` and `DateStyle;IntervalStyle`.
fn zone_of(zone: &str, styles: &str) -> (TimeZone, DateOrder, IntervalStyle) {
    let (date, interval) = styles.split_once(';').unwrap_or((styles, "postgres"));
    let (format, order) = date.split_once(", ").unwrap();
    let format = match format {
        "ISO" => DateFormat::Iso,
        "SQL" => DateFormat::Sql,
        "German" => DateFormat::German,
        _ => DateFormat::Postgres,
    };
    let order = match order {
        "MDY" => DateOrder::Mdy,
        "DMY" => DateOrder::Dmy,
        _ => DateOrder::Ymd,
    };
    let interval = match interval {
        "postgres" => IntervalStyle::Postgres,
        "postgres_verbose" => IntervalStyle::PostgresVerbose,
        "sql_standard" => IntervalStyle::SqlStandard,
        _ => IntervalStyle::Iso8601,
    };
    let style = DateStyle { format, day_first: order == DateOrder::Dmy };
    (TimeZone::find(zone).unwrap().with_style(style), order, interval)
}

fn shown(outcome: Outcome) -> String {
    outcome.unwrap_or_else(|error| {
        let mut text = format!("ERROR {}: {}", error.code().0, error.message());
        if let Some(detail) = error.detail() {
            text += &format!(" DETAIL {detail}");
        }
        if let Some(hint) = error.hint() {
            text += &format!(" HINT {hint}");
        }
        text
    })
}

/// Runs the cases of a file. Lists those that differ.
fn check(cases: &str, run: impl Fn(&str, &[&str], &Session<'_>) -> Outcome) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in cases.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [operation, zone, styles, arguments @ .., expected] = columns.as_slice() else { panic!("{line}") };
        let (zone, order, interval_style) = zone_of(zone, styles);
        let session = Session { zone: &zone, order, interval_style, now: NOW };
        let found = shown(run(operation, arguments, &session));
        count += 1;
        if found != *expected {
            wrong.push(format!("{line}\n    found {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}

#[test]
fn text_input() {
    check(include_str!("golden/input.tsv"), |operation, arguments, session| {
        let text = arguments[0];
        match operation {
            "date" => Date::parse(text, session).map(|value| value.format(session)),
            "timestamp" => Timestamp::parse(text, session).map(|value| value.format(session)),
            "timestamptz" => TimestampTz::parse(text, session).map(|value| value.format(session)),
            "time" => Time::parse(text, session).map(Time::format),
            _ => TimeTz::parse(text, session).map(TimeTz::format),
        }
    });
}

/// The modifier of a qualifier such as `day to second(3)`.
fn typmod(qualifier: &str) -> IntervalTypmod {
    let (fields, precision) = qualifier.split_once('(').unwrap_or((qualifier, ""));
    let precision = precision.trim_end_matches(')').parse().ok();
    let fields = if fields.is_empty() { IntervalFields::ALL } else { IntervalFields::named(fields).unwrap() };
    let typmod = IntervalTypmod { fields, precision };
    assert_eq!(IntervalTypmod::decode(typmod.encode()), Some(typmod));
    typmod
}

#[test]
fn interval_input() {
    check(include_str!("golden/interval.tsv"), |_, arguments, session| {
        Interval::parse(arguments[1], typmod(arguments[0]), session).map(|value| value.format(session))
    });
}

#[test]
fn functions() {
    check(include_str!("golden/functions.tsv"), |operation, texts, session| {
        super::function_tests::evaluate(operation, &super::function_tests::Args { texts, session })
    });
}

#[test]
fn templates() {
    check(include_str!("golden/templates.tsv"), |operation, texts, session| {
        let (text, template) = (texts[0], texts[1]);
        let or_null = |text: Option<String>| text.unwrap_or("NULL".into());
        match operation {
            "char ts" => Timestamp::parse(text, session)?.to_char(template).map(or_null),
            "char tstz" => TimestampTz::parse(text, session)?.to_char(template, session.zone).map(or_null),
            "char interval" => Interval::parse(text, IntervalTypmod::NONE, session)?.to_char(template).map(or_null),
            "to_date" => Date::from_template(text, template).map(|value| value.format(session)),
            _ => TimestampTz::from_template(text, template, session).map(|value| value.format(session)),
        }
    });
}
