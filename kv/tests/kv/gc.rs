//! Garbage collection on RocksDB, by counts: which records are left, what files take, what reads walk.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use engine::store::memory::MemoryStore;
use engine::store::rocks::{RocksOptions, RocksStore};
use engine::store::{Hooks, Reader, Store};
use engine::{Cf, WriteBatch};
use kv::Key;
use kv::error::{ActionError, MvccError};
use kv::gc::tracker::TrackerConfig;
use kv::gc::{CollectBound, Collection, GcConfig, GcMetrics, Worker};
use kv::key::versioned;
use kv::mvcc::mark::put_mark;
use kv::mvcc::versions::{Versions, long_value};
use kv::mvcc::{WriteKind, WriteRecord, reader};
use prometheus::Registry;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rocksdb::perf::{PerfContext, PerfStatsLevel, set_perf_stats};
use tempfile::TempDir;
use tso::Timestamp;

use super::scan_cost::{ts, walked_by};

const ROWS: u64 = 100;
const SHORT: usize = 100;
const LONG: usize = 1_000;
/// Turns of a worker until it must be idle.
const TURNS_MAX: u32 = 2_000;

/// A store with its collection. The clock of the worker stands still while it works and leaps while it waits.
struct Node {
    store: RocksStore,
    worker: Worker<RocksStore>,
    bound: CollectBound,
    metrics: GcMetrics,
    now: Duration,
    dir: TempDir,
}

impl Node {
    fn new() -> Node {
        Node::open(tempfile::tempdir().unwrap())
    }

    fn open(dir: TempDir) -> Node {
        let (bound, metrics) = (CollectBound::new(), GcMetrics::new(&Registry::new()).unwrap());
        let collection = Collection::new(GcConfig::default(), bound.clone(), metrics.clone());
        let store = open(dir.path(), collection.hooks());
        let worker = collection.worker(store.clone());
        Node { store, worker, bound, metrics, now: Duration::ZERO, dir }
    }

    /// Ends as in a crash, and starts again.
    fn restart(self) -> Node {
        let Node { store, worker, dir, .. } = self;
        drop((store, worker));
        Node::open(dir)
    }

    /// Publishes a safe point and runs the worker until it has nothing to do.
    fn collect(&mut self, safe_point: Timestamp) {
        self.bound.raise(safe_point);
        // Past the rest of buckets that were collected lately.
        self.now += Duration::from_secs(3_600);
        let clock = Cell::new(self.now);
        let mut turns = 0;
        while turns == 0 || !self.worker.is_idle(clock.get()) {
            let wait = self.worker.turn(&|| clock.get()).unwrap();
            clock.set(clock.get() + wait);
            turns += 1;
            assert!(turns < TURNS_MAX, "the worker does not come to an end");
        }
        self.now = clock.get();
    }

    fn sst_bytes(&self, cf: Cf) -> u64 {
        self.store.property(cf, "rocksdb.live-sst-files-size").unwrap()
    }
}

fn open(dir: &Path, hooks: Hooks) -> RocksStore {
    RocksStore::open_with(dir, &RocksOptions::default(), hooks).unwrap()
}

fn row(n: u64) -> Key {
    Key::new(format!("t0000001r{n:08}"))
}

fn value(n: u64, ms: u64, len: usize) -> Vec<u8> {
    let mut value = format!("row {n} at {ms} ").into_bytes();
    let mut random = StdRng::seed_from_u64(n << 32 | ms);
    value.resize_with(len, || random.random());
    value
}

/// What a committed transaction leaves: it starts at `ms` and commits at `ms` + 1.
fn change(store: &impl Store, key: &Key, ms: u64, kind: WriteKind, value: &[u8]) {
    let storage = key.to_storage();
    let mut batch = WriteBatch::new();
    let is_long = value.len() > kv::size::SHORT_VALUE_MAX;
    if is_long {
        batch.put(Cf::Default, &versioned(&storage, ts(ms)), value);
    }
    let short_value = (kind == WriteKind::Put && !is_long).then_some(value);
    let record = WriteRecord { kind, start_ts: ts(ms), short_value };
    batch.put(Cf::Write, &versioned(&storage, ts(ms + 1)), &record.encode());
    store.write(&batch).unwrap();
}

/// Changes all rows once per round, from `ms` on. Returns the time after it.
fn rounds(store: &impl Store, ms: u64, rounds: u64, kind: WriteKind, len: usize) -> u64 {
    for round in 0..rounds {
        for n in 0..ROWS {
            let at = ms + 2 * (round * ROWS + n);
            change(store, &row(n), at, kind, &if len == 0 { Vec::new() } else { value(n, at, len) });
        }
    }
    ms + 2 * rounds * ROWS
}

