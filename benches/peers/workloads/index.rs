//! W7: the memory of an entry: 10 million entries of 256 B at full size, 64 to a batch, and one to a batch.
//!
//! 16 groups, a thread for each. No cache, so that only the index is measured.

use super::{Cell, Context, Scale, Target};
use crate::engines::{Batch, Settings};
use crate::measure::{Figures, Meter, Tally, on_threads, push, resident};
use crate::payload::{Payloads, generator};

const GROUPS: u64 = 16;
const ENTRY: usize = 256;
const PER_BATCH: u64 = 64;
const TARGET: &str = "rss-MB-per-100k-entries";

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let per_group = scale.of(10_000_000 / GROUPS, 1000) / PER_BATCH * PER_BATCH;
    [("batched", PER_BATCH), ("single", 1)].map(|(name, per_batch)| cell(name, per_group, per_batch)).into()
}

fn cell(name: &str, per_group: u64, per_batch: u64) -> Cell {
    Cell {
        name: format!("W7/{name}"),
        about: format!("{} entries of 256 B in batches of {per_batch}, not synced", per_group * GROUPS),
        headline: TARGET,
        targets: vec![(TARGET, Target::AtMost(1.6))],
        prepared: None,
        cold: false,
        run: Box::new(move |context| run(context, per_group, per_batch)),
    }
}

fn run(context: &Context, per_group: u64, per_batch: u64) -> Figures {
    let payloads = Payloads::half_compressible();
    // More than is ever written: purge must do nothing.
    let settings = Settings { cache_bytes: 0, prefill: false, purge_threshold: 100 << 30, ..Settings::default() };
    let log = context.open(settings);
    let memory = resident();
    let meter = Meter::start(&context.dir);
    let mut tally = on_threads(GROUPS as usize, |group| {
        let (mut tally, mut rng) = (Tally::default(), generator(group as u64));
        for batch in 0..per_group / per_batch {
            let first = 1 + batch * per_batch;
            let entries = (first..first + per_batch).map(|index| payloads.entry(&mut rng, index, ENTRY)).collect();
            let batch = Batch::default().append(group as u64, first, entries);
            tally.timed(batch.bytes(), || log.write(batch, false));
        }
        tally
    });
    tally.operations *= per_batch;
    let mut figures = meter.stop("entries/s", &tally);
    log.settle();
    let memory = resident().saturating_sub(memory) as f64;
    push(&mut figures, TARGET, memory / 1e6 / ((per_group * GROUPS) as f64 / 1e5));
    figures
}
