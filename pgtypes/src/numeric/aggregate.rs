//! States of the aggregates over `numeric` and integers: sum, average, variance, standard deviation.
//!
//! States add exactly, so their results do not depend on the order of values nor on how partial states are combined. A
//! state does not overflow; its result may.

use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use super::arithmetic::{div_scale, div_to_scale};
use super::decimal;
use super::logarithm::sqrt_at;
use super::value::{Class, Numeric, Repr};
use crate::error::ValueError;

/// A sum of numbers of any scales: `(wide + big) / 10^scale`.
#[derive(Clone, Debug, Default)]
struct Exact {
    /// What has been added since the last overflow.
    wide: i128,
    big: BigInt,
    scale: u32,
}

impl Exact {
    /// Moves the sum to a scale, if it is larger.
    fn raise(&mut self, scale: u32) {
        let Some(digits) = scale.checked_sub(self.scale).filter(|digits| *digits > 0) else {
            return;
        };
        // The part that is still at the old scale moves first.
        let wide = decimal::scale_up_wide(self.wide, digits);
        if wide.is_none() {
            self.spill();
        }
        self.big = decimal::scale_up(&self.big, digits);
        self.wide = wide.unwrap_or(0);
        self.scale = scale;
    }

    fn spill(&mut self) {
        self.big += self.wide;
        self.wide = 0;
    }

    fn add_wide(&mut self, value: i128, scale: u32) {
        self.raise(scale);
        match decimal::scale_up_wide(value, self.scale - scale) {
            Some(value) => match self.wide.checked_add(value) {
                Some(sum) => self.wide = sum,
                None => {
                    self.spill();
                    self.wide = value;
                }
            },
            None => self.big += decimal::scale_up(&value.into(), self.scale - scale),
        }
    }

    fn add_big(&mut self, value: &BigInt, scale: u32) {
        self.raise(scale);
        self.big += decimal::scale_up(value, self.scale - scale);
    }

    fn combine(&mut self, other: &Exact) {
        self.add_wide(other.wide, other.scale);
        if !other.big.is_zero() {
            self.add_big(&other.big, other.scale);
        }
    }

    fn total(&self) -> BigInt {
        &self.big + self.wide
    }

    fn memory(&self) -> usize {
        usize::try_from(self.big.bits() / 8).unwrap_or(usize::MAX)
    }
}

/// Counts of the values that are no numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Specials {
    nan: u64,
    pos_infinity: u64,
    neg_infinity: u64,
}

impl Specials {
    fn count(self) -> u64 {
        self.nan + self.pos_infinity + self.neg_infinity
    }

    /// The sum, if it is no number.
    fn sum(self) -> Option<Numeric> {
        if self.nan > 0 || (self.pos_infinity > 0 && self.neg_infinity > 0) {
            Some(Numeric::NAN)
        } else if self.pos_infinity > 0 {
            Some(Numeric::INFINITY)
        } else if self.neg_infinity > 0 {
            Some(Numeric::NEG_INFINITY)
        } else {
            None
        }
    }

    fn add(&mut self, class: Class) {
        match class {
            Class::NaN => self.nan += 1,
            Class::PosInfinity => self.pos_infinity += 1,
            Class::NegInfinity => self.neg_infinity += 1,
            Class::Finite => {}
        }
    }

    fn combine(&mut self, other: Specials) {
        self.nan += other.nan;
        self.pos_infinity += other.pos_infinity;
        self.neg_infinity += other.neg_infinity;
    }
}

/// The state of `sum` and `avg`, of numbers or of integers.
#[derive(Clone, Debug, Default)]
pub struct SumState {
    /// Values that are numbers.
    count: u64,
    specials: Specials,
    sum: Exact,
}

impl SumState {
    /// The state of no values.
    pub fn new() -> SumState {
        SumState::default()
    }

    /// Adds a value.
    pub fn add(&mut self, value: &Numeric) {
        match &value.0 {
            Repr::Small { unscaled, scale } => self.sum.add_wide((*unscaled).into(), (*scale).into()),
            Repr::Big(big) => self.sum.add_big(&big.unscaled, big.scale.into()),
            _ => return self.specials.add(value.class()),
        }
        self.count += 1;
    }

    /// Adds an integer, as a number of scale 0.
    pub fn add_int(&mut self, value: i64) {
        self.sum.add_wide(value.into(), 0);
        self.count += 1;
    }

    /// Adds the values of another state.
    pub fn combine(&mut self, other: &SumState) {
        self.count += other.count;
        self.specials.combine(other.specials);
        self.sum.combine(&other.sum);
    }

