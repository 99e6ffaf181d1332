//! Wire form of requests.

use bytes::Bytes;
use tso::Timestamp;

use super::message::pb::prewrite::Commit;
use super::message::pb::request::Body;
use super::message::{MalformedMessage, malformed, pb, required};
use crate::api::{
    CheckLocksRequest, CheckTxnStatusRequest, CommitBounds, CommitMode, LockId, LockMode, LockRef, Mutation,
    MutationOp, OldLocksRequest, PrewriteRequest, ReplicaProof, ReplicaRead, Request, RequestBody, ScanRequest,
};
use crate::key::Key;

impl From<Request> for pb::Request {
    fn from(request: Request) -> pb::Request {
        pb::Request { context: Some(request.context.into()), body: Some(request.body.into()) }
    }
}

impl TryFrom<pb::Request> for Request {
    type Error = MalformedMessage;

    fn try_from(request: pb::Request) -> Result<Request, MalformedMessage> {
        Ok(Request {
            context: required(request.context, "Request", "no context")?.try_into()?,
            body: required(request.body, "Request", "no known body")?.try_into()?,
        })
    }
}

impl From<RequestBody> for Body {
    fn from(body: RequestBody) -> Body {
        match body {
            RequestBody::Get { key, start_ts, pass } => {
                Body::Get(pb::Get { key: key.into_bytes(), start_ts: start_ts.raw(), pass: from_pass(pass) })
            }
            RequestBody::BatchGet { keys, start_ts, pass } => {
                let (keys, pass) = (from_keys(keys), from_pass(pass));
                Body::BatchGet(pb::BatchGet { keys, start_ts: start_ts.raw(), pass })
            }
            RequestBody::Scan(scan) => Body::Scan(scan.into()),
            RequestBody::Replica(replica) => Body::ReplicaRead(replica.into()),
            RequestBody::Prewrite(prewrite) => Body::Prewrite(prewrite.into()),
            RequestBody::Commit { keys, start_ts, commit_ts } => {
                Body::Commit(pb::Commit { keys: from_keys(keys), start_ts: start_ts.raw(), commit_ts: commit_ts.raw() })
            }
            RequestBody::Rollback { keys, start_ts } => {
                Body::Rollback(pb::Rollback { keys: from_keys(keys), start_ts: start_ts.raw() })
            }
            RequestBody::CheckTxnStatus(check) => Body::CheckTxnStatus(pb::CheckTxnStatus {
                primary: check.primary.into_bytes(),
                lock_ts: check.lock_ts.raw(),
                current_ts: check.current_ts.raw(),
                rollback_if_missing: check.rollback_if_missing,
                reader_ts: check.reader_ts.raw(),
                fell_back: check.fell_back,
            }),
            RequestBody::CheckLocks(check) => Body::CheckLocks(pb::CheckLocks {
                keys: from_keys(check.keys),
                lock_ts: check.lock_ts.raw(),
                reader_ts: check.reader_ts.raw(),
                mark_missing: check.mark_missing,
            }),
            RequestBody::ResolveLock { keys, start_ts, commit_ts } => Body::ResolveLock(pb::ResolveLock {
                keys: from_keys(keys),
                start_ts: start_ts.raw(),
                commit_ts: commit_ts.map(Timestamp::raw),
            }),
            RequestBody::Heartbeat { primary, start_ts, ttl_ms } => {
                Body::Heartbeat(pb::Heartbeat { primary: primary.into_bytes(), start_ts: start_ts.raw(), ttl_ms })
            }
            RequestBody::Acquire(request) => Body::Acquire(request.into()),
            RequestBody::Detect(report) => Body::Detect(report.into()),
            RequestBody::Release { keys, start_ts, keep } => {
                let keep = keep.map(|mode| pb::LockMode::from(mode).into());
                Body::Release(pb::Release { keys: from_keys(keys), start_ts: start_ts.raw(), keep })
            }
            RequestBody::Refresh { locks } => {
                Body::Refresh(pb::Refresh { locks: locks.into_iter().map(pb::LockRef::from).collect() })
            }
            RequestBody::OldLocks(OldLocksRequest { start, end, max_ts }) => {
                Body::OldLocks(pb::OldLocks { start: start.into_bytes(), end: end.into_bytes(), max_ts: max_ts.raw() })
            }
            RequestBody::RaiseSafePoint { at, writes, reads } => Body::RaiseSafePoint(pb::RaiseSafePoint {
                at: at.into_bytes(),
                writes: writes.raw(),
                reads: reads.raw(),
            }),
        }
    }
}

