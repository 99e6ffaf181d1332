//! Requests, responses and errors of the key-value layer: the contract between client and server.
//!
//! These are plain domain types; `proto` converts them at the wire. A request names one region and only keys of that
//! region. Every write request is idempotent by `start_ts`: a repeated, late or reordered copy does no harm.
//!
//! # Layers
//!
//! 1. `locks`, `safe_point`: requests about row locks, and of garbage collection

mod locks;
mod safe_point;

use bytes::Bytes;
use raftstore::{Region, RegionContext, RegionError, RegionId, StoreId};
use tso::Timestamp;

use crate::key::{Key, storage_range};

pub use safe_point::OldLocksRequest;

pub use locks::{
    AcquireRequest, Acquired, Blocked, DetectorClock, LockId, LockInfo, LockMode, LockRef, LockedRow, Presence,
    RowFound, WaitReport, Waiting,
};

/// A request to the leader of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The region, and its epoch as the sender knows it. Another epoch is refused with `RegionError::EpochNotMatch`.
    pub context: RegionContext,
    /// The operation.
    pub body: RequestBody,
}

/// An operation on one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// Reads the newest value of `key` committed at or before `start_ts`. Answered with [`Response::Value`].
    Get {
        /// The key.
        key: Key,
        /// The snapshot to read. [`Timestamp::ZERO`]: the store takes one from the oracle when the request arrives, and
        /// answers with [`Response::Started`].
        start_ts: Timestamp,
        /// See [`ScanRequest::pass`].
        pass: Vec<Timestamp>,
    },
    /// Reads many distinct keys. Answered with [`Response::Pairs`] without the absent keys. A long response ends early
    /// and names in `resume` the first key that was not looked up.
    BatchGet {
        /// The keys. The response keeps their order.
        keys: Vec<Key>,
        /// The snapshot to read.
        start_ts: Timestamp,
        /// See [`ScanRequest::pass`].
        pass: Vec<Timestamp>,
    },
    /// Reads a key range. Answered with [`Response::Pairs`].
    Scan(ScanRequest),
    /// A read that any replica of the region may serve. Answered with [`Response::Replica`].
    Replica(ReplicaRead),
    /// First phase of a commit: locks keys and stages their values. With a [`CommitMode`] it may be the whole commit.
    /// Answered with [`Response::Done`] (locked for two phases), [`Response::AsyncLocked`] or [`Response::Committed`].
    Prewrite(PrewriteRequest),
    /// Second phase of a commit: replaces locks by commit records. Answered with [`Response::Done`].
    Commit {
        /// Keys that the transaction prewrote in this region.
        keys: Vec<Key>,
        /// The transaction.
        start_ts: Timestamp,
        /// Taken from the oracle after the last prewrite was acknowledged; above `start_ts`.
        commit_ts: Timestamp,
    },
    /// Undoes a prewrite and leaves a rollback mark, so that a late prewrite fails. Answered with [`Response::Done`].
    Rollback {
        /// Keys of the transaction, prewritten or not.
        keys: Vec<Key>,
        /// The transaction.
        start_ts: Timestamp,
    },
    /// Reads the status of a transaction from its primary, and rolls it back if its lock has expired. Answered with
    /// [`Response::Status`].
    CheckTxnStatus(CheckTxnStatusRequest),
    /// Reads the state of an async commit from its keys in this region. Answered with [`Response::Locks`].
    CheckLocks(CheckLocksRequest),
    /// Commits (with `commit_ts`) or rolls back the locks that `start_ts` left on `keys`. Answered with
    /// [`Response::Done`].
    ResolveLock {
        /// Keys on which the transaction may have left locks.
        keys: Vec<Key>,
        /// The transaction. Its status was read from its primary.
        start_ts: Timestamp,
        /// Its commit_ts; `None` if it was rolled back.
        commit_ts: Option<Timestamp>,
    },
    /// Extends the life of a transaction's primary lock to at least `ttl_ms`. Answered with [`Response::Ttl`].
    Heartbeat {
        /// The transaction's primary key.
        primary: Key,
        /// The transaction.
        start_ts: Timestamp,
        /// Life of the lock, in milliseconds from the physical part of `start_ts`.
        ttl_ms: u64,
    },
    /// Locks rows in the memory of the leader. Answered with [`Response::Acquired`].
    Acquire(AcquireRequest),
    /// Gives up row locks, and places in queues for them. Answered with [`Response::Done`].
    Release {
        /// The rows.
        keys: Vec<Key>,
        /// The transaction.
        start_ts: Timestamp,
        /// What it keeps of a lock that is stronger: nothing, or a weaker lock.
        keep: Option<LockMode>,
    },
    /// Says that transactions live, so that their row locks in this region stay. Answered with [`Response::Done`].
    Refresh {
        /// For each transaction, a row of the region that it may have locked.
        locks: Vec<LockRef>,
    },
    /// Says that a transaction waits. Answered with [`Response::Waits`].
    Detect(WaitReport),
    /// Lists locks of old transactions. Answered with [`Response::OldLocks`].
    OldLocks(OldLocksRequest),
    /// Raises the safe point of the region that holds `at`, and of writes before that of reads. Answered with
    /// [`Response::Done`], once it is raised at the leader; lower values have no effect.
    RaiseSafePoint {
        /// A key of the region.
        at: Key,
        /// Transactions that began at or below it write nothing any more.
        writes: Timestamp,
        /// Reads below it fail. Not above `writes`.
        reads: Timestamp,
    },
}

