//! Prewrite, the first phase of a commit: locks every key and stages its value, unless another transaction conflicts.
//! With a computed commit_ts it is the whole commit.

use std::collections::HashSet;

use bytes::Bytes;
use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use super::common::{
    Effects, NewerCommit, StagedChange, TxnRecord, check_commit_ts, check_key, check_start_ts, history, own_record,
    put_commit,
};
use super::shared::{broken_by, holders_against, locks_against, stage_shared, strength_of};
use crate::api::{CommitMode, KeyError, LockInfo, LockMode, Mutation, MutationOp, PrewriteRequest, Response};
use crate::error::ActionError;
use crate::key::{Key, versioned};
use crate::mvcc::mark::has_mark;
use crate::mvcc::reader::load_lock;
use crate::mvcc::shared::{count_shared, load_shared};
use crate::mvcc::versions::Versions;
use crate::mvcc::{LockKind, LockRecord, WriteKind};
use crate::size::{BlockingLocks, SHORT_VALUE_MAX};

/// What a prewrite does with keys that nothing conflicts with. Decided by the region's leader, within the mode that the
/// request allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrewriteAction<'a> {
    /// Lock them for two phases.
    Lock,
    /// Commit them at this timestamp.
    Commit(Timestamp),
    /// Lock them with the async flag.
    AsyncLock {
        /// The lowest commit_ts.
        min_commit_ts: Timestamp,
        /// For the lock of the primary.
        secondaries: &'a [Key],
    },
}

/// Locks or commits the keys of `request` and stages their values.
///
/// Each key is checked in this order:
/// 1. A lock of our own: the key was prewritten before; skip it.
/// 2. A rollback mark of our own: fail.
/// 3. A commit record of our own: the whole transaction has committed and this is a repeated request. Change nothing,
///    whatever is wrong with the other keys: a `CheckNotExists` leaves no record, and its key may have changed since.
/// 4. A commit of another transaction that ours has not seen: fail. A `Shared` fails only if it breaks what that relies
///    on.
/// 5. A lock of another transaction, or shared ones, that conflict: remember them.
/// 6. A value, for an `Insert` or `CheckNotExists`: fail.
/// 7. A lock in memory that the transaction relies on ([`Mutation::lock`]): fail. The scheduler has struck out those
///    that it has.
///
/// Locks of other transactions are reported last and together: waiting for them helps only if nothing else refuses the
/// request. A transaction that has a lock already is not committed at once: its other keys are locked too.
///
/// # Errors
///
/// - [`KeyError::RolledBack`]: the transaction was rolled back on a key.
/// - [`KeyError::WriteConflict`]: another transaction committed to a key above what ours has seen of it.
/// - [`KeyError::AlreadyExists`]: an `Insert` or `CheckNotExists` found a value.
/// - [`KeyError::LockLost`]: a lock in memory was lost.
/// - [`KeyError::Locked`]: other transactions hold locks, and none of the above applies.
/// - [`ActionError::Invalid`]: two mutations of one key, a `Shared` in an async commit or as the primary, or a
///   timestamp or key out of range.
pub fn prewrite<R: Reader + ?Sized>(
    reader: &R,
    request: &PrewriteRequest,
    action: PrewriteAction<'_>,
) -> Result<Effects<Response>, ActionError> {
    check_request(request)?;
    let storage: Vec<Vec<u8>> = request.mutations.iter().map(|m| m.key.to_storage()).collect();
    let (Some(first), Some(last)) = (storage.iter().min(), storage.iter().max()) else {
        return Ok((WriteBatch::new(), Response::Done));
    };
    let mut versions = Versions::of_keys(reader, first, last)?;
    let (mut free, mut own, mut locks) = (Vec::with_capacity(storage.len()), Vec::new(), BlockingLocks::default());
    for (mutation, storage) in request.mutations.iter().zip(&storage) {
        let checked = check_mutation(reader, &mut versions, mutation, storage, request.start_ts);
        match checked.and_then(|state| refuse_lost(mutation, state)) {
            Ok(KeyState::Free) if mutation.op == MutationOp::CheckNotExists => (),
            Ok(KeyState::Free) => free.push((mutation, storage.as_slice())),
            Ok(KeyState::Prewritten { async_min }) => own.push(async_min),
            Ok(KeyState::Locked(found)) => found.into_iter().for_each(|lock| locks.push(lock)),
            Ok(KeyState::Committed { commit_ts }) => return Ok((WriteBatch::new(), Response::Committed { commit_ts })),
            Err(error @ ActionError::Key(_)) => {
                let committed = own_commit(reader, request)?;
                let response = committed.map(|commit_ts| Response::Committed { commit_ts }).ok_or(error)?;
                return Ok((WriteBatch::new(), response));
            }
            Err(error) => return Err(error),
        }
    }
    if !locks.is_empty() {
        return Err(KeyError::Locked(locks.into_locks()).into());
    }
    change(reader, request, action, &free, &own)
}

