//! [`Timestamp`]: 46 bits of physical milliseconds, 18 bits of counter. [`TsRange`]: consecutive timestamps.

use std::fmt;
use std::str::FromStr;

/// The most timestamps that one request may ask for.
pub const MAX_COUNT: u32 = 1 << 17;

/// A point in the cluster's history, issued by the oracle. Ordered; unique to its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Bits of the counter below the physical part.
    pub const COUNTER_BITS: u32 = 18;
    /// Below every issued timestamp.
    pub const ZERO: Timestamp = Timestamp(0);
    /// Above every issued timestamp.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// A timestamp of `physical_ms` milliseconds since the Unix epoch and a counter below 2^18.
    pub const fn new(physical_ms: u64, counter: u32) -> Timestamp {
        Timestamp((physical_ms << Self::COUNTER_BITS) | counter as u64)
    }

    /// Decodes the 64-bit form used in records and messages.
    pub const fn from_raw(raw: u64) -> Timestamp {
        Timestamp(raw)
    }

    /// The 64-bit form used in records and messages.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Milliseconds since the Unix epoch.
    pub const fn physical_ms(self) -> u64 {
        self.0 >> Self::COUNTER_BITS
    }

    /// The counter within the millisecond.
    pub const fn counter(self) -> u32 {
        (self.0 & ((1 << Self::COUNTER_BITS) - 1)) as u32
    }

    /// The next timestamp; saturates at `MAX`.
    pub const fn next(self) -> Timestamp {
        Timestamp(self.0.saturating_add(1))
    }

    /// The previous timestamp; saturates at `ZERO`.
    pub const fn prev(self) -> Timestamp {
        Timestamp(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.physical_ms(), self.counter())
    }
}

/// A text that is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a timestamp: milliseconds and a counter, such as 1700000000000.7")]
pub struct MalformedTimestamp;

/// The form that `Display` writes.
impl FromStr for Timestamp {
    type Err = MalformedTimestamp;

    fn from_str(text: &str) -> Result<Timestamp, MalformedTimestamp> {
        let (ms, counter) = text.split_once('.').ok_or(MalformedTimestamp)?;
        let (ms, counter): (u64, u32) =
            (ms.parse().map_err(|_| MalformedTimestamp)?, counter.parse().map_err(|_| MalformedTimestamp)?);
        let timestamp = Timestamp::new(ms, counter);
        if (timestamp.physical_ms(), timestamp.counter()) != (ms, counter) {
            return Err(MalformedTimestamp);
        }
        Ok(timestamp)
    }
}

/// `count` consecutive timestamps that end with `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsRange {
    /// The largest timestamp of the range.
    pub last: Timestamp,
    /// The number of timestamps, 1 to [`MAX_COUNT`].
    pub count: u32,
}

impl TsRange {
    /// The smallest timestamp of the range.
    pub fn first(&self) -> Timestamp {
        Timestamp::from_raw(self.last.raw().saturating_sub(u64::from(self.count).saturating_sub(1)))
    }

    /// The range without its smallest timestamp; `None` if it has no other.
    pub fn rest(&self) -> Option<TsRange> {
        (self.count > 1).then(|| TsRange { last: self.last, count: self.count - 1 })
    }

    /// Iterates over the range in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Timestamp> + use<> {
        (self.first().raw()..=self.last.raw()).map(Timestamp::from_raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_read_as_it_is_written() {
        for timestamp in [Timestamp::ZERO, Timestamp::new(1_700_000_000_000, 7), Timestamp::MAX] {
            assert_eq!(timestamp.to_string().parse(), Ok(timestamp));
        }
        for bad in ["", "1", "1.", ".1", "-1.0", "1.262144", "70368744177664.0", "1.2.3"] {
            assert_eq!(bad.parse::<Timestamp>(), Err(MalformedTimestamp), "{bad}");
        }
    }

    #[test]
    fn a_range_carries_the_counter_over_into_the_milliseconds() {
        let range = TsRange { last: Timestamp::new(5, 1), count: 3 };
        assert_eq!(range.first(), Timestamp::new(4, (1 << 18) - 1));
        assert_eq!(range.iter().last(), Some(range.last));
        assert_eq!(range.iter().count(), 3);
    }
}
