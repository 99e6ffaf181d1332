//! The `Timestamp` newtype: 46 bits of physical milliseconds, 18 bits of counter.

use std::fmt;

/// A point in the cluster's history, issued by the oracle. Ordered; unique to its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Bits of the counter below the physical part.
    pub const COUNTER_BITS: u32 = 18;
    /// Before every issued timestamp.
    pub const ZERO: Timestamp = Timestamp(0);
    /// After every issued timestamp.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// From milliseconds since the Unix epoch and a counter below 2^18.
    pub const fn new(physical_ms: u64, counter: u32) -> Timestamp {
        Timestamp((physical_ms << Self::COUNTER_BITS) | counter as u64)
    }

    /// From its 64-bit form, as found in a record or a message.
    pub const fn from_raw(raw: u64) -> Timestamp {
        Timestamp(raw)
    }

    /// The 64-bit form.
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