/// Commits or locks the free keys. `own` are the locks that the transaction has already: for those of an async commit
/// their min_commit_ts.
fn change<R: Reader + ?Sized>(
    reader: &R,
    request: &PrewriteRequest,
    action: PrewriteAction<'_>,
    free: &[(&Mutation, &[u8])],
    own: &[Option<Timestamp>],
) -> Result<Effects<Response>, ActionError> {
    let mut batch = WriteBatch::new();
    if let PrewriteAction::Commit(commit_ts) = action
        && own.is_empty()
        && free.iter().any(|(mutation, _)| mutation.op.is_exclusive())
    {
        check_commit_ts(request.start_ts, commit_ts)?;
        // A free key has no commit above start_ts, and so none at commit_ts.
        for (mutation, storage) in free {
            let Some(change) = staged_change(&mut batch, mutation, storage, request.start_ts) else { continue };
            put_commit(reader, &mut batch, storage, change, (request.start_ts, commit_ts))?;
        }
        return Ok((batch, Response::Committed { commit_ts }));
    }
    for (mutation, storage) in free {
        match mutation.op {
            MutationOp::Shared(mode) => stage_shared(reader, &mut batch, storage, mode, request)?,
            _ => stage_lock(&mut batch, mutation, storage, request, action),
        }
    }
    let own_min = own.iter().copied();
    let new_min = match action {
        _ if free.is_empty() => None,
        PrewriteAction::AsyncLock { min_commit_ts, .. } => Some(Some(min_commit_ts)),
        PrewriteAction::Lock | PrewriteAction::Commit(_) => Some(None),
    };
    // `None` if a lock has no async flag, or if there is none.
    let min_commit_ts = own_min.chain(new_min).reduce(|a, b| Some(a?.max(b?))).flatten();
    let response = min_commit_ts.map_or(Response::Done, |min_commit_ts| Response::AsyncLocked { min_commit_ts });
    Ok((batch, response))
}

/// The commit_ts of the transaction, if one of the keys has its commit record.
fn own_commit<R: Reader + ?Sized>(reader: &R, request: &PrewriteRequest) -> Result<Option<Timestamp>, ActionError> {
    for mutation in request.mutations.iter().filter(|mutation| mutation.op.is_exclusive()) {
        let record = own_record(reader, &mutation.key.to_storage(), request.start_ts)?;
        if let Some(TxnRecord::Committed { commit_ts }) = record {
            return Ok(Some(commit_ts));
        }
    }
    Ok(None)
}

