//! Space and reads after many updates of few rows, with and without garbage collection, beside a fresh load.
//!
//! ```text
//! cargo bench --bench gc [-- --rows 10000 --updates 1000000]
//! ```
//!
//! The store of a node alone: RocksDB with the collection's hooks and its worker on a thread, as in a node. Updates are
//! the records that transactions of one phase leave, with as many rows as a write of the apply thread. The safe point
//! follows the updates at a distance. After the last one it passes it, and the measurement begins when the worker has
//! nothing left to do. Figures of reads are medians of rounds; "walked" are the deleted and superseded records that
//! RocksDB passes for each read, which should be those of the fresh load.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use engine::store::rocks::{RocksOptions, RocksStore};
use engine::store::{Reader, Store};
use engine::{Cf, WriteBatch};
use kv::Key;
use kv::gc::{CollectBound, Collection, GcConfig, GcMetrics, Worker};
use kv::key::versioned;
use kv::mvcc::{WriteKind, WriteRecord, reader};
use kv::size::SHORT_VALUE_MAX;
use prometheus::Registry;
use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use tempfile::TempDir;
use tso::Timestamp;

#[derive(Parser)]
struct Options {
    /// Number of rows
    #[arg(long, default_value_t = 10_000)]
    rows: u64,
    /// Number of updates
    #[arg(long, default_value_t = 1_000_000)]
    updates: u64,
    /// Sizes of the values in bytes; above 255 they are not in the write records
    #[arg(long, value_delimiter = ',', default_value = "100,1000")]
    values: Vec<usize>,
    /// Updates of one write
    #[arg(long, default_value_t = 16)]
    batch: u64,
    /// Updates by which the safe point is behind
    #[arg(long, default_value_t = 100_000)]
    behind: u64,
    /// Rounds of reads of all rows
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// The longest wait for the worker.
const WAIT_MAX: Duration = Duration::from_secs(600);

fn main() {
    let options = Options::parse();
    println!(
        "{} updates of {} rows; the safe point {} updates behind\n",
        options.updates, options.rows, options.behind
    );
    println!(
        "| value | store | updates/s | MiB | of fresh | records | us/get | walked/get | us/row scanned | walked/row |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for len in &options.values {
        let fresh = Node::new();
        let end = fresh.load(&options, *len);
        fresh.store.flush().unwrap();
        let fresh_bytes = fresh.report(&options, *len, ("fresh", None, None), end);
        for collects in [false, true] {
            let node = Node::new();
            let (rate, end) = node.update(&options, *len, collects);
            let name = if collects { "collected" } else { "not collected" };
            node.report(&options, *len, (name, Some(rate), Some(fresh_bytes)), end);
            if collects {
                let metrics = &node.metrics;
                eprintln!(
                    "{len} bytes: dropped {} records and {} values; compacted {} ranges; examined {}",
                    metrics.versions_dropped(),
                    metrics.values_dropped(),
                    metrics.ranges_compacted(),
                    metrics.ranges_examined()
                );
            }
        }
    }
}

struct Node {
    store: RocksStore,
    collection: Collection,
    bound: CollectBound,
    metrics: GcMetrics,
    _dir: TempDir,
}

impl Node {
    fn new() -> Node {
        let dir = tempfile::tempdir().unwrap();
        let (bound, metrics) = (CollectBound::new(), GcMetrics::new(&Registry::new()).unwrap());
        let collection = Collection::new(GcConfig::default(), bound.clone(), metrics.clone());
        let store = RocksStore::open_with(dir.path(), &RocksOptions::default(), collection.hooks()).unwrap();
        Node { store, collection, bound, metrics, _dir: dir }
    }

    /// Writes every row once. Returns the time after it.
    fn load(&self, options: &Options, len: usize) -> u64 {
        for first in (0..options.rows).step_by(options.batch as usize) {
            let mut batch = WriteBatch::new();
            (first..options.rows.min(first + options.batch)).for_each(|n| change(&mut batch, n, n + 1, len));
            self.store.write(&batch).unwrap();
        }
        options.rows + 1
    }

    /// Loads the rows, updates them in random order, and waits until the worker is done. Returns the updates per second
    /// and the time after them.
    fn update(&self, options: &Options, len: usize, collects: bool) -> (f64, u64) {
        let loaded = self.load(options, len);
        let stops = Arc::new(AtomicBool::new(false));
        let worker = collects.then(|| {
            let (worker, stops) = (self.collection.worker(self.store.clone()), Arc::clone(&stops));
            std::thread::spawn(move || work(worker, &stops))
        });
        let (began, mut random) = (Instant::now(), 0x9e37_79b9_7f4a_7c15_u64);
        for first in (0..options.updates).step_by(options.batch as usize) {
            let mut batch = WriteBatch::new();
            for n in first..options.updates.min(first + options.batch) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                change(&mut batch, random % options.rows, loaded + n, len);
            }
            self.store.write(&batch).unwrap();
            if collects && first > options.behind {
                self.bound.raise(ts(loaded + first - options.behind));
            }
        }
        let rate = options.updates as f64 / began.elapsed().as_secs_f64();
        self.store.flush().unwrap();
        let end = loaded + options.updates;
        if let Some(worker) = worker {
            self.bound.raise(ts(end));
            stops.store(true, Ordering::SeqCst);
            worker.join().unwrap();
        }
        (rate, end)
    }

