//! W3: the load of a store. 1000 groups, synced appends of 256 B to 4 KB with a small key in each batch, a random read
//! with every tenth, groups compacted as they grow, and a follower far behind that reads a tenth of the groups from
//! their start.
//!
//! The first half runs without purge, the second half with purge on a log at 1.5 times its threshold. A group that the
//! follower reads is compacted only when purge asks for it, and never past the follower.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use super::{Cell, Context, Scale, Target, megabytes};
use crate::engines::{Batch, EngineKind, RaftLog, Settings};
use crate::measure::{Figures, Meter, Tally, closed_loop, on_threads, push, with_background_task};
use crate::payload::{Payloads, generator};

const GROUPS: usize = 1000;
const WRITERS: usize = 8;
const SIZES: std::ops::RangeInclusive<usize> = 256..=4096;
const STATE: &[u8] = b"state";
/// A group keeps between this many entries and twice as many.
const KEPT: u64 = 64;
/// Entries that the follower reads at a time.
const RANGE: u64 = 64;
/// The follower reads one group in so many.
const LAGGING: usize = 10;

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    vec![
        cell("mixed", "half-compressible", Payloads::half_compressible, scale),
        cell("random", "incompressible", Payloads::incompressible, scale),
    ]
}

fn cell(name: &str, data: &str, payloads: fn() -> Payloads, scale: Scale) -> Cell {
    let threshold = scale.threshold();
    Cell {
        name: format!("W3/{name}"),
        about: format!(
            "1000 groups, {WRITERS} threads, synced, 256 B to 4 KB ({data}) and a key, reads, a follower far behind; \
             {} beyond a purge threshold of {}",
            megabytes(threshold / 2),
            megabytes(threshold),
        ),
        headline: "ops/s",
        targets: vec![
            ("ops/s", Target::Times(EngineKind::RaftEngine, 1.3)),
            ("p99.9-idle-us", Target::AtMost(1000.0)),
            ("p99.9-purge/idle", Target::AtMost(2.0)),
        ],
        prepared: None,
        cold: false,
        run: Box::new(move |context| run(context, threshold, payloads())),
    }
}

/// A group, as its writer, the follower and purge see it.
#[derive(Default)]
struct Group {
    first: AtomicU64,
    last: AtomicU64,
    /// The next index that the follower will read.
    wanted: AtomicU64,
    /// Whether purge asked for compaction.
    compaction_requested: AtomicBool,
}

struct Store<'a> {
    log: &'a dyn RaftLog,
    payloads: Payloads,
    groups: Vec<Group>,
}

fn run(context: &Context, threshold: u64, payloads: Payloads) -> Figures {
    let log = context.open(Settings { purge_threshold: threshold, ..Settings::default() });
    let groups = (0..GROUPS).map(|_| Group { first: 1.into(), wanted: 1.into(), ..Group::default() }).collect();
    let store = Store { log: log.as_ref(), payloads, groups };
    store.fill(threshold * 3 / 2);
    let half = context.time / 2;
    let mut follower = Follower { store: &store, at: 0 };
    let follow = Duration::from_millis(5);
    let meter = Meter::start(&context.dir);
    let quiet =
        with_background_task(follow, || follower.read(), || closed_loop(WRITERS, half, |thread| store.writer(thread)));
    let purging = with_background_task(
        Duration::from_millis(50),
        || store.purge(),
        || {
            with_background_task(
                follow,
                || follower.read(),
                || closed_loop(WRITERS, half, |thread| store.writer(thread)),
            )
        },
    );
    let mut both = Tally::default();
    both.merge(&quiet);
    both.merge(&purging);
    let mut figures = meter.stop("ops/s", &both);
    push(&mut figures, "p99.9-idle-us", quiet.micros(0.999));
    push(&mut figures, "p99.9-purge-us", purging.micros(0.999));
    push(&mut figures, "p99.9-purge/idle", purging.micros(0.999) / quiet.micros(0.999));
    figures
}

impl Store<'_> {
    /// Writes `bytes` of payload without syncs.
    fn fill(&self, bytes: u64) {
        on_threads(WRITERS, |thread| {
            let (mut tally, mut rng) = (Tally::default(), generator(100 + thread as u64));
            while tally.bytes < bytes / WRITERS as u64 {
                self.append(thread, &mut rng, false, &mut tally);
            }
            tally
        });
    }

    fn writer(&self, thread: usize) -> impl FnMut(&mut Tally) + '_ {
        let mut rng = generator(thread as u64);
        let mut turn = 0u64;
        move |tally| {
            let number = self.append(thread, &mut rng, true, tally);
            turn += 1;
            if turn.is_multiple_of(10) {
                let group = &self.groups[number];
                let (first, last) = (group.first.load(Ordering::Relaxed), group.last.load(Ordering::Relaxed));
                assert!(self.log.entry(number as u64, rng.random_range(first..=last)).len() >= *SIZES.start());
                tally.operations += 1;
            }
        }
    }

    /// Appends to one of the groups of the thread. Returns which.
    fn append(&self, thread: usize, rng: &mut StdRng, sync: bool, tally: &mut Tally) -> usize {
        let number = rng.random_range(0..GROUPS / WRITERS) * WRITERS + thread;
        let group = &self.groups[number];
        let index = group.last.load(Ordering::Relaxed) + 1;
        let len = rng.random_range(SIZES);
        let entry = self.payloads.entry(rng, index, len);
        let batch = Batch::default().append(number as u64, index, vec![entry]).put(number as u64, STATE, vec![7; 32]);
        let bytes = batch.bytes();
        let first = group.first.load(Ordering::Relaxed);
        let keep_from = self.keep_from(number, index);
        let batch = if first < keep_from { batch.compact(number as u64, first, keep_from) } else { batch };
        tally.timed(bytes, || self.log.write(batch, sync));
        group.first.store(first.max(keep_from), Ordering::Relaxed);
        // The follower may read it from now on.
        group.last.store(index, Ordering::Release);
        number
    }

    /// The first index that a group must keep when its last is `last`.
    fn keep_from(&self, number: usize, last: u64) -> u64 {
        let group = &self.groups[number];
        if number.is_multiple_of(LAGGING) {
            let compaction_requested = group.compaction_requested.swap(false, Ordering::AcqRel);
            return if compaction_requested { group.wanted.load(Ordering::Acquire).min(last) } else { 0 };
        }
        let first = group.first.load(Ordering::Relaxed);
        if last - first >= 2 * KEPT { last - KEPT } else { 0 }
    }

    fn purge(&self) {
        for number in self.log.purge() {
            self.groups[number as usize].compaction_requested.store(true, Ordering::Release);
        }
    }
}

/// Reads the lagging groups, one range at a time.
struct Follower<'a> {
    store: &'a Store<'a>,
    at: usize,
}

impl Follower<'_> {
    fn read(&mut self) {
        let number = self.at * LAGGING;
        self.at = (self.at + 1) % (GROUPS / LAGGING);
        let group = &self.store.groups[number];
        let first = group.wanted.load(Ordering::Acquire);
        let end = (first + RANGE).min(group.last.load(Ordering::Acquire) + 1);
        if first < end {
            self.store.log.entries(number as u64, first, end);
            group.wanted.store(end, Ordering::Release);
        }
    }
}