impl TryFrom<Body> for RequestBody {
    type Error = MalformedMessage;

    fn try_from(body: Body) -> Result<RequestBody, MalformedMessage> {
        Ok(match body {
            Body::Get(get) => RequestBody::Get {
                key: Key::new(get.key),
                start_ts: Timestamp::from_raw(get.start_ts),
                pass: to_pass(get.pass),
            },
            Body::BatchGet(get) => RequestBody::BatchGet {
                keys: to_keys(get.keys),
                start_ts: Timestamp::from_raw(get.start_ts),
                pass: to_pass(get.pass),
            },
            Body::Scan(scan) => RequestBody::Scan(scan.into()),
            Body::ReplicaRead(replica) => RequestBody::Replica(replica.try_into()?),
            Body::Prewrite(prewrite) => RequestBody::Prewrite(prewrite.try_into()?),
            Body::Commit(commit) => RequestBody::Commit {
                keys: to_keys(commit.keys),
                start_ts: Timestamp::from_raw(commit.start_ts),
                commit_ts: Timestamp::from_raw(commit.commit_ts),
            },
            Body::Rollback(rollback) => {
                RequestBody::Rollback { keys: to_keys(rollback.keys), start_ts: Timestamp::from_raw(rollback.start_ts) }
            }
            Body::CheckTxnStatus(check) => RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
                primary: Key::new(check.primary),
                lock_ts: Timestamp::from_raw(check.lock_ts),
                current_ts: Timestamp::from_raw(check.current_ts),
                rollback_if_missing: check.rollback_if_missing,
                reader_ts: Timestamp::from_raw(check.reader_ts),
                fell_back: check.fell_back,
            }),
            Body::CheckLocks(check) => RequestBody::CheckLocks(CheckLocksRequest {
                keys: to_keys(check.keys),
                lock_ts: Timestamp::from_raw(check.lock_ts),
                reader_ts: Timestamp::from_raw(check.reader_ts),
                mark_missing: check.mark_missing,
            }),
            Body::ResolveLock(resolve) => RequestBody::ResolveLock {
                keys: to_keys(resolve.keys),
                start_ts: Timestamp::from_raw(resolve.start_ts),
                commit_ts: resolve.commit_ts.map(Timestamp::from_raw),
            },
            Body::Heartbeat(beat) => RequestBody::Heartbeat {
                primary: Key::new(beat.primary),
                start_ts: Timestamp::from_raw(beat.start_ts),
                ttl_ms: beat.ttl_ms,
            },
            Body::Acquire(request) => RequestBody::Acquire(request.try_into()?),
            Body::Detect(report) => RequestBody::Detect(report.into()),
            Body::Release(release) => RequestBody::Release {
                keep: release.keep.is_some().then(|| LockMode::try_from(release.keep())).transpose()?,
                keys: to_keys(release.keys),
                start_ts: Timestamp::from_raw(release.start_ts),
            },
            Body::Refresh(refresh) => {
                RequestBody::Refresh { locks: refresh.locks.into_iter().map(LockRef::from).collect() }
            }
            Body::OldLocks(request) => RequestBody::OldLocks(OldLocksRequest {
                start: Key::new(request.start),
                end: Key::new(request.end),
                max_ts: Timestamp::from_raw(request.max_ts),
            }),
            Body::RaiseSafePoint(raise) => RequestBody::RaiseSafePoint {
                at: Key::new(raise.at),
                writes: Timestamp::from_raw(raise.writes),
                reads: Timestamp::from_raw(raise.reads),
            },
        })
    }
}

