//! Aggregates over ordered rows: WITHIN GROUP (ORDER BY ...). The rows come in that order.

use std::fmt::Write;

use super::collect::Kept;
use crate::datum::{Array, Datum, compare};
use crate::error::ValueError;
use crate::functions::aggregate::Aggregate;
use crate::functions::args::Args;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;

/// `mode`: the value that occurs most, the first one of several. Equal values follow one another.
#[derive(Debug, Default)]
pub(super) struct Mode {
    mode: Datum,
    occurs: u64,
    /// The latest value, and how often it has occurred.
    latest: Datum,
    run: u64,
    /// Whether the mode is the latest value.
    is_latest: bool,
    memory: usize,
}

impl Aggregate for Mode {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let value = args.get(0);
        if self.run > 0 && compare(&self.latest, value).is_eq() {
            self.run += 1;
        } else {
            self.latest.clone_from(value);
            (self.run, self.is_latest) = (1, false);
            self.memory = self.memory.max(2 * value.memory());
        }
        if self.run > self.occurs {
            if !self.is_latest {
                self.mode.clone_from(&self.latest);
                self.is_latest = true;
            }
            self.occurs = self.run;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        Ok(std::mem::take(&mut self.mode))
    }

    /// As if both values were the largest one yet.
    fn memory(&self) -> usize {
        self.memory
    }
}

/// The value at a place of the ordered ones, from 0; between two places if it has a fraction.
type At = fn(&[Datum], f64) -> Result<Datum, ValueError>;

/// `percentile_disc`, `percentile_cont`: for one fraction, or for each of an array.
#[derive(Debug)]
pub(super) struct Percentile {
    kept: Kept,
    at: At,
    result: SqlType,
}

impl Percentile {
    /// The first value that as large a fraction of all does not come after.
    pub(super) fn discrete(result: SqlType) -> Percentile {
        Percentile { kept: Kept::default(), at: discrete, result }
    }

    /// The value at a fraction of the way from the first to the last one.
    pub(super) fn continuous(result: SqlType) -> Percentile {
        Percentile { kept: Kept::default(), at: continuous, result }
    }

    fn fraction(&self, value: &Datum) -> Result<Datum, ValueError> {
        match value {
            Datum::Float(fraction) => (self.at)(&self.kept.values, *fraction),
            _ => Ok(Datum::Null),
        }
    }

    fn fractions(&self, fractions: &Array) -> Result<Datum, ValueError> {
        for fraction in fractions.elements() {
            check_fraction(fraction)?;
        }
        let element = self.result.element().unwrap_or(SqlType::UNKNOWN).oid;
        let values = fractions.try_map(element, |fraction| self.fraction(fraction))?;
        Ok(Datum::Array(Box::new(values)))
    }
}

impl Aggregate for Percentile {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        self.kept.push(args.get(0));
        Ok(())
    }

    fn finish(&mut self, direct: &Args<'_>) -> Result<Datum, ValueError> {
        let is_empty = self.kept.values.is_empty();
        match direct.get(0) {
            Datum::Array(fractions) if !is_empty => self.fractions(fractions),
            Datum::Float(_) => {
                check_fraction(direct.get(0))?;
                if is_empty { Ok(Datum::Null) } else { self.fraction(direct.get(0)) }
            }
            _ => Ok(Datum::Null),
        }
    }

    fn memory(&self) -> usize {
        self.kept.memory()
    }
}

fn check_fraction(value: &Datum) -> Result<(), ValueError> {
    match value {
        Datum::Float(fraction) if !(0.0..=1.0).contains(fraction) => {
            let message = format!("percentile value {} is not between 0 and 1", general(*fraction));
            Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
        _ => Ok(()),
    }
}

/// A float as `%g` of C prints it: six digits.
fn general(value: f64) -> String {
    if !value.is_finite() {
        return crate::float::show(value);
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match usize::try_from(5 - exponent) {
        Ok(decimals) if exponent >= -4 => trim(&format!("{value:.decimals$}")),
        _ => {
            let mut text = trim(mantissa);
            let sign = if exponent < 0 { '-' } else { '+' };
            // Writing to a String cannot fail.
            let _ = write!(text, "e{sign}{:02}", exponent.unsigned_abs());
            text
        }
    }
}

/// A place as an index. It is not negative, and not beyond the values.
fn index(place: f64) -> usize {
    place as usize
}

fn at(values: &[Datum], place: usize) -> Datum {
    values.get(place).cloned().unwrap_or_default()
}

fn discrete(values: &[Datum], fraction: f64) -> Result<Datum, ValueError> {
    let place = (fraction * values.len() as f64).ceil();
    Ok(at(values, index(place).saturating_sub(1)))
}

fn continuous(values: &[Datum], fraction: f64) -> Result<Datum, ValueError> {
    let place = fraction * (values.len().saturating_sub(1)) as f64;
    let (low, high) = (index(place.floor()), index(place.ceil()));
    let (first, second) = (at(values, low), at(values, high));
    if low == high {
        return Ok(first);
    }
    let part = place - place.floor();
    match (first, second) {
        (Datum::Float(first), Datum::Float(second)) => Ok(Datum::Float(first + part * (second - first))),
        (Datum::Interval(first), Datum::Interval(second)) => {
            let distance = second.minus(first)?.multiply(part)?;
            distance.plus(first).map(Datum::Interval)
        }
        _ => Err(ValueError::internal("a percentile of values of another kind")),
    }
}
