//! Random operations on both stores at once: equal reads, and after a crash a consistent prefix in all column families.

use std::ops::ControlFlow;

use engine::store::memory::{MemorySnapshot, MemoryStore};
use engine::store::rocks::RocksStore;
use engine::store::{Cursor, NewestReader, Reader, Result, Store, StoreError, VERSION_LEN, is_version_of};
use engine::{Cf, WriteBatch};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::common::{Crash, Row, open, rows};

/// A key and its value.
type Version = (Vec<u8>, Vec<u8>);

/// The key of the number of the newest write, put by every batch: it identifies the surviving prefix.
const APPLIED: &[u8] = b"applied";
const STEPS: usize = 400;
const SEEDS: u64 = 4;

struct World {
    rng: StdRng,
    memory: MemoryStore,
    rocks: Option<RocksStore>,
    /// The number of the newest write.
    applied: u64,
    /// The states that a crash may return to: the last flushed one and every later one.
    history: Vec<MemorySnapshot>,
    crashes: usize,
    /// Crashes that kept more than the last explicit flush.
    lucky_crashes: usize,
    /// Versions that visits passed.
    versions_seen: usize,
}

impl World {
    fn rocks(&self) -> &RocksStore {
        self.rocks.as_ref().expect("open between crashes")
    }

    /// A key, in half of the cases with a version.
    fn key(&mut self) -> Vec<u8> {
        let mut key = self.prefix();
        if self.rng.random() {
            key.extend(self.version());
        }
        key
    }

    fn prefix(&mut self) -> Vec<u8> {
        let len = self.rng.random_range(0..4);
        (0..len).map(|_| b"ab\xff"[self.rng.random_range(0..3)]).collect()
    }

    fn version(&mut self) -> [u8; VERSION_LEN] {
        [self.rng.random_range(0..4); VERSION_LEN]
    }

    fn value(&mut self) -> Vec<u8> {
        // Long values fill the memtables, so RocksDB flushes on its own.
        let len = if self.rng.random_ratio(1, 4) { 4000 } else { self.rng.random_range(0..8) };
        let mut value = vec![0; len];
        self.rng.fill(value.as_mut_slice());
        value
    }

    fn batch(&mut self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for _ in 0..self.rng.random_range(0..6) {
            let cf = Cf::ALL[self.rng.random_range(0..4)];
            let (key, end, value) = (self.key(), self.key(), self.value());
            match self.rng.random_range(0..10) {
                0..7 => batch.put(cf, &key, &value),
                7..9 => batch.delete(cf, &key),
                _ => batch.delete_range(cf, &key, &end),
            }
        }
        self.applied += 1;
        batch.put(Cf::Meta, APPLIED, &self.applied.to_be_bytes());
        batch
    }

    fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..70 => {
                let batch = self.batch();
                self.memory.write(&batch).unwrap();
                self.rocks().write(&batch).unwrap();
                self.history.push(self.memory.snapshot());
            }
            70..75 => {
                self.memory.flush().unwrap();
                self.rocks().flush().unwrap();
                self.history = vec![self.memory.snapshot()];
            }
            75..79 => self.replace(),
            79..83 => self.crash(),
            83..90 => self.compare_cursor(),
            90..93 => (0..8).for_each(|_| self.compare_versions()),
            93..96 => (0..8).for_each(|_| self.compare_version_cursors()),
            _ => self.compare_get(),
        }
    }

    fn replace(&mut self) {
        let (start, end) = (self.key(), self.key());
        let mut new: Vec<Row> = Vec::new();
        for _ in 0..self.rng.random_range(0..8) {
            let row = (Cf::DATA[self.rng.random_range(0..3)], self.key(), self.value());
            if row.1 >= start && (end.is_empty() || row.1 < end) {
                new.push(row);
            }
        }
        new.sort();
        new.dedup_by(|b, a| (a.0, &a.1) == (b.0, &b.1));
        let last = self.batch();
        self.memory.replace_range(&start, &end, &mut new.iter().cloned().map(Ok), &last).unwrap();
        self.rocks().replace_range(&start, &end, &mut new.into_iter().map(Ok), &last).unwrap();
        self.history = vec![self.memory.snapshot()];
    }

    /// Crashes RocksDB, finds the surviving state among the allowed ones, and moves the memory store to it.
    fn crash(&mut self) {
        let promised = self.rocks().get_flushed(Cf::Meta, APPLIED).unwrap().map(number);
        self.rocks = self.rocks.take().map(Crash::crash);
        let survived = rows(&self.rocks().snapshot());
        let position = self.history.iter().position(|state| rows(state) == survived);
        let position = position.expect("what survived is a state of all families since the last flush");
        let kept = self.rocks().snapshot().get(Cf::Meta, APPLIED).unwrap().map(number);
        assert!(kept >= promised, "get_flushed promised {promised:?}, the crash left {kept:?}");
        self.applied = kept.unwrap_or(0);
        self.history = vec![self.history.swap_remove(position)];
        self.crashes += 1;
        self.lucky_crashes += usize::from(position > 0);

        self.memory = MemoryStore::new();
        let mut batch = WriteBatch::new();
        survived.iter().for_each(|(cf, key, value)| batch.put(*cf, key, value));
        self.memory.write(&batch).unwrap();
        self.memory.flush().unwrap();
    }

    fn compare_get(&mut self) {
        let (cf, key) = (Cf::ALL[self.rng.random_range(0..4)], self.key());
        let expected = self.memory.snapshot().get(cf, &key).unwrap();
        assert_eq!(self.rocks().snapshot().get(cf, &key).unwrap(), expected);
        assert_eq!(self.memory.get_newest(cf, &key).unwrap(), expected);
        assert_eq!(in_memory(self.rocks(), cf, |rocks| rocks.get_newest(cf, &key)), expected);
        assert_eq!(in_memory(self.rocks(), cf, |rocks| rocks.cached().get(cf, &key)), expected);
        assert_eq!(self.memory.cached().get(cf, &key).unwrap(), expected);
    }

    fn compare_versions(&mut self) {
        let cf = if self.rng.random() { Cf::Write } else { Cf::Default };
        let (prefix, limit) = (self.prefix(), self.rng.random_range(1..4));
        let from = [prefix.as_slice(), &self.version()].concat();
        let expected = versions(&self.memory, cf, &prefix, &from, limit).unwrap();
        let found = in_memory(self.rocks(), cf, |rocks| versions(rocks, cf, &prefix, &from, limit));
        assert_eq!(found, expected);
        assert!(expected.iter().all(|(key, _)| *key >= from && key.len() == from.len()), "{expected:?}");
        self.versions_seen += expected.len();
    }

    /// Cursors that look at the versions of one key at a time find the same versions of it.
    fn compare_version_cursors(&mut self) {
        let (lower, upper) = (self.key(), self.key());
        let prefix = self.prefix();
        let targets: Vec<_> = (0..5).map(|_| [prefix.as_slice(), &self.version()].concat()).collect();
        let expected = versions_around(&self.memory.cached(), (&lower, &upper), &targets).unwrap();
        let read = |rocks: &RocksStore| versions_around(&rocks.cached(), (&lower, &upper), &targets);
        assert_eq!(in_memory(self.rocks(), Cf::Write, read), expected);
        self.versions_seen += expected.len();
    }

    fn compare_cursor(&mut self) {
        let (cf, lower, upper) = (Cf::ALL[self.rng.random_range(0..4)], self.key(), self.key());
        let (memory, rocks) = (self.memory.snapshot(), self.rocks().snapshot());
        let mut memory = memory.cursor(cf, &lower, &upper).unwrap();
        let mut rocks = rocks.cursor(cf, &lower, &upper).unwrap();
        for _ in 0..10 {
            let (step, key) = (self.rng.random_range(0..10), self.key());
            let valid = walk(memory.as_mut(), step, &key);
            assert_eq!(walk(rocks.as_mut(), step, &key), valid, "step {step} to {key:?} in {lower:?}..{upper:?}");
            if valid {
                assert_eq!((rocks.key(), rocks.value()), (memory.key(), memory.value()));
            }
        }
    }
}

