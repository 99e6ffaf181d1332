//! Common parts of the actions: checks of arguments, a transaction's record on a key, and the end of a lock.

use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use crate::error::{ActionError, MvccError, Result};
use crate::key::{Key, versioned};
use crate::mvcc::versions::Versions;
use crate::mvcc::{LockKind, LockRecord, WriteKind, WriteRecord};

/// The longest key that a transaction may write, in bytes.
pub const KEY_LEN_MAX: usize = 64 * 1024;

/// The result of an action: the batch to replicate (empty if nothing changes), and the response to send once it is
/// applied.
pub type Effects<T> = (WriteBatch, T);

/// Refuses a start_ts that the oracle never issues.
pub(super) fn check_start_ts(start_ts: Timestamp) -> Result<(), ActionError> {
    if start_ts == Timestamp::ZERO || start_ts == Timestamp::MAX {
        return Err(ActionError::Invalid("start_ts was not issued by the oracle"));
    }
    Ok(())
}

/// Refuses a commit_ts that is not above `start_ts`, or that the oracle never issues.
pub(super) fn check_commit_ts(start_ts: Timestamp, commit_ts: Timestamp) -> Result<(), ActionError> {
    if commit_ts <= start_ts || commit_ts == Timestamp::MAX {
        return Err(ActionError::Invalid("commit_ts is not above start_ts"));
    }
    Ok(())
}

/// Refuses a key longer than [`KEY_LEN_MAX`].
pub(super) fn check_key(key: &Key) -> Result<(), ActionError> {
    if key.as_bytes().len() > KEY_LEN_MAX {
        return Err(ActionError::Invalid("key is too long"));
    }
    Ok(())
}

/// The record of a transaction on a key whose lock it no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TxnRecord {
    /// A commit record.
    Committed { commit_ts: Timestamp },
    /// A rollback mark.
    RolledBack,
}

/// A commit of another transaction above a start_ts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewerCommit {
    pub(super) start_ts: Timestamp,
    pub(super) commit_ts: Timestamp,
}

/// The records of a key at or above a transaction's start_ts. If the transaction has a record of its own, `newer` is
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// The transaction's own record.
    pub(super) own: Option<TxnRecord>,
    /// The newest commit of another transaction above start_ts.
    pub(super) newer: Option<NewerCommit>,
}

/// Reads the key's records from the newest down to `start_ts`. The search does not end at a newer commit: the
/// transaction's own commit may be below it, and a repeated prewrite must find that rather than a conflict.
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
        found = versions.next_older(storage)?;
    }
    Ok(history)
}

/// The transaction's own record on one key.
pub(super) fn own_record<R: Reader + ?Sized>(
    reader: &R,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<Option<TxnRecord>> {
    Ok(history(&mut Versions::of_key(reader, storage)?, storage, start_ts)?.own)
}

/// Replaces a lock by a commit record.
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
    let row = versioned(storage, commit_ts);
    // Keep the rollback mark of a transaction whose start_ts is our commit_ts.
    let overlapped_rollback = match reader.get(Cf::Write, &row)? {
        None => false,
        Some(bytes) => match WriteRecord::decode(&bytes)?.kind {
            WriteKind::Rollback => true,
            _ => return Err(inconsistent("is committed twice", storage, commit_ts)),
        },
    };
    let short_value = lock.short_value.as_deref();
    let write = WriteRecord { kind, start_ts: lock.start_ts, short_value, overlapped_rollback };
    batch.put(Cf::Write, &row, &write.encode());
    batch.delete(Cf::Lock, storage);
    Ok(())
}

/// Removes a lock and its staged value, and writes a rollback mark.
pub(super) fn rollback_lock<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    lock: &LockRecord,
) -> Result<()> {
    if lock.kind == LockKind::Put && lock.short_value.is_none() {
        batch.delete(Cf::Default, &versioned(storage, lock.start_ts));
    }
    batch.delete(Cf::Lock, storage);
    mark_rolled_back(reader, batch, storage, lock.start_ts)
}

/// Writes a rollback mark, so that a later prewrite of the transaction fails.
pub(super) fn mark_rolled_back<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<()> {
    let row = versioned(storage, start_ts);
    let record = match reader.get(Cf::Write, &row)? {
        None => WriteRecord::rollback(start_ts).encode(),
        Some(bytes) => {
            let present = WriteRecord::decode(&bytes)?;
            if present.kind == WriteKind::Rollback || present.start_ts == start_ts {
                return Err(inconsistent("has a lock and a record of one transaction", storage, start_ts));
            }
            WriteRecord { overlapped_rollback: true, ..present }.encode()
        }
    };
    batch.put(Cf::Write, &row, &record);
    Ok(())
}

fn inconsistent(what: &str, storage: &[u8], ts: Timestamp) -> MvccError {
    MvccError::Inconsistent(format!("key {} {what} at {ts}", storage.escape_ascii()))
}
