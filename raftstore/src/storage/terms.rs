//! The terms of all entries of a region's log, in memory.
//!
//! raft-rs asks for the term of any entry at any time, and the store thread must not wait for the disk to answer. Terms
//! ascend and change only with elections, so a few runs hold them all. Recovery finds the runs by bisection.

use raft::eraftpb::Entry;

use crate::records::LogPosition;

/// See the module documentation.
///
/// Invariant: `runs` holds (first index, term), both ascending; the first run begins at or before the start of the log.
#[derive(Debug)]
pub(super) struct Terms {
    runs: Vec<(u64, u64)>,
}

impl Terms {
    /// The terms of an empty log that starts after `start`.
    pub(super) fn new(start: LogPosition) -> Terms {
        Terms { runs: vec![(start.index.get(), start.term.get())] }
    }

    /// The terms of the entries after `start` up to `last`. `read` returns the term of an entry.
    pub(super) fn recover<E>(start: LogPosition, last: u64, read: impl Fn(u64) -> Result<u64, E>) -> Result<Terms, E> {
        let mut terms = Terms::new(start);
        let (mut at, mut term) = (start.index.get(), start.term.get());
        let last_term = if last > at { read(last)? } else { term };
        while term < last_term {
            // The first entry of a higher term.
            let (mut low, mut high, mut high_term) = (at, last, last_term);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let found = read(middle)?;
                if found > term {
                    (high, high_term) = (middle, found);
                } else {
                    low = middle;
                }
            }
            terms.runs.push((high, high_term));
            (at, term) = (high, high_term);
        }
        Ok(terms)
    }

    /// The term of an entry of the log, or of the position before the first one.
    pub(super) fn get(&self, index: u64) -> u64 {
        let after = self.runs.partition_point(|(first, _)| *first <= index);
        assert!(after > 0, "entry {index} is before the start of the log");
        self.runs[after - 1].1
    }

    /// Adds entries, which replace those from the first one's index on.
    pub(super) fn append(&mut self, entries: &[Entry]) {
        let Some(head) = entries.first() else { return };
        let kept = self.runs.partition_point(|(first, _)| *first < head.index);
        assert!(kept > 0, "entry {} is before the start of the log", head.index);
        self.runs.truncate(kept);
        for entry in entries {
            if self.runs.last().is_none_or(|(_, term)| *term != entry.term) {
                self.runs.push((entry.index, entry.term));
            }
        }
    }

    /// Forgets what is before `start`, the new position before the first entry.
    pub(super) fn truncate(&mut self, start: u64) {
        let unneeded = self.runs.partition_point(|(first, _)| *first <= start).saturating_sub(1);
        self.runs.drain(..unneeded);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::peer::effects::position;

    #[test]
    fn recovery_bisects() {
        let term_of = |index: u64| match index {
            ..=40 => 2,
            41..=700 => 3,
            701 => 5,
            _ => 9,
        };
        let reads = Cell::new(0);
        let read = |index| -> Result<u64, ()> {
            reads.set(reads.get() + 1);
            Ok(term_of(index))
        };
        let terms = Terms::recover(position(10, 2), 60_000, read).unwrap();
        assert!((10..60_000).all(|index| terms.get(index) == term_of(index)));
        assert!(reads.get() < 60, "{} reads", reads.get());
        reads.set(0);
        assert_eq!(Terms::recover(position(60_000, 9), 60_000, read).unwrap().runs, [(60_000, 9)]);
        assert_eq!(reads.get(), 0);
    }

    #[test]
    fn appends_replace_and_truncation_forgets() {
        let entries = |range: std::ops::Range<u64>, term| -> Vec<Entry> {
            range.map(|index| Entry { index, term, ..Entry::default() }).collect()
        };
        let mut terms = Terms::new(position(4, 1));
        terms.append(&entries(5..10, 1));
        terms.append(&entries(10..20, 2));
        terms.append(&entries(15..16, 4));
        assert_eq!(terms.runs, [(4, 1), (10, 2), (15, 4)]);
        terms.append(&entries(5..7, 5));
        assert_eq!(terms.runs, [(4, 1), (5, 5)]);
        terms.truncate(5);
        assert_eq!((terms.get(5), terms.get(6)), (5, 5));
        terms.truncate(900);
        assert_eq!(terms.runs.len(), 1);
    }
}
