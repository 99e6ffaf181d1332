//! Requests, responses and errors of the key-value layer: what client and server agree on.
//!
//! Plain domain types; `proto.rs` converts them at the wire. Every request names one region and concerns only keys of that region.
//! Every write request is idempotent by `start_ts`.

use std::fmt;

use bytes::Bytes;
use raftstore::{Region, RegionContext, RegionError, RegionId};
use tso::Timestamp;

use crate::key::{Key, storage_range};

/// A request to the leader of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The region and the epoch under which the sender knows it.
    pub context: RegionContext,
    /// What to do there.
    pub body: RequestBody,
}

/// What is asked of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// The newest value of `key` committed at or before `start_ts`.
    Get {
        /// The key.
        key: Key,
        /// Snapshot to read at.
        start_ts: Timestamp,
    },
    /// The same for many distinct keys; absent keys are left out of the answer. A long answer ends early and says where to go on.
    BatchGet {
        /// The keys; the answer keeps their order.
        keys: Vec<Key>,
        /// Snapshot to read at.
        start_ts: Timestamp,
    },
    /// Values in key order, at most `limit` pairs and about `max_bytes` bytes; a shorter answer says where to go on.
    Scan(ScanRequest),
    /// Lock keys and stage their values (first phase).
    Prewrite(PrewriteRequest),
    /// Turn locks into committed versions (second phase).
    Commit {
        /// Keys that the transaction prewrote in this region.
        keys: Vec<Key>,
        /// The transaction.
        start_ts: Timestamp,
        /// Its place in history, above `start_ts`, taken from the oracle after the last prewrite was acknowledged.
        commit_ts: Timestamp,
    },
    /// Undo a prewrite and make sure that a late one fails.
    Rollback {
        /// Keys of the transaction, prewritten or not.
        keys: Vec<Key>,
        /// The transaction.
        start_ts: Timestamp,
    },
    /// Find out, on the region of its primary, what became of a transaction; rolls it back if its lock has expired.
    CheckTxnStatus(CheckTxnStatusRequest),
    /// Commit (`commit_ts` given) or roll back the locks that `start_ts` left on `keys`.
    ResolveLock {
        /// Keys on which the transaction may have left locks.
        keys: Vec<Key>,
        /// The transaction, whose fate is known.
        start_ts: Timestamp,
        /// Where it committed; `None` if it was rolled back.
        commit_ts: Option<Timestamp>,
    },
    /// Extend the life of a transaction's primary lock to at least `ttl_ms`.
    Heartbeat {
        /// The transaction's primary key.
        primary: Key,
        /// The transaction.
        start_ts: Timestamp,
        /// Life of the lock, in milliseconds from `start_ts`' physical part.
        ttl_ms: u64,
    },
}

impl RequestBody {
    /// Whether it may change data.
    pub fn is_write(&self) -> bool {
        !matches!(self, RequestBody::Get { .. } | RequestBody::BatchGet { .. } | RequestBody::Scan(_))
    }

    /// The keys it names one by one; none for a scan.
    pub fn keys(&self) -> Vec<&Key> {
        match self {
            RequestBody::Get { key, .. } => vec![key],
            RequestBody::Scan(_) => Vec::new(),
            RequestBody::Prewrite(request) => request.mutations.iter().map(|mutation| &mutation.key).collect(),
            RequestBody::BatchGet { keys, .. }
            | RequestBody::Commit { keys, .. }
            | RequestBody::Rollback { keys, .. }
            | RequestBody::ResolveLock { keys, .. } => keys.iter().collect(),
            RequestBody::CheckTxnStatus(request) => vec![&request.primary],
            RequestBody::Heartbeat { primary, .. } => vec![primary],
        }
    }

    /// Whether all its keys lie in `region`; otherwise the error that says so.
    pub fn check_range(&self, region: &Region) -> Result<(), RegionError> {
        let inside = match self {
            RequestBody::Get { key, .. } => region.contains(&key.to_storage()),
            RequestBody::Scan(scan) => {
                let (start, end) = storage_range(&scan.start, &scan.end);
                region.contains_range(&start, &end)
            }
            _ => self.keys().into_iter().all(|key| region.contains(&key.to_storage())),
        };
        if inside { Ok(()) } else { Err(RegionError::KeyNotInRegion { region: region.id }) }
    }
}

/// A range read. Bounds are keys; an empty `end` is after every key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRequest {
    /// First key of the range.
    pub start: Key,
    /// First key after the range.
    pub end: Key,
    /// Snapshot to read at.
    pub start_ts: Timestamp,
    /// Most pairs to return.
    pub limit: u32,
    /// About the most bytes to return.
    pub max_bytes: u32,
    /// From the end of the range backwards.
    pub reverse: bool,
    /// Leave values empty.
    pub keys_only: bool,
}

/// A change to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The key.
    pub key: Key,
    /// The change.
    pub op: MutationOp,
}

/// Kinds of change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutationOp {
    /// Set the value.
    Put(Bytes),
    /// Set the value of a key that must not exist: otherwise `KeyError::AlreadyExists`.
    Insert(Bytes),
    /// Remove the key.
    Delete,
    /// Change nothing, but conflict with whoever changes the key.
    Lock,
    /// Change nothing, but fail with `AlreadyExists` if the key exists; takes no lock.
    CheckNotExists,
}

