//! Reads of keys with many versions: their results against a naive model, and their number of cursor movements.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use engine::Cf;
use engine::store::memory::MemoryStore;
use engine::store::{Cursor, Reader, Result as StoreResult, Store};
use kv::Key;
use kv::api::{CheckTxnStatusRequest, Mutation, MutationOp, PrewriteRequest, RequestBody, ScanRequest, TxnStatus};
use kv::mvcc::reader::{batch_get, get};
use kv::percolator;
use proptest::prelude::*;
use tso::Timestamp;

use super::page::{all_rows, scan};

/// Timestamps count up from 1.
fn ts(n: u64) -> Timestamp {
    Timestamp::from_raw(n)
}

fn key(n: usize) -> Key {
    Key::new(format!("key{n}"))
}

fn evaluate(store: &MemoryStore, body: &RequestBody) {
    let (batch, _) = percolator::evaluate(&store.snapshot(), body, percolator::PrewriteAction::Lock).unwrap();
    store.write(&batch).unwrap();
}

fn prewrite_body(key: &Key, op: MutationOp, start: u64) -> RequestBody {
    let mutations = vec![Mutation::new(key.clone(), op)];
    let request = PrewriteRequest {
        mutations,
        primary: key.clone(),
        start_ts: ts(start),
        ttl_ms: 3_000,
        commit: kv::api::CommitMode::TwoPhase,
        locker: None,
    };
    RequestBody::Prewrite(request)
}

fn prewrite(store: &MemoryStore, key: &Key, op: MutationOp, start: u64) {
    evaluate(store, &prewrite_body(key, op, start));
}

fn commit(store: &MemoryStore, key: &Key, start: u64, commit: u64) {
    evaluate(store, &RequestBody::Commit { keys: vec![key.clone()], start_ts: ts(start), commit_ts: ts(commit) });
}

fn rollback(store: &MemoryStore, key: &Key, start: u64) {
    evaluate(store, &RequestBody::Rollback { keys: vec![key.clone()], start_ts: ts(start) });
}

fn scan_all(at: u64, reverse: bool, limit: u32) -> ScanRequest {
    ScanRequest { limit, ..all_rows(ts(at), reverse) }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Put,
    PutLong,
    Delete,
    Lock,
}

/// What happens to a key.
#[derive(Clone, Copy, Debug)]
enum Event {
    Commit(Change),
    /// A transaction that has locked the key is rolled back.
    RollbackOfLock(Change),
    /// A transaction is marked as rolled back that never locked the key.
    Mark,
    /// A transaction commits at or below the mark of another one that was written while it held the lock.
    CommitUnderMark(Change, bool),
}

fn event() -> impl Strategy<Value = (usize, Event)> {
    let change = || {
        prop_oneof![
            3 => Just(Change::Lock), 2 => Just(Change::Put), 1 => Just(Change::PutLong), 1 => Just(Change::Delete),
        ]
    };
    let event = prop_oneof![
        4 => change().prop_map(Event::Commit),
        1 => change().prop_map(Event::RollbackOfLock),
        1 => Just(Event::Mark),
        2 => (change(), any::<bool>()).prop_map(|(change, same)| Event::CommitUnderMark(change, same)),
    ];
    (0usize..3, event)
}

/// A store, and the naive model beside it: the committed values of each key by commit_ts.
#[derive(Default)]
struct World {
    store: MemoryStore,
    model: BTreeMap<Key, BTreeMap<u64, Option<Bytes>>>,
    now: u64,
}

impl World {
    fn op(&self, change: Change) -> MutationOp {
        match change {
            Change::Put => MutationOp::Put(Bytes::from(self.now.to_string())),
            Change::PutLong => MutationOp::Put(Bytes::from(vec![self.now as u8; 300])),
            Change::Delete => MutationOp::Delete,
            Change::Lock => MutationOp::Lock,
        }
    }

    fn add(&mut self, key: &Key, op: MutationOp, commit_ts: u64) {
        let value = match op {
            MutationOp::Put(value) => Some(value),
            MutationOp::Delete => None,
            _ => return,
        };
        self.model.entry(key.clone()).or_default().insert(commit_ts, value);
    }

