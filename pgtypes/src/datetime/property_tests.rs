//! Round trips of all forms, the order of keys, and inputs that must not panic.

use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;

use super::*;

const NOW: Now = Now(849_009_600_000_000);
const FIRST: i64 = -211_813_488_000_000_000;
const END: i64 = 9_223_371_331_200_000_000;
const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York", "Australia/Lord_Howe", "America/St_Johns"];
const STYLES: [IntervalStyle; 4] =
    [IntervalStyle::Postgres, IntervalStyle::PostgresVerbose, IntervalStyle::SqlStandard, IntervalStyle::Iso8601];

fn zones() -> impl Strategy<Value = TimeZone> {
    let formats = [DateFormat::Iso, DateFormat::Sql, DateFormat::Postgres, DateFormat::German];
    (0usize..6, 0usize..4, any::<bool>()).prop_map(move |(zone, format, day_first)| {
        // Points do not tell the order of day and month.
        let style = DateStyle { format: formats[format], day_first: day_first || format == 3 };
        TimeZone::find(ZONES[zone]).unwrap().with_style(style)
    })
}

fn finite() -> impl Strategy<Value = i64> {
    prop_oneof![FIRST..END, -10_000_000_000_000_000i64..10_000_000_000_000_000, -1000i64..1000]
}

fn timestamps() -> impl Strategy<Value = Timestamp> {
    prop_oneof![8 => finite().prop_map(Timestamp), 1 => Just(Timestamp::INFINITY), 1 => Just(Timestamp::NEG_INFINITY)]
}

fn dates() -> impl Strategy<Value = Date> {
    prop_oneof![
        8 => (-2_451_545i32..2_145_031_949).prop_map(Date),
        8 => (-20_000i32..20_000).prop_map(Date),
        1 => Just(Date::INFINITY),
        1 => Just(Date::NEG_INFINITY),
    ]
}

fn timetzs() -> impl Strategy<Value = TimeTz> {
    (0i64..=86_400_000_000, -57_599i32..57_600).prop_map(|(micros, offset)| TimeTz { micros, offset })
}

fn intervals() -> impl Strategy<Value = Interval> {
    let part = prop_oneof![Just(0i32), -40i32..40, -2_000_000_000i32..2_000_000_000];
    let micros = prop_oneof![Just(0i64), -200_000_000_000i64..200_000_000_000, -(1i64 << 62)..1i64 << 62];
    (part.clone(), part, micros).prop_map(|(months, days, micros)| Interval::new(months, days, micros))
}

proptest! {
    #[test]
    fn text_round_trips(zone in zones(), date in dates(), ts in timestamps(), tz in timetzs()) {
        let session = Session::new(&zone, NOW);
        prop_assert_eq!(Date::parse(&date.format(&session), &session).unwrap(), date);
        prop_assert_eq!(Timestamp::parse(&ts.format(&session), &session).unwrap(), ts);
        prop_assert_eq!(TimeTz::parse(&tz.format(), &session).unwrap(), tz);
        let time = tz.to_time();
        prop_assert_eq!(Time::parse(&time.format(), &session).unwrap(), time);
    }

    #[test]
    fn zoned_text_round_trips(zone in zones(), micros in finite()) {
        let zone = zone.with_style(DateStyle::default());
        let session = Session::new(&zone, NOW);
        let value = TimestampTz(micros);
        prop_assert_eq!(TimestampTz::parse(&value.format(&session), &session).unwrap(), value);
    }

    #[test]
    fn interval_text_round_trips(value in intervals(), style in 0usize..4) {
        let zone = TimeZone::utc();
        let session = Session { interval_style: STYLES[style], ..Session::new(&zone, NOW) };
        let text = value.format(&session);
        let back = Interval::parse(&text, IntervalTypmod::NONE, &session).unwrap();
        prop_assert!(back.is_identical(&value), "{} is {:?}, not {:?}", text, back, value);
    }

    #[test]
    fn binary_forms_round_trip(date in dates(), ts in timestamps(), tz in timetzs(), interval in intervals()) {
        prop_assert_eq!(Date::from_wire(&date.to_wire()).unwrap(), date);
        prop_assert_eq!(Timestamp::from_wire(&ts.to_wire()).unwrap(), ts);
        prop_assert_eq!(TimeTz::from_wire(&tz.to_wire()).unwrap(), tz);
        prop_assert!(Interval::from_wire(&interval.to_wire()).unwrap().is_identical(&interval));
        prop_assert_eq!(Date::from_key(date.to_key()), date);
        prop_assert_eq!(Timestamp::from_key(ts.to_key()), ts);
        prop_assert_eq!(TimestampTz::from_key(TimestampTz(ts.0).to_key()), TimestampTz(ts.0));
        prop_assert_eq!(TimeTz::from_key(tz.to_key()), tz);
        prop_assert_eq!(Time::from_key(tz.to_time().to_key()), tz.to_time());
        prop_assert_eq!(Interval::from_key(interval.to_key()), interval);
    }

    #[test]
    fn keys_sort_as_values(a in (dates(), timestamps(), timetzs(), intervals()),
                           b in (dates(), timestamps(), timetzs(), intervals())) {
        prop_assert_eq!(a.0.cmp(&b.0), a.0.to_key().cmp(&b.0.to_key()));
        prop_assert_eq!(a.1.cmp(&b.1), a.1.to_key().cmp(&b.1.to_key()));
        prop_assert_eq!(a.2.cmp(&b.2), a.2.to_key().cmp(&b.2.to_key()));
        prop_assert_eq!(a.3.cmp(&b.3), a.3.to_key().cmp(&b.3.to_key()));
    }

    #[test]
    fn extreme_intervals_have_keys(months: i32, days: i32, micros: i64) {
        let value = Interval::new(months, days, micros);
        prop_assert_eq!(Interval::from_key(value.to_key()), value);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}", template in "\\PC{0,20}") {
        read_all(&text, &template);
    }

    #[test]
    fn no_time_like_text_panics(text in "[-0-9 :.TZ+/a-zBCJ]{0,40}", template in "[-A-Za-z0-9,: \"\\\\]{0,20}") {
        read_all(&text, &template);
    }

    #[test]
    fn no_number_of_fields_panics(text in "([0-9]{1,20}[-:./ ]?){1,5}", template in "(YYYY|MM|DD|IW|J|FF6|TZH|SSSS)*") {
        read_all(&text, &template);
    }

    #[test]
    fn no_value_panics(zone in zones(), ts in timestamps(), interval: [i32; 2], micros: i64, factor: f64) {
        let session = Session::new(&zone, NOW);
        let interval = Interval::new(interval[0], interval[1], micros);
        let tstz = TimestampTz(ts.0);
        let _ = (ts.plus(interval), ts.minus_interval(interval), ts.age(Timestamp(micros)), ts.bin(interval, ts));
        let _ = (tstz.plus(interval, &zone), tstz.age(TimestampTz(micros), &zone), tstz.to_timestamp(&zone));
        let _ = (interval.multiply(factor), interval.divide(factor), interval.justify_interval(), interval.negate());
        let _ = (interval.extract("epoch"), interval.to_char("YYYY IW IDDD J RM CC W WW Q"), interval.format(&session));
        let _ = (ts.at_interval(interval, &session), TimestampTz::from_unix(factor), interval.to_time());
        let _ = (ts.extract("julian"), ts.to_char("J IW Y,YYY SSSS"), tstz.to_char("TZ OF", &zone));
        for style in STYLES {
            let _ = interval.format_as(style);
        }
    }
}