/// First phase on one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrewriteRequest {
    /// The changes, of distinct keys.
    pub mutations: Vec<Mutation>,
    /// The key whose record decides the transaction's fate.
    pub primary: Key,
    /// The transaction.
    pub start_ts: Timestamp,
    /// Life of the locks, in milliseconds from `start_ts`' physical part.
    pub ttl_ms: u64,
}

/// What became of a transaction?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckTxnStatusRequest {
    /// Its primary key.
    pub primary: Key,
    /// Its start_ts.
    pub lock_ts: Timestamp,
    /// A fresh timestamp: a lock whose ttl ended before it is expired.
    pub current_ts: Timestamp,
    /// Write a rollback record when there is neither a lock nor a record (the prewrite of the primary may still be on its way, so only
    /// once the caller's own lock has expired).
    pub rollback_if_missing: bool,
}

/// The answer to a request that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To `Get`.
    Value(Option<Bytes>),
    /// To `BatchGet` and `Scan`.
    Pairs {
        /// In the order asked for.
        pairs: Vec<(Key, Bytes)>,
        /// For a scan that stopped at a limit within its range: the bound to go on from, exclusive end for a reverse scan. For a batch get
        /// that did: the first key, in the order asked for, that was not looked up.
        resume: Option<Key>,
    },
    /// To `CheckTxnStatus`.
    Status(TxnStatus),
    /// To `Heartbeat`: the ttl now in force.
    Ttl(u64),
    /// To the others.
    Done,
}

/// The fate of a transaction, read off its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnStatus {
    /// Still running: its lock lives this many milliseconds from its start_ts.
    Alive {
        /// Milliseconds from the physical part of its start_ts.
        ttl_ms: u64,
    },
    /// Committed.
    Committed {
        /// Its place in history.
        commit_ts: Timestamp,
    },
    /// Rolled back, now or earlier.
    RolledBack,
    /// Nothing is known and nothing was asked to be written.
    Missing,
}

/// A lock that is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The locked key.
    pub key: Key,
    /// The primary of the transaction that holds it.
    pub primary: Key,
    /// That transaction.
    pub start_ts: Timestamp,
    /// Life of the lock in milliseconds from `start_ts`.
    pub ttl_ms: u64,
}

impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} by {} for {} ms, primary {:?}", self.key, self.start_ts, self.ttl_ms, self.primary)
    }
}

/// Why a transaction cannot do this: resolve, wait or abort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Other transactions hold locks.
    #[error("{} key(s) locked{}", .0.len(), .0.first().map_or(String::new(), |lock| format!(", first {lock}")))]
    Locked(Vec<LockInfo>),
    /// Somebody committed to the key after our start_ts.
    #[error("write conflict on {key:?}: committed at {conflict_commit_ts}, after {start_ts}")]
    WriteConflict {
        /// The key.
        key: Key,
        /// Ours.
        start_ts: Timestamp,
        /// Theirs.
        conflict_start_ts: Timestamp,
        /// When they committed.
        conflict_commit_ts: Timestamp,
    },
    /// An `Insert` or `CheckNotExists` met a value.
    #[error("key {key:?} already exists")]
    AlreadyExists {
        /// The key.
        key: Key,
    },
    /// The transaction was rolled back, by itself or by one that found its lock expired.
    #[error("transaction {start_ts} was rolled back")]
    RolledBack {
        /// The transaction.
        start_ts: Timestamp,
    },
    /// A rollback, or a commit with another commit_ts, came too late.
    #[error("transaction {start_ts} is already committed at {commit_ts}")]
    Committed {
        /// The transaction.
        start_ts: Timestamp,
        /// Its place in history.
        commit_ts: Timestamp,
    },
    /// A commit or heartbeat found no lock of the transaction.
    #[error("no lock of transaction {start_ts} on {key:?}")]
    LockNotFound {
        /// The transaction.
        start_ts: Timestamp,
        /// The key.
        key: Key,
    },
    /// The lock may only be committed at or above `min_commit_ts`: take a newer commit_ts.
    #[error("commit_ts {commit_ts} is below the lock's min_commit_ts {min_commit_ts}")]
    CommitTsTooEarly {
        /// What was asked for.
        commit_ts: Timestamp,
        /// The least that the lock allows.
        min_commit_ts: Timestamp,
    },
}

/// Why a request failed at the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Wrong place or time: the client reroutes.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The transaction must act.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The write may or may not have taken effect.
    #[error("outcome of a write to region {0} is unknown")]
    Undetermined(RegionId),
    /// The request writes more than a region takes at a time. It had no effect, and would be refused again.
    #[error("a write of {bytes} bytes; at most {limit} fit into one")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most that is taken.
        limit: usize,
    },
    /// The request contradicts itself or a limit. It had no effect, and would be refused again, here and elsewhere.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// The server failed before it changed anything: its disk, its data. Another replica may do better.
    #[error("server failure: {0}")]
    Failed(String),
}
