//! Hexadecimal floats in texts: `0x1.8p3`, as C's `strtod` reads them. [`super::float`] reads all others.

/// Bits of the mantissa beyond which further digits only decide the rounding.
const EXACT: u32 = 60;
/// Exponents are cut at this size: far beyond it all numbers are zero or infinite.
const MAX_POWER: i64 = 1 << 40;

/// A number as it is written: `mantissa * 2^exponent`. The lowest bit of a mantissa of more than [`EXACT`] bits stands
/// for all digits behind it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HexFloat {
    mantissa: u64,
    exponent: i64,
}

impl HexFloat {
    /// The number of a text without a sign; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<HexFloat> {
        let body = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
        let (digits, exponent) = match body.split_once(['p', 'P']) {
            Some((digits, power)) => (digits, power_of(power)?),
            None => (body, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut number = HexFloat { mantissa: 0, exponent };
        whole.chars().try_for_each(|digit| number.push(digit.to_digit(16)?, 4))?;
        fraction.chars().try_for_each(|digit| number.push(digit.to_digit(16)?, 0))?;
        Some(number)
    }

    /// Adds a digit. `width` is 4 before the point, and 0 behind it.
    fn push(&mut self, digit: u32, width: i64) -> Option<()> {
        if self.mantissa >> EXACT == 0 {
            self.mantissa = self.mantissa << 4 | u64::from(digit);
            self.exponent += width - 4;
        } else {
            self.mantissa |= u64::from(digit != 0);
            self.exponent += width;
        }
        Some(())
    }

    /// Whether it is written with zeros alone.
    pub(crate) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The nearest binary float whose mantissa has at most so many bits and whose exponent is at least `least`; of two,
    /// the even one. Infinite beyond the range of `double precision`.
    pub(crate) fn nearest(self, bits: u32, least: i64) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        let size = i64::from(u64::BITS - self.mantissa.leading_zeros());
        // The exponent of the last bit that stays.
        let last = (self.exponent + size - i64::from(bits)).max(least);
        let kept = match u32::try_from(last - self.exponent) {
            Ok(dropped) => rounded(self.mantissa, dropped),
            Err(_) => return self.mantissa as f64 * power_of_two(self.exponent),
        };
        kept as f64 * power_of_two(last)
    }
}

/// A mantissa without its last bits, rounded to the even one of two.
fn rounded(mantissa: u64, dropped: u32) -> u64 {
    if dropped == 0 || dropped > u64::BITS {
        return if dropped == 0 { mantissa } else { 0 };
    }
    let wide = u128::from(mantissa);
    let (kept, rest, half) = (wide >> dropped, wide & ((1 << dropped) - 1), 1_u128 << (dropped - 1));
    let is_up = rest > half || rest == half && kept & 1 == 1;
    u64::try_from(kept).unwrap_or(u64::MAX) + u64::from(is_up)
}

/// A power of two: exact from -1074 to 1023, else zero or infinite.
fn power_of_two(exponent: i64) -> f64 {
    match exponent {
        ..-1074 => 0.0,
        -1074..-1022 => f64::from_bits(1 << (exponent + 1074)),
        -1022..1024 => f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => f64::INFINITY,
    }
}

/// A power behind `p`.
fn power_of(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let power = digits.parse().unwrap_or(MAX_POWER).min(MAX_POWER);
    Some(if text.starts_with('-') { -power } else { power })
}

#[cfg(test)]
mod tests {
    use super::HexFloat;

    fn double(text: &str) -> Option<f64> {
        HexFloat::parse(text).map(|number| number.nearest(53, -1074))
    }

    #[test]
    fn numbers_are_read_as_c_does() {
        let cases = [
            ("0x10", 16.0),
            ("0X1p3", 8.0),
            ("0x1.8", 1.5),
            ("0x.8P1", 1.0),
            ("0xfedcba9876543210fedcba", 3.0810952088880575e26),
            ("0x1p-1074", 5e-324),
            ("0x0.0000000001p-1034", 5e-324),
            ("0x1.8p-1075", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080000000000001p0", 1.0000000000000002),
            ("0x1.fffffffffffff7fp1023", f64::MAX),
            ("0x1.fffffffffffff8p1023", f64::INFINITY),
            ("0x1p99999999999999999999", f64::INFINITY),
            ("0x1p-99999999999999999999", 0.0),
            ("0x0p99999", 0.0),
        ];
        for (text, expected) in cases {
            assert_eq!(double(text), Some(expected), "{text}");
        }
        for text in ["0x", "0xg", "0x1p", "0x1p+", "0x.", "0x1.2.3", "10", "x1", "0x1p1.5", "0x-1"] {
            assert_eq!(double(text), None, "{text}");
        }
    }

    #[test]
    fn a_real_is_rounded_once() {
        let real = |text| HexFloat::parse(text).map(|number| number.nearest(24, -149));
        assert_eq!(real("0x1.0000010000000000001p0"), Some(f64::from(1.0000001_f32)));
        assert_eq!(real("0x1.000001p0"), Some(1.0));
        assert_eq!(real("0x1p-150"), Some(0.0));
    }
}
