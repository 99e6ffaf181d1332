//! A log in steady state, for workloads that need one: as large as purge lets it be, with a few live entries of idle
//! groups in every file, so that only rewriting them frees space, and with spare files for reuse.
//!
//! It is written once per engine. Every run opens it and continues for a while, so that state of the open engine is in
//! place too (RocksDB: which WAL files it may recycle), and then measures.

use super::{Context, Prepared, Scale};
use crate::engines::{Batch, RaftLog, Settings};
use crate::payload::{Payloads, generator};

/// The group of the bulk. Idle groups follow it; workloads use lower numbers.
const BULK: u64 = 1_000_000;
const BULK_ENTRY: usize = 64 << 10;
/// One idle group appears after so many entries of the bulk, about every megabyte.
const IDLE_EVERY: u64 = 16;
const PURGE_EVERY: u64 = 256;

/// The settings to open such a log with.
pub fn settings(scale: Scale) -> Settings {
    Settings { purge_threshold: scale.steady_threshold(), ..Settings::default() }
}

/// The log.
pub fn prepared(scale: Scale) -> Prepared {
    let settings = settings(scale);
    let write = move |context: &Context| {
        let log = context.open(settings);
        go_on(log.as_ref(), &Payloads::half_compressible(), settings.purge_threshold * 3 / 2);
    };
    Prepared { name: "steady".to_owned(), write: Box::new(write) }
}

/// Continues the log: more than two files of any engine, and more than the memtables of RocksDB.
pub fn warm(log: &dyn RaftLog, payloads: &Payloads, settings: &Settings) {
    go_on(log, payloads, settings.purge_threshold * 3 / 8);
}

fn go_on(log: &dyn RaftLog, payloads: &Payloads, bytes: u64) {
    let mut rng = generator(BULK);
    let first = log.last(BULK) + 1;
    for index in first..first + bytes / BULK_ENTRY as u64 {
        let entry = payloads.entry(&mut rng, index, BULK_ENTRY);
        let mut batch = Batch::default().append(BULK, index, vec![entry]).compact(BULK, index - 1, index);
        if index.is_multiple_of(IDLE_EVERY) {
            let idle = BULK + index / IDLE_EVERY;
            batch = batch.append(idle, 1, vec![payloads.entry(&mut rng, 1, 256)]).put(idle, b"state", vec![7; 32]);
        }
        log.write(batch, false);
        if index.is_multiple_of(PURGE_EVERY) {
            log.purge();
        }
    }
    log.settle();
}
