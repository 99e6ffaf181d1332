//! CheckTxnStatus: the fate of a transaction, read off its primary key by somebody who met one of its locks.

use engine::WriteBatch;
use engine::store::Reader;

use super::record::{TxnRecord, mark_rolled_back, own_record, rollback_lock};
use super::{Effects, check_key, check_start_ts};
use crate::api::{CheckTxnStatusRequest, TxnStatus};
use crate::error::ActionError;
use crate::mvcc::reader::load_lock;

/// Says what became of the transaction `lock_ts`, and decides it where nobody else will: an expired primary lock is rolled back,
/// and so is, if asked, a primary that is neither locked nor marked. Whoever commits the primary, or rolls it back, first wins.
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
            // The fate of the transaction is not decided on this key.
            return Err(ActionError::Invalid("the key is not the primary of its transaction"));
        }
        if !lock.is_expired_at(request.current_ts) {
            return Ok((batch, TxnStatus::Alive { ttl_ms: lock.ttl_ms }));
        }
        rollback_lock(reader, &mut batch, &storage, &lock)?;
        return Ok((batch, TxnStatus::RolledBack));
    }
    let status = match own_record(reader, &storage, start_ts)? {
        Some(TxnRecord::Committed { commit_ts }) => TxnStatus::Committed { commit_ts },
        Some(TxnRecord::RolledBack) => TxnStatus::RolledBack,
        None if request.rollback_if_missing => {
            mark_rolled_back(reader, &mut batch, &storage, start_ts)?;
            TxnStatus::RolledBack
        }
        None => TxnStatus::Missing,
    };
    Ok((batch, status))
}
