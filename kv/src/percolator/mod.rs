//! The Percolator actions on one region: pure functions from a snapshot and a request to a write batch and a response.
//!
//! The region's leader runs an action under the latches of its keys and replicates the batch (`scheduler.rs`). An
//! action does not wait, read a clock or know another region. Every action is idempotent by `start_ts`: its request may
//! arrive late, twice or out of order. It applies to all its keys or changes nothing.
//!
//! - [`prewrite()`]: first phase; locks keys and stages values. Or the whole commit, at a computed commit_ts.
//! - [`commit`], [`rollback`], [`resolve_lock`] (`decision.rs`): replace a transaction's locks by its decision.
//! - [`check_txn_status`], [`heartbeat`] (`primary.rs`): read, push or extend the primary lock.
//! - [`check_locks()`] (`check_locks.rs`): read the keys of an async commit.
//! - `look` (`acquire.rs`): read the newest row, for a transaction that locks it in memory.
//!
//! Invariants, over the records of one key:
//! 1. At most one transaction holds the lock. Any number of others share the key, where none of their locks conflicts
//!    with another one or with the lock (`shared.rs`).
//! 2. A transaction has at most one of: the lock, a shared lock, a commit record, a rollback mark. A commit record or a
//!    rollback mark stays until garbage collection, and the lock never comes back. (A shared lock may, if its prewrite
//!    arrives again after the commit: whoever meets it finds the commit at the primary.) A mark has a row of its own:
//!    writing it never rewrites data.
//! 3. A commit record is above the start_ts of its transaction and at or above the `min_commit_ts` of its lock.
//! 4. The intervals from start_ts to commit_ts of two transactions that committed to the key do not overlap: prewrite
//!    refuses if another transaction committed above what this one has seen, which is not above its start_ts, and the
//!    lock keeps others out until the commit.
//! 5. A lock or a commit record of a `Put` without a short value has its value in `Cf::Default`.
//! 6. The commit record of a `Lock` names the newest `Put` or `Delete` below it. A rollback mark names none: the commit
//!    of another transaction may still come below the mark, because its commit_ts was taken before.
//!
//! Garbage collection resolves all locks below its safe point first. Without its primary's commit record, a
//! transaction's remaining locks would be rolled back. Below the safe point a record that is missing proves nothing:
//! [`age`] says which answers stand.
//!
//! # Layers
//!
//! 1. `common`: checks, a transaction's record on a key, the end of a lock
//! 2. `shared`: locks that transactions share
//! 3. `age`, `acquire`, `prewrite`, `decision`, `primary`, `check_locks`: the actions

mod acquire;
mod age;
mod check_locks;
mod common;
mod decision;
mod prewrite;
mod primary;
mod shared;

use engine::WriteBatch;
use engine::store::Reader;

use crate::api::{RequestBody, Response};
use crate::error::ActionError;

pub(crate) use acquire::{Look, look};
pub use age::Age;
pub use check_locks::check_locks;
pub use common::{Effects, KEY_LEN_MAX};
pub use decision::{commit, resolve_lock, rollback};
pub use prewrite::{PrewriteAction, prewrite};
pub use primary::{check_txn_status, heartbeat};

