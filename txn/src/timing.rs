//! Time in the coordinator: the stopwatch, which is the only clock; the ttl of locks and the pauses before retries,
//! which are pure.
//!
//! Locks expire by the physical part of timestamps, and that is not the time of a stopwatch: a handover of the oracle
//! moves it forward by up to a second, and between handovers it runs at half to one and a half times the speed. So the
//! ttl of a lock is computed from the newest timestamp and the most by which the oracle's time can have advanced since,
//! without a handover.
//!
//! A wait for a lock is short at first, because most commits take a few milliseconds. It never exceeds the time that
//! the lock can live without a heartbeat, so that the locks of a dead coordinator are found as soon as they expire.

use std::time::Duration;

use kv::client::Jitter;
use tokio::time::Instant;
use tso::oracle::advance_max;
use tso::{NewestTimestamp, Timestamp};

/// The pause before the second attempt; it doubles with each further attempt.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause before a lock is checked again.
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(100);
/// The longest pause before a transaction is rerun.
const RERUN_PAUSE_MAX: Duration = Duration::from_millis(400);
/// A lock is expired this long after the end of its life.
const EXPIRY_MARGIN: Duration = Duration::from_millis(1);

/// A fixed moment; measures the monotonic time since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at the current moment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge where the coordinator reads the clock; what decides takes durations"
    )]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// The time since the start.
    #[expect(clippy::disallowed_methods, reason = "the same edge")]
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The ttl, in milliseconds from the physical part of `start_ts`, of a lock that lives for `lock_ttl` from now on, by
/// the oracle's time. `newest` is what this node knows of that time.
pub(crate) fn lock_ttl_ms(start_ts: Timestamp, newest: NewestTimestamp, lock_ttl: Duration) -> u64 {
    let seen_ms = newest.timestamp.physical_ms().saturating_sub(start_ts.physical_ms());
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    seen_ms.saturating_add(ms(advance_max(newest.age))).saturating_add(ms(lock_ttl))
}

/// The pause before attempt `attempt` (from 1; none at 0) on a locked key. `remaining` is how long the last of the
/// locks can live without a heartbeat, if known.
pub(crate) fn lock_pause(attempt: u32, remaining: Option<Duration>, jitter: Jitter) -> Duration {
    let pause = backoff(attempt, LOCK_PAUSE_MAX, jitter);
    remaining.map_or(pause, |remaining| pause.min(remaining + EXPIRY_MARGIN))
}

/// The pause before attempt `attempt` (from 1; none at 0) of a transaction that is rerun after a conflict.
pub(crate) fn rerun_pause(attempt: u32, jitter: Jitter) -> Duration {
    backoff(attempt, RERUN_PAUSE_MAX, jitter)
}

fn backoff(attempt: u32, longest: Duration, jitter: Jitter) -> Duration {
    let Some(doublings) = attempt.checked_sub(1) else { return Duration::ZERO };
    jitter.apply(PAUSE_MIN.saturating_mul(1 << doublings.min(10)).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_counts_the_time_of_the_oracle() {
        let (start_ts, lock_ttl) = (Timestamp::new(1_000, 7), Duration::from_secs(3));
        let ttl_ms = |physical_ms, age_ms| {
            let (timestamp, age) = (Timestamp::new(physical_ms, 0), Duration::from_millis(age_ms));
            lock_ttl_ms(start_ts, NewestTimestamp { timestamp, age }, lock_ttl)
        };
        assert_eq!(ttl_ms(1_000, 0), 3_000);
        // Handovers moved the oracle by two seconds; the node saw that 300 ms ago. Since then its time may have run at
        // one and a half times the speed.
        assert_eq!(ttl_ms(3_000, 300), 5_450);
        let unknown = NewestTimestamp { timestamp: Timestamp::ZERO, age: Duration::MAX };
        assert_eq!(lock_ttl_ms(start_ts, unknown, lock_ttl), u64::MAX);
    }

    #[test]
    fn pauses_grow_are_capped_and_end_with_the_lock() {
        let longest = |attempt, remaining| lock_pause(attempt, remaining, Jitter::new(1.0));
        assert_eq!(longest(0, None), Duration::ZERO);
        assert_eq!(longest(1, None), PAUSE_MIN);
        assert_eq!(longest(3, None), PAUSE_MIN * 4);
        assert_eq!(longest(u32::MAX, None), LOCK_PAUSE_MAX);
        assert_eq!(longest(20, Some(Duration::from_millis(7))), Duration::from_millis(8));
        assert_eq!(lock_pause(3, None, Jitter::new(0.0)), PAUSE_MIN * 2);
        assert_eq!(rerun_pause(0, Jitter::new(1.0)), Duration::ZERO);
        assert_eq!(rerun_pause(99, Jitter::new(1.0)), Duration::from_millis(400));
    }
}
