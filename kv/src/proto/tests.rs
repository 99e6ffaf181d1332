//! Every request, response and error round-trips, malformed messages are errors, and the encoding is pinned.

use bytes::Bytes;
use prost::Message;
use raftstore::{
    Epoch, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionContext, RegionError, RegionId, RegionStatus, StoreId,
    Term,
};
use tso::Timestamp;

use super::{MalformedMessage, pb};
use crate::api::{
    AcquireRequest, Acquired, Blocked, CheckTxnStatusRequest, DetectorClock, KeyError, LockId, LockInfo, LockMode,
    LockRef, LockedRow, LocksStatus, Mutation, MutationOp, OldLocksRequest, Presence, PrewriteRequest, ReadPath,
    ReplicaProof, ReplicaRead, Request, RequestBody, Response, RowFound, ScanRequest, Served, ServerError, TxnStatus,
    WaitReport, Waiting,
};
use crate::grant::{AskGrants, Exchange, GivenGrants, Grant, PushAnswer, PushGrants};
use crate::key::Key;

const T1: Timestamp = Timestamp::new(1_000, 1);
const T2: Timestamp = Timestamp::new(2_000, 0);

fn key(bytes: &'static [u8]) -> Key {
    Key::from_static(bytes)
}

fn context() -> RegionContext {
    RegionContext { region: RegionId::new(7), epoch: Epoch { conf_ver: 3, version: 4 } }
}

fn peer(role: PeerRole) -> PeerMeta {
    PeerMeta { id: PeerId::new(11), store: StoreId::new(12), role }
}

fn region() -> Region {
    Region {
        id: RegionId::new(7),
        start: b"a".to_vec(),
        end: Vec::new(),
        epoch: Epoch { conf_ver: 3, version: 4 },
        peers: vec![peer(PeerRole::Voter), peer(PeerRole::Learner)],
    }
}

fn bodies() -> Vec<RequestBody> {
    let keys = vec![key(b"k1"), key(b""), key(b"\xff\x00")];
    let scan = ScanRequest {
        start: key(b"a"),
        end: key(b""),
        start_ts: T1,
        limit: 10,
        max_bytes: 1 << 20,
        reverse: true,
        keys_only: true,
        pass: Vec::new(),
    };
    let mutations = [
        MutationOp::Put(Bytes::from_static(b"v")),
        MutationOp::Insert(Bytes::new()),
        MutationOp::Delete,
        MutationOp::Lock,
        MutationOp::Shared(LockMode::KeyShare),
        MutationOp::CheckNotExists,
    ];
    let relies = Mutation { lock: Some(LockId::from_raw(9)), ..Mutation::new(key(b"k"), MutationOp::Delete) };
    let mutations = mutations.into_iter().map(|op| Mutation::new(key(b"k"), op)).chain([relies]).collect();
    let get = RequestBody::Get { key: key(b"k"), start_ts: Timestamp::ZERO, pass: Vec::new() };
    let replica = |read: &RequestBody, proof, floor| {
        RequestBody::Replica(ReplicaRead { read: Box::new(read.clone()), proof, floor })
    };
    vec![
        replica(&get, ReplicaProof::Grant, Some(T1)),
        replica(&RequestBody::Scan(scan.clone()), ReplicaProof::ReadIndex, None),
        replica(
            &RequestBody::BatchGet { keys: keys.clone(), start_ts: T1, pass: vec![T2] },
            ReplicaProof::Covered,
            None,
        ),
        replica(&get, ReplicaProof::Unproven, None),
        RequestBody::Get { key: key(b"k"), start_ts: Timestamp::MAX, pass: Vec::new() },
        RequestBody::BatchGet { keys: keys.clone(), start_ts: T1, pass: Vec::new() },
        RequestBody::Scan(scan.clone()),
        RequestBody::Scan(ScanRequest { reverse: false, keys_only: false, ..scan }),
        RequestBody::Prewrite(PrewriteRequest {
            mutations,
            primary: key(b"p"),
            start_ts: T1,
            ttl_ms: 3_000,
            commit: crate::api::CommitMode::TwoPhase,
            locker: None,
        }),
        RequestBody::Commit { keys: keys.clone(), start_ts: T1, commit_ts: T2 },
        RequestBody::Rollback { keys: keys.clone(), start_ts: T1 },
        RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
            primary: key(b"p"),
            lock_ts: T1,
            current_ts: T2,
            rollback_if_missing: true,
            reader_ts: Timestamp::ZERO,
            fell_back: false,
        }),
        RequestBody::ResolveLock { keys: keys.clone(), start_ts: T1, commit_ts: Some(T2) },
        RequestBody::ResolveLock { keys, start_ts: T1, commit_ts: None },
        RequestBody::Heartbeat { primary: key(b"p"), start_ts: T1, ttl_ms: u64::MAX },
        acquire(LockMode::Update, Presence::Any, Waiting::Queue { ms: 7 }),
        acquire(LockMode::NoKeyUpdate, Presence::Present, Waiting::Fail),
        acquire(LockMode::Share, Presence::Absent, Waiting::Skip),
        acquire(LockMode::KeyShare, Presence::MustBeAbsent, Waiting::Queue { ms: 0 }),
        RequestBody::Release { keys: vec![key(b"k"), key(b"l")], start_ts: T1, keep: None },
        RequestBody::Release { keys: vec![key(b"k")], start_ts: T1, keep: Some(LockMode::KeyShare) },
        RequestBody::Refresh { locks: vec![LockRef { key: key(b"k"), start_ts: T2 }] },
        RequestBody::Detect(wait()),
        RequestBody::OldLocks(OldLocksRequest { start: key(b"a"), end: key(b""), max_ts: T2 }),
        RequestBody::RaiseSafePoint { at: key(b"a"), writes: T2, reads: T1 },
    ]
}

