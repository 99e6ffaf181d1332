//! What sessions read, and at which timestamps.
//!
//! A read at a timestamp never changes: whatever commits after it commits above it. So at the end each read of the run,
//! of whatever transaction, is repeated on the final data.

use std::sync::Arc;

use bytes::Bytes;
use engine::store::Reader;
use kv::Key;
use kv::mvcc::reader::get;
use parking_lot::Mutex;
use simulator::checkers::{Checked, Violation, violated};
use tso::Timestamp;

/// A key, the timestamp of the read, and the value that was found.
type Read = (Key, Timestamp, Option<Bytes>);

/// The reads of a run. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ReadLog(Arc<Mutex<Vec<Read>>>, Arc<Mutex<Vec<(Key, Timestamp)>>>);

impl ReadLog {
    /// Adds a read of the store, not of a transaction's own writes.
    pub(crate) fn add(&self, key: Key, start_ts: Timestamp, value: Option<&Bytes>) {
        self.0.lock().push((key, start_ts, value.cloned()));
    }

    /// Adds that a key has some value.
    pub(crate) fn add_present(&self, key: Key, start_ts: Timestamp) {
        self.1.lock().push((key, start_ts));
    }

    /// The number of reads so far.
    pub(crate) fn len(&self) -> u64 {
        self.0.lock().len() as u64
    }

    /// Repeats every read at or above the safe point on the final data of a replica, which has no locks. Below it the
    /// versions may be gone.
    pub(crate) fn check(&self, data: &impl Reader, safe_point: Timestamp) -> Checked {
        let mut reads = self.0.lock();
        reads.sort_unstable();
        reads.dedup();
        for (key, start_ts, seen) in reads.iter().filter(|(_, start_ts, _)| *start_ts >= safe_point) {
            let found = get(data, key, *start_ts, &[]).map_err(|error| Violation(error.to_string()))?;
            if found != *seen {
                return violated(format!("the read of {key:?} at {start_ts} saw {seen:?}, and now there is {found:?}"));
            }
        }
        for (key, start_ts) in self.1.lock().iter().filter(|(_, start_ts)| *start_ts >= safe_point) {
            let found = get(data, key, *start_ts, &[]).map_err(|error| Violation(error.to_string()))?;
            if found.is_none() {
                return violated(format!("{key:?} was relied on at {start_ts}, and is not there"));
            }
        }
        Ok(())
    }
}
