//! W2: small synced appends, one entry of 256 B to a batch, from 1 to 64 threads with a group each.
//!
//! Before the measurement the log is brought to how it is after a long time: files have been written, given up and kept for
//! reuse. While it runs, groups are compacted and purge is called every 100 ms, as a store does.

use std::time::Duration;

use super::{Cell, Context, Scale, Target};
use crate::engines::{Batch, EngineKind, RaftLog, Settings};
use crate::limits::SYNCS;
use crate::measure::{Figures, Meter, Tally, beside, closed_loop};
use crate::payload::{Payloads, generator};

const ENTRY: usize = 256;
const THREADS: [usize; 4] = [1, 4, 16, 64];
/// A group keeps between this many entries and twice as many.
const KEPT: u64 = 256;
const WARM_ENTRY: usize = 64 << 10;
const WARM_GROUP: u64 = 1_000_000;

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    THREADS.map(|threads| cell(threads, scale.steady_threshold())).into()
}

fn cell(threads: usize, threshold: u64) -> Cell {
    let targets = match threads {
        1 => vec![("ops/s", Target::OfLimit(SYNCS, 0.9))],
        4 => Vec::new(),
        _ => vec![
            ("ops/s", Target::Times(EngineKind::RaftEngine, 1.5)),
            ("p99-us", Target::Times(EngineKind::RaftEngine, 1.0 / 0.7)),
        ],
    };
    Cell {
        name: format!("W2/{threads}thr"),
        about: format!("synced appends of 256 B, one to a batch, {threads} thread(s)"),
        headline: "ops/s",
        targets,
        prepared: None,
        cold: false,
        run: Box::new(move |context| run(context, threads, threshold)),
    }
}

fn run(context: &Context, threads: usize, threshold: u64) -> Figures {
    let payloads = Payloads::half_compressible();
    let log = context.open(Settings { purge_threshold: threshold, ..Settings::default() });
    let log = log.as_ref();
    warm(log, &payloads, threshold);
    let meter = Meter::start(&context.dir);
    let writers = || closed_loop(threads, context.time, |thread| writer(log, &payloads, thread as u64));
    let tally = beside(Duration::from_millis(100), || drop(log.purge()), writers);
    meter.stop("ops/s", &tally)
}

fn writer<'a>(log: &'a dyn RaftLog, payloads: &'a Payloads, group: u64) -> impl FnMut(&mut Tally) + 'a {
    let mut rng = generator(group);
    let (mut next, mut first) = (1, 1);
    move |tally| {
        let mut batch = Batch::default().append(group, next, vec![payloads.entry(&mut rng, next, ENTRY)]);
        next += 1;
        if next - first > 2 * KEPT {
            batch = batch.compact(group, first, first + KEPT);
            first += KEPT;
        }
        tally.timed(batch.bytes(), || log.write(batch, true));
    }
}

/// Writes more than two files (RocksDB: memtables) of the size that goes with a purge threshold; they are then given up and kept for
/// reuse.
pub fn warm(log: &dyn RaftLog, payloads: &Payloads, threshold: u64) {
    let bytes = threshold * 3 / 8;
    let mut rng = generator(WARM_GROUP);
    for index in 1..=bytes / WARM_ENTRY as u64 {
        let entry = payloads.entry(&mut rng, index, WARM_ENTRY);
        log.write(Batch::default().append(WARM_GROUP, index, vec![entry]).compact(WARM_GROUP, index - 1, index), false);
        if index.is_multiple_of(256) {
            log.purge();
        }
    }
    log.settle();
}