impl RequestBody {
    /// Whether the request may change data.
    pub fn is_write(&self) -> bool {
        !self.is_read() && !self.is_of_locks()
    }

    /// Whether the request reads data.
    pub fn is_read(&self) -> bool {
        matches!(
            self,
            RequestBody::Get { .. }
                | RequestBody::BatchGet { .. }
                | RequestBody::Scan(_)
                | RequestBody::Replica(_)
                | RequestBody::OldLocks(_)
        )
    }

    /// Whether the request is about row locks in memory.
    pub fn is_of_locks(&self) -> bool {
        matches!(
            self,
            RequestBody::Acquire(_)
                | RequestBody::Release { .. }
                | RequestBody::Refresh { .. }
                | RequestBody::Detect(_)
        )
    }

    /// The place of the snapshot of a read that leaves it to the store; `None` for other requests.
    pub fn unset_start_ts(&mut self) -> Option<&mut Timestamp> {
        let (RequestBody::Get { start_ts, .. } | RequestBody::Scan(ScanRequest { start_ts, .. })) = self else {
            return None;
        };
        (*start_ts == Timestamp::ZERO).then_some(start_ts)
    }

    /// The keys that the request names one by one; empty for a range.
    pub fn keys(&self) -> Vec<&Key> {
        match self {
            RequestBody::Get { key, .. } => vec![key],
            RequestBody::Scan(_) | RequestBody::OldLocks(_) => Vec::new(),
            RequestBody::Replica(replica) => replica.read.keys(),
            RequestBody::Prewrite(request) => request.mutations.iter().map(|mutation| &mutation.key).collect(),
            RequestBody::BatchGet { keys, .. }
            | RequestBody::Commit { keys, .. }
            | RequestBody::Rollback { keys, .. }
            | RequestBody::ResolveLock { keys, .. }
            | RequestBody::Release { keys, .. } => keys.iter().collect(),
            RequestBody::CheckTxnStatus(request) => vec![&request.primary],
            RequestBody::CheckLocks(request) => request.keys.iter().collect(),
            RequestBody::Heartbeat { primary, .. } => vec![primary],
            RequestBody::Acquire(request) => request.keys.iter().collect(),
            RequestBody::Refresh { locks } => locks.iter().map(|lock| &lock.key).collect(),
            RequestBody::Detect(report) => vec![&report.at],
            RequestBody::RaiseSafePoint { at, .. } => vec![at],
        }
    }

    /// Checks that all keys of the request lie in `region`.
    ///
    /// # Errors
    ///
    /// [`RegionError::KeyNotInRegion`] if a key, or part of a scan's range, lies outside.
    pub fn check_range(&self, region: &Region) -> Result<(), RegionError> {
        let inside = match self {
            RequestBody::Get { key, .. } => region.contains(&key.to_storage()),
            RequestBody::Scan(scan) => {
                let (start, end) = storage_range(&scan.start, &scan.end);
                region.contains_range(&start, &end)
            }
            RequestBody::OldLocks(request) => {
                let (start, end) = storage_range(&request.start, &request.end);
                region.contains_range(&start, &end)
            }
            RequestBody::Replica(replica) => return replica.read.check_range(region),
            _ => self.keys().into_iter().all(|key| region.contains(&key.to_storage())),
        };
        if inside { Ok(()) } else { Err(RegionError::KeyNotInRegion { region: region.id }) }
    }
}

