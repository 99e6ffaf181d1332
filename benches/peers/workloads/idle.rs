//! W6: the memory of an idle group: 100,000 groups with five entries of 256 B and one small key each, after writing and
//! after reopening the log.
//!
//! No cache, so that only the groups are measured. Our log and raft-engine hold the small keys in memory by design: the
//! target applies to the rest. RocksDB holds neither groups nor keys in memory, and is slower to find them.

use super::{Cell, Context, Prepared, Scale, Target};
use crate::engines::{Batch, RaftLog, Settings};
use crate::measure::{Figures, Tally, on_threads, push, resident};
use crate::payload::{Payloads, generator};

const ENTRIES: u64 = 5;
const ENTRY: usize = 256;
const STATE: &[u8] = b"state";
const STATE_BYTES: usize = 64;
const WRITERS: usize = 16;
const TARGET: &str = "rss-bytes/group";
/// The limit of the acceptance table, and the bytes of the key.
const MOST: usize = 512 + STATE.len() + STATE_BYTES;

/// The cells.
pub fn cells(scale: Scale) -> Vec<Cell> {
    // Cheap enough to run in full from a tenth of the scale on; fewer groups would drown in noise.
    let groups = scale.of(1_000_000, 2000).min(100_000);
    let cell = |name: &str, how: &str, prepared, run: Box<dyn Fn(&Context) -> Figures>| Cell {
        name: format!("W6/{name}"),
        about: format!("{groups} groups with five entries of 256 B and a key, {how}"),
        headline: TARGET,
        targets: vec![(TARGET, Target::AtMost(MOST as f64))],
        prepared,
        cold: false,
        run,
    };
    let write = move |context: &Context| drop(fill(context, groups));
    let prepared = Prepared { name: "idle".to_owned(), write: Box::new(write) };
    vec![
        cell("written", "as written", None, Box::new(move |context| fill(context, groups))),
        cell("opened", "opened again", Some(prepared), Box::new(move |context| open(context, groups))),
    ]
}

fn settings() -> Settings {
    Settings { cache_bytes: 0, prefill: false, ..Settings::default() }
}

fn fill(context: &Context, groups: u64) -> Figures {
    let payloads = Payloads::half_compressible();
    let log = context.open(settings());
    let memory = resident();
    on_threads(WRITERS, |thread| {
        let mut rng = generator(thread as u64);
        for group in (thread as u64..groups).step_by(WRITERS) {
            let entries = (1..=ENTRIES).map(|index| payloads.entry(&mut rng, index, ENTRY)).collect();
            let batch = Batch::default().append(group, 1, entries).put(group, STATE, vec![7; STATE_BYTES]);
            log.write(batch, false);
        }
        Tally::default()
    });
    log.settle();
    figures(log.as_ref(), memory, groups)
}

fn open(context: &Context, groups: u64) -> Figures {
    let memory = resident();
    let log = context.open(Settings { frozen: true, ..settings() });
    figures(log.as_ref(), memory, groups)
}

fn figures(log: &dyn RaftLog, before: u64, groups: u64) -> Figures {
    let memory = resident().saturating_sub(before) as f64 / groups as f64;
    assert_eq!(log.last(groups - 1), ENTRIES);
    let mut figures = Figures::new();
    push(&mut figures, TARGET, memory);
    figures
}
