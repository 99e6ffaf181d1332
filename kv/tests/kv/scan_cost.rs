//! The cost of a full scan in pages, counted in records that RocksDB walks, deleted and superseded ones included.
//!
//! A cursor of RocksDB passes deleted records within one step, so its steps do not show them. RocksDB's own counters of
//! the calling thread do.

use bytes::Bytes;
use engine::store::Store;
use engine::store::rocks::{RocksOptions, RocksStore};
use kv::Key;
use kv::api::{Mutation, MutationOp, PrewriteRequest, ScanRequest};
use kv::mvcc::scanner::{PageEnd, scan};
use kv::percolator::{commit, prewrite};
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use tso::Timestamp;

const PAGE: usize = 200;
/// Records that a page may walk for each of its rows: up to three versions, twice if in reverse, and a deleted lock
/// with what it deleted.
const PER_ROW: u64 = 8;

/// `CORTADO_SCAN_ROWS=1000000` shows the figures of that many rows (`--nocapture`); the default is 6,000.
fn row_count() -> usize {
    std::env::var("CORTADO_SCAN_ROWS").map_or(6_000, |rows| rows.parse().unwrap())
}

fn ts(ms: u64) -> Timestamp {
    Timestamp::new(ms, 0)
}

fn open(dir: &std::path::Path) -> RocksStore {
    RocksStore::open(dir, &RocksOptions::default()).unwrap()
}

/// Changes all rows in transactions of 500, which begin at `start_ms`.
fn change_all(store: &RocksStore, start_ms: u64, op: &MutationOp) {
    let keys: Vec<Key> = (0..row_count()).map(|n| Key::new(format!("row{n:08}"))).collect();
    for (n, keys) in keys.chunks(500).enumerate() {
        let (start_ts, commit_ts) = (ts(start_ms + 2 * n as u64), ts(start_ms + 2 * n as u64 + 1));
        let mutations = keys.iter().map(|key| Mutation { key: key.clone(), op: op.clone() }).collect();
        let request = PrewriteRequest { mutations, primary: keys[0].clone(), start_ts, ttl_ms: 3_000 };
        store.write(&prewrite(&store.snapshot(), &request).unwrap()).unwrap();
        store.write(&commit(&store.snapshot(), keys, start_ts, commit_ts).unwrap()).unwrap();
    }
}

/// Scans all rows at `at_ms` and returns how many there are. Panics if a page walks more than it covers.
fn count(store: &RocksStore, at_ms: u64, reverse: bool, state: &str) -> usize {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let snapshot = store.snapshot();
    let mut request = ScanRequest {
        start: Key::default(),
        end: Key::default(),
        start_ts: ts(at_ms),
        limit: PAGE as u32,
        max_bytes: u32::MAX,
        reverse,
        keys_only: false,
    };
    let (mut rows, mut pages, mut total, mut most) = (0, 0, 0, 0);
    loop {
        let mut counters = PerfContext::default();
        counters.reset();
        let page = scan(&snapshot, &request, 2 * PAGE).unwrap();
        let walked = counters.metric(PerfMetric::InternalKeySkippedCount)
            + counters.metric(PerfMetric::InternalDeleteSkippedCount);
        assert!(walked <= PER_ROW * PAGE as u64, "{state}, reverse {reverse}: page {pages} walked {walked} records");
        assert!(walked >= page.pairs.len() as u64, "the counters are off");
        rows += page.pairs.len();
        (pages, total, most) = (pages + 1, total + walked, most.max(walked));
        match page.resume {
            None => break,
            Some(resume) if reverse => request.end = resume,
            Some(resume) => request.start = resume,
        }
        assert_ne!(page.end, PageEnd::Lock);
    }
    println!("{state}, at {at_ms}, reverse {reverse}: {rows} rows, {pages} pages, walked {total}, a page up to {most}");
    assert!(pages >= row_count() / PAGE, "{pages} pages");
    rows
}

/// A page walks what it covers, wherever it is in the range and whatever happened to the rows before.
#[test]
fn every_page_of_a_full_scan_costs_what_it_covers() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let rows = row_count();
    let check = |store: &RocksStore, state: &str, expected: &[(u64, usize)]| {
        for (at_ms, rows) in expected {
            for reverse in [false, true] {
                assert_eq!(count(store, *at_ms, reverse, state), *rows, "{state}, at {at_ms}, reverse {reverse}");
            }
        }
    };
    change_all(&store, 1_000_000, &MutationOp::Put(Bytes::from_static(b"first")));
    check(&store, "loaded", &[(1_999_999, rows)]);
    store.flush().unwrap();
    check(&store, "loaded and flushed", &[(1_999_999, rows)]);
    change_all(&store, 2_000_000, &MutationOp::Put(Bytes::from_static(b"second")));
    check(&store, "updated", &[(1_999_999, rows), (2_999_999, rows)]);
    store.flush().unwrap();
    drop(store);
    store = open(dir.path());
    check(&store, "updated and restarted", &[(1_999_999, rows), (2_999_999, rows)]);
    change_all(&store, 3_000_000, &MutationOp::Delete);
    check(&store, "deleted", &[(1_999_999, rows), (2_999_999, rows), (3_999_999, 0)]);
    store.flush().unwrap();
    drop(store);
    store = open(dir.path());
    check(&store, "deleted and restarted", &[(2_999_999, rows), (3_999_999, 0)]);
}
