//! How far a replica may shorten its own log.
//!
//! The key-value store has no log of its own, so entries whose effects are not *flushed* must stay: they are what a restart replays. Beyond that,
//! entries are kept for followers: a leader keeps what a live follower still needs while that is within bounds (a
//! slower one gets a snapshot), and everybody keeps a tail, for the day they lead. Where the log engine names a region because its old
//! entries pin files that hold little else, only what a restart needs is kept of these.

use crate::region::LogIndex;

/// What a replica knows when it decides.
#[derive(Clone, Debug)]
pub(crate) struct TruncationInput {
    /// The entry before the first one kept now.
    pub(crate) start: LogIndex,
    pub(crate) last: LogIndex,
    /// Last index whose effects a crash would not lose.
    pub(crate) flushed: LogIndex,
    /// Entries up to here pin files of the log that hold little else. 0 where none do.
    pub(crate) pinning: LogIndex,
    /// On a leader: the lowest index that each live follower has. Empty elsewhere.
    pub(crate) followers: Vec<LogIndex>,
}

/// Bounds of what is kept for others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// Entries always kept at the end.
    pub(crate) tail: u64,
    /// Most entries kept for a follower that lags.
    pub(crate) lag: u64,
}

/// The last entry that may be dropped; `None` if nothing is to be.
pub(crate) fn truncation_bound(log: &TruncationInput, keep: Retention) -> Option<LogIndex> {
    let last = log.last.get();
    let needed =
        log.followers.iter().map(|f| f.get()).filter(|matched| last.saturating_sub(*matched) <= keep.lag).min();
    let kept_for_others = last.saturating_sub(keep.tail).min(needed.unwrap_or(u64::MAX));
    let bound = log.flushed.get().min(kept_for_others.max(log.pinning.get()));
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
        let followers = followers.iter().map(|f| LogIndex::new(*f)).collect();
        let index = LogIndex::new;
        let (pinning, flushed) = (index(pinning), index(flushed));
        let log = TruncationInput { start: index(5), last: index(100), flushed, pinning, followers };
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
    fn what_pins_old_files_goes_whoever_would_like_to_keep_it() {
        assert_eq!(bound_with_pinning(100, &[60], 80), Some(80), "the follower gets a snapshot");
        assert_eq!(bound_with_pinning(100, &[], 100), Some(100), "no tail");
        assert_eq!(bound_with_pinning(70, &[60], 80), Some(70), "a restart needs what is not flushed");
        assert_eq!(bound_with_pinning(100, &[70], 30), Some(70), "pinned or not, nobody needs them");
    }

    #[test]
    fn a_follower_too_far_behind_does_not() {
        assert_eq!(bound(100, &[49, 80]), Some(80));
        assert_eq!(bound(100, &[49]), Some(90));
    }
}
