//! What the actions share: the record that a transaction left on a key, and the changes that end a lock.

use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use crate::mvcc::versions::{Versions, value_key};
use crate::mvcc::{LockKind, LockRecord, MvccError, Result, WriteKind, WriteRecord};

/// The mark of a transaction that no longer holds the lock of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxnRecord {
    /// It committed.
    Committed { commit_ts: Timestamp },
    /// It was rolled back.
    RolledBack,
}

/// Another transaction's commit above a start_ts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewerCommit {
    pub(super) start_ts: Timestamp,
    pub(super) commit_ts: Timestamp,
}

/// What the records at or above a transaction's start_ts say. If it has a record of its own, the rest is not looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    pub(super) own: Option<TxnRecord>,
    /// The newest commit of another transaction above start_ts.
    pub(super) newer: Option<NewerCommit>,
}

/// Reads what the key's records say of the transaction `start_ts`. They are read down to its start_ts even when a newer commit is found
/// first: its own commit may lie below that, and a prewrite repeated after it must learn of it rather than of a conflict.
pub(super) fn history(versions: &mut Versions<'_>, storage: &[u8], start_ts: Timestamp) -> Result<History> {
    let mut history = History::default();
    let mut found = versions.seek(storage, Timestamp::MAX)?;
    while found {
        let (ts, write) = versions.current()?;
        if ts < start_ts {
            break;
        }
        if ts == start_ts && (write.kind == WriteKind::Rollback || write.overlapped_rollback) {
            return Ok(History { own: Some(TxnRecord::RolledBack), newer: None });
        }
        if write.start_ts == start_ts {
            return Ok(History { own: Some(TxnRecord::Committed { commit_ts: ts }), newer: None });
        }
        if ts > start_ts && write.kind != WriteKind::Rollback && history.newer.is_none() {
            history.newer = Some(NewerCommit { start_ts: write.start_ts, commit_ts: ts });
        }
        found = versions.older(storage)?;
    }
    Ok(history)
}

/// The record of the transaction on one key.
pub(super) fn own_record<R: Reader + ?Sized>(
    reader: &R,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<Option<TxnRecord>> {
    Ok(history(&mut Versions::of_key(reader, storage)?, storage, start_ts)?.own)
}

/// Replaces a lock by its commit record.
pub(super) fn commit_lock<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    lock: &LockRecord,
    commit_ts: Timestamp,
) -> Result<()> {
    assert!(commit_ts >= lock.min_commit_ts && commit_ts > lock.start_ts, "invariant 3: {lock:?} at {commit_ts}");
    let kind = match lock.kind {
        LockKind::Put => WriteKind::Put,
        LockKind::Delete => WriteKind::Delete,
        LockKind::Lock => WriteKind::Lock,
    };
    let versioned = value_key(storage, commit_ts);
    // A rollback mark of the transaction that started at just this timestamp must outlive our record.
    let overlapped_rollback = match reader.get(Cf::Write, &versioned)? {
        None => false,
        Some(bytes) => match WriteRecord::decode(&bytes)?.kind {
            WriteKind::Rollback => true,
            _ => return Err(inconsistent("is committed twice", storage, commit_ts)),
        },
    };
    let short_value = lock.short_value.as_deref();
    let write = WriteRecord { kind, start_ts: lock.start_ts, short_value, overlapped_rollback };
    batch.put(Cf::Write, &versioned, &write.encode());
    batch.delete(Cf::Lock, storage);
    Ok(())
}

/// Removes a lock and the value it staged, and leaves a rollback mark.
pub(super) fn rollback_lock<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    lock: &LockRecord,
) -> Result<()> {
    if lock.kind == LockKind::Put && lock.short_value.is_none() {
        batch.delete(Cf::Default, &value_key(storage, lock.start_ts));
    }
    batch.delete(Cf::Lock, storage);
    mark_rolled_back(reader, batch, storage, lock.start_ts)
}

/// Leaves a rollback mark: a prewrite of the transaction that arrives later fails.
pub(super) fn mark_rolled_back<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<()> {
    let versioned = value_key(storage, start_ts);
    let record = match reader.get(Cf::Write, &versioned)? {
        None => WriteRecord::rollback(start_ts).encode(),
        Some(bytes) => {
            let present = WriteRecord::decode(&bytes)?;
            if present.kind == WriteKind::Rollback || present.start_ts == start_ts {
                return Err(inconsistent("has a lock and a record of one transaction", storage, start_ts));
            }
            WriteRecord { overlapped_rollback: true, ..present }.encode()
        }
    };
    batch.put(Cf::Write, &versioned, &record);
    Ok(())
}

fn inconsistent(what: &str, storage: &[u8], ts: Timestamp) -> MvccError {
    MvccError::Inconsistent(format!("key {} {what} at {ts}", storage.escape_ascii()))
}
