//! How fast the log is read for damage that nobody has met yet: a pace in bytes per second, whatever else is going on.
//!
//! Pure: it is told the time, and says how much is due.

use std::time::Duration;

use crate::time::MonoTime;

/// No less is begun: each part is a job of its own.
const MIN_CHUNK: u64 = 256 << 10;
/// No more is read at once, however long nothing was: other background work waits for it.
const MAX_CHUNK: u64 = 4 << 20;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct ScrubPace {
    /// The part that is being read: its pace, and how many bytes were asked for.
    in_progress: Option<(u64, u64)>,
    /// When the last part was begun, and later by what it took beyond what was due; the first one counts from the first question.
    last_start: Option<MonoTime>,
}

impl ScrubPace {
    /// How many bytes are due at `now`, with so many each second; `None` while that is too little, or a part is being read.
    pub(super) fn due(&mut self, now: MonoTime, per_second: u64) -> Option<u64> {
        let last_start = *self.last_start.get_or_insert(now);
        let millis = u64::try_from(now.since(last_start).as_millis()).unwrap_or(u64::MAX);
        let due = per_second.saturating_mul(millis) / 1000;
        (self.in_progress.is_none() && per_second > 0 && due >= MIN_CHUNK.min(per_second)).then_some(due.min(MAX_CHUNK))
    }

    /// A part of `bytes` is being read last_start `now`.
    pub(super) fn begin(&mut self, now: MonoTime, per_second: u64, bytes: u64) {
        (self.in_progress, self.last_start) = (Some((per_second, bytes)), Some(now));
    }

    /// It is read, and had so many bytes: a block or a commit group is read as a whole.
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
    fn so_much_is_due_as_the_pace_says_and_one_part_at_a_time() {
        let start = MonoTime::default();
        let at = |millis| start.plus(Duration::from_millis(millis));
        let mut pace = ScrubPace::default();
        assert_eq!(pace.due(at(0), 1 << 20), None);
        assert_eq!(pace.due(at(100), 1 << 20), None, "too little");
        assert_eq!(pace.due(at(500), 1 << 20), Some(512 << 10));
        pace.begin(at(500), 1 << 20, 512 << 10);
        assert_eq!(pace.due(at(5000), 1 << 20), None, "under way");
        pace.on_read(512 << 10);
        assert_eq!(pace.due(at(60_000), 1 << 20), Some(MAX_CHUNK), "what was missed is not made up for");
        assert_eq!(pace.due(at(60_000), 0), None, "none at all");
        assert_eq!(pace.due(at(60_000), 1000), Some(59_500), "a slow pace has small parts");
    }

    #[test]
    fn what_a_part_took_beyond_what_was_due_is_waited_for() {
        let at = |millis| MonoTime::default().plus(Duration::from_millis(millis));
        let mut pace = ScrubPace::default();
        assert_eq!(pace.due(at(0), 1000), None);
        pace.begin(at(1000), 1000, 1000);
        pace.on_read(64_000);
        assert_eq!(pace.due(at(64_900), 1000), None);
        assert_eq!(pace.due(at(65_000), 1000), Some(1000));
        pace.begin(at(65_000), 1000, 1000);
        pace.on_read(10);
        assert_eq!(pace.due(at(66_000), 1000), Some(1000), "what was left out is not made up for");
    }
}
