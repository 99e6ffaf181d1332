//! Common parts of the actions: checks of arguments, a transaction's record on a key, and the end of a lock.

use bytes::Bytes;
use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use crate::error::{ActionError, MvccError, Result};
use crate::key::{Key, versioned};
use crate::mvcc::mark::{has_mark, put_mark};
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

/// A commit of another transaction that ours has not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewerCommit {
    pub(super) start_ts: Timestamp,
    pub(super) commit_ts: Timestamp,
}

/// The newest records of a key. If the transaction has a record of its own, `newer` is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// The transaction's own record.
    pub(super) own: Option<TxnRecord>,
    /// The newest commit of another transaction that this one has not seen.
    pub(super) newer: Option<NewerCommit>,
}

/// Looks for the transaction's own record, and for commits above `seen_ts`, which is not above `start_ts`.
///
/// The own commit, if there is one, is the oldest commit above `start_ts` (invariant 4 of this module's parent), so two
/// seeks find both, however many commits are above. It may be below a newer commit, and a repeated prewrite must find
/// it rather than a conflict.
pub(super) fn history<R: Reader + ?Sized>(
    reader: &R,
    versions: &mut Versions,
    storage: &[u8],
    (start_ts, seen_ts): (Timestamp, Timestamp),
) -> Result<History> {
    let mut history = History::default();
    let mut is_above = false;
    if versions.seek(storage, Timestamp::MAX)? {
        let (commit_ts, write) = versions.current()?;
        is_above = commit_ts > start_ts;
        if commit_ts > seen_ts {
            history.newer = Some(NewerCommit { start_ts: write.start_ts, commit_ts });
        }
    }
    if is_above && versions.seek_oldest(storage, start_ts.next())? {
        let (commit_ts, write) = versions.current()?;
        if write.start_ts == start_ts {
            return Ok(History { own: Some(TxnRecord::Committed { commit_ts }), newer: None });
        }
    }
    if has_mark(reader, storage, start_ts)? {
        return Ok(History { own: Some(TxnRecord::RolledBack), newer: None });
    }
    Ok(history)
}

/// The transaction's own record on one key.
pub(super) fn own_record<R: Reader + ?Sized>(
    reader: &R,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<Option<TxnRecord>> {
    Ok(history(reader, &mut Versions::of_key(reader, storage)?, storage, (start_ts, start_ts))?.own)
}

/// What a commit does to one key. A long value is in `Cf::Default` already.
pub(super) struct StagedChange {
    pub(super) kind: LockKind,
    pub(super) short_value: Option<Bytes>,
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
    if reader.get(Cf::Write, &versioned(storage, commit_ts))?.is_some() {
        return Err(inconsistent("is committed twice", storage, commit_ts));
    }
    let change = StagedChange { kind: lock.kind, short_value: lock.short_value.clone() };
    put_commit(reader, batch, storage, change, (lock.start_ts, commit_ts))?;
    batch.delete(Cf::Lock, storage);
    Ok(())
}

/// Adds the commit record of a change, of the transaction `start_ts` at `commit_ts`. The caller has shown that there is
/// no record at `commit_ts`.
pub(super) fn put_commit<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    change: StagedChange,
    (start_ts, commit_ts): (Timestamp, Timestamp),
) -> Result<()> {
    let row = versioned(storage, commit_ts);
    let kind = match change.kind {
        LockKind::Put => WriteKind::Put,
        LockKind::Delete => WriteKind::Delete,
        LockKind::Lock => WriteKind::Lock { last_data: last_data(reader, storage, commit_ts)? },
    };
    let write = WriteRecord { kind, start_ts, short_value: change.short_value.as_deref() };
    batch.put(Cf::Write, &row, &write.encode());
    Ok(())
}

/// The commit_ts of the newest record at or below `ts` that sets or deletes the key; `None` if there is none.
fn last_data<R: Reader + ?Sized>(reader: &R, storage: &[u8], ts: Timestamp) -> Result<Option<Timestamp>> {
    let mut versions = Versions::of_key(reader, storage)?;
    if !versions.seek(storage, ts)? {
        return Ok(None);
    }
    let (commit_ts, write) = versions.current()?;
    Ok(match write.kind {
        WriteKind::Put | WriteKind::Delete => Some(commit_ts),
        WriteKind::Lock { last_data } => last_data,
    })
}

/// Removes a lock, and replaces its staged value, if any, by a rollback mark.
pub(super) fn rollback_lock<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    lock: &LockRecord,
) -> Result<()> {
    if has_mark(reader, storage, lock.start_ts)? {
        return Err(inconsistent("has a lock and a rollback mark of one transaction", storage, lock.start_ts));
    }
    batch.delete(Cf::Lock, storage);
    put_mark(batch, storage, lock.start_ts);
    Ok(())
}

fn inconsistent(what: &str, storage: &[u8], ts: Timestamp) -> MvccError {
    MvccError::Inconsistent(format!("key {} {what} at {ts}", storage.escape_ascii()))
}
