//! What a transaction that locks a row in memory finds there: the newest state of the row.
//!
//! The caller holds the latch of the key, and the row's lock in memory. So nothing that is evaluated later changes the
//! row before the transaction ends, unless the lock is lost.

use bytes::Bytes;
use engine::store::Reader;
use tso::Timestamp;

use super::common::{check_key, check_start_ts};
use super::shared::locks_against;
use crate::api::{AcquireRequest, KeyError, LockId, LockInfo, LockedRow, Presence, RowFound};
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::WriteKind;
use crate::mvcc::versions::{Versions, long_value};

/// What stands in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The lock of another transaction, or one of several that share the row.
    Locked(LockInfo),
    /// The row. `is_locked`: whether the transaction wants its lock.
    Row(LockedRow),
}

/// The newest change of a row.
struct Newest {
    /// When it was committed; [`Timestamp::ZERO`] if there is none.
    commit_ts: Timestamp,
    writer: Timestamp,
    exists: bool,
}

/// Looks at the newest state of a row that `request` locks.
///
/// # Errors
///
/// - [`KeyError::WriteConflict`]: the row was changed after the snapshot of the request, and the request depends on it.
/// - [`KeyError::AlreadyExists`]: the row exists and must not.
/// - [`ActionError::Invalid`]: start_ts or the key is out of range.
pub(crate) fn look<R: Reader + ?Sized>(reader: &R, key: &Key, request: &AcquireRequest) -> Result<Look, ActionError> {
    check_start_ts(request.start_ts)?;
    check_key(key)?;
    let storage = key.to_storage();
    let locks = locks_against(reader, key, &storage, (request.start_ts, request.mode))?;
    if let Some(lock) = locks.into_iter().next() {
        return Ok(Look::Locked(lock));
    }
    let mut versions = Versions::of_key(reader, &storage)?;
    let seen_ts = if versions.seek(&storage, Timestamp::MAX)? { versions.current()?.0 } else { Timestamp::ZERO };
    let newest = newest(&mut versions, &storage)?;
    if request.presence == Presence::MustBeAbsent && newest.exists {
        return Err(KeyError::AlreadyExists { key: key.clone() }.into());
    }
    if let Some(snapshot) = request.snapshot.filter(|snapshot| newest.commit_ts > *snapshot) {
        let mut was_there = || existed(&mut versions, &storage, snapshot);
        let conflicts = match request.presence {
            Presence::Present => was_there()?,
            Presence::Any => newest.exists || was_there()?,
            Presence::Absent | Presence::MustBeAbsent => newest.exists,
        };
        if conflicts {
            let (conflict_start_ts, conflict_commit_ts) = (newest.writer, newest.commit_ts);
            let (key, start_ts) = (key.clone(), request.start_ts);
            return Err(KeyError::WriteConflict { key, start_ts, conflict_start_ts, conflict_commit_ts }.into());
        }
        if request.presence == Presence::Present {
            // The transaction does not see it.
            return Ok(Look::Row(LockedRow {
                is_locked: false,
                lock: LockId::NONE,
                commit_ts: seen_ts,
                row: RowFound::Absent,
            }));
        }
    }
    let is_locked = match request.presence {
        Presence::Any => true,
        Presence::Present => newest.exists,
        Presence::Absent | Presence::MustBeAbsent => !newest.exists,
    };
    let is_unchanged = request.seen_ts > Timestamp::ZERO && newest.commit_ts <= request.seen_ts;
    let row = match newest.exists {
        _ if is_unchanged => RowFound::Unchanged,
        true => RowFound::Present(value(reader, &mut versions, &storage)?),
        false => RowFound::Absent,
    };
    // Whoever has the lock in memory numbers it.
    Ok(Look::Row(LockedRow { is_locked, lock: LockId::NONE, commit_ts: seen_ts, row }))
}

fn newest(versions: &mut Versions, storage: &[u8]) -> Result<Newest, ActionError> {
    if !versions.seek_data(storage, Timestamp::MAX)? {
        return Ok(Newest { commit_ts: Timestamp::ZERO, writer: Timestamp::ZERO, exists: false });
    }
    let (commit_ts, write) = versions.current()?;
    Ok(Newest { commit_ts, writer: write.start_ts, exists: write.kind == WriteKind::Put })
}

fn existed(versions: &mut Versions, storage: &[u8], at: Timestamp) -> Result<bool, ActionError> {
    Ok(versions.seek_data(storage, at)? && versions.current()?.1.kind == WriteKind::Put)
}

/// The newest value of a row that exists.
fn value<R: Reader + ?Sized>(reader: &R, versions: &mut Versions, storage: &[u8]) -> Result<Bytes, ActionError> {
    versions.seek_data(storage, Timestamp::MAX)?;
    let (_, write) = versions.current()?;
    match write.short_value {
        Some(short) => Ok(Bytes::copy_from_slice(short)),
        None => Ok(long_value(reader, storage, write.start_ts)?),
    }
}
