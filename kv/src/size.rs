//! Size limits, and upper bounds for the size of requests, responses and proposals.
//!
//! A region accepts proposals of up to its store's `max_proposal_bytes`, the transport messages of up to
//! [`MESSAGE_BYTES_MAX`]. Larger ones are refused, and a retry does not help. So a client cuts requests over many keys
//! first. The bounds here are never below the true size (`percolator` tests them against what the actions write), and
//! for keys of ordinary length they are close to it.

use crate::api::{CommitMode, LockInfo, Mutation, MutationOp, RequestBody};
use crate::key::{Key, TS_LEN, storage_len};

/// The largest message that the transport carries in either direction, in bytes.
pub const MESSAGE_BYTES_MAX: usize = link::PAYLOAD_BYTES_MAX;
/// Values of at most this many bytes are inline in the lock and the write record; longer ones are in `Cf::Default`.
pub const SHORT_VALUE_MAX: usize = 255;

/// Fixed bytes that one key adds to a proposal: headers of the records and of the batch's operations.
const RECORD_OVERHEAD: usize = 128;
/// Bytes that each key or value adds to a request in memory and on the wire, beside its own.
const FIELD_OVERHEAD: usize = 32;
/// The most locks that one response reports.
const LOCKS_MAX: usize = 256;
/// About the most bytes of locks that one response reports.
const LOCKS_BYTES_MAX: usize = 1 << 20;

/// An upper bound of the bytes that a region writes to prewrite `mutation`. Every lock record names the primary.
pub fn prewrite_bytes(mutation: &Mutation, primary: &Key) -> usize {
    let key = versioned_len(&mutation.key);
    2 * key + value_len(mutation) + primary.as_bytes().len() + RECORD_OVERHEAD
}

/// An upper bound of the bytes that a region writes to commit, roll back or resolve `key`: the record or the rollback
/// mark, the deletion of the lock, and the counter of shared locks.
pub fn decision_bytes(key: &Key) -> usize {
    3 * versioned_len(key) + SHORT_VALUE_MAX + RECORD_OVERHEAD
}

/// About the bytes that a request takes in memory and on the wire.
pub fn request_bytes(body: &RequestBody) -> usize {
    let key_bytes = |key: &Key| key.as_bytes().len() + FIELD_OVERHEAD;
    match body {
        RequestBody::Get { key, .. } => key_bytes(key),
        RequestBody::Scan(scan) => key_bytes(&scan.start) + key_bytes(&scan.end),
        RequestBody::OldLocks(request) => key_bytes(&request.start) + key_bytes(&request.end),
        RequestBody::Replica(replica) => request_bytes(&replica.read),
        RequestBody::Prewrite(request) => {
            let mutations = request.mutations.iter().map(|mutation| key_bytes(&mutation.key) + value_len(mutation));
            let secondaries = match &request.commit {
                CommitMode::Async { secondaries, .. } => secondaries.iter().map(key_bytes).sum(),
                CommitMode::TwoPhase | CommitMode::OnePhase(_) => 0,
            };
            key_bytes(&request.primary) + mutations.sum::<usize>() + secondaries
        }
        RequestBody::BatchGet { keys, .. }
        | RequestBody::Commit { keys, .. }
        | RequestBody::Rollback { keys, .. }
        | RequestBody::ResolveLock { keys, .. }
        | RequestBody::Release { keys, .. } => keys.iter().map(key_bytes).sum(),
        RequestBody::Acquire(request) => request.keys.iter().map(key_bytes).sum(),
        RequestBody::Detect(report) => key_bytes(&report.row),
        RequestBody::Refresh { locks } => locks.iter().map(|lock| key_bytes(&lock.key)).sum(),
        RequestBody::CheckLocks(request) => request.keys.iter().map(key_bytes).sum(),
        RequestBody::CheckTxnStatus(request) => key_bytes(&request.primary),
        RequestBody::Heartbeat { primary: key, .. } | RequestBody::RaiseSafePoint { at: key, .. } => key_bytes(key),
    }
}

/// The blocking locks that one response reports, bounded in number and in bytes. The caller meets the rest after it has
/// resolved these.
#[derive(Debug, Default)]
pub struct BlockingLocks {
    locks: Vec<LockInfo>,
    bytes: usize,
}

impl BlockingLocks {
    /// Adds a lock, unless the report is full. The first lock always fits.
    pub fn push(&mut self, lock: LockInfo) {
        if !self.is_full() {
            self.bytes += lock.key.as_bytes().len() + lock.primary.as_bytes().len() + FIELD_OVERHEAD;
            self.locks.push(lock);
        }
    }

    /// Whether further locks are dropped.
    pub fn is_full(&self) -> bool {
        self.locks.len() >= LOCKS_MAX || self.bytes >= LOCKS_BYTES_MAX
    }

    /// Whether no lock was added.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// The number of locks in the report.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// The reported locks, in the order in which they were added.
    pub fn into_locks(self) -> Vec<LockInfo> {
        self.locks
    }
}

fn versioned_len(key: &Key) -> usize {
    storage_len(key.as_bytes().len()) + TS_LEN
}

fn value_len(mutation: &Mutation) -> usize {
    match &mutation.op {
        MutationOp::Put(value) | MutationOp::Insert(value) => value.len(),
        MutationOp::Delete | MutationOp::Lock | MutationOp::Shared(_) | MutationOp::CheckNotExists => 0,
    }
}

#[cfg(test)]
mod tests {
    use tso::Timestamp;

    use super::*;

    #[test]
    fn reported_locks_are_bounded_by_number_and_by_bytes() {
        let lock = |len: usize| {
            let key = Key::new(vec![0; len]);
            LockInfo { key: key.clone(), primary: key, start_ts: Timestamp::new(10, 0), ttl_ms: 1 }
        };
        for (len, count) in [(8, LOCKS_MAX), (16 << 10, 32), (64 << 10, 8), (4 << 20, 1)] {
            let mut report = BlockingLocks::default();
            (0..1_000).for_each(|_| report.push(lock(len)));
            assert_eq!((report.len(), report.is_full()), (count, true), "keys of {len} bytes");
        }
    }
}
