//! How many rows of a table satisfy conditions, by its statistics. Pure.
//!
//! As PostgreSQL does it: a comparison with a constant is looked up among the common values and in the histogram; one
//! with a value that is not known yet (a parameter, a value of another table) takes the average. What nothing is known
//! of has the fixed share that PostgreSQL assumes. Conditions count as independent, but for the two bounds of a range.

use std::cmp::Ordering;

use super::conditions::ELEMENTS;
use crate::catalog::{ColumnStatistics, TableStatistics};
use crate::expr::{CompareOp, Expr};
use crate::table::Table;
use pgtypes::Datum;
use pgtypes::datum::compare_same;

/// The share of `=` with a column that is not analyzed.
const EQUAL: f64 = 0.005;
/// The share of a comparison with a bound that is not known.
const BOUND: f64 = 1.0 / 3.0;
/// The share of a range with two bounds that are not known.
const RANGE: f64 = 0.005;
/// The share of IS NULL of a column that is not analyzed.
const NULLS: f64 = 0.005;
/// The share of any other condition.
pub(super) const OTHER: f64 = 1.0 / 3.0;

/// A table with what is known of its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'t> {
    table: &'t Table,
    statistics: &'t TableStatistics,
    /// Their number.
    pub(super) number: f64,
}

impl<'t> Rows<'t> {
    /// `None` if the table was not analyzed since it was emptied.
    pub(super) fn of(table: &'t Table, statistics: &'t TableStatistics) -> Option<Rows<'t>> {
        // A plan for an empty table would be a bad one after the first rows.
        let number = statistics.rows_of(table)?.max(1.0);
        Some(Rows { table, statistics, number })
    }

    /// The rows that satisfy all conditions, over the table's row.
    pub(super) fn satisfying<'e>(&self, conditions: impl IntoIterator<Item = &'e Expr>) -> f64 {
        let conditions: Vec<&Expr> = conditions.into_iter().collect();
        self.number * self.all(&conditions)
    }

    /// The number of distinct values of an expression over the table's row, among so many of its rows.
    pub(super) fn distinct(&self, expr: &Expr, among: f64) -> f64 {
        let known = match expr {
            Expr::Column(at) => self.distinct_of(*at),
            _ => None,
        };
        known.unwrap_or(among).min(among).max(1.0)
    }

    fn column(&self, at: usize) -> Option<&'t ColumnStatistics> {
        self.statistics.column(self.table, at)
    }

    /// The distinct values of a column. Those of a key are as many as the rows.
    fn distinct_of(&self, at: usize) -> Option<f64> {
        let is_key = self.table.primary_key == [at]
            || self.table.indexes.iter().any(|index| {
                index.unique
                    && index.predicate.is_none()
                    && index.plain_columns().is_some_and(|columns| columns == [at])
            });
        if is_key {
            return Some(self.number);
        }
        self.column(at).and_then(|column| column.distinct_of(self.number))
    }

    /// The share of a conjunction.
    fn all(&self, conditions: &[&Expr]) -> f64 {
        let mut share = 1.0;
        let mut ranges: Vec<Range> = Vec::new();
        for condition in conditions {
            match self.bound(condition) {
                Some(bound) => match ranges.iter_mut().find(|range| range.column == bound.column) {
                    Some(range) => range.add(bound),
                    None => ranges.push(bound),
                },
                None => share *= self.one(condition),
            }
        }
        share * ranges.iter().map(|range| self.range(range)).product::<f64>()
    }

    /// The share of a condition.
    fn one(&self, condition: &Expr) -> f64 {
        let share = match condition {
            Expr::Const(Datum::Bool(true)) => 1.0,
            Expr::Const(_) => 0.0,
            Expr::And(parts) => self.all(&parts.iter().collect::<Vec<_>>()),
            Expr::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - self.one(part)).product::<f64>(),
            Expr::Not(inner) => 1.0 - self.one(inner),
            Expr::Compare { op, left, right, .. } => self.comparison(*op, left, right),
            Expr::IsNull { expr, negated } => {
                let nulls = match &**expr {
                    Expr::Column(at) if self.table.columns.get(*at).is_some_and(|column| column.not_null) => 0.0,
                    Expr::Column(at) => self.column(*at).map_or(NULLS, |column| column.null_fraction),
                    _ => NULLS,
                };
                if *negated { 1.0 - nulls } else { nulls }
            }
            Expr::InList { expr, list, negated, .. } => {
                let share: f64 = list.iter().map(|value| self.comparison(CompareOp::Eq, expr, value)).sum();
                in_share(share, *negated)
            }
            Expr::InSet { expr, values, negated, .. } => {
                let share = match &**expr {
                    Expr::Column(at) => values.iter().map(|value| self.equal(*at, Some(value))).sum(),
                    _ => EQUAL * values.len() as f64,
                };
                in_share(share, *negated)
            }
            Expr::Elements { function, left, array } if function.operator == "=" && !function.all => match &**left {
                Expr::Column(at) => {
                    let number = match &**array {
                        Expr::Const(Datum::Array(array)) => array.elements().len() as f64,
                        Expr::Array { items, .. } => items.len() as f64,
                        _ => ELEMENTS as f64,
                    };
                    self.equal(*at, None) * number
                }
                _ => OTHER,
            },
            // A boolean column.
            Expr::Column(at) => self.equal(*at, Some(&Datum::Bool(true))),
            Expr::IsBool { expr, value, negated } => {
                let share = match &**expr {
                    Expr::Column(at) => self.equal(*at, Some(&Datum::Bool(*value))),
                    other if *value => self.one(other),
                    other => 1.0 - self.one(other),
                };
                if *negated { 1.0 - share } else { share }
            }
            _ => OTHER,
        };
        share.clamp(0.0, 1.0)
    }

    fn comparison(&self, op: CompareOp, left: &Expr, right: &Expr) -> f64 {
        let (op, column, value) = match (left, right) {
            (Expr::Column(at), value) => (op, *at, value),
            (value, Expr::Column(at)) => (op.flip(), *at, value),
            _ => return if op == CompareOp::Eq { EQUAL } else { OTHER },
        };
        let known = constant(value);
        match op {
            CompareOp::Eq => self.equal(column, known),
            CompareOp::NotEq => 1.0 - self.nulls(column) - self.equal(column, known),
            _ => OTHER,
        }
    }

    fn nulls(&self, at: usize) -> f64 {
        self.column(at).map_or(0.0, |column| column.null_fraction)
    }

    /// The share of the rows whose column has a value; `None`: one that is not known yet.
    fn equal(&self, at: usize, value: Option<&Datum>) -> f64 {
        let distinct = self.distinct_of(at);
        let Some(column) = self.column(at) else { return distinct.map_or(EQUAL, |distinct| 1.0 / distinct) };
        let present = 1.0 - column.null_fraction;
        let distinct = distinct.unwrap_or(1.0 / EQUAL).max(1.0);
        let Some(value) = value else { return present / distinct };
        if value.is_null() {
            return 0.0;
        }
        let common = column.common.iter().find(|common| compare_same(&common.value, value) == Some(Ordering::Equal));
        if let Some(common) = common {
            return common.frequency;
        }
        let rest = (present - column.common.iter().map(|common| common.frequency).sum::<f64>()).max(0.0);
        let share = rest / (distinct - column.common.len() as f64).max(1.0);
        // It is no more frequent than the least of the common ones.
        column.common.last().map_or(share, |least| share.min(least.frequency))
    }

    /// A bound of a column, if a condition is one.
    fn bound<'e>(&self, condition: &'e Expr) -> Option<Range<'e>> {
        let Expr::Compare { op, left, right, .. } = condition else { return None };
        let (op, column, value) = match (&**left, &**right) {
            (Expr::Column(at), value) if !matches!(value, Expr::Column(_)) => (*op, *at, value),
            (value, Expr::Column(at)) if !matches!(value, Expr::Column(_)) => (op.flip(), *at, value),
            _ => return None,
        };
        let bound =
            Some(Bound { value: constant(value), inclusive: matches!(op, CompareOp::LessEq | CompareOp::GreaterEq) });
        match op {
            CompareOp::Greater | CompareOp::GreaterEq => Some(Range { column, lower: bound, upper: None }),
            CompareOp::Less | CompareOp::LessEq => Some(Range { column, lower: None, upper: bound }),
            CompareOp::Eq | CompareOp::NotEq => None,
        }
    }

    /// The share of a range.
    fn range(&self, range: &Range<'_>) -> f64 {
        let column = self.column(range.column);
        let below = |bound: &Option<Bound<'_>>, is_lower: bool| {
            let bound = bound.as_ref()?;
            // A lower bound cuts off what is below it: its own value too if it is exclusive.
            share_below(column?, bound.value?, bound.inclusive != is_lower)
        };
        let present = 1.0 - self.nulls(range.column);
        let share = match (&range.lower, &range.upper) {
            (Some(_), None) => below(&range.lower, true).map_or(BOUND, |below| present - below),
            (None, Some(_)) => below(&range.upper, false).unwrap_or(BOUND),
            (None, None) => 1.0,
            (Some(_), Some(_)) => match (below(&range.lower, true), below(&range.upper, false)) {
                (Some(lower), Some(upper)) => upper - lower,
                _ => RANGE,
            },
        };
        // A few rows may always be there: the statistics are of a sample, and older than the rows.
        share.clamp(1.0 / self.number, 1.0)
    }
}