fn acquire(mode: LockMode, presence: Presence, waiting: Waiting) -> RequestBody {
    let snapshot = (mode == LockMode::Share).then_some(T2);
    let keys = vec![key(b"k"), key(b"j")];
    RequestBody::Acquire(AcquireRequest { keys, start_ts: T1, mode, presence, snapshot, seen_ts: T2, waiting })
}

fn wait() -> WaitReport {
    WaitReport { at: key(b""), waiter: T1, holders: vec![T2, T1], session: 7, row: key(b"k"), as_of: DetectorClock(5) }
}

fn acquired(lock: &LockInfo) -> Acquired {
    let row = |is_locked, row| {
        let lock = if is_locked { LockId::from_raw(9) } else { LockId::NONE };
        LockedRow { is_locked, lock, commit_ts: T1, row }
    };
    let rows = vec![
        row(true, RowFound::Unchanged),
        row(false, RowFound::Absent),
        row(true, RowFound::Present(Bytes::from_static(b"v"))),
        row(false, RowFound::Skipped),
    ];
    Acquired { rows, blocked: Some(Blocked { holders: vec![T1, T2], record: Some(lock.clone()) }) }
}

fn results() -> Vec<Result<Response, ServerError>> {
    let region_id = RegionId::new(7);
    let lock = LockInfo { key: key(b"k"), primary: key(b"p"), start_ts: T1, ttl_ms: 9 };
    let pairs = vec![(key(b"k"), Bytes::from_static(b"v")), (key(b""), Bytes::new())];
    let replica = |path, outcome| {
        let served = Served { store: StoreId::new(3), path, start_ts: T1, safe_ts: T2, asked: 1, load: 9 };
        Response::Replica { served, outcome: Box::new(outcome) }
    };
    let mut all = vec![
        Ok(Response::Value(None)),
        Ok(Response::Value(Some(Bytes::new()))),
        Ok(Response::Value(Some(Bytes::from_static(b"v")))),
        Ok(Response::Pairs { pairs: pairs.clone(), resume: None }),
        Ok(Response::Pairs { pairs, resume: Some(key(b"")) }),
        Ok(Response::Started { start_ts: T1, asked: 1, outcome: Box::new(Ok(Response::Value(None))) }),
        Ok(Response::Started { start_ts: T1, asked: 0, outcome: Box::new(Err(KeyError::Locked(vec![lock.clone()]))) }),
        Ok(replica(ReadPath::Lease, Ok(Response::Value(None)))),
        Ok(replica(ReadPath::ReadIndex, Ok(Response::Pairs { pairs: Vec::new(), resume: None }))),
        Ok(replica(ReadPath::Grant, Err(KeyError::Locked(vec![lock.clone()])))),
        Ok(replica(ReadPath::SessionSnapshot, Ok(Response::Value(None)))),
        Ok(replica(ReadPath::Unproven, Ok(Response::Value(None)))),
        Ok(Response::Status(TxnStatus::Alive { ttl_ms: 5, min_commit_ts: T2 })),
        Ok(Response::Status(TxnStatus::Async {
            ttl_ms: 5,
            min_commit_ts: T2,
            secondaries: vec![key(b"s"), key(b"t")],
        })),
        Ok(Response::Locks(LocksStatus::Locked { min_commit_ts: T1 })),
        Ok(Response::Locks(LocksStatus::Missing)),
        Ok(Response::Locks(LocksStatus::TwoPhase)),
        Ok(Response::Locks(LocksStatus::RolledBack)),
        Ok(Response::Locks(LocksStatus::Committed { commit_ts: T2 })),
        Ok(Response::AsyncLocked { min_commit_ts: T1 }),
        Ok(Response::Committed { commit_ts: T1 }),
        Ok(Response::Status(TxnStatus::Committed { commit_ts: T2 })),
        Ok(Response::Status(TxnStatus::RolledBack)),
        Ok(Response::Status(TxnStatus::Missing)),
        Ok(Response::Ttl(7)),
        Ok(Response::Acquired(acquired(&lock))),
        Ok(Response::Acquired(Acquired::default())),
        Ok(Response::Waits { cycle: vec![wait(), wait()], clock: DetectorClock(7) }),
        Ok(Response::Waits { cycle: Vec::new(), clock: DetectorClock(0) }),
        Ok(Response::OldLocks { locks: vec![lock.clone()], resume: Some(key(b"l")) }),
        Ok(Response::OldLocks { locks: Vec::new(), resume: None }),
        Ok(Response::Done),
        Err(ServerError::Undetermined(region_id)),
        Err(ServerError::TooLarge { bytes: 9 << 20, limit: 8 << 20 }),
        Err(ServerError::Invalid("two of one key".to_owned())),
        Err(ServerError::Failed("disk".to_owned())),
    ];
    all.extend(region_errors(region_id).into_iter().map(|error| Err(error.into())));
    all.extend(key_errors(lock).into_iter().map(|error| Err(error.into())));
    all
}

