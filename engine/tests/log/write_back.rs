//! Unsynced data is flushed in the background, so that the seal does not have to sync all of it at once.

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::SimDisk;
use engine::log::{Compression, Durability, GroupId, LogBatch, LogEngine, LogOptions};
use parking_lot::Mutex;

use crate::hooked_disk::{HookedDisk, Hooks};

/// The write-back requests, as offset and length.
#[derive(Default)]
struct Requests(Mutex<Vec<(u64, u64)>>);

impl Hooks for Requests {
    fn start_writeback(&self, offset: u64, len: u64) {
        self.0.lock().push((offset, len));
    }
}

const ENTRY: usize = 100 << 10;

/// The write-back requests while `entries` entries are written to one file.
fn requests(entries: u64, durability: Durability) -> Vec<(u64, u64)> {
    let hooks = Arc::new(Requests::default());
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
    let requests = hooks.0.lock();
    requests.clone()
}

#[test]
fn much_unsynced_data_is_flushed_in_the_background() {
    let requested = requests(100, Durability::Buffered);
    assert!(requested.len() >= 5, "{requested:?}");
    for pair in requested.windows(2) {
        assert_eq!(pair[0].0 + pair[0].1, pair[1].0, "each byte once, in order");
    }
    let bytes: u64 = requested.iter().map(|(_, len)| len).sum();
    assert!(bytes + (2 << 20) > 100 * ENTRY as u64, "everything except the end");
}

#[test]
fn synced_data_is_not_flushed_in_the_background() {
    assert_eq!(requests(100, Durability::Synced), []);
}
