//! How large things get: what keeps every request, every answer and every proposal within the limits of the layers below.
//!
//! A region takes a proposal up to its store's `max_proposal_bytes`, the transport a message up to [`MESSAGE_BYTES_MAX`]. Both refuse what is larger
//! for good, so that whoever makes requests of many keys must cut them before. The bounds here are never below the truth (a test compares
//! them with what the actions write) and, for keys of ordinary length, not far above it.

use crate::api::{LockInfo, Mutation, MutationOp, RequestBody};
use crate::key::{Key, TS_LEN, storage_len};
use crate::mvcc::SHORT_VALUE_MAX;

/// The largest message that the transport carries either way, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Bytes of the fixed parts of what one key writes: the records' headers, and the operations' in the batch.
const FIXED: usize = 128;
/// What surrounds a key or a value in a request, in memory and on the wire.
const AROUND: usize = 32;
/// The most locks that one answer reports.
const LOCKS_MAX: usize = 256;
/// About the most bytes of the locks that one answer reports.
const LOCKS_BYTES_MAX: usize = 1 << 20;

/// The most bytes that a region writes to prewrite a mutation. Every lock record names the primary.
pub fn prewrite_bytes(mutation: &Mutation, primary: &Key) -> usize {
    let key = versioned_len(&mutation.key);
    2 * key + value_len(mutation) + primary.as_bytes().len() + FIXED
}

/// The most bytes that a region writes to commit, roll back or resolve a key: the record, and the removal of the lock and of a long value.
pub fn decision_bytes(key: &Key) -> usize {
    3 * versioned_len(key) + SHORT_VALUE_MAX + FIXED
}

/// About the bytes that a request takes in memory and on the wire.
pub fn request_bytes(body: &RequestBody) -> usize {
    let of = |key: &Key| key.as_bytes().len() + AROUND;
    match body {
        RequestBody::Get { key, .. } => of(key),
        RequestBody::Scan(scan) => of(&scan.start) + of(&scan.end),
        RequestBody::Prewrite(request) => {
            let mutations = request.mutations.iter().map(|mutation| of(&mutation.key) + value_len(mutation));
            of(&request.primary) + mutations.sum::<usize>()
        }
        RequestBody::BatchGet { keys, .. }
        | RequestBody::Commit { keys, .. }
        | RequestBody::Rollback { keys, .. }
        | RequestBody::ResolveLock { keys, .. } => keys.iter().map(of).sum(),
        RequestBody::CheckTxnStatus(request) => of(&request.primary),
        RequestBody::Heartbeat { primary, .. } => of(primary),
    }
}

/// Locks in the way, as many as one answer reports: whoever asked meets the rest after it resolved these.
#[derive(Debug, Default)]
pub struct LocksMet {
    locks: Vec<LockInfo>,
    bytes: usize,
}

impl LocksMet {
    /// Adds a lock, if there is room for it; for the first there always is.
    pub fn push(&mut self, lock: LockInfo) {
        if !self.is_full() {
            self.bytes += lock.key.as_bytes().len() + lock.primary.as_bytes().len() + AROUND;
            self.locks.push(lock);
        }
    }

    /// Whether no further lock is taken.
    pub fn is_full(&self) -> bool {
        self.locks.len() >= LOCKS_MAX || self.bytes >= LOCKS_BYTES_MAX
    }

    /// Whether no lock was met.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// How many locks are kept.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// The locks.
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
        MutationOp::Delete | MutationOp::Lock | MutationOp::CheckNotExists => 0,
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
    use crate::api::PrewriteRequest;
    use crate::percolator;

    const START: Timestamp = Timestamp::new(10, 0);

    fn mutation() -> impl Strategy<Value = Mutation> {
        let key = prop_oneof![4 => 0usize..40, 1 => 200usize..3_000];
        let value = prop_oneof![4 => 0usize..300, 1 => 300usize..5_000];
        (key, value, 0u8..5).prop_map(|(key, value, op)| {
            let value = Bytes::from(vec![7; value]);
            let op = match op {
                0 => MutationOp::Put(value),
                1 => MutationOp::Insert(value),
                2 => MutationOp::Delete,
                3 => MutationOp::Lock,
                _ => MutationOp::CheckNotExists,
            };
            Mutation { key: Key::new(vec![1; key]), op }
        })
    }

    /// What a request writes, and the store after it.
    fn written(store: &MemoryStore, body: &RequestBody) -> usize {
        let (batch, _) = percolator::evaluate(&store.snapshot(), body).unwrap();
        store.write(&batch).unwrap();
        batch.size()
    }

    proptest! {
        #[test]
        fn bounds_are_never_below_what_is_written(mutation in mutation(), primary in 0usize..2_000, commits in any::<bool>()) {
            let store = MemoryStore::new();
            let (key, primary) = (mutation.key.clone(), Key::new(vec![2; primary]));
            let bound = prewrite_bytes(&mutation, &primary);
            let locks = mutation.op != MutationOp::CheckNotExists;
            let mutations = vec![mutation];
            let prewrite = PrewriteRequest { mutations, primary, start_ts: START, ttl_ms: u64::MAX };
            let prewritten = written(&store, &RequestBody::Prewrite(prewrite));
            prop_assert!(prewritten <= bound, "{prewritten} of {bound}");
            let (keys, start_ts) = (vec![key.clone()], START);
            let decided = if commits && locks {
                written(&store, &RequestBody::Commit { keys, start_ts, commit_ts: START.next() })
            } else {
                written(&store, &RequestBody::Rollback { keys, start_ts })
            };
            prop_assert!(decided <= decision_bytes(&key), "{decided} of {}", decision_bytes(&key));
        }
    }

    #[test]
    fn reported_locks_are_bounded_by_number_and_by_bytes() {
        let lock = |len: usize| {
            let key = Key::new(vec![0; len]);
            LockInfo { key: key.clone(), primary: key, start_ts: START, ttl_ms: 1 }
        };
        for (len, count) in [(8, LOCKS_MAX), (16 << 10, 32), (64 << 10, 8), (4 << 20, 1)] {
            let mut met = LocksMet::default();
            (0..1_000).for_each(|_| met.push(lock(len)));
            assert_eq!((met.len(), met.is_full()), (count, true), "keys of {len} bytes");
        }
    }
}