fn region_errors(region_id: RegionId) -> Vec<RegionError> {
    vec![
        RegionError::NotLeader { region: region_id, leader: None },
        RegionError::NotLeader { region: region_id, leader: Some(peer(PeerRole::Voter)) },
        RegionError::RegionNotFound { region: region_id, store: StoreId::new(2) },
        RegionError::EpochNotMatch { current: Box::new(region()) },
        RegionError::KeyNotInRegion { region: region_id },
        RegionError::ServerBusy { store: StoreId::new(2), what: "latches".to_owned() },
        RegionError::StaleCommand { region: region_id },
        RegionError::NotReady { region: region_id, why: "snapshot".to_owned() },
    ]
}

fn key_errors(lock: LockInfo) -> Vec<KeyError> {
    vec![
        KeyError::Locked(vec![lock.clone(), lock]),
        KeyError::WriteConflict { key: key(b"k"), start_ts: T1, conflict_start_ts: T1.next(), conflict_commit_ts: T2 },
        KeyError::AlreadyExists { key: key(b"k") },
        KeyError::Held { key: key(b"k"), holder: T2 },
        KeyError::LockLost { key: key(b"k") },
        KeyError::RolledBack { start_ts: T1 },
        KeyError::Committed { start_ts: T1, commit_ts: T2 },
        KeyError::LockNotFound { start_ts: T1, key: key(b"k") },
        KeyError::CommitTsTooEarly { commit_ts: T1, min_commit_ts: T2 },
        KeyError::TooOld { start_ts: T1, safe_point: T2 },
        KeyError::Collected { start_ts: T1, safe_point: T2 },
    ]
}

