//! Removes the rows of dropped and truncated tables, a bounded batch at a time.
//!
//! The record of given-up storage stays until the storage is empty *and* so old that no transaction from before is
//! likely to be running still: one that overlapped the drop may commit rows into it, which a later step then removes.

use kv::Key;
use kv::client::ScanRange;
use txn::{Database, TxnError};

use super::keys;
use crate::codec;

/// Rows removed in one transaction.
const BATCH: u32 = 512;
/// Storages worked on in one step.
const STORAGES: u32 = 16;
/// Records read at once.
const PAGE: u32 = 64;
/// Age at which the record of empty storage may go.
const SETTLED_MS: u64 = 3_600_000;

/// What one step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows removed.
    pub rows: u64,
    /// Records of emptied storage removed.
    pub storages: u64,
    /// Whether a storage is known to hold more rows: the caller may go on at once, else in a minute or so.
    pub more: bool,
}

/// One step of the reclaimer: a batch from each of the first storages that have something left. Any node may run it at
/// any time; two that meet conflict, and one of them finds less to do.
pub async fn step(db: &Database) -> Result<Progress, TxnError> {
    let mut progress = Progress::default();
    let mut worked = 0;
    let txn = db.begin().await?;
    let (start, end) = keys::all_dropped();
    let mut range = ScanRange { start, end, reverse: false };
    loop {
        let page = txn.scan(&range, PAGE).await?;
        for (key, value) in page.pairs {
            if worked == STORAGES {
                progress.more = true;
                return Ok(progress);
            }
            worked += u32::from(storage(db, key, &value, &mut progress).await?);
        }
        match page.resume {
            Some(resume) if resume > range.start => range.start = resume,
            _ => return Ok(progress),
        }
    }
}

/// One batch of one storage; whether there was anything to do.
async fn storage(db: &Database, key: Key, value: &[u8], progress: &mut Progress) -> Result<bool, TxnError> {
    let (Some(storage), Ok(since)) = (keys::dropped_id(&key), keys::decode_dropped(value)) else {
        return Err(TxnError::Internal(format!("malformed record {key:?}")));
    };
    let mut batch = db.begin().await?;
    let (start, end) = codec::key::storage_range(storage);
    let rows = batch.scan(&ScanRange { start, end, reverse: false }, BATCH).await?;
    let is_empty = rows.pairs.is_empty() && rows.resume.is_none();
    let age = batch.start_ts().physical_ms().saturating_sub(since.physical_ms());
    if is_empty && age < SETTLED_MS {
        return Ok(false);
    }
    let count = rows.pairs.len() as u64;
    for (row, _) in rows.pairs {
        batch.delete(row)?;
    }
    if is_empty {
        batch.delete(key)?;
    }
    match batch.commit().await {
        Ok(_) => {
            progress.rows += count;
            progress.storages += u64::from(is_empty);
            progress.more |= rows.resume.is_some();
        }
        Err(TxnError::Conflict(_)) => progress.more = true,
        Err(error) => return Err(error),
    }
    Ok(true)
}
