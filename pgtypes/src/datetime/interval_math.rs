//! Arithmetic of intervals.
//!
//! A factor applies to each part; the fraction of months becomes days of 30 to a month, that of days becomes time.

use super::fault::interval_range;
use super::units::{DAY, SECONDS_PER_DAY};
use super::value::Interval;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// 2^63
const END_I64: f64 = 9_223_372_036_854_775_808.0;

impl Interval {
    /// `interval + interval`. 22008 if a part overflows.
    pub fn plus(self, other: Interval) -> Result<Interval, ValueError> {
        let sum = || {
            let months = self.months.checked_add(other.months)?;
            Some(Interval::new(months, self.days.checked_add(other.days)?, self.micros.checked_add(other.micros)?))
        };
        sum().ok_or_else(interval_range)
    }

    /// `interval - interval`. 22008 if a part overflows.
    pub fn minus(self, other: Interval) -> Result<Interval, ValueError> {
        let difference = || {
            let months = self.months.checked_sub(other.months)?;
            Some(Interval::new(months, self.days.checked_sub(other.days)?, self.micros.checked_sub(other.micros)?))
        };
        difference().ok_or_else(interval_range)
    }

    /// `- interval`. 22008 if a part overflows.
    pub fn negate(self) -> Result<Interval, ValueError> {
        let negated =
            || Some(Interval::new(self.months.checked_neg()?, self.days.checked_neg()?, self.micros.checked_neg()?));
        negated().ok_or_else(interval_range)
    }

    /// The negative parts, where the least values stay.
    pub(super) fn wrapping_neg(self) -> Interval {
        Interval::new(self.months.wrapping_neg(), self.days.wrapping_neg(), self.micros.wrapping_neg())
    }

    /// `interval * float8`. 22008 if a part overflows, and for NaN and infinities.
    pub fn multiply(self, factor: f64) -> Result<Interval, ValueError> {
        self.scale(|part| part * factor)
    }

    /// `interval / float8`. 22012 for 0, 22008 if a part overflows.
    pub fn divide(self, divisor: f64) -> Result<Interval, ValueError> {
        if divisor == 0.0 {
            return Err(ValueError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        self.scale(|part| part / divisor)
    }

    fn scale(self, apply: impl Fn(f64) -> f64) -> Result<Interval, ValueError> {
        let exact_months = apply(f64::from(self.months));
        let exact_days = apply(f64::from(self.days));
        let (months, days) = (to_i32(exact_months)?, to_i32(exact_days)?);
        // The remainders count to the microsecond, so that 0.1 + 0.2 is 0.3.
        let month_days = to_micro((exact_months - f64::from(months)) * 30.0);
        let whole_days = month_days.trunc();
        let mut seconds = to_micro((exact_days - f64::from(days) + month_days - whole_days) * SECONDS_PER_DAY as f64);
        let mut carried = 0.0;
        if seconds.abs() >= SECONDS_PER_DAY as f64 {
            carried = (seconds / SECONDS_PER_DAY as f64).trunc();
            seconds -= carried * SECONDS_PER_DAY as f64;
        }
        let extra = to_i32(carried)?.checked_add(to_i32(whole_days)?);
        let days = extra.and_then(|extra| days.checked_add(extra)).ok_or_else(interval_range)?;
        let micros = (apply(self.micros as f64) + seconds * 1e6).round_ties_even();
        if !(-END_I64..END_I64).contains(&micros) {
            return Err(interval_range());
        }
        Ok(Interval::new(months, days, micros as i64))
    }

    /// `justify_hours(interval)`: 24 hours become a day. 22008 if the days overflow.
    pub fn justify_hours(self) -> Result<Interval, ValueError> {
        let whole = i32::try_from(self.micros / DAY).map_err(|_| interval_range())?;
        let days = self.days.checked_add(whole).ok_or_else(interval_range)?;
        Ok(Interval { days, micros: self.micros % DAY, ..self }.same_sign_of_time())
    }

    /// `justify_days(interval)`: 30 days become a month. 22008 if the months overflow.
    pub fn justify_days(self) -> Result<Interval, ValueError> {
        let mut result = self.days_to_months()?;
        if result.months > 0 && result.days < 0 {
            result.days += 30;
            result.months -= 1;
        } else if result.months < 0 && result.days > 0 {
            result.days -= 30;
            result.months += 1;
        }
        Ok(result)
    }

    /// `justify_interval(interval)`: both, with one sign for all parts. 22008 if the months overflow.
    pub fn justify_interval(self) -> Result<Interval, ValueError> {
        let mut result = self;
        // Days of the sign of the time could overflow.
        if i64::from(self.days).signum() * self.micros.signum() > 0 {
            result = result.days_to_months()?;
        }
        let whole = i32::try_from(result.micros / DAY).map_err(|_| interval_range())?;
        result.micros %= DAY;
        result.days = result.days.checked_add(whole).ok_or_else(interval_range)?;
        result = result.days_to_months()?;
        let rest = if result.days == 0 { result.micros.signum() } else { i64::from(result.days.signum()) };
        if result.months > 0 && rest < 0 {
            result.days += 30;
            result.months -= 1;
        } else if result.months < 0 && rest > 0 {
            result.days -= 30;
            result.months += 1;
        }
        Ok(result.same_sign_of_time())
    }

    fn days_to_months(self) -> Result<Interval, ValueError> {
        let months = self.months.checked_add(self.days / 30).ok_or_else(interval_range)?;
        Ok(Interval { months, days: self.days % 30, ..self })
    }

    /// With a time of the sign of the days.
    fn same_sign_of_time(mut self) -> Interval {
        if self.days > 0 && self.micros < 0 {
            self.micros += DAY;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= DAY;
            self.days += 1;
        }
        self
    }
}

fn to_i32(value: f64) -> Result<i32, ValueError> {
    if value.is_nan() || value > f64::from(i32::MAX) || value < f64::from(i32::MIN) {
        return Err(interval_range());
    }
    // Within the range.
    Ok(value as i32)
}

/// Rounds to the microsecond of a second.
fn to_micro(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}
