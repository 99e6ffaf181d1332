//! The Percolator actions on one region: pure functions from a snapshot and a request to a write batch and an answer.
//!
//! The leader of a region runs one under the latches of its keys and replicates the batch (`scheduler.rs`). Nothing here waits, looks at a
//! clock or knows another region. Every action is idempotent by `start_ts`, may arrive late, twice or out of order, and either
//! answers for all its keys or changes nothing.
//!
//! Invariants, over the records of one key:
//! 1. At most one transaction holds the lock.
//! 2. A transaction has at most one of: the lock, a commit record, a rollback mark (a rollback record at its start_ts, or the flag
//!    `overlapped_rollback` on the record at its start_ts). Once one of the last two is there, it stays until garbage collection, and
//!    the lock never comes back.
//! 3. A commit record lies above the start_ts of its transaction and at or above the `min_commit_ts` of the lock it replaced.
//! 4. The intervals from start_ts to commit_ts of two transactions that committed to the key do not overlap: prewrite refuses when
//!    somebody committed above its start_ts, and the lock keeps others out until the commit.
//! 5. A lock or a commit record of a `Put` without a short value has its value in `Cf::Default`.
//!
//! Garbage collection must resolve all locks below its safe point first: a primary's commit record is what keeps its secondaries from
//! being taken for rolled back.

pub mod check_txn_status;
pub mod commit;
pub mod heartbeat;
pub mod prewrite;
mod record;
pub mod resolve_lock;
pub mod rollback;

use engine::WriteBatch;
use engine::store::Reader;
use tso::Timestamp;

use crate::api::{RequestBody, Response};
use crate::error::ActionError;
use crate::key::Key;

pub use check_txn_status::check_txn_status;
pub use commit::commit;
pub use heartbeat::heartbeat;
pub use prewrite::prewrite;
pub use resolve_lock::resolve_lock;
pub use rollback::rollback;

/// The longest key that a transaction may write, in bytes.
pub const KEY_LEN_MAX: usize = 64 * 1024;

/// What an action brings about: the batch to replicate (empty if nothing changes) and what to answer once it is applied.
pub type Effects<T> = (WriteBatch, T);

/// Evaluates a write request.
pub fn evaluate<R: Reader + ?Sized>(reader: &R, body: &RequestBody) -> Result<Effects<Response>, ActionError> {
    fn done(batch: WriteBatch) -> Effects<Response> {
        (batch, Response::Done)
    }
    match body {
        RequestBody::Prewrite(request) => prewrite(reader, request).map(done),
        RequestBody::Commit { keys, start_ts, commit_ts } => commit(reader, keys, *start_ts, *commit_ts).map(done),
        RequestBody::Rollback { keys, start_ts } => rollback(reader, keys, *start_ts).map(done),
        RequestBody::ResolveLock { keys, start_ts, commit_ts } => {
            resolve_lock(reader, keys, *start_ts, *commit_ts).map(done)
        }
        RequestBody::CheckTxnStatus(request) => {
            let (batch, status) = check_txn_status(reader, request)?;
            Ok((batch, Response::Status(status)))
        }
        RequestBody::Heartbeat { primary, start_ts, ttl_ms } => {
            let (batch, ttl_ms) = heartbeat(reader, primary, *start_ts, *ttl_ms)?;
            Ok((batch, Response::Ttl(ttl_ms)))
        }
        RequestBody::Get { .. } | RequestBody::BatchGet { .. } | RequestBody::Scan(_) => {
            Err(ActionError::Invalid("a read is not an action"))
        }
    }
}

/// Refuses timestamps that no transaction has.
fn check_start_ts(start_ts: Timestamp) -> Result<(), ActionError> {
    if start_ts == Timestamp::ZERO || start_ts == Timestamp::MAX {
        return Err(ActionError::Invalid("start_ts was not issued by the oracle"));
    }
    Ok(())
}

fn check_commit_ts(start_ts: Timestamp, commit_ts: Timestamp) -> Result<(), ActionError> {
    if commit_ts <= start_ts || commit_ts == Timestamp::MAX {
        return Err(ActionError::Invalid("commit_ts is not above start_ts"));
    }
    Ok(())
}

fn check_key(key: &Key) -> Result<(), ActionError> {
    if key.as_bytes().len() > KEY_LEN_MAX {
        return Err(ActionError::Invalid("key is too long"));
    }
    Ok(())
}
