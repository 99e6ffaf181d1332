//! The cost of a full scan in pages, counted in records that RocksDB walks, deleted and superseded ones included.
//!
//! A cursor of RocksDB passes deleted records within one step, so its steps do not show them. RocksDB's own counters of
//! the calling thread do. As in the server, one scanner reads all pages of a scan.

use bytes::Bytes;
use engine::Cf;
use engine::store::rocks::{RocksOptions, RocksStore};
use engine::store::{Reader, Store};
use kv::Key;
use kv::api::{Mutation, MutationOp, PrewriteRequest};
use kv::mvcc::scanner::{PageEnd, PageLimits, Scanner};
use kv::percolator::{PrewriteAction, commit, prewrite, rollback};
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use tso::Timestamp;

use super::page::all_rows;

const PAGE: usize = 200;
/// Records that a page may walk for each of its rows: up to three versions, twice if in reverse, and a deleted lock
/// with what it deleted.
pub(super) const PER_ROW: u64 = 8;
/// Inserts that were rolled back, for each row, all of them between two rows in the middle.
const ROLLED_BACK_PER_ROW: usize = 6;
/// Records that one pass over the locks walks for each deleted one: it is two in the memtable, and a step in reverse
/// looks at one of them twice.
const PER_DELETED_LOCK: u64 = 3;

/// What a scan may walk if one pass over the locks walks `one_pass`. An attempt to pass a gap has four times the limit
/// of the one before: all failed ones together walk up to 4/3 of the gap, and the last one all of it.
fn with_attempts(one_pass: u64) -> u64 {
    one_pass * 7 / 3
}

/// `CORTADO_SCAN_ROWS=1000000` shows the figures of that many rows (`--nocapture`); the default is 6,000.
fn row_count() -> usize {
    std::env::var("CORTADO_SCAN_ROWS").map_or(6_000, |rows| rows.parse().unwrap())
}

pub(super) fn ts(ms: u64) -> Timestamp {
    Timestamp::new(ms, 0)
}

pub(super) fn open(dir: &std::path::Path) -> RocksStore {
    RocksStore::open(dir, &RocksOptions::default()).unwrap()
}

/// A store that flushes late: a flush drops deleted locks.
fn open_with_large_buffer(dir: &std::path::Path) -> RocksStore {
    let options = RocksOptions { write_buffer_bytes: 2 << 30, ..RocksOptions::default() };
    RocksStore::open(dir, &options).unwrap()
}

/// Changes all rows in transactions of 500, which begin at `start_ms`.
fn change_all(store: &RocksStore, start_ms: u64, op: &MutationOp) {
    let keys: Vec<Key> = (0..row_count()).map(|n| Key::new(format!("row{n:08}"))).collect();
    for (n, keys) in keys.chunks(500).enumerate() {
        let (start_ts, commit_ts) = (ts(start_ms + 2 * n as u64), ts(start_ms + 2 * n as u64 + 1));
        let mutations = keys.iter().map(|key| Mutation::new(key.clone(), op.clone())).collect();
        let request = PrewriteRequest {
            mutations,
            primary: keys[0].clone(),
            start_ts,
            ttl_ms: 3_000,
            commit: kv::api::CommitMode::TwoPhase,
            locker: None,
        };
        store.write(&prewrite(&store.snapshot(), &request, PrewriteAction::Lock).unwrap().0).unwrap();
        store.write(&commit(&store.snapshot(), keys, start_ts, commit_ts).unwrap()).unwrap();
    }
}

/// Begins inserts of new keys in transactions of 500, from `start_ms` on, and rolls them back.
fn roll_back_inserts(store: &RocksStore, start_ms: u64, keys: &[Key]) {
    for (n, keys) in keys.chunks(500).enumerate() {
        let start_ts = ts(start_ms + n as u64);
        let insert = |key: &Key| Mutation::new(key.clone(), MutationOp::Insert(Bytes::from_static(b"gone")));
        let mutations = keys.iter().map(insert).collect();
        let request = PrewriteRequest {
            mutations,
            primary: keys[0].clone(),
            start_ts,
            ttl_ms: 3_000,
            commit: kv::api::CommitMode::TwoPhase,
            locker: None,
        };
        store.write(&prewrite(&store.snapshot(), &request, PrewriteAction::Lock).unwrap().0).unwrap();
        store.write(&rollback(&store.snapshot(), keys, start_ts).unwrap()).unwrap();
    }
}

/// What a full scan found and walked.
#[derive(Default)]
struct Cost {
    rows: usize,
    pages: usize,
    walked: u64,
    /// The most that one page walked.
    most: u64,
    /// What the pages walked in the first and in the last quarter of the rows.
    quarters: [u64; 2],
    /// Values that are not in a write record, as often as they were read.
    values: u64,
}

/// The records that were walked since the counters were reset.
pub(super) fn walked_by(counters: &PerfContext) -> u64 {
    counters.metric(PerfMetric::InternalKeySkippedCount) + counters.metric(PerfMetric::InternalDeleteSkippedCount)
}

