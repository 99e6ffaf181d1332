//! A row that was locked many times: what reads and writes of it walk over RocksDB, in records.
//!
//! Each transaction put a lock on one key and deleted it, and left a commit record or a rollback mark. A cursor passes
//! the superseded versions of one key within one step, unseen by a test that counts steps. RocksDB seeks past them
//! after eight. So only a few records are walked, however many there are.

use bytes::Bytes;
use engine::Cf;
use engine::store::rocks::{RocksSnapshot, RocksStore};
use engine::store::{Reader, Store};
use kv::Key;
use kv::api::{KeyError, Mutation, MutationOp, PrewriteRequest};
use kv::error::ActionError;
use kv::mvcc::reader::{batch_get, get};
use kv::percolator::{PrewriteAction, commit, prewrite, rollback};
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

use super::page::{all_rows, scan};
use super::scan_cost::{PER_ROW, open, ts, walked_by};

/// How often the hot row was locked. Every second of these transactions committed, the others were rolled back.
const LOCKED: u64 = 20_000;
const ROWS: usize = 5;
/// The hot row has others on both sides.
const HOT: usize = 2;
/// The first of the transactions that locked the hot row starts here. Each takes two milliseconds.
const FIRST_MS: u64 = 2_000_000;
/// All of them have ended.
const END_MS: u64 = 3_000_000;
/// Records that a get, a batch get or a write may walk: a few steps from the newest commit record to the data.
const POINT_MAX: u64 = 10;
/// Records that a scan may walk. Those of the hot row are at most nine of its locks, in reverse twice as many, of which
/// half are deletions and count double; and eight commit records before each of at most two seeks past the others.
const SCAN_MAX: u64 = PER_ROW * ROWS as u64 + 48;
/// Cursor movements that a page of a scan may take, more than it needs.
const STEPS: usize = 1_000;

fn row(n: usize) -> Key {
    Key::new(format!("row{n}"))
}

fn value() -> Bytes {
    Bytes::from_static(b"v")
}

fn request(keys: &[Key], op: &MutationOp, start_ms: u64) -> PrewriteRequest {
    let mutations = keys.iter().map(|key| Mutation::new(key.clone(), op.clone())).collect();
    PrewriteRequest {
        mutations,
        primary: keys[0].clone(),
        start_ts: ts(start_ms),
        ttl_ms: 3_000,
        commit: kv::api::CommitMode::TwoPhase,
        locker: None,
    }
}

/// Runs a transaction, which commits a millisecond after its start or is rolled back.
fn transact(store: &RocksStore, keys: &[Key], op: &MutationOp, start_ms: u64, commits: bool) {
    store.write(&prewrite(&store.snapshot(), &request(keys, op, start_ms), PrewriteAction::Lock).unwrap().0).unwrap();
    let (snapshot, start_ts) = (store.snapshot(), ts(start_ms));
    let decided =
        if commits { commit(&snapshot, keys, start_ts, ts(start_ms + 1)) } else { rollback(&snapshot, keys, start_ts) };
    store.write(&decided.unwrap()).unwrap();
}

/// The result of an action on a new snapshot, and the records that it walked: those that RocksDB passed, or the steps
/// in memtables if these are more.
fn counted<T>(store: &RocksStore, act: impl FnOnce(&RocksSnapshot) -> T) -> (T, u64) {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let snapshot = store.snapshot();
    let mut counters = PerfContext::default();
    counters.reset();
    let result = act(&snapshot);
    let in_memtables =
        counters.metric(PerfMetric::NextOnMemtableCount) + counters.metric(PerfMetric::PrevOnMemtableCount);
    (result, walked_by(&counters).max(in_memtables))
}

/// The result of an action, which may walk at most `max` records.
fn within<T>(max: u64, what: &str, store: &RocksStore, act: impl FnOnce(&RocksSnapshot) -> T) -> T {
    let (result, walked) = counted(store, act);
    println!("{what}: walked {walked}");
    assert!(walked <= max, "{what}: walked {walked} records");
    result
}

/// Demands that the records of all transactions are there, in the files or not as `state` says, and that the counters
/// show a cursor that walks them.
fn check_history(store: &RocksStore, state: &str) {
    let (records, walked) = counted(store, |snapshot| {
        let mut cursor = snapshot.cursor(Cf::Write, b"", b"").unwrap();
        let (mut records, mut found) = (0u64, cursor.seek_to_first().unwrap());
        while found {
            records += 1;
            found = cursor.next().unwrap();
        }
        records
    });
    assert_eq!(records, ROWS as u64 + LOCKED / 2, "{state}");
    assert!(walked >= LOCKED / 2, "{state}: the counters are off, {walked} records");
    let in_memtable = store.property(Cf::Lock, "rocksdb.num-entries-active-mem-table").unwrap();
    if state == "unflushed" {
        assert!(in_memtable >= 2 * LOCKED, "{in_memtable} locks and deletions in the memtable");
    } else {
        assert_eq!(in_memtable, 0, "{state}");
    }
}

