//! Decides how far a replica may truncate its own log.
//!
//! The key-value store has no write-ahead log, so entries whose effects are not *flushed* must stay: a restart replays
//! them. Other entries are kept for followers. A leader keeps what a live follower still needs, up to a limit; a
//! follower further behind gets a snapshot. Every replica keeps a tail in case it becomes leader. If the log engine
//! reports that old entries of the region pin files with little live data, only entries needed for a restart are kept.
//!
//! Snapshots hold the log regardless of those limits and reports, because a snapshot without the entries after it is
//! useless (`outgoing`). Only space ends a hold: the caller then passes none.

use crate::region::LogIndex;

/// The state of a replica's log.
#[derive(Clone, Debug)]
pub(crate) struct TruncationInput {
    /// Index of the entry before the first one in the log.
    pub(crate) start: LogIndex,
    pub(crate) last: LogIndex,
    /// Last index whose effects would survive a crash.
    pub(crate) flushed: LogIndex,
    /// Entries up to this index pin old log files; 0 if none do.
    pub(crate) pinning: LogIndex,
    /// On a leader, the lowest index that each live follower needs to continue from. Empty on a follower.
    pub(crate) followers: Vec<LogIndex>,
    /// The lowest index that a snapshot holds.
    pub(crate) held: Option<LogIndex>,
}

/// Limits of what is kept for followers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// Entries always kept at the end of the log.
    pub(crate) tail: u64,
    /// Most entries kept for a lagging follower.
    pub(crate) lag: u64,
}

/// The last entry to truncate; `None` if nothing is to be truncated.
pub(crate) fn truncation_bound(log: &TruncationInput, keep: Retention) -> Option<LogIndex> {
    let last = log.last.get();
    let needed =
        log.followers.iter().map(|f| f.get()).filter(|matched| last.saturating_sub(*matched) <= keep.lag).min();
    let kept_for_others = last.saturating_sub(keep.tail).min(needed.unwrap_or(u64::MAX));
    let held = log.held.map_or(u64::MAX, LogIndex::get);
    let bound = log.flushed.get().min(held).min(kept_for_others.max(log.pinning.get()));
    (bound > log.start.get()).then(|| LogIndex::new(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Retention = Retention { tail: 10, lag: 50 };

    fn bound(flushed: u64, followers: &[u64]) -> Option<u64> {
        bound_with_pinning(flushed, followers, 0)
    }

    fn bound_with_pinning(flushed: u64, followers: &[u64], pinning: u64) -> Option<u64> {
        bound_with_hold(flushed, followers, pinning, None)
    }

    fn bound_with_hold(flushed: u64, followers: &[u64], pinning: u64, held: Option<u64>) -> Option<u64> {
        let followers = followers.iter().map(|f| LogIndex::new(*f)).collect();
        let index = LogIndex::new;
        let (pinning, flushed) = (index(pinning), index(flushed));
        let held = held.map(index);
        let log = TruncationInput { start: index(5), last: index(100), flushed, pinning, followers, held };
        truncation_bound(&log, KEEP).map(LogIndex::get)
    }

    #[test]
    fn unflushed_entries_are_kept() {
        assert_eq!(bound(40, &[]), Some(40));
        assert_eq!(bound(5, &[]), None);
        assert_eq!(bound(0, &[]), None);
    }

    #[test]
    fn a_tail_is_kept() {
        assert_eq!(bound(100, &[]), Some(90));
    }

    #[test]
    fn live_follower_within_the_limit_holds_the_log() {
        assert_eq!(bound(100, &[70, 99]), Some(70));
        assert_eq!(bound(60, &[70, 99]), Some(60));
    }

    #[test]
    fn pinning_entries_are_dropped_even_if_followers_need_them() {
        assert_eq!(bound_with_pinning(100, &[60], 80), Some(80), "the follower gets a snapshot");
        assert_eq!(bound_with_pinning(100, &[], 100), Some(100), "no tail");
        assert_eq!(bound_with_pinning(70, &[60], 80), Some(70), "a restart needs what is not flushed");
        assert_eq!(bound_with_pinning(100, &[70], 30), Some(70), "unneeded entries go even if they pin nothing");
    }

    #[test]
    fn snapshot_holds_the_log_whatever_the_limits() {
        assert_eq!(bound_with_hold(100, &[10], 0, Some(20)), Some(20), "beyond the lag");
        assert_eq!(bound_with_hold(100, &[10], 80, Some(20)), Some(20), "pinned files");
        assert_eq!(bound_with_hold(15, &[10], 0, Some(20)), Some(15));
        assert_eq!(bound_with_hold(100, &[99], 0, Some(95)), Some(90), "the tail");
        assert_eq!(bound_with_hold(100, &[99], 0, Some(5)), None);
    }

    #[test]
    fn follower_beyond_the_limit_does_not_hold_the_log() {
        assert_eq!(bound(100, &[49, 80]), Some(80));
        assert_eq!(bound(100, &[49]), Some(90));
    }
}
