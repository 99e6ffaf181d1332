//! Flushes all column families together and verifies that the data is on disk.
//!
//! A successful return of RocksDB's atomic flush is not sufficient. The flush waits until each family is past its
//! newest memtable to flush. But it pairs the families, kept in a vector, with memtable numbers from an unordered map,
//! so one family may wait for the number of another (`AtomicFlushMemTables` in RocksDB 11). If an earlier flush of some
//! families is still running, the call can return as soon as that one ends. The log must not be truncated then.
//!
//! Therefore every flush first writes an increasing mark into a column family of its own. It is complete when the mark
//! can be read from the files. All families flush at one point, so everything written before the mark is then on disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rocksdb::FlushOptions;

use super::database::Database;
use super::errors::on_read;
use crate::cf::Cf;
use crate::store::{Result, StoreError};

/// The column family of the mark. It is not in [`Cf::ALL`]: no reader sees it.
pub(super) const FAMILY: &str = "flush";
const KEY: &[u8] = b"mark";

/// The pause between two reads of the mark, the number of reads before the flush is requested again, and the number of
/// requests: about a minute on top of the time that RocksDB itself waits.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const POLLS_PER_REQUEST: u32 = 1000;
const REQUESTS: u32 = 60;

/// Runs one flush at a time.
#[derive(Default)]
pub(super) struct Flusher {
    /// The number of completed writes.
    writes: AtomicU64,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The newest mark written.
    mark: u64,
    /// How many of the completed writes are known to be on disk.
    writes: u64,
}

impl Flusher {
    /// Continues from the mark in the files.
    pub(super) fn resume(&self, database: &Database) -> Result<()> {
        self.progress.lock().mark = flushed_mark(database)?;
        Ok(())
    }

    /// Counts a completed write: the next flush has work to do. Returns the number of writes before it.
    pub(super) fn count_write(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::AcqRel)
    }

    /// Returns when everything written before the call is on disk. Otherwise poisons the store.
    pub(super) fn flush(&self, database: &Database) -> Result<()> {
        let mut progress = self.progress.lock();
        database.check_poisoned()?;
        let writes = self.writes.load(Ordering::Acquire);
        if progress.writes == writes {
            return Ok(());
        }
        progress.mark += 1;
        let mark = progress.mark.to_be_bytes();
        let marked = database.db.put_cf_opt(mark_family(database)?, KEY, mark, &database.write_options);
        marked.map_err(|error| database.poison(error))?;
        for _ in 0..REQUESTS {
            flush_all(database)?;
            for _ in 0..POLLS_PER_REQUEST {
                if flushed_mark(database)? >= progress.mark {
                    progress.writes = writes;
                    // RocksDB publishes the families one after another while it holds its mutex. Taking a snapshot
                    // waits for that mutex, so `get_flushed` sees this flush in all of them.
                    drop(database.db.snapshot());
                    return Ok(());
                }
                std::thread::park_timeout(POLL_INTERVAL);
            }
        }
        Err(database.poison_with("a flush did not reach the disk in time".to_owned()))
    }
}

fn flush_all(database: &Database) -> Result<()> {
    let mut families = vec![mark_family(database)?];
    for cf in Cf::ALL {
        families.push(database.family(cf)?);
    }
    let mut options = FlushOptions::default();
    options.set_wait(true);
    database.db.flush_cfs_opt(&families, &options).map_err(|error| database.poison(error))
}

/// The mark in the files, or 0.
fn flushed_mark(database: &Database) -> Result<u64> {
    let found = database.db.get_pinned_cf_opt(mark_family(database)?, KEY, &database.flushed_reads).map_err(on_read)?;
    found.map_or(Ok(0), |mark| {
        let mark =
            <[u8; 8]>::try_from(mark.as_ref()).map_err(|_| StoreError::Corrupt("malformed flush mark".into()))?;
        Ok(u64::from_be_bytes(mark))
    })
}

fn mark_family(database: &Database) -> Result<&rocksdb::ColumnFamily> {
    database.db.cf_handle(FAMILY).ok_or_else(|| StoreError::Corrupt(format!("no column family {FAMILY}")))
}
