//! The newest entries of a region, in memory.
//!
//! The cache holds all entries that the log has not acknowledged, without a limit of its own (the store bounds what is
//! in flight). Beyond them it keeps a tail of at most `limit` bytes. The entries are one contiguous range that ends at
//! the last entry of the log.

use std::collections::VecDeque;

use raft::eraftpb::Entry;

/// Invariants:
/// 1. `entries` have consecutive indexes; the first is `first`.
/// 2. No entry that belongs to a write in `unacknowledged` is evicted.
#[derive(Debug)]
pub(super) struct EntryCache {
    entries: VecDeque<Entry>,
    /// Index of the first entry held; one after the last entry of the log if none is held.
    first: u64,
    bytes: u64,
    limit: u64,
    /// Unacknowledged writes: number, and the first index written.
    unacknowledged: VecDeque<(u64, u64)>,
}

/// Bytes charged for an entry.
pub(super) fn size(entry: &Entry) -> u64 {
    (entry.data.len() + entry.context.len() + 24) as u64
}

impl EntryCache {
    /// An empty cache behind `last`, the last entry of the log.
    pub(super) fn new(last: u64, limit: usize) -> EntryCache {
        EntryCache {
            entries: VecDeque::new(),
            first: last + 1,
            bytes: 0,
            limit: limit as u64,
            unacknowledged: VecDeque::new(),
        }
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn append(&mut self, entries: &[Entry], write: u64) {
        let Some(head) = entries.first() else { return };
        self.unacknowledged.push_back((write, head.index));
        let end = self.first + self.entries.len() as u64;
        assert!(head.index <= end, "entries leave no gap: {} after {end}", head.index);
        if head.index <= self.first {
            self.entries.clear();
            self.bytes = 0;
            self.first = head.index;
        } else {
            while self.entries.back().is_some_and(|e| e.index >= head.index) {
                if let Some(dropped) = self.entries.pop_back() {
                    self.bytes -= size(&dropped);
                }
            }
        }
        self.bytes += entries.iter().map(size).sum::<u64>();
        self.entries.extend(entries.iter().cloned());
        self.evict();
    }

    pub(super) fn on_durable(&mut self, write: u64) {
        while self.unacknowledged.front().is_some_and(|(number, _)| *number <= write) {
            self.unacknowledged.pop_front();
        }
        self.evict();
    }

    /// Drops everything: the log restarts after `last`.
    pub(super) fn restart(&mut self, last: u64) {
        self.entries.clear();
        self.bytes = 0;
        self.first = last + 1;
        self.unacknowledged.clear();
    }

    /// Drops entries up to and including `index`.
    pub(super) fn truncate(&mut self, index: u64) {
        while self.first <= index && self.pop_front() {}
    }

    /// Entries `low..high`: at least one if there is any, then as many as fit in `max` bytes.
    pub(super) fn slice(&self, low: u64, high: u64, max: u64) -> Vec<Entry> {
        let skip = usize::try_from(low.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let count = usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX);
        let mut used = 0;
        let mut out = Vec::new();
        for entry in self.entries.iter().skip(skip).take(count) {
            used += size(entry);
            if used > max && !out.is_empty() {
                break;
            }
            out.push(entry.clone());
        }
        out
    }

    fn evict(&mut self) {
        let pinned = self.unacknowledged.iter().map(|(_, first)| *first).min().unwrap_or(u64::MAX);
        while self.bytes > self.limit && self.first < pinned && self.pop_front() {}
    }

    fn pop_front(&mut self) -> bool {
        let Some(dropped) = self.entries.pop_front() else { return false };
        self.bytes -= size(&dropped);
        self.first += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl EntryCache {
        fn term(&self, index: u64) -> Option<u64> {
            self.slice(index, index + 1, u64::MAX).first().map(|e| e.term).filter(|_| index >= self.first)
        }
    }

    fn entries(range: std::ops::Range<u64>, term: u64) -> Vec<Entry> {
        range.map(|index| Entry { index, term, data: vec![0; 76], ..Entry::default() }).collect()
    }

    #[test]
    fn unacknowledged_entries_are_kept() {
        let mut cache = EntryCache::new(4, 200);
        cache.append(&entries(5..10, 1), 1);
        assert_eq!(cache.first(), 5);
        cache.on_durable(1);
        assert_eq!(cache.first(), 8);
        assert_eq!(cache.term(9), Some(1));
        assert_eq!(cache.term(7), None);
    }

    #[test]
    fn older_acknowledgement_does_not_free_an_overwrite() {
        let mut cache = EntryCache::new(4, 0);
        cache.append(&entries(5..10, 1), 1);
        cache.append(&entries(7..9, 2), 2);
        cache.on_durable(1);
        assert_eq!((cache.first(), cache.term(7), cache.term(9)), (7, Some(2), None));
        cache.on_durable(2);
        assert_eq!(cache.first(), 9);
    }

    #[test]
    fn overwrite_before_the_first_entry_replaces_everything() {
        let mut cache = EntryCache::new(4, 1000);
        cache.append(&entries(5..8, 1), 1);
        cache.append(&entries(3..5, 2), 2);
        assert_eq!((cache.first(), cache.term(4), cache.term(5)), (3, Some(2), None));
    }

    #[test]
    fn slices_hold_at_least_one_entry_and_stop_before_the_limit() {
        let mut cache = EntryCache::new(0, 10_000);
        cache.append(&entries(1..6, 1), 1);
        assert_eq!(cache.slice(2, 6, 1).len(), 1);
        assert_eq!(cache.slice(2, 6, 250).len(), 2);
        assert_eq!(cache.slice(2, 4, u64::MAX).len(), 2);
        cache.truncate(3);
        assert_eq!(cache.first(), 4);
    }
}
