//! Heartbeat: keeps the primary lock of a long transaction alive.

use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use super::{Effects, check_start_ts};
use crate::api::KeyError;
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::LockRecord;
use crate::mvcc::reader::load_lock;

/// Extends the life of the transaction's lock on `primary` to at least `ttl_ms` from its start_ts, and answers the life now in force. `LockNotFound` if
/// there is no such lock: the transaction was rolled back, or is committed.
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
