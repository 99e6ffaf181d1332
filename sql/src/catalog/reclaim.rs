//! Removes the rows of dropped and truncated tables, a bounded batch at a time.
//!
//! A storage that was given up is swept from its first row to its last: right away, and once more when it is so old that
//! no transaction from before is likely to be running still, since one that overlapped the drop may commit rows behind
//! the first sweep. When a sweep begun at that age has found nothing, the record of the storage goes with it.
//!
//! Removed rows leave their old versions behind, which a scan must pass. So a sweep goes on where it stopped instead of
//! from the start, and an empty storage is left alone between its two sweeps. Where sweeps stand is kept in memory
//! only: a reclaimer that takes over begins them anew.

use std::collections::{BTreeMap, BTreeSet};

use kv::Key;
use kv::client::ScanRange;
use txn::{Database, TxnError};

use super::keys;
use crate::codec;
use crate::table::StorageId;

/// Rows removed in one transaction.
const BATCH_ROWS: u32 = 512;
/// Storages swept on in one step.
const MAX_STORAGES: u32 = 16;
/// Records read at once.
const PAGE_RECORDS: u32 = 64;
/// Age at which a storage is swept for the last time.
const FINAL_SWEEP_AGE_MS: u64 = 3_600_000;

/// What one step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows removed.
    pub rows: u64,
    /// Records of emptied storage removed.
    pub storages: u64,
    /// Whether there is more to do now: the caller may go on at once, else in a minute or so.
    pub more: bool,
}

/// How far a storage is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Being swept.
    Sweep(Sweep),
    /// Swept, and too young for the last time.
    Waiting,
    /// Nothing is left of it.
    Empty,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sweep {
    /// The rows before this key are gone.
    next: Key,
    /// It began when the storage was old enough.
    is_last: bool,
    /// It has found rows.
    found: bool,
}

/// Removes what was given up. One per cluster is enough; two that meet conflict, and one of them finds less to do.
#[derive(Debug, Default)]
pub struct Reclaimer {
    /// Of the storages whose record was there of late.
    states: BTreeMap<StorageId, State>,
}

impl Reclaimer {
    /// One that knows of no storage yet.
    pub fn new() -> Reclaimer {
        Reclaimer::default()
    }

    /// One step: a batch from each of the first storages that have something left.
    pub async fn step(&mut self, db: &Database) -> Result<Progress, TxnError> {
        let mut progress = Progress::default();
        let mut swept = 0;
        let mut seen = BTreeSet::new();
        let txn = db.begin().await?;
        let (start, end) = keys::all_dropped();
        let mut range = ScanRange { start, end, reverse: false };
        loop {
            let page = txn.scan(&range, PAGE_RECORDS).await?;
            for (record, value) in page.pairs {
                if swept == MAX_STORAGES {
                    progress.more = true;
                    return Ok(progress);
                }
                let (Some(storage), Ok(since)) = (keys::dropped_id(&record), keys::decode_dropped(&value)) else {
                    return Err(TxnError::Internal(format!("malformed record {record:?}")));
                };
                seen.insert(storage);
                let age_ms = txn.start_ts().physical_ms().saturating_sub(since.physical_ms());
                if let Some(sweep) = self.sweep(storage, age_ms) {
                    swept += 1;
                    // After an error the sweep goes on from where it was.
                    let state = sweep.remove_batch(db, storage, record, &mut progress).await?;
                    self.states.insert(storage, state);
                }
            }
            match page.resume {
                Some(resume) if resume > range.start => range.start = resume,
                _ => break,
            }
        }
        self.states.retain(|storage, _| seen.contains(storage));
        Ok(progress)
    }

    /// The sweep that a storage needs now, if any.
    fn sweep(&self, storage: StorageId, age_ms: u64) -> Option<Sweep> {
        let is_final = age_ms >= FINAL_SWEEP_AGE_MS;
        match self.states.get(&storage) {
            Some(State::Sweep(sweep)) => Some(sweep.clone()),
            Some(State::Waiting) if !is_final => None,
            Some(State::Empty) => None,
            Some(State::Waiting) | None => Some(Sweep::begin(storage, is_final)),
        }
    }
}

impl Sweep {
    fn begin(storage: StorageId, is_last: bool) -> Sweep {
        let (next, _) = codec::key::storage_range(storage);
        Sweep { next, is_last, found: false }
    }

    /// Removes one batch. How far the storage is then.
    async fn remove_batch(
        mut self,
        db: &Database,
        storage: StorageId,
        record: Key,
        progress: &mut Progress,
    ) -> Result<State, TxnError> {
        let mut batch = db.begin().await?;
        let (_, end) = codec::key::storage_range(storage);
        let rows = batch.scan(&ScanRange { start: self.next.clone(), end, reverse: false }, BATCH_ROWS).await?;
        let count = rows.pairs.len() as u64;
        for (row, _) in rows.pairs {
            batch.delete(row)?;
        }
        let found = self.found || count > 0;
        let is_empty = rows.resume.is_none() && self.is_last && !found;
        if is_empty {
            batch.delete(record)?;
        }
        match batch.commit().await {
            Ok(_) => {}
            Err(TxnError::Conflict(_)) => {
                progress.more = true;
                return Ok(State::Sweep(self));
            }
            Err(error) => return Err(error),
        }
        progress.rows += count;
        progress.storages += u64::from(is_empty);
        self.found = found;
        let state = match rows.resume {
            _ if is_empty => State::Empty,
            Some(resume) => State::Sweep(Sweep { next: resume, ..self }),
            None if self.is_last => State::Sweep(Sweep::begin(storage, true)),
            None => State::Waiting,
        };
        progress.more |= matches!(state, State::Sweep(_));
        Ok(state)
    }
}
