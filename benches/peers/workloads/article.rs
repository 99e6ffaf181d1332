//! W1: the example program of raft-engine's article, as it is and in variants.
//!
//! One thread. Each write appends one entry of 32 KiB to a group drawn from Normal(128, 96) (negative draws are 0) and
//! sets a small key to its index, which is read first. Every 32nd entry of a group compacts it to about 32 entries,
//! Normal(32, 16). After every 1024 writes purge is called, and the groups that it names are compacted to their last 8
//! entries. Space: 2 GB at full size.

use std::collections::HashMap;

use rand::rngs::StdRng;

use super::{Cell, Context, Scale, Target, megabytes};
use crate::engines::{Batch, EngineKind, RaftLog, Settings};
use crate::measure::{Figures, HighWater, Meter, Tally, push};
use crate::payload::{Payloads, generator, normal};

const ENTRY: usize = 32 << 10;
const LAST_INDEX: &[u8] = b"last_index";
const WRITES_PER_PURGE: u64 = 1024;
const COMPACT_EVERY: u64 = 32;
const KEPT_OF_LAGGING: u64 = 8;

/// The content of the entries.
#[derive(Clone, Copy)]
enum Data {
    /// 'x', as in the example.
    Constant,
    /// Half-compressible.
    Half,
    /// Incompressible.
    Random,
}

/// The differences of a variant from the example.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    sync: bool,
    compress: bool,
    data: Data,
    /// Bytes written, as a multiple of the purge threshold.
    volume: f64,
}

const VARIANTS: [Variant; 4] = [
    Variant { name: "as-is", sync: false, compress: false, data: Data::Constant, volume: 4.0 },
    Variant { name: "sync", sync: true, compress: false, data: Data::Constant, volume: 2.0 },
    Variant { name: "lz4", sync: false, compress: true, data: Data::Half, volume: 4.0 },
    Variant { name: "random", sync: false, compress: true, data: Data::Random, volume: 4.0 },
];

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let threshold = scale.threshold();
    let cell = |variant: Variant| {
        let writes = (threshold as f64 * variant.volume) as u64 / ENTRY as u64;
        let data = match variant.data {
            Data::Constant => "'x', no compression",
            Data::Half => "half-compressible, LZ4",
            Data::Random => "incompressible, LZ4",
        };
        Cell {
            name: format!("W1/{}", variant.name),
            about: format!(
                "the article's example, {data}, {}; {writes} entries of 32 KiB, purge beyond {}",
                if variant.sync { "synced" } else { "not synced" },
                megabytes(threshold),
            ),
            headline: "ops/s",
            targets: vec![
                ("ops/s", Target::Times(EngineKind::RaftEngine, 1.2)),
                ("written-bytes/byte", Target::Times(EngineKind::RaftEngine, 1.0)),
            ],
            prepared: None,
            cold: false,
            run: Box::new(move |context| run(context, variant, threshold, writes)),
        }
    };
    VARIANTS.map(cell).into()
}

fn run(context: &Context, variant: Variant, threshold: u64, writes: u64) -> Figures {
    let settings = Settings {
        compress: variant.compress,
        purge_threshold: threshold,
        prefill: variant.sync,
        ..Settings::default()
    };
    let payloads = match variant.data {
        Data::Constant => Payloads::constant(),
        Data::Half => Payloads::half_compressible(),
        Data::Random => Payloads::incompressible(),
    };
    let log = context.open(settings);
    let mut example = Example { log: log.as_ref(), compacted: HashMap::new(), rng: generator(1) };
    let water = HighWater::watch(&context.dir);
    let meter = Meter::start(&context.dir);
    let mut tally = Tally::default();
    for number in 1..=writes {
        example.write(&payloads, variant.sync, &mut tally);
        if number % WRITES_PER_PURGE == 0 {
            example.purge();
        }
    }
    let mut figures = meter.stop("ops/s", &tally);
    push(&mut figures, "disk-high-water-MB", water.finish() as f64 / 1e6);
    figures
}

struct Example<'a> {
    log: &'a dyn RaftLog,
    /// The index up to which a group was compacted.
    compacted: HashMap<u64, u64>,
    rng: StdRng,
}

impl Example<'_> {
    fn last_index(&self, group: u64) -> u64 {
        let value = self.log.key(group, LAST_INDEX);
        value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
    }

    fn write(&mut self, payloads: &Payloads, sync: bool, tally: &mut Tally) {
        let group = normal(&mut self.rng, 128.0, 96.0) as u64;
        let index = self.last_index(group) + 1;
        let entry = payloads.entry(&mut self.rng, index, ENTRY);
        let state = index.to_le_bytes().to_vec();
        let batch = Batch::default().append(group, index, vec![entry]).put(group, LAST_INDEX, state);
        tally.timed(batch.bytes(), || self.log.write(batch, sync));
        if index.is_multiple_of(COMPACT_EVERY) {
            let kept = normal(&mut self.rng, 32.0, 16.0) as u64;
            self.compact(group, index.saturating_sub(kept));
        }
    }

    fn purge(&mut self) {
        for group in self.log.purge() {
            self.compact(group, (self.last_index(group) + 1).saturating_sub(KEPT_OF_LAGGING));
        }
    }

    fn compact(&mut self, group: u64, to: u64) {
        let from = self.compacted.insert(group, to).unwrap_or(1);
        match from < to {
            true => self.log.write(Batch::default().compact(group, from, to), false),
            false => drop(self.compacted.insert(group, from)),
        }
    }
}
