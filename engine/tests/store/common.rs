//! Shared by the tests of the store: crashes of either store, and dumps to compare.

use std::fmt::Write;
use std::path::Path;

use engine::store::memory::MemoryStore;
use engine::store::rocks::{RocksOptions, RocksStore};
use engine::store::{Reader, Store, StoreError};
use engine::{Cf, WriteBatch};

/// A row of a column family.
pub(crate) type Row = (Cf, Vec<u8>, Vec<u8>);

/// A store that can crash and reopen.
pub(crate) trait Crash: Store {
    /// Loses what was not flushed. No other handle and no snapshot of the store may exist.
    fn crash(self) -> Self;
}

impl Crash for MemoryStore {
    fn crash(self) -> MemoryStore {
        MemoryStore::crash(&self);
        self
    }
}

impl Crash for RocksStore {
    fn crash(self) -> RocksStore {
        let dir = self.dir().to_owned();
        drop(self);
        open(&dir)
    }
}

/// Small memtables: RocksDB flushes on its own when a test writes much.
pub(crate) fn options() -> RocksOptions {
    RocksOptions { block_cache_bytes: 16 << 20, write_buffer_bytes: 64 << 10 }
}

/// Opens a store. Another test may start a process at this moment: until the child runs its own program, it holds
/// this process's descriptors, and with them the lock of a store that was closed just now.
pub(crate) fn open(dir: &Path) -> RocksStore {
    for _ in 0..100_000 {
        match RocksStore::open(dir, &options()) {
            Err(StoreError::Locked { .. }) => std::thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays locked", dir.display());
}

/// The column family with this name.
pub(crate) fn family(name: &str) -> Option<Cf> {
    Cf::ALL.into_iter().find(|cf| cf.name() == name)
}

/// Every row, in order of (cf code, key).
pub(crate) fn rows(reader: &impl Reader) -> Vec<Row> {
    let mut rows = Vec::new();
    for cf in Cf::ALL {
        let mut cursor = reader.cursor(cf, b"", b"").unwrap();
        let mut valid = cursor.seek_to_first().unwrap();
        while valid {
            rows.push((cf, cursor.key().to_vec(), cursor.value().to_vec()));
            valid = cursor.next().unwrap();
        }
    }
    rows
}

/// Every row as text.
pub(crate) fn dump(reader: &impl Reader) -> String {
    let mut text = String::new();
    for (cf, key, value) in rows(reader) {
        writeln!(text, "{}/{}={}", cf.name(), key.escape_ascii(), value.escape_ascii()).unwrap();
    }
    text
}

/// A batch of one put.
pub(crate) fn put(cf: Cf, key: &[u8], value: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(cf, key, value);
    batch
}
