//! The cost of MVCC and Percolator above the store: key codec, latches, point get, scan, prewrite and commit.
//!
//! Runs on the in-memory store and on RocksDB in a temporary directory, with 20,000 keys of three versions each.
//! Nothing is replicated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use engine::WriteBatch;
use engine::store::Store;
use engine::store::memory::MemoryStore;
use kv::Key;
use kv::api::{Mutation, MutationOp, PrewriteRequest, ScanRequest};
use kv::key::{split_ts, versioned};
use kv::latch::Latches;
use kv::mvcc::reader::{batch_get, get};
use kv::mvcc::scanner::{PageLimits, Scanner};
use kv::percolator::{PrewriteAction, commit, prewrite};
use tso::Timestamp;

const KEYS: u64 = 20_000;
const VERSIONS: u64 = 3;

fn ts(ms: u64) -> Timestamp {
    Timestamp::new(ms, 0)
}

fn key(n: u64) -> Key {
    Key::new(format!("t0001r{n:012}"))
}

fn request(keys: &[Key], start_ts: Timestamp) -> PrewriteRequest {
    let value = Bytes::from_static(&[7; 100]);
    let mutations = keys.iter().map(|key| Mutation::new(key.clone(), MutationOp::Put(value.clone())));
    PrewriteRequest {
        mutations: mutations.collect(),
        primary: keys[0].clone(),
        start_ts,
        ttl_ms: 3_000,
        commit: kv::api::CommitMode::TwoPhase,
        locker: None,
    }
}

fn transact(store: &impl Store, keys: &[Key], start_ms: u64) {
    let batch = prewrite(&store.snapshot(), &request(keys, ts(start_ms)), PrewriteAction::Lock).unwrap().0;
    store.write(&batch).unwrap();
    let batch = commit(&store.snapshot(), keys, ts(start_ms), ts(start_ms + 1)).unwrap();
    store.write(&batch).unwrap();
}

fn fill(store: &impl Store) {
    let keys: Vec<Key> = (0..KEYS).map(key).collect();
    for version in 0..VERSIONS {
        for (n, chunk) in keys.chunks(500).enumerate() {
            transact(store, chunk, 1_000 + version * 100 + 2 * n as u64);
        }
    }
    store.flush().unwrap();
}

fn codec(c: &mut Criterion) {
    let key = key(7);
    let row = versioned(&key.to_storage(), ts(5));
    c.bench_function("key/to_versioned", |b| b.iter(|| versioned(&black_box(&key).to_storage(), ts(5))));
    c.bench_function("key/from_versioned", |b| {
        b.iter(|| {
            let (storage, ts) = split_ts(black_box(&row)).unwrap();
            (Key::from_storage(storage).unwrap(), ts)
        });
    });
}

fn latches(c: &mut Criterion) {
    let mut latches = Latches::new(16);
    c.bench_function("latches/acquire_release_3", |b| {
        b.iter(|| {
            let (ticket, _) = latches.acquire(vec![3, 1, 2]).unwrap();
            latches.release(black_box(ticket))
        });
    });
}

fn store_benches<S: Store>(c: &mut Criterion, name: &str, store: &S) {
    fill(store);
    let now = ts(1_000_000);
    let mut group = c.benchmark_group(name);
    let mut n = 0;
    let mut next = move || {
        n = (n + 7_919) % KEYS;
        n
    };
    group.bench_function("get", |b| {
        b.iter(|| get(&store.snapshot(), &key(next()), now, &[]).unwrap().unwrap());
    });
    group.bench_function("batch_get_10", |b| {
        b.iter(|| {
            let keys: Vec<Key> = (0..10).map(|_| key(next())).collect();
            batch_get(&store.snapshot(), &keys, (now, &[]), usize::MAX).unwrap()
        });
    });
    for reverse in [false, true] {
        group.throughput(Throughput::Elements(100));
        group.bench_function(if reverse { "scan_100_reverse" } else { "scan_100" }, |b| {
            let start = key(KEYS / 4);
            let end = key(KEYS / 4 * 3);
            let (limit, max_bytes, keys_only) = (100, 1 << 20, false);
            let request =
                ScanRequest { start, end, start_ts: now, limit, max_bytes, reverse, keys_only, pass: Vec::new() };
            let limits = PageLimits { pairs: limit, bytes: max_bytes, steps: usize::MAX };
            b.iter(|| {
                let snapshot = store.snapshot();
                Scanner::open(&snapshot, &request).unwrap().next_page(&snapshot, limits).unwrap()
            });
        });
    }
    group.throughput(Throughput::Elements(1));
    // Evaluation only; the batch is dropped.
    group.bench_function("prewrite_1", |b| {
        b.iter_batched(
            || request(&[key(next())], now),
            |request| prewrite(&store.snapshot(), &request, PrewriteAction::Lock).unwrap().0,
            BatchSize::SmallInput,
        );
    });
    let mut clock = 2_000_000;
    group.bench_function("prewrite_commit_1_written", |b| {
        b.iter(|| {
            clock += 2;
            transact(store, &[key(next())], clock);
        });
    });
    group.finish();
}

fn stores(c: &mut Criterion) {
    store_benches(c, "memory", &MemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    let options = engine::store::rocks::RocksOptions { block_cache_bytes: 64 << 20, write_buffer_bytes: 64 << 20 };
    let rocks = engine::store::rocks::RocksStore::open(dir.path(), &options).unwrap();
    store_benches(c, "rocks", &rocks);
}

fn batch(c: &mut Criterion) {
    let store = MemoryStore::new();
    let batch = prewrite(&store.snapshot(), &request(&[key(1)], ts(10)), PrewriteAction::Lock).unwrap().0;
    c.bench_function("batch/from_bytes", |b| b.iter(|| WriteBatch::from_bytes(black_box(batch.as_bytes())).unwrap()));
}

criterion_group!(benches, codec, latches, batch, stores);
criterion_main!(benches);