    /// Measures, and prints a row of the table. Returns the bytes on disk.
    fn report(
        &self,
        options: &Options,
        len: usize,
        (name, rate, fresh): (&str, Option<f64>, Option<u64>),
        end: u64,
    ) -> u64 {
        let size = |cf| self.store.property(cf, "rocksdb.live-sst-files-size").unwrap_or_default();
        let bytes = size(Cf::Write) + size(Cf::Default);
        let (mut gets, mut scans) = (Vec::new(), Vec::new());
        let mut records = 0;
        set_perf_stats(PerfStatsLevel::EnableCount);
        let mut walked = [0, 0];
        for _ in 0..options.rounds.max(1) {
            let began = start();
            for n in 0..options.rows {
                // Not in the order of the keys.
                let n = n * 7_919 % options.rows;
                assert!(black_box(reader::get(&self.store.snapshot(), &row(n), ts(end), &[]).unwrap()).is_some());
            }
            gets.push(began.elapsed());
            walked[0] = since_start();
            let began = start();
            records = self.scan();
            scans.push(began.elapsed());
            walked[1] = since_start();
        }
        let per_row = |total: f64| total / options.rows as f64;
        let of_fresh = fresh.map_or(1.0, |fresh| bytes as f64 / fresh as f64);
        println!(
            "| {len} | {name} | {} | {:.2} | {of_fresh:.2} | {records} | {:.2} | {:.2} | {:.2} | {:.2} |",
            rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
            bytes as f64 / f64::from(1 << 20),
            per_row(median(&mut gets).as_secs_f64() * 1e6),
            per_row(walked[0] as f64),
            per_row(median(&mut scans).as_secs_f64() * 1e6),
            per_row(walked[1] as f64),
        );
        bytes
    }

    /// Walks all write records.
    fn scan(&self) -> u64 {
        let mut cursor = self.store.snapshot().cursor(Cf::Write, b"", b"").unwrap();
        let (mut records, mut valid) = (0, cursor.seek_to_first().unwrap());
        while valid {
            records += 1;
            black_box(cursor.value());
            valid = cursor.next().unwrap();
        }
        records
    }
}

/// Runs the worker until it has nothing to do after `stops` is set.
fn work(mut worker: Worker<RocksStore>, stops: &AtomicBool) {
    let started = Instant::now();
    let mut ended = None;
    loop {
        let wait = worker.turn(&|| started.elapsed()).unwrap();
        if stops.load(Ordering::SeqCst) {
            let since = *ended.get_or_insert_with(Instant::now);
            if worker.is_idle(started.elapsed() + GcConfig::default().tracker.interval) {
                return;
            }
            assert!(since.elapsed() < WAIT_MAX, "the worker does not come to an end");
        }
        std::thread::sleep(wait.min(Duration::from_millis(100)));
    }
}

const fn ts(time: u64) -> Timestamp {
    Timestamp::new(1_000 + 2 * time, 0)
}

/// The key of a row as the SQL layer writes it: `t`, table, `r`, the significant bytes of the number after their count.
fn row(n: u64) -> Key {
    let bytes = n.to_be_bytes();
    let significant = &bytes[(n.leading_zeros() / 8) as usize..];
    let mut key = b"t\0\0\x40\x01r".to_vec();
    key.push(0x80 + significant.len() as u8);
    key.extend_from_slice(significant);
    Key::new(key)
}

/// The records of a transaction that sets a row: it starts before `time` and commits at it.
fn change(batch: &mut WriteBatch, n: u64, time: u64, len: usize) {
    let storage = row(n).to_storage();
    let (start_ts, commit_ts) = (ts(time).prev(), ts(time));
    let mut random = n << 32 | time;
    // Half of it compresses.
    let value: Vec<u8> = (0..len)
        .map(|at| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if at % 16 < 8 { b'x' } else { (random >> 56) as u8 }
        })
        .collect();
    if len > SHORT_VALUE_MAX {
        batch.put(Cf::Default, &versioned(&storage, start_ts), &value);
    }
    let short_value = (len <= SHORT_VALUE_MAX).then_some(value.as_slice());
    let record = WriteRecord { kind: WriteKind::Put, start_ts, short_value };
    batch.put(Cf::Write, &versioned(&storage, commit_ts), &record.encode());
}

fn start() -> Instant {
    PerfContext::default().reset();
    Instant::now()
}

/// The deleted and superseded records that this thread has walked since [`start`].
fn since_start() -> u64 {
    let counters = PerfContext::default();
    counters.metric(PerfMetric::InternalKeySkippedCount) + counters.metric(PerfMetric::InternalDeleteSkippedCount)
}

fn median(of: &mut [Duration]) -> Duration {
    of.sort_unstable();
    of[of.len() / 2]
}
