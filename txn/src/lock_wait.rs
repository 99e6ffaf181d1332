//! How long to wait for the lock of a living transaction before looking again.
//!
//! Short at first, because most commits take a few milliseconds; never longer than the lock can live without a
//! heartbeat, so that a dead coordinator's locks are found as soon as they expire. Pure.

use std::time::Duration;

use kv::client::Jitter;

const FIRST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(100);
/// Past the end of a lock's life, by when it counts as expired.
const PAST: Duration = Duration::from_millis(1);

/// The wait before attempt `attempt` (from 1; none at 0), when the lock that lives longest has `remaining` to live, if
/// that is known.
pub(crate) fn lock_wait(attempt: u32, remaining: Option<Duration>, jitter: Jitter) -> Duration {
    let Some(doublings) = attempt.checked_sub(1) else { return Duration::ZERO };
    let wait = jitter.apply(FIRST.saturating_mul(1 << doublings.min(10)).min(LONGEST));
    remaining.map_or(wait, |remaining| wait.min(remaining + PAST))
}

/// The wait before attempt `attempt` (from 1; none at 0) of a transaction that is run again after a conflict.
pub(crate) fn conflict_wait(attempt: u32, jitter: Jitter) -> Duration {
    const LONGEST: Duration = Duration::from_millis(400);
    let Some(doublings) = attempt.checked_sub(1) else { return Duration::ZERO };
    jitter.apply(FIRST.saturating_mul(1 << doublings.min(10)).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_are_capped_and_end_with_the_lock() {
        let most = |attempt, remaining| lock_wait(attempt, remaining, Jitter::new(1.0));
        assert_eq!(most(0, None), Duration::ZERO);
        assert_eq!(most(1, None), FIRST);
        assert_eq!(most(3, None), FIRST * 4);
        assert_eq!(most(u32::MAX, None), LONGEST);
        assert_eq!(most(20, Some(Duration::from_millis(7))), Duration::from_millis(8));
        assert_eq!(lock_wait(3, None, Jitter::new(0.0)), FIRST * 2);
        assert_eq!(conflict_wait(0, Jitter::new(1.0)), Duration::ZERO);
        assert_eq!(conflict_wait(99, Jitter::new(1.0)), Duration::from_millis(400));
    }
}
