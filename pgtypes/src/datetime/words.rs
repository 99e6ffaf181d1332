//! The words of dates and times, and the units of intervals and of `extract`.

/// What a word of a date or time means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// `infinity`, `-infinity`, `epoch`
    Fixed(Fixed),
    Now,
    /// Days from today
    Day(i64),
    /// `allballs`: midnight in UTC
    Zulu,
    Month(i64),
    /// Sunday is 0
    Weekday(i64),
    /// `ad` is false
    Era(bool),
    /// `am` is false
    Meridiem(bool),
    /// `dst` after a zone
    Daylight,
    /// A unit that labels the next number
    Label(Unit),
    /// `t` before a time
    TimeMark,
    /// `at`, `on`
    Noise,
}

/// Special values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixed {
    Epoch,
    Late,
    Early,
}

/// Fields and units, of `extract`, `date_trunc`, of intervals and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `microseconds`
    Microsecond,
    /// `milliseconds`
    Millisecond,
    /// `second`
    Second,
    /// `minute`
    Minute,
    /// `hour`
    Hour,
    /// `day`
    Day,
    /// `week`
    Week,
    /// `month`
    Month,
    /// `quarter`
    Quarter,
    /// `year`
    Year,
    /// `decade`
    Decade,
    /// `century`
    Century,
    /// `millennium`
    Millennium,
    /// `julian`
    Julian,
    /// `isoyear`
    IsoYear,
    /// `dow`
    DayOfWeek,
    /// `isodow`
    IsoDayOfWeek,
    /// `doy`
    DayOfYear,
    /// `epoch`
    Epoch,
    /// `timezone`
    Zone,
    /// `timezone_hour`
    ZoneHour,
    /// `timezone_minute`
    ZoneMinute,
    /// A word such as `now`, which is known and no field
    Reserved,
}

/// A word of a date or time, in lower case.
pub(super) fn word(text: &str) -> Option<Word> {
    if let Some(month) = month(text) {
        return Some(Word::Month(month));
    }
    if let Some(day) = weekday(text) {
        return Some(Word::Weekday(day));
    }
    Some(match text {
        "-infinity" => Word::Fixed(Fixed::Early),
        "infinity" => Word::Fixed(Fixed::Late),
        "epoch" => Word::Fixed(Fixed::Epoch),
        "now" => Word::Now,
        "today" => Word::Day(0),
        "tomorrow" => Word::Day(1),
        "yesterday" => Word::Day(-1),
        "allballs" => Word::Zulu,
        "ad" => Word::Era(false),
        "bc" => Word::Era(true),
        "am" => Word::Meridiem(false),
        "pm" => Word::Meridiem(true),
        "at" | "on" => Word::Noise,
        "dst" => Word::Daylight,
        "t" => Word::TimeMark,
        "d" => Word::Label(Unit::Day),
        "dow" => Word::Label(Unit::DayOfWeek),
        "doy" => Word::Label(Unit::DayOfYear),
        "h" => Word::Label(Unit::Hour),
        "isodow" => Word::Label(Unit::IsoDayOfWeek),
        "isoyear" => Word::Label(Unit::IsoYear),
        "j" | "jd" | "julian" => Word::Label(Unit::Julian),
        "m" => Word::Label(Unit::Month),
        "mm" => Word::Label(Unit::Minute),
        "s" => Word::Label(Unit::Second),
        "y" => Word::Label(Unit::Year),
        _ => return None,
    })
}

/// Whether a word belongs to dates and times, names of zones left out.
pub(super) fn is_core(text: &str) -> bool {
    word(text).is_some()
}

fn month(text: &str) -> Option<i64> {
    Some(match text {
        "jan" | "january" => 1,
        "feb" | "february" => 2,
        "mar" | "march" => 3,
        "apr" | "april" => 4,
        "may" => 5,
        "jun" | "june" => 6,
        "jul" | "july" => 7,
        "aug" | "august" => 8,
        "sep" | "sept" | "september" => 9,
        "oct" | "october" => 10,
        "nov" | "november" => 11,
        "dec" | "december" => 12,
        _ => return None,
    })
}

fn weekday(text: &str) -> Option<i64> {
    Some(match text {
        "sun" | "sunday" => 0,
        "mon" | "monday" => 1,
        "tue" | "tues" | "tuesday" => 2,
        "wed" | "weds" | "wednesday" => 3,
        "thu" | "thur" | "thurs" | "thursday" => 4,
        "fri" | "friday" => 5,
        "sat" | "saturday" => 6,
        _ => return None,
    })
}

/// A unit of an interval, in lower case. Only ten letters count.
pub(super) fn unit(text: &str) -> Option<Unit> {
    Some(match text.get(..10).unwrap_or(text) {
        "c" | "cent" | "centuries" | "century" => Unit::Century,
        "d" | "day" | "days" => Unit::Day,
        "dec" | "decade" | "decades" | "decs" => Unit::Decade,
        "h" | "hour" | "hours" | "hr" | "hrs" => Unit::Hour,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "microsecon" | "us" | "usec" | "usecond" | "useconds" | "usecs" => Unit::Microsecond,
        "mil" | "millennia" | "millennium" | "mils" => Unit::Millennium,
        "millisecon" | "ms" | "msec" | "msecond" | "mseconds" | "msecs" => Unit::Millisecond,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "qtr" | "quarter" => Unit::Quarter,
        "s" | "sec" | "second" | "seconds" | "secs" => Unit::Second,
        "timezone" => Unit::Zone,
        "timezone_h" => Unit::ZoneHour,
        "timezone_m" => Unit::ZoneMinute,
        "w" | "week" | "weeks" => Unit::Week,
        "y" | "year" | "years" | "yr" | "yrs" => Unit::Year,
        _ => return None,
    })
}

/// A field of `extract` and `date_trunc`, in lower case.
pub(super) fn field(text: &str) -> Option<Unit> {
    unit(text).or(match word(text) {
        Some(Word::Label(unit)) => Some(unit),
        Some(Word::Fixed(Fixed::Epoch)) => Some(Unit::Epoch),
        Some(Word::Fixed(_) | Word::Now | Word::Day(_) | Word::Zulu) => Some(Unit::Reserved),
        _ => None,
    })
}
