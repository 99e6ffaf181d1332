//! W4: the time and memory of opening a log after a kill, with an empty page cache.
//!
//! The log: 100 groups, entries of 1 KB, one to a batch (1KB) or a thousand (1MB). It is written once per engine; the
//! writing process ends without closing it, its last batches synced. Every open has a process of its own. RocksDB is
//! opened read-only, so that every round finds the same WAL: an ordinary open also flushes what it replayed, and the
//! next one has nothing left to do.

use std::time::Instant;

use super::{Cell, Context, Prepared, Scale, Target, megabytes};
use crate::engines::{Batch, EngineKind, Settings};
use crate::measure::{Figures, Tally, on_threads, peak_resident, push, read_from_device, resident};
use crate::payload::{Payloads, generator};

const GROUPS: u64 = 100;
const ENTRY: u64 = 1000;
const THREADS: [usize; 3] = [1, 4, 16];
/// Writing threads; each group belongs to one of them.
const WRITERS: usize = 10;
/// The index memory per entry that the acceptance table allows.
const INDEX_BYTES: u64 = 16;
/// And per thread.
const THREAD_BYTES: u64 = 32 << 20;

/// The entries of a batch, and the required speedup against raft-engine.
const BATCHES: [(&str, u64, f64); 2] = [("1MB", 1000, 2.0), ("1KB", 1, 5.0)];

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    // The same number of full batches for every group.
    let per_group = scale.of(10_000_000 / GROUPS, 1000) / 1000 * 1000;
    let variants = BATCHES.iter().flat_map(|batches| THREADS.map(|threads| (*batches, threads)));
    variants.map(|(batches, threads)| cell(batches, threads, per_group)).collect()
}

fn settings(recovery_threads: usize) -> Settings {
    // More than is ever written: purge must do nothing.
    Settings { purge_threshold: 100 << 30, prefill: false, recovery_threads, ..Settings::default() }
}

fn cell((name, per_batch, times): (&'static str, u64, f64), threads: usize, per_group: u64) -> Cell {
    let entries = per_group * GROUPS;
    let most = (entries * INDEX_BYTES + THREAD_BYTES * threads as u64) as f64 / 1e6;
    Cell {
        name: format!("W4/{name}-{threads}thr"),
        about: format!(
            "open after a kill, cold, {threads} thread(s): {} of 1 KB entries in batches of {per_batch}",
            megabytes(entries * ENTRY),
        ),
        headline: "entries/s",
        targets: vec![
            ("entries/s", Target::Times(EngineKind::RaftEngine, times)),
            ("peak-rss-MB", Target::AtMost(most)),
        ],
        prepared: Some(Prepared {
            name: format!("recovery-{name}"),
            write: Box::new(move |context| write(context, per_group, per_batch)),
        }),
        cold: true,
        run: Box::new(move |context| run(context, threads, per_group)),
    }
}

fn write(context: &Context, per_group: u64, per_batch: u64) {
    let payloads = Payloads::half_compressible();
    let log = context.open(settings(4));
    on_threads(WRITERS, |thread| {
        let mut rng = generator(thread as u64);
        for batch in 0..per_group / per_batch {
            let first = 1 + batch * per_batch;
            let last_one = first + per_batch > per_group;
            for group in (thread as u64..GROUPS).step_by(WRITERS) {
                let entries = (first..first + per_batch).map(|index| payloads.entry(&mut rng, index, ENTRY as usize));
                log.write(Batch::default().append(group, first, entries.collect()), last_one);
            }
        }
        Tally::default()
    });
}

fn run(context: &Context, threads: usize, per_group: u64) -> Figures {
    let (memory, read) = (resident(), read_from_device());
    let started = Instant::now();
    let log = context.open(Settings { frozen: true, ..settings(threads) });
    let took = started.elapsed().as_secs_f64();
    let (peak, read) = (peak_resident().saturating_sub(memory), read_from_device() - read);
    for group in 0..GROUPS {
        assert_eq!(log.last(group), per_group, "group {group}");
        let entry = log.entry(group, per_group / 2);
        assert_eq!(entry[..8], (per_group / 2).to_le_bytes(), "group {group}");
    }
    let entries = (per_group * GROUPS) as f64;
    let mut figures = Figures::new();
    push(&mut figures, "entries/s", entries / took);
    push(&mut figures, "GB/s", entries * ENTRY as f64 / 1e9 / took);
    push(&mut figures, "open-ms", took * 1e3);
    push(&mut figures, "peak-rss-MB", peak as f64 / 1e6);
    push(&mut figures, "read-MB", read as f64 / 1e6);
    figures
}
