//! Monotonic time of the multi-Raft layer. The core gets it as an argument and never reads a clock.
//!
//! Leases, ticks and deadlines compare [`MonoTime`]s of one store only; times of two stores are not comparable. The
//! [`Clock`] is the edge: [`RealClock`] reads the operating system, a simulator returns its virtual time.
//!
//! **What leases assume.** A leader measures at most `max_lease` (800 ms by default) on its clock. A voter measures at
//! least the election timeout less a tick (900 ms) on its own. So the clock rates of two stores may differ by a ninth.
//! Readings of different stores are never compared. Three things distort clocks further than that, or stop them:
//!
//! - *Slewing.* A time daemon that corrects the wall clock also slews `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME`, by up to
//!   10 % if configured so (chrony's default is 8 %), possibly in opposite directions on two nodes.
//!   `CLOCK_MONOTONIC_RAW` is the plain oscillator, whose error is far below a thousandth.
//! - *Suspension.* `CLOCK_MONOTONIC_RAW` stops while a machine sleeps. A leader would wake up with its lease running,
//!   long after others have elected another leader. `CLOCK_BOOTTIME` goes on. Both slewed clocks are slewed alike, so
//!   their difference is the exact time suspended. [`RealClock`] adds it to the raw clock.
//! - *A hypervisor that pauses a guest* without notice. Most keep the guest's oscillator running, which is enough. A
//!   guest whose clocks all stopped (a restored memory image) cannot detect it; do not run a cluster on such guests.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since an arbitrary moment of this process. Never decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoTime(u64);

impl MonoTime {
    /// Time zero.
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

    /// Adds a duration; saturates.
    pub fn plus(self, by: Duration) -> MonoTime {
        MonoTime(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: MonoTime) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for MonoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// A source of time, used at the edges only.
pub trait Clock: Send + Sync + 'static {
    /// The current time. Never less than any earlier result, on any thread.
    fn now(&self) -> MonoTime;
}

/// Nanoseconds this machine was suspended since boot, as observed so far. Only increases.
static SUSPENDED_NANOS: AtomicU64 = AtomicU64::new(0);

/// `CLOCK_MONOTONIC_RAW` plus the time suspended (see the module documentation).
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    /// The first reading.
    origin: u64,
}

impl RealClock {
    /// A clock that starts now.
    pub fn new() -> RealClock {
        RealClock { origin: nanos_since_boot() }
    }
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> MonoTime {
        // An offset of one second keeps zero free for "never".
        MonoTime::from_millis(1_000).plus(Duration::from_nanos(nanos_since_boot().saturating_sub(self.origin)))
    }
}

/// Nanoseconds since boot, including suspension.
fn nanos_since_boot() -> u64 {
    let suspended = suspended_nanos();
    nanos(ClockId::MonotonicRaw) + suspended
}

/// Never an overestimate: the time between the two readings, however long, makes the difference smaller. So the largest
/// difference observed is valid.
fn suspended_nanos() -> u64 {
    let since_start = nanos(ClockId::Boottime);
    let seen = since_start.saturating_sub(nanos(ClockId::Monotonic));
    let known = SUSPENDED_NANOS.load(Ordering::SeqCst);
    if seen <= known {
        return known;
    }
    SUSPENDED_NANOS.fetch_max(seen, Ordering::SeqCst).max(seen)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_clock_never_goes_back() {
        let clock = RealClock::new();
        let last = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let seen = last.load(Ordering::SeqCst);
                        let now = clock.now().nanos();
                        assert!(now >= seen, "{now} after {seen}");
                        last.fetch_max(now, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(last.load(Ordering::SeqCst) >= MonoTime::from_millis(1_000).nanos());
    }

    /// Suspension counts: the clock is ahead of the raw one by the difference of the two slewed clocks.
    #[test]
    fn suspended_time_counts() {
        let since_start = nanos(ClockId::Boottime);
        let before = since_start.saturating_sub(nanos(ClockId::Monotonic));
        let raw = nanos(ClockId::MonotonicRaw);
        let now = nanos_since_boot();
        assert!(now >= raw + before, "{now} is before {raw} and {before}");
        // At most the difference, plus the time between the readings.
        assert!(now - raw - suspended_nanos() <= nanos(ClockId::MonotonicRaw) - raw);
    }
}
