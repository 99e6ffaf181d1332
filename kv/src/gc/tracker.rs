//! Which parts of the store may hold garbage: a count of writes per bucket of keys. Pure.
//!
//! A bucket is a prefix of storage keys: a table and some bytes of its keys, or all of them. A put counts for its
//! bucket. Once the safe point has passed enough of them, the bucket is *due*: somebody examines a sample of it
//! ([`examine`](super::examine)) and collects it if much of it is garbage. If not, twice as many puts make it due
//! again. So a table that is only loaded is examined a few times and never rewritten. Garbage may be spread over many
//! buckets that are not due. So the buckets of a table are due together if their puts together are enough.
//!
//! The number of buckets is bounded: if there are too many, all prefixes become a byte shorter. So in a small store a
//! bucket is a single row, in a larger one some hundred or thousand neighbours, in the largest a table. Counts are in
//! memory only. The survey ([`worker`](super::worker)) finds what a restart forgets.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tso::Timestamp;

use crate::key::{GROUP, split_ts};

/// A range of storage keys. An empty `end` means "after every key".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageRange {
    /// The first key of the range.
    pub start: Vec<u8>,
    /// The first key after it.
    pub end: Vec<u8>,
}

/// Settings of the tracker.
#[derive(Clone, Copy, Debug)]
pub struct TrackerConfig {
    /// The puts below the safe point that make a bucket due for the first time. Default 4,096, minimum 1.
    pub due_puts: u64,
    /// The least time between two collections of a bucket. Default 20 s.
    pub interval: Duration,
}

impl Default for TrackerConfig {
    fn default() -> TrackerConfig {
        TrackerConfig { due_puts: 4_096, interval: Duration::from_secs(20) }
    }
}

/// The most buckets.
const BUCKETS_MAX: usize = 4_096;
/// Bytes of storage keys that name a bucket, unless there are too many: two groups.
const PREFIX_MAX: usize = 2 * (GROUP + 1);
/// The same of the rows of a table: `t`, four bytes of its id, `r`. They lie within the first group, as they are.
const TABLE_PREFIX: usize = 6;
/// Physical milliseconds that the puts of one slot span, and the most slots of a bucket.
const SLOT_MS: u64 = 10_000;
const SLOTS_MAX: usize = 8;

/// See the module documentation.
///
/// Invariants: (1) at most [`BUCKETS_MAX`] buckets, each of at most [`SLOTS_MAX`] slots; (2) no prefix is longer than
/// `prefix_len`; (3) every put that was counted is in a slot of its bucket until a report about its bucket takes it;
/// (4) every table in `tables` has a bucket.
#[derive(Debug)]
pub struct Tracker {
    config: TrackerConfig,
    prefix_len: usize,
    buckets: BTreeMap<Vec<u8>, Bucket>,
    /// When the buckets of a table are due together, if it is not the default.
    tables: BTreeMap<Vec<u8>, Threshold>,
}

#[derive(Debug)]
struct Bucket {
    /// Oldest first.
    slots: VecDeque<Slot>,
    threshold: Threshold,
}

/// When puts make something due.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    /// The puts below the safe point that are needed.
    puts: u64,
    /// Not due before.
    rests_until: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    first: Timestamp,
    newest: Timestamp,
    puts: u64,
}

impl Bucket {
    fn new(threshold: Threshold) -> Bucket {
        Bucket { slots: VecDeque::new(), threshold }
    }

    fn add(&mut self, slot: Slot) {
        let is_full = self.slots.len() >= SLOTS_MAX;
        match self.slots.back_mut() {
            Some(last) if is_full || slot.newest.physical_ms() < last.first.physical_ms() + SLOT_MS => {
                last.newest = last.newest.max(slot.newest);
                last.puts += slot.puts;
            }
            _ => self.slots.push_back(slot),
        }
    }

    /// The puts that the safe point has passed.
    fn ripe(&self, safe_point: Timestamp) -> u64 {
        self.slots.iter().filter(|slot| slot.newest <= safe_point).map(|slot| slot.puts).sum()
    }
}

impl Threshold {
    const fn is_reached(self, puts: u64, now: Duration) -> bool {
        puts >= self.puts && self.rests_until.as_nanos() <= now.as_nanos()
    }
}

impl Tracker {
    /// A tracker that has seen nothing.
    pub fn new(config: TrackerConfig) -> Tracker {
        Tracker { config, prefix_len: PREFIX_MAX, buckets: BTreeMap::new(), tables: BTreeMap::new() }
    }