/// The first records that a visit passes, up to `limit`.
fn versions(store: &impl NewestReader, cf: Cf, prefix: &[u8], from: &[u8], limit: usize) -> Result<Vec<Version>> {
    let mut seen = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        seen.push((key.to_vec(), value.to_vec()));
        if seen.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    store.visit_versions(cf, prefix, from, &mut visit)?;
    Ok(seen)
}

/// What a cursor over versions finds of each target's key: the version at or after the target, and the one behind it.
fn versions_around(reader: &impl Reader, (lower, upper): (&[u8], &[u8]), targets: &[Vec<u8>]) -> Result<Vec<Version>> {
    let mut cursor = reader.version_cursor(lower, upper)?;
    let mut seen = Vec::new();
    for target in targets {
        let (prefix, _) = target.split_at(target.len() - VERSION_LEN);
        let mut valid = cursor.seek(target)?;
        for _ in 0..2 {
            if valid && is_version_of(cursor.key(), prefix) {
                seen.push((cursor.key().to_vec(), cursor.value().to_vec()));
                valid = cursor.next()?;
            }
        }
    }
    Ok(seen)
}

/// What `read` finds in memory. If it misses something there, the column family is read from its files first. RocksDB
/// may compact it meanwhile, and what it wrote then is not in memory either: so a few attempts.
fn in_memory<T>(store: &RocksStore, cf: Cf, mut read: impl FnMut(&RocksStore) -> Result<T>) -> T {
    for _ in 0..20 {
        match read(store) {
            Err(StoreError::NotCached) => (),
            found => return found.unwrap(),
        }
        let mut cursor = store.snapshot().cursor(cf, b"", b"").unwrap();
        let mut valid = cursor.seek_to_first().unwrap();
        while valid {
            valid = cursor.next().unwrap();
        }
    }
    panic!("the store refuses to read {cf:?} in memory, though all of it was read just now");
}

fn walk(cursor: &mut dyn Cursor, step: u32, key: &[u8]) -> bool {
    match step {
        0 => cursor.seek_to_first(),
        1 => cursor.seek_to_last(),
        2 => cursor.seek(key),
        3 => cursor.seek_for_prev(key),
        4..7 => cursor.prev(),
        _ => cursor.next(),
    }
    .unwrap()
}

fn number(bytes: Vec<u8>) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

#[test]
fn both_stores_agree() {
    let (mut crashes, mut lucky_crashes, mut versions_seen) = (0, 0, 0);
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let dir = tempfile::tempdir().unwrap();
        let memory = MemoryStore::new();
        let mut world = World {
            rng: StdRng::seed_from_u64(seed),
            history: vec![memory.snapshot()],
            memory,
            rocks: Some(open(&dir.path().join("store"))),
            applied: 0,
            crashes: 0,
            lucky_crashes: 0,
            versions_seen: 0,
        };
        for _ in 0..STEPS {
            world.step();
        }
        assert_eq!(rows(&world.rocks().snapshot()), rows(&world.memory.snapshot()));
        crashes += world.crashes;
        lucky_crashes += world.lucky_crashes;
        versions_seen += world.versions_seen;
    }
    println!("{crashes} crashes, {lucky_crashes} of them after a flush of RocksDB's own");
    assert!(crashes > 0 && versions_seen > 50, "{versions_seen} versions");
}
