//! Rollback: undoes a prewrite, whether it has arrived or not.

use engine::WriteBatch;
use engine::store::Reader;
use tso::Timestamp;

use super::record::{TxnRecord, mark_rolled_back, own_record, rollback_lock};
use super::{check_key, check_start_ts};
use crate::api::KeyError;
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::reader::load_lock;

/// Rolls back `start_ts` on `keys`. Each key keeps a mark, so that a prewrite that was under way fails when it arrives. `Committed` if it is
/// too late.
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
        match own_record(reader, &storage, start_ts)? {
            Some(TxnRecord::Committed { commit_ts }) => return Err(KeyError::Committed { start_ts, commit_ts }.into()),
            Some(TxnRecord::RolledBack) => (),
            None => mark_rolled_back(reader, &mut batch, &storage, start_ts)?,
        }
    }
    Ok(batch)
}
