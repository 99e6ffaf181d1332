//! W2: small synced appends, one entry of 256 B to a batch, from 1 to 64 threads with a group each.
//!
//! The log is in steady state (see `steady`). During the run, groups are compacted and purge is called every 100 ms, as
//! a store does.

use std::time::Duration;

use super::{Cell, Context, Scale, Target, steady};
use crate::engines::{Batch, EngineKind, RaftLog, Settings};
use crate::limits::SYNCS;
use crate::measure::{Figures, Meter, Tally, closed_loop, with_background_task};
use crate::payload::{Payloads, generator};

const ENTRY: usize = 256;
const THREADS: [usize; 4] = [1, 4, 16, 64];
/// A group keeps between this many entries and twice as many.
const KEPT: u64 = 256;

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells: Vec<Cell> = THREADS.map(|threads| cell(threads, false, scale)).into();
    cells.push(cell(16, true, scale));
    cells
}

/// With `random`, the data is incompressible.
fn cell(threads: usize, random: bool, scale: Scale) -> Cell {
    let targets = match threads {
        1 => vec![("ops/s", Target::OfLimit(SYNCS, 0.9))],
        4 => Vec::new(),
        _ => vec![
            ("ops/s", Target::Times(EngineKind::RaftEngine, 1.5)),
            ("p99-us", Target::Times(EngineKind::RaftEngine, 1.0 / 0.7)),
        ],
    };
    Cell {
        name: format!("W2/{threads}thr{}", if random { "-random" } else { "" }),
        about: format!(
            "synced appends of 256 B, {}, one to a batch, {threads} thread(s)",
            if random { "incompressible" } else { "half-compressible" }
        ),
        headline: "ops/s",
        targets,
        prepared: Some(steady::prepared(scale)),
        cold: false,
        run: Box::new(move |context| {
            let payloads = if random { Payloads::incompressible() } else { Payloads::half_compressible() };
            run(context, threads, &payloads, &steady::settings(scale))
        }),
    }
}

fn run(context: &Context, threads: usize, payloads: &Payloads, settings: &Settings) -> Figures {
    let log = context.open(*settings);
    let log = log.as_ref();
    steady::warm(log, payloads, settings);
    let meter = Meter::start(&context.dir);
    let writers = || closed_loop(threads, context.time, |thread| writer(log, payloads, thread as u64));
    let tally = with_background_task(Duration::from_millis(100), || drop(log.purge()), writers);
    meter.stop("ops/s", &tally)
}

fn writer<'a>(log: &'a dyn RaftLog, payloads: &'a Payloads, group: u64) -> impl FnMut(&mut Tally) + 'a {
    let mut rng = generator(group);
    // The first compaction removes what earlier rounds left of the group.
    let mut next = log.last(group) + 1;
    let mut first = next;
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
