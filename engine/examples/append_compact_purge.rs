//! Appends, compacts and purges, like a store with a few hundred Raft groups, and prints the throughput.
//!
//! ```text
//! cargo run --release -p engine --example append_compact_purge -- --dir DIR --seconds 30
//! ```
//!
//! Each write appends one entry of 32 KiB to a group drawn from a normal distribution (mean 128, deviation 96; negative
//! draws are 0) and sets a small key of the group to the index of the entry. Every 32nd entry of a group compacts the
//! group to about 32 entries. After every 1024 writes the log is purged, and groups that pin old files are compacted to
//! their last 8 entries. The program comes from an article about a peer (raft-engine), rewritten for this log, with
//! bounds.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a program at the edge: it reads the clock and may fail"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use engine::disk::RealDisk;
use engine::log::{Budget, Durability, GroupId, LogBatch, LogEngine, LogOptions, PurgeOutcome};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const LAST_INDEX: &[u8] = b"last_index";
const WRITES_PER_PURGE: u64 = 1024;
const COMPACT_EVERY: u64 = 32;
const KEPT_OF_LAGGING: u64 = 8;

/// Appends, compacts and purges, and prints the throughput
#[derive(Parser)]
struct Options {
    /// Directory of the log; it is kept, and the next run continues it
    #[arg(long, default_value = "append-compact-purge-data")]
    dir: PathBuf,
    /// Stop after this many seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Stop after this many writes
    #[arg(long)]
    writes: Option<u64>,
    /// Bytes of an entry
    #[arg(long, default_value_t = 32 << 10)]
    entry_bytes: usize,
    /// Size of all files above which purge rewrites live data
    #[arg(long, default_value_t = 2 << 30)]
    purge_threshold: u64,
    /// Make each write durable before the next one
    #[arg(long)]
    sync: bool,
    /// Compress entries with LZ4
    #[arg(long)]
    compress: bool,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds between output lines
    #[arg(long, default_value_t = 1)]
    interval: u64,
}

fn main() {
    let options = Options::parse();
    let defaults = LogOptions::default();
    let compress_from = if options.compress { defaults.compress_from } else { usize::MAX };
    let settings = LogOptions { purge_threshold: options.purge_threshold, compress_from, ..defaults };
    let disk = RealDisk::open(&options.dir).unwrap_or_else(|error| {
        eprintln!("append_compact_purge: {}: {error}", options.dir.display());
        std::process::exit(1);
    });
    let (log, report) = LogEngine::open(disk, settings).unwrap_or_else(|error| {
        eprintln!("append_compact_purge: {}: {error}", options.dir.display());
        std::process::exit(1);
    });
    println!("{}: {} groups, {} entries", options.dir.display(), report.groups, report.entries);
    let program = Program { log: &log, rng: StdRng::seed_from_u64(options.seed), compactions: 0, freed: 0 };
    program.run(&options);
    log.close();
}

struct Program<'a> {
    log: &'a LogEngine,
    rng: StdRng,
    compactions: u64,
    /// Bytes of removed files.
    freed: u64,
}

impl Program<'_> {
    fn run(mut self, options: &Options) {
        let entry = Bytes::from(vec![b'x'; options.entry_bytes]);
        let durability = if options.sync { Durability::Synced } else { Durability::Buffered };
        let (started, end) = (Instant::now(), Duration::from_secs(options.seconds));
        let (mut shown, mut shown_writes, mut writes) = (started, 0, 0);
        while started.elapsed() < end && options.writes.is_none_or(|most| writes < most) {
            self.append(&entry, durability);
            writes += 1;
            if writes.is_multiple_of(WRITES_PER_PURGE) {
                self.purge();
            }
            if shown.elapsed() >= Duration::from_secs(options.interval) {
                self.show(writes - shown_writes, shown.elapsed(), options.entry_bytes);
                (shown, shown_writes) = (Instant::now(), writes);
            }
        }
        println!("{writes} writes in all:");
        self.show(writes, started.elapsed(), options.entry_bytes);
    }

    fn append(&mut self, entry: &Bytes, durability: Durability) {
        let group = GroupId(self.normal(128.0, 96.0));
        let index = self.last_index(group) + 1;
        let mut batch = LogBatch::new();
        batch.append(group, index, vec![entry.clone()]);
        batch.put(group, LAST_INDEX, &index.to_le_bytes());
        self.log.write(batch, durability).unwrap();
        if index.is_multiple_of(COMPACT_EVERY) {
            let kept = self.normal(32.0, 16.0);
            self.compact(group, index.saturating_sub(kept));
        }
    }

    /// One call does one step. The next step needs the writer to have done this one; here there is always a next one.
    fn purge(&mut self) {
        loop {
            let report = self.log.purge(Budget::default()).unwrap();
            self.freed += report.freed;
            for lagging in &report.pinning {
                self.compact(lagging.group, (self.last_index(lagging.group) + 1).saturating_sub(KEPT_OF_LAGGING));
            }
            if report.outcome == PurgeOutcome::Idle {
                return;
            }
            // The queue is in order: when this batch is done, the step is done.
            self.log.write(LogBatch::new(), Durability::Buffered).unwrap();
        }
    }

    fn compact(&mut self, group: GroupId, first_kept: u64) {
        if self.log.bounds(group).is_some_and(|bounds| bounds.first < first_kept) {
            let mut batch = LogBatch::new();
            batch.compact(group, first_kept);
            self.log.write(batch, Durability::Buffered).unwrap();
            self.compactions += 1;
        }
    }

    fn last_index(&self, group: GroupId) -> u64 {
        let value = self.log.get(group, LAST_INDEX).unwrap();
        value.map_or(0, |value| u64::from_le_bytes(value.as_ref().try_into().unwrap()))
    }

    /// A draw from a normal distribution (Box and Muller 1958); negative draws are 0.
    fn normal(&mut self, mean: f64, deviation: f64) -> u64 {
        let radius = (-2.0 * (1.0 - self.rng.random::<f64>()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.rng.random::<f64>();
        (mean + deviation * radius * angle.cos()) as u64
    }

    fn show(&self, writes: u64, took: Duration, entry_bytes: usize) {
        let per_second = writes as f64 / took.as_secs_f64();
        println!(
            "{per_second:9.0} writes/s {:8.1} MB/s   log {:7.1} MB, freed {:9.1} MB, {} compactions",
            per_second * entry_bytes as f64 / 1e6,
            self.log.stats().disk_bytes as f64 / 1e6,
            self.freed as f64 / 1e6,
            self.compactions,
        );
    }
}