/// What a cursor without a limit walks to find that there is no lock.
fn one_pass(store: &RocksStore, reverse: bool) -> u64 {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut cursor = store.snapshot().cursor(Cf::Lock, b"", b"").unwrap();
    let mut counters = PerfContext::default();
    counters.reset();
    let found = if reverse { cursor.seek_to_last() } else { cursor.seek_to_first() };
    assert!(!found.unwrap());
    walked_by(&counters)
}

/// Scans all rows at `at_ms`.
fn scan_all(store: &RocksStore, at_ms: u64, reverse: bool) -> Cost {
    scan_with_pauses(store, at_ms, reverse, false)
}

/// Scans all rows at `at_ms`. If it pauses after each page, it forgets what that page has read and not returned.
fn scan_with_pauses(store: &RocksStore, at_ms: u64, reverse: bool, pauses: bool) -> Cost {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let snapshot = store.snapshot();
    let request = all_rows(ts(at_ms), reverse);
    let mut scanner = Scanner::open(&snapshot, &request).unwrap();
    let limits = PageLimits { pairs: PAGE as u32, bytes: u32::MAX, steps: 2 * PAGE };
    let (mut cost, mut before) = (Cost::default(), None);
    loop {
        let mut counters = PerfContext::default();
        counters.reset();
        let page = scanner.next_page(&snapshot, limits).unwrap();
        let walked = walked_by(&counters);
        assert_ne!(page.end, PageEnd::Lock);
        for (key, _) in &page.pairs {
            let is_next = before.as_ref().is_none_or(|before| if reverse { key < before } else { key > before });
            assert!(is_next, "{key:?} after {before:?}");
            before = Some(key.clone());
        }
        if pauses {
            scanner.forget_unchecked().unwrap();
        }
        cost.values += counters.metric(PerfMetric::GetFromMemtableCount);
        if let Some((key, _)) = page.pairs.last() {
            let digits = key.as_bytes()[3..11].to_vec();
            let row: usize = String::from_utf8(digits).unwrap().parse().unwrap();
            match row * 4 / row_count() {
                0 => cost.quarters[0] += walked,
                3 => cost.quarters[1] += walked,
                _ => {}
            }
        }
        cost.rows += page.pairs.len();
        cost.pages += 1;
        cost.walked += walked;
        cost.most = cost.most.max(walked);
        if page.resume.is_none() {
            return cost;
        }
    }
}

/// Demands that a scan finds so many rows in each direction, that each page walks at most the `most` records of that
/// direction, and that [`PER_ROW`] bounds the cost of the rows at the start and at the end. Returns what the scans
/// walked.
fn check(store: &RocksStore, state: &str, (at_ms, rows): (u64, usize), most: [u64; 2]) -> [u64; 2] {
    [false, true].map(|reverse| {
        let cost = scan_all(store, at_ms, reverse);
        let Cost { pages, walked, quarters: [first, last], .. } = cost;
        let what = format!("{state}, at {at_ms}, reverse {reverse}");
        println!("{what}: {} rows, {pages} pages, walked {walked}, a page up to {}", cost.rows, cost.most);
        assert_eq!(cost.rows, rows, "{what}");
        // RocksDB does not count the records that compaction has merged to the last level.
        assert!(walked >= rows as u64 || state != "loaded", "{what}: the counters are off");
        assert!(cost.most <= most[usize::from(reverse)], "{what}: a page walked {} records", cost.most);
        assert!(pages >= row_count() / PAGE, "{what}: {pages} pages");
        let quarter = PER_ROW * (row_count() / 4 + PAGE) as u64;
        assert!(first.max(last) <= quarter, "{what}: first quarter {first}, last {last}");
        walked
    })
}

/// A page walks what it covers, wherever it is in the range and whatever happened to the rows before.
#[test]
fn every_page_of_a_full_scan_costs_what_it_covers() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let rows = row_count();
    let check_all = |store: &RocksStore, state: &str, expected: &[(u64, usize)]| {
        for expected in expected {
            check(store, state, *expected, [PER_ROW * PAGE as u64; 2]);
        }
    };
    change_all(&store, 1_000_000, &MutationOp::Put(Bytes::from_static(b"first")));
    check_all(&store, "loaded", &[(1_999_999, rows)]);
    store.flush().unwrap();
    check_all(&store, "loaded and flushed", &[(1_999_999, rows)]);
    change_all(&store, 2_000_000, &MutationOp::Put(Bytes::from_static(b"second")));
    check_all(&store, "updated", &[(1_999_999, rows), (2_999_999, rows)]);
    store.flush().unwrap();
    drop(store);
    store = open(dir.path());
    check_all(&store, "updated and restarted", &[(1_999_999, rows), (2_999_999, rows)]);
    change_all(&store, 3_000_000, &MutationOp::Delete);
    check_all(&store, "deleted", &[(1_999_999, rows), (2_999_999, rows), (3_999_999, 0)]);
    store.flush().unwrap();
    drop(store);
    store = open(dir.path());
    check_all(&store, "deleted and restarted", &[(2_999_999, rows), (3_999_999, 0)]);
}

