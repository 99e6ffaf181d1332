//! Removes the rows of dropped and truncated tables and the values of dropped sequences, a bounded batch at a time.
//!
//! A dropped storage is swept from its first row to its last, twice: at once, and again at an age when no transaction
//! from before the drop is likely to run. A transaction that overlapped the drop may commit rows behind the first
//! sweep. When a sweep begun at that age finds nothing, the record of the storage is removed too.
//!
//! A schema change that fills a storage before it commits has a record of that storage too, which it writes after it
//! has closed the table. At any snapshot: if the table is closed by it, or its publication is under way, it may still
//! commit. Otherwise its outcome is known: the storage is in use if a table names it, and dropped if none does.
//!
//! Removed rows leave old versions behind, which a scan has to skip. So a sweep resumes where it stopped, and an empty
//! storage is not scanned between its two sweeps. Positions are kept in memory only: another reclaimer starts its
//! sweeps again.
//!
//! The ids of sequences are no ids of storages, so a dropped sequence has a record like that of a storage. Its values,
//! one record for each epoch, are removed in the place of rows.

use std::collections::{BTreeMap, BTreeSet};

use kv::Key;
use kv::client::ScanRange;
use txn::{Database, Transaction, TxnError};

use super::control::Control;
use super::keys;
use super::snapshot::Catalog;
use crate::codec;
use crate::error::SqlError;
use crate::object::ObjectId;
use crate::table::StorageId;

/// Rows removed per transaction.
const BATCH_ROWS: u32 = 512;
/// Limit of storages swept in one step.
const MAX_STORAGES: u32 = 16;
/// Records read per page.
const PAGE_RECORDS: u32 = 64;
/// Age of a storage at its last sweep, in milliseconds.
const FINAL_SWEEP_AGE_MS: u64 = 3_600_000;

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows and values of sequences removed.
    pub rows: u64,
    /// Records of empty storages removed.
    pub storages: u64,
    /// Whether more can be done now. Otherwise the caller waits a minute or so.
    pub more: bool,
}

/// The progress on one storage.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A sweep is under way.
    Sweep(Sweep),
    /// Swept once, and too young for the last sweep.
    Waiting,
    /// Empty; its record is removed.
    Empty,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sweep {
    /// The next key. Rows before it are removed.
    next: Key,
    /// Whether the storage was old enough for the last sweep when this one began.
    is_last: bool,
    /// Whether it has found rows.
    found: bool,
}

/// Removes dropped storages. One per cluster is enough. Two may conflict, and one of them then removes less.
#[derive(Debug, Default)]
pub struct Reclaimer {
    /// Progress of the storages whose record was found in the last step.
    states: BTreeMap<StorageId, State>,
}

impl Reclaimer {
    /// A reclaimer without progress.
    pub fn new() -> Reclaimer {
        Reclaimer::default()
    }