fn read_all(text: &str, template: &str) {
    let zone = TimeZone::find("Europe/Berlin").unwrap();
    let session = Session::new(&zone, NOW);
    let _ = (Date::parse(text, &session), Timestamp::parse(text, &session), TimestampTz::parse(text, &session));
    let _ = (Time::parse(text, &session), TimeTz::parse(text, &session), TimeZone::find(text));
    let _ = Interval::parse(text, IntervalTypmod::NONE, &session);
    let _ = (Date::from_template(text, template), TimestampTz::from_template(text, template, &session));
    let _ = Timestamp(0).to_char(template);
}

#[test]
fn equal_intervals_have_one_hash() {
    let state = RandomState::new();
    let month = Interval::new(1, 0, 0);
    for same in [Interval::new(0, 30, 0), Interval::new(0, 29, 86_400_000_000), Interval::new(2, -30, 0)] {
        assert_eq!(month, same);
        assert!(!month.is_identical(&same));
        assert_eq!(state.hash_one(month), state.hash_one(same));
    }
    assert_ne!(state.hash_one(TimeTz { micros: 0, offset: 0 }), state.hash_one(TimeTz { micros: 1, offset: 0 }));
}

#[test]
fn wire_forms_are_checked() {
    let code = |error: crate::ValueError| error.code().0;
    assert_eq!(code(Date::from_wire(&i32::to_be_bytes(-2_451_546)).unwrap_err()), "22008");
    assert_eq!(code(Time::from_wire(&i64::to_be_bytes(86_400_000_001)).unwrap_err()), "22008");
    assert_eq!(code(Time::from_wire(&i64::to_be_bytes(-1)).unwrap_err()), "22008");
    assert_eq!(code(Timestamp::from_wire(&END.to_be_bytes()).unwrap_err()), "22008");
    let mut zoned = [0u8; 12];
    zoned[8..].copy_from_slice(&57_600i32.to_be_bytes());
    assert_eq!(code(TimeTz::from_wire(&zoned).unwrap_err()), "22009");
    assert_eq!(code(Interval::from_wire(&[0; 15]).unwrap_err()), "08P01");
    assert_eq!(code(Interval::from_wire(&[0; 17]).unwrap_err()), "22P03");
    // Seconds west of Greenwich, as PostgreSQL sends them.
    assert_eq!(TimeTz { micros: 1, offset: 3600 }.to_wire(), [0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xf1, 0xf0]);
    assert_eq!(Interval::new(1, 2, 3).to_wire(), [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1]);
}
