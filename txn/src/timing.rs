//! Time in the coordinator: the stopwatch, which is the only clock, the oracle's time as a transaction knows it, and
//! the pauses before retries, which are pure.
//!
//! Locks expire by the physical part of timestamps, and that is not the time of a stopwatch: a handover of the oracle
//! moves it forward by up to three seconds, and it then runs at half speed. So the life of a lock is computed from the
//! newest timestamp, and a stopwatch measures only the time since that one was received.
//!
//! A wait for a lock is short at first, because most commits take a few milliseconds. It never exceeds the time that
//! the lock can live without a heartbeat, so that the locks of a dead coordinator are found as soon as they expire.

use std::time::Duration;

use kv::client::Jitter;
use parking_lot::Mutex;
use tokio::time::Instant;
use tso::Timestamp;

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

    /// The time since the start, in milliseconds.
    pub(crate) fn elapsed_ms(self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The oracle's time since a transaction's start_ts, as far as the transaction knows.
#[derive(Debug)]
pub(crate) struct OracleAge {
    start_ts: Timestamp,
    /// The timestamp that was received last, and the time since.
    last: Mutex<(Timestamp, Stopwatch)>,
}

impl OracleAge {
    /// `age` runs since `start_ts` was received.
    pub(crate) fn new(start_ts: Timestamp, age: Stopwatch) -> OracleAge {
        OracleAge { start_ts, last: Mutex::new((start_ts, age)) }
    }

    /// Records a timestamp that was just received.
    pub(crate) fn observe(&self, timestamp: Timestamp) {
        *self.last.lock() = (timestamp, Stopwatch::start());
    }

    /// The oracle's milliseconds since start_ts. `newest` is the newest timestamp that this node has received.
    pub(crate) fn elapsed_ms(&self, newest: Timestamp) -> u64 {
        let (last, since) = *self.last.lock();
        self.between_ms(last).saturating_add(since.elapsed_ms()).max(self.between_ms(newest))
    }

    /// Whether the oracle's time may have moved unseen: this node received no timestamp for longer than `limit`.
    /// `newest` is the newest that it has received.
    pub(crate) fn is_stale(&self, newest: Timestamp, limit: Duration) -> bool {
        let (last, since) = *self.last.lock();
        let seen_ms = newest.physical_ms().saturating_sub(last.physical_ms());
        since.elapsed() > limit + Duration::from_millis(seen_ms)
    }

    fn between_ms(&self, timestamp: Timestamp) -> u64 {
        timestamp.physical_ms().saturating_sub(self.start_ts.physical_ms())
    }
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