    /// The bytes that the state occupies beside its own size.
    pub fn memory(&self) -> usize {
        self.sum.memory()
    }

    /// How many values there are, NaN and infinities among them.
    pub fn count(&self) -> u64 {
        self.count + self.specials.count()
    }

    /// The sum, at the largest scale of the values; `None` of no values. 22003 if it has too many digits.
    pub fn sum(&self) -> Result<Option<Numeric>, ValueError> {
        if self.count() == 0 {
            return Ok(None);
        }
        match self.specials.sum() {
            Some(sum) => Ok(Some(sum)),
            None => Numeric::from_big(self.sum.total(), self.sum.scale.into()).map(Some),
        }
    }

    /// The average, with the scale of a quotient; `None` of no values.
    pub fn avg(&self) -> Result<Option<Numeric>, ValueError> {
        match self.sum()? {
            Some(sum) => sum.div(&i128::from(self.count()).into()).map(Some),
            None => Ok(None),
        }
    }
}

/// The state of variances and standard deviations, of numbers or of integers.
#[derive(Clone, Debug, Default)]
pub struct VarianceState {
    values: SumState,
    squares: Exact,
}

/// Which variance: of the values themselves, or an estimate from a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// `var_pop`, `stddev_pop`
    Whole,
    /// `var_samp`, `stddev_samp`
    Sample,
}

impl VarianceState {
    /// The state of no values.
    pub fn new() -> VarianceState {
        VarianceState::default()
    }

    /// Adds a value.
    pub fn add(&mut self, value: &Numeric) {
        self.values.add(value);
        match &value.0 {
            Repr::Small { unscaled, scale } => {
                let wide = i128::from(*unscaled);
                self.squares.add_wide(wide * wide, 2 * u32::from(*scale));
            }
            Repr::Big(big) => self.squares.add_big(&(&big.unscaled * &big.unscaled), 2 * u32::from(big.scale)),
            _ => {}
        }
    }

    /// Adds an integer, as a number of scale 0.
    pub fn add_int(&mut self, value: i64) {
        self.values.add_int(value);
        self.squares.add_wide(i128::from(value) * i128::from(value), 0);
    }

    /// Adds the values of another state.
    pub fn combine(&mut self, other: &VarianceState) {
        self.values.combine(&other.values);
        self.squares.combine(&other.squares);
    }

    /// The bytes that the state occupies beside its own size.
    pub fn memory(&self) -> usize {
        self.values.memory() + self.squares.memory()
    }

    /// How many values there are, NaN and infinities among them.
    pub fn count(&self) -> u64 {
        self.values.count()
    }

    /// The sum of the values; `None` of no values. 22003 if it has too many digits.
    pub fn sum(&self) -> Result<Option<Numeric>, ValueError> {
        self.values.sum()
    }

    /// The average of the values; `None` of no values.
    pub fn avg(&self) -> Result<Option<Numeric>, ValueError> {
        self.values.avg()
    }

    /// The variance, with the scale of a quotient; `None` of no values, and of a sample of one.
    pub fn variance(&self, of: Population) -> Result<Option<Numeric>, ValueError> {
        let least = if of == Population::Sample { 1 } else { 0 };
        if self.count() <= least {
            return Ok(None);
        }
        if self.values.specials.count() > 0 {
            return Ok(Some(Numeric::NAN));
        }
        let count = BigInt::from(self.values.count);
        let (sum, sum_scale) = (self.values.sum.total(), i64::from(self.values.sum.scale));
        let squares = decimal::rescale(&self.squares.total(), self.squares.scale.into(), sum_scale * 2);
        let numerator = &count * squares - &sum * &sum;
        if !numerator.is_positive() {
            return Ok(Some(Numeric::ZERO));
        }
        let divisor = &count * (&count - least);
        let shape = decimal::shape(numerator.magnitude(), sum_scale * 2);
        let scale = div_scale(shape, sum_scale * 2, decimal::shape(divisor.magnitude(), 0), 0);
        Numeric::from_big(div_to_scale(&numerator, sum_scale * 2, &divisor, 0, scale), scale).map(Some)
    }

    /// The standard deviation: the square root of the variance, at its scale.
    pub fn stddev(&self, of: Population) -> Result<Option<Numeric>, ValueError> {
        let Some(variance) = self.variance(of)? else {
            return Ok(None);
        };
        match variance.scale() {
            Some(scale) => sqrt_at(&variance, scale.into()).map(Some),
            None => Ok(Some(variance)),
        }
    }
}