fn records(store: &impl Store, cf: Cf) -> usize {
    let mut cursor = store.snapshot().cursor(cf, b"", b"").unwrap();
    let mut valid = cursor.seek_to_first().unwrap();
    let mut records = 0;
    while valid {
        records += 1;
        valid = cursor.next().unwrap();
    }
    records
}

fn get(store: &impl Store, key: &Key, at: Timestamp) -> Option<Bytes> {
    reader::get(&store.snapshot(), key, at, &[]).unwrap()
}

/// The deleted and superseded records that reads walk: point gets of all rows, and a scan.
fn walked(store: &RocksStore, at: Timestamp) -> u64 {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut counters = PerfContext::default();
    counters.reset();
    for n in 0..ROWS {
        assert!(get(store, &row(n), at).is_some());
    }
    records(store, Cf::Write);
    walked_by(&counters)
}

#[test]
fn after_ten_thousand_updates_of_a_hundred_rows_store_and_reads_are_as_fresh() {
    let (mut updated, fresh) = (Node::new(), Node::new());
    // The survey of an empty store. From now on the tracker says where garbage is.
    updated.collect(ts(1));
    let end = rounds(&updated.store, 1_000, 101, WriteKind::Put, SHORT);
    rounds(&fresh.store, end - 2 * ROWS, 1, WriteKind::Put, SHORT);
    fresh.store.flush().unwrap();
    updated.store.flush().unwrap();
    let before = updated.sst_bytes(Cf::Write);
    updated.collect(ts(end));
    assert_eq!(records(&updated.store, Cf::Write), ROWS as usize);
    assert_eq!(updated.metrics.versions_dropped(), 100 * ROWS);
    let (after, of_fresh) = (updated.sst_bytes(Cf::Write), fresh.sst_bytes(Cf::Write));
    assert!(after * 10 < before && after <= 2 * of_fresh, "{before} bytes, then {after}; fresh {of_fresh}");
    assert_eq!(walked(&updated.store, ts(end)), walked(&fresh.store, ts(end)));
    for n in 0..ROWS {
        assert_eq!(get(&updated.store, &row(n), ts(end)), get(&fresh.store, &row(n), ts(end)));
    }
}

#[test]
fn long_values_go_with_their_records() {
    let mut node = Node::new();
    let end = rounds(&node.store, 1_000, 50, WriteKind::Put, LONG);
    let last = end - 2 * ROWS;
    // What a read at the safe point sees stays: the round before the last.
    node.collect(ts(last - 1));
    assert_eq!((records(&node.store, Cf::Write), records(&node.store, Cf::Default)), (200, 200));
    assert!(node.sst_bytes(Cf::Default) < 2 * 200 * LONG as u64);
    for n in 0..ROWS {
        for (at, ms) in [(last - 1, last - 2 * ROWS + 2 * n), (end, last + 2 * n)] {
            assert_eq!(get(&node.store, &row(n), ts(at)).unwrap(), value(n, ms, LONG));
        }
    }
}

#[test]
fn an_emptied_table_leaves_nothing() {
    let mut node = Node::new();
    let end = rounds(&node.store, 1_000, 50, WriteKind::Put, LONG);
    node.store.flush().unwrap();
    let end = rounds(&node.store, end, 1, WriteKind::Delete, 0);
    for n in 0..ROWS {
        let mut batch = WriteBatch::new();
        put_mark(&mut batch, &row(n).to_storage(), ts(end + n));
        node.store.write(&batch).unwrap();
    }
    node.collect(ts(end + ROWS));
    for cf in [Cf::Write, Cf::Default] {
        assert_eq!((records(&node.store, cf), node.sst_bytes(cf)), (0, 0), "{cf:?}");
    }
}

#[test]
fn a_table_that_is_only_loaded_is_never_rewritten() {
    let mut node = Node::new();
    for part in 0..10 {
        for n in 0..2_000 {
            let n = part * 2_000 + n;
            change(&node.store, &row(n), 1_000 + 2 * n, WriteKind::Put, &value(n, 0, SHORT));
        }
        node.collect(ts(1_000_000 + part));
    }
    assert_eq!(node.metrics.ranges_compacted(), 0);
    assert!(node.metrics.ranges_examined() > 0);
    assert_eq!(records(&node.store, Cf::Write), 20_000);
}

