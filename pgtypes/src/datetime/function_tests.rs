//! Evaluates operators and functions by name, for the comparison with PostgreSQL's outputs.

use std::cmp::Ordering;

use super::*;
use crate::error::ValueError;
use crate::float::show as float;

type Outcome = Result<String, ValueError>;

/// The arguments of a case.
pub(super) struct Args<'a> {
    pub(super) texts: &'a [&'a str],
    pub(super) session: &'a Session<'a>,
}

impl Args<'_> {
    fn iso(&self) -> Session<'_> {
        Session { order: DateOrder::Ymd, interval_style: IntervalStyle::Postgres, ..*self.session }
    }

    fn date(&self, at: usize) -> Date {
        Date::parse(self.texts[at], &self.iso()).unwrap()
    }

    fn time(&self, at: usize) -> Time {
        Time::parse(self.texts[at], &self.iso()).unwrap()
    }

    fn timetz(&self, at: usize) -> TimeTz {
        TimeTz::parse(self.texts[at], &self.iso()).unwrap()
    }

    fn ts(&self, at: usize) -> Timestamp {
        Timestamp::parse(self.texts[at], &self.iso()).unwrap()
    }

    fn tstz(&self, at: usize) -> TimestampTz {
        TimestampTz::parse(self.texts[at], &self.iso()).unwrap()
    }

    fn interval(&self, at: usize) -> Interval {
        Interval::parse(self.texts[at], IntervalTypmod::NONE, &self.iso()).unwrap()
    }

    fn int(&self, at: usize) -> i32 {
        self.texts[at].parse().unwrap()
    }

    fn float(&self, at: usize) -> f64 {
        self.texts[at].parse().unwrap()
    }

    fn ymd(&self) -> (i32, i32, i32) {
        (self.int(0), self.int(1), self.int(2))
    }

    fn zone(&self) -> &TimeZone {
        self.session.zone
    }
}

