//! Binary wire forms and keys.
//!
//! Keys have a fixed length, so no key is a prefix of another, and their bytes sort as the values do. The key of an
//! interval has its length only: it decodes to an equal interval with as many months as fit. To keep the parts, store
//! [`Interval::to_wire`]. The keys of all other types decode to the value that was encoded.

use super::fault::{self, overflow};
use super::units::{DAY, END_DATE, FIRST_DATE, SECOND};
use super::value::{Date, Interval, Time, TimeTz, Timestamp, TimestampTz, finite, is_finite};
use crate::error::ValueError;
use crate::sqlstate::SqlState;

/// The greatest offset of a zone, in seconds.
const MAX_OFFSET: i32 = 16 * 3600 - 1;

/// Bytes of the key of an interval.
pub const INTERVAL_KEY: usize = 12;

/// Exactly `N` bytes. Fewer are 08P01, more are 22P03.
fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes.try_into().map_err(|_| {
        if bytes.len() < N {
            ValueError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
        } else {
            ValueError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
        }
    })
}

/// Two parts of a slice of known length.
fn split<const A: usize, const B: usize>(bytes: &[u8]) -> Option<([u8; A], [u8; B])> {
    let (a, b) = bytes.split_at_checked(A)?;
    Some((a.try_into().ok()?, b.try_into().ok()?))
}

fn flip32(value: i32) -> u32 {
    value.cast_unsigned() ^ 1 << 31
}