#[test]
fn a_restart_forgets_no_garbage() {
    let mut node = Node::new();
    let end = rounds(&node.store, 1_000, 20, WriteKind::Put, LONG);
    node.store.flush().unwrap();
    node = node.restart();
    node.collect(ts(end));
    assert_eq!((records(&node.store, Cf::Write), records(&node.store, Cf::Default)), (100, 100));
    // Values whose records were dropped before a crash, which lost the knowledge of it.
    for n in 0..ROWS {
        let mut batch = WriteBatch::new();
        batch.put(Cf::Default, &versioned(&row(n).to_storage(), ts(500 + n)), &value(n, 0, LONG));
        node.store.write(&batch).unwrap();
    }
    node.store.flush().unwrap();
    node = node.restart();
    node.collect(ts(end));
    assert_eq!((records(&node.store, Cf::Write), records(&node.store, Cf::Default)), (100, 100));
}

#[test]
fn nothing_is_collected_before_the_publication_is_flushed() {
    let mut node = Node::new();
    let end = rounds(&node.store, 1_000, 60, WriteKind::Put, SHORT);
    node.store.flush().unwrap();
    node.bound.raise(ts(end));
    node.store.compact_range(Cf::Write, b"", b"").unwrap();
    assert_eq!(records(&node.store, Cf::Write), 60 * ROWS as usize);
    node.collect(ts(end));
    assert_eq!(records(&node.store, Cf::Write), ROWS as usize);
}

/// Random histories on RocksDB with small memtables, so that compactions meet parts of a key's versions. After each
/// step of the safe point every read at or above it is that of a store that never collects.
#[test]
fn no_read_at_or_above_the_safe_point_changes() {
    for seed in 0..8 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut node = Node::new();
        let plain = MemoryStore::new();
        let mut last_data: BTreeMap<u64, Timestamp> = BTreeMap::new();
        let (mut ms, mut safe_point) = (1_000, Timestamp::ZERO);
        for _ in 0..6 {
            for _ in 0..random.random_range(50..400) {
                let n = random.random_range(0..12);
                let (kind, len) = match random.random_range(0..10) {
                    0..4 => (WriteKind::Put, SHORT),
                    4..6 => (WriteKind::Put, LONG),
                    6..8 => (WriteKind::Delete, 0),
                    _ => (WriteKind::Lock { last_data: last_data.get(&n).copied() }, 0),
                };
                if kind.is_data() {
                    last_data.insert(n, ts(ms + 1));
                }
                let value = if len == 0 { Vec::new() } else { value(n, ms, len) };
                change(&node.store, &row(n), ms, kind, &value);
                change(&plain, &row(n), ms, kind, &value);
                ms += 2;
                if random.random_ratio(1, 60) {
                    node.store.flush().unwrap();
                }
            }
            safe_point = safe_point.max(ts(random.random_range(1_000..ms)));
            if random.random_ratio(1, 2) {
                // A crash loses what was not flushed, and the replay of the log brings it back. Here: all is flushed.
                node.store.flush().unwrap();
                node = node.restart();
            }
            node.collect(safe_point);
            for n in 0..12 {
                for at in (safe_point.physical_ms()..=ms).map(ts) {
                    assert_eq!(get(&node.store, &row(n), at), get(&plain, &row(n), at), "seed {seed}, row {n} at {at}");
                }
            }
        }
        // The next survey finds what was too little for the tracker.
        node.now += GcConfig::default().survey_interval;
        node.collect(ts(ms));
        let live = (0..12).filter(|n| get(&plain, &row(*n), ts(ms)).is_some()).count();
        assert!(records(&node.store, Cf::Write) <= live * 11 / 10 + 1, "seed {seed}: more than a tenth is garbage");
    }
}

/// A read below the safe point that has found the record may miss the value. That is no damage of the store.
#[test]
fn a_value_that_is_collected_under_a_read_is_no_corruption() {
    let mut node = Node::new();
    let end = rounds(&node.store, 1_000, 50, WriteKind::Put, LONG);
    let (snapshot, old) = (node.store.snapshot(), ts(1_000 + 2 * ROWS));
    let storage = row(0).to_storage();
    let mut versions = Versions::of_key(&snapshot, &storage).unwrap();
    assert!(versions.seek_data(&storage, old).unwrap());
    let start_ts = versions.current().unwrap().1.start_ts;
    assert_eq!(long_value(&snapshot, &storage, start_ts).unwrap(), value(0, start_ts.physical_ms(), LONG));
    node.collect(ts(end));
    let error = long_value(&snapshot, &storage, start_ts).unwrap_err();
    assert!(matches!(error, MvccError::Collected { .. }), "{error}");
    assert!(!ActionError::from(error).is_corruption());
    // The same without the collection of the record is damage.
    let mut batch = WriteBatch::new();
    let newest = ts(end - 2 * ROWS);
    batch.delete(Cf::Default, &versioned(&storage, newest));
    node.store.write(&batch).unwrap();
    let error = long_value(&node.store.snapshot(), &storage, newest).unwrap_err();
    assert!(ActionError::from(error).is_corruption());
}

