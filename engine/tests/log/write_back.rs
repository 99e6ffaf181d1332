//! What nobody asks to be synced is not left for the seal to sync all at once: the disk is told to begin with it.

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::SimDisk;
use engine::log::{Compression, Durability, GroupId, LogBatch, LogEngine, LogOptions};
use parking_lot::Mutex;

use crate::hooked_disk::{HookedDisk, Hooks};

/// What was announced, as offset and length.
#[derive(Default)]
struct Announced(Mutex<Vec<(u64, u64)>>);

impl Hooks for Announced {
    fn start_writeback(&self, offset: u64, len: u64) {
        self.0.lock().push((offset, len));
    }
}

const ENTRY: usize = 100 << 10;

/// What is announced while so many entries are written to one file.
fn announced(entries: u64, durability: Durability) -> Vec<(u64, u64)> {
    let hooks = Arc::new(Announced::default());
    let disk = Arc::new(HookedDisk { disk: SimDisk::new(), hooks: hooks.clone() });
    let options = LogOptions { prefill_bytes: 0, compression: Compression::Off, ..LogOptions::default() };
    let (log, mut writer, _) = LogEngine::open_driven(disk, options).unwrap();
    for index in 1..=entries {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), index, vec![Bytes::from(vec![7; ENTRY])]);
        let ticket = log.submit(batch, durability).unwrap();
        writer.turn();
        ticket.wait().unwrap();
    }
    let announced = hooks.0.lock();
    announced.clone()
}

#[test]
fn the_disk_begins_with_what_is_not_synced_once_it_is_much() {
    let told = announced(100, Durability::Buffered);
    assert!(told.len() >= 5, "{told:?}");
    for pair in told.windows(2) {
        assert_eq!(pair[0].0 + pair[0].1, pair[1].0, "each byte once, in order");
    }
    let bytes: u64 = told.iter().map(|(_, len)| len).sum();
    assert!(bytes + (2 << 20) > 100 * ENTRY as u64, "but for the last of it, all");
}

#[test]
fn what_is_synced_anyway_is_not_announced() {
    assert_eq!(announced(100, Durability::Synced), []);
}
