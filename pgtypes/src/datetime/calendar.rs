//! The proleptic Gregorian calendar over PostgreSQL's whole range, in days from 2000-01-01.
//!
//! Years are astronomical here: year 0 is 1 BC. No function fails or panics on years within some millions.

use super::units::{DAY, HOUR, MINUTE, SECOND};

/// The Julian day number of 2000-01-01.
pub(super) const JULIAN_OF_EPOCH: i64 = 2_451_545;

/// English names of the days of the week, Sunday first.
pub(super) const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// English names of the months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A local date and time in fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Astronomical
    pub(super) year: i64,
    /// From 1
    pub(super) month: i64,
    /// From 1
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    /// After the second
    pub(super) micros: i64,
}

impl Fields {
    /// The fields of a local time in microseconds from 2000-01-01.
    pub(super) fn of(local: i64) -> Fields {
        Fields::of_day(local.div_euclid(DAY)).with_time(local.rem_euclid(DAY))
    }

    /// The fields of an instant at an offset in seconds, for all instants.
    pub(super) fn of_instant(micros: i64, offset: i64) -> Fields {
        let time = micros.rem_euclid(DAY) + offset * SECOND;
        Fields::of_day(micros.div_euclid(DAY) + time.div_euclid(DAY)).with_time(time.rem_euclid(DAY))
    }

    /// Midnight of a day.
    pub(super) fn of_day(days: i64) -> Fields {
        let (year, month, day) = date_from_days(days);
        Fields { year, month, day, ..Fields::default() }
    }

    /// With a time of the day in microseconds.
    pub(super) fn with_time(self, time: i64) -> Fields {
        Fields {
            hour: time / HOUR,
            minute: time / MINUTE % 60,
            second: time / SECOND % 60,
            micros: time % SECOND,
            ..self
        }
    }

    /// The time of the day in microseconds.
    pub(super) fn time(&self) -> i64 {
        self.hour * HOUR + self.minute * MINUTE + self.second * SECOND + self.micros
    }

    /// Days from 2000-01-01.
    pub(super) fn days(&self) -> i64 {
        days_from_date(self.year, self.month, self.day)
    }

    /// Microseconds from 2000-01-01 in local time; `None` out of the range of `i64`.
    pub(super) fn local(&self) -> Option<i64> {
        self.days().checked_mul(DAY)?.checked_add(self.time())
    }

    /// The year as it is written, and whether it is BC.
    pub(super) fn shown_year(&self) -> (i64, bool) {
        if self.year > 0 { (self.year, false) } else { (1 - self.year, true) }
    }
}

/// Whether a month is one of those that PostgreSQL counts days for: November of 4714 BC to May of 5874898.
pub(super) fn is_counted(year: i64, month: i64) -> bool {
    ((-4713, 11)..(5_874_898, 6)).contains(&(year, month))
}

/// Days from 2000-01-01 to a date.
pub(super) fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 730_425
}

/// Year, month and day of a day from 2000-01-01.
pub(super) fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 730_425;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// The length of a month, 31 for a month that is none.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Whether a year has a 29th of February.
pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The day of the week, Sunday is 0.
pub(super) fn weekday(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// The day of the week as ISO 8601 has it: Monday is 1, Sunday is 7.
pub(super) fn iso_weekday(days: i64) -> i64 {
    (days + 5).rem_euclid(7) + 1
}

/// The day of the year, from 1.
pub(super) fn day_of_year(days: i64) -> i64 {
    let (year, ..) = date_from_days(days);
    days - days_from_date(year, 1, 1) + 1
}

/// The year and the week of ISO 8601. A week belongs to the year of its Thursday.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (iso_weekday(days) - 4);
    let (year, ..) = date_from_days(thursday);
    (year, (thursday - days_from_date(year, 1, 1)) / 7 + 1)
}

/// The Monday of a week of ISO 8601.
pub(super) fn monday_of_week(year: i64, week: i64) -> i64 {
    let fourth = days_from_date(year, 1, 4);
    fourth - (iso_weekday(fourth) - 1) + (week - 1) * 7
}

/// An entry of a table of names, the empty text out of it.
pub(super) fn name_of(names: &[&'static str], index: i64) -> &'static str {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or("")
}
