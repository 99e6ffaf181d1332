//! W5: the cost of freeing space. 10,000 groups: nine in ten write five entries once and then nothing; the others write
//! entries of 2 KB, ten times the purge threshold in all, and keep a quarter of it.
//!
//! The entries of the idle groups are spread over the first half, so that every file has a few live entries among dead
//! ones. One thread, not synced. Purge is called after each twentieth of the threshold, and the groups that it names
//! are compacted to their last 8 entries.
//!
//! `rewritten-bytes/byte` counts the bytes written within calls of purge. RocksDB writes in the background instead:
//! only its total is known.

use rand::Rng;
use rand::rngs::StdRng;

use super::{Cell, Context, Scale, Target, megabytes};
use crate::engines::{Batch, EngineKind, RaftLog, Settings};
use crate::measure::{Figures, HighWater, Meter, Tally, push, written};
use crate::payload::{Payloads, generator};

const ENTRY: usize = 2048;
const IDLE_ENTRY: usize = 256;
const IDLE_ENTRIES: u64 = 5;
const KEPT_OF_LAGGING: u64 = 8;
const STATE: &[u8] = b"state";

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let threshold = (scale.threshold() / 2) & !4095;
    // Fewer in a quick run, whose space they would fill.
    let groups = scale.of(100_000, 1000).min(10_000);
    vec![Cell {
        name: "W5/purge".to_owned(),
        about: format!(
            "{groups} groups, 90 % idle; {} written, purge beyond {}",
            megabytes(10 * threshold),
            megabytes(threshold),
        ),
        headline: "rewritten-bytes/byte",
        targets: vec![
            ("rewritten-bytes/byte", Target::Times(EngineKind::RaftEngine, 1.0 / 0.7)),
            ("disk-high-water/threshold", Target::AtMost(1.3)),
        ],
        prepared: None,
        cold: false,
        run: Box::new(move |context| run(context, threshold, groups)),
    }]
}

fn run(context: &Context, threshold: u64, groups: u64) -> Figures {
    let active = groups / 10;
    let log = context.open(Settings { purge_threshold: threshold, prefill: false, ..Settings::default() });
    let mut store = Store {
        log: log.as_ref(),
        payloads: Payloads::half_compressible(),
        rng: generator(5),
        active,
        kept: (threshold / 4 / active / ENTRY as u64).max(KEPT_OF_LAGGING),
        bounds: vec![(1, 0); groups as usize],
    };
    let water = HighWater::watch(&context.dir);
    let meter = Meter::start(&context.dir);
    let mut tally = Tally::default();
    let (mut rewritten, mut longest, mut purged_at) = (0, 0.0f64, 0);
    let mut idle = active..groups;
    while tally.bytes < 10 * threshold {
        store.append(&mut tally);
        if tally.bytes / 5 * (groups - active) > (idle.start - active) * threshold {
            idle.next().into_iter().for_each(|group| store.append_idle(group, &mut tally));
        }
        if tally.bytes - purged_at > threshold / 20 {
            purged_at = tally.bytes;
            let (before, since) = (written(), meter.elapsed());
            let lagging = store.log.purge();
            longest = longest.max((meter.elapsed() - since).as_secs_f64());
            rewritten += written() - before;
            lagging.into_iter().for_each(|group| store.compact_lagging(group));
        }
    }
    let bytes = tally.bytes as f64;
    let mut figures = meter.stop("ops/s", &tally);
    if context.engine != EngineKind::RocksDb {
        push(&mut figures, "rewritten-bytes/byte", rewritten as f64 / bytes);
        push(&mut figures, "longest-purge-ms", longest * 1e3);
    }
    push(&mut figures, "disk-high-water/threshold", water.finish() as f64 / threshold as f64);
    figures
}

struct Store<'a> {
    log: &'a dyn RaftLog,
    payloads: Payloads,
    rng: StdRng,
    /// The number of active groups, the first ones.
    active: u64,
    /// An active group keeps between this many entries and twice as many.
    kept: u64,
    /// First and last index of each group.
    bounds: Vec<(u64, u64)>,
}

impl Store<'_> {
    fn append(&mut self, tally: &mut Tally) {
        let group = self.rng.random_range(0..self.active);
        let (first, last) = &mut self.bounds[group as usize];
        *last += 1;
        let entry = self.payloads.entry(&mut self.rng, *last, ENTRY);
        let mut batch = Batch::default().append(group, *last, vec![entry]).put(group, STATE, vec![7; 32]);
        if *last - *first >= 2 * self.kept {
            batch = batch.compact(group, *first, *last - self.kept);
            *first = *last - self.kept;
        }
        tally.timed(batch.bytes(), || self.log.write(batch, false));
    }

    fn append_idle(&mut self, group: u64, tally: &mut Tally) {
        self.bounds[group as usize].1 = IDLE_ENTRIES;
        let entries = (1..=IDLE_ENTRIES).map(|index| self.payloads.entry(&mut self.rng, index, IDLE_ENTRY)).collect();
        let batch = Batch::default().append(group, 1, entries).put(group, STATE, vec![7; 32]);
        tally.timed(batch.bytes(), || self.log.write(batch, false));
    }

    fn compact_lagging(&mut self, group: u64) {
        let (first, last) = &mut self.bounds[group as usize];
        let to = (*last + 1).saturating_sub(KEPT_OF_LAGGING);
        if *first < to {
            self.log.write(Batch::default().compact(group, *first, to), false);
            *first = to;
        }
    }
}
