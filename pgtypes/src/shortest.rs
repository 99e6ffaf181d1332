//! The shortest digits of a float, as PostgreSQL chooses them.
//!
//! They are the fewest digits that are nearer to the float than to any other one: a number in the middle between two
//! floats does not count for either. Of two such numbers at the same distance the one with the even last digit is
//! taken. The standard library differs in both cases, so its digits are checked, in whole numbers.

use std::fmt::LowerExp;

/// A float as `mantissa * 2^exponent`, and what lies between it and its neighbours.
#[derive(Clone, Copy)]
struct Parts {
    mantissa: u64,
    exponent: i32,
    /// Whether the float below is at half the distance of the one above.
    is_power_of_two: bool,
}

/// Floats whose digits are found.
trait Shortest: LowerExp + Copy + PartialEq + std::str::FromStr {
    /// The most digits that are needed.
    const DIGITS: usize;

    /// Of a float that is positive or negative.
    fn parts(self) -> Parts;
}

fn parts(bits: u64, mantissa_bits: u32, bias: i32) -> Parts {
    let fraction = bits & ((1 << mantissa_bits) - 1);
    let exponent = i32::try_from(bits >> mantissa_bits).unwrap_or(0);
    let is_normal = exponent > 0;
    Parts {
        mantissa: if is_normal { fraction | (1 << mantissa_bits) } else { fraction },
        exponent: exponent.max(1) - bias,
        is_power_of_two: fraction == 0 && exponent > 1,
    }
}

impl Shortest for f64 {
    const DIGITS: usize = 17;

    fn parts(self) -> Parts {
        parts(self.abs().to_bits(), 52, 1075)
    }
}

impl Shortest for f32 {
    const DIGITS: usize = 9;

    fn parts(self) -> Parts {
        parts(self.abs().to_bits().into(), 23, 150)
    }
}

/// `mantissa * 2^exponent` without factors 2 in the mantissa.
fn odd(mantissa: u64, exponent: i32) -> (u128, i32) {
    let zeros = mantissa.trailing_zeros().min(63);
    ((mantissa >> zeros).into(), exponent + i32::try_from(zeros).unwrap_or(0))
}

/// Whether `mantissa * 2^exponent` equals `digits * 10^power`. None of them is 0.
fn is_equal((mantissa, exponent): (u64, i32), (digits, power): (u64, i32)) -> bool {
    let (mantissa, twos) = odd(mantissa, exponent);
    let (digits, digit_twos) = odd(digits, power);
    // 5^27 is the last power of 5 in 64 bits: beyond it one side is too large for the other one.
    let Some(fives) = Some(power.unsigned_abs()).filter(|power| *power <= 27).map(|power| 5_u128.pow(power)) else {
        return false;
    };
    let (left, right) = if power < 0 { (mantissa * fives, digits) } else { (mantissa, digits * fives) };
    twos == digit_twos && left == right
}

impl Parts {
    /// Whether a decimal number that is read as the float is in the middle between it and a neighbour. Such numbers are
    /// read as the float with the even mantissa.
    fn is_boundary(self, decimal: (u64, i32)) -> bool {
        let half = self.exponent - 1;
        self.mantissa.is_multiple_of(2)
            && (is_equal((2 * self.mantissa + 1, half), decimal)
                || is_equal((2 * self.mantissa - 1, half), decimal)
                || (self.is_power_of_two && is_equal((4 * self.mantissa - 1, half - 1), decimal)))
    }

    /// The other decimal number with as many digits, if it is at the same distance.
    fn twin(self, (digits, power): (u64, i32)) -> Option<u64> {
        let double = (self.mantissa, self.exponent + 1);
        if is_equal(double, (2 * digits + 1, power)) {
            return Some(digits + 1);
        }
        is_equal(double, (2 * digits - 1, power)).then(|| digits - 1)
    }
}

/// `1.25e-7` as 125 and -9. `None` for 0, infinities, NaN.
fn decimal(scientific: &str) -> Option<(u64, i32)> {
    let (mantissa, exponent) = scientific.trim_start_matches('-').split_once('e')?;
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits: u64 =
        mantissa.bytes().filter(u8::is_ascii_digit).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let power = exponent.parse::<i32>().ok()? - i32::try_from(fraction).ok()?;
    (digits > 0).then_some((digits, power))
}

fn shortest<F: Shortest>(value: F) -> String {
    let mut text = format!("{value:e}");
    let Some(mut found) = decimal(&text) else { return text };
    let parts = value.parts();
    let mut precision = 1;
    while parts.is_boundary(found) && precision < F::DIGITS {
        let longer = format!("{value:.precision$e}");
        precision += 1;
        if longer.parse().is_ok_and(|read: F| read == value)
            && let Some(decimal) = decimal(&longer)
        {
            (text, found) = (longer, decimal);
        }
    }
    if found.0.is_multiple_of(2) {
        return text;
    }
    match parts.twin(found) {
        Some(twin) if !twin.is_multiple_of(10) => {
            let sign = if text.starts_with('-') { "-" } else { "" };
            let even = rewritten(sign, twin, found.1);
            if even.parse().is_ok_and(|read: F| read == value) { even } else { text }
        }
        _ => text,
    }
}

/// Digits and a power as `{:e}` writes them.
fn rewritten(sign: &str, digits: u64, power: i32) -> String {
    let digits = digits.to_string();
    let (first, rest) = digits.split_at(1);
    let exponent = power + i32::try_from(rest.len()).unwrap_or(0);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}e{exponent}")
}

/// The digits of a `double precision` in the form of `{:e}`.
pub(crate) fn digits(value: f64) -> String {
    shortest(value)
}

/// The digits of a `real` in the form of `{:e}`.
pub(crate) fn digits_float4(value: f32) -> String {
    shortest(value)
}

#[cfg(test)]
#[path = "shortest_tests.rs"]
mod tests;
