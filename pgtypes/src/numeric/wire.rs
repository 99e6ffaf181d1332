//! The binary wire form of `numeric`.
//!
//! Four 16-bit words in network order: the number of digits, the weight (the power of 10000 of the first digit), the
//! sign and the display scale. Then the digits in base 10000, one word each, without leading and trailing zeros.

use bytes::{BufMut, BytesMut};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{ToPrimitive, Zero};

use super::decimal;
use super::typmod::Typmod;
use super::value::{Class, MAX_SCALE, Numeric};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEG_INFINITY: u16 = 0xF000;
/// The scale that PostgreSQL sends with an infinity.
const INFINITY_SCALE: u16 = 32;
const BASE: u16 = 10_000;

impl Numeric {
    /// Appends the binary form.
    pub fn write_binary(&self, out: &mut BytesMut) {
        let Some((value, scale)) = self.as_finite() else {
            let (sign, scale) = match self.class() {
                Class::PosInfinity => (INFINITY, INFINITY_SCALE),
                Class::NegInfinity => (NEG_INFINITY, INFINITY_SCALE),
                _ => (NAN, 0),
            };
            return write_words(out, &[], 0, sign, scale);
        };
        let sign = if value.sign() == Sign::Minus { NEGATIVE } else { POSITIVE };
        let (digits, weight) = base_digits(value.magnitude(), scale);
        write_words(out, &digits, weight, sign, scale);
    }

    /// Decodes the binary form. 22P03 for a bad sign, scale or digit and for surplus bytes, 08P01 for missing bytes,
    /// 22003 for too many digits. Digits after the scale are cut off.
    pub fn parse_binary(bytes: &[u8], typmod: Option<Typmod>) -> Result<Numeric, ValueError> {
        let mut words = Words(bytes);
        let count = words.next()?;
        let weight = i16::from_be_bytes(words.next()?.to_be_bytes());
        let sign = words.next()?;
        if !matches!(sign, POSITIVE | NEGATIVE | NAN | INFINITY | NEG_INFINITY) {
            return Err(invalid("sign"));
        }
        let scale = words.next()?;
        if scale > MAX_SCALE {
            return Err(invalid("scale"));
        }
        let mut digits = Vec::with_capacity(usize::from(count).min(bytes.len()));
        for _ in 0..count {
            let digit = words.next()?;
            if digit >= BASE {
                return Err(invalid("digit"));
            }
            digits.push(digit);
        }
        if !words.0.is_empty() {
            let message = "incorrect binary data format";
            return Err(ValueError::new(SqlState::INVALID_BINARY_REPRESENTATION, message));
        }
        match sign {
            NAN => Numeric::NAN.apply_typmod(typmod),
            INFINITY => Numeric::INFINITY.apply_typmod(typmod),
            NEG_INFINITY => Numeric::NEG_INFINITY.apply_typmod(typmod),
            _ => {
                let sign = if sign == NEGATIVE { Sign::Minus } else { Sign::Plus };
                finite(&digits, weight.into(), sign, scale, typmod)
            }
        }
    }
}

fn invalid(part: &str) -> ValueError {
    let message = format!("invalid {part} in external \"numeric\" value");
    ValueError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
}

/// Reads 16-bit words.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> Result<u16, ValueError> {
        let Some((word, rest)) = self.0.split_first_chunk() else {
            return Err(ValueError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message"));
        };
        self.0 = rest;
        Ok(u16::from_be_bytes(*word))
    }
}

fn write_words(out: &mut BytesMut, digits: &[u16], weight: i16, sign: u16, scale: u16) {
    out.reserve(8 + digits.len() * 2);
    // A value has at most 36865 digits.
    out.put_u16(u16::try_from(digits.len()).unwrap_or(u16::MAX));
    out.put_i16(weight);
    out.put_u16(sign);
    out.put_u16(scale);
    for digit in digits {
        out.put_u16(*digit);
    }
}

/// The digits in base 10000 without outer zeros, and the weight of the first.
pub(super) fn base_digits(value: &BigUint, scale: u16) -> (Vec<u16>, i16) {
    // Digits of base 10000 end at the decimal point, so the scale becomes a multiple of four.
    let groups = scale.div_ceil(4);
    let pad = u32::from(groups * 4 - scale);
    let mut digits = Vec::new();
    match value.to_u128().and_then(|value| value.checked_mul(10u128.pow(pad))) {
        Some(mut rest) => {
            while rest != 0 {
                digits.push(u16::try_from(rest % u128::from(BASE)).unwrap_or(0));
                rest /= u128::from(BASE);
            }
        }
        None => split(&(value * decimal::pow10(pad)), &mut digits),
    }
    let weight = i64::try_from(digits.len()).unwrap_or(i64::MAX) - 1 - i64::from(groups);
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..zeros);
    digits.reverse();
    (digits, if value.is_zero() { 0 } else { i16::try_from(weight).unwrap_or(i16::MAX) })
}

/// Appends the digits in base 10000 of a number of any length, the lowest first, without zeros at the end.
fn split(value: &BigUint, digits: &mut Vec<u16>) {
    let text = value.to_string();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let (head, group) = rest.split_at(rest.len().saturating_sub(4));
        digits.push(group.iter().fold(0, |value, digit| value * 10 + u16::from(digit.wrapping_sub(b'0'))));
        rest = head;
    }
}

/// The value of digits in base 10000, cut to the scale.
fn finite(digits: &[u16], weight: i64, sign: Sign, scale: u16, typmod: Option<Typmod>) -> Result<Numeric, ValueError> {
    // Zeros at either end do not count.
    let lead = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = digits.get(lead..).unwrap_or_default();
    let weight = weight - i64::try_from(lead).unwrap_or(0);
    // Digits of lower weight are behind the scale altogether.
    let kept = usize::try_from(weight + i64::from(scale / 4) + 2).unwrap_or(0).min(digits.len());
    let digits = digits.get(..kept).unwrap_or_default();
    let own_scale = (i64::try_from(kept).unwrap_or(0) - 1 - weight) * 4;
    if digits.is_empty() {
        return Numeric::small(0, scale).apply_typmod(typmod);
    }
    if let Some(value) = finite_wide(digits, own_scale, sign, scale) {
        return value.apply_typmod(typmod);
    }
    let mut text = Vec::with_capacity(digits.len() * 4);
    for digit in digits {
        text.extend_from_slice(format!("{digit:04}").as_bytes());
    }
    let value = BigInt::from_biguint(sign, BigUint::parse_bytes(&text, 10).unwrap_or_default());
    let value = decimal::rescale_trunc(&value, own_scale, scale.into());
    match typmod {
        Some(typmod) => typmod.round(&value, scale.into()),
        None => Numeric::from_big(value, scale.into()),
    }
}

/// The same for values of 128 bits.
fn finite_wide(digits: &[u16], own_scale: i64, sign: Sign, scale: u16) -> Option<Numeric> {
    let mut value = 0i128;
    for digit in digits {
        value = value.checked_mul(BASE.into())?.checked_add((*digit).into())?;
    }
    let shift = i64::from(scale) - own_scale;
    let power = decimal::pow10_wide(u32::try_from(shift.unsigned_abs()).ok()?)?;
    let value = if shift >= 0 { value.checked_mul(power)? } else { value / power };
    Some(Numeric::from_wide(if sign == Sign::Minus { -value } else { value }, scale))
}