/// A change of the log of a [`Replica`]: the row, its time, what it does, and the length of the value.
type Entry = (u64, u64, WriteKind, usize);

/// The store in memory, as a simulation uses it, with a log: crashes lose what was not flushed, and the log brings it
/// back.
struct Replica {
    store: MemoryStore,
    worker: Worker<MemoryStore>,
    bound: CollectBound,
    metrics: GcMetrics,
    log: Vec<Entry>,
    now: Duration,
}

impl Replica {
    fn open(store: &MemoryStore, metrics: GcMetrics) -> Replica {
        let config =
            GcConfig { tracker: TrackerConfig { due_puts: 8, ..TrackerConfig::default() }, ..GcConfig::default() };
        let bound = CollectBound::new();
        let collection = Collection::new(config, bound.clone(), metrics.clone());
        let store = store.rehooked(collection.hooks());
        let worker = collection.worker(store.clone());
        Replica { store, worker, bound, metrics, log: Vec::new(), now: Duration::ZERO }
    }

    /// Loses what was not flushed, and replays the log. The safe point is published in the log.
    fn crash(&mut self) {
        self.store.crash();
        let reopened = Replica::open(&self.store, self.metrics.clone());
        reopened.bound.raise(self.bound.get());
        *self = Replica { log: std::mem::take(&mut self.log), now: self.now, ..reopened };
        let applied = self.store.get_flushed(Cf::Meta, b"applied").unwrap();
        let applied = applied.map_or(0, |applied| u64::from_be_bytes(applied.try_into().unwrap()));
        (applied as usize..self.log.len()).for_each(|index| self.apply(index));
    }

    fn apply(&self, index: usize) {
        let (n, ms, kind, len) = self.log[index];
        change(&self.store, &row(n), ms, kind, &if len == 0 { Vec::new() } else { value(n, ms, len) });
        let mut applied = WriteBatch::new();
        applied.put(Cf::Meta, b"applied", &(index as u64 + 1).to_be_bytes());
        self.store.write(&applied).unwrap();
    }

    fn work(&mut self, turns: u32) {
        self.now += Duration::from_secs(3_600);
        for _ in 0..turns {
            let now = self.now;
            self.now += self.worker.turn(&|| now).unwrap();
        }
    }

    /// A compaction that meets some versions of a key.
    fn compact_part(&self, random: &mut StdRng) {
        let storage = row(random.random_range(0..4)).to_storage();
        let mut bound = || versioned(&storage, ts(random.random_range(1_000..1_400)));
        let (a, b) = (bound(), bound());
        for cf in [Cf::Write, Cf::Default] {
            self.store.compact_range(cf, a.as_slice().min(&b), a.as_slice().max(&b)).unwrap();
        }
    }
}

#[test]
fn crashes_replays_and_partial_compactions_change_no_read() {
    for seed in 0..30 {
        let mut random = StdRng::seed_from_u64(seed);
        let plain = MemoryStore::new();
        let mut replica = Replica::open(&MemoryStore::new(), GcMetrics::new(&Registry::new()).unwrap());
        let (mut last_data, mut safe_point) = (BTreeMap::<u64, Timestamp>::new(), Timestamp::ZERO);
        for _ in 0..200 {
            let ms = 1_000 + 2 * replica.log.len() as u64;
            match random.random_range(0..20) {
                0 => replica.crash(),
                1 => replica.store.flush().unwrap(),
                2..4 => replica.work(random.random_range(1..6)),
                4..6 => replica.compact_part(&mut random),
                6 => {
                    safe_point = safe_point.max(ts(random.random_range(1_000..ms + 1)));
                    replica.bound.raise(safe_point);
                }
                _ => {
                    let n = random.random_range(0..4);
                    let (kind, len) = match random.random_range(0..8) {
                        0..2 => (WriteKind::Put, SHORT),
                        2..4 => (WriteKind::Put, LONG),
                        4..6 => (WriteKind::Delete, 0),
                        _ => (WriteKind::Lock { last_data: last_data.get(&n).copied() }, 0),
                    };
                    if kind.is_data() {
                        last_data.insert(n, ts(ms + 1));
                    }
                    replica.log.push((n, ms, kind, len));
                    replica.apply(replica.log.len() - 1);
                    change(&plain, &row(n), ms, kind, &if len == 0 { Vec::new() } else { value(n, ms, len) });
                }
            }
            for (n, at) in (0..4).flat_map(|n| (safe_point.physical_ms()..=ms + 1).map(move |at| (n, ts(at)))) {
                let is_same = get(&replica.store, &row(n), at) == get(&plain, &row(n), at);
                assert!(is_same, "seed {seed}: another value of row {n} at {at}");
            }
        }
        assert!(replica.metrics.versions_dropped() > 0, "seed {seed} collects nothing");
    }
}
