//! The value itself: how it is held, its kind, its order and its hash.
//!
//! A finite value that fits in 64 bits is always held without an allocation, so [`Repr::Big`] is never small or zero.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

use super::decimal;
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The most digits before the decimal point.
pub const MAX_INTEGER_DIGITS: u32 = 131_072;
/// The largest display scale.
pub const MAX_SCALE: u16 = 16_383;
/// The largest precision and scale of a declared type, and the largest scale that a division or a real function
/// chooses.
pub const MAX_PRECISION: i32 = 1000;

/// A value of type `numeric`. Equality and order are SQL's: the display scale does not count, and NaN equals itself and
/// is the greatest value.
#[derive(Clone)]
pub struct Numeric(pub(super) Repr);

/// How a value is held.
#[derive(Clone)]
pub(super) enum Repr {
    NaN,
    PosInfinity,
    NegInfinity,
    /// `unscaled / 10^scale`
    Small {
        unscaled: i64,
        scale: u16,
    },
    /// A value whose unscaled value does not fit in 64 bits.
    Big(Box<Big>),
}

/// A finite value: `unscaled / 10^scale`.
#[derive(Clone)]
pub(super) struct Big {
    pub(super) unscaled: BigInt,
    pub(super) scale: u16,
}

/// What kind of value a [`Numeric`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Below all finite values.
    NegInfinity,
    /// A number.
    Finite,
    /// Above all finite values.
    PosInfinity,
    /// Not a number.
    NaN,
}

/// 22003 for a value with too many digits.
pub(super) fn overflow() -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

impl Numeric {
    /// Not a number.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Positive infinity.
    pub const INFINITY: Numeric = Numeric(Repr::PosInfinity);
    /// Negative infinity.
    pub const NEG_INFINITY: Numeric = Numeric(Repr::NegInfinity);
    /// Zero with scale 0.
    pub const ZERO: Numeric = Numeric::small(0, 0);
    /// One with scale 0.
    pub const ONE: Numeric = Numeric::small(1, 0);

    pub(super) const fn small(unscaled: i64, scale: u16) -> Numeric {
        Numeric(Repr::Small { unscaled, scale })
    }

    /// `unscaled / 10^scale`, with that display scale. Exact. 22003 if there are too many digits.
    pub fn new(unscaled: i128, scale: u16) -> Result<Numeric, ValueError> {
        if scale > MAX_SCALE {
            return Err(overflow());
        }
        Ok(Numeric::from_wide(unscaled, scale))
    }

    /// Like `new`, for a scale that is known to be in range. 39 digits always are.
    pub(super) fn from_wide(unscaled: i128, scale: u16) -> Numeric {
        match i64::try_from(unscaled) {
            Ok(unscaled) => Numeric::small(unscaled, scale),
            Err(_) => Numeric(Repr::Big(Box::new(Big { unscaled: unscaled.into(), scale }))),
        }
    }

    /// `unscaled / 10^scale` with that display scale. 22003 if there are too many digits before or after the point.
    pub(super) fn from_big(unscaled: BigInt, scale: i64) -> Result<Numeric, ValueError> {
        let Some(scale) = u16::try_from(scale).ok().filter(|scale| *scale <= MAX_SCALE) else {
            return Err(overflow());
        };
        if let Some(unscaled) = unscaled.to_i64() {
            return Ok(Numeric::small(unscaled, scale));
        }
        if !decimal::fits_digits(unscaled.magnitude(), u64::from(MAX_INTEGER_DIGITS) + u64::from(scale)) {
            return Err(overflow());
        }
        Ok(Numeric(Repr::Big(Box::new(Big { unscaled, scale }))))
    }

    /// The kind of the value.
    pub fn class(&self) -> Class {
        match &self.0 {
            Repr::NaN => Class::NaN,
            Repr::PosInfinity => Class::PosInfinity,
            Repr::NegInfinity => Class::NegInfinity,
            Repr::Small { .. } | Repr::Big(_) => Class::Finite,
        }
    }