/// Locks that were rolled back have no write record. A scan passes each of them a few times, also if all are in one
/// place, and the rows before and behind cost what they did.
#[test]
fn a_scan_among_rolled_back_inserts_walks_each_of_them_a_few_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open_with_large_buffer(dir.path());
    change_all(&store, 1_000_000, &MutationOp::Put(Bytes::from_static(b"first")));
    // One behind each row, and a mass of them behind the middle one.
    let behind = |row: usize, n: usize| Key::new(format!("row{row:08}-{n:08}"));
    let mut keys: Vec<Key> = (0..row_count()).map(|row| behind(row, 0)).collect();
    keys.extend((1..row_count() * ROLLED_BACK_PER_ROW).map(|n| behind(row_count() / 2, n)));
    roll_back_inserts(&store, 2_000_000, &keys);
    let gone = keys.len() as u64;
    for state in ["rolled back", "rolled back and restarted"] {
        let passes = [false, true].map(|reverse| one_pass(&store, reverse));
        // A flush may have dropped deleted locks for good.
        assert!(passes[0] >= gone || state != "rolled back", "{state}: {passes:?} of {gone} deleted locks");
        // No page walks more than all of the gap and what it covers otherwise.
        let most = passes.map(|pass| pass + PER_ROW * PAGE as u64);
        let walked = check(&store, state, (2_999_999, row_count()), most);
        for reverse in [false, true] {
            assert_eq!(scan_with_pauses(&store, 2_999_999, reverse, true).rows, row_count(), "{state}, with pauses");
        }
        for (walked, pass) in walked.into_iter().zip(passes) {
            assert!(pass <= PER_DELETED_LOCK * gone + PER_ROW * row_count() as u64, "{state}: one pass walks {pass}");
            let bound = with_attempts(pass) + PER_ROW * row_count() as u64;
            assert!(walked <= bound, "{state}: walked {walked}, one pass {pass}");
        }
        store.flush().unwrap();
        drop(store);
        store = open(dir.path());
    }
}

/// A gap costs the same whatever the keys in it have in common, and what a page has read before it is not read again
/// while the page looks for the end of the gap.
#[test]
fn a_gap_costs_the_same_behind_any_prefix_and_nothing_is_read_twice() {
    const GONE: u64 = 5_000;
    const ROWS: usize = PAGE - 1;
    for prefix_len in [8, 900, 1_500] {
        let dir = tempfile::tempdir().unwrap();
        let store = open_with_large_buffer(dir.path());
        let put = |n: usize| MutationOp::Put(Bytes::from(vec![n as u8; 1_000]));
        let mutations: Vec<Mutation> =
            (0..ROWS).map(|n| Mutation::new(Key::new(format!("row{n:08}")), put(n))).collect();
        let keys: Vec<Key> = mutations.iter().map(|mutation| mutation.key.clone()).collect();
        let (start_ts, primary) = (ts(1_000_000), keys[0].clone());
        let request = PrewriteRequest {
            mutations,
            primary,
            start_ts,
            ttl_ms: 3_000,
            commit: kv::api::CommitMode::TwoPhase,
            locker: None,
        };
        store.write(&prewrite(&store.snapshot(), &request, PrewriteAction::Lock).unwrap().0).unwrap();
        store.write(&commit(&store.snapshot(), &keys, start_ts, ts(1_000_001)).unwrap()).unwrap();
        // The gap is where a scan begins, forward and in reverse: it reads all rows first.
        for (at, start_ms) in [("m", 2_000_000), ("s", 3_000_000)] {
            let prefix = at.repeat(prefix_len);
            let keys: Vec<Key> = (0..GONE).map(|n| Key::new(format!("{prefix}{n:08}"))).collect();
            roll_back_inserts(&store, start_ms, &keys);
        }
        for reverse in [false, true] {
            let Cost { rows, pages, walked, values, .. } = scan_all(&store, 3_999_999, reverse);
            let what = format!("prefix of {prefix_len} bytes, reverse {reverse}");
            let pass = one_pass(&store, reverse);
            println!("{what}: {pages} pages, walked {walked} for {} deleted locks, one pass {pass}", 2 * GONE);
            assert_eq!((rows, values), (ROWS, ROWS as u64), "{what}: rows, and values read");
            let paused = scan_with_pauses(&store, 3_999_999, reverse, true);
            // The limit that the search has reached is not forgotten.
            assert!(paused.rows == ROWS && paused.pages == pages, "{what}: {} pages with pauses", paused.pages);
            assert!(paused.values > ROWS as u64, "{what}: nothing was forgotten");
            assert!(pass >= 2 * GONE && pass <= PER_DELETED_LOCK * 2 * GONE + PER_ROW * PAGE as u64, "{what}: {pass}");
            // A little is added for the write records.
            let bound = with_attempts(pass) + PER_ROW * PAGE as u64;
            assert!(walked >= pass && walked <= bound, "{what}: walked {walked}, one pass {pass}");
            assert!(pages <= 16, "{what}: {pages} pages");
        }
    }
}
