//! Shared locks in the actions: whom they keep out, what they wait for, and what has happened to a row since its
//! transaction locked it in memory.
//!
//! A transaction that has locked a row to share it relies on the row: with SHARE or NO KEY UPDATE that it is not
//! changed, with KEY SHARE that it stays, under its key. The memory of the leader is no proof of that. So the prewrite
//! looks at the records that were committed since the row was seen: under SHARE none may have set or deleted it, under
//! KEY SHARE none may have deleted it. (An update leaves the row its key: the update of a primary key deletes the row.)
//! From there on the shared lock keeps out what would conflict. A commit in one phase needs none: nothing is evaluated
//! on its keys between its check and its end.
//!
//! **The time of a writer that comes later** is above that of the holder, although the holder leaves no record on the
//! row. A commit_ts from the oracle is fetched after the prewrite, which the holder has kept out. One that a region
//! computes is above `max_ts`, to which the holder's commit_ts is raised before its shared lock goes (`scheduler.rs`).

use engine::WriteBatch;
use engine::store::Reader;
use tso::Timestamp;

use super::common::NewerCommit;
use crate::api::{LockInfo, LockMode, MutationOp, PrewriteRequest};
use crate::error::{ActionError, Result};
use crate::key::Key;
use crate::mvcc::mark::{has_mark, put_mark};
use crate::mvcc::reader::load_lock;
use crate::mvcc::shared::{put_shared, remove_shared, shared_locks};
use crate::mvcc::versions::Versions;
use crate::mvcc::{LockKind, LockRecord, SharedLock, WriteKind};

/// The updates of a row that a holder of its key may have to look at. After more, it counts as changed.
const UPDATES_MAX: usize = 10_000;
/// The most holders that are looked for.
const HOLDERS_MAX: usize = 256;

/// The strength of a change of a row. An update leaves the row its key; what brings a row leaves nobody its key.
fn strength(kind: LockKind, row_exists: bool) -> LockMode {
    if kind == LockKind::Put && row_exists { LockMode::NoKeyUpdate } else { LockMode::Update }
}

/// The strength of a mutation; `None` if it locks nothing.
pub(super) fn strength_of<R: Reader + ?Sized>(
    reader: &R,
    storage: &[u8],
    op: &MutationOp,
) -> Result<Option<LockMode>, ActionError> {
    Ok(match op {
        MutationOp::Put(_) => Some(strength(LockKind::Put, exists(reader, storage)?)),
        MutationOp::Insert(_) | MutationOp::Delete | MutationOp::Lock => Some(LockMode::Update),
        MutationOp::Shared(mode) => Some(*mode),
        MutationOp::CheckNotExists => None,
    })
}

/// Whether there is a row, in the newest state.
fn exists<R: Reader + ?Sized>(reader: &R, storage: &[u8]) -> Result<bool> {
    let mut versions = Versions::of_key(reader, storage)?;
    Ok(versions.seek_data(storage, Timestamp::MAX)? && versions.current()?.1.kind == WriteKind::Put)
}

/// The locks that keep a transaction from sharing a row, or from locking it in memory: the lock of the key and the
/// shared ones. Those of the transaction itself do not.
pub(super) fn locks_against<R: Reader + ?Sized>(
    reader: &R,
    key: &Key,
    storage: &[u8],
    (start_ts, mode): (Timestamp, LockMode),
) -> Result<Vec<LockInfo>> {
    let mut found = holders_against(reader, key, storage, (start_ts, mode))?;
    if let Some(lock) = load_lock(reader, storage)?.filter(|lock| lock.start_ts != start_ts)
        && keeps_out(reader, storage, &lock, mode)?
    {
        found.push(lock.info(key.clone()));
    }
    Ok(found)
}

fn keeps_out<R: Reader + ?Sized>(reader: &R, storage: &[u8], lock: &LockRecord, mode: LockMode) -> Result<bool> {
    // Whether there is a row matters to the weakest lock alone.
    let row_exists = mode == LockMode::KeyShare && exists(reader, storage)?;
    Ok(mode.conflicts_with(strength(lock.kind, row_exists)))
}

/// The shared locks of other transactions that conflict with a lock of this strength.
pub(super) fn holders_against<R: Reader + ?Sized>(
    reader: &R,
    key: &Key,
    storage: &[u8],
    (start_ts, mode): (Timestamp, LockMode),
) -> Result<Vec<LockInfo>> {
    let conflicts = |lock: &SharedLock| lock.start_ts != start_ts && mode.conflicts_with(lock.mode);
    let found = shared_locks(reader, storage, HOLDERS_MAX, conflicts)?;
    Ok(found.into_iter().map(|lock| lock.info(key.clone())).collect())
}

/// The newest change that breaks what a holder of `mode` relies on, of those committed above `seen_ts`.
pub(super) fn broken_by(
    versions: &mut Versions,
    storage: &[u8],
    (mode, seen_ts): (LockMode, Timestamp),
) -> Result<Option<NewerCommit>> {
    if !versions.seek_data(storage, Timestamp::MAX)? {
        return Ok(None);
    }
    let (commit_ts, write) = versions.current()?;
    if commit_ts <= seen_ts {
        return Ok(None);
    }
    let newest = NewerCommit { start_ts: write.start_ts, commit_ts };
    if mode != LockMode::KeyShare {
        return Ok(Some(newest));
    }
    for _ in 0..UPDATES_MAX {
        let (commit_ts, write) = versions.current()?;
        match write.kind {
            WriteKind::Delete => return Ok(Some(newest)),
            WriteKind::Put if commit_ts <= seen_ts => return Ok(None),
            WriteKind::Put | WriteKind::Lock { .. } => (),
        }
        if !versions.step(storage)? {
            break;
        }
    }
    // The row was not there when it was locked, or it has changed too often.
    Ok(Some(newest))
}

/// Adds the shared lock of a mutation to the batch.
pub(super) fn stage_shared<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    mode: LockMode,
    request: &PrewriteRequest,
) -> Result<()> {
    let PrewriteRequest { primary, start_ts, ttl_ms, .. } = request;
    let lock = SharedLock { mode, primary: primary.clone(), start_ts: *start_ts, ttl_ms: *ttl_ms };
    put_shared(reader, batch, storage, &lock)
}

/// Removes a shared lock, and leaves the rollback mark of its transaction.
pub(super) fn rollback_shared<R: Reader + ?Sized>(
    reader: &R,
    batch: &mut WriteBatch,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<()> {
    remove_shared(reader, batch, storage, start_ts)?;
    if !has_mark(reader, storage, start_ts)? {
        put_mark(batch, storage, start_ts);
    }
    Ok(())
}
