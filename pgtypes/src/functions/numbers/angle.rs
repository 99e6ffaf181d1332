//! Functions of angles and hyperbolas. Angles are radians, or degrees in the functions whose name ends in `d`.
//!
//! The functions of degrees are exact at multiples of 30 and 45 degrees, where PostgreSQL's are: each scales the
//! function of radians by its value at such a point. The inverse hyperbolic functions use the formulas of common C
//! libraries, whose last bits the ones of Rust's library do not have.

use std::f64::consts::LN_2;
use std::hint::black_box;

use super::fault::input_range;
use crate::error::ValueError;

type Checked = Result<f64, ValueError>;

/// A degree in radians.
pub(super) const DEGREE: f64 = 0.017_453_292_519_943_295;
/// From here on `x * x + 1` is `x * x`.
const HUGE: f64 = 268_435_456.0;

/// An argument between -1 and 1, or NaN.
fn of_unit(value: f64) -> Checked {
    if value.abs() > 1.0 { Err(input_range()) } else { Ok(value) }
}

/// An argument that is no infinity.
fn of_circle(value: f64) -> Checked {
    if value.is_infinite() { Err(input_range()) } else { Ok(value) }
}

pub(super) fn asin(value: f64) -> Checked {
    of_unit(value).map(f64::asin)
}

pub(super) fn acos(value: f64) -> Checked {
    of_unit(value).map(f64::acos)
}

pub(super) fn atan(value: f64) -> Checked {
    Ok(value.atan())
}

pub(super) fn sin(value: f64) -> Checked {
    of_circle(value).map(f64::sin)
}

pub(super) fn cos(value: f64) -> Checked {
    of_circle(value).map(f64::cos)
}

pub(super) fn tan(value: f64) -> Checked {
    of_circle(value).map(f64::tan)
}

pub(super) fn cot(value: f64) -> Checked {
    of_circle(value).map(|value| 1.0 / value.tan())
}

/// The arc sine in degrees of a number between 0 and 1.
fn asin_degrees(value: f64) -> f64 {
    if value <= 0.5 { value.asin() / known(0.5).asin() * 30.0 } else { 90.0 - value.acos() / known(0.5).acos() * 60.0 }
}

/// The arc cosine in degrees of a number between 0 and 1.
fn acos_degrees(value: f64) -> f64 {
    if value <= 0.5 { 90.0 - value.asin() / known(0.5).asin() * 30.0 } else { value.acos() / known(0.5).acos() * 60.0 }
}

/// A constant whose functions the compiler does not compute, so that they are those of the same library.
fn known(value: f64) -> f64 {
    black_box(value)
}

pub(super) fn asind(value: f64) -> Checked {
    let value = of_unit(value)?;
    Ok(if value >= 0.0 { asin_degrees(value) } else { -asin_degrees(-value) })
}

pub(super) fn acosd(value: f64) -> Checked {
    let value = of_unit(value)?;
    Ok(if value >= 0.0 { acos_degrees(value) } else { 90.0 + asin_degrees(-value) })
}

pub(super) fn atand(value: f64) -> Checked {
    Ok(quarters(value.atan()))
}

/// An angle of radians in degrees, exact at multiples of 45.
pub(super) fn quarters(radians: f64) -> f64 {
    radians / known(1.0).atan() * 45.0
}

/// The sine of 0 to 30 degrees.
fn sin_small(degrees: f64) -> f64 {
    (degrees * DEGREE).sin() / (known(30.0) * DEGREE).sin() / 2.0
}

/// The cosine of 0 to 60 degrees.
fn cos_small(degrees: f64) -> f64 {
    let rest = 1.0 - (degrees * DEGREE).cos();
    1.0 - rest / (1.0 - (known(60.0) * DEGREE).cos()) / 2.0
}

/// The sine of 0 to 90 degrees.
fn sin_quadrant(degrees: f64) -> f64 {
    if degrees <= 30.0 { sin_small(degrees) } else { cos_small(90.0 - degrees) }
}

