//! The patterns of templates.

/// What a pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// `AD`, `B.C.`: whether it has points
    Era(bool),
    /// `AM`, `p.m.`: whether it has points
    Meridiem(bool),
    Century,
    /// The full name of a day
    Day,
    /// The short name of a day
    ShortDay,
    DayOfYear,
    IsoDayOfYear,
    DayOfMonth,
    /// Sunday is 1
    Weekday,
    /// Monday is 1
    IsoWeekday,
    /// Digits after the second, of `FF`
    Fraction(u32),
    Milliseconds,
    Microseconds,
    /// `FX`
    Fixed,
    Hour12,
    Hour24,
    Week,
    IsoWeek,
    /// The last digits of the year
    Year(u32),
    IsoYear(u32),
    /// `Y,YYY`
    YearWithComma,
    Julian,
    Minute,
    Month,
    MonthName,
    ShortMonth,
    /// `OF`
    Offset,
    Quarter,
    Roman,
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    /// `TZ`
    Zone,
    WeekOfMonth,
}

/// The convention of a date, which a template must not mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Convention {
    Gregorian,
    IsoWeek,
}

/// A pattern as it is spelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    pub(super) name: &'static str,
    pub(super) field: Field,
}

impl Pattern {
    /// Whether its text is a number without a sign, which ends a number before it.
    pub(super) fn is_number(&self) -> bool {
        use Field::{Day, Era, Fixed, Meridiem, MonthName, Offset, Roman, ShortDay, ShortMonth, Zone};
        !matches!(
            self.field,
            Day | Era(_)
                | Fixed
                | Meridiem(_)
                | MonthName
                | Offset
                | Roman
                | ShortDay
                | ShortMonth
                | Zone
                | Field::ZoneHour
        )
    }

    /// The convention, if it has one.
    pub(super) fn convention(&self) -> Option<Convention> {
        use Field::{DayOfMonth, DayOfYear, Month, MonthName, Roman, ShortMonth, Week, WeekOfMonth, Weekday, Year};
        match self.field {
            DayOfMonth
            | DayOfYear
            | Month
            | MonthName
            | Roman
            | ShortMonth
            | Week
            | WeekOfMonth
            | Weekday
            | Year(_)
            | Field::YearWithComma => Some(Convention::Gregorian),
            Field::IsoDayOfYear | Field::IsoWeekday | Field::IsoWeek | Field::IsoYear(_) => Some(Convention::IsoWeek),
            _ => None,
        }
    }
}

/// The pattern that a text starts with.
pub(super) fn find(text: &str) -> Option<Pattern> {
    let found = |(name, _): &&(&str, Field)| text.starts_with(*name);
    PATTERNS.iter().find(found).map(|(name, field)| Pattern { name, field: *field })
}

/// All spellings, the longer of two with the same start first.
const PATTERNS: [(&str, Field); 112] = [
    ("A.D.", Field::Era(true)),
    ("A.M.", Field::Meridiem(true)),
    ("AD", Field::Era(false)),
    ("AM", Field::Meridiem(false)),
    ("B.C.", Field::Era(true)),
    ("BC", Field::Era(false)),
    ("CC", Field::Century),
    ("DAY", Field::Day),
    ("DDD", Field::DayOfYear),
    ("DD", Field::DayOfMonth),
    ("DY", Field::ShortDay),
    ("Day", Field::Day),
    ("Dy", Field::ShortDay),
    ("D", Field::Weekday),
    ("FF1", Field::Fraction(1)),
    ("FF2", Field::Fraction(2)),
    ("FF3", Field::Fraction(3)),
    ("FF4", Field::Fraction(4)),
    ("FF5", Field::Fraction(5)),
    ("FF6", Field::Fraction(6)),
    ("FX", Field::Fixed),
    ("HH24", Field::Hour24),
    ("HH12", Field::Hour12),
    ("HH", Field::Hour12),
    ("IDDD", Field::IsoDayOfYear),
    ("ID", Field::IsoWeekday),
    ("IW", Field::IsoWeek),
    ("IYYY", Field::IsoYear(4)),
    ("IYY", Field::IsoYear(3)),
    ("IY", Field::IsoYear(2)),
    ("I", Field::IsoYear(1)),
    ("J", Field::Julian),
    ("MI", Field::Minute),
    ("MM", Field::Month),
    ("MONTH", Field::MonthName),
    ("MON", Field::ShortMonth),
    ("MS", Field::Milliseconds),
    ("Month", Field::MonthName),
    ("Mon", Field::ShortMonth),
    ("OF", Field::Offset),
    ("P.M.", Field::Meridiem(true)),
    ("PM", Field::Meridiem(false)),
    ("Q", Field::Quarter),
    ("RM", Field::Roman),
    ("SSSSS", Field::SecondOfDay),
    ("SSSS", Field::SecondOfDay),
    ("SS", Field::Second),
    ("TZH", Field::ZoneHour),
    ("TZM", Field::ZoneMinute),
    ("TZ", Field::Zone),
    ("US", Field::Microseconds),
    ("WW", Field::Week),
    ("W", Field::WeekOfMonth),
    ("Y,YYY", Field::YearWithComma),
    ("YYYY", Field::Year(4)),
    ("YYY", Field::Year(3)),
    ("YY", Field::Year(2)),
    ("Y", Field::Year(1)),
    ("a.d.", Field::Era(true)),
    ("a.m.", Field::Meridiem(true)),
    ("ad", Field::Era(false)),
    ("am", Field::Meridiem(false)),
    ("b.c.", Field::Era(true)),
    ("bc", Field::Era(false)),
    ("cc", Field::Century),
    ("day", Field::Day),
    ("ddd", Field::DayOfYear),
    ("dd", Field::DayOfMonth),
    ("dy", Field::ShortDay),
    ("d", Field::Weekday),
    ("ff1", Field::Fraction(1)),
    ("ff2", Field::Fraction(2)),
    ("ff3", Field::Fraction(3)),
    ("ff4", Field::Fraction(4)),
    ("ff5", Field::Fraction(5)),
    ("ff6", Field::Fraction(6)),
    ("fx", Field::Fixed),
    ("hh24", Field::Hour24),
    ("hh12", Field::Hour12),
    ("hh", Field::Hour12),
    ("iddd", Field::IsoDayOfYear),
    ("id", Field::IsoWeekday),
    ("iw", Field::IsoWeek),
    ("iyyy", Field::IsoYear(4)),
    ("iyy", Field::IsoYear(3)),
    ("iy", Field::IsoYear(2)),
    ("i", Field::IsoYear(1)),
    ("j", Field::Julian),
    ("mi", Field::Minute),
    ("mm", Field::Month),
    ("month", Field::MonthName),
    ("mon", Field::ShortMonth),
    ("ms", Field::Milliseconds),
    ("of", Field::Offset),
    ("p.m.", Field::Meridiem(true)),
    ("pm", Field::Meridiem(false)),
    ("q", Field::Quarter),
    ("rm", Field::Roman),
    ("sssss", Field::SecondOfDay),
    ("ssss", Field::SecondOfDay),
    ("ss", Field::Second),
    ("tzh", Field::ZoneHour),
    ("tzm", Field::ZoneMinute),
    ("tz", Field::Zone),
    ("us", Field::Microseconds),
    ("ww", Field::Week),
    ("w", Field::WeekOfMonth),
    ("y,yyy", Field::YearWithComma),
    ("yyyy", Field::Year(4)),
    ("yyy", Field::Year(3)),
    ("yy", Field::Year(2)),
    ("y", Field::Year(1)),
];
