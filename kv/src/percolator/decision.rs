//! The actions that replace a transaction's locks by its decision: commit, rollback, resolve lock.

use engine::WriteBatch;
use engine::store::Reader;
use tso::Timestamp;

use super::common::{TxnRecord, check_commit_ts, check_key, check_start_ts, commit_lock, own_record, rollback_lock};
use super::shared::rollback_shared;
use crate::api::KeyError;
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::mark::put_mark;
use crate::mvcc::reader::load_lock;
use crate::mvcc::shared::{load_shared, remove_shared};

/// Commits `keys` at `commit_ts`: replaces their locks by commit records. On the primary key this is the commit point.
/// A key that is already committed at `commit_ts` is skipped. A shared lock goes without a record, so a coordinator
/// resolves those of its transaction: a repeated commit would find none.
///
/// # Errors
///
/// - [`KeyError::CommitTsTooEarly`]: a lock requires a higher commit_ts.
/// - [`KeyError::RolledBack`]: the transaction was rolled back on a key.
/// - [`KeyError::Committed`]: a key is committed at another timestamp, which holds.
/// - [`KeyError::LockNotFound`]: a key was never prewritten here.
/// - [`ActionError::Invalid`]: `start_ts` or `commit_ts` is out of range.
pub fn commit<R: Reader + ?Sized>(
    reader: &R,
    keys: &[Key],
    start_ts: Timestamp,
    commit_ts: Timestamp,
) -> Result<WriteBatch, ActionError> {
    check_start_ts(start_ts)?;
    check_commit_ts(start_ts, commit_ts)?;
    let mut batch = WriteBatch::new();
    for key in keys {
        let storage = key.to_storage();
        match load_lock(reader, &storage)?.filter(|lock| lock.start_ts == start_ts) {
            Some(lock) if commit_ts < lock.min_commit_ts => {
                let min_commit_ts = lock.min_commit_ts;
                return Err(KeyError::CommitTsTooEarly { commit_ts, min_commit_ts }.into());
            }
            Some(lock) => commit_lock(reader, &mut batch, &storage, &lock, commit_ts)?,
            None if load_shared(reader, &storage, start_ts)?.is_some() => {
                remove_shared(reader, &mut batch, &storage, start_ts)?;
            }
            None => match own_record(reader, &storage, start_ts)? {
                Some(TxnRecord::Committed { commit_ts: present }) if present == commit_ts => (),
                Some(TxnRecord::Committed { commit_ts }) => {
                    return Err(KeyError::Committed { start_ts, commit_ts }.into());
                }
                Some(TxnRecord::RolledBack) => return Err(KeyError::RolledBack { start_ts }.into()),
                None => return Err(KeyError::LockNotFound { start_ts, key: key.clone() }.into()),
            },
        }
    }
    Ok(batch)
}

/// Rolls back `start_ts` on `keys`. Each key keeps a rollback mark, so that a prewrite that is still under way fails
/// when it arrives.
///
/// # Errors
///
/// [`KeyError::Committed`] if the transaction has committed one of the keys; [`ActionError::Invalid`] if `start_ts` or
/// a key is out of range.
pub fn rollback<R: Reader + ?Sized>(reader: &R, keys: &[Key], start_ts: Timestamp) -> Result<WriteBatch, ActionError> {
    check_start_ts(start_ts)?;
    let mut batch = WriteBatch::new();
    for key in keys {
        check_key(key)?;
        let storage = key.to_storage();
        if let Some(lock) = load_lock(reader, &storage)?.filter(|lock| lock.start_ts == start_ts) {
            rollback_lock(reader, &mut batch, &storage, &lock)?;
            continue;
        }
        if load_shared(reader, &storage, start_ts)?.is_some() {
            rollback_shared(reader, &mut batch, &storage, start_ts)?;
            continue;
        }
        match own_record(reader, &storage, start_ts)? {
            Some(TxnRecord::Committed { commit_ts }) => return Err(KeyError::Committed { start_ts, commit_ts }.into()),
            Some(TxnRecord::RolledBack) => (),
            None => put_mark(&mut batch, &storage, start_ts),
        }
    }
    Ok(batch)
}

/// Commits (with `commit_ts`) or rolls back the locks of `start_ts` on `keys`, after the decision was read from the
/// primary. Keys without a lock of `start_ts` are skipped: either their lock was resolved before, or their prewrite has
/// yet to arrive and a later reader resolves it.
///
/// # Errors
///
/// [`KeyError::CommitTsTooEarly`] if a lock requires a higher commit_ts; [`ActionError::Invalid`] if `start_ts` or
/// `commit_ts` is out of range.
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
        let Some(lock) = load_lock(reader, &storage)?.filter(|lock| lock.start_ts == start_ts) else {
            match load_shared(reader, &storage, start_ts)? {
                Some(_) if commit_ts.is_some() => remove_shared(reader, &mut batch, &storage, start_ts)?,
                Some(_) => rollback_shared(reader, &mut batch, &storage, start_ts)?,
                None => (),
            }
            continue;
        };
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
