//! The sum of the fields of an interval that is read. Fractions cascade to smaller units.

use super::fault::Fault;
use super::number::scaled_micros;
use super::units::DAY;
use super::value::Interval;

/// Sums of an interval, months and years apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    pub(super) years: i32,
    pub(super) months: i32,
    pub(super) days: i32,
    pub(super) micros: i64,
}

impl Parts {
    /// The interval, `None` if the months are too many.
    pub(super) fn interval(self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some(Interval::new(i32::try_from(months).ok()?, self.days, self.micros))
    }

    pub(super) fn add_micros(&mut self, value: i64, fraction: f64, unit: i64) -> Result<(), Fault> {
        let whole = value.checked_mul(unit).ok_or(Fault::Field)?;
        self.micros = self.micros.checked_add(whole).ok_or(Fault::Field)?;
        self.add_fraction(fraction, unit)
    }

    pub(super) fn add_fraction(&mut self, fraction: f64, unit: i64) -> Result<(), Fault> {
        self.micros = self.micros.checked_add(scaled_micros(fraction, unit)).ok_or(Fault::Field)?;
        Ok(())
    }

    pub(super) fn add_days(&mut self, value: i64, fraction: f64, unit: i32) -> Result<(), Fault> {
        add_scaled(&mut self.days, value, unit)?;
        if unit == 1 { self.add_fraction(fraction, DAY) } else { self.add_day_fraction(fraction, unit) }
    }

    /// Adds a fraction of several days.
    fn add_day_fraction(&mut self, fraction: f64, unit: i32) -> Result<(), Fault> {
        let exact = fraction * f64::from(unit);
        self.days = self.days.checked_add(exact as i32).ok_or(Fault::Field)?;
        self.add_fraction(exact - exact.trunc(), DAY)
    }

    pub(super) fn add_months(&mut self, value: i64, fraction: f64) -> Result<(), Fault> {
        add_scaled(&mut self.months, value, 1)?;
        self.add_day_fraction(fraction, 30)
    }

    pub(super) fn add_years(&mut self, value: i64, fraction: f64, unit: i32) -> Result<(), Fault> {
        add_scaled(&mut self.years, value, unit)?;
        let months = (fraction * f64::from(unit) * 12.0).round_ties_even();
        self.months = self.months.checked_add(months as i32).ok_or(Fault::Field)?;
        Ok(())
    }

    pub(super) fn negate(&mut self) -> Result<(), Fault> {
        let negated = (|| {
            let (years, months) = (self.years.checked_neg()?, self.months.checked_neg()?);
            Some(Parts { years, months, days: self.days.checked_neg()?, micros: self.micros.checked_neg()? })
        })();
        *self = negated.ok_or(Fault::Field)?;
        Ok(())
    }
}

fn add_scaled(sum: &mut i32, value: i64, unit: i32) -> Result<(), Fault> {
    let scaled = i32::try_from(value).ok().and_then(|value| value.checked_mul(unit));
    *sum = scaled.and_then(|scaled| sum.checked_add(scaled)).ok_or(Fault::Field)?;
    Ok(())
}
