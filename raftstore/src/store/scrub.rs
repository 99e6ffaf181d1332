//! The pace at which the log is scrubbed: bytes per second, independent of other load.
//!
//! Pure: the clock is an argument, the result is the number of bytes due.

use std::time::Duration;

use crate::time::MonoTime;

/// Least bytes of a chunk: each chunk is a background job.
const MIN_CHUNK: u64 = 256 << 10;
/// Most bytes of a chunk, however long the pause before it: other background jobs wait for it.
const MAX_CHUNK: u64 = 4 << 20;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct ScrubPace {
    /// The pace and the requested bytes of the chunk being read.
    in_progress: Option<(u64, u64)>,
    /// Start of the last chunk, moved later by the bytes read in excess. Before the first chunk: time of the first call
    /// of `due`.
    last_start: Option<MonoTime>,
}

impl ScrubPace {
    /// Bytes due at `now` at a pace of `per_second`. `None` while less than a chunk is due or a chunk is being read.
    pub(super) fn due(&mut self, now: MonoTime, per_second: u64) -> Option<u64> {
        let last_start = *self.last_start.get_or_insert(now);
        let millis = u64::try_from(now.since(last_start).as_millis()).unwrap_or(u64::MAX);
        let due = per_second.saturating_mul(millis) / 1000;
        (self.in_progress.is_none() && per_second > 0 && due >= MIN_CHUNK.min(per_second)).then_some(due.min(MAX_CHUNK))
    }

    /// Reading of a chunk of `bytes` starts at `now`.
    pub(super) fn begin(&mut self, now: MonoTime, per_second: u64, bytes: u64) {
        (self.in_progress, self.last_start) = (Some((per_second, bytes)), Some(now));
    }

    /// The chunk was read. `bytes` may exceed the request, because blocks and commit groups are read whole.
    pub(super) fn on_read(&mut self, bytes: u64) {
        let Some((per_second, asked)) = self.in_progress.take() else { return };
        let millis = bytes.saturating_sub(asked).saturating_mul(1000) / per_second.max(1);
        self.last_start = self.last_start.map(|last_start| last_start.plus(Duration::from_millis(millis)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_the_pace_one_at_a_time() {
        let start = MonoTime::default();
        let at = |millis| start.plus(Duration::from_millis(millis));
        let mut pace = ScrubPace::default();
        assert_eq!(pace.due(at(0), 1 << 20), None);
        assert_eq!(pace.due(at(100), 1 << 20), None, "too little");
        assert_eq!(pace.due(at(500), 1 << 20), Some(512 << 10));
        pace.begin(at(500), 1 << 20, 512 << 10);
        assert_eq!(pace.due(at(5000), 1 << 20), None, "a chunk is being read");
        pace.on_read(512 << 10);
        assert_eq!(pace.due(at(60_000), 1 << 20), Some(MAX_CHUNK), "missed time is skipped");
        assert_eq!(pace.due(at(60_000), 0), None, "scrubbing is off");
        assert_eq!(pace.due(at(60_000), 1000), Some(59_500), "a slow pace has small chunks");
    }

    #[test]
    fn excess_bytes_delay_the_next_chunk() {
        let at = |millis| MonoTime::default().plus(Duration::from_millis(millis));
        let mut pace = ScrubPace::default();
        assert_eq!(pace.due(at(0), 1000), None);
        pace.begin(at(1000), 1000, 1000);
        pace.on_read(64_000);
        assert_eq!(pace.due(at(64_900), 1000), None);
        assert_eq!(pace.due(at(65_000), 1000), Some(1000));
        pace.begin(at(65_000), 1000, 1000);
        pace.on_read(10);
        assert_eq!(pace.due(at(66_000), 1000), Some(1000), "skipped bytes stay skipped");
    }
}
