//! Ranges of keys that a transaction with one snapshot reads at a newer one.
//!
//! Each range is read at one timestamp, also by writes and row locks: what was committed to it up to then was seen.

use kv::Key;
use kv::client::ScanRange;
use tso::Timestamp;

/// The ranges, each with its snapshot. Where two overlap, the later one counts.
#[derive(Debug, Default)]
pub(crate) struct Renewed(Vec<(ScanRange, Timestamp)>);

impl Renewed {
    /// Reads ranges at a snapshot from now on.
    pub(crate) fn extend(&mut self, ranges: Vec<ScanRange>, at: Timestamp) {
        self.0.extend(ranges.into_iter().map(|range| (range, at)));
    }

    /// The snapshot of a key, if it is not that of the transaction.
    pub(crate) fn at(&self, key: &Key) -> Option<Timestamp> {
        let holds = |range: &ScanRange| range.start <= *key && (range.end.is_empty() || *key < range.end);
        self.0.iter().rev().find(|(range, _)| holds(range)).map(|(_, at)| *at)
    }

    /// Whether all keys are read in the snapshot of the transaction.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The current position, for [`Renewed::rollback_to`].
    pub(crate) fn savepoint(&self) -> usize {
        self.0.len()
    }

    /// Forgets the ranges since `savepoint`.
    pub(crate) fn rollback_to(&mut self, savepoint: usize) {
        self.0.truncate(savepoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &'static str, end: &'static str) -> ScanRange {
        ScanRange { start: Key::new(start), end: Key::new(end), reverse: false }
    }

    #[test]
    fn the_latest_range_of_a_key_counts() {
        let mut renewed = Renewed::default();
        let at = |renewed: &Renewed, key: &'static str| renewed.at(&Key::new(key)).map(Timestamp::raw);
        assert!(renewed.is_empty());
        renewed.extend(vec![range("b", "d"), range("x", "")], Timestamp::from_raw(5));
        let savepoint = renewed.savepoint();
        renewed.extend(vec![range("c", "e")], Timestamp::from_raw(9));
        let found = ["a", "b", "c", "d", "e", "x", "z"].map(|key| at(&renewed, key));
        assert_eq!(found, [None, Some(5), Some(9), Some(9), None, Some(5), Some(5)]);
        renewed.rollback_to(savepoint);
        assert_eq!([at(&renewed, "c"), at(&renewed, "d")], [Some(5), None]);
    }
}
