//! Text and binary forms, casts and order, compared with PostgreSQL 15.

use std::cmp::Ordering;
use std::sync::LazyLock;

use bytes::BytesMut;
use proptest::prelude::*;

use crate::cast::{Cast, CastContext, cast_context};
use crate::datum::compare;
use crate::float::{parse_float, show};
use crate::timestamp::{self, Now};
use crate::*;

static UTC: LazyLock<TimeZone> = LazyLock::new(TimeZone::utc);

fn utc() -> IoEnv<'static> {
    IoEnv::new(&UTC, Now(0))
}

fn text(ty: SqlType, input: &str) -> Result<String, String> {
    text_in(ty, input, &TimeZone::utc())
}

fn text_in(ty: SqlType, input: &str, zone: &TimeZone) -> Result<String, String> {
    let datum = Datum::decode(ty, Format::Text, input.as_bytes(), &IoEnv::new(zone, Now(0)))
        .map_err(|e| format!("{} {}", e.code().0, e.message()))?;
    let mut out = BytesMut::new();
    datum.borrow().encode(ty, Format::Text, &IoEnv::new(zone, Now(0)), &mut out);
    Ok(String::from_utf8(out.to_vec()).unwrap())
}

fn zone(name: &str) -> TimeZone {
    TimeZone::new(jiff::tz::TimeZone::get(name).unwrap())
}

#[test]
fn booleans() {
    for yes in ["t", "true", "TRUE", " tr ", "y", "yes", "on", "1"] {
        assert_eq!(text(SqlType::BOOL, yes).unwrap(), "t", "{yes}");
    }
    for no in ["f", "fals", "n", "no", "of", "off", "0"] {
        assert_eq!(text(SqlType::BOOL, no).unwrap(), "f", "{no}");
    }
    for bad in ["", "o", "2", "truee", "yess"] {
        assert_eq!(
            text(SqlType::BOOL, bad).unwrap_err(),
            format!("22P02 invalid input syntax for type boolean: \"{bad}\"")
        );
    }
}

#[test]
fn integers() {
    assert_eq!(text(SqlType::INT4, " -42 ").unwrap(), "-42");
    assert_eq!(text(SqlType::INT8, "+9223372036854775807").unwrap(), "9223372036854775807");
    assert_eq!(text(SqlType::INT8, "-9223372036854775808").unwrap(), "-9223372036854775808");
    assert_eq!(text(SqlType::INT4, "x").unwrap_err(), "22P02 invalid input syntax for type integer: \"x\"");
    assert_eq!(text(SqlType::INT2, "").unwrap_err(), "22P02 invalid input syntax for type smallint: \"\"");
    assert_eq!(text(SqlType::INT4, "1 2").unwrap_err(), "22P02 invalid input syntax for type integer: \"1 2\"");
    assert_eq!(text(SqlType::INT2, "32768").unwrap_err(), "22003 value \"32768\" is out of range for type smallint");
    let far = "99999999999999999999";
    assert_eq!(text(SqlType::INT8, far).unwrap_err(), format!("22003 value \"{far}\" is out of range for type bigint"));
}

#[test]
fn floats() {
    let same = [
        "0",
        "-0",
        "0.1",
        "1e+15",
        "123456789012345",
        "1.234567890123456e+15",
        "0.0001",
        "1e-05",
        "NaN",
        "Infinity",
        "-Infinity",
        "5e-324",
        "1.7976931348623157e+308",
    ];
    for value in same {
        assert_eq!(text(SqlType::FLOAT8, value).unwrap(), value);
    }
    assert_eq!(text(SqlType::FLOAT8, " +inf ").unwrap(), "Infinity");
    assert_eq!(text(SqlType::FLOAT8, ".5e1").unwrap(), "5");
    assert_eq!(
        text(SqlType::FLOAT8, "1e400").unwrap_err(),
        "22003 \"1e400\" is out of range for type double precision"
    );
    assert_eq!(
        text(SqlType::FLOAT8, "1e-400").unwrap_err(),
        "22003 \"1e-400\" is out of range for type double precision"
    );
    for bad in ["", "1x", "--1", "e5", "1e"] {
        assert!(text(SqlType::FLOAT8, bad).unwrap_err().starts_with("22P02"), "{bad}");
    }
}

