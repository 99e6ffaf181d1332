//! Dates, times and spans of time.

use bytes::BytesMut;

use crate::datetime::{
    Date, Interval, IntervalTypmod, PrecisionOf, Time, TimeTz, Timestamp, TimestampTz, check_precision,
};
use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::row::{IoEnv, Modifier, TypeIo, TypeRow};
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

fn date(value: &DatumRef<'_>) -> Date {
    Date(i32::try_from(value.int()).unwrap_or(0))
}

pub(crate) const DATE_IO: TypeIo = TypeIo {
    input: |text, _, env| Date::parse(text, &env.session()).map(|date| Datum::Int(date.0.into())),
    output: |value, _, env, out| out.extend_from_slice(date(value).format(&env.session()).as_bytes()),
    receive: |bytes, _, _| Date::from_wire(bytes).map(|date| Datum::Int(date.0.into())),
    send: |value, _, _, out| out.extend_from_slice(&date(value).to_wire()),
};

pub(crate) const TIME_IO: TypeIo = TypeIo {
    input: |text, _, env| Time::parse(text, &env.session()).map(|time| Datum::Int(time.0)),
    output: |value, _, _, out| out.extend_from_slice(Time(value.int()).format().as_bytes()),
    receive: |bytes, _, _| Time::from_wire(bytes).map(|time| Datum::Int(time.0)),
    send: |value, _, _, out| out.extend_from_slice(&Time(value.int()).to_wire()),
};

pub(crate) const TIMESTAMP_IO: TypeIo = TypeIo {
    input: |text, _, env| Timestamp::parse(text, &env.session()).map(|time| Datum::Int(time.0)),
    output: |value, _, env, out| out.extend_from_slice(Timestamp(value.int()).format(&env.session()).as_bytes()),
    receive: |bytes, _, _| Timestamp::from_wire(bytes).map(|time| Datum::Int(time.0)),
    send: |value, _, _, out| out.extend_from_slice(&Timestamp(value.int()).to_wire()),
};

pub(crate) const TIMESTAMPTZ_IO: TypeIo = TypeIo {
    input: |text, _, env| TimestampTz::parse(text, &env.session()).map(|time| Datum::Int(time.0)),
    output: |value, _, env, out| out.extend_from_slice(TimestampTz(value.int()).format(&env.session()).as_bytes()),
    receive: |bytes, _, _| TimestampTz::from_wire(bytes).map(|time| Datum::Int(time.0)),
    send: |value, _, _, out| out.extend_from_slice(&TimestampTz(value.int()).to_wire()),
};

pub(crate) const TIMETZ_IO: TypeIo = TypeIo {
    input: |text, _, env| TimeTz::parse(text, &env.session()).map(Datum::TimeTz),
    output: output_timetz,
    receive: |bytes, _, _| TimeTz::from_wire(bytes).map(Datum::TimeTz),
    send: send_timetz,
};

pub(crate) const INTERVAL_IO: TypeIo = TypeIo {
    input: |text, ty, env| {
        let typmod = IntervalTypmod::decode(ty.typmod).unwrap_or(IntervalTypmod::NONE);
        Interval::parse(text, typmod, &env.session()).map(Datum::Interval)
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
        out.extend_from_slice(interval.format(&env.session()).as_bytes());
    }
}

fn send_interval(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    if let Datum::Interval(interval) = value.other() {
        out.extend_from_slice(&interval.to_wire());
    }
}

/// `time(3)`, with or without a zone
pub(crate) const TIME_MODIFIER: Modifier = Modifier {
    show: show_precision,
    read: read_precision,
    apply: |value, ty, _| {
        Ok(match value {
            Datum::Int(micros) => Datum::Int(Time(micros).with_precision(digits(ty)).0),
            Datum::TimeTz(time) => Datum::TimeTz(time.with_precision(digits(ty))),
            value => value,
        })
    },
};

/// `timestamp(3)`, with or without a zone
pub(crate) const TIMESTAMP_MODIFIER: Modifier = Modifier {
    show: show_precision,
    read: read_precision,
    apply: |value, ty, _| {
        Ok(match value {
            Datum::Int(micros) => Datum::Int(Timestamp(micros).with_precision(digits(ty)).0),
            value => value,
        })
    },
};

/// `interval day to second(3)`. The fields are no number: whoever reads the name adds them.
pub(crate) const INTERVAL_MODIFIER: Modifier = Modifier {
    show: show_interval,
    read: read_interval,
    apply: |value, ty, _| {
        Ok(match (value, IntervalTypmod::decode(ty.typmod)) {
            (Datum::Interval(interval), Some(typmod)) => Datum::Interval(typmod.apply(interval)),
            (value, _) => value,
        })
    },
};

/// The name of a type with a precision: `timestamp(3) with time zone`.
fn show_precision(row: &TypeRow, typmod: i32) -> String {
    match row.sql_name.split_once(' ') {
        Some((first, rest)) => format!("{first}({typmod}) {rest}"),
        None => format!("{}({typmod})", row.sql_name),
    }
}

fn read_precision(row: &TypeRow, written: &[i32]) -> Result<i32, ValueError> {
    let of = match row.ty() {
        SqlType::TIME => PrecisionOf::Time { zoned: false },
        SqlType::TIMETZ => PrecisionOf::Time { zoned: true },
        SqlType::TIMESTAMP => PrecisionOf::Timestamp { zoned: false },
        _ => PrecisionOf::Timestamp { zoned: true },
    };
    match written {
        [digits] => check_precision(of, *digits).map(|(digits, _)| digits.into()),
        _ => Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid type modifier")),
    }
}

fn show_interval(row: &TypeRow, typmod: i32) -> String {
    let Some(IntervalTypmod { fields, precision }) = IntervalTypmod::decode(typmod) else {
        return row.sql_name.to_owned();
    };
    let fields = fields.name().map(|name| format!(" {name}")).unwrap_or_default();
    let precision = precision.map(|digits| format!("({digits})")).unwrap_or_default();
    format!("{}{fields}{precision}", row.sql_name)
}

fn read_interval(_: &TypeRow, written: &[i32]) -> Result<i32, ValueError> {
    match written {
        [digits] => {
            let (digits, _) = check_precision(PrecisionOf::Interval, *digits)?;
            Ok(IntervalTypmod { precision: Some(digits), ..IntervalTypmod::NONE }.encode())
        }
        _ => Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid INTERVAL type modifier")),
    }
}

fn digits(ty: SqlType) -> u8 {
    u8::try_from(ty.typmod).unwrap_or(6).min(6)
}
