//! Timestamps fetched ahead: names for transactions that read nothing.
//!
//! A transaction's start_ts names it, and may be old if the transaction reads nothing at it: an autocommit INSERT of
//! keys that are known. Its commit_ts may not be old, so the store that commits it takes the least commit_ts itself,
//! when the request arrives. So the client keeps a range of timestamps, and no request is sent before the commit's.
//!
//! The older the name, the likelier it is that a key has changed since, which is a conflict. So a range is used for
//! [`AGE_MAX`] only, and the owner drops it after a conflict.

use std::time::Duration;

use tokio::time::Instant;

use crate::timestamp::{Timestamp, TsRange};

/// The timestamps of a range.
pub(crate) const COUNT: u32 = 1024;
/// A new range is fetched when so many are left.
const LOW: u32 = COUNT / 2;
/// The age at which a range is dropped.
const AGE_MAX: Duration = Duration::from_secs(10);

/// Timestamps that the oracle has issued to this client and that nobody uses yet.
///
/// Invariant: each timestamp is taken at most once.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// What is left of the range, and when it was asked for.
    left: Option<(TsRange, Instant)>,
    is_fetching: bool,
}

/// What a caller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// A timestamp, if one is left.
    pub(crate) timestamp: Option<Timestamp>,
    /// Whether the caller has to fetch a new range, and then to call [`Ahead::put`].
    pub(crate) must_fetch: bool,
}

impl Ahead {
    /// Takes the smallest timestamp that is left.
    pub(crate) fn take(&mut self, now: Instant) -> Taken {
        let left = self.left.take().filter(|(_, asked)| now.saturating_duration_since(*asked) < AGE_MAX);
        let timestamp = left.map(|(range, _)| range.first());
        self.left = left.and_then(|(range, asked)| Some((range.rest()?, asked)));
        let is_low = self.left.is_none_or(|(range, _)| range.count <= LOW);
        let must_fetch = is_low && !self.is_fetching;
        self.is_fetching |= must_fetch;
        Taken { timestamp, must_fetch }
    }

    /// Replaces what is left by a range that was asked for at `asked`. `None`: none came.
    pub(crate) fn put(&mut self, range: Option<TsRange>, asked: Instant) {
        assert!(self.is_fetching, "a range is fetched by one caller at a time");
        self.is_fetching = false;
        if let Some(range) = range {
            self.left = Some((range, asked));
        }
    }

    /// The smallest timestamp that [`Ahead::take`] may still give of those that are there.
    pub(crate) fn oldest(&self, now: Instant) -> Option<Timestamp> {
        let (range, asked) = self.left?;
        (now.saturating_duration_since(asked) < AGE_MAX).then(|| range.first())
    }

    /// Drops what is left.
    pub(crate) fn clear(&mut self) {
        self.left = None;
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a starting point for times that the test chooses")]
mod tests {
    use super::*;

    fn range(last: u64) -> TsRange {
        TsRange { last: Timestamp::from_raw(last), count: COUNT }
    }

    fn take(ahead: &mut Ahead, now: Instant) -> (Option<u64>, bool) {
        let Taken { timestamp, must_fetch } = ahead.take(now);
        (timestamp.map(Timestamp::raw), must_fetch)
    }

    #[test]
    fn each_is_taken_once_and_a_new_range_is_fetched_before_the_last() {
        let (mut ahead, now) = (Ahead::default(), Instant::now());
        assert_eq!(take(&mut ahead, now), (None, true));
        assert_eq!(take(&mut ahead, now), (None, false), "one fetch at a time");
        assert_eq!(ahead.oldest(now), None);
        ahead.put(Some(range(5000)), now);
        assert_eq!(ahead.oldest(now).map(Timestamp::raw), Some(5001 - u64::from(COUNT)));
        assert_eq!(ahead.oldest(now + AGE_MAX), None);
        for nth in 1..u64::from(COUNT) {
            let must_fetch = nth == u64::from(LOW);
            assert_eq!(take(&mut ahead, now), (Some(5000 - u64::from(COUNT) + nth), must_fetch));
        }
        assert_eq!(take(&mut ahead, now), (Some(5000), false));
        assert_eq!(take(&mut ahead, now), (None, false));
        ahead.put(None, now);
        assert_eq!(take(&mut ahead, now), (None, true), "the fetch before brought nothing");
        ahead.put(Some(range(9000)), now);
        assert_eq!(take(&mut ahead, now), (Some(9001 - u64::from(COUNT)), false));
    }

    #[test]
    fn old_ones_and_those_before_a_conflict_are_not_used() {
        let (mut ahead, start) = (Ahead::default(), Instant::now());
        assert!(ahead.take(start).must_fetch);
        ahead.put(Some(range(5000)), start);
        assert!(ahead.take(start + AGE_MAX / 2).timestamp.is_some());
        assert_eq!(take(&mut ahead, start + AGE_MAX), (None, true));
        ahead.put(Some(range(9000)), start + AGE_MAX);
        ahead.clear();
        assert_eq!(take(&mut ahead, start + AGE_MAX), (None, true));
    }
}