    /// Removes a batch from each of the first storages that have rows left.
    pub async fn step(&mut self, db: &Database) -> Result<Progress, TxnError> {
        let mut progress = Progress::default();
        let mut swept = 0;
        let mut seen = BTreeSet::new();
        let txn = db.begin().await?;
        // The records of filled storages come first.
        let (start, end) = (keys::all_building().0, keys::all_dropped().1);
        let mut range = ScanRange { start, end, reverse: false };
        let mut settled = false;
        loop {
            let page = txn.scan(&range, PAGE_RECORDS).await?;
            for (record, value) in page.pairs {
                if keys::building_id(&record).is_some() {
                    if !std::mem::replace(&mut settled, true) {
                        progress.more |= settle_builds(db).await?;
                    }
                    continue;
                }
                if swept == MAX_STORAGES {
                    progress.more = true;
                    return Ok(progress);
                }
                let (Some(storage), Ok(since)) = (keys::dropped_id(&record), keys::decode_dropped(&value)) else {
                    return Err(TxnError::Internal(format!("malformed record {record:?}")));
                };
                // A storage is in use until the change that gives it up is published.
                let known = self.states.contains_key(&storage);
                if !known && txn.get(&keys::publication(since)).await?.is_some() {
                    continue;
                }
                seen.insert(storage);
                let age_ms = txn.start_ts().physical_ms().saturating_sub(since.physical_ms());
                if let Some(sweep) = self.sweep(storage, age_ms) {
                    swept += 1;
                    // After an error the sweep resumes at its last position.
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

    /// The sweep to continue or begin on a storage, if any.
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

/// Removes the records of filled storages whose schema changes are over. A storage that no table uses is dropped.
/// Returns whether some were.
async fn settle_builds(db: &Database) -> Result<bool, TxnError> {
    let mut txn = db.begin().await?;
    let (start, end) = keys::all_building();
    let page = txn.scan(&ScanRange { start, end, reverse: false }, PAGE_RECORDS).await?;
    let mut dropped = false;
    let internal = |error: SqlError| TxnError::Internal(error.to_string());
    let control = Control::read(&txn).await.map_err(internal)?;
    let catalog = Catalog::load(&txn).await.map_err(internal)?;
    for (record, value) in page.pairs {
        let (Some(storage), Ok(owner)) = (keys::building_id(&record), keys::decode_dropped(&value)) else {
            return Err(TxnError::Internal(format!("malformed record {record:?}")));
        };
        if !control.closed_by(owner).is_empty() || control.is_unpublished(owner) {
            continue;
        }
        txn.delete(record)?;
        if !catalog.all_tables().any(|table| table.storages().any(|used| used == storage)) {
            txn.put(keys::dropped(storage), value)?;
            dropped = true;
        }
    }
    match txn.commit().await {
        Ok(_) => Ok(dropped),
        // Another reclaimer has done it.
        Err(TxnError::Conflict(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The first keys of the values of a sequence.
async fn values_of(sequence: ObjectId, txn: &Transaction) -> Result<Vec<Key>, TxnError> {
    let (start, end) = keys::sequence_values(sequence);
    let mut range = ScanRange { start, end, reverse: false };
    loop {
        let page = txn.scan(&range, BATCH_ROWS).await?;
        match page.resume {
            Some(resume) if page.pairs.is_empty() => range.start = resume,
            _ => return Ok(page.pairs.into_iter().map(|(key, _)| key).collect()),
        }
    }
}

impl Sweep {
    fn begin(storage: StorageId, is_last: bool) -> Sweep {
        let (next, _) = codec::key::storage_range(storage);
        Sweep { next, is_last, found: false }
    }

    /// Removes one batch. Returns the storage's progress.
    async fn remove_batch(
        mut self,
        db: &Database,
        storage: StorageId,
        record: Key,
        progress: &mut Progress,
    ) -> Result<State, TxnError> {
        let mut batch = db.begin().await?;
        let (start, end) = codec::key::storage_range(storage);
        let values = match self.next == start {
            true => values_of(ObjectId(storage.0), &batch).await?,
            false => Vec::new(),
        };
        let (doomed, resume): (Vec<Key>, Option<Key>) = if values.is_empty() {
            let rows = batch.scan(&ScanRange { start: self.next.clone(), end, reverse: false }, BATCH_ROWS).await?;
            (rows.pairs.into_iter().map(|(row, _)| row).collect(), rows.resume)
        } else {
            // There may be more.
            (values, Some(start))
        };
        let count = doomed.len() as u64;
        for key in doomed {
            batch.delete(key)?;
        }
        let found = self.found || count > 0;
        let is_empty = resume.is_none() && self.is_last && !found;
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
        let state = match resume {
            _ if is_empty => State::Empty,
            Some(resume) => State::Sweep(Sweep { next: resume, ..self }),
            None if self.is_last => State::Sweep(Sweep::begin(storage, true)),
            None => State::Waiting,
        };
        progress.more |= matches!(state, State::Sweep(_));
        Ok(state)
    }
}
