//! The throughput of the log engine on the disk of this machine.
//!
//! `cargo bench -p engine --bench log`. The directory is `CORTADO_BENCH_DIR`, or a temporary one. The first line is the
//! limit of the disk: overwriting 4 KiB and fdatasync, which no synced append of one writer can beat.

#![allow(missing_docs)] // criterion's macros make undocumented functions
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use engine::disk::{Disk, DiskFile, RealDisk};
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions};
use tempfile::TempDir;

fn directory() -> TempDir {
    match std::env::var_os("CORTADO_BENCH_DIR") {
        Some(dir) => TempDir::new_in(dir).unwrap(),
        None => TempDir::new().unwrap(),
    }
}

/// About half compressible, like encoded commands.
fn entry(seed: u64, len: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|at| if at % 32 < 16 { next() } else { b'v' }).collect()
}

fn open(dir: &TempDir, options: LogOptions) -> LogEngine {
    LogEngine::open(RealDisk::open(dir.path()).unwrap(), options).unwrap().0
}

/// Appends `total` batches of one entry from `threads` threads, each to a group of its own. Returns the time taken.
fn append(engine: &LogEngine, threads: u64, total: u64, len: usize, durability: Durability) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let mine = total / threads + u64::from(thread < total % threads);
            scope.spawn(move || {
                let group = GroupId(thread);
                let first = engine.bounds(group).map_or(1, |bounds| bounds.last + 1);
                let payload = entry(thread, len);
                for next in first..first + mine {
                    let mut batch = LogBatch::new();
                    batch.append(group, next, vec![payload.clone()]);
                    engine.write(batch, durability).unwrap();
                }
            });
        }
    });
    started.elapsed()
}

/// Bounds the log between measurements.
fn trim(engine: &LogEngine) {
    let mut batch = LogBatch::new();
    for group in engine.groups() {
        batch.compact(group, engine.bounds(group).unwrap().last + 1);
    }
    engine.write(batch, Durability::Synced).unwrap();
    for _ in 0..3 {
        engine.purge(Budget::default()).unwrap();
        engine.write(LogBatch::new(), Durability::Synced).unwrap();
    }
}

fn appends(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("append");
    bench.sample_size(10).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(1));
    let dir = directory();
    let disk = RealDisk::open(dir.path()).unwrap();
    let file = disk.create("limit").unwrap();
    file.prefill(64 << 20).unwrap();
    file.sync().unwrap();
    let block = vec![1; 4096];
    let mut at = 0;
    bench.bench_function("disk-limit/overwrite-4k-fdatasync", |b| {
        b.iter(|| {
            file.write_at(&block, at % (64 << 20)).unwrap();
            file.sync().unwrap();
            at += 4096;
        });
    });
    drop(disk);
    for (layout, align_bytes) in [("aligned", 4096), ("sector", 512), ("packed", 8)] {
        for threads in [1, 16] {
            let dir = directory();
            let engine = open(&dir, LogOptions { align_bytes, ..LogOptions::default() });
            bench.bench_function(format!("synced-256B-{layout}/{threads}-threads"), |b| {
                b.iter_custom(|total| {
                    let took = append(&engine, threads, total, 256, Durability::Synced);
                    trim(&engine);
                    took
                });
            });
            engine.close();
        }
    }
    for (name, threads, len) in [("256B/1", 1, 256), ("256B/16", 16, 256), ("64KiB/1", 1, 64 << 10)] {
        let dir = directory();
        let engine = open(&dir, LogOptions::default());
        bench.bench_function(format!("buffered-{name}-threads"), |b| {
            b.iter_custom(|total| {
                let took = append(&engine, threads, total, len, Durability::Buffered);
                trim(&engine);
                took
            });
        });
        engine.close();
    }
    bench.finish();
}

/// A log of `entries` entries of `len` bytes in 100 groups, `per_batch` to a batch.
fn filled(dir: &TempDir, entries: u64, len: usize, per_batch: u64) {
    let engine = open(dir, LogOptions::default());
    let failed = Arc::new(AtomicU64::new(0));
    let mut next = [1u64; 100];
    for number in 0..entries / per_batch {
        let group = (number % 100) as usize;
        let mut batch = LogBatch::new();
        batch.append(
            GroupId(group as u64),
            next[group],
            (0..per_batch).map(|at| entry(number * per_batch + at, len)).collect(),
        );
        next[group] += per_batch;
        // Queued without waiting, but no faster than the queue accepts them.
        loop {
            let failed = failed.clone();
            let done = Box::new(move |outcome: engine::log::Result<_>| {
                failed.fetch_add(u64::from(outcome.is_err()), Ordering::AcqRel);
            });
            match engine.submit_with(batch.clone(), Durability::Buffered, done) {
                Ok(()) => break,
                Err(_) => std::thread::yield_now(),
            }
        }
    }
    while let Err(error) = engine.write(LogBatch::new(), Durability::Synced) {
        assert!(matches!(error, LogError::Busy), "{error}");
        std::thread::yield_now();
    }
    assert_eq!(failed.load(Ordering::Acquire), 0);
    engine.close();
}