    /// Counts a put of a versioned key. Keys of other forms have no versions and do not count.
    pub fn put(&mut self, versioned: &[u8]) {
        let Ok((storage, ts)) = split_ts(versioned) else { return };
        if !storage.len().is_multiple_of(GROUP + 1) {
            return;
        }
        let prefix = storage.get(..self.prefix_len).unwrap_or(storage);
        let slot = Slot { first: ts, newest: ts, puts: 1 };
        if let Some(bucket) = self.buckets.get_mut(prefix) {
            return bucket.add(slot);
        }
        let mut bucket = Bucket::new(self.first_threshold(Duration::ZERO));
        bucket.add(slot);
        self.buckets.insert(prefix.to_vec(), bucket);
        while self.buckets.len() > BUCKETS_MAX {
            self.coarsen();
        }
    }

    /// Whether something would be due at this safe point.
    pub fn has_due(&self, safe_point: Timestamp, now: Duration) -> bool {
        self.find_due(safe_point, now).is_some()
    }

    /// The bucket with the most puts that the safe point has passed, if it is due; otherwise such a table. The caller
    /// examines it, and reports if it has collected it. If it does not, twice as many puts are needed.
    pub fn next_due(&mut self, safe_point: Timestamp, now: Duration) -> Option<StorageRange> {
        let (puts, prefix) = self.find_due(safe_point, now)?;
        let puts = puts.saturating_mul(2);
        if let Some(bucket) = self.buckets.get_mut(&prefix) {
            bucket.threshold.puts = puts;
        } else {
            self.tables.insert(prefix.clone(), Threshold { puts, rests_until: Duration::ZERO });
        }
        let end = successor(&prefix);
        Some(StorageRange { start: prefix, end })
    }

    /// The garbage of a range at or below the safe point was collected.
    pub fn collected(&mut self, range: &StorageRange, safe_point: Timestamp, now: Duration) {
        let threshold = self.first_threshold(now + self.config.interval);
        let is_within = |prefix: &[u8]| range.end.is_empty() || prefix < range.end.as_slice();
        for (_, bucket) in self.buckets.range_mut(range.start.clone()..).take_while(|(prefix, _)| is_within(prefix)) {
            bucket.slots.retain(|slot| slot.newest > safe_point);
            bucket.threshold = threshold;
        }
        for (_, table) in self.tables.range_mut(range.start.clone()..).take_while(|(prefix, _)| is_within(prefix)) {
            *table = threshold;
        }
    }

    fn first_threshold(&self, rests_until: Duration) -> Threshold {
        Threshold { puts: self.config.due_puts.max(1), rests_until }
    }

    /// What is due, with its puts.
    fn find_due(&self, safe_point: Timestamp, now: Duration) -> Option<(u64, Vec<u8>)> {
        let default = self.first_threshold(Duration::ZERO);
        let (mut due, mut sums) = (None, BTreeMap::<&[u8], u64>::new());
        for (prefix, bucket) in &self.buckets {
            let puts = bucket.ripe(safe_point);
            let is_more = || due.as_ref().is_none_or(|(most, _)| puts > *most);
            if bucket.threshold.is_reached(puts, now) && is_more() {
                due = Some((puts, prefix.clone()));
            }
            // A bucket that was due by itself does not make its table due.
            if let Some(table) = prefix.get(..TABLE_PREFIX).filter(|_| puts < default.puts) {
                *sums.entry(table).or_default() += puts;
            }
        }
        due.or_else(|| {
            let threshold = |table: &[u8]| self.tables.get(table).copied();
            let default = self.first_threshold(Duration::ZERO);
            let due =
                sums.into_iter().filter(|(table, puts)| threshold(table).unwrap_or(default).is_reached(*puts, now));
            due.max_by_key(|(_, puts)| *puts).map(|(table, puts)| (puts, table.to_vec()))
        })
    }

    /// Shortens all prefixes by a byte. At length zero there is one bucket.
    fn coarsen(&mut self) {
        self.prefix_len = self.prefix_len.saturating_sub(1);
        for (mut prefix, bucket) in std::mem::take(&mut self.buckets) {
            prefix.truncate(self.prefix_len);
            let merged = self.buckets.entry(prefix).or_insert_with(|| Bucket::new(bucket.threshold));
            merged.threshold.puts = merged.threshold.puts.min(bucket.threshold.puts);
            bucket.slots.into_iter().for_each(|slot| merged.add(slot));
        }
        if self.prefix_len <= TABLE_PREFIX {
            self.tables.clear();
        }
    }
}

