//! The storage form of `numeric`: compact, keeps the display scale, and is not ordered.
//!
//! A header, an unsigned number in groups of seven bits, the lowest first, each byte but the last with its high bit
//! set:
//!
//! - bit 0: the value is negative
//! - bit 1: the value is no number: NaN, or an infinity with the sign of bit 0 if bit 2 is set
//! - bit 2, of a number: a second number in the same form follows, the count of zeros that end the digits
//! - from bit 3 on: the display scale
//!
//! Then the magnitude of the unscaled value without those zeros, as the fewest bytes, the lowest first. Zero has none.
//! Values that fit in 64 bits are stored without a count of zeros, others with it if there are any, so that a value and
//! a display scale have one form.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{ToPrimitive, Zero};

use super::decimal;
use super::value::{MAX_INTEGER_DIGITS, MAX_SCALE, Numeric, Repr};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

const NEGATIVE: u32 = 1;
const SPECIAL: u32 = 2;
const ZEROS: u32 = 4;
const SCALE_SHIFT: u32 = 3;
/// More bytes than the digits of any value take.
const MAX_BYTES: usize = 62_000;

impl Numeric {
    /// Appends the storage form. Its length must be known to read it back.
    pub fn write_stored(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::NaN => write_number(SPECIAL, out),
            Repr::PosInfinity => write_number(SPECIAL | ZEROS, out),
            Repr::NegInfinity => write_number(SPECIAL | ZEROS | NEGATIVE, out),
            Repr::Small { unscaled, scale } => {
                write_number(u32::from(*scale) << SCALE_SHIFT | u32::from(*unscaled < 0), out);
                write_bytes(&unscaled.unsigned_abs().to_le_bytes(), out);
            }
            Repr::Big(big) => {
                let header = u32::from(big.scale) << SCALE_SHIFT | u32::from(big.unscaled.sign() == Sign::Minus);
                let (digits, zeros) = decimal::strip_zeros(big.unscaled.magnitude());
                if zeros == 0 {
                    write_number(header, out);
                } else {
                    write_number(header | ZEROS, out);
                    write_number(zeros, out);
                }
                write_bytes(&digits.to_bytes_le(), out);
            }
        }
    }

    /// Decodes the storage form, which is all of `bytes`. XX001 for bytes that `write_stored` does not write.
    pub fn parse_stored(bytes: &[u8]) -> Result<Numeric, ValueError> {
        let (header, mut rest) = read_number(bytes)?;
        if header & SPECIAL != 0 {
            return match (header, rest) {
                (SPECIAL, []) => Ok(Numeric::NAN),
                (h, []) if h == SPECIAL | ZEROS => Ok(Numeric::INFINITY),
                (h, []) if h == SPECIAL | ZEROS | NEGATIVE => Ok(Numeric::NEG_INFINITY),
                _ => Err(corrupted()),
            };
        }
        let negative = header & NEGATIVE != 0;
        let scale = u16::try_from(header >> SCALE_SHIFT).map_err(|_| corrupted())?;
        let mut zeros = 0;
        if header & ZEROS != 0 {
            (zeros, rest) = read_number(rest)?;
            if zeros == 0 {
                return Err(corrupted());
            }
        }
        if rest.last() == Some(&0) || (rest.is_empty() && negative) {
            return Err(corrupted());
        }
        if rest.len() < 8 && zeros == 0 && scale <= MAX_SCALE {
            let magnitude = rest.iter().rev().fold(0i64, |value, byte| value << 8 | i64::from(*byte));
            return Ok(Numeric::small(if negative { -magnitude } else { magnitude }, scale));
        }
        if zeros > MAX_INTEGER_DIGITS + u32::from(MAX_SCALE) || rest.len() > MAX_BYTES {
            return Err(corrupted());
        }
        let magnitude = BigUint::from_bytes_le(rest);
        let ends_in_zero = (&magnitude % 10u32).is_zero();
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        let value = decimal::scale_up(&BigInt::from_biguint(sign, magnitude), zeros);
        let value = Numeric::from_big(value, scale.into()).map_err(|_| corrupted())?;
        // Zeros are counted, and counted only, where the value needs more than 64 bits.
        let other_form = if value.as_small().is_some() { zeros > 0 } else { ends_in_zero };
        if other_form {
            return Err(corrupted());
        }
        Ok(value)
    }
}

fn corrupted() -> ValueError {
    ValueError::new(SqlState::DATA_CORRUPTED, "a stored numeric value is damaged")
}

fn write_number(value: u32, out: &mut Vec<u8>) {
    let mut rest = value;
    while rest >= 0x80 {
        out.push((rest & 0x7f).to_u8().unwrap_or(0) | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_u8().unwrap_or(0));
}

/// A number in groups of seven bits, and what follows it.
fn read_number(bytes: &[u8]) -> Result<(u32, &[u8]), ValueError> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(4) {
        value |= u32::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let (_, rest) = bytes.split_at_checked(at + 1).ok_or_else(corrupted)?;
            // The last group is not zero, or there would be two forms of a number.
            return if at > 0 && *byte == 0 { Err(corrupted()) } else { Ok((value, rest)) };
        }
    }
    Err(corrupted())
}

/// Appends little-endian bytes without the zeros at their end.
fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    out.extend(bytes.iter().take(length));
}
