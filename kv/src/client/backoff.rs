//! Retry arithmetic: how long to wait before a request is sent again, and when to give up.
//!
//! Every failure that a retry may mend has a [`RetryClass`]; each class has its own curve, because a leader that moved
//! is worth asking at once while a store that cannot be reached is not. The curve is `base * 2^n`, capped, with the
//! upper half of it random so that clients that failed together do not return together.
//!
//! Pure: the time that has passed and the random number are arguments.

use std::time::Duration;

/// Why a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// Another replica leads, and we were told which.
    Moved,
    /// Our picture of the region was outdated.
    Stale,
    /// No replica is known to lead, or the leader cannot serve yet.
    NoLeader,
    /// A bounded queue of the store was full.
    Busy,
    /// The store was not reached.
    Unreachable,
    /// The request may have been carried out, but no answer came.
    Lost,
    /// The server reported a failure of its own; another replica may do better.
    Failed,
    /// No store could say which region holds a key.
    Unlocated,
}

/// The curve of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Curve {
    /// Retries that are sent without waiting.
    free: u32,
    /// The first wait.
    base_ms: u64,
    /// The longest wait.
    cap_ms: u64,
    /// Most retries of this class.
    limit: u32,
}

impl RetryClass {
    /// All classes, in the order of their index.
    pub const ALL: [RetryClass; 8] = [
        RetryClass::Moved,
        RetryClass::Stale,
        RetryClass::NoLeader,
        RetryClass::Busy,
        RetryClass::Unreachable,
        RetryClass::Lost,
        RetryClass::Failed,
        RetryClass::Unlocated,
    ];

    /// The name under which metrics count it.
    pub fn name(self) -> &'static str {
        match self {
            RetryClass::Moved => "moved",
            RetryClass::Stale => "stale",
            RetryClass::NoLeader => "no_leader",
            RetryClass::Busy => "busy",
            RetryClass::Unreachable => "unreachable",
            RetryClass::Lost => "lost",
            RetryClass::Failed => "failed",
            RetryClass::Unlocated => "unlocated",
        }
    }

    /// Its place in [`RetryClass::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }

    fn curve(self) -> Curve {
        const UNLIMITED: u32 = u32::MAX;
        match self {
            RetryClass::Moved => Curve { free: 2, base_ms: 2, cap_ms: 200, limit: UNLIMITED },
            RetryClass::Stale => Curve { free: 2, base_ms: 2, cap_ms: 500, limit: UNLIMITED },
            RetryClass::NoLeader => Curve { free: 0, base_ms: 5, cap_ms: 300, limit: UNLIMITED },
            RetryClass::Busy => Curve { free: 0, base_ms: 10, cap_ms: 1_000, limit: UNLIMITED },
            RetryClass::Unreachable => Curve { free: 1, base_ms: 10, cap_ms: 500, limit: UNLIMITED },
            RetryClass::Lost => Curve { free: 1, base_ms: 10, cap_ms: 500, limit: UNLIMITED },
            // A store that stops or is poisoned loses its leaderships within seconds; damaged data stays damaged.
            RetryClass::Failed => Curve { free: 0, base_ms: 20, cap_ms: 1_000, limit: 12 },
            RetryClass::Unlocated => Curve { free: 0, base_ms: 5, cap_ms: 500, limit: UNLIMITED },
        }
    }
}

/// A random number in `[0, 1)`, drawn by the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter(f64);

impl Jitter {
    /// From a number; what lies outside `[0, 1]` is moved to its edge.
    pub fn new(value: f64) -> Jitter {
        Jitter(if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 })
    }

    /// Between the half and the whole of `full`.
    pub fn apply(self, full: Duration) -> Duration {
        full.mul_f64(0.5 + self.0 / 2.0)
    }
}

/// The retry state of one request: how often each class has struck, within one deadline.
#[derive(Clone, Debug)]
pub struct Backoff {
    limit: Duration,
    attempts: [u32; RetryClass::ALL.len()],
}

impl Backoff {
    /// Retries until `limit` has passed since the first failure.
    pub fn new(limit: Duration) -> Backoff {
        Backoff { limit, attempts: [0; RetryClass::ALL.len()] }
    }

    /// How long to wait before the next attempt, when `elapsed` has passed; `None` when there is to be none.
    pub fn next(&mut self, class: RetryClass, elapsed: Duration, jitter: Jitter) -> Option<Duration> {
        let left = self.limit.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        let curve = class.curve();
        let attempt = self.attempts.get_mut(class.index())?;
        if *attempt >= curve.limit {
            return None;
        }
        let nth = *attempt;
        *attempt = attempt.saturating_add(1);
        Some(wait(curve, nth, jitter).min(left))
    }

    /// How many retries there have been, of every class.
    pub fn retries(&self) -> u32 {
        self.attempts.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

fn wait(curve: Curve, nth: u32, jitter: Jitter) -> Duration {
    let Some(doublings) = nth.checked_sub(curve.free) else { return Duration::ZERO };
    let full = if doublings >= 32 { curve.cap_ms } else { (curve.base_ms << doublings).min(curve.cap_ms) };
    jitter.apply(Duration::from_millis(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(20);

    #[test]
    fn grows_to_the_cap_within_the_jitter() {
        for class in RetryClass::ALL {
            let curve = class.curve();
            let mut low = Backoff::new(DEADLINE);
            let mut high = Backoff::new(DEADLINE);
            let mut last = Duration::ZERO;
            for nth in 0..curve.limit.min(100) {
                let least = low.next(class, Duration::ZERO, Jitter::new(0.0)).expect("within the deadline");
                let most = high.next(class, Duration::ZERO, Jitter::new(1.0)).expect("within the deadline");
                assert_eq!(least * 2, most, "{class:?} attempt {nth}");
                assert!(most >= last && most <= Duration::from_millis(curve.cap_ms), "{class:?} attempt {nth}");
                assert_eq!(most.is_zero(), nth < curve.free, "{class:?} attempt {nth}");
                last = most;
            }
        }
    }

    #[test]
    fn ends_at_the_deadline_and_never_overshoots_it() {
        let mut backoff = Backoff::new(DEADLINE);
        for _ in 0..40 {
            backoff.next(RetryClass::Busy, Duration::ZERO, Jitter::new(1.0));
        }
        let near = DEADLINE - Duration::from_millis(3);
        assert_eq!(backoff.next(RetryClass::Busy, near, Jitter::new(1.0)), Some(Duration::from_millis(3)));
        assert_eq!(backoff.next(RetryClass::Busy, DEADLINE, Jitter::new(1.0)), None);
        assert_eq!(backoff.next(RetryClass::Moved, DEADLINE * 2, Jitter::new(1.0)), None);
    }

    #[test]
    fn server_failures_are_retried_a_few_times_only() {
        let mut backoff = Backoff::new(DEADLINE);
        let granted =
            (0..100).filter(|_| backoff.next(RetryClass::Failed, Duration::ZERO, Jitter::new(0.5)).is_some()).count();
        assert_eq!(granted, 12);
        assert!(backoff.next(RetryClass::Lost, Duration::ZERO, Jitter::new(0.5)).is_some());
    }

    #[test]
    fn bad_random_numbers_are_harmless() {
        for value in [f64::NAN, f64::INFINITY, -3.0, 7.0] {
            let wait = Jitter::new(value).apply(Duration::from_millis(100));
            assert!(wait >= Duration::from_millis(50) && wait <= Duration::from_millis(100));
        }
    }
}
