//! Point reads of the newest state, while transactions prewrite, commit and roll back between their steps.

use std::cell::RefCell;

use bytes::Bytes;
use engine::store::memory::MemoryStore;
use engine::store::{NewestReader, Result as StoreResult, Store, Visit};
use engine::{Cf, WriteBatch};
use kv::Key;
use kv::api::{CommitMode, Mutation, MutationOp, PrewriteRequest};
use kv::mvcc::point::{PointRead, get_newest};
use kv::mvcc::reader::get;
use kv::percolator::{PrewriteAction, commit, prewrite, rollback};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tso::Timestamp;

const SEEDS: u64 = 2_000;
const READS: usize = 12;
/// Long enough for `Cf::Default`.
const LONG: usize = 300;

/// One key, its oracle, and the transaction that holds its lock.
struct World {
    rng: StdRng,
    store: MemoryStore,
    key: Key,
    clock: u64,
    holder: Option<Holder>,
}

/// A transaction that has prewritten.
#[derive(Clone, Copy)]
struct Holder {
    start_ts: Timestamp,
    /// Fetched, and not written yet.
    commit_ts: Option<Timestamp>,
}

impl World {
    fn new(seed: u64) -> World {
        let (rng, key) = (StdRng::seed_from_u64(seed), Key::from_static(b"row"));
        World { rng, store: MemoryStore::new(), key, clock: 1, holder: None }
    }

    fn timestamp(&mut self) -> Timestamp {
        self.clock += 1;
        Timestamp::new(self.clock, 0)
    }

    /// A transaction begins and prewrites, or the one that has prewritten fetches its commit_ts or ends.
    fn step(&mut self) {
        let batch: WriteBatch = match self.holder.take() {
            None => {
                let start_ts = self.timestamp();
                let op = match self.rng.random_range(0..6) {
                    0 => MutationOp::Delete,
                    1 | 2 => MutationOp::Lock,
                    3 => MutationOp::Put(Bytes::from(vec![self.clock as u8; LONG])),
                    _ => MutationOp::Put(Bytes::from(vec![self.clock as u8; 2])),
                };
                self.holder = Some(Holder { start_ts, commit_ts: None });
                let (mutations, primary) = (vec![Mutation::new(self.key.clone(), op)], self.key.clone());
                let commit = CommitMode::TwoPhase;
                let request = PrewriteRequest { mutations, primary, start_ts, ttl_ms: 3_000, commit, locker: None };
                prewrite(&self.store.snapshot(), &request, PrewriteAction::Lock).map(|(batch, _)| batch)
            }
            Some(Holder { start_ts, commit_ts: Some(commit_ts) }) => {
                commit(&self.store.snapshot(), std::slice::from_ref(&self.key), start_ts, commit_ts)
            }
            Some(Holder { start_ts, .. }) if self.rng.random_ratio(1, 4) => {
                rollback(&self.store.snapshot(), std::slice::from_ref(&self.key), start_ts)
            }
            Some(Holder { start_ts, .. }) => {
                self.holder = Some(Holder { start_ts, commit_ts: Some(self.timestamp()) });
                return;
            }
        }
        .unwrap();
        self.store.write(&batch).unwrap();
    }
}

/// The world as a reader sees it: before each of its calls, transactions take steps.
struct Busy(RefCell<World>);

impl Busy {
    fn store(&self) -> MemoryStore {
        let mut world = self.0.borrow_mut();
        for _ in 0..world.rng.random_range(0..5) {
            world.step();
        }
        world.store.clone()
    }
}

impl NewestReader for Busy {
    fn get_newest(&self, cf: Cf, key: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        self.store().get_newest(cf, key)
    }

    fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
        self.store().visit_versions(cf, prefix, from, visit)
    }
}

/// What a read returns without a lock in its way is what a snapshot at its start_ts shows for ever.
#[test]
fn a_point_read_between_steps_of_transactions_sees_its_snapshot() {
    let (mut values, mut locked, mut long) = (0, 0, 0);
    for seed in 0..SEEDS {
        let world = Busy(RefCell::new(World::new(seed)));
        let key = world.0.borrow().key.clone();
        let mut seen = Vec::new();
        for _ in 0..READS {
            let start_ts = world.0.borrow_mut().timestamp();
            match get_newest(&world, &key, &key.to_storage(), start_ts).unwrap() {
                PointRead::Value(value) => seen.push((start_ts, value)),
                PointRead::Locked(lock) => {
                    assert!(lock.start_ts < start_ts, "seed {seed}: {lock} blocks {start_ts}");
                    locked += 1;
                }
                PointRead::Torn => panic!("seed {seed}: nothing removes committed data"),
            }
        }
        let mut world = world.0.into_inner();
        while world.holder.is_some() {
            world.step();
        }
        for (start_ts, value) in seen {
            let expected = get(&world.store.snapshot(), &key, start_ts, &[]).unwrap();
            assert_eq!(value, expected, "seed {seed}: read at {start_ts}");
            values += 1;
            long += usize::from(value.is_some_and(|value| value.len() == LONG));
        }
    }
    println!("{values} reads, {long} of long values; {locked} met a lock");
    assert!(values > 10_000 && locked > 1_000 && long > 1_000, "{values} {locked} {long}");
}

/// A read that looks for the lock last misses a commit below its start_ts.
#[test]
fn a_read_that_looks_for_the_lock_last_is_found() {
    /// Swaps the two: the lock is read when the versions are asked for.
    struct LockLast<'a>(&'a Busy);

    impl NewestReader for LockLast<'_> {
        fn get_newest(&self, cf: Cf, key: &[u8]) -> StoreResult<Option<Vec<u8>>> {
            if cf == Cf::Lock { Ok(None) } else { self.0.get_newest(cf, key) }
        }

        fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> StoreResult<()> {
            self.0.visit_versions(cf, prefix, from, visit)
        }
    }

    let is_wrong = |seed: u64| {
        let world = Busy(RefCell::new(World::new(seed)));
        let key = world.0.borrow().key.clone();
        let mut seen = Vec::new();
        for _ in 0..READS {
            let start_ts = world.0.borrow_mut().timestamp();
            let read = get_newest(&LockLast(&world), &key, &key.to_storage(), start_ts).unwrap();
            // The lock is gone by now.
            if let (PointRead::Value(value), None) = (read, world.get_newest(Cf::Lock, &key.to_storage()).unwrap()) {
                seen.push((start_ts, value));
            }
        }
        let world = world.0.into_inner();
        seen.into_iter().any(|(start_ts, value)| {
            get(&world.store.snapshot(), &key, start_ts, &[]).is_ok_and(|expected| expected != value)
        })
    };
    assert!((0..SEEDS).any(is_wrong));
}