/// The cosine of 0 to 90 degrees.
fn cos_quadrant(degrees: f64) -> f64 {
    if degrees <= 60.0 { cos_small(degrees) } else { sin_small(90.0 - degrees) }
}

/// An angle brought to 0 to 90 degrees by three reflections, and which of them were used: about 0, 180, 90.
fn reflected(degrees: f64) -> Result<(f64, [bool; 3]), ValueError> {
    let mut angle = of_circle(degrees)? % 360.0;
    let about_0 = angle < 0.0;
    if about_0 {
        angle = -angle;
    }
    let about_180 = angle > 180.0;
    if about_180 {
        angle = 360.0 - angle;
    }
    let about_90 = angle > 90.0;
    if about_90 {
        angle = 180.0 - angle;
    }
    Ok((angle, [about_0, about_180, about_90]))
}

fn signed(value: f64, negative: bool) -> f64 {
    if negative { -value } else { value }
}

/// Zero has no sign.
fn plain(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

pub(super) fn sind(value: f64) -> Checked {
    let (angle, [about_0, about_180, _]) = reflected(value)?;
    Ok(signed(sin_quadrant(angle), about_0 != about_180))
}

pub(super) fn cosd(value: f64) -> Checked {
    let (angle, [_, _, about_90]) = reflected(value)?;
    Ok(signed(cos_quadrant(angle), about_90))
}

pub(super) fn tand(value: f64) -> Checked {
    let (angle, [about_0, about_180, about_90]) = reflected(value)?;
    let unit = sin_quadrant(45.0) / cos_quadrant(45.0);
    let tangent = sin_quadrant(angle) / cos_quadrant(angle) / unit;
    Ok(plain(signed(tangent, about_0 ^ about_180 ^ about_90)))
}

pub(super) fn cotd(value: f64) -> Checked {
    let (angle, [about_0, about_180, about_90]) = reflected(value)?;
    let unit = cos_quadrant(45.0) / sin_quadrant(45.0);
    let cotangent = cos_quadrant(angle) / sin_quadrant(angle) / unit;
    Ok(plain(signed(cotangent, about_0 ^ about_180 ^ about_90)))
}

/// Infinite where it does not fit.
pub(super) fn sinh(value: f64) -> Checked {
    Ok(value.sinh())
}

/// Infinite where it does not fit.
pub(super) fn cosh(value: f64) -> Checked {
    Ok(value.cosh())
}

pub(super) fn tanh(value: f64) -> Checked {
    Ok(value.tanh())
}

pub(super) fn asinh(value: f64) -> Checked {
    let x = value.abs();
    let result = match () {
        () if !value.is_finite() || x < 1.0 / HUGE => x,
        () if x > HUGE => x.ln() + LN_2,
        () if x > 2.0 => (2.0 * x + 1.0 / ((x * x + 1.0).sqrt() + x)).ln(),
        () => {
            let square = x * x;
            (x + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
        }
    };
    Ok(result.copysign(value))
}

pub(super) fn acosh(value: f64) -> Checked {
    if value < 1.0 {
        return Err(input_range());
    }
    Ok(match () {
        () if !value.is_finite() => value,
        () if value >= HUGE => value.ln() + LN_2,
        () if value > 2.0 => (2.0 * value - 1.0 / (value + (value * value - 1.0).sqrt())).ln(),
        () => {
            let beyond = value - 1.0;
            (beyond + (2.0 * beyond + beyond * beyond).sqrt()).ln_1p()
        }
    })
}

/// Infinite at -1 and 1.
pub(super) fn atanh(value: f64) -> Checked {
    let x = of_unit(value)?.abs();
    let result = match () {
        () if x == 1.0 => f64::INFINITY,
        () if x < 1.0 / HUGE => x,
        () if x < 0.5 => {
            let double = x + x;
            0.5 * (double + double * x / (1.0 - x)).ln_1p()
        }
        () => 0.5 * ((x + x) / (1.0 - x)).ln_1p(),
    };
    Ok(result.copysign(value))
}
