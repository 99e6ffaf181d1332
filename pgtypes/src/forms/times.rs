//! Dates, times and spans of time.

use bytes::BytesMut;

use crate::datetime::{Date, Interval, IntervalTypmod, Session, Time, TimeTz, Timestamp, TimestampTz};
use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::row::{IoEnv, TypeIo, TypeRow};
use crate::sql_type::SqlType;

fn session<'e>(env: &IoEnv<'e>) -> Session<'e> {
    Session::new(env.zone, env.now)
}

fn date(value: &DatumRef<'_>) -> Date {
    Date(i32::try_from(value.int()).unwrap_or(0))
}

pub(crate) const DATE_IO: TypeIo = TypeIo {
    input: |text, _, env| Date::parse(text, &session(env)).map(|date| Datum::Int(date.0.into())),
    output: |value, _, env, out| out.extend_from_slice(date(value).format(&session(env)).as_bytes()),
    receive: |bytes, _, _| Date::from_wire(bytes).map(|date| Datum::Int(date.0.into())),
    send: |value, _, _, out| out.extend_from_slice(&date(value).to_wire()),
};

pub(crate) const TIME_IO: TypeIo = TypeIo {
    input: |text, _, env| Time::parse(text, &session(env)).map(|time| Datum::Int(time.0)),
    output: |value, _, _, out| out.extend_from_slice(Time(value.int()).format().as_bytes()),
    receive: |bytes, _, _| Time::from_wire(bytes).map(|time| Datum::Int(time.0)),
    send: |value, _, _, out| out.extend_from_slice(&Time(value.int()).to_wire()),
};

pub(crate) const TIMESTAMP_IO: TypeIo = TypeIo {
    input: |text, _, env| Timestamp::parse(text, &session(env)).map(|time| Datum::Int(time.0)),
    output: |value, _, env, out| out.extend_from_slice(Timestamp(value.int()).format(&session(env)).as_bytes()),
    receive: |bytes, _, _| Timestamp::from_wire(bytes).map(|time| Datum::Int(time.0)),
    send: |value, _, _, out| out.extend_from_slice(&Timestamp(value.int()).to_wire()),
};

pub(crate) const TIMESTAMPTZ_IO: TypeIo = TypeIo {
    input: |text, _, env| TimestampTz::parse(text, &session(env)).map(|time| Datum::Int(time.0)),
    output: |value, _, env, out| out.extend_from_slice(TimestampTz(value.int()).format(&session(env)).as_bytes()),
    receive: |bytes, _, _| TimestampTz::from_wire(bytes).map(|time| Datum::Int(time.0)),
    send: |value, _, _, out| out.extend_from_slice(&TimestampTz(value.int()).to_wire()),
};

pub(crate) const TIMETZ_IO: TypeIo = TypeIo {
    input: |text, _, env| TimeTz::parse(text, &session(env)).map(Datum::TimeTz),
    output: output_timetz,
    receive: |bytes, _, _| TimeTz::from_wire(bytes).map(Datum::TimeTz),
    send: send_timetz,
};

pub(crate) const INTERVAL_IO: TypeIo = TypeIo {
    input: |text, ty, env| {
        let typmod = IntervalTypmod::decode(ty.typmod).unwrap_or(IntervalTypmod::NONE);
        Interval::parse(text, typmod, &session(env)).map(Datum::Interval)
    },
    output: output_interval,
    receive: |bytes, _, _| Interval::from_wire(bytes).map(Datum::Interval),
    send: send_interval,
};

fn output_timetz(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::TimeTz(time) = value.other() {
        out.extend_from_slice(time.format().as_bytes());
    }
}

fn send_timetz(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::TimeTz(time) = value.other() {
        out.extend_from_slice(&time.to_wire());
    }
}

fn output_interval(value: &DatumRef<'_>, _: SqlType, env: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Interval(interval) = value.other() {
        out.extend_from_slice(interval.format(&session(env)).as_bytes());
    }
}

fn send_interval(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Interval(interval) = value.other() {
        out.extend_from_slice(&interval.to_wire());
    }
}

/// The name of a type with a precision: `timestamp(3) with time zone`.
pub(crate) fn show_precision(row: &TypeRow, typmod: i32) -> String {
    match row.sql_name.split_once(' ') {
        Some((first, rest)) => format!("{first}({typmod}) {rest}"),
        None => format!("{}({typmod})", row.sql_name),
    }
}

/// `interval day to second(3)`
pub(crate) fn show_interval(row: &TypeRow, typmod: i32) -> String {
    let Some(IntervalTypmod { fields, precision }) = IntervalTypmod::decode(typmod) else {
        return row.sql_name.to_owned();
    };
    let fields = fields.name().map(|name| format!(" {name}")).unwrap_or_default();
    let precision = precision.map(|digits| format!("({digits})")).unwrap_or_default();
    format!("{}{fields}{precision}", row.sql_name)
}

fn digits(ty: SqlType) -> u8 {
    u8::try_from(ty.typmod).unwrap_or(6).min(6)
}

/// Rounds to a precision.
pub(crate) fn modify_time(value: Datum, ty: SqlType, _: bool) -> Result<Datum, ValueError> {
    Ok(match value {
        Datum::Int(micros) => Datum::Int(Time(micros).with_precision(digits(ty)).0),
        Datum::TimeTz(time) => Datum::TimeTz(time.with_precision(digits(ty))),
        value => value,
    })
}

/// Rounds to a precision.
pub(crate) fn modify_timestamp(value: Datum, ty: SqlType, _: bool) -> Result<Datum, ValueError> {
    Ok(match value {
        Datum::Int(micros) => Datum::Int(Timestamp(micros).with_precision(digits(ty)).0),
        value => value,
    })
}

/// Drops fields, and rounds to a precision.
pub(crate) fn modify_interval(value: Datum, ty: SqlType, _: bool) -> Result<Datum, ValueError> {
    Ok(match (value, IntervalTypmod::decode(ty.typmod)) {
        (Datum::Interval(interval), Some(typmod)) => Datum::Interval(typmod.apply(interval)),
        (value, _) => value,
    })
}
