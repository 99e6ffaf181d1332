//! ResolveLock: carries the fate of a transaction, decided on its primary, to the locks it left elsewhere.

use engine::WriteBatch;
use engine::store::Reader;
use tso::Timestamp;

use super::record::{commit_lock, rollback_lock};
use super::{check_commit_ts, check_start_ts};
use crate::api::KeyError;
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::reader::load_lock;

/// Commits (`commit_ts` given) or rolls back the locks of `start_ts` on `keys`. Keys that it has not locked are left alone: they were
/// resolved before, or will be when their prewrite arrives and somebody meets it.
pub fn resolve_lock<R: Reader + ?Sized>(
    reader: &R,
    keys: &[Key],
    start_ts: Timestamp,
    commit_ts: Option<Timestamp>,
) -> Result<WriteBatch, ActionError> {
    check_start_ts(start_ts)?;
    if let Some(commit_ts) = commit_ts {
        check_commit_ts(start_ts, commit_ts)?;
    }
    let mut batch = WriteBatch::new();
    for key in keys {
        let storage = key.to_storage();
        let Some(lock) = load_lock(reader, &storage)?.filter(|lock| lock.start_ts == start_ts) else { continue };
        match commit_ts {
            Some(commit_ts) if commit_ts < lock.min_commit_ts => {
                let min_commit_ts = lock.min_commit_ts;
                return Err(KeyError::CommitTsTooEarly { commit_ts, min_commit_ts }.into());
            }
            Some(commit_ts) => commit_lock(reader, &mut batch, &storage, &lock, commit_ts)?,
            None => rollback_lock(reader, &mut batch, &storage, &lock)?,
        }
    }
    Ok(batch)
}