/// A read that any replica of the region may serve, and what proves that the replica misses nothing. Only the version
/// of the epoch is compared: a change of members changes no data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaRead {
    /// A `Get`, `BatchGet` or `Scan`. Its start_ts may be [`Timestamp::ZERO`]: then the replica takes the snapshot.
    pub read: Box<RequestBody>,
    /// The proof.
    pub proof: ReplicaProof,
    /// Which snapshot the replica takes, if the read has none. `None`: a fresh one, which several reads may share.
    /// `Some`: the newest that it has a proof for, if it is not below this bound; else it waits for one.
    pub floor: Option<Timestamp>,
}

/// What proves that a replica holds every transaction that can commit at or below the snapshot of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaProof {
    /// A grant that covers the snapshot. If there is none, the replica waits for one and asks the leader.
    Grant,
    /// A grant that the leader gives for this read alone.
    ReadIndex,
    /// A grant that is there already; otherwise the read is refused with `NotReady`.
    Covered,
    /// Nothing. The read sees what is applied, and passes all locks.
    Unproven,
}

/// How a replica served a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The store of the replica.
    pub store: StoreId,
    /// The proof.
    pub path: ReadPath,
    /// The snapshot.
    pub start_ts: Timestamp,
    /// The timestamp of the replica's newest grant that is applied.
    pub safe_ts: Timestamp,
    /// How often the replica asked the leader, or the oracle, for this read, alone or together with other reads.
    pub asked: u32,
    /// The requests in flight at the store when it answered, this one included. 0 if it was not counted.
    pub load: u32,
}

/// The ways in which a read is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPath {
    /// The leader's lease.
    Lease,
    /// A read index.
    ReadIndex,
    /// A grant.
    Grant,
    /// A grant, at the newest timestamp that the replica had a grant for.
    SessionSnapshot,
    /// Nothing.
    Unproven,
}

/// The most transactions whose locks one read may pass.
pub const PASS_MAX: usize = 256;

/// A range read. An empty `end` means "after every key". The server clamps `limit` and `max_bytes` to its own bounds
/// (see `read`) and to at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRequest {
    /// First key of the range.
    pub start: Key,
    /// First key after the range.
    pub end: Key,
    /// The snapshot to read. [`Timestamp::ZERO`]: as in [`RequestBody::Get`].
    pub start_ts: Timestamp,
    /// The most pairs to return.
    pub limit: u32,
    /// The bytes of keys and values after which the response ends. The last pair may exceed it.
    pub max_bytes: u32,
    /// Whether to read from the end of the range backwards.
    pub reverse: bool,
    /// Whether to return empty values.
    pub keys_only: bool,
    /// Transactions whose locks the read passes: each certainly commits above `start_ts`, or never. At most
    /// [`PASS_MAX`].
    pub pass: Vec<Timestamp>,
}

impl ScanRequest {
    /// Whether the range holds no key: its end is not empty and not above its start.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }
}

/// A change to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The key.
    pub key: Key,
    /// The change.
    pub op: MutationOp,
    /// What the transaction has seen of the key: the newest commit to it, or the snapshot that it was read in. A later
    /// commit is a conflict. Not above start_ts; `None` stands for that.
    pub seen_ts: Option<Timestamp>,
    /// The holding of the row's lock in memory that the transaction relies on: if it is lost, the change is refused
    /// ([`KeyError::LockLost`]). `None`: it relies on none.
    pub lock: Option<LockId>,
}

impl Mutation {
    /// A change by a transaction that has seen the key as it was at start_ts.
    pub fn new(key: Key, op: MutationOp) -> Mutation {
        Mutation { key, op, seen_ts: None, lock: None }
    }
}

/// The kinds of change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutationOp {
    /// Sets the value.
    Put(Bytes),
    /// Sets the value; fails with [`KeyError::AlreadyExists`] if the key exists.
    Insert(Bytes),
    /// Deletes the key.
    Delete,
    /// Changes nothing, but takes a lock and so conflicts with every other writer of the key.
    Lock,
    /// Changes nothing, and confirms a row lock of this strength, below [`LockMode::Update`]: nothing that conflicts
    /// with it was committed since the row was seen, and nothing will be before the transaction is decided. Others may
    /// do the same. Leaves no record behind. Decides no transaction: it is never the primary, nor part of an async
    /// commit.
    Shared(LockMode),
    /// Changes nothing and takes no lock; fails with [`KeyError::AlreadyExists`] if the key exists.
    CheckNotExists,
}