impl From<ReplicaRead> for pb::ReplicaRead {
    fn from(replica: ReplicaRead) -> pb::ReplicaRead {
        use pb::replica_read::Read;
        let read = match Body::from(*replica.read) {
            Body::Get(get) => Some(Read::Get(get)),
            Body::BatchGet(get) => Some(Read::BatchGet(get)),
            Body::Scan(scan) => Some(Read::Scan(scan)),
            // The receiver refuses what is not a read.
            _ => None,
        };
        let proof = match replica.proof {
            ReplicaProof::Grant => pb::ReplicaProof::Grant,
            ReplicaProof::ReadIndex => pb::ReplicaProof::ReadIndex,
            ReplicaProof::Covered => pb::ReplicaProof::Covered,
            ReplicaProof::Unproven => pb::ReplicaProof::Unproven,
        };
        pb::ReplicaRead { read, proof: proof.into(), floor: replica.floor.map(Timestamp::raw) }
    }
}

impl TryFrom<pb::ReplicaRead> for ReplicaRead {
    type Error = MalformedMessage;

    fn try_from(replica: pb::ReplicaRead) -> Result<ReplicaRead, MalformedMessage> {
        use pb::replica_read::Read;
        let proof = match replica.proof() {
            pb::ReplicaProof::Grant => ReplicaProof::Grant,
            pb::ReplicaProof::ReadIndex => ReplicaProof::ReadIndex,
            pb::ReplicaProof::Covered => ReplicaProof::Covered,
            pb::ReplicaProof::Unproven => ReplicaProof::Unproven,
            pb::ReplicaProof::Unspecified => return Err(malformed("ReplicaRead", "no known proof")),
        };
        let read = match required(replica.read, "ReplicaRead", "no known read")? {
            Read::Get(get) => Body::Get(get),
            Read::BatchGet(get) => Body::BatchGet(get),
            Read::Scan(scan) => Body::Scan(scan),
        };
        let floor = replica.floor.map(Timestamp::from_raw);
        Ok(ReplicaRead { read: Box::new(read.try_into()?), proof, floor })
    }
}

impl From<ScanRequest> for pb::Scan {
    fn from(scan: ScanRequest) -> pb::Scan {
        pb::Scan {
            start: scan.start.into_bytes(),
            end: scan.end.into_bytes(),
            start_ts: scan.start_ts.raw(),
            limit: scan.limit,
            max_bytes: scan.max_bytes,
            reverse: scan.reverse,
            keys_only: scan.keys_only,
            pass: from_pass(scan.pass),
        }
    }
}

impl From<pb::Scan> for ScanRequest {
    fn from(scan: pb::Scan) -> ScanRequest {
        ScanRequest {
            start: Key::new(scan.start),
            end: Key::new(scan.end),
            start_ts: Timestamp::from_raw(scan.start_ts),
            limit: scan.limit,
            max_bytes: scan.max_bytes,
            reverse: scan.reverse,
            keys_only: scan.keys_only,
            pass: to_pass(scan.pass),
        }
    }
}

impl From<PrewriteRequest> for pb::Prewrite {
    fn from(prewrite: PrewriteRequest) -> pb::Prewrite {
        pb::Prewrite {
            mutations: prewrite.mutations.into_iter().map(pb::Mutation::from).collect(),
            primary: prewrite.primary.into_bytes(),
            start_ts: prewrite.start_ts.raw(),
            ttl_ms: prewrite.ttl_ms,
            commit: match prewrite.commit {
                CommitMode::TwoPhase => None,
                CommitMode::OnePhase(bounds) => Some(Commit::OnePhase(pb::OnePhase { bounds: Some(bounds.into()) })),
                CommitMode::Async { bounds, secondaries } => Some(Commit::AsyncCommit(pb::AsyncCommit {
                    bounds: Some(bounds.into()),
                    secondaries: from_keys(secondaries),
                })),
            },
            locker: prewrite.locker.map(Timestamp::raw),
        }
    }
}

impl From<CommitBounds> for pb::CommitBounds {
    fn from(bounds: CommitBounds) -> pb::CommitBounds {
        pb::CommitBounds { least: bounds.least.raw(), greatest: bounds.greatest.raw() }
    }
}

/// The bounds of a computed commit_ts, which a request must name.
fn to_bounds(bounds: Option<pb::CommitBounds>) -> Result<CommitBounds, MalformedMessage> {
    let pb::CommitBounds { least, greatest } = required(bounds, "Prewrite", "no bounds of commit_ts")?;
    Ok(CommitBounds { least: Timestamp::from_raw(least), greatest: Timestamp::from_raw(greatest) })
}

