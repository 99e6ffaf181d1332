//! Monotonic time as the multi-Raft layer sees it: handed in, never read inside.
//!
//! Leases, ticks and deadlines compare [`MonoTime`]s of one store only; they mean nothing between stores. The [`Clock`] is the
//! edge: the real one reads the operating system, a simulator hands out its virtual time.
//!
//! **What leases assume of it.** A leader counts a span on its clock (at most `max_lease`, 800 ms by default), a voter a longer one on its own (at
//! least the election timeout less a tick, 900 ms). So the clocks of two stores may run at rates that differ by a ninth, and no reading of
//! one is ever compared with one of the other. Three things bend clocks further than that, or stop them:
//!
//! - *Slewing.* A time daemon that corrects the wall clock also bends `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME`, by up to 10 % if it is told to hurry
//!   (chrony's default is 8 %), and may bend two nodes' clocks in opposite directions. `CLOCK_MONOTONIC_RAW` is the bare oscillator, which errs by far
//!   less than a thousandth.
//! - *Suspension.* While a machine sleeps the raw clock stands still. A leader that suspended would wake up with its lease running, long after others have
//!   elected another. `CLOCK_BOOTTIME` goes on. The two clocks that are bent are bent alike, so their difference is the time suspended, and exact.
//!   [`RealClock`] adds it to the raw clock.
//! - *A hypervisor that stops a guest* without telling it. Most keep the guest's oscillator running, which is all that is needed; a guest whose
//!   clocks all stood still (a snapshot of its memory brought back) cannot know, and must not be used for a running cluster.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

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

/// How long this machine has suspended since it was started, as far as any clock has seen: only ever raised.
static SUSPENDED_NANOS: AtomicU64 = AtomicU64::new(0);

/// The operating system's raw monotonic clock and the time suspended (see the module documentation).
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    /// The first reading.
    origin: u64,
}

impl RealClock {
    /// A clock whose first moment is now.
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
        // A second of head start keeps zero for "never".
        MonoTime::from_millis(1_000).plus(Duration::from_nanos(nanos_since_boot().saturating_sub(self.origin)))
    }
}

/// Nanoseconds since this machine was started.
fn nanos_since_boot() -> u64 {
    let suspended = suspended_nanos();
    nanos(ClockId::MonotonicRaw) + suspended
}

/// Never too much: what passes between the two readings, however long the thread is held up there, makes the difference smaller. What is seen
/// to be larger once was so.
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
    fn the_real_clock_never_goes_back() {
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

    /// Sleep counts: the clock is ahead of the raw one by what the two clocks that are bent alike differ by.
    #[test]
    fn time_slept_counts() {
        let since_start = nanos(ClockId::Boottime);
        let before = since_start.saturating_sub(nanos(ClockId::Monotonic));
        let raw = nanos(ClockId::MonotonicRaw);
        let now = nanos_since_boot();
        assert!(now >= raw + before, "{now} is before {raw} and {before}");
        // Not more than the difference and the time between the readings.
        assert!(now - raw - suspended_nanos() <= nanos(ClockId::MonotonicRaw) - raw);
    }
}
