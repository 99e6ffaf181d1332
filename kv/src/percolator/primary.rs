//! The actions on a transaction's primary lock: check the transaction's status, extend the lock's life.

use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use super::common::{Effects, TxnRecord, check_key, check_start_ts, own_record, rollback_lock};
use crate::api::{CheckTxnStatusRequest, KeyError, TxnStatus};
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::LockRecord;
use crate::mvcc::mark::put_mark;
use crate::mvcc::reader::load_lock;
use crate::mvcc::shared::load_shared;

/// Reads the status of the transaction `lock_ts` from its primary. A transaction that met one of its locks asks.
///
/// An expired primary lock is rolled back. A live one is pushed: its min_commit_ts is raised above `reader_ts`, so that
/// the reader may pass every lock of the transaction. The others need no push, because a transaction has one commit_ts
/// and the primary's commit refuses a lower one. The lock of an async commit is left as it is, unless the request says
/// that the transaction fell back to two phases: all of its keys decide. If the primary has neither a lock nor a record
/// and the request sets `rollback_if_missing`, a rollback mark is written. Against a concurrent commit of the primary,
/// the first one applied wins.
///
/// # Errors
///
/// [`ActionError::Invalid`] if the lock on the key names another primary, or `lock_ts` or the key is out of range.
pub fn check_txn_status<R: Reader + ?Sized>(
    reader: &R,
    request: &CheckTxnStatusRequest,
) -> Result<Effects<TxnStatus>, ActionError> {
    let start_ts = request.lock_ts;
    check_start_ts(start_ts)?;
    check_key(&request.primary)?;
    let storage = request.primary.to_storage();
    let mut batch = WriteBatch::new();
    if let Some(lock) = load_lock(reader, &storage)?.filter(|lock| lock.start_ts == start_ts) {
        if lock.primary != request.primary {
            // Another key decides the status of the transaction.
            return Err(ActionError::Invalid("the key is not the primary of its transaction"));
        }
        let LockRecord { ttl_ms, min_commit_ts, .. } = lock;
        if let Some(secondaries) = lock.async_secondaries.as_ref().filter(|_| !request.fell_back) {
            let secondaries = secondaries.clone();
            return Ok((batch, TxnStatus::Async { ttl_ms, min_commit_ts, secondaries }));
        }
        if !lock.is_expired_at(request.current_ts) {
            if min_commit_ts > request.reader_ts {
                return Ok((batch, TxnStatus::Alive { ttl_ms, min_commit_ts }));
            }
            let min_commit_ts = request.reader_ts.next();
            // If it fell back, others see that from now on.
            let pushed = LockRecord { min_commit_ts, async_secondaries: None, ..lock };
            batch.put(Cf::Lock, &storage, &pushed.encode());
            return Ok((batch, TxnStatus::Alive { ttl_ms, min_commit_ts }));
        }
        rollback_lock(reader, &mut batch, &storage, &lock)?;
        return Ok((batch, TxnStatus::RolledBack));
    }
    if load_shared(reader, &storage, start_ts)?.is_some() {
        return Err(ActionError::Invalid("the key is not the primary of its transaction"));
    }
    let status = match own_record(reader, &storage, start_ts)? {
        Some(TxnRecord::Committed { commit_ts }) => TxnStatus::Committed { commit_ts },
        Some(TxnRecord::RolledBack) => TxnStatus::RolledBack,
        None if request.rollback_if_missing => {
            put_mark(&mut batch, &storage, start_ts);
            TxnStatus::RolledBack
        }
        None => TxnStatus::Missing,
    };
    Ok((batch, status))
}

/// Extends the life of the transaction's lock on `primary` to at least `ttl_ms` milliseconds from its start_ts. Returns
/// the ttl now in force. A heartbeat never shortens it.
///
/// # Errors
///
/// [`KeyError::LockNotFound`] if the transaction has no lock there: it was rolled back, or has committed.
/// [`ActionError::Invalid`] if `start_ts` is out of range.
pub fn heartbeat<R: Reader + ?Sized>(
    reader: &R,
    primary: &Key,
    start_ts: Timestamp,
    ttl_ms: u64,
) -> Result<Effects<u64>, ActionError> {
    check_start_ts(start_ts)?;
    let storage = primary.to_storage();
    let Some(lock) = load_lock(reader, &storage)?.filter(|lock| lock.start_ts == start_ts) else {
        return Err(KeyError::LockNotFound { start_ts, key: primary.clone() }.into());
    };
    let mut batch = WriteBatch::new();
    if ttl_ms <= lock.ttl_ms {
        return Ok((batch, lock.ttl_ms));
    }
    batch.put(Cf::Lock, &storage, &LockRecord { ttl_ms, ..lock }.encode());
    Ok((batch, ttl_ms))
}