/// The state of a key that does not refuse its mutation.
enum KeyState {
    /// Nothing conflicts with the mutation.
    Free,
    /// Our transaction holds the lock, or a shared one.
    Prewritten {
        /// Its min_commit_ts, if it has the async flag.
        async_min: Option<Timestamp>,
    },
    /// Other transactions hold these locks.
    Locked(Vec<LockInfo>),
    /// Our transaction has committed.
    Committed { commit_ts: Timestamp },
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
        if mutation.seen_ts.is_some_and(|seen_ts| seen_ts > request.start_ts) {
            return Err(ActionError::Invalid("a transaction commits under a name above what it has seen"));
        }
        if let MutationOp::Shared(mode) = mutation.op {
            let is_async = matches!(request.commit, CommitMode::Async { .. });
            if is_async || mode == LockMode::Update || mutation.key == request.primary {
                return Err(ActionError::Invalid("a shared lock of all, of an async commit or on the primary"));
            }
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
    let lock = match load_lock(reader, storage)? {
        Some(own) if own.start_ts == start_ts => {
            let async_min = own.async_secondaries.is_some().then_some(own.min_commit_ts);
            return Ok(KeyState::Prewritten { async_min });
        }
        other => other,
    };
    let key = &mutation.key;
    let seen_ts = mutation.seen_ts.unwrap_or(start_ts);
    if let MutationOp::Shared(mode) = mutation.op {
        return check_shared(reader, versions, (key, storage), (start_ts, seen_ts, mode));
    }
    let history = history(reader, versions, storage, (start_ts, seen_ts))?;
    match history.own {
        Some(TxnRecord::RolledBack) => return Err(KeyError::RolledBack { start_ts }.into()),
        Some(TxnRecord::Committed { commit_ts }) => return Ok(KeyState::Committed { commit_ts }),
        None => (),
    }
    if let Some(newer) = history.newer {
        return Err(conflict(key, start_ts, newer).into());
    }
    if let Some(lock) = lock.filter(|lock| conflicts_with(lock, &mutation.op)) {
        return Ok(KeyState::Locked(vec![lock.info(key.clone())]));
    }
    if mutation.op != MutationOp::CheckNotExists && count_shared(reader, storage)? > 0 {
        let Some(strength) = strength_of(reader, storage, &mutation.op)? else { return Ok(KeyState::Free) };
        let holders = holders_against(reader, key, storage, (start_ts, strength))?;
        if !holders.is_empty() {
            return Ok(KeyState::Locked(holders));
        }
    }
    if matches!(mutation.op, MutationOp::Insert(_) | MutationOp::CheckNotExists)
        && versions.seek_data(storage, start_ts)?
        && versions.current()?.1.kind == WriteKind::Put
    {
        return Err(KeyError::AlreadyExists { key: key.clone() }.into());
    }
    Ok(KeyState::Free)
}

/// Refuses a key that would be free if its transaction had not lost the row lock that it relies on.
fn refuse_lost(mutation: &Mutation, state: KeyState) -> Result<KeyState, ActionError> {
    match state {
        KeyState::Free if mutation.lock.is_some() => Err(KeyError::LockLost { key: mutation.key.clone() }.into()),
        state => Ok(state),
    }
}

/// Checks a mutation that confirms a row lock.
fn check_shared<R: Reader + ?Sized>(
    reader: &R,
    versions: &mut Versions,
    (key, storage): (&Key, &[u8]),
    (start_ts, seen_ts, mode): (Timestamp, Timestamp, LockMode),
) -> Result<KeyState, ActionError> {
    if load_shared(reader, storage, start_ts)?.is_some() {
        return Ok(KeyState::Prewritten { async_min: None });
    }
    if has_mark(reader, storage, start_ts)? {
        return Err(KeyError::RolledBack { start_ts }.into());
    }
    if let Some(newer) = broken_by(versions, storage, (mode, seen_ts))? {
        return Err(conflict(key, start_ts, newer).into());
    }
    let locks = locks_against(reader, key, storage, (start_ts, mode))?;
    Ok(if locks.is_empty() { KeyState::Free } else { KeyState::Locked(locks) })
}

fn conflict(key: &Key, start_ts: Timestamp, newer: NewerCommit) -> KeyError {
    let (conflict_start_ts, conflict_commit_ts) = (newer.start_ts, newer.commit_ts);
    KeyError::WriteConflict { key: key.clone(), start_ts, conflict_start_ts, conflict_commit_ts }
}

/// Whether another transaction's lock blocks the mutation. Only a `CheckNotExists` ignores a lock that changes nothing.
fn conflicts_with(lock: &LockRecord, op: &MutationOp) -> bool {
    lock.kind != LockKind::Lock || *op != MutationOp::CheckNotExists
}

/// The change that the commit of a mutation makes; `None` if it leaves no record. Adds a long value to the batch.
fn staged_change(
    batch: &mut WriteBatch,
    mutation: &Mutation,
    storage: &[u8],
    start_ts: Timestamp,
) -> Option<StagedChange> {
    let (kind, value) = match &mutation.op {
        MutationOp::Put(value) | MutationOp::Insert(value) => (LockKind::Put, Some(value)),
        MutationOp::Delete => (LockKind::Delete, None),
        MutationOp::Lock => (LockKind::Lock, None),
        MutationOp::Shared(_) | MutationOp::CheckNotExists => return None,
    };
    if let Some(long) = value.filter(|v| v.len() > SHORT_VALUE_MAX) {
        batch.put(Cf::Default, &versioned(storage, start_ts), long);
    }
    let short_value: Option<Bytes> = value.filter(|v| v.len() <= SHORT_VALUE_MAX).cloned();
    Some(StagedChange { kind, short_value })
}

/// Adds the lock and the staged value of a mutation to the batch.
fn stage_lock(
    batch: &mut WriteBatch,
    mutation: &Mutation,
    storage: &[u8],
    request: &PrewriteRequest,
    action: PrewriteAction<'_>,
) {
    let Some(StagedChange { kind, short_value }) = staged_change(batch, mutation, storage, request.start_ts) else {
        return;
    };
    let (min_commit_ts, async_secondaries) = match action {
        PrewriteAction::AsyncLock { min_commit_ts, secondaries } => {
            let is_primary = mutation.key == request.primary;
            (min_commit_ts, Some(if is_primary { secondaries.to_vec() } else { Vec::new() }))
        }
        PrewriteAction::Lock | PrewriteAction::Commit(_) => (request.start_ts.next(), None),
    };
    let lock = LockRecord {
        kind,
        primary: Key::clone(&request.primary),
        start_ts: request.start_ts,
        ttl_ms: request.ttl_ms,
        min_commit_ts,
        short_value,
        async_secondaries,
    };
    batch.put(Cf::Lock, storage, &lock.encode());
}