#[test]
fn byte_strings() {
    assert_eq!(text(SqlType::BYTEA, "\\xDEADbeef").unwrap(), "\\xdeadbeef");
    assert_eq!(text(SqlType::BYTEA, "\\x").unwrap(), "\\x");
    assert_eq!(text(SqlType::BYTEA, "\\xab cd").unwrap(), "\\xabcd");
    assert_eq!(text(SqlType::BYTEA, "a\\\\b\\001").unwrap(), "\\x615c6201");
    assert_eq!(text(SqlType::BYTEA, "\\x1").unwrap_err(), "22023 invalid hexadecimal data: odd number of digits");
    assert_eq!(text(SqlType::BYTEA, "\\xzz").unwrap_err(), "22023 invalid hexadecimal digit: \"z\"");
    assert_eq!(text(SqlType::BYTEA, "\\9").unwrap_err(), "22P02 invalid input syntax for type bytea");
}

#[test]
fn text_must_be_utf8() {
    let decode = |bytes: &[u8]| {
        let error = Datum::decode(SqlType::TEXT, Format::Text, bytes, &utc()).unwrap_err();
        format!("{} {}", error.code().0, error.message())
    };
    assert_eq!(decode(b"a\xffb"), "22021 invalid byte sequence for encoding \"UTF8\": 0xff");
    assert_eq!(decode(b"a\x00b"), "22021 invalid byte sequence for encoding \"UTF8\": 0x00");
    assert_eq!(decode(b"\xe2\x28\xa1"), "22021 invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1");
    assert_eq!(decode(b"\xe2\x82"), "22021 invalid byte sequence for encoding \"UTF8\": 0xe2 0x82");
}

#[test]
fn timestamps_in_utc() {
    let ts = |input| text(SqlType::TIMESTAMPTZ, input);
    assert_eq!(ts("2024-03-01 12:34:56.789").unwrap(), "2024-03-01 12:34:56.789+00");
    assert_eq!(ts("2024-03-01T12:34:56Z").unwrap(), "2024-03-01 12:34:56+00");
    assert_eq!(ts("2024-03-01").unwrap(), "2024-03-01 00:00:00+00");
    assert_eq!(ts("20240301T123456").unwrap(), "2024-03-01 12:34:56+00");
    assert_eq!(ts("2024-03-01 12:34:56+05:30").unwrap(), "2024-03-01 07:04:56+00");
    assert_eq!(ts("2024-03-01 12:34:56-0330").unwrap(), "2024-03-01 16:04:56+00");
    assert_eq!(ts("2024-03-01 24:00:00").unwrap(), "2024-03-02 00:00:00+00");
    assert_eq!(ts("2024-12-31 23:59:60").unwrap(), "2025-01-01 00:00:00+00");
    assert_eq!(ts("0044-03-15 BC").unwrap(), "0044-03-15 00:00:00+00 BC");
    assert_eq!(ts("epoch").unwrap(), "1970-01-01 00:00:00+00");
    assert_eq!(ts("infinity").unwrap(), "infinity");
    assert_eq!(ts("-infinity").unwrap(), "-infinity");
    assert_eq!(ts("294276-12-31 23:59:59.999999").unwrap(), "294276-12-31 23:59:59.999999+00");
    assert_eq!(ts("4713-01-01 BC").unwrap(), "4713-01-01 00:00:00+00 BC");
    assert_eq!(ts("2024-01-15 12:00 America/New_York").unwrap(), "2024-01-15 17:00:00+00");
}

#[test]
fn timestamps_refused() {
    let ts = |input| text(SqlType::TIMESTAMPTZ, input).unwrap_err();
    assert_eq!(ts("garbage"), "22007 invalid input syntax for type timestamp with time zone: \"garbage\"");
    assert_eq!(ts(""), "22007 invalid input syntax for type timestamp with time zone: \"\"");
    assert_eq!(ts("2024-13-01"), "22008 date/time field value out of range: \"2024-13-01\"");
    assert_eq!(ts("2023-02-29"), "22008 date/time field value out of range: \"2023-02-29\"");
    assert_eq!(ts("2024-01-01 25:00"), "22008 date/time field value out of range: \"2024-01-01 25:00\"");
    assert_eq!(ts("294277-01-01"), "22008 timestamp out of range: \"294277-01-01\"");
    assert_eq!(ts("2024-01-01 00:00+16"), "22009 time zone displacement out of range: \"2024-01-01 00:00+16\"");
    assert_eq!(ts("2024-01-01 00:00 Nowhere/Land"), "22023 time zone \"nowhere/land\" not recognized");
}