/// The first key after all keys with this prefix; empty if there is none.
fn successor(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, versioned};

    const INTERVAL: Duration = Duration::from_secs(10);

    fn tracker() -> Tracker {
        Tracker::new(TrackerConfig { due_puts: 10, interval: INTERVAL })
    }

    const fn ts(ms: u64) -> Timestamp {
        Timestamp::new(ms, 0)
    }

    fn put(tracker: &mut Tracker, key: &str, from_ms: u64, puts: u64) {
        let storage = Key::new(key.as_bytes().to_vec()).to_storage();
        (0..puts).for_each(|n| tracker.put(&versioned(&storage, ts(from_ms + n))));
    }

    #[test]
    fn a_bucket_is_due_once_the_safe_point_has_passed_its_puts() {
        let mut tracker = tracker();
        put(&mut tracker, "t1234567r12345678", 100, 10);
        assert_eq!(tracker.next_due(ts(108), Duration::ZERO), None);
        assert!(tracker.has_due(ts(109), Duration::ZERO));
        let due = tracker.next_due(ts(109), Duration::ZERO).unwrap();
        assert_eq!(due.start, b"t1234567\xffr1234567\xff");
        assert_eq!(due.end, b"t1234567\xffr1234568");
        assert_eq!(tracker.next_due(ts(109), Duration::ZERO), None);
    }

    #[test]
    fn a_bucket_without_garbage_is_due_ever_more_rarely() {
        let mut tracker = tracker();
        let mut examined = 0;
        for n in 0..10_000 {
            put(&mut tracker, "t1234567r12345678", n * 20_000, 1);
            examined += u64::from(tracker.next_due(Timestamp::MAX, Duration::ZERO).is_some());
        }
        assert_eq!(examined, 10);
    }

    #[test]
    fn a_collected_bucket_rests_and_then_begins_anew() {
        let mut tracker = tracker();
        put(&mut tracker, "k", 0, 40);
        let due = tracker.next_due(Timestamp::MAX, Duration::ZERO).unwrap();
        tracker.collected(&due, Timestamp::MAX, INTERVAL);
        put(&mut tracker, "k", 100, 10);
        assert_eq!(tracker.next_due(Timestamp::MAX, INTERVAL + INTERVAL / 2), None);
        assert_eq!(tracker.next_due(Timestamp::MAX, 2 * INTERVAL), Some(due));
    }

    #[test]
    fn the_bucket_with_the_most_puts_comes_first() {
        let mut tracker = tracker();
        put(&mut tracker, "a", 0, 10);
        put(&mut tracker, "b", 0, 12);
        put(&mut tracker, "c", 0, 9);
        let mut next = || tracker.next_due(Timestamp::MAX, Duration::ZERO).map(|range| range.start[0]);
        assert_eq!([next(), next(), next()], [Some(b'b'), Some(b'a'), None]);
    }

    #[test]
    fn the_buckets_of_a_table_are_due_together() {
        let mut tracker = tracker();
        for bucket in ["t1234raaaaaa1", "t1234rbbbbbb1", "t1234rcccccc1", "t1234iaaaaaa1"] {
            put(&mut tracker, bucket, 0, 4);
        }
        let due = tracker.next_due(ts(3), Duration::ZERO).unwrap();
        assert_eq!((due.start.as_slice(), due.end.as_slice()), (&b"t1234r"[..], &b"t1234s"[..]));
        assert_eq!(tracker.next_due(ts(3), Duration::ZERO), None);
    }

    /// Rows as the SQL layer writes them: their keys differ in the first group.
    #[test]
    fn few_updates_of_each_row_of_a_small_table_make_it_due() {
        let mut tracker = tracker();
        for id in 1..=10 {
            let row = Key::new([b"t\x00\x00\x40\x01r\x81", &[id][..]].concat());
            tracker.put(&versioned(&row.to_storage(), ts(id.into())));
        }
        assert!(!tracker.has_due(ts(9), Duration::ZERO));
        let due = tracker.next_due(ts(10), Duration::ZERO).unwrap();
        assert_eq!(due.start, b"t\x00\x00\x40\x01r");
        tracker.collected(&due, ts(10), Duration::ZERO);
        assert!(tracker.buckets.values().all(|bucket| bucket.slots.is_empty()));
    }

    #[test]
    fn memory_is_bounded_and_no_put_is_lost() {
        let mut tracker = tracker();
        for n in 0..50_000_u64 {
            let storage = Key::new(n.to_be_bytes().to_vec()).to_storage();
            tracker.put(&versioned(&storage, ts(n * SLOT_MS)));
        }
        assert!(tracker.buckets.len() <= BUCKETS_MAX);
        assert!(tracker.buckets.values().all(|bucket| bucket.slots.len() <= SLOTS_MAX));
        assert_eq!(tracker.buckets.values().map(|bucket| bucket.ripe(Timestamp::MAX)).sum::<u64>(), 50_000);
        tracker.put(b"short");
        for prefix in [&b""[..], b"\xff\xff"] {
            assert!(successor(prefix).is_empty());
        }
        assert_eq!(successor(b"a\xff"), b"b");
    }
}