/// Evaluates a write request on a snapshot of its region. `action` is for the free keys of a prewrite.
///
/// # Errors
///
/// - [`ActionError::Key`]: the transaction cannot proceed; the variants are listed at each action.
/// - [`ActionError::Invalid`]: the request contradicts itself, exceeds a limit, or is a read.
/// - [`ActionError::Mvcc`]: the store failed or its data is corrupt.
pub fn evaluate<R: Reader + ?Sized>(
    reader: &R,
    body: &RequestBody,
    action: PrewriteAction<'_>,
) -> Result<Effects<Response>, ActionError> {
    fn done(batch: WriteBatch) -> Effects<Response> {
        (batch, Response::Done)
    }
    match body {
        RequestBody::Prewrite(request) => prewrite(reader, request, action),
        RequestBody::Commit { keys, start_ts, commit_ts } => commit(reader, keys, *start_ts, *commit_ts).map(done),
        RequestBody::Rollback { keys, start_ts } => rollback(reader, keys, *start_ts).map(done),
        RequestBody::ResolveLock { keys, start_ts, commit_ts } => {
            resolve_lock(reader, keys, *start_ts, *commit_ts).map(done)
        }
        RequestBody::CheckTxnStatus(request) => {
            let (batch, status) = check_txn_status(reader, request)?;
            Ok((batch, Response::Status(status)))
        }
        RequestBody::CheckLocks(request) => {
            let (batch, status) = check_locks(reader, request)?;
            Ok((batch, Response::Locks(status)))
        }
        RequestBody::Heartbeat { primary, start_ts, ttl_ms } => {
            let (batch, ttl_ms) = heartbeat(reader, primary, *start_ts, *ttl_ms)?;
            Ok((batch, Response::Ttl(ttl_ms)))
        }
        RequestBody::Get { .. }
        | RequestBody::BatchGet { .. }
        | RequestBody::Scan(_)
        | RequestBody::Replica(_)
        | RequestBody::Acquire(_)
        | RequestBody::Release { .. }
        | RequestBody::Refresh { .. }
        | RequestBody::Detect(_)
        | RequestBody::OldLocks(_)
        | RequestBody::RaiseSafePoint { .. } => Err(ActionError::Invalid("not an action that changes data")),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use engine::store::Store;
    use engine::store::memory::MemoryStore;
    use proptest::prelude::*;
    use tso::Timestamp;

    use super::*;
    use crate::api::{CommitMode, Mutation, MutationOp, PrewriteRequest};
    use crate::key::Key;
    use crate::size::{decision_bytes, prewrite_bytes};

    const START: Timestamp = Timestamp::new(10, 0);

    fn mutation() -> impl Strategy<Value = Mutation> {
        let key = prop_oneof![4 => 0usize..40, 1 => 200usize..3_000];
        let value = prop_oneof![4 => 0usize..300, 1 => 300usize..5_000];
        (key, value, 0u8..6).prop_map(|(key, value, op)| {
            let value = Bytes::from(vec![7; value]);
            let op = match op {
                0 => MutationOp::Put(value),
                1 => MutationOp::Insert(value),
                2 => MutationOp::Delete,
                3 => MutationOp::Lock,
                4 => MutationOp::Shared(crate::api::LockMode::Share),
                _ => MutationOp::CheckNotExists,
            };
            Mutation::new(Key::new(vec![1; key]), op)
        })
    }

    /// Writes the batch of a request to the store and returns its size in bytes.
    fn bytes_written(store: &MemoryStore, body: &RequestBody, action: PrewriteAction<'_>) -> usize {
        let (batch, _) = evaluate(&store.snapshot(), body, action).unwrap();
        store.write(&batch).unwrap();
        batch.size()
    }

    proptest! {
        #[test]
        fn size_bounds_are_never_below_what_actions_write(
            mutation in mutation(),
            primary in 1usize..2_000,
            commits in any::<bool>(),
        ) {
            let store = MemoryStore::new();
            let (key, primary) = (mutation.key.clone(), Key::new(vec![2; primary]));
            let bound = prewrite_bytes(&mutation, &primary);
            let locks = mutation.op.is_exclusive();
            let mutations = vec![mutation];
            let commit = CommitMode::TwoPhase;
            let ttl_ms = u64::MAX;
            let prewrite = PrewriteRequest { mutations, primary, start_ts: START, ttl_ms, commit, locker: None };
            let prewrite = RequestBody::Prewrite(prewrite);
            let one_phase = bytes_written(&MemoryStore::new(), &prewrite, PrewriteAction::Commit(START.next()));
            prop_assert!(one_phase <= bound, "{one_phase} of {bound}");
            let prewritten = bytes_written(&store, &prewrite, PrewriteAction::Lock);
            prop_assert!(prewritten <= bound, "{prewritten} of {bound}");
            let (keys, start_ts) = (vec![key.clone()], START);
            let decided = if commits && locks {
                let commit = RequestBody::Commit { keys, start_ts, commit_ts: START.next() };
                bytes_written(&store, &commit, PrewriteAction::Lock)
            } else {
                bytes_written(&store, &RequestBody::Rollback { keys, start_ts }, PrewriteAction::Lock)
            };
            prop_assert!(decided <= decision_bytes(&key), "{decided} of {}", decision_bytes(&key));
        }
    }
}