/// A value that is shown in a session.
trait Shown {
    fn shown(self, session: &Session<'_>) -> String;
}

impl Shown for Date {
    fn shown(self, session: &Session<'_>) -> String {
        self.format(session)
    }
}

impl Shown for Time {
    fn shown(self, _: &Session<'_>) -> String {
        self.format()
    }
}

impl Shown for TimeTz {
    fn shown(self, _: &Session<'_>) -> String {
        self.format()
    }
}

impl Shown for Timestamp {
    fn shown(self, session: &Session<'_>) -> String {
        self.format(session)
    }
}

impl Shown for TimestampTz {
    fn shown(self, session: &Session<'_>) -> String {
        self.format(session)
    }
}

impl Shown for Interval {
    fn shown(self, session: &Session<'_>) -> String {
        self.format(session)
    }
}

impl Shown for i32 {
    fn shown(self, _: &Session<'_>) -> String {
        self.to_string()
    }
}

impl Shown for f64 {
    fn shown(self, _: &Session<'_>) -> String {
        float(self)
    }
}

impl Shown for bool {
    fn shown(self, _: &Session<'_>) -> String {
        self.to_string()
    }
}

impl Shown for Ordering {
    fn shown(self, _: &Session<'_>) -> String {
        (self as i32).to_string()
    }
}

impl Shown for Extracted {
    fn shown(self, _: &Session<'_>) -> String {
        match self {
            Extracted::Null => "NULL".into(),
            Extracted::Infinity => "Infinity".into(),
            Extracted::NegInfinity => "-Infinity".into(),
            Extracted::Number { unscaled, scale: 0 } => unscaled.to_string(),
            Extracted::Number { unscaled, scale } => {
                let (sign, size) = (if unscaled < 0 { "-" } else { "" }, unscaled.unsigned_abs());
                let power = 10u128.pow(scale);
                format!("{sign}{}.{:0width$}", size / power, size % power, width = scale as usize)
            }
        }
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(self, session: &Session<'_>) -> String {
        self.map_or("NULL".into(), |value| value.shown(session))
    }
}

/// The first values of a series.
fn take<T: Shown>(session: &Session<'_>, mut next: impl FnMut() -> Result<Option<T>, ValueError>) -> Outcome {
    let mut shown = Vec::new();
    while let Some(value) = next()? {
        shown.push(value.shown(session));
        if shown.len() == 3 {
            break;
        }
    }
    Ok(shown.join(","))
}

/// Evaluates an operation.
pub(super) fn evaluate(operation: &str, a: &Args<'_>) -> Outcome {
    let s = a.session;
    if let Some(outcome) = operators(operation, a) {
        return outcome;
    }
    if let Some(outcome) = casts(operation, a) {
        return outcome;
    }
    if let Some(outcome) = fields(operation, a) {
        return outcome;
    }
    Ok(match operation {
        "age2 ts" => a.ts(0).age(a.ts(1))?.shown(s),
        "age2 tstz" => a.tstz(0).age(a.tstz(1), a.zone())?.shown(s),
        "trunc ts" => a.ts(1).trunc(a.texts[0])?.shown(s),
        "trunc tstz" => a.tstz(1).trunc(a.texts[0], a.zone())?.shown(s),
        "trunc tstz zone" => a.tstz(1).trunc_in(a.texts[0], a.texts[2])?.shown(s),
        "trunc interval" => a.interval(1).trunc(a.texts[0])?.shown(s),
        "bin ts" => a.ts(1).bin(a.interval(0), a.ts(2))?.shown(s),
        "bin tstz" => a.tstz(1).bin(a.interval(0), a.tstz(2))?.shown(s),
        "make_date" => Date::make(a.int(0), a.int(1), a.int(2))?.shown(s),
        "make_time" => Time::make(a.int(0), a.int(1), a.float(2))?.shown(s),
        "make_ts" => Timestamp::make(a.ymd(), a.int(3), a.int(4), a.float(5))?.shown(s),
        "make_tstz" => TimestampTz::make(a.ymd(), a.int(3), a.int(4), a.float(5), a.zone())?.shown(s),
        "make_tstz zone" => TimestampTz::make_in(a.ymd(), a.int(3), a.int(4), a.float(5), a.texts[6])?.shown(s),
        "make_interval" => {
            let (years, months, weeks) = a.ymd();
            let (days, hours, minutes) = (a.int(3), a.int(4), a.int(5));
            let args = IntervalArgs { years, months, weeks, days, hours, minutes, seconds: a.float(6) };
            Interval::make(args)?.shown(s)
        }
        "to_timestamp" => TimestampTz::from_unix(a.float(0))?.shown(s),
        "justify_hours" => a.interval(0).justify_hours()?.shown(s),
        "justify_days" => a.interval(0).justify_days()?.shown(s),
        "justify_interval" => a.interval(0).justify_interval()?.shown(s),
        "zone ts" => a.ts(1).at_zone(a.texts[0])?.shown(s),
        "zone tstz" => a.tstz(1).at_zone(a.texts[0])?.shown(s),
        "zone timetz" => a.timetz(1).at_zone(a.texts[0], s)?.shown(s),
        "izone ts" => a.ts(1).at_interval(a.interval(0), s)?.shown(s),
        "izone tstz" => a.tstz(1).at_interval(a.interval(0), s)?.shown(s),
        "izone timetz" => a.timetz(1).at_interval(a.interval(0), s)?.shown(s),
        "series ts" => {
            let mut series = Series::new(a.ts(0), a.ts(1), a.interval(2))?;
            take(s, || series.next_value())?
        }
        "series tstz" => {
            let mut series = Series::new(a.tstz(0), a.tstz(1), a.interval(2))?;
            take(s, || series.next_value(a.zone()))?
        }
        "overlaps" => overlaps((Some(a.ts(0)), Some(a.ts(1))), (Some(a.ts(2)), Some(a.ts(3)))).shown(s),
        rounded => {
            let (digits, ty) = rounded.strip_prefix("round").unwrap().split_once(' ').unwrap();
            let digits = digits.parse().unwrap();
            match ty {
                "time" => a.time(0).with_precision(digits).shown(s),
                "timetz" => a.timetz(0).with_precision(digits).shown(s),
                "ts" => a.ts(0).with_precision(digits).shown(s),
                _ => a.tstz(0).with_precision(digits).shown(s),
            }
        }
    })
}

fn operators(operation: &str, a: &Args<'_>) -> Option<Outcome> {
    let s = a.session;
    let run = || {
        Ok(Some(match operation {
            "date+int" => a.date(0).plus_days(a.int(1))?.shown(s),
            "date-int" => a.date(0).minus_days(a.int(1))?.shown(s),
            "date-date" => a.date(0).minus(a.date(1))?.shown(s),
            "date+time" => a.date(0).plus_time(a.time(1))?.shown(s),
            "date+timetz" => a.date(0).plus_timetz(a.timetz(1))?.shown(s),
            "date+interval" => a.date(0).plus_interval(a.interval(1))?.shown(s),
            "date-interval" => a.date(0).minus_interval(a.interval(1))?.shown(s),
            "time+interval" => a.time(0).plus(a.interval(1)).shown(s),
            "time-interval" => a.time(0).minus_interval(a.interval(1)).shown(s),
            "time-time" => a.time(0).minus(a.time(1)).shown(s),
            "timetz+interval" => a.timetz(0).plus(a.interval(1)).shown(s),
            "timetz-interval" => a.timetz(0).minus_interval(a.interval(1)).shown(s),
            "ts+interval" => a.ts(0).plus(a.interval(1))?.shown(s),
            "ts-interval" => a.ts(0).minus_interval(a.interval(1))?.shown(s),
            "ts-ts" => a.ts(0).minus(a.ts(1))?.shown(s),
            "tstz+interval" => a.tstz(0).plus(a.interval(1), a.zone())?.shown(s),
            "tstz-interval" => a.tstz(0).minus_interval(a.interval(1), a.zone())?.shown(s),
            "tstz-tstz" => a.tstz(0).minus(a.tstz(1))?.shown(s),
            "interval+interval" => a.interval(0).plus(a.interval(1))?.shown(s),
            "interval-interval" => a.interval(0).minus(a.interval(1))?.shown(s),
            "interval*float" => a.interval(0).multiply(a.float(1))?.shown(s),
            "interval/float" => a.interval(0).divide(a.float(1))?.shown(s),
            "-interval" => a.interval(0).negate()?.shown(s),
            "cmp date" => a.date(0).cmp(&a.date(1)).shown(s),
            "cmp time" => a.time(0).cmp(&a.time(1)).shown(s),
            "cmp timetz" => a.timetz(0).cmp(&a.timetz(1)).shown(s),
            "cmp ts" => a.ts(0).cmp(&a.ts(1)).shown(s),
            "cmp tstz" => a.tstz(0).cmp(&a.tstz(1)).shown(s),
            "cmp interval" => a.interval(0).cmp(&a.interval(1)).shown(s),
            "cmp date ts" => a.date(0).cmp_timestamp(a.ts(1)).shown(s),
            "cmp date tstz" => a.date(0).cmp_timestamptz(a.tstz(1), a.zone()).shown(s),
            "cmp ts tstz" => a.ts(0).cmp_timestamptz(a.tstz(1), a.zone()).shown(s),
            _ => return Ok(None),
        }))
    };
    run().transpose()
}

fn casts(operation: &str, a: &Args<'_>) -> Option<Outcome> {
    let s = a.session;
    let run = || {
        Ok(Some(match operation {
            "date>ts" => a.date(0).to_timestamp()?.shown(s),
            "date>tstz" => a.date(0).to_timestamptz(a.zone())?.shown(s),
            "ts>date" => a.ts(0).to_date().shown(s),
            "ts>time" => a.ts(0).to_time().shown(s),
            "ts>tstz" => a.ts(0).to_timestamptz(a.zone())?.shown(s),
            "tstz>ts" => a.tstz(0).to_timestamp(a.zone())?.shown(s),
            "tstz>date" => a.tstz(0).to_date(a.zone()).shown(s),
            "tstz>time" => a.tstz(0).to_time(a.zone()).shown(s),
            "tstz>timetz" => a.tstz(0).to_timetz(a.zone()).shown(s),
            "time>timetz" => a.time(0).to_timetz(s).shown(s),
            "time>interval" => a.time(0).to_interval().shown(s),
            "timetz>time" => a.timetz(0).to_time().shown(s),
            "interval>time" => a.interval(0).to_time().shown(s),
            _ => return Ok(None),
        }))
    };
    run().transpose()
}

fn fields(operation: &str, a: &Args<'_>) -> Option<Outcome> {
    let s = a.session;
    let unit = a.texts[0];
    let run = || {
        Ok(Some(match operation {
            "extract date" => a.date(1).extract(unit)?.shown(s),
            "extract time" => a.time(1).extract(unit)?.shown(s),
            "extract timetz" => a.timetz(1).extract(unit)?.shown(s),
            "extract ts" => a.ts(1).extract(unit)?.shown(s),
            "extract tstz" => a.tstz(1).extract(unit, a.zone())?.shown(s),
            "extract interval" => a.interval(1).extract(unit)?.shown(s),
            "part date" => a.date(1).date_part(unit)?.shown(s),
            "part time" => a.time(1).date_part(unit)?.shown(s),
            "part timetz" => a.timetz(1).date_part(unit)?.shown(s),
            "part ts" => a.ts(1).date_part(unit)?.shown(s),
            "part tstz" => a.tstz(1).date_part(unit, a.zone())?.shown(s),
            "part interval" => a.interval(1).date_part(unit)?.shown(s),
            _ => return Ok(None),
        }))
    };
    run().transpose()
}