#[test]
fn requests_round_trip() {
    for body in bodies() {
        let request = Request { context: context(), body };
        let bytes = pb::Request::from(request.clone()).encode_to_vec();
        let decoded = pb::Request::decode(bytes.as_slice()).unwrap();
        assert_eq!(Request::try_from(decoded), Ok(request));
    }
}

#[test]
fn results_round_trip() {
    for result in results() {
        let bytes = pb::Response::from(result.clone()).encode_to_vec();
        let decoded = pb::Response::decode(bytes.as_slice()).unwrap();
        assert_eq!(Result::<Response, ServerError>::try_from(decoded), Ok(result));
    }
}

#[test]
fn messages_about_grants_round_trip() {
    let grant = |ts| Grant { region: RegionId::new(7), version: 4, ts, index: LogIndex::new(9) };
    let ask = AskGrants { from: StoreId::new(3), ts: T1, regions: vec![RegionId::new(7), RegionId::new(8)] };
    let decoded = pb::AskGrants::decode(pb::AskGrants::from(ask.clone()).encode_to_vec().as_slice()).unwrap();
    assert_eq!(AskGrants::try_from(decoded), Ok(ask));
    let refused = vec![(RegionId::new(8), RegionError::StaleCommand { region: RegionId::new(8) })];
    let given = GivenGrants { ts: T2, asked: 1, grants: vec![grant(T2), grant(T1)], refused };
    let decoded = pb::GivenGrants::decode(pb::GivenGrants::from(given.clone()).encode_to_vec().as_slice()).unwrap();
    assert_eq!(GivenGrants::try_from(decoded), Ok(given));
    let exchange = Exchange {
        incarnation: u64::MAX,
        number: 5,
        is_full: true,
        withdrawn: vec![RegionId::new(2), RegionId::new(3)],
    };
    for exchange in [None, Some(exchange)] {
        let push = PushGrants { from: StoreId::new(3), ts: T2, grants: vec![grant(T1)], exchange };
        let decoded = pb::PushGrants::decode(pb::PushGrants::from(push.clone()).encode_to_vec().as_slice()).unwrap();
        assert_eq!(PushGrants::try_from(decoded), Ok(push));
    }
    let answer = PushAnswer { lacks: true, wanted: vec![RegionId::new(7)] };
    let decoded = pb::PushAnswer::decode(pb::PushAnswer::from(answer.clone()).encode_to_vec().as_slice()).unwrap();
    assert_eq!(PushAnswer::from(decoded), answer);
    let forged = pb::Grant::from(grant(Timestamp::MAX));
    assert!(Grant::try_from(forged).is_err() && Grant::try_from(pb::Grant::default()).is_err());
}

#[test]
fn region_status_round_trips() {
    let status = RegionStatus {
        region: region(),
        leader: Some(peer(PeerRole::Voter)),
        term: Term::new(5),
        applied: LogIndex::new(6),
        is_leader: true,
    };
    for status in [None, Some(RegionStatus { leader: None, is_leader: false, ..status.clone() }), Some(status)] {
        let bytes = pb::LocateResponse::from(status.clone()).encode_to_vec();
        let decoded = pb::LocateResponse::decode(bytes.as_slice()).unwrap();
        assert_eq!(Option::<RegionStatus>::try_from(decoded), Ok(status));
    }
}

