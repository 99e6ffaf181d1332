//! Averages, variances and regressions of floats.
//!
//! The sums of squared distances are updated row by row with the method of Youngs and Cramer, in the order of
//! operations of PostgreSQL, so that the results are the same to the last bit. Infinities and NaN make the sums of
//! squares NaN; finite values whose sums overflow are 22003.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::aggregate::Aggregate;
use crate::functions::args::Args;
use crate::functions::numbers::float_overflow;

fn datum(value: Option<f64>) -> Datum {
    value.map_or(Datum::Null, Datum::Float)
}

/// The values of one variable.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values {
    sum: f64,
    /// Of squared distances from the average.
    squares: f64,
}

impl Values {
    /// Adds a value that makes them `count`. Returns `count` times its distance from the average, which has yet to be
    /// squared; 0 for the first value.
    fn add(&mut self, value: f64, count: f64) -> f64 {
        self.sum += value;
        if count > 1.0 {
            return value * count - self.sum;
        }
        if !value.is_finite() {
            self.squares = f64::NAN;
        }
        0.0
    }

    fn is_infinite(&self) -> bool {
        self.sum.is_infinite() || self.squares.is_infinite()
    }
}

/// The aggregates of one variable.
#[derive(Debug)]
pub(super) struct Moments {
    count: f64,
    values: Values,
    result: fn(&Moments) -> Option<f64>,
}

impl Moments {
    pub(super) fn new(result: fn(&Moments) -> Option<f64>) -> Moments {
        Moments { count: 0.0, values: Values::default(), result }
    }

    pub(super) fn average(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.values.sum / self.count)
    }

    pub(super) fn var_pop(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.values.squares / self.count)
    }

    pub(super) fn var_samp(&self) -> Option<f64> {
        (self.count > 1.0).then(|| self.values.squares / (self.count - 1.0))
    }

    pub(super) fn stddev_pop(&self) -> Option<f64> {
        self.var_pop().map(f64::sqrt)
    }

    pub(super) fn stddev_samp(&self) -> Option<f64> {
        self.var_samp().map(f64::sqrt)
    }
}

impl Aggregate for Moments {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let value = args.float(0)?;
        let was_finite = !self.values.sum.is_infinite() && !value.is_infinite();
        let before = self.count;
        self.count += 1.0;
        let distance = self.values.add(value, self.count);
        if before == 0.0 {
            return Ok(());
        }
        self.values.squares += distance * distance / (self.count * before);
        if self.values.is_infinite() {
            if was_finite {
                return Err(float_overflow());
            }
            self.values.squares = f64::NAN;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        Ok(datum((self.result)(self)))
    }

    fn is_lasting(&self) -> bool {
        true
    }
}

/// The aggregates of two variables: the first argument depends on the second one.
#[derive(Debug)]
pub(super) struct Regression {
    count: f64,
    x: Values,
    y: Values,
    /// The sum of products of the distances from the averages.
    products: f64,
    result: fn(&Regression) -> Option<f64>,
}

impl Regression {
    pub(super) fn new(result: fn(&Regression) -> Option<f64>) -> Regression {
        Regression { count: 0.0, x: Values::default(), y: Values::default(), products: 0.0, result }
    }

    fn any(&self, value: f64) -> Option<f64> {
        (self.count > 0.0).then_some(value)
    }

    pub(super) fn sxx(&self) -> Option<f64> {
        self.any(self.x.squares)
    }

    pub(super) fn syy(&self) -> Option<f64> {
        self.any(self.y.squares)
    }

    pub(super) fn sxy(&self) -> Option<f64> {
        self.any(self.products)
    }

    pub(super) fn average_x(&self) -> Option<f64> {
        self.any(self.x.sum / self.count)
    }

    pub(super) fn average_y(&self) -> Option<f64> {
        self.any(self.y.sum / self.count)
    }

    pub(super) fn covar_pop(&self) -> Option<f64> {
        self.any(self.products / self.count)
    }

    pub(super) fn covar_samp(&self) -> Option<f64> {
        (self.count > 1.0).then(|| self.products / (self.count - 1.0))
    }

    /// Whether the values of `x` differ. Else no line is defined.
    fn has_slope(&self) -> bool {
        self.count > 0.0 && self.x.squares != 0.0
    }

    pub(super) fn corr(&self) -> Option<f64> {
        let is_defined = self.has_slope() && self.y.squares != 0.0;
        is_defined.then(|| self.products / (self.x.squares * self.y.squares).sqrt())
    }

    pub(super) fn r2(&self) -> Option<f64> {
        self.has_slope().then(|| {
            if self.y.squares == 0.0 {
                return 1.0;
            }
            (self.products * self.products) / (self.x.squares * self.y.squares)
        })
    }

    pub(super) fn slope(&self) -> Option<f64> {
        self.has_slope().then(|| self.products / self.x.squares)
    }

    pub(super) fn intercept(&self) -> Option<f64> {
        self.has_slope().then(|| (self.y.sum - self.x.sum * self.products / self.x.squares) / self.count)
    }

    /// Sums that overflowed are an error, if the values were finite. Sums of infinities are NaN.
    fn check(&mut self, x_was_finite: bool, y_was_finite: bool) -> Result<(), ValueError> {
        let overflowed = (self.x.is_infinite() && x_was_finite)
            || (self.y.is_infinite() && y_was_finite)
            || (self.products.is_infinite() && x_was_finite && y_was_finite);
        if overflowed {
            return Err(float_overflow());
        }
        for sum in [&mut self.x.squares, &mut self.y.squares, &mut self.products] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }
}

impl Aggregate for Regression {
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError> {
        let (y, x) = (args.float(0)?, args.float(1)?);
        let x_was_finite = !self.x.sum.is_infinite() && !x.is_infinite();
        let y_was_finite = !self.y.sum.is_infinite() && !y.is_infinite();
        let before = self.count;
        self.count += 1.0;
        let (distance_x, distance_y) = (self.x.add(x, self.count), self.y.add(y, self.count));
        if before > 0.0 {
            let scale = 1.0 / (self.count * before);
            self.x.squares += distance_x * distance_x * scale;
            self.y.squares += distance_y * distance_y * scale;
            self.products += distance_x * distance_y * scale;
            return self.check(x_was_finite, y_was_finite);
        }
        if !x.is_finite() || !y.is_finite() {
            self.products = f64::NAN;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Args<'_>) -> Result<Datum, ValueError> {
        Ok(datum((self.result)(self)))
    }

    fn is_lasting(&self) -> bool {
        true
    }
}
