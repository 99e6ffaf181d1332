//! What literals take from the session, and the functions of the current time.

use super::*;

/// 2026-11-26 03:30:00 UTC
const NOW: Now = Now(848_979_000_000_000);

fn session(zone: &TimeZone) -> Session<'_> {
    Session::new(zone, NOW)
}

/// The letters of what was taken: now, zone, order, interval style.
fn letters(uses: Uses) -> String {
    let flags = [(uses.now, 'n'), (uses.zone, 'z'), (uses.order, 'o'), (uses.interval_style, 'i')];
    assert_eq!(uses.any(), flags.iter().any(|(used, _)| *used));
    flags.iter().filter(|(used, _)| *used).map(|(_, letter)| letter).collect()
}

#[test]
fn literals_say_what_they_take_from_the_session() {
    let zone = TimeZone::utc();
    let s = session(&zone);
    let cases = [
        ("2024-01-08", "", "", "z"),
        ("1/8/2024", "o", "o", "zo"),
        ("January 8, 2024", "o", "o", "zo"),
        ("2024-Jan-08", "", "", "z"),
        ("13/13/2024", "o", "o", "o"),
        ("2024-01-08 10:00+02", "", "", ""),
        ("2024-01-08 10:00 America/New_York", "", "", ""),
        ("2024-01-08 10:00 PST", "", "", ""),
        ("infinity", "", "", ""),
        ("epoch", "", "", ""),
        ("now", "nz", "nz", "n"),
        ("today", "nz", "nz", "nz"),
        ("tomorrow 10:00 UTC", "nz", "nz", "nz"),
        ("nonsense", "", "", ""),
    ];
    for (text, date, timestamp, zoned) in cases {
        let found = (
            letters(Date::read(text, &s).uses),
            letters(Timestamp::read(text, &s).uses),
            letters(TimestampTz::read(text, &s).uses),
        );
        assert_eq!(found, (date.into(), timestamp.into(), zoned.into()), "{text}");
    }
    assert_eq!(letters(Time::read("10:00", &s).uses), "");
    assert_eq!(letters(Time::read("now", &s).uses), "nz");
    assert_eq!(letters(TimeTz::read("10:00", &s).uses), "nz");
    assert_eq!(letters(TimeTz::read("10:00+01", &s).uses), "");
    assert_eq!(letters(TimeTz::read("2024-07-01 10:00", &s).uses), "z");
    assert_eq!(letters(TimeTz::read("10:00 MSK", &s).uses), "nz");
    let interval = |text| letters(Interval::read(text, IntervalTypmod::NONE, &s).uses);
    assert_eq!(interval("1 day"), "");
    assert_eq!(interval("-1 day"), "i");
    assert_eq!(interval("-1 day +2 hours"), "");
    assert_eq!(interval("P-1D"), "");
}

#[test]
fn words_of_the_current_time() {
    let zone = TimeZone::find("America/New_York").unwrap();
    let s = session(&zone);
    assert_eq!(Date::parse("today", &s).unwrap().format(&s), "2026-11-25");
    assert_eq!(Date::parse("tomorrow", &s).unwrap().format(&s), "2026-11-26");
    assert_eq!(Date::parse("yesterday", &s).unwrap().format(&s), "2026-11-24");
    assert_eq!(Timestamp::parse("now", &s).unwrap().format(&s), "2026-11-25 22:30:00");
    assert_eq!(Timestamp::parse("yesterday 04:05", &s).unwrap().format(&s), "2026-11-24 04:05:00");
    assert_eq!(TimestampTz::parse("now", &s).unwrap(), TimestampTz(NOW.0));
    assert_eq!(TimestampTz::parse("today allballs", &s).unwrap().format(&s), "2026-11-24 19:00:00-05");
    assert_eq!(Time::parse("now", &s).unwrap().format(), "22:30:00");
    assert_eq!(TimeTz::parse("now", &s).unwrap().format(), "22:30:00-05");
    assert_eq!(Date::current(&s).format(&s), "2026-11-25");
    assert_eq!(Time::current(&s).format(), "22:30:00");
    assert_eq!(TimeTz::current(&s).format(), "22:30:00-05");
    assert_eq!(Timestamp::current(&s).format(&s), "2026-11-25 22:30:00");
    assert_eq!(TimestampTz::current(&s), TimestampTz(NOW.0));
    let born = Timestamp::parse("2000-01-01", &s).unwrap();
    assert_eq!(born.age_today(&s).unwrap().format(&s), "26 years 10 mons 24 days");
    let born = TimestampTz::parse("2000-01-01", &s).unwrap();
    assert_eq!(born.age_today(&s).unwrap().format(&s), "26 years 10 mons 24 days");
}

#[test]
fn periods_overlap() {
    let (a, b, c, d) = (Some(Time(1)), Some(Time(2)), Some(Time(3)), None);
    assert_eq!(overlaps((a, b), (b, c)), Some(false), "a period has not its end");
    assert_eq!(overlaps((b, a), (a, c)), Some(true), "the ends come in any order");
    assert_eq!(overlaps((b, b), (b, b)), Some(true), "a moment overlaps itself");
    assert_eq!(overlaps((a, d), (b, c)), None);
    assert_eq!(overlaps((a, c), (b, d)), Some(true), "the start of the second is within the first");
    assert_eq!(overlaps((a, b), (c, d)), None);
    assert_eq!(overlaps((d, d), (b, c)), None);
}

#[test]
fn precisions_are_checked() {
    let check = |of, digits| check_precision(of, digits).map_err(|error| error.message().to_owned());
    assert_eq!(check(PrecisionOf::Interval, 3), Ok((3, None)));
    assert_eq!(
        check(PrecisionOf::Time { zoned: true }, -1),
        Err("TIME(-1) WITH TIME ZONE precision must not be negative".to_owned())
    );
    assert_eq!(
        check(PrecisionOf::Timestamp { zoned: false }, 7),
        Ok((6, Some("TIMESTAMP(7) precision reduced to maximum allowed, 6".to_owned())))
    );
    assert_eq!(IntervalTypmod::decode(-1), Some(IntervalTypmod::NONE));
    assert_eq!(IntervalTypmod::decode(7), None);
    let seconds = IntervalTypmod { fields: IntervalFields::DAY_TO_SECOND, precision: Some(3) };
    assert_eq!(seconds.encode(), 470_286_339);
}
