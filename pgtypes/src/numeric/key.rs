//! The key form of `numeric`: bytes whose order is the order of SQL, and of which none is a prefix of another.
//!
//! The form has the value but not the display scale: equal values have equal bytes. It starts with a tag:
//!
//! | tag | value |
//! |-----|-------|
//! | 02 | -Infinity |
//! | 03 | negative, exponent above 62 |
//! | 04 to 7e | negative, exponent 62 down to -60 |
//! | 7f | negative, exponent below -60 |
//! | 80 | zero |
//! | 81 | positive, exponent below -60 |
//! | 82 to fc | positive, exponent -60 to 62 |
//! | fd | positive, exponent above 62 |
//! | fe | Infinity |
//! | ff | NaN |
//!
//! The exponent `e` is that of `0.d1d2d3... * 10^e` with `d1` not zero. Tags 81 and fd are followed by `e + 2^23` in
//! three bytes, the highest first. Then come the digits in pairs, without the zeros that end them: a pair `p` is the
//! byte `2p + 1`, the last one `2p`. What follows the tag of a negative number is that of its absolute value with all
//! bits inverted.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{ToPrimitive, Zero};

use super::decimal;
use super::value::{Class, MAX_INTEGER_DIGITS, MAX_SCALE, Numeric};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

const NEG_INFINITY: u8 = 0x02;
const ZERO: u8 = 0x80;
const TINY: u8 = 0x81;
const SHORT: u8 = 0x82;
const LARGE: u8 = 0xfd;
const INFINITY: u8 = 0xfe;
const NAN: u8 = 0xff;
/// The exponents that the tag contains.
const SHORT_EXPONENTS: std::ops::RangeInclusive<i64> = -60..=62;
const EXPONENT_OFFSET: i64 = 1 << 23;

impl Numeric {
    /// Appends the key form.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        let Some((value, scale)) = self.as_finite() else {
            out.push(match self.class() {
                Class::PosInfinity => INFINITY,
                Class::NegInfinity => NEG_INFINITY,
                _ => NAN,
            });
            return;
        };
        if value.is_zero() {
            out.push(ZERO);
            return;
        }
        let negative = value.sign() == Sign::Minus;
        let start = out.len();
        write_magnitude(value.magnitude(), scale.into(), out);
        if negative {
            for (at, byte) in out.iter_mut().skip(start).enumerate() {
                // Tags mirror around the tag of zero; other bytes are inverted.
                *byte = if at == 0 { byte.wrapping_neg() } else { !*byte };
            }
        }
    }

    /// Reads a key form at the start of `bytes`. Returns the value with its least scale, and the bytes that follow.
    /// XX001 for bytes that `write_key` does not write.
    pub fn parse_key(bytes: &[u8]) -> Result<(Numeric, &[u8]), ValueError> {
        let (tag, rest) = bytes.split_first().ok_or_else(corrupted)?;
        let value = match *tag {
            NAN => Numeric::NAN,
            INFINITY => Numeric::INFINITY,
            NEG_INFINITY => Numeric::NEG_INFINITY,
            ZERO => Numeric::ZERO,
            tag => return parse_number(tag, rest),
        };
        Ok((value, rest))
    }
}

fn corrupted() -> ValueError {
    ValueError::new(SqlState::DATA_CORRUPTED, "a numeric key is damaged")
}

/// Appends the form of a positive number.
fn write_magnitude(value: &BigUint, scale: i64, out: &mut Vec<u8>) {
    let (count, mut pairs) = match value.to_u64() {
        Some(small) => {
            let count = decimal::count_digits_small(small);
            let mut rest = u128::from(small) * if count % 2 == 1 { 10 } else { 1 };
            let mut pairs = Vec::with_capacity(10);
            while rest != 0 {
                pairs.push(u8::try_from(rest % 100).unwrap_or(0));
                rest /= 100;
            }
            pairs.reverse();
            (i64::from(count), pairs)
        }
        None => {
            let text = value.to_string();
            let pair = |pair: &[u8]| pair.iter().chain(b"0").take(2).fold(0, |p, digit| p * 10 + (digit - b'0'));
            (i64::try_from(text.len()).unwrap_or(i64::MAX), text.as_bytes().chunks(2).map(pair).collect())
        }
    };
    let exponent = count - scale;
    match u8::try_from(exponent - SHORT_EXPONENTS.start()) {
        Ok(offset) if SHORT_EXPONENTS.contains(&exponent) => out.push(SHORT + offset),
        _ => {
            out.push(if exponent < 0 { TINY } else { LARGE });
            let shifted = u32::try_from(exponent + EXPONENT_OFFSET).unwrap_or(0);
            out.extend(shifted.to_be_bytes().iter().skip(1));
        }
    }
    let length = pairs.iter().rposition(|pair| *pair != 0).map_or(0, |at| at + 1);
    pairs.truncate(length);
    let last = pairs.pop().unwrap_or(0);
    out.extend(pairs.into_iter().map(|pair| pair * 2 + 1));
    out.push(last * 2);
}

/// Reads what follows the tag of a number.
fn parse_number(tag: u8, rest: &[u8]) -> Result<(Numeric, &[u8]), ValueError> {
    let negative = tag < ZERO;
    let flip = if negative { 0xff } else { 0 };
    let tag = if negative { tag.wrapping_neg() } else { tag };
    let (exponent, rest) = match tag {
        TINY | LARGE => {
            let (bytes, rest) = rest.split_first_chunk::<3>().ok_or_else(corrupted)?;
            let shifted = bytes.iter().fold(0, |value, byte| value << 8 | i64::from(byte ^ flip));
            let exponent = shifted - EXPONENT_OFFSET;
            if SHORT_EXPONENTS.contains(&exponent) || (tag == LARGE) != (exponent > 0) {
                return Err(corrupted());
            }
            (exponent, rest)
        }
        SHORT..LARGE => (i64::from(tag - SHORT) + SHORT_EXPONENTS.start(), rest),
        _ => return Err(corrupted()),
    };
    let end = rest.iter().position(|byte| (byte ^ flip) & 1 == 0).ok_or_else(corrupted)?;
    let (pairs, rest) = rest.split_at_checked(end + 1).ok_or_else(corrupted)?;
    if pairs.len() > (MAX_INTEGER_DIGITS as usize + usize::from(MAX_SCALE)) / 2 + 1 {
        return Err(corrupted());
    }
    let pairs: Vec<u8> = pairs.iter().map(|byte| (byte ^ flip) >> 1).collect();
    let valid = pairs.iter().all(|pair| *pair < 100) && pairs.first() >= Some(&10) && pairs.last() != Some(&0);
    if !valid {
        return Err(corrupted());
    }
    let value = digits_value(&pairs)?;
    // The digits are `0.d1d2...`, so the scale of the pairs is their length less the exponent.
    let scale = i64::try_from(pairs.len()).unwrap_or(i64::MAX) * 2 - exponent;
    let value = BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, value);
    let odd = pairs.last().is_some_and(|last| last % 10 == 0);
    let least = if odd { scale - 1 } else { scale }.max(0);
    let value = Numeric::from_big(decimal::rescale(&value, scale, least), least).map_err(|_| corrupted())?;
    Ok((value, rest))
}

/// The number of digits in base 100.
fn digits_value(pairs: &[u8]) -> Result<BigUint, ValueError> {
    if pairs.len() <= 9 {
        return Ok(pairs.iter().fold(0u64, |value, pair| value * 100 + u64::from(*pair)).into());
    }
    BigUint::from_radix_be(pairs, 100).ok_or_else(corrupted)
}
