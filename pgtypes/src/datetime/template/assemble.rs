//! `to_date` and `to_timestamp`: dates and times of the fields that a template finds.

use super::parse::nodes;
use super::patterns::Convention;
use super::scan::{Given, scan};
use crate::datetime::calendar::{
    Fields, JULIAN_OF_EPOCH, date_from_days, days_from_date, days_in_month, monday_of_week,
};
use crate::datetime::fault::{Fault, overflow};
use crate::datetime::mask;
use crate::datetime::session::Session;
use crate::datetime::units::SECOND;
use crate::datetime::value::{Date, TimestampTz};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

impl Date {
    /// `to_date(text, template)`. 22007 for a text that the template does not fit, 22008 for a field or date out of
    /// range, 0A000 for patterns of zone names.
    pub fn from_template(text: &str, template: &str) -> Result<Date, ValueError> {
        let (fields, _) = fields_of(text, template)?;
        Date::from_days(fields.days()).map_err(|_| overflow(format!("date out of range: \"{text}\"")))
    }
}

impl TimestampTz {
    /// `to_timestamp(text, template)` in the zone of the text, else of the session. 22007 for a text that the template
    /// does not fit, 22008 for a field or value out of range, 22009 for an offset out of range, 0A000 for patterns of
    /// zone names.
    pub fn from_template(text: &str, template: &str, session: &Session<'_>) -> Result<TimestampTz, ValueError> {
        let (fields, given) = fields_of(text, template)?;
        let local = fields.local();
        let offset = match given.zone_sign {
            0 => session.zone.offset_of_local(local.unwrap_or(i64::MAX)),
            sign => sign * (given.zone_hour * 3600 + given.zone_minute * 60),
        };
        let instant = TimestampTz::checked(local.and_then(|local| local.checked_sub(offset * SECOND)))?;
        // PostgreSQL rounds to the digits of FF.
        let digits = u8::try_from(given.precision).unwrap_or(0);
        Ok(if digits > 0 { instant.with_precision(digits) } else { instant })
    }
}

fn malformed(message: String) -> ValueError {
    ValueError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

/// The date and time of a text, checked, and the fields as given.
fn fields_of(text: &str, template: &str) -> Result<(Fields, Given), ValueError> {
    let mut given = scan(text, &nodes(template))?;
    let mut fields = Fields { year: 0, month: 1, day: 1, ..Fields::default() };
    set_time(&given, &mut fields)?;
    let mut have = set_year(&mut given, &mut fields);
    have |= set_date(&mut given, &mut fields)?;
    fields.micros = given.millis * 1000 + given.micros;
    let complete = have & mask::DATE == mask::DATE;
    let month_fits = have & mask::MONTH == 0 || (1..=12).contains(&fields.month);
    let day_fits = have & mask::DAY == 0 || (1..=31).contains(&fields.day);
    let fits = month_fits
        && day_fits
        && !(complete && fields.day > days_in_month(fields.year, fields.month))
        && (0..24).contains(&fields.hour)
        && (0..60).contains(&fields.minute)
        && (0..60).contains(&fields.second)
        && (0..SECOND).contains(&fields.micros);
    if !fits {
        return Err(Fault::Field.error("timestamp", text));
    }
    let zone_fits = (0..=15).contains(&given.zone_hour) && (0..60).contains(&given.zone_minute);
    if given.zone_sign != 0 && !zone_fits {
        return Err(Fault::Offset.error("timestamp", text));
    }
    Ok((fields, given))
}

fn set_time(given: &Given, fields: &mut Fields) -> Result<(), ValueError> {
    if given.second_of_day != 0 {
        let seconds = given.second_of_day;
        (fields.hour, fields.minute, fields.second) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    }
    let targets =
        [(given.second, &mut fields.second), (given.minute, &mut fields.minute), (given.hour, &mut fields.hour)];
    for (value, field) in targets {
        if value != 0 {
            *field = value;
        }
    }
    if given.twelve_hours {
        if !(1..=12).contains(&fields.hour) {
            let message = format!("hour \"{}\" is invalid for the 12-hour clock", fields.hour);
            return Err(malformed(message).with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        fields.hour = fields.hour % 12 + if given.afternoon != 0 { 12 } else { 0 };
    }
    Ok(())
}

/// Sets the year of year and century. Returns the field.
fn set_year(given: &mut Given, fields: &mut Fields) -> u32 {
    let century = if given.before_christ != 0 { -given.century } else { given.century };
    if given.year != 0 && given.century != 0 && given.year_digits <= 2 {
        given.century = century;
        let year = given.year % 100;
        fields.year = match (year, century >= 0) {
            (0, true) => century * 100,
            (0, false) => century * 100 + 1,
            (_, true) => year + (century - 1) * 100,
            (_, false) => (century + 1) * 100 - year + 1,
        };
    } else if given.year != 0 {
        let year = if given.before_christ != 0 { -given.year } else { given.year };
        fields.year = if year < 0 { year + 1 } else { year };
    } else if given.century != 0 {
        given.century = century;
        fields.year = if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 };
    } else {
        return 0;
    }
    mask::YEAR
}

/// Sets the date of the fields but the year. Returns the fields.
fn set_date(given: &mut Given, fields: &mut Fields) -> Result<u32, ValueError> {
    let mut have = 0;
    let set_day = |fields: &mut Fields, days: i64| {
        (fields.year, fields.month, fields.day) = date_from_days(days);
        mask::DATE
    };
    if given.julian != 0 {
        have |= set_day(fields, given.julian - JULIAN_OF_EPOCH);
    }
    let iso = given.convention == Some(Convention::IsoWeek);
    if given.week != 0 {
        if iso {
            let monday = monday_of_week(fields.year, given.week);
            let after = match given.weekday {
                0 => 0,
                2.. => given.weekday - 2,
                _ => 6,
            };
            have |= set_day(fields, monday + after);
        } else {
            given.year_day = (given.week - 1) * 7 + 1;
        }
    }
    if given.week_of_month != 0 {
        given.day = (given.week_of_month - 1) * 7 + 1;
    }
    if given.day != 0 {
        fields.day = given.day;
        have |= mask::DAY;
    }
    if given.month != 0 {
        fields.month = given.month;
        have |= mask::MONTH;
    }
    if given.year_day == 0 || fields.month > 1 && fields.day > 1 {
        return Ok(have);
    }
    if fields.year == 0 && given.before_christ == 0 {
        return Err(malformed("cannot calculate day of year without year information".to_owned()));
    }
    if iso {
        let first = monday_of_week(fields.year, 1);
        return Ok(have | set_day(fields, first + given.year_day - 1));
    }
    // A day out of the year is out of its last month as well.
    let january = days_from_date(fields.year, 1, 1);
    let starts = |month: i64| days_from_date(fields.year, month, 1) - january;
    let month = (1..=12).rev().find(|month| starts(*month) < given.year_day).unwrap_or(1);
    let beyond = given.year_day > starts(12) + 31;
    let (month, day) = match beyond {
        true => (13, given.year_day - starts(12) - 31),
        false => (month, given.year_day - starts(month)),
    };
    if fields.month <= 1 {
        fields.month = month;
    }
    if fields.day <= 1 {
        fields.day = day;
    }
    Ok(have | mask::MONTH | mask::DAY)
}