    fn apply(&mut self, n: usize, event: Event) {
        let key = key(n);
        let start = self.now + 1;
        self.now += 4;
        match event {
            Event::Commit(change) => {
                let op = self.op(change);
                prewrite(&self.store, &key, op.clone(), start);
                commit(&self.store, &key, start, start + 1);
                self.add(&key, op, start + 1);
            }
            Event::RollbackOfLock(change) => {
                prewrite(&self.store, &key, self.op(change), start);
                rollback(&self.store, &key, start);
            }
            Event::Mark => rollback(&self.store, &key, start),
            Event::CommitUnderMark(change, same) => {
                let op = self.op(change);
                prewrite(&self.store, &key, op.clone(), start);
                rollback(&self.store, &key, start + 2);
                let commit_ts = if same { start + 2 } else { start + 1 };
                commit(&self.store, &key, start, commit_ts);
                self.add(&key, op, commit_ts);
            }
        }
    }

    fn at(&self, at: u64) -> Vec<(Key, Bytes)> {
        let value = |versions: &BTreeMap<u64, Option<Bytes>>| versions.range(..=at).next_back()?.1.clone();
        self.model.iter().filter_map(|(key, versions)| Some((key.clone(), value(versions)?))).collect()
    }
}

fn scan_pages(store: &MemoryStore, at: u64, reverse: bool) -> Vec<(Key, Bytes)> {
    let mut request = scan_all(at, reverse, 2);
    let mut pairs = Vec::new();
    loop {
        let page = scan(&store.snapshot(), &request, 3).unwrap();
        pairs.extend(page.pairs);
        match page.resume {
            None => return pairs,
            Some(resume) if reverse => request.end = resume,
            Some(resume) => request.start = resume,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every read of a random history of puts, deletes, locks and rollbacks, at every timestamp.
    #[test]
    fn reads_equal_a_naive_model(events in proptest::collection::vec(event(), 1..60)) {
        let mut world = World::default();
        for (n, event) in events {
            world.apply(n, event);
        }
        for at in 1..=world.now + 1 {
            let expected = world.at(at);
            let snapshot = world.store.snapshot();
            let keys: Vec<Key> = (0..3).map(key).collect();
            let found = batch_get(&snapshot, &keys, (ts(at), &[]), usize::MAX).unwrap().pairs;
            prop_assert_eq!(&found, &expected, "batch get at {}", at);
            for key in &keys {
                let expected = expected.iter().find(|(found, _)| found == key).map(|(_, value)| value.clone());
                prop_assert_eq!(get(&snapshot, key, ts(at), &[]).unwrap(), expected, "get at {}", at);
            }
            prop_assert_eq!(&scan_pages(&world.store, at, false), &expected, "scan at {}", at);
            let mut found = scan_pages(&world.store, at, true);
            found.reverse();
            prop_assert_eq!(&found, &expected, "reverse scan at {}", at);
        }
    }
}

/// A reader that counts what its cursors and gets do.
struct Counting<R> {
    reader: R,
    moves: Arc<AtomicUsize>,
}

struct CountingCursor {
    cursor: Box<dyn Cursor>,
    moves: Arc<AtomicUsize>,
}

impl<R: Reader> Reader for Counting<R> {
    fn get(&self, cf: Cf, key: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        self.moves.fetch_add(1, Ordering::Relaxed);
        self.reader.get(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> StoreResult<Box<dyn Cursor>> {
        Ok(Box::new(CountingCursor { cursor: self.reader.cursor(cf, lower, upper)?, moves: Arc::clone(&self.moves) }))
    }

    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], skips: usize) -> StoreResult<Box<dyn Cursor>> {
        let cursor = self.reader.limited_cursor(cf, lower, upper, skips)?;
        Ok(Box::new(CountingCursor { cursor, moves: Arc::clone(&self.moves) }))
    }
}

impl CountingCursor {
    fn count(&mut self) -> &mut dyn Cursor {
        self.moves.fetch_add(1, Ordering::Relaxed);
        &mut *self.cursor
    }
}

impl Cursor for CountingCursor {
    fn seek(&mut self, key: &[u8]) -> StoreResult<bool> {
        self.count().seek(key)
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> StoreResult<bool> {
        self.count().seek_for_prev(key)
    }

    fn seek_to_first(&mut self) -> StoreResult<bool> {
        self.count().seek_to_first()
    }

    fn seek_to_last(&mut self) -> StoreResult<bool> {
        self.count().seek_to_last()
    }

    fn next(&mut self) -> StoreResult<bool> {
        self.count().next()
    }

    fn prev(&mut self) -> StoreResult<bool> {
        self.count().prev()
    }

    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    fn value(&self) -> &[u8] {
        self.cursor.value()
    }
}

/// The result of a read, which may move cursors at most `max` times.
fn within<T>(
    max: usize,
    what: &str,
    store: &MemoryStore,
    read: impl Fn(&Counting<engine::store::memory::MemorySnapshot>) -> T,
) -> T {
    let reader = Counting { reader: store.snapshot(), moves: Arc::default() };
    let result = read(&reader);
    let moves = reader.moves.load(Ordering::Relaxed);
    assert!(moves <= max, "{what}: {moves} movements");
    result
}

/// Locks and rollbacks, however many, cost a read of the key nothing.
#[test]
fn a_row_locked_and_rolled_back_many_times_is_read_in_a_few_steps() {
    const TIMES: u64 = 2_000;
    let (store, value) = (MemoryStore::new(), Bytes::from_static(b"v"));
    for n in 0..3 {
        prewrite(&store, &key(n), MutationOp::Put(value.clone()), 1);
        commit(&store, &key(n), 1, 2);
    }
    let (hot, absent) = (key(1), Key::new("key1, never written"));
    for n in 0..TIMES {
        let start = 10 + 10 * n;
        for key in [&hot, &absent] {
            rollback(&store, key, start);
            prewrite(&store, key, MutationOp::Lock, start + 1);
            commit(&store, key, start + 1, start + 2);
        }
    }
    let end = 10 + 10 * TIMES;
    let found = Some(value.clone());
    for at in [9, end / 2, end] {
        assert_eq!(within(5, "get", &store, |r| get(r, &hot, ts(at), &[]).unwrap()), found);
        assert_eq!(within(5, "get", &store, |r| get(r, &absent, ts(at), &[]).unwrap()), None);
        for reverse in [false, true] {
            // Four keys: each may take some steps over versions above the timestamp, some to its data and some past it.
            let page = within(90, "scan", &store, |r| scan(r, &scan_all(at, reverse, 10), usize::MAX).unwrap());
            assert_eq!(page.pairs.len(), 3, "at {at}, reverse {reverse}");
        }
    }
    // One of them is a look at the counter of shared locks.
    let act = |what: &str, body: RequestBody| {
        within(9, what, &store, |r| percolator::evaluate(r, &body, percolator::PrewriteAction::Lock))
    };
    assert!(act("prewrite", prewrite_body(&hot, MutationOp::Delete, end)).is_ok());
    let insert = act("insert", prewrite_body(&hot, MutationOp::Insert(value), end));
    assert!(insert.unwrap_err().to_string().contains("already exists"));
    // Transactions of long ago: committed, rolled back, unknown.
    for (lock_ts, expected) in
        [(11, TxnStatus::Committed { commit_ts: ts(12) }), (10, TxnStatus::RolledBack), (15, TxnStatus::Missing)]
    {
        let check = CheckTxnStatusRequest {
            primary: hot.clone(),
            lock_ts: ts(lock_ts),
            current_ts: ts(end),
            rollback_if_missing: false,
            reader_ts: Timestamp::ZERO,
            fell_back: false,
        };
        let (_, status) = act("check status", RequestBody::CheckTxnStatus(check)).unwrap();
        assert_eq!(status, kv::api::Response::Status(expected));
    }
}
