//! How fast the log is read for damage that nobody has met yet: a pace in bytes per second, whatever else is going on.
//!
//! Pure: it is told the time, and says how much is due.

use crate::time::MonoTime;

/// No less is begun: each time costs a look at the index.
const LEAST: u64 = 256 << 10;
/// No more is read at once, however long nothing was: other background work waits for it.
const MOST: u64 = 4 << 20;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct ScrubPace {
    busy: bool,
    /// When the last part was begun; the first one counts from the first question.
    since: Option<MonoTime>,
}

impl ScrubPace {
    /// How many bytes are due at `now`, with so many each second; `None` while that is too little, or a part is being read.
    pub(super) fn due(&mut self, now: MonoTime, per_second: u64) -> Option<u64> {
        let since = *self.since.get_or_insert(now);
        let millis = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
        let due = per_second.saturating_mul(millis) / 1000;
        (!self.busy && per_second > 0 && due >= LEAST.min(per_second)).then_some(due.min(MOST))
    }

    /// A part is being read since `now`.
    pub(super) fn begin(&mut self, now: MonoTime) {
        (self.busy, self.since) = (true, Some(now));
    }

    /// It is read.
    pub(super) fn done(&mut self) {
        self.busy = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn so_much_is_due_as_the_pace_says_and_one_part_at_a_time() {
        let start = MonoTime::default();
        let at = |millis| start.plus(Duration::from_millis(millis));
        let mut pace = ScrubPace::default();
        assert_eq!(pace.due(at(0), 1 << 20), None);
        assert_eq!(pace.due(at(100), 1 << 20), None, "too little");
        assert_eq!(pace.due(at(500), 1 << 20), Some(512 << 10));
        pace.begin(at(500));
        assert_eq!(pace.due(at(5000), 1 << 20), None, "under way");
        pace.done();
        assert_eq!(pace.due(at(60_000), 1 << 20), Some(MOST), "what was missed is not made up for");
        assert_eq!(pace.due(at(60_000), 0), None, "none at all");
        assert_eq!(pace.due(at(60_000), 1000), Some(59_500), "a slow pace has small parts");
    }
}
