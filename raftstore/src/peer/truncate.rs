//! How far a replica may shorten its own log.
//!
//! The key-value store has no log of its own, so entries whose effects are not *flushed* must stay: they are what a restart replays. Beyond that,
//! entries are kept for followers: a leader keeps what a live follower still needs while that is within bounds (a
//! slower one gets a snapshot), and everybody keeps a tail, for the day they lead.

use crate::region::LogIndex;

/// What a replica knows when it decides.
#[derive(Clone, Debug)]
pub(crate) struct LogUse {
    /// The entry before the first one kept now.
    pub(crate) start: LogIndex,
    pub(crate) last: LogIndex,
    /// Last index whose effects a crash would not lose.
    pub(crate) flushed: LogIndex,
    /// On a leader: the lowest index that each live follower has. Empty elsewhere.
    pub(crate) followers: Vec<LogIndex>,
}

/// Bounds of what is kept for others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepBounds {
    /// Entries always kept at the end.
    pub(crate) tail: u64,
    /// Most entries kept for a follower that lags.
    pub(crate) lag: u64,
}

/// The last entry that may be dropped; `None` if nothing is to be.
pub(crate) fn truncation_bound(log: &LogUse, keep: KeepBounds) -> Option<LogIndex> {
    let last = log.last.get();
    let needed =
        log.followers.iter().map(|f| f.get()).filter(|matched| last.saturating_sub(*matched) <= keep.lag).min();
    let bound = log.flushed.get().min(last.saturating_sub(keep.tail)).min(needed.unwrap_or(u64::MAX));
    (bound > log.start.get()).then(|| LogIndex::new(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: KeepBounds = KeepBounds { tail: 10, lag: 50 };

    fn bound(flushed: u64, followers: &[u64]) -> Option<u64> {
        let followers = followers.iter().map(|f| LogIndex::new(*f)).collect();
        let log =
            LogUse { start: LogIndex::new(5), last: LogIndex::new(100), flushed: LogIndex::new(flushed), followers };
        truncation_bound(&log, KEEP).map(LogIndex::get)
    }

    #[test]
    fn nothing_unflushed_is_dropped() {
        assert_eq!(bound(40, &[]), Some(40));
        assert_eq!(bound(5, &[]), None);
        assert_eq!(bound(0, &[]), None);
    }

    #[test]
    fn a_tail_is_kept() {
        assert_eq!(bound(100, &[]), Some(90));
    }

    #[test]
    fn a_live_follower_within_bounds_holds_the_log() {
        assert_eq!(bound(100, &[70, 99]), Some(70));
        assert_eq!(bound(60, &[70, 99]), Some(60));
    }

    #[test]
    fn a_follower_too_far_behind_does_not() {
        assert_eq!(bound(100, &[49, 80]), Some(80));
        assert_eq!(bound(100, &[49]), Some(90));
    }
}