/// The share of IN, or of NOT IN.
fn in_share(share: f64, negated: bool) -> f64 {
    if negated { 1.0 - share.min(1.0) } else { share.min(1.0) }
}

/// The value of an expression that is known before execution.
fn constant(expr: &Expr) -> Option<&Datum> {
    if let Expr::Const(value) = expr { Some(value) } else { None }
}

/// A bound; its value is `None` if it is not known.
#[derive(Clone, Copy)]
struct Bound<'e> {
    value: Option<&'e Datum>,
    inclusive: bool,
}

/// The bounds of a column. Of several on one side the last counts.
struct Range<'e> {
    column: usize,
    lower: Option<Bound<'e>>,
    upper: Option<Bound<'e>>,
}

impl<'e> Range<'e> {
    fn add(&mut self, other: Range<'e>) {
        self.lower = other.lower.or(self.lower);
        self.upper = other.upper.or(self.upper);
    }
}

/// The share of the rows with a value below another one, or equal to it if `inclusive`. `None` if it cannot be told.
fn share_below(column: &ColumnStatistics, value: &Datum, inclusive: bool) -> Option<f64> {
    let is_below = |found: &Datum| match compare_same(found, value)? {
        Ordering::Less => Some(true),
        Ordering::Equal => Some(inclusive),
        Ordering::Greater => Some(false),
    };
    if column.common.is_empty() && column.histogram.is_empty() {
        return None;
    }
    let mut share = 0.0;
    let mut all_common = 0.0;
    for common in &column.common {
        all_common += common.frequency;
        if is_below(&common.value)? {
            share += common.frequency;
        }
    }
    let rest = (1.0 - column.null_fraction - all_common).max(0.0);
    Some(share + rest * histogram_below(&column.histogram, value)?.unwrap_or(0.5))
}

