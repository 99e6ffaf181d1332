//! Prewrite, the first phase of a commit: locks every key and stages its value, unless another transaction conflicts.

use std::collections::HashSet;

use bytes::Bytes;
use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use super::common::{TxnRecord, check_key, check_start_ts, history};
use crate::api::{KeyError, LockInfo, Mutation, MutationOp, PrewriteRequest};
use crate::error::ActionError;
use crate::key::{Key, versioned};
use crate::mvcc::reader::load_lock;
use crate::mvcc::versions::Versions;
use crate::mvcc::{LockKind, LockRecord, WriteKind};
use crate::size::{BlockingLocks, SHORT_VALUE_MAX};

/// Locks the keys of `request` and stages their values.
///
/// Each key is checked in this order:
/// 1. A lock of our own: the key was prewritten before; skip it.
/// 2. A rollback mark of our own: fail.
/// 3. A commit record of our own: the whole transaction has committed and this is a repeated request. Lock nothing.
/// 4. A newer commit of another transaction: fail.
/// 5. A lock of another transaction: remember it.
/// 6. A value, for an `Insert` or `CheckNotExists`: fail.
///
/// Locks of other transactions are reported last and together: waiting for them helps only if nothing else refuses the
/// request.
///
/// # Errors
///
/// - [`KeyError::RolledBack`]: the transaction was rolled back on a key.
/// - [`KeyError::WriteConflict`]: another transaction committed to a key above our start_ts.
/// - [`KeyError::AlreadyExists`]: an `Insert` or `CheckNotExists` found a value.
/// - [`KeyError::Locked`]: other transactions hold locks, and none of the above applies.
/// - [`ActionError::Invalid`]: two mutations of one key, or a start_ts or key out of range.
pub fn prewrite<R: Reader + ?Sized>(reader: &R, request: &PrewriteRequest) -> Result<WriteBatch, ActionError> {
    check_request(request)?;
    let storage: Vec<Vec<u8>> = request.mutations.iter().map(|m| m.key.to_storage()).collect();
    let (Some(first), Some(last)) = (storage.iter().min(), storage.iter().max()) else { return Ok(WriteBatch::new()) };
    let mut versions = Versions::of_keys(reader, first, last)?;
    let mut batch = WriteBatch::new();
    let mut locks = BlockingLocks::default();
    for (mutation, storage) in request.mutations.iter().zip(&storage) {
        match check_mutation(reader, &mut versions, mutation, storage, request.start_ts)? {
            KeyState::Free => stage(&mut batch, mutation, storage, request),
            KeyState::Prewritten => (),
            KeyState::Locked(lock) => locks.push(lock),
            KeyState::Committed => return Ok(WriteBatch::new()),
        }
    }
    if locks.is_empty() { Ok(batch) } else { Err(KeyError::Locked(locks.into_locks()).into()) }
}

/// The state of a key that does not refuse its mutation.
enum KeyState {
    /// Nothing conflicts with the mutation.
    Free,
    /// Our transaction holds the lock.
    Prewritten,
    /// Another transaction holds the lock.
    Locked(LockInfo),
    /// Our transaction has committed.
    Committed,
}

/// Checks what the request alone shows.
fn check_request(request: &PrewriteRequest) -> Result<(), ActionError> {
    check_start_ts(request.start_ts)?;
    check_key(&request.primary)?;
    let mut seen = HashSet::with_capacity(request.mutations.len());
    for mutation in &request.mutations {
        check_key(&mutation.key)?;
        if !seen.insert(mutation.key.as_bytes()) {
            return Err(ActionError::Invalid("two mutations of one key"));
        }
    }
    Ok(())
}

/// Checks one mutation against the lock and the records of its key.
fn check_mutation<R: Reader + ?Sized>(
    reader: &R,
    versions: &mut Versions,
    mutation: &Mutation,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<KeyState, ActionError> {
    let lock = load_lock(reader, storage)?;
    if lock.as_ref().is_some_and(|lock| lock.start_ts == start_ts) {
        return Ok(KeyState::Prewritten);
    }
    let key = &mutation.key;
    let history = history(reader, versions, storage, start_ts)?;
    match history.own {
        Some(TxnRecord::RolledBack) => return Err(KeyError::RolledBack { start_ts }.into()),
        Some(TxnRecord::Committed { .. }) => return Ok(KeyState::Committed),
        None => (),
    }
    if let Some(newer) = history.newer {
        let conflict = KeyError::WriteConflict {
            key: key.clone(),
            start_ts,
            conflict_start_ts: newer.start_ts,
            conflict_commit_ts: newer.commit_ts,
        };
        return Err(conflict.into());
    }
    if let Some(lock) = lock.filter(|lock| conflicts_with(lock, &mutation.op)) {
        return Ok(KeyState::Locked(lock.info(key.clone())));
    }
    if matches!(mutation.op, MutationOp::Insert(_) | MutationOp::CheckNotExists)
        && versions.seek_data(storage, start_ts)?
        && versions.current()?.1.kind == WriteKind::Put
    {
        return Err(KeyError::AlreadyExists { key: key.clone() }.into());
    }
    Ok(KeyState::Free)
}

/// Whether another transaction's lock blocks the mutation. Only a `CheckNotExists` ignores a lock that changes nothing.
fn conflicts_with(lock: &LockRecord, op: &MutationOp) -> bool {
    lock.kind != LockKind::Lock || *op != MutationOp::CheckNotExists
}

/// Adds the lock and the staged value of a mutation to the batch.
fn stage(batch: &mut WriteBatch, mutation: &Mutation, storage: &[u8], request: &PrewriteRequest) {
    let (kind, value) = match &mutation.op {
        MutationOp::Put(value) | MutationOp::Insert(value) => (LockKind::Put, Some(value)),
        MutationOp::Delete => (LockKind::Delete, None),
        MutationOp::Lock => (LockKind::Lock, None),
        MutationOp::CheckNotExists => return,
    };
    let short_value: Option<Bytes> = value.filter(|v| v.len() <= SHORT_VALUE_MAX).cloned();
    if let Some(long) = value.filter(|v| v.len() > SHORT_VALUE_MAX) {
        batch.put(Cf::Default, &versioned(storage, request.start_ts), long);
    }
    let lock = LockRecord {
        kind,
        primary: Key::clone(&request.primary),
        start_ts: request.start_ts,
        ttl_ms: request.ttl_ms,
        min_commit_ts: request.start_ts.next(),
        short_value,
    };
    batch.put(Cf::Lock, storage, &lock.encode());
}