fn reads(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("read");
    bench.sample_size(10).measurement_time(Duration::from_secs(2));
    let dir = directory();
    filled(&dir, 200_000, 256, 10);
    for (name, cache_bytes) in [("cached", 256 << 20), ("uncached", 0)] {
        let engine = open(&dir, LogOptions { cache_bytes, ..LogOptions::default() });
        let mut state = 1u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        bench.throughput(Throughput::Elements(1));
        bench.bench_function(format!("entry-256B-{name}"), |b| {
            b.iter(|| engine.entry(GroupId(random(100)), 1 + random(2000)).unwrap());
        });
        bench.throughput(Throughput::Elements(100));
        bench.bench_function(format!("range-100-256B-{name}"), |b| {
            b.iter(|| {
                let first = 1 + random(1900);
                engine.entries(GroupId(random(100)), first, first + 100, usize::MAX).unwrap()
            });
        });
        engine.close();
    }
    bench.finish();
}

fn recovery(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("recovery");
    bench.sample_size(10).measurement_time(Duration::from_secs(3));
    for (name, entries, len, per_batch) in [("1KiB-batches", 200_000, 1024, 1), ("1MiB-batches", 200_000, 1024, 1000)] {
        let dir = directory();
        filled(&dir, entries, len, per_batch);
        bench.throughput(Throughput::Bytes(entries * len as u64));
        bench.bench_function(format!("200MB-{name}"), |b| {
            b.iter(|| LogEngine::open(RealDisk::open(dir.path()).unwrap(), LogOptions::default()).unwrap());
        });
    }
    bench.finish();
}

/// A disk that discards all writes: only the engine is measured.
struct Nowhere;

struct NoFile(AtomicU64);

impl Disk for Nowhere {
    fn open(&self, name: &str) -> std::io::Result<Arc<dyn DiskFile>> {
        Err(std::io::Error::new(std::io::ErrorKind::NotFound, name.to_owned()))
    }
    fn create(&self, _: &str) -> std::io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(NoFile(AtomicU64::new(0))))
    }
    fn rename(&self, _: &str, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn remove(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn list(&self) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn sync_dir(&self) -> std::io::Result<()> {
        Ok(())
    }
}

impl DiskFile for NoFile {
    fn read_at(&self, _: &mut [u8], _: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    fn write_at(&self, data: &[u8], offset: u64) -> std::io::Result<()> {
        self.0.fetch_max(offset + data.len() as u64, Ordering::AcqRel);
        Ok(())
    }
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.0.load(Ordering::Acquire))
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.store(len, Ordering::Release);
        Ok(())
    }
    fn links(&self) -> std::io::Result<u64> {
        Ok(1)
    }
}

/// The cost of the index: adding a run for each of many groups in one commit group, and finding an entry among a
/// million with a block each. The looked-up blocks are in the cache.
fn index(criterion: &mut Criterion) {
    const GROUPS: u64 = 1000;
    const ENTRIES: u64 = 1_000_000;
    let mut bench = criterion.benchmark_group("index");
    let options = || LogOptions { block_bytes: 1 << 10, prefill_bytes: 0, spare_files: 0, ..LogOptions::default() };
    let payload = Bytes::from(vec![b'e'; 1 << 10]);
    let (engine, _writer, _) = LogEngine::open_driven(Arc::new(Nowhere), options()).unwrap();
    let mut next = 1;
    let write = |engine: &LogEngine, batch: LogBatch| engine.write(batch, Durability::Buffered).unwrap();
    bench.throughput(Throughput::Elements(GROUPS));
    bench.bench_function("append-1000-groups-a-block-each", |b| {
        b.iter(|| {
            let mut batch = LogBatch::new();
            (1..=GROUPS).for_each(|group| batch.append(GroupId(group), next, vec![payload.clone()]));
            write(&engine, batch);
            next += 1;
        });
    });
    for first in (1..=ENTRIES).step_by(1000) {
        let mut batch = LogBatch::new();
        batch.append(GroupId(0), first, vec![payload.clone(); 1000]);
        write(&engine, batch);
    }
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    bench.throughput(Throughput::Elements(1));
    bench.bench_function("entry-among-a-million-cached", |b| {
        b.iter(|| engine.entry(GroupId(0), ENTRIES - random(4000)).unwrap());
    });
    bench.bench_function("not-found-after-a-million", |b| {
        b.iter(|| engine.entry(GroupId(0), ENTRIES + 1 + random(4000)).unwrap_err());
    });
    bench.finish();
}

criterion_group!(benches, appends, reads, recovery, index);
criterion_main!(benches);