impl MutationOp {
    /// Whether the mutation locks its key for its transaction alone.
    pub const fn is_exclusive(&self) -> bool {
        !matches!(self, MutationOp::Shared(_) | MutationOp::CheckNotExists)
    }
}

/// The first phase of a commit, on one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrewriteRequest {
    /// The changes. No two may name the same key.
    pub mutations: Vec<Mutation>,
    /// The key whose record decides the transaction's status. It may lie in another region.
    pub primary: Key,
    /// The transaction.
    pub start_ts: Timestamp,
    /// Life of the locks, in milliseconds from the physical part of `start_ts`.
    pub ttl_ms: u64,
    /// How far the region may take the commit.
    pub commit: CommitMode,
    /// The name under which the transaction has locked rows in memory. `None`: `start_ts`. Another one if it has seen
    /// commits above the timestamp by which it was known then: it commits under a name above all that it has seen.
    pub locker: Option<Timestamp>,
}

/// How far a prewrite may take the commit. A region that cannot compute a commit_ts within the bounds locks the keys
/// for two phases instead, and says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitMode {
    /// Lock the keys. The coordinator commits them at a timestamp of the oracle.
    TwoPhase,
    /// The request holds all keys of the transaction: commit them at once.
    OnePhase(CommitBounds),
    /// Lock the keys so that the transaction is committed once all its keys are locked, at the greatest of their
    /// min_commit_ts. No mutation may be a `CheckNotExists` or a `Shared`.
    Async {
        /// The bounds of the commit_ts.
        bounds: CommitBounds,
        /// All other keys of the transaction if the request has its primary, otherwise empty.
        secondaries: Vec<Key>,
    },
}

impl CommitMode {
    /// The place of the least commit_ts of a prewrite that leaves it to the store; `None` for others.
    pub fn unset_least(&mut self) -> Option<&mut Timestamp> {
        match self {
            CommitMode::OnePhase(bounds) | CommitMode::Async { bounds, .. } => {
                (bounds.least == Timestamp::ZERO).then_some(&mut bounds.least)
            }
            CommitMode::TwoPhase => None,
        }
    }
}

/// The bounds of a computed commit_ts, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitBounds {
    /// At or above every timestamp that the transaction has read or locked at. [`Timestamp::ZERO`]: the store takes it
    /// from the oracle when the request arrives. If it gets none, it locks for two phases.
    pub least: Timestamp,
    /// [`Timestamp::MAX`] for none.
    pub greatest: Timestamp,
}

/// Asks for the status of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckTxnStatusRequest {
    /// The transaction's primary key.
    pub primary: Key,
    /// The transaction's start_ts, from the lock that the caller met.
    pub lock_ts: Timestamp,
    /// A fresh timestamp. A lock whose ttl ended before it has expired.
    pub current_ts: Timestamp,
    /// Whether to write a rollback record if the primary has neither a lock nor a record. The prewrite of the primary
    /// may still be under way, so set it only once the lock that the caller met has expired.
    pub rollback_if_missing: bool,
    /// The start_ts of the read that met the lock; [`Timestamp::ZERO`] for a writer. A live transaction is made to
    /// commit above it, which is replicated before it is answered. An async commit is not pushed.
    pub reader_ts: Timestamp,
    /// Whether a lock of the transaction without the async flag was seen. Then its primary decides, whatever its flag.
    pub fell_back: bool,
}

/// Asks for the state of an async commit, of keys of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckLocksRequest {
    /// Keys of the transaction.
    pub keys: Vec<Key>,
    /// The transaction.
    pub lock_ts: Timestamp,
    /// The start_ts of the read that met the lock; [`Timestamp::ZERO`] for others. A key that is not locked yet gets a
    /// greater min_commit_ts.
    pub reader_ts: Timestamp,
    /// Whether to write a rollback mark on a key that has neither a lock nor a record, so that the transaction can
    /// never commit.
    pub mark_missing: bool,
}

