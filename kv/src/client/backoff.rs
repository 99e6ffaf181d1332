//! Retry arithmetic: how long to wait before a request is sent again, and when to stop.
//!
//! Every failure that a retry may cure has a [`RetryClass`] with its own backoff curve: a leader that moved can be
//! asked at once, a store that cannot be reached should not. The curve is `base * 2^n`, capped. Its upper half is
//! random, so that clients that failed together do not retry together.
//!
//! Pure: the elapsed time and the random number are arguments.

use std::time::Duration;

/// Why a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// Another replica leads, and the response named it.
    Moved,
    /// The cached region was outdated.
    Stale,
    /// No replica is known to lead, or the leader cannot serve yet.
    NoLeader,
    /// The store was at one of its limits.
    Busy,
    /// The store was not reached, or refused the request unread. The request was not executed.
    Unreachable,
    /// No response came, or the server does not know the outcome. The request may have been executed.
    Lost,
    /// The server reported a failure of its own. Another replica may succeed.
    Failed,
    /// No store asked knows the region of a key.
    Unlocated,
}

/// The backoff curve of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Curve {
    /// The number of retries that do not wait.
    immediate: u32,
    /// The first wait, in milliseconds.
    base_ms: u64,
    /// The longest wait, in milliseconds.
    cap_ms: u64,
    /// The most retries of this class.
    max_retries: u32,
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

    /// The label of the class in metrics.
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

    /// The index of the class in [`RetryClass::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }

    fn curve(self) -> Curve {
        const UNLIMITED: u32 = u32::MAX;
        match self {
            RetryClass::Moved => Curve { immediate: 2, base_ms: 2, cap_ms: 200, max_retries: UNLIMITED },
            RetryClass::Stale => Curve { immediate: 2, base_ms: 2, cap_ms: 500, max_retries: UNLIMITED },
            RetryClass::NoLeader => Curve { immediate: 0, base_ms: 5, cap_ms: 300, max_retries: UNLIMITED },
            RetryClass::Busy => Curve { immediate: 0, base_ms: 10, cap_ms: 1_000, max_retries: UNLIMITED },
            RetryClass::Unreachable => Curve { immediate: 1, base_ms: 10, cap_ms: 500, max_retries: UNLIMITED },
            RetryClass::Lost => Curve { immediate: 1, base_ms: 10, cap_ms: 500, max_retries: UNLIMITED },
            // A store that stops or is poisoned loses its leaderships within seconds. Corrupt data stays corrupt, so
            // the retries are limited.
            RetryClass::Failed => Curve { immediate: 0, base_ms: 20, cap_ms: 1_000, max_retries: 12 },
            RetryClass::Unlocated => Curve { immediate: 0, base_ms: 5, cap_ms: 500, max_retries: UNLIMITED },
        }
    }
}

/// A random number in `[0, 1)`, drawn by the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter(f64);

impl Jitter {
    /// A jitter of `value`, clamped to `[0, 1]`; 0 if it is not finite.
    pub fn new(value: f64) -> Jitter {
        Jitter(if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 })
    }

    /// A wait between half of `full` and `full`.
    pub fn apply(self, full: Duration) -> Duration {
        full.mul_f64(0.5 + self.0 / 2.0)
    }
}

/// The retry state of one request: the number of failures of each class, and the deadline.
#[derive(Clone, Debug)]
pub struct Backoff {
    deadline: Duration,
    failures: [u32; RetryClass::ALL.len()],
}

impl Backoff {
    /// No failures yet; retries end once `deadline` has passed since the first failure.
    pub fn new(deadline: Duration) -> Backoff {
        Backoff { deadline, failures: [0; RetryClass::ALL.len()] }
    }

    /// Counts a failure of `class` at `elapsed` since the first failure. Returns the wait before the next attempt,
    /// which never exceeds the remaining time; `None` if the deadline has passed or the class has no retries left.
    pub fn next(&mut self, class: RetryClass, elapsed: Duration, jitter: Jitter) -> Option<Duration> {
        let left = self.deadline.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        let curve = class.curve();
        let failures = self.failures.get_mut(class.index())?;
        if *failures >= curve.max_retries {
            return None;
        }
        let nth = *failures;
        *failures = failures.saturating_add(1);
        Some(wait(curve, nth, jitter).min(left))
    }
}

/// The wait before retry `nth` of a class, counted from 0.
fn wait(curve: Curve, nth: u32, jitter: Jitter) -> Duration {
    let Some(doublings) = nth.checked_sub(curve.immediate) else { return Duration::ZERO };
    let full = if doublings >= 32 { curve.cap_ms } else { (curve.base_ms << doublings).min(curve.cap_ms) };
    jitter.apply(Duration::from_millis(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(20);

    #[test]
    fn waits_grow_to_the_cap_within_the_jitter() {
        for class in RetryClass::ALL {
            let curve = class.curve();
            let mut low = Backoff::new(DEADLINE);
            let mut high = Backoff::new(DEADLINE);
            let mut last = Duration::ZERO;
            for nth in 0..curve.max_retries.min(100) {
                let least = low.next(class, Duration::ZERO, Jitter::new(0.0)).expect("within the deadline");
                let most = high.next(class, Duration::ZERO, Jitter::new(1.0)).expect("within the deadline");
                assert_eq!(least * 2, most, "{class:?} attempt {nth}");
                assert!(most >= last && most <= Duration::from_millis(curve.cap_ms), "{class:?} attempt {nth}");
                assert_eq!(most.is_zero(), nth < curve.immediate, "{class:?} attempt {nth}");
                last = most;
            }
        }
    }

    #[test]
    fn waits_end_at_the_deadline_and_never_exceed_it() {
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
    fn server_failures_are_retried_a_limited_number_of_times() {
        let mut backoff = Backoff::new(DEADLINE);
        let granted =
            (0..100).filter(|_| backoff.next(RetryClass::Failed, Duration::ZERO, Jitter::new(0.5)).is_some()).count();
        assert_eq!(granted, 12);
        assert!(backoff.next(RetryClass::Lost, Duration::ZERO, Jitter::new(0.5)).is_some());
    }

    #[test]
    fn jitter_outside_its_range_is_clamped() {
        for value in [f64::NAN, f64::INFINITY, -3.0, 7.0] {
            let wait = Jitter::new(value).apply(Duration::from_millis(100));
            assert!(wait >= Duration::from_millis(50) && wait <= Duration::from_millis(100));
        }
    }
}