#[test]
fn timestamps_in_a_zone_with_daylight_saving() {
    let berlin = zone("Europe/Berlin");
    let ts = |input| text_in(SqlType::TIMESTAMPTZ, input, &berlin).unwrap();
    assert_eq!(ts("2024-07-01 12:00"), "2024-07-01 12:00:00+02");
    assert_eq!(ts("2024-01-01 12:00Z"), "2024-01-01 13:00:00+01");
    // A time skipped in spring has the offset before the change, one repeated in autumn the offset after it.
    assert_eq!(ts("2024-03-31 02:30"), "2024-03-31 03:30:00+02");
    assert_eq!(ts("2024-10-27 02:30"), "2024-10-27 02:30:00+01");
    assert_eq!(
        text_in(SqlType::TIMESTAMPTZ, "2024-01-01 00:00Z", &zone("Asia/Kolkata")).unwrap(),
        "2024-01-01 05:30:00+05:30"
    );
    assert_eq!(text_in(SqlType::TIMESTAMPTZ, "1890-01-01 00:00Z", &berlin).unwrap(), "1890-01-01 00:53:28+00:53:28");
}

fn shown_timestamp(micros: i64, zone: &TimeZone) -> String {
    wire::show(&Datum::Int(micros), SqlType::TIMESTAMPTZ, &IoEnv::new(zone, Now(0)))
}

#[test]
fn relative_times() {
    let berlin = zone("Europe/Berlin");
    let now = timestamp::parse("2024-03-30 23:30:00Z", &berlin, Now(0)).unwrap();
    let at = |word| shown_timestamp(timestamp::parse(word, &berlin, Now(now)).unwrap(), &berlin);
    assert_eq!(at("now"), "2024-03-31 00:30:00+01");
    assert_eq!(at("today"), "2024-03-31 00:00:00+01");
    assert_eq!(at("tomorrow"), "2024-04-01 00:00:00+02");
    assert_eq!(at("yesterday"), "2024-03-30 00:00:00+01");
}

#[test]
fn binary_forms() {
    let values = [
        (SqlType::BOOL, Datum::Bool(true), "01"),
        (SqlType::INT2, Datum::Int(-2), "fffe"),
        (SqlType::INT4, Datum::Int(258), "00000102"),
        (SqlType::INT8, Datum::Int(-1), "ffffffffffffffff"),
        (SqlType::FLOAT8, Datum::Float(1.5), "3ff8000000000000"),
        (SqlType::TEXT, Datum::Text("hé".into()), "68c3a9"),
        (SqlType::BYTEA, Datum::Bytes([0, 0xff].into()), "00ff"),
        (SqlType::TIMESTAMPTZ, Datum::Int(1_000_000), "00000000000f4240"),
    ];
    for (ty, value, hex) in values {
        let mut out = BytesMut::new();
        value.borrow().encode(ty, Format::Binary, &utc(), &mut out);
        let shown: String = out.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(shown, hex);
        assert_eq!(Datum::decode(ty, Format::Binary, &out, &utc()).unwrap(), value);
    }
    let wrong = |bytes: &[u8]| Datum::decode(SqlType::INT4, Format::Binary, bytes, &utc()).unwrap_err().code().0;
    assert_eq!(wrong(&[0, 1]), "08P01");
    assert_eq!(wrong(&[0, 1, 2, 3, 4]), "22P03");
    let far = i64::MAX - 1;
    let error = Datum::decode(SqlType::TIMESTAMPTZ, Format::Binary, &far.to_be_bytes(), &utc()).unwrap_err();
    assert_eq!(error.code().0, "22008");
}

#[test]
fn cast_contexts() {
    use CastContext::{Assignment, Explicit, Implicit};
    assert_eq!(cast_context(SqlType::INT2, SqlType::INT8), Some(Implicit));
    assert_eq!(cast_context(SqlType::INT8, SqlType::INT2), Some(Assignment));
    assert_eq!(cast_context(SqlType::FLOAT8, SqlType::INT4), Some(Assignment));
    assert_eq!(cast_context(SqlType::BOOL, SqlType::INT4), Some(Explicit));
    assert_eq!(cast_context(SqlType::BOOL, SqlType::INT8), None);
    assert_eq!(cast_context(SqlType::TIMESTAMPTZ, SqlType::TEXT), Some(Assignment));
    assert_eq!(cast_context(SqlType::TEXT, SqlType::TIMESTAMPTZ), Some(Explicit));
    assert_eq!(cast_context(SqlType::varchar(3), SqlType::TEXT), Some(Implicit));
    assert_eq!(cast_context(SqlType::BYTEA, SqlType::INT4), None);
}