/// The state of an async commit, as its keys show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocksStatus {
    /// Every key asked about is locked, with the async flag.
    Locked {
        /// The greatest of their min_commit_ts.
        min_commit_ts: Timestamp,
    },
    /// A key has neither a lock nor a record, and `mark_missing` was not set.
    Missing,
    /// A lock has no async flag: the primary decides.
    TwoPhase,
    /// A key is rolled back, by this request or earlier.
    RolledBack,
    /// A key is committed.
    Committed {
        /// When the transaction committed.
        commit_ts: Timestamp,
    },
}

impl LocksStatus {
    /// The state of a transaction of which one part of the keys shows `self` and another one `other`.
    pub fn merge(self, other: LocksStatus) -> LocksStatus {
        match (self, other) {
            (LocksStatus::Locked { min_commit_ts: a }, LocksStatus::Locked { min_commit_ts: b }) => {
                LocksStatus::Locked { min_commit_ts: a.max(b) }
            }
            _ if self.rank() >= other.rank() => self,
            _ => other,
        }
    }

    /// A final state beats all others, and a lock without the async flag makes the primary decide.
    const fn rank(self) -> u8 {
        match self {
            LocksStatus::Locked { .. } => 0,
            LocksStatus::Missing => 1,
            LocksStatus::TwoPhase => 2,
            LocksStatus::RolledBack => 3,
            LocksStatus::Committed { .. } => 4,
        }
    }
}

/// The response to a request that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// To `Get`: the value, `None` if the key does not exist in the snapshot.
    Value(Option<Bytes>),
    /// To `BatchGet` and `Scan`.
    Pairs {
        /// The pairs found, in the order of the request.
        pairs: Vec<(Key, Bytes)>,
        /// Set if the response ended early. For a scan: the new start, or the new exclusive end of a reverse scan. For
        /// a batch get: the first key, in the order of the request, that was not looked up.
        resume: Option<Key>,
    },
    /// To a read that left its snapshot to the store.
    Started {
        /// The timestamp that the store took. No other request has it.
        start_ts: Timestamp,
        /// How often the store asked another node for it: once, or not at all where the oracle is on its own.
        asked: u32,
        /// The outcome of the read at that timestamp.
        outcome: Box<Result<Response, KeyError>>,
    },
    /// To `Replica`.
    Replica {
        /// How it was served.
        served: Served,
        /// The outcome of the read.
        outcome: Box<Result<Response, KeyError>>,
    },
    /// To `CheckTxnStatus`.
    Status(TxnStatus),
    /// To `CheckLocks`.
    Locks(LocksStatus),
    /// To `Prewrite`: every key is locked with the async flag.
    AsyncLocked {
        /// The greatest of their min_commit_ts.
        min_commit_ts: Timestamp,
    },
    /// To `Prewrite`: the transaction is committed.
    Committed {
        /// When it committed.
        commit_ts: Timestamp,
    },
    /// To `Heartbeat`: the ttl now in force, in milliseconds.
    Ttl(u64),
    /// To `Acquire`.
    Acquired(Acquired),
    /// To `Detect`: the waits of a deadlock that the reported one has closed, beginning with that one; each transaction
    /// waits for the next, and the last one for the first. Empty if there is none.
    Waits {
        /// The waits.
        cycle: Vec<WaitReport>,
        /// For later reports.
        clock: DetectorClock,
    },
    /// To `OldLocks`.
    OldLocks {
        /// Some of them, in key order.
        locks: Vec<LockInfo>,
        /// Set if there may be more: the new start.
        resume: Option<Key>,
    },
    /// To every other request.
    Done,
}

/// The status of a transaction, as its primary shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxnStatus {
    /// The primary is locked and the lock has not expired.
    Alive {
        /// Life of the lock, in milliseconds from the physical part of the transaction's start_ts.
        ttl_ms: u64,
        /// The lowest commit_ts of the transaction. Above `reader_ts` if that was set.
        min_commit_ts: Timestamp,
    },
    /// The primary is locked with the async flag, expired or not: all keys of the transaction decide.
    Async {
        /// As above.
        ttl_ms: u64,
        /// The lowest commit_ts of the transaction.
        min_commit_ts: Timestamp,
        /// All its keys but the primary.
        secondaries: Vec<Key>,
    },
    /// The transaction committed.
    Committed {
        /// When it committed.
        commit_ts: Timestamp,
    },
    /// The transaction was rolled back, by this request or earlier.
    RolledBack,
    /// The primary has neither a lock nor a record, and `rollback_if_missing` was not set.
    Missing,
}

