//! The cost of the key-value store per operation, with all data in memory: a get, a snapshot, a scan and an applied
//! batch, on RocksDB and on the in-memory store of simulations.
#![allow(missing_docs, reason = "criterion generates the entry point")]
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use engine::store::memory::MemoryStore;
use engine::store::rocks::{RocksOptions, RocksStore};
use engine::store::{Reader, Store};
use engine::{Cf, WriteBatch};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ROWS: u64 = 100_000;
const VALUE_BYTES: usize = 100;
const BATCH: u64 = 10;
const SCAN: usize = 100;

fn key(row: u64) -> Vec<u8> {
    let mut key = b"t\x00\x00\x00\x01r".to_vec();
    key.extend_from_slice(&row.to_be_bytes());
    key
}

fn value(rng: &mut StdRng) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    // Half of it compresses.
    rng.fill(&mut value[..VALUE_BYTES / 2]);
    value
}

/// Loads the rows and flushes, so that gets read files and the block cache, as most do.
fn load(store: &impl Store) {
    let mut rng = StdRng::seed_from_u64(1);
    for first in (0..ROWS).step_by(1000) {
        let mut batch = WriteBatch::new();
        for row in first..first + 1000 {
            batch.put(Cf::Default, &key(row), &value(&mut rng));
        }
        store.write(&batch).unwrap();
    }
    store.flush().unwrap();
}

fn reads<S: Store>(group: &mut BenchmarkGroup<'_, criterion::measurement::WallTime>, store: &S) {
    let mut rng = StdRng::seed_from_u64(2);
    let snapshot = store.snapshot();
    group.throughput(Throughput::Elements(1));
    group.bench_function("get", |bencher| {
        bencher.iter_batched(
            || key(rng.random_range(0..ROWS)),
            |key| assert!(snapshot.get(Cf::Default, &key).unwrap().is_some()),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("get_absent", |bencher| {
        bencher.iter_batched(
            || key(rng.random_range(0..ROWS)),
            |key| assert!(snapshot.get(Cf::Lock, &key).unwrap().is_none()),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("snapshot", |bencher| bencher.iter(|| black_box(store.snapshot())));
    group.throughput(Throughput::Elements(SCAN as u64));
    group.bench_function("scan_100", |bencher| {
        bencher.iter_batched(
            || key(rng.random_range(0..ROWS - SCAN as u64)),
            |from| {
                let mut cursor = snapshot.cursor(Cf::Default, &from, b"").unwrap();
                let mut bytes = 0;
                let mut valid = cursor.seek_to_first().unwrap();
                for _ in 0..SCAN {
                    assert!(valid);
                    bytes += cursor.key().len() + cursor.value().len();
                    valid = cursor.next().unwrap();
                }
                bytes
            },
            BatchSize::SmallInput,
        );
    });
}

fn writes<S: Store>(group: &mut BenchmarkGroup<'_, criterion::measurement::WallTime>, store: &S) {
    let mut rng = StdRng::seed_from_u64(3);
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("write_batch_of_10", |bencher| {
        bencher.iter_batched(
            || {
                let mut batch = WriteBatch::new();
                for _ in 0..BATCH {
                    batch.put(Cf::Write, &key(rng.random_range(0..ROWS)), &value(&mut rng));
                }
                batch
            },
            |batch| store.write(&batch).unwrap(),
            BatchSize::SmallInput,
        );
    });
}

fn stores(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let rocks = RocksStore::open(&dir.path().join("store"), &RocksOptions::default()).unwrap();
    load(&rocks);
    let mut group = criterion.benchmark_group("store/rocks");
    reads(&mut group, &rocks);
    writes(&mut group, &rocks);
    group.finish();

    let memory = MemoryStore::new();
    load(&memory);
    let mut group = criterion.benchmark_group("store/memory");
    reads(&mut group, &memory);
    writes(&mut group, &memory);
    group.finish();
}

fn batches(criterion: &mut Criterion) {
    let mut rng = StdRng::seed_from_u64(4);
    let rows: Vec<_> = (0..BATCH).map(|row| (key(row), value(&mut rng))).collect();
    let encode = || {
        let mut batch = WriteBatch::new();
        for (key, value) in &rows {
            batch.put(Cf::Default, key, value);
        }
        batch
    };
    let encoded = encode();
    let mut group = criterion.benchmark_group("batch");
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("encode_10", |bencher| bencher.iter(encode));
    group.bench_function("from_bytes_10", |bencher| {
        bencher.iter(|| WriteBatch::from_bytes(black_box(encoded.as_bytes())).unwrap());
    });
    group.bench_function("iterate_10", |bencher| bencher.iter(|| black_box(&encoded).iter().count()));
    group.finish();
}

criterion_group!(benches, stores, batches);
criterion_main!(benches);