    /// The bytes that it occupies beside its own size, for memory budgets.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Repr::Big(big) => size_of::<Big>() + usize::try_from(big.unscaled.bits() / 8).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// Whether the value is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    /// Whether the value is a number, neither NaN nor an infinity.
    pub fn is_finite(&self) -> bool {
        self.class() == Class::Finite
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small { unscaled: 0, .. })
    }

    /// The unscaled value and scale of a finite value that needs no big integer.
    pub(super) fn as_small(&self) -> Option<(i64, u16)> {
        match self.0 {
            Repr::Small { unscaled, scale } => Some((unscaled, scale)),
            _ => None,
        }
    }

    /// The unscaled value and scale of a finite value.
    pub(super) fn as_finite(&self) -> Option<(Cow<'_, BigInt>, u16)> {
        match &self.0 {
            Repr::Small { unscaled, scale } => Some((Cow::Owned((*unscaled).into()), *scale)),
            Repr::Big(big) => Some((Cow::Borrowed(&big.unscaled), big.scale)),
            _ => None,
        }
    }

    /// The display scale of a finite value: digits after the decimal point. The SQL function `scale`.
    pub fn scale(&self) -> Option<u16> {
        match &self.0 {
            Repr::Small { scale, .. } => Some(*scale),
            Repr::Big(big) => Some(big.scale),
            _ => None,
        }
    }

    /// -1, 0 or 1 as the value is less than, equal to or greater than zero; `None` for NaN.
    pub fn signum(&self) -> Option<i32> {
        Some(match &self.0 {
            Repr::NaN => return None,
            Repr::PosInfinity => 1,
            Repr::NegInfinity => -1,
            Repr::Small { unscaled, .. } if *unscaled > 0 => 1,
            Repr::Small { unscaled, .. } => -i32::from(*unscaled < 0),
            Repr::Big(big) if big.unscaled.is_negative() => -1,
            Repr::Big(_) => 1,
        })
    }

    /// The place in the order of kinds: -Infinity, numbers, Infinity, NaN.
    fn rank(&self) -> u8 {
        match self.class() {
            Class::NegInfinity => 0,
            Class::Finite => 1,
            Class::PosInfinity => 2,
            Class::NaN => 3,
        }
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_small(), other.as_small()) {
            if a_scale == b_scale {
                return a.cmp(&b);
            }
            let scale = a_scale.max(b_scale);
            let wide = |value: i64, from: u16| decimal::scale_up_wide(value.into(), u32::from(scale - from));
            if let (Some(a), Some(b)) = (wide(a, a_scale), wide(b, b_scale)) {
                return a.cmp(&b);
            }
        }
        let (Some((a, a_scale)), Some((b, b_scale))) = (self.as_finite(), other.as_finite()) else {
            return self.rank().cmp(&other.rank());
        };
        if a.sign() != b.sign() || a.is_zero() || a_scale == b_scale {
            return a.cmp(&b);
        }
        let scale = a_scale.max(b_scale);
        let aligned = |value: Cow<'_, BigInt>, from: u16| decimal::scale_up(&value, u32::from(scale - from));
        aligned(a, a_scale).cmp(&aligned(b, b_scale))
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match &self.0 {
            Repr::Small { unscaled, scale } => {
                let (digits, zeros) = decimal::strip_zeros_small(*unscaled);
                hash_small(digits, i64::from(zeros) - i64::from(*scale), state);
            }
            Repr::Big(big) => {
                let (digits, zeros) = decimal::strip_zeros(big.unscaled.magnitude());
                let exponent = i64::from(zeros) - i64::from(big.scale);
                let digits = BigInt::from_biguint(big.unscaled.sign(), digits);
                match digits.to_i64() {
                    Some(digits) => hash_small(digits, exponent, state),
                    None => {
                        exponent.hash(state);
                        (digits.sign() == Sign::Minus).hash(state);
                        digits.magnitude().to_u64_digits().hash(state);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Hashes a value without trailing zeros. Zero has no exponent.
fn hash_small<H: Hasher>(digits: i64, exponent: i64, state: &mut H) {
    let exponent = if digits == 0 { 0 } else { exponent };
    exponent.hash(state);
    digits.hash(state);
}