/// The share of a histogram below a value; `Some(None)` without a histogram, `None` if the values cannot be compared.
fn histogram_below(histogram: &[Datum], value: &Datum) -> Option<Option<f64>> {
    if histogram.len() < 2 {
        return Some(None);
    }
    let parts = (histogram.len() - 1) as f64;
    // Bounds of a type are in order, so those below come first.
    compare_same(histogram.first()?, value)?;
    let below = histogram.partition_point(|bound| compare_same(bound, value) == Some(Ordering::Less));
    if below == 0 {
        return Some(Some(0.0));
    }
    let (Some(low), Some(high)) = (histogram.get(below - 1), histogram.get(below)) else { return Some(Some(1.0)) };
    Some(Some(((below - 1) as f64 + position(low, high, value)) / parts))
}

/// Where a value is between two others, from 0 to 1.
fn position(low: &Datum, high: &Datum, value: &Datum) -> f64 {
    let scalars = match (low, high, value) {
        (Datum::Text(low), Datum::Text(high), Datum::Text(value)) => {
            let common = low.bytes().zip(high.bytes()).take_while(|(a, b)| a == b).count();
            let scalar = |text: &str| {
                text.bytes().skip(common).take(6).enumerate().fold(0.0, |sum, (at, byte)| {
                    sum + f64::from(byte) / 256f64.powi(i32::try_from(at + 1).unwrap_or(i32::MAX))
                })
            };
            Some((scalar(low), scalar(high), scalar(value)))
        }
        _ => scalar(low).zip(scalar(high)).zip(scalar(value)).map(|((low, high), value)| (low, high, value)),
    };
    match scalars {
        Some((low, high, value)) if high > low => ((value - low) / (high - low)).clamp(0.0, 1.0),
        _ => 0.5,
    }
}

fn scalar(value: &Datum) -> Option<f64> {
    match value {
        Datum::Int(number) => Some(*number as f64),
        Datum::Float(number) => Some(*number).filter(|number| number.is_finite()),
        Datum::Bool(value) => Some(f64::from(u8::from(*value))),
        Datum::Numeric(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
#[path = "selectivity_tests.rs"]
mod tests;