impl TryFrom<pb::Prewrite> for PrewriteRequest {
    type Error = MalformedMessage;

    fn try_from(prewrite: pb::Prewrite) -> Result<PrewriteRequest, MalformedMessage> {
        Ok(PrewriteRequest {
            mutations: prewrite.mutations.into_iter().map(Mutation::try_from).collect::<Result<_, _>>()?,
            primary: Key::new(prewrite.primary),
            start_ts: Timestamp::from_raw(prewrite.start_ts),
            ttl_ms: prewrite.ttl_ms,
            commit: match prewrite.commit {
                None => CommitMode::TwoPhase,
                Some(Commit::OnePhase(commit)) => CommitMode::OnePhase(to_bounds(commit.bounds)?),
                Some(Commit::AsyncCommit(commit)) => {
                    CommitMode::Async { bounds: to_bounds(commit.bounds)?, secondaries: to_keys(commit.secondaries) }
                }
            },
            locker: prewrite.locker.map(Timestamp::from_raw),
        })
    }
}

impl From<Mutation> for pb::Mutation {
    fn from(mutation: Mutation) -> pb::Mutation {
        let none = pb::LockMode::Unspecified;
        let (kind, value, mode) = match mutation.op {
            MutationOp::Put(value) => (pb::MutationKind::Put, value, none),
            MutationOp::Insert(value) => (pb::MutationKind::Insert, value, none),
            MutationOp::Delete => (pb::MutationKind::Delete, Bytes::new(), none),
            MutationOp::Lock => (pb::MutationKind::Lock, Bytes::new(), none),
            MutationOp::Shared(mode) => (pb::MutationKind::Shared, Bytes::new(), mode.into()),
            MutationOp::CheckNotExists => (pb::MutationKind::CheckNotExists, Bytes::new(), none),
        };
        pb::Mutation {
            key: mutation.key.into_bytes(),
            kind: kind.into(),
            value,
            seen_ts: mutation.seen_ts.map(Timestamp::raw),
            mode: mode.into(),
            lock: mutation.lock.map(LockId::raw),
        }
    }
}

impl TryFrom<pb::Mutation> for Mutation {
    type Error = MalformedMessage;

    fn try_from(mutation: pb::Mutation) -> Result<Mutation, MalformedMessage> {
        let op = match mutation.kind() {
            pb::MutationKind::Put => MutationOp::Put(mutation.value),
            pb::MutationKind::Insert => MutationOp::Insert(mutation.value),
            _ if !mutation.value.is_empty() => return Err(malformed("Mutation", "a value where none belongs")),
            pb::MutationKind::Shared => match LockMode::try_from(mutation.mode()) {
                Ok(mode) if mode < LockMode::Update => MutationOp::Shared(mode),
                _ => return Err(malformed("Mutation", "no mode that can be shared")),
            },
            pb::MutationKind::Delete => MutationOp::Delete,
            pb::MutationKind::Lock => MutationOp::Lock,
            pb::MutationKind::CheckNotExists => MutationOp::CheckNotExists,
            pb::MutationKind::Unspecified => return Err(malformed("Mutation", "no known kind")),
        };
        let (seen_ts, lock) = (mutation.seen_ts.map(Timestamp::from_raw), mutation.lock.map(LockId::from_raw));
        Ok(Mutation { key: Key::new(mutation.key), op, seen_ts, lock })
    }
}

fn from_pass(pass: Vec<Timestamp>) -> Vec<u64> {
    pass.into_iter().map(Timestamp::raw).collect()
}

fn to_pass(pass: Vec<u64>) -> Vec<Timestamp> {
    pass.into_iter().map(Timestamp::from_raw).collect()
}

pub(super) fn from_keys(keys: Vec<Key>) -> Vec<Bytes> {
    keys.into_iter().map(Key::into_bytes).collect()
}

pub(super) fn to_keys(keys: Vec<Bytes>) -> Vec<Key> {
    keys.into_iter().map(Key::new).collect()
}
