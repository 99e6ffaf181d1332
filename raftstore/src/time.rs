//! Monotonic time as the multi-Raft layer sees it: handed in, never read inside.
//!
//! Leases, ticks and deadlines compare [`MonoTime`]s of one store only; they mean nothing between stores. The [`Clock`] is the
//! edge: the real one reads the operating system's raw monotonic clock, a simulator hands out its virtual time.

use std::fmt;
use std::time::Duration;

/// Nanoseconds since an arbitrary moment of this process; never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoTime(u64);

impl MonoTime {
    /// The arbitrary first moment.
    pub const ZERO: MonoTime = MonoTime(0);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: u64) -> MonoTime {
        MonoTime(nanos)
    }

    /// From milliseconds; saturates.
    pub const fn from_millis(millis: u64) -> MonoTime {
        MonoTime(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// This much later; saturates.
    pub fn plus(self, by: Duration) -> MonoTime {
        MonoTime(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub fn since(self, earlier: MonoTime) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for MonoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// Where `now` comes from, at the edges only.
pub trait Clock: Send + Sync + 'static {
    /// The present moment. Never earlier than what it returned before, to any thread.
    fn now(&self) -> MonoTime;
}

/// The operating system's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    origin: std::time::Instant,
}

impl RealClock {
    /// A clock whose first moment is now.
    #[expect(clippy::disallowed_methods, reason = "this is the edge where the clock is read")]
    pub fn new() -> RealClock {
        RealClock { origin: std::time::Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the edge where the clock is read")]
    fn now(&self) -> MonoTime {
        // A second of head start keeps zero for "never".
        MonoTime::from_millis(1_000).plus(std::time::Instant::now().duration_since(self.origin))
    }
}