/// Reads all rows in all ways: before the hot row was locked, in the middle, and afterwards.
fn check_reads(store: &RocksStore, state: &str) {
    let rows: Vec<Key> = (0..ROWS).map(row).collect();
    let expected: Vec<(Key, Bytes)> = rows.iter().map(|row| (row.clone(), value())).collect();
    for at_ms in [FIRST_MS - 1, FIRST_MS + LOCKED, END_MS] {
        for row in &rows {
            let what = format!("{state}, get of {row:?} at {at_ms}");
            assert_eq!(
                within(POINT_MAX, &what, store, |r| get(r, row, ts(at_ms), &[]).unwrap()),
                Some(value()),
                "{what}"
            );
        }
        let what = format!("{state}, batch get at {at_ms}");
        let page = within(POINT_MAX, &what, store, |r| batch_get(r, &rows, (ts(at_ms), &[]), usize::MAX).unwrap());
        assert_eq!(page.pairs, expected, "{what}");
        for reverse in [false, true] {
            let request = all_rows(ts(at_ms), reverse);
            let what = format!("{state}, scan at {at_ms}, reverse {reverse}");
            let mut page = within(SCAN_MAX, &what, store, |r| scan(r, &request, STEPS).unwrap());
            if reverse {
                page.pairs.reverse();
            }
            assert_eq!((page.pairs, page.resume), (expected.clone(), None), "{what}");
        }
    }
}

/// Evaluates prewrites of the hot row, which nobody has locked.
fn check_prewrites(store: &RocksStore, state: &str) {
    let act = |what: &str, op: &MutationOp, start_ms: u64| {
        let request = request(&[row(HOT)], op, start_ms);
        within(POINT_MAX, &format!("{state}, {what}"), store, |r| prewrite(r, &request, PrewriteAction::Lock))
    };
    let free = act("prewrite", &MutationOp::Delete, END_MS);
    assert!(free.is_ok(), "{state}: {free:?}");
    let insert = act("insert", &MutationOp::Insert(value()), END_MS);
    assert!(matches!(insert, Err(ActionError::Key(KeyError::AlreadyExists { .. }))), "{state}: {insert:?}");
    // No other transaction started or committed at this time.
    let late = act("late prewrite", &MutationOp::Lock, FIRST_MS + LOCKED + 3);
    assert!(matches!(late, Err(ActionError::Key(KeyError::WriteConflict { .. }))), "{state}: {late:?}");
}

/// Locks the hot row once more. Reads pass the lock, another transaction meets it, and its own ends it.
fn check_held(store: &RocksStore, state: &str, start_ms: u64) {
    let (hot, start_ts) = ([row(HOT)], ts(start_ms));
    let lock = request(&hot, &MutationOp::Lock, start_ms);
    store.write(&prewrite(&store.snapshot(), &lock, PrewriteAction::Lock).unwrap().0).unwrap();
    let what = |act: &str| format!("{state}, locked, {act}");
    check_reads(store, &what("reads"));
    let other = request(&hot, &MutationOp::Lock, start_ms + 1);
    let met = within(POINT_MAX, &what("prewrite"), store, |r| prewrite(r, &other, PrewriteAction::Lock));
    assert!(matches!(met, Err(ActionError::Key(KeyError::Locked(_)))), "{state}: {met:?}");
    let commit_ts = ts(start_ms + 1);
    let committed = within(POINT_MAX, &what("commit"), store, |r| commit(r, &hot, start_ts, commit_ts));
    assert!(committed.is_ok(), "{state}: {committed:?}");
    let rolled_back = within(POINT_MAX, &what("rollback"), store, |r| rollback(r, &hot, start_ts));
    store.write(&rolled_back.unwrap()).unwrap();
}

/// Locks and rollbacks of a row, however many, cost reads and writes of it and of its neighbours a few records.
#[test]
fn a_row_locked_and_rolled_back_many_times_costs_a_few_records() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let rows: Vec<Key> = (0..ROWS).map(row).collect();
    transact(&store, &rows, &MutationOp::Put(value()), 1_000_000, true);
    for n in 0..LOCKED {
        transact(&store, &[row(HOT)], &MutationOp::Lock, FIRST_MS + 2 * n, n.is_multiple_of(2));
    }
    for (state, held_ms) in [("unflushed", END_MS + 10), ("flushed", END_MS + 20), ("restarted", END_MS + 30)] {
        check_history(&store, state);
        check_reads(&store, state);
        check_prewrites(&store, state);
        check_held(&store, state, held_ms);
        store.flush().unwrap();
        if state == "flushed" {
            drop(store);
            store = open(dir.path());
        }
    }
}