/// Why a transaction cannot proceed. The transaction layer resolves locks, waits or aborts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Other transactions hold locks. The list may be incomplete: see `size::BlockingLocks`.
    #[error("{} key(s) locked{}", .0.len(), .0.first().map_or(String::new(), |lock| format!(", first {lock}")))]
    Locked(Vec<LockInfo>),
    /// Another transaction committed a change to the key after our start_ts, and we have not seen it.
    #[error("write conflict on {key:?}: committed at {conflict_commit_ts}, after {start_ts}")]
    WriteConflict {
        /// The key.
        key: Key,
        /// Our transaction.
        start_ts: Timestamp,
        /// The other transaction.
        conflict_start_ts: Timestamp,
        /// When the other transaction committed.
        conflict_commit_ts: Timestamp,
    },
    /// Another transaction has locked the row in memory. It may not have prewritten anything yet.
    #[error("row {key:?} is locked by transaction {holder}")]
    Held {
        /// The row.
        key: Key,
        /// The other transaction.
        holder: Timestamp,
    },
    /// The transaction relies on its lock of the row in memory, and it was lost: with its leader, by a split, or
    /// because the transaction was not heard of.
    #[error("the lock of row {key:?} was lost")]
    LockLost {
        /// The row.
        key: Key,
    },
    /// An `Insert` or `CheckNotExists` found a value.
    #[error("key {key:?} already exists")]
    AlreadyExists {
        /// The key.
        key: Key,
    },
    /// The transaction was rolled back, by its own coordinator or by one that found its lock expired.
    #[error("transaction {start_ts} was rolled back")]
    RolledBack {
        /// The transaction.
        start_ts: Timestamp,
    },
    /// The transaction has committed. Answers a rollback, or a commit with another commit_ts.
    #[error("transaction {start_ts} is already committed at {commit_ts}")]
    Committed {
        /// The transaction.
        start_ts: Timestamp,
        /// When it committed.
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
    /// The keys can only be committed at or above `min_commit_ts`: a reader has pushed a lock there, or the request
    /// comes very late. The coordinator takes a newer commit_ts.
    #[error("commit_ts {commit_ts} is below {min_commit_ts}, the lowest that is possible now")]
    CommitTsTooEarly {
        /// The commit_ts of the request.
        commit_ts: Timestamp,
        /// The lowest commit_ts that the lock allows.
        min_commit_ts: Timestamp,
    },
    /// The transaction, or its snapshot, is older than the safe point: what it reads may be collected, and it writes
    /// nothing any more.
    #[error("timestamp {start_ts} is below the safe point {safe_point} of garbage collection")]
    TooOld {
        /// The snapshot, or the timestamp at which the transaction began.
        start_ts: Timestamp,
        /// The safe point.
        safe_point: Timestamp,
    },
    /// The transaction is decided, and its record may be collected: what became of it is not known any more. It never
    /// writes anything more.
    #[error("transaction {start_ts} is below the safe point {safe_point}: its record may be collected")]
    Collected {
        /// The transaction.
        start_ts: Timestamp,
        /// The safe point.
        safe_point: Timestamp,
    },
}

/// Why a request failed at the server. Grouped by what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The store could not serve the region: wrong leader, wrong epoch, overload. The request had no effect. The client
    /// reroutes or backs off.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The request was evaluated and refused. It had no effect. The transaction layer reacts.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The write was proposed and its outcome is unknown: it took effect, will take effect, or never does.
    #[error("outcome of a write to region {0} is unknown")]
    Undetermined(RegionId),
    /// The write exceeds the largest proposal or message. It had no effect, and a retry is refused too.
    #[error("a write of {bytes} bytes; at most {limit} fit into one")]
    TooLarge {
        /// Size of the proposal or message.
        bytes: usize,
        /// The limit that it exceeds.
        limit: usize,
    },
    /// The request contradicts itself or exceeds a limit. It had no effect, and every store refuses it.
    #[error("invalid request: {0}")]
    Invalid(String),
    /// The server failed before it changed anything: its disk, its data. Another replica may succeed.
    #[error("server failure: {0}")]
    Failed(String),
}
