//! Decimal literals next to integers.
//!
//! A literal with a decimal point, an exponent, or more digits than a bigint is `numeric` in PostgreSQL. This type does
//! not exist here yet, so the literal is a float. Its meaning next to integers is computed from its digits: the integer
//! that it rounds to, and which integers are below, at or above it.

use crate::expr::CompareOp;

/// A magnitude beyond every bigint.
const FAR: i128 = 1 << 100;

/// A decimal literal as far as integers are concerned. Magnitudes are clamped to [`FAR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// The greatest integer not above it.
    floor: i128,
    /// Whether it has a fraction.
    fraction: bool,
    /// The nearest integer, halves away from zero.
    rounded: i128,
    /// Whether a float prints as the literal is written: `1.5`, not `1.50` or `1e3`.
    as_written: bool,
    /// Whether the float of the literal is the float of no other number with as few digits: so has the literal no more
    /// digits than every float keeps.
    is_kept: bool,
}

impl Decimal {
    /// Parses digits with an optional sign, point and exponent; `None` for other text.
    pub(super) fn parse(text: &str) -> Option<Decimal> {
        let as_written = text.parse().is_ok_and(|value| pgtypes::float::show(value) == text);
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = || whole.bytes().chain(part.bytes());
        if !digits().all(|b| b.is_ascii_digit()) || digits().next().is_none() {
            return None;
        }
        let before_point = i64::try_from(whole.len()).ok()?.saturating_add(exponent);
        let mut magnitude = 0i128;
        let (mut fraction, mut up) = (false, false);
        for (place, digit) in (0i64..).zip(digits()) {
            let value = i128::from(digit - b'0');
            if place < before_point {
                magnitude = (magnitude * 10 + value).min(FAR);
            } else {
                fraction |= value > 0;
                up |= place == before_point && value >= 5;
            }
        }
        // The exponent may add zeros after the digits.
        let mut place = i64::try_from(digits().count()).ok()?;
        while place < before_point && magnitude > 0 && magnitude < FAR {
            magnitude = (magnitude * 10).min(FAR);
            place += 1;
        }
        let rounded = magnitude + i128::from(up);
        let significant: Vec<u8> = digits().skip_while(|digit| *digit == b'0').collect();
        let trailing = significant.iter().rev().take_while(|digit| **digit == b'0').count();
        let is_kept = significant.len() - trailing <= f64::DIGITS as usize;
        Some(match negative {
            false => Decimal { floor: magnitude, fraction, rounded, as_written, is_kept },
            true => {
                let floor = -magnitude - i128::from(fraction);
                Decimal { floor, fraction, rounded: -rounded, as_written, is_kept }
            }
        })
    }

    /// Whether its text form here is that of PostgreSQL's `numeric`.
    pub(super) fn prints_as_written(self) -> bool {
        self.as_written
    }

    /// Whether the literal has few enough digits for a float. Two such literals are equal if their floats are.
    pub(super) fn is_kept_by_float(self) -> bool {
        self.is_kept
    }

    /// The rounded value, if it is a bigint.
    pub(super) fn rounded(self) -> Option<i64> {
        i64::try_from(self.rounded).ok()
    }

    /// The exact value, if it is a bigint.
    pub(super) fn integer(self) -> Option<i64> {
        i64::try_from(self.floor).ok().filter(|_| !self.fraction)
    }

    /// A comparison with a bigint that is equivalent, for every bigint, to `op` with this decimal.
    pub(super) fn compared(self, op: CompareOp) -> (CompareOp, i64) {
        const ALWAYS_TRUE: (CompareOp, i64) = (CompareOp::GreaterEq, i64::MIN);
        let op = match (self.fraction, op) {
            (true, CompareOp::Eq) => return ALWAYS_FALSE,
            (true, CompareOp::NotEq) => return ALWAYS_TRUE,
            (true, CompareOp::Less) => CompareOp::LessEq,
            (true, CompareOp::GreaterEq) => CompareOp::Greater,
            (_, op) => op,
        };
        match i64::try_from(self.floor) {
            Ok(floor) => (op, floor),
            Err(_) => {
                let holds = match op {
                    CompareOp::Eq => false,
                    CompareOp::NotEq => true,
                    CompareOp::Less | CompareOp::LessEq => self.floor > 0,
                    CompareOp::Greater | CompareOp::GreaterEq => self.floor < 0,
                };
                if holds { ALWAYS_TRUE } else { ALWAYS_FALSE }
            }
        }
    }
}

/// A comparison that is false for every bigint.
pub(super) const ALWAYS_FALSE: (CompareOp, i64) = (CompareOp::Less, i64::MIN);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn rounds_halves_away_from_zero() {
        let rounded = |text: &str| of(text).rounded();
        assert_eq!(rounded("2.5"), Some(3));
        assert_eq!(rounded("-2.5"), Some(-3));
        assert_eq!(rounded("2.4999999999999999999999"), Some(2));
        assert_eq!(rounded("9007199254740993.0"), Some(9_007_199_254_740_993));
        assert_eq!(rounded("-.5"), Some(-1));
        assert_eq!(rounded("1.25e1"), Some(13));
        assert_eq!(rounded("1250e-3"), Some(1));
        assert_eq!(rounded("5e-2"), Some(0));
        assert_eq!(rounded("1e18"), Some(1_000_000_000_000_000_000));
        assert_eq!(rounded("9223372036854775807.4"), Some(i64::MAX));
        assert_eq!(rounded("9223372036854775807.5"), None);
        assert_eq!(rounded("-9223372036854775808.0"), Some(i64::MIN));
        assert_eq!(rounded("1e400000"), None);
        assert_eq!(rounded("0e400000"), Some(0));
        assert_eq!([Decimal::parse("x"), Decimal::parse("."), Decimal::parse("1e")], [None; 3]);
        assert_eq!((of("7.00").integer(), of("7.01").integer(), of("1e30").integer()), (Some(7), None, None));
    }

    #[test]
    fn a_float_keeps_fifteen_digits() {
        let kept = ["0", "0.1", "-2.50", "123456789012345", "0.000123456789012345", "1.23456789012345e300", "1e400"];
        assert!(kept.iter().all(|text| of(text).is_kept_by_float()));
        let lost = ["1234567890123456", "12345678901234567890", "0.10000000000000000001", "9007199254740993.0"];
        assert!(!lost.iter().any(|text| of(text).is_kept_by_float()));
    }

    #[test]
    fn comparisons_with_integers_are_equivalent() {
        use CompareOp::{Eq, Greater, GreaterEq, Less, LessEq, NotEq};
        let holds = |op: CompareOp, a: f64, b: f64| match op {
            Eq => a == b,
            NotEq => a != b,
            Less => a < b,
            LessEq => a <= b,
            Greater => a > b,
            GreaterEq => a >= b,
        };
        for text in ["-2.5", "-2", "-0.1", "0", "0.0", "1.0", "1.5", "3e0", "1e30", "-1e30"] {
            for op in [Eq, NotEq, Less, LessEq, Greater, GreaterEq] {
                let (own, value) = of(text).compared(op);
                for x in -4i64..5 {
                    let expected = holds(op, x as f64, text.parse().unwrap());
                    let order = x.cmp(&value);
                    let found = match own {
                        Eq => order.is_eq(),
                        NotEq => order.is_ne(),
                        Less => order.is_lt(),
                        LessEq => order.is_le(),
                        Greater => order.is_gt(),
                        GreaterEq => order.is_ge(),
                    };
                    assert_eq!(found, expected, "{x} {op:?} {text}");
                }
            }
        }
    }
}
