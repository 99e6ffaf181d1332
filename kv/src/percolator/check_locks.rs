//! The action that reads the keys of an async commit: its transaction is committed once all of them are locked.

use engine::WriteBatch;
use engine::store::Reader;

use super::common::{Effects, TxnRecord, check_key, check_start_ts, own_record};
use crate::api::{CheckLocksRequest, LocksStatus};
use crate::error::ActionError;
use crate::mvcc::mark::put_mark;
use crate::mvcc::reader::load_lock;
use crate::mvcc::shared::load_shared;

/// Reads what the keys show of the transaction `lock_ts`. With `mark_missing`, a key that has neither a lock nor a
/// record gets a rollback mark, unless another key shows that the transaction is decided or that its primary decides.
///
/// The leader has raised `max_ts` to the request's `reader_ts` and holds the latches: a key that is missing here is
/// locked later than that, with a greater min_commit_ts.
///
/// # Errors
///
/// [`ActionError::Invalid`] if `lock_ts` or a key is out of range.
pub fn check_locks<R: Reader + ?Sized>(
    reader: &R,
    request: &CheckLocksRequest,
) -> Result<Effects<LocksStatus>, ActionError> {
    check_start_ts(request.lock_ts)?;
    let mut missing = Vec::new();
    let mut status: Option<LocksStatus> = None;
    for key in &request.keys {
        check_key(key)?;
        let storage = key.to_storage();
        let lock = load_lock(reader, &storage)?.filter(|lock| lock.start_ts == request.lock_ts);
        let found = match lock {
            Some(lock) if lock.async_secondaries.is_some() => LocksStatus::Locked { min_commit_ts: lock.min_commit_ts },
            Some(_) => LocksStatus::TwoPhase,
            None if load_shared(reader, &storage, request.lock_ts)?.is_some() => LocksStatus::TwoPhase,
            None => match own_record(reader, &storage, request.lock_ts)? {
                Some(TxnRecord::Committed { commit_ts }) => LocksStatus::Committed { commit_ts },
                Some(TxnRecord::RolledBack) => LocksStatus::RolledBack,
                None => {
                    missing.push(storage);
                    LocksStatus::Missing
                }
            },
        };
        status = Some(status.map_or(found, |status| status.merge(found)));
    }
    let status = status.ok_or(ActionError::Invalid("no keys to check"))?;
    let mut batch = WriteBatch::new();
    if status != LocksStatus::Missing || !request.mark_missing {
        return Ok((batch, status));
    }
    missing.iter().for_each(|storage| put_mark(&mut batch, storage, request.lock_ts));
    Ok((batch, LocksStatus::RolledBack))
}
