//! W8: reads by one thread of a log of 1000 groups, entries of 512 B, written in batches of four: a random entry, a
//! random range of 100 entries, and whole groups as a follower far behind reads them, with an empty page cache.
//!
//! 1 GB, from a tenth of the scale on. Block caches hold a sixteenth of it, in engines that have one.

use rand::Rng;

use super::{Cell, Context, Prepared, Scale, Target, megabytes};
use crate::engines::{Batch, EngineKind, RaftLog, Settings};
use crate::measure::{Figures, Meter, Tally, closed_loop, drop_cache, on_threads};
use crate::payload::{Payloads, generator};

const GROUPS: u64 = 1000;
const ENTRY: u64 = 512;
const PER_BATCH: u64 = 4;
const RANGE: u64 = 100;
/// About 1 MB, the most that a follower is sent at once.
const CATCH_UP: u64 = 2000;
const WRITERS: usize = 10;

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let full = (1 << 30) / GROUPS / ENTRY;
    let per_group = scale.of(10 * full, 2 * RANGE).min(full) / PER_BATCH * PER_BATCH;
    let sized = Sized { per_group, cache_bytes: (per_group * GROUPS * ENTRY / 16) as usize };
    vec![
        cell(sized, "get", "a random entry", "ops/s", |context, sized| random(context, sized, 1)),
        cell(sized, "range100", "a random range of 100 entries", "ops/s", |context, sized| {
            random(context, sized, RANGE)
        }),
        cell(sized, "catch-up", "whole groups, cold", "MB/s", catch_up),
    ]
}

/// The amount of data.
#[derive(Clone, Copy)]
struct Sized {
    per_group: u64,
    cache_bytes: usize,
}

fn cell(sized: Sized, name: &str, what: &str, rate: &'static str, run: fn(&Context, Sized) -> Figures) -> Cell {
    let bytes = sized.per_group * GROUPS * ENTRY;
    Cell {
        name: format!("W8/{name}"),
        about: format!("{what}; 1000 groups, {} of 512 B entries, four to a batch", megabytes(bytes)),
        headline: rate,
        targets: vec![
            (rate, Target::Times(EngineKind::RaftEngine, 2.0)),
            (rate, Target::Times(EngineKind::RocksDb, 1.0)),
        ],
        prepared: Some(Prepared { name: "reads".to_owned(), write: Box::new(move |context| write(context, sized)) }),
        cold: false,
        run: Box::new(move |context| run(context, sized)),
    }
}

fn open(context: &Context, sized: Sized) -> Box<dyn RaftLog> {
    // More than is ever written: purge must do nothing.
    context.open(Settings {
        cache_bytes: sized.cache_bytes,
        purge_threshold: 100 << 30,
        prefill: false,
        ..Settings::default()
    })
}

fn write(context: &Context, sized: Sized) {
    let payloads = Payloads::half_compressible();
    let log = open(context, sized);
    on_threads(WRITERS, |thread| {
        let mut rng = generator(thread as u64);
        for first in (1..=sized.per_group).step_by(PER_BATCH as usize) {
            for group in (thread as u64..GROUPS).step_by(WRITERS) {
                let entries = (first..first + PER_BATCH).map(|index| payloads.entry(&mut rng, index, ENTRY as usize));
                log.write(Batch::default().append(group, first, entries.collect()), false);
            }
        }
        Tally::default()
    });
    log.settle();
}

fn random(context: &Context, sized: Sized, count: u64) -> Figures {
    let log = open(context, sized);
    let meter = Meter::start(&context.dir);
    let tally = closed_loop(1, context.time, |_| {
        let mut rng = generator(8);
        let log = log.as_ref();
        move |tally| {
            let (group, first) = (rng.random_range(0..GROUPS), rng.random_range(1..=sized.per_group + 1 - count));
            let bytes = tally.timed(count * ENTRY, || match count {
                1 => log.entry(group, first).len() as u64,
                _ => log.entries(group, first, first + count),
            });
            assert_eq!(bytes, count * ENTRY);
        }
    });
    meter.stop_reading("ops/s", &tally)
}

/// Reads every hundredth group. Groups share pages of the log, so with more groups more would come from the page cache.
/// The page cache is dropped after the open, which reads the whole log in some engines.
fn catch_up(context: &Context, sized: Sized) -> Figures {
    let log = open(context, sized);
    drop_cache(&context.dir);
    let meter = Meter::start(&context.dir);
    let mut tally = Tally::default();
    for group in (0..GROUPS).step_by(100) {
        for first in (1..=sized.per_group).step_by(CATCH_UP as usize) {
            let end = (first + CATCH_UP).min(sized.per_group + 1);
            tally.timed((end - first) * ENTRY, || log.entries(group, first, end));
        }
    }
    meter.stop_reading("MB/s", &tally)
}