#[test]
fn errors_of_malformed_messages_name_the_field() {
    let request =
        Request { context: context(), body: RequestBody::Get { key: key(b"k"), start_ts: T1, pass: Vec::new() } };
    let good = pb::Request::from(request);
    let what = |request: pb::Request| Request::try_from(request).unwrap_err();
    assert_eq!(what(pb::Request { context: None, ..good.clone() }).what, "no context");
    assert_eq!(what(pb::Request { body: None, ..good.clone() }).what, "no known body");
    let no_epoch = pb::RegionContext { region: 7, epoch: None };
    assert_eq!(what(pb::Request { context: Some(no_epoch), ..good.clone() }).what, "no epoch");
    let no_region = pb::RegionContext { region: 0, epoch: Some(Epoch::default().into()) };
    assert_eq!(what(pb::Request { context: Some(no_region), ..good }).what, "region id 0");

    let mutation = |kind: i32, value: &'static [u8]| pb::Mutation {
        key: Bytes::new(),
        kind,
        value: Bytes::from_static(value),
        seen_ts: None,
        mode: 0,
        lock: None,
    };
    let bad = |mutation: pb::Mutation| Mutation::try_from(mutation).unwrap_err();
    let shared = |mode: i32| pb::Mutation { mode, ..mutation(pb::MutationKind::Shared.into(), b"") };
    for mode in [0, 4, 9] {
        assert_eq!(bad(shared(mode)).what, "no mode that can be shared");
    }
    assert_eq!(bad(mutation(0, b"")).what, "no known kind");
    assert_eq!(bad(mutation(77, b"")).what, "no known kind");
    assert_eq!(bad(mutation(pb::MutationKind::Delete.into(), b"v")).what, "a value where none belongs");

    let peer = pb::Peer { id: 1, store: 1, role: 9 };
    let expected = MalformedMessage { message: "Peer", what: "no known role" };
    assert_eq!(PeerMeta::try_from(peer), Err(expected));
    assert!(
        Result::<Response, ServerError>::try_from(pb::Response { start_ts: 7, ..pb::Response::default() }).is_err()
    );
    assert!(KeyError::try_from(pb::KeyError { error: None }).is_err());
    assert!(RegionError::try_from(pb::RegionError { error: None }).is_err());
    assert!(ServerError::try_from(pb::ServerError { error: None }).is_err());
    assert!(LocksStatus::try_from(pb::LocksStatus { status: None }).is_err());
    assert!(TxnStatus::try_from(pb::TxnStatus { status: None, alive_min_commit_ts: 0 }).is_err());
}

#[test]
fn golden_bytes() {
    let mutations = vec![
        Mutation::new(key(b"k"), MutationOp::Put(Bytes::from_static(b"v"))),
        Mutation::new(key(b"l"), MutationOp::Lock),
        Mutation::new(key(b"m"), MutationOp::Shared(LockMode::Share)),
    ];
    let prewrite = PrewriteRequest {
        mutations,
        primary: key(b"k"),
        start_ts: Timestamp::from_raw(0x0102),
        ttl_ms: 3,
        commit: crate::api::CommitMode::TwoPhase,
        locker: None,
    };
    let request = pb::Request::from(Request { context: context(), body: RequestBody::Prewrite(prewrite) });
    let expected = b"\x0a\x08\x08\x07\x12\x04\x08\x03\x10\x04\
        \x2a\x28\x0a\x08\x0a\x01k\x10\x01\x1a\x01v\x0a\x05\x0a\x01l\x10\x04\x0a\x07\x0a\x01m\x10\x06\x28\x02\
        \x12\x01k\x19\x02\x01\0\0\0\0\0\0\x20\x03";
    assert_eq!(request.encode_to_vec().escape_ascii().to_string(), expected.escape_ascii().to_string());

    let body = RequestBody::RaiseSafePoint { at: key(b"k"), writes: Timestamp::from_raw(2), reads: Timestamp::ZERO };
    let request = pb::Request::from(Request { context: context(), body });
    let expected = b"\x0a\x08\x08\x07\x12\x04\x08\x03\x10\x04\x92\x01\x0c\x0a\x01k\x11\x02\0\0\0\0\0\0\0";
    assert_eq!(request.encode_to_vec().escape_ascii().to_string(), expected.escape_ascii().to_string());

    let error = KeyError::Committed { start_ts: Timestamp::from_raw(1), commit_ts: Timestamp::from_raw(2) };
    let response = pb::Response::from(Err(ServerError::from(error)));
    let expected = b"\x32\x16\x12\x14\x2a\x12\x09\x01\0\0\0\0\0\0\0\x11\x02\0\0\0\0\0\0\0";
    assert_eq!(response.encode_to_vec().escape_ascii().to_string(), expected.escape_ascii().to_string());
}
