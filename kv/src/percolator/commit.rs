//! Commit: the second phase. Turns a transaction's locks into versions; on the primary key this is the commit point.

use engine::WriteBatch;
use engine::store::Reader;
use tso::Timestamp;

use super::record::{TxnRecord, commit_lock, own_record};
use super::{check_commit_ts, check_start_ts};
use crate::api::KeyError;
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::reader::load_lock;

/// Commits `keys` at `commit_ts`. A key that is committed already, at the same timestamp, counts as done.
///
/// Without the lock the key's records decide: `RolledBack` if somebody took the transaction for dead, `Committed` if it
/// committed at another timestamp (only that one holds), `LockNotFound` if it was never prewritten here. `CommitTsTooEarly` asks
/// for a newer timestamp.
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