#[test]
fn casting() {
    let run = |value: Datum, from: SqlType, to: SqlType, explicit: bool| {
        Cast::find(from, to, explicit).unwrap().apply(value, &utc()).map_err(|e| e.message().to_owned())
    };
    assert_eq!(run(Datum::Float(2.5), SqlType::FLOAT8, SqlType::INT4, true).unwrap(), Datum::Int(2));
    assert_eq!(run(Datum::Float(3.5), SqlType::FLOAT8, SqlType::INT4, true).unwrap(), Datum::Int(4));
    assert_eq!(run(Datum::Float(9.3e18), SqlType::FLOAT8, SqlType::INT8, true).unwrap_err(), "bigint out of range");
    assert_eq!(run(Datum::Float(f64::NAN), SqlType::FLOAT8, SqlType::INT2, true).unwrap_err(), "smallint out of range");
    assert_eq!(run(Datum::Int(40_000), SqlType::INT8, SqlType::INT2, false).unwrap_err(), "smallint out of range");
    assert_eq!(run(Datum::Bool(true), SqlType::BOOL, SqlType::TEXT, true).unwrap(), Datum::Text("true".into()));
    let limited = SqlType::varchar(3);
    assert_eq!(run(Datum::Text("ab   ".into()), SqlType::TEXT, limited, false).unwrap(), Datum::Text("ab ".into()));
    assert_eq!(run(Datum::Text("äöüß".into()), SqlType::TEXT, limited, true).unwrap(), Datum::Text("äöü".into()));
    assert_eq!(
        run(Datum::Text("abcd".into()), SqlType::TEXT, limited, false).unwrap_err(),
        "value too long for type character varying(3)"
    );
}

#[test]
fn order_of_floats() {
    let sorted = [f64::NEG_INFINITY, -1.0, -0.0, 1.0, f64::INFINITY, f64::NAN];
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(compare(&Datum::Float(*a), &Datum::Float(*b)), i.cmp(&j), "{a} and {b}");
        }
    }
    assert_eq!(compare(&Datum::Float(-0.0), &Datum::Float(0.0)), Ordering::Equal);
}

proptest! {
    #[test]
    fn floats_round_trip(bits: u64) {
        let value = f64::from_bits(bits);
        let shown = show(value);
        let back = parse_float(&shown).unwrap();
        prop_assert!(back == value || (back.is_nan() && value.is_nan()), "{shown}");
    }

    #[test]
    fn timestamps_round_trip(micros in -211_813_488_000_000_000i64..9_223_371_331_200_000_000, at in 0usize..4) {
        let zone = zone(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"][at]);
        let shown = shown_timestamp(micros, &zone);
        prop_assert_eq!(timestamp::parse(&shown, &zone, Now(0)).unwrap(), micros, "{}", shown);
    }

    #[test]
    fn no_input_panics(text in "\\PC{0,40}", bytes: Vec<u8>) {
        for ty in [SqlType::BOOL, SqlType::INT4, SqlType::FLOAT8, SqlType::BYTEA, SqlType::TIMESTAMPTZ] {
            let _ = Datum::decode(ty, Format::Text, text.as_bytes(), &utc());
            let _ = Datum::decode(ty, Format::Binary, &bytes, &utc());
        }
    }

    #[test]
    fn no_time_like_input_panics(text in "[-0-9 :.TZ+/a-zBC]{0,30}") {
        let _ = Datum::decode(SqlType::TIMESTAMPTZ, Format::Text, text.as_bytes(), &utc());
    }
}

/// Each element copied all before it: a value of some megabytes held its thread for minutes.
#[test]
fn large_arrays_are_shown_in_linear_time() {
    let elements: Vec<String> = (0..400_000).map(|number| format!("{number}")).collect();
    let shown = format!("{{{}}}", elements.join(","));
    assert_eq!(text(SqlType::INT4_ARRAY, &shown).unwrap(), shown);
    let quoted =
        format!("{{{}}}", elements.iter().map(|number| format!("\"{number} \"")).collect::<Vec<_>>().join(","));
    assert_eq!(text(SqlType::TEXT_ARRAY, &quoted).unwrap(), quoted);
}
