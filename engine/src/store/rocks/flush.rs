//! Flushes all column families together and proves that the flush is on disk.
//!
//! RocksDB's own word is not enough. Its atomic flush waits until each family is past the newest memtable to be flushed,
//! but it pairs the families, kept in a vector, with memtable numbers taken from an unordered map, so that one family
//! waits for the number of another (`AtomicFlushMemTables` in RocksDB 11). When an earlier flush of some families is
//! still under way, it can return as soon as that one is finished. The log must not be truncated on such a word.
//!
//! Therefore every flush first writes a growing mark into a family of its own, and is done when the mark can be read
//! from the files. As all families flush at one point, everything written before the mark is then on disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rocksdb::FlushOptions;

use super::{Shared, on_read};
use crate::cf::Cf;
use crate::store::{Result, StoreError};

/// The family of the mark; not among [`Cf::ALL`], so that no reader meets it.
pub(super) const FAMILY: &str = "flush";
const KEY: &[u8] = b"mark";

/// How long to wait between two looks at the mark, how many looks a flush gets before it is asked for again, and how
/// often it is asked for: about a minute beyond what RocksDB itself waits for.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const LOOKS: u32 = 1000;
const ROUNDS: u32 = 60;

/// Flushes one at a time.
#[derive(Default)]
pub(super) struct Flusher {
    /// Writes that have returned.
    writes: AtomicU64,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    /// The newest mark written.
    mark: u64,
    /// Of `writes`, how many are known to be on disk.
    writes: u64,
}

impl Flusher {
    /// Takes up the mark that the files hold.
    pub(super) fn start(&self, shared: &Shared) -> Result<()> {
        self.done.lock().mark = flushed_mark(shared)?;
        Ok(())
    }

    /// A write has returned: from now on a flush has something to do.
    pub(super) fn written(&self) {
        self.writes.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns when everything written before the call is on disk. Poisons the store if that cannot be had.
    pub(super) fn flush(&self, shared: &Shared) -> Result<()> {
        let mut done = self.done.lock();
        shared.check()?;
        let writes = self.writes.load(Ordering::Acquire);
        if done.writes == writes {
            return Ok(());
        }
        done.mark += 1;
        let mark = done.mark.to_be_bytes();
        let marked = shared.db.put_cf_opt(mark_family(shared)?, KEY, mark, &shared.write_options);
        marked.map_err(|error| shared.poison(error))?;
        for _ in 0..ROUNDS {
            flush_all(shared)?;
            for _ in 0..LOOKS {
                if flushed_mark(shared)? >= done.mark {
                    done.writes = writes;
                    // The families become readable one after another within one hold of RocksDB's mutex. Taking a
                    // snapshot waits for that mutex, so that `get_flushed` sees this flush in all of them.
                    drop(shared.db.snapshot());
                    return Ok(());
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
        }
        Err(shared.poison_with("a flush did not reach the disk in time".to_owned()))
    }
}

fn flush_all(shared: &Shared) -> Result<()> {
    let mut families = vec![mark_family(shared)?];
    for cf in Cf::ALL {
        families.push(shared.family(cf)?);
    }
    let mut options = FlushOptions::default();
    options.set_wait(true);
    shared.db.flush_cfs_opt(&families, &options).map_err(|error| shared.poison(error))
}

/// The mark in the files; 0 if there is none.
fn flushed_mark(shared: &Shared) -> Result<u64> {
    let found = shared.db.get_pinned_cf_opt(mark_family(shared)?, KEY, &shared.flushed_reads).map_err(on_read)?;
    found.map_or(Ok(0), |mark| {
        let mark =
            <[u8; 8]>::try_from(mark.as_ref()).map_err(|_| StoreError::Corrupt("malformed flush mark".into()))?;
        Ok(u64::from_be_bytes(mark))
    })
}

fn mark_family(shared: &Shared) -> Result<&rocksdb::ColumnFamily> {
    shared.db.cf_handle(FAMILY).ok_or_else(|| StoreError::Corrupt(format!("no column family {FAMILY}")))
}