fn flip64(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

fn unflip64(value: u64) -> i64 {
    (value ^ 1 << 63).cast_signed()
}

fn unflip32(value: u32) -> i32 {
    (value ^ 1 << 31).cast_signed()
}

impl Date {
    /// The binary wire form.
    pub fn to_wire(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// Reads the binary wire form. 22008 for a date out of range.
    pub fn from_wire(bytes: &[u8]) -> Result<Date, ValueError> {
        let date = Date(i32::from_be_bytes(exactly(bytes)?));
        let fits = !date.is_finite() || (FIRST_DATE..END_DATE).contains(&date.days());
        if fits { Ok(date) } else { Err(fault::date_range()) }
    }

    /// The key.
    pub fn to_key(self) -> [u8; 4] {
        flip32(self.0).to_be_bytes()
    }

    /// The value of a key.
    pub fn from_key(key: [u8; 4]) -> Date {
        Date(unflip32(u32::from_be_bytes(key)))
    }
}

impl Time {
    /// The binary wire form.
    pub fn to_wire(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Reads the binary wire form. 22008 for a time out of the day.
    pub fn from_wire(bytes: &[u8]) -> Result<Time, ValueError> {
        let micros = i64::from_be_bytes(exactly(bytes)?);
        if (0..=DAY).contains(&micros) { Ok(Time(micros)) } else { Err(overflow("time out of range".to_owned())) }
    }

    /// The key.
    pub fn to_key(self) -> [u8; 8] {
        flip64(self.0).to_be_bytes()
    }

    /// The value of a key.
    pub fn from_key(key: [u8; 8]) -> Time {
        Time(unflip64(u64::from_be_bytes(key)))
    }
}

impl TimeTz {
    /// The binary wire form.
    pub fn to_wire(self) -> [u8; 12] {
        join(self.micros.to_be_bytes(), self.offset.wrapping_neg().to_be_bytes())
    }

    /// Reads the binary wire form. 22008 for a time out of the day, 22009 for a zone out of range.
    pub fn from_wire(bytes: &[u8]) -> Result<TimeTz, ValueError> {
        let bytes: [u8; 12] = exactly(bytes)?;
        let (micros, west) = split::<8, 4>(&bytes).unwrap_or_default();
        let Time(micros) = Time::from_wire(&micros)?;
        let west = i32::from_be_bytes(west);
        if !(-MAX_OFFSET..=MAX_OFFSET).contains(&west) {
            let message = "time zone displacement out of range";
            return Err(ValueError::new(SqlState::INVALID_TIME_ZONE_DISPLACEMENT, message));
        }
        Ok(TimeTz { micros, offset: -west })
    }

    /// The key.
    pub fn to_key(self) -> [u8; 12] {
        join(flip64(self.utc()).to_be_bytes(), flip32(self.offset.wrapping_neg()).to_be_bytes())
    }

    /// The value of a key.
    pub fn from_key(key: [u8; 12]) -> TimeTz {
        let (utc, west) = split::<8, 4>(&key).unwrap_or_default();
        let offset = unflip32(u32::from_be_bytes(west)).wrapping_neg();
        let micros = unflip64(u64::from_be_bytes(utc)).wrapping_add(i64::from(offset) * SECOND);
        TimeTz { micros, offset }
    }
}

fn join(eight: [u8; 8], four: [u8; 4]) -> [u8; 12] {
    let mut out = [0; 12];
    for (to, from) in out.iter_mut().zip(eight.into_iter().chain(four)) {
        *to = from;
    }
    out
}

impl Timestamp {
    /// The binary wire form.
    pub fn to_wire(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Reads the binary wire form. 22008 for a timestamp out of range.
    pub fn from_wire(bytes: &[u8]) -> Result<Timestamp, ValueError> {
        timestamp_from_wire(bytes).map(Timestamp)
    }

    /// The key.
    pub fn to_key(self) -> [u8; 8] {
        flip64(self.0).to_be_bytes()
    }

    /// The value of a key.
    pub fn from_key(key: [u8; 8]) -> Timestamp {
        Timestamp(unflip64(u64::from_be_bytes(key)))
    }
}

impl TimestampTz {
    /// The binary wire form.
    pub fn to_wire(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Reads the binary wire form. 22008 for a timestamp out of range.
    pub fn from_wire(bytes: &[u8]) -> Result<TimestampTz, ValueError> {
        timestamp_from_wire(bytes).map(TimestampTz)
    }

    /// The key.
    pub fn to_key(self) -> [u8; 8] {
        flip64(self.0).to_be_bytes()
    }

    /// The value of a key.
    pub fn from_key(key: [u8; 8]) -> TimestampTz {
        TimestampTz(unflip64(u64::from_be_bytes(key)))
    }
}

fn timestamp_from_wire(bytes: &[u8]) -> Result<i64, ValueError> {
    let micros = i64::from_be_bytes(exactly(bytes)?);
    if is_finite(micros) { finite(Some(micros)).ok_or_else(fault::timestamp_range) } else { Ok(micros) }
}

impl Interval {
    /// The binary wire form, which keeps the parts.
    pub fn to_wire(self) -> [u8; 16] {
        let mut out = [0; 16];
        let parts = join(self.micros.to_be_bytes(), self.days.to_be_bytes());
        for (to, from) in out.iter_mut().zip(parts.into_iter().chain(self.months.to_be_bytes())) {
            *to = from;
        }
        out
    }

    /// Reads the binary wire form. All values are intervals.
    pub fn from_wire(bytes: &[u8]) -> Result<Interval, ValueError> {
        let bytes: [u8; 16] = exactly(bytes)?;
        let (micros, rest) = split::<8, 8>(&bytes).unwrap_or_default();
        let (days, months) = split::<4, 4>(&rest).unwrap_or_default();
        let (months, days) = (i32::from_be_bytes(months), i32::from_be_bytes(days));
        Ok(Interval { months, days, micros: i64::from_be_bytes(micros) })
    }

    /// The key: the same for equal intervals.
    pub fn to_key(self) -> [u8; INTERVAL_KEY] {
        // Below 2^73 microseconds, so the high bytes repeat the sign.
        let span = self.span();
        let high = i32::try_from(span >> 64).unwrap_or(0);
        let low = span.cast_unsigned() & u128::from(u64::MAX);
        let low = u64::try_from(low).unwrap_or(0).to_be_bytes();
        let mut out = [0; INTERVAL_KEY];
        for (to, from) in out.iter_mut().zip(flip32(high).to_be_bytes().into_iter().chain(low)) {
            *to = from;
        }
        out
    }

    /// An interval that equals the one of the key: as many months of 30 days as fit, then days, then microseconds.
    pub fn from_key(key: [u8; INTERVAL_KEY]) -> Interval {
        let (high, low) = split::<4, 8>(&key).unwrap_or_default();
        let high = i128::from(unflip32(u32::from_be_bytes(high)));
        let span = high << 64 | i128::from(u64::from_be_bytes(low));
        let month = i128::from(DAY) * 30;
        let bounded = |value: i128| value.clamp(i128::from(i32::MIN), i128::from(i32::MAX));
        let months = bounded(span / month);
        let rest = span - months * month;
        let days = bounded(rest / i128::from(DAY));
        let micros = rest - days * i128::from(DAY);
        let small = |value: i128| i32::try_from(value).unwrap_or(0);
        Interval { months: small(months), days: small(days), micros: i64::try_from(micros).unwrap_or(0) }
    }
}
