//! W9: large entries, against the sequential bandwidth of the disk: 1 and 8 MB with LZ4, 8 MB without, each synced or
//! not.
//!
//! Four threads with a group each, which keep their last entries, in a log in steady state (see `steady`). Purge is
//! called every 100 ms. The last entry of each thread is synced within the measured time: only data on the disk counts.
//! MB are those of the payload, which LZ4 halves.

use std::time::Duration;

use super::{Cell, Context, Scale, Target, steady};
use crate::engines::{Batch, Settings};
use crate::limits::BANDWIDTH;
use crate::measure::{Figures, Meter, Tally, beside, on_threads};
use crate::payload::{Payloads, generator};

const THREADS: usize = 4;
const KEPT: u64 = 4;

#[derive(Clone, Copy)]
struct Variant {
    megabytes: u64,
    sync: bool,
    compress: bool,
}

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    // Several files of every engine.
    let bytes = scale.of(8 << 30, 64 << 20);
    let mut cells = Vec::new();
    for (megabytes, compress) in [(1, true), (8, true), (8, false)] {
        for sync in [false, true] {
            cells.push(cell(Variant { megabytes, sync, compress }, bytes, scale));
        }
    }
    cells
}

fn cell(variant: Variant, bytes: u64, scale: Scale) -> Cell {
    let Variant { megabytes, sync, compress } = variant;
    let settings = Settings { compress, ..steady::settings(scale) };
    let entries = bytes / (megabytes << 20);
    Cell {
        name: format!("W9/{megabytes}MB{}{}", if sync { "-sync" } else { "" }, if compress { "" } else { "-raw" }),
        about: format!(
            "{entries} entries of {megabytes} MiB, {}, {}, {THREADS} threads",
            if sync { "synced" } else { "synced at the end" },
            if compress { "LZ4" } else { "no compression" },
        ),
        headline: "MB/s",
        targets: vec![("MB/s", Target::OfLimit(BANDWIDTH, 0.95))],
        prepared: Some(steady::prepared(scale)),
        cold: false,
        run: Box::new(move |context| run(context, variant, entries, &settings)),
    }
}

fn run(context: &Context, variant: Variant, entries: u64, settings: &Settings) -> Figures {
    let payloads = Payloads::half_compressible();
    let log = context.open(*settings);
    let log = log.as_ref();
    steady::warm(log, &payloads, settings);
    let len = (variant.megabytes << 20) as usize;
    let per_thread = entries / THREADS as u64;
    let meter = Meter::start(&context.dir);
    let write = || {
        on_threads(THREADS, |thread| {
            let (mut tally, mut rng, group) = (Tally::default(), generator(thread as u64), thread as u64);
            let start = log.last(group) + 1;
            for index in start..start + per_thread {
                let mut batch = Batch::default().append(group, index, vec![payloads.entry(&mut rng, index, len)]);
                if index > KEPT {
                    batch = batch.compact(group, index - KEPT, index + 1 - KEPT);
                }
                let sync = variant.sync || index + 1 == start + per_thread;
                tally.timed(batch.bytes(), || log.write(batch, sync));
            }
            tally
        })
    };
    let tally = beside(Duration::from_millis(100), || drop(log.purge()), write);
    meter.stop("MB/s", &tally)
}
