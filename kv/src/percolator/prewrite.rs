//! Prewrite: the first phase. Locks every key and stages its value, if nobody else committed or is about to.

use std::collections::HashSet;

use bytes::Bytes;
use engine::store::Reader;
use engine::{Cf, WriteBatch};
use tso::Timestamp;

use super::record::{TxnRecord, history};
use super::{check_key, check_start_ts};
use crate::api::{KeyError, LockInfo, Mutation, MutationOp, PrewriteRequest};
use crate::error::ActionError;
use crate::key::Key;
use crate::mvcc::reader::load_lock;
use crate::mvcc::versions::{Versions, value_key};
use crate::mvcc::{LockKind, LockRecord, SHORT_VALUE_MAX, WriteKind};
use crate::size::LocksMet;

/// Locks the keys of `request`.
///
/// Of each key, in this order: a lock of our own means that we were here before; a rollback mark, that we are too late; a commit record of
/// our own, that the whole transaction is committed and this request an echo, which must not lock anything again; a newer commit of another
/// transaction is a conflict; an `Insert` or `CheckNotExists` fails on a value. Locks of others are reported last and all together,
/// since waiting for them is of use only where nothing else stands against it.
pub fn prewrite<R: Reader + ?Sized>(reader: &R, request: &PrewriteRequest) -> Result<WriteBatch, ActionError> {
    check(request)?;
    let storage: Vec<Vec<u8>> = request.mutations.iter().map(|m| m.key.to_storage()).collect();
    let (Some(first), Some(last)) = (storage.iter().min(), storage.iter().max()) else { return Ok(WriteBatch::new()) };
    let mut versions = Versions::of_keys(reader, first, last)?;
    let mut batch = WriteBatch::new();
    let mut locks = LocksMet::default();
    for (mutation, storage) in request.mutations.iter().zip(&storage) {
        match examine(reader, &mut versions, mutation, storage, request.start_ts)? {
            Verdict::Free => stage(&mut batch, mutation, storage, request),
            Verdict::Ours => (),
            Verdict::Locked(lock) => locks.push(lock),
            Verdict::Committed => return Ok(WriteBatch::new()),
        }
    }
    if locks.is_empty() { Ok(batch) } else { Err(KeyError::Locked(locks.into_locks()).into()) }
}

/// What a key says to its mutation.
enum Verdict {
    /// Nothing stands against it.
    Free,
    /// It was prewritten before.
    Ours,
    /// Another transaction is about to change the key.
    Locked(LockInfo),
    /// Our transaction is committed.
    Committed,
}

fn check(request: &PrewriteRequest) -> Result<(), ActionError> {
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

fn examine<R: Reader + ?Sized>(
    reader: &R,
    versions: &mut Versions<'_>,
    mutation: &Mutation,
    storage: &[u8],
    start_ts: Timestamp,
) -> Result<Verdict, ActionError> {
    let lock = load_lock(reader, storage)?;
    if lock.as_ref().is_some_and(|lock| lock.start_ts == start_ts) {
        return Ok(Verdict::Ours);
    }
    let key = &mutation.key;
    let history = history(versions, storage, start_ts)?;
    match history.own {
        Some(TxnRecord::RolledBack) => return Err(KeyError::RolledBack { start_ts }.into()),
        Some(TxnRecord::Committed { .. }) => return Ok(Verdict::Committed),
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
    if let Some(lock) = lock.filter(|lock| stands_against(lock, &mutation.op)) {
        return Ok(Verdict::Locked(lock.info(key.clone())));
    }
    if matches!(mutation.op, MutationOp::Insert(_) | MutationOp::CheckNotExists)
        && versions.seek_data(storage, start_ts)?
        && versions.current()?.1.kind == WriteKind::Put
    {
        return Err(KeyError::AlreadyExists { key: key.clone() }.into());
    }
    Ok(Verdict::Free)
}

/// Whether another's lock is in the way: always, unless we only look and it changes nothing.
fn stands_against(lock: &LockRecord, op: &MutationOp) -> bool {
    lock.kind != LockKind::Lock || *op != MutationOp::CheckNotExists
}

fn stage(batch: &mut WriteBatch, mutation: &Mutation, storage: &[u8], request: &PrewriteRequest) {
    let (kind, value) = match &mutation.op {
        MutationOp::Put(value) | MutationOp::Insert(value) => (LockKind::Put, Some(value)),
        MutationOp::Delete => (LockKind::Delete, None),
        MutationOp::Lock => (LockKind::Lock, None),
        MutationOp::CheckNotExists => return,
    };
    let short_value: Option<Bytes> = value.filter(|v| v.len() <= SHORT_VALUE_MAX).cloned();
    if let Some(long) = value.filter(|v| v.len() > SHORT_VALUE_MAX) {
        batch.put(Cf::Default, &value_key(storage, request.start_ts), long);
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
