//! The test double behaves like a cluster: it routes, refuses, loses responses and duplicates requests.

use bytes::Bytes;
use raftstore::{Region, RegionContext, RegionId};

use super::*;
use crate::api::{KeyError, Mutation, MutationOp, PrewriteRequest, RequestBody, ScanRequest};

fn key(bytes: &'static [u8]) -> Key {
    Key::from_static(bytes)
}

fn context(region: &Region) -> RegionContext {
    RegionContext { region: region.id, epoch: region.epoch }
}

/// Sends to the leader of the region that holds `first`, under its current epoch.
async fn send(cluster: &MemoryCluster, first: &Key, body: RequestBody) -> Result<Response, CallError> {
    let status = cluster.locate(StoreId::new(1), first.to_storage()).await.unwrap().unwrap();
    let request = Request { context: context(&status.region), body };
    cluster.call(status.leader.unwrap().store, request).await
}

async fn put(cluster: &MemoryCluster, at: &Key, value: &'static [u8]) -> Result<Timestamp, CallError> {
    let start_ts = cluster.timestamp();
    let mutations = vec![Mutation::new(at.clone(), MutationOp::Put(Bytes::from_static(value)))];
    let prewrite = PrewriteRequest {
        mutations,
        primary: at.clone(),
        start_ts,
        ttl_ms: 1_000,
        commit: crate::api::CommitMode::TwoPhase,
        locker: None,
    };
    send(cluster, at, RequestBody::Prewrite(prewrite)).await?;
    let commit_ts = cluster.timestamp();
    send(cluster, at, RequestBody::Commit { keys: vec![at.clone()], start_ts, commit_ts }).await?;
    Ok(commit_ts)
}

async fn get(cluster: &MemoryCluster, at: &Key, start_ts: Timestamp) -> Result<Response, CallError> {
    send(cluster, at, RequestBody::Get { key: at.clone(), start_ts, pass: Vec::new() }).await
}

fn value(value: &'static [u8]) -> Result<Response, CallError> {
    Ok(Response::Value(Some(Bytes::from_static(value))))
}

#[tokio::test]
async fn committed_values_are_visible_from_their_commit_ts() {
    let cluster = MemoryCluster::new();
    let before = cluster.timestamp();
    let commit_ts = put(&cluster, &key(b"a"), b"1").await.unwrap();
    assert_eq!(get(&cluster, &key(b"a"), commit_ts).await, value(b"1"));
    assert_eq!(get(&cluster, &key(b"a"), before).await, Ok(Response::Value(None)));
    assert!(cluster.locks().unwrap().is_empty());
    assert_eq!(cluster.calls(), 4);
}

#[tokio::test]
async fn requests_are_refused_as_by_a_real_store() {
    let cluster = MemoryCluster::builder().stores(2).split_at(key(b"m")).build();
    let [left, right] = [cluster.regions()[0].clone(), cluster.regions()[1].clone()];
    assert_eq!((left.leader.unwrap().store.get(), right.leader.unwrap().store.get()), (1, 2));
    let body = RequestBody::Get { key: key(b"z"), start_ts: cluster.timestamp(), pass: Vec::new() };
    let call = async |store: u64, context: RegionContext| {
        let request = Request { context, body: body.clone() };
        match cluster.call(StoreId::new(store), request).await {
            Err(CallError::Server(ServerError::Region(error))) => Some(error),
            other => {
                assert_eq!(other, Ok(Response::Value(None)));
                None
            }
        }
    };
    let (l, r) = (left.region.id, right.region.id);
    assert_eq!(call(2, context(&right.region)).await, None);
    assert_eq!(call(1, context(&left.region)).await, Some(RegionError::KeyNotInRegion { region: l }));
    assert_eq!(call(1, context(&right.region)).await, Some(RegionError::NotLeader { region: r, leader: right.leader }));
    let nowhere = RegionContext { region: RegionId::new(99), ..context(&right.region) };
    let not_found = RegionError::RegionNotFound { region: RegionId::new(99), store: StoreId::new(2) };
    assert_eq!(call(2, nowhere).await, Some(not_found));

    cluster.split(&key(b"t"));
    let stale = call(2, context(&right.region)).await;
    let Some(RegionError::EpochNotMatch { current }) = stale else { panic!("{stale:?}") };
    assert_eq!((current.id, current.end), (r, key(b"t").to_storage()));
    cluster.move_leader(&key(b"z"), StoreId::new(1));
    let moved = cluster.locate(StoreId::new(2), key(b"z").to_storage()).await.unwrap().unwrap();
    assert_eq!((moved.leader.unwrap().store, moved.is_leader), (StoreId::new(1), false));
    assert_eq!(call(1, context(&moved.region)).await, None);
}

#[tokio::test]
async fn injected_faults_come_in_order_with_the_right_error() {
    let cluster = MemoryCluster::new();
    let unreachable = |error: CallError| matches!(error, CallError::Unreachable { .. });
    cluster.inject([Fault::Unreachable]);
    assert!(unreachable(put(&cluster, &key(b"a"), b"1").await.unwrap_err()));
    assert!(cluster.locks().unwrap().is_empty());

    cluster.inject([Fault::LoseReply]);
    assert!(matches!(put(&cluster, &key(b"a"), b"1").await.unwrap_err(), CallError::Lost { .. }));
    assert_eq!(cluster.locks().unwrap().len(), 1);

    cluster.inject([Fault::Undetermined { applied: false }]);
    let error = put(&cluster, &key(b"b"), b"1").await.unwrap_err();
    assert!(matches!(error, CallError::Server(ServerError::Undetermined(_))));
    assert_eq!(cluster.locks().unwrap().len(), 1);

    let locked = get(&cluster, &key(b"a"), cluster.timestamp()).await.unwrap_err();
    let CallError::Server(ServerError::Key(KeyError::Locked(locks))) = locked else { panic!("{locked}") };
    assert_eq!(locks, cluster.locks().unwrap());
}

#[tokio::test]
async fn a_scan_stays_within_its_region() {
    let cluster = MemoryCluster::builder().split_at(key(b"m")).build();
    for at in [b"a", b"b", b"m", b"z"] {
        put(&cluster, &key(at), b"1").await.unwrap();
    }
    let scan = |start: &'static [u8], end: &'static [u8]| {
        RequestBody::Scan(ScanRequest {
            start: key(start),
            end: key(end),
            start_ts: cluster.timestamp(),
            limit: 10,
            max_bytes: 1_000,
            reverse: false,
            keys_only: true,
            pass: Vec::new(),
        })
    };
    let left = send(&cluster, &key(b"a"), scan(b"", b"m")).await;
    let pairs = vec![(key(b"a"), Bytes::new()), (key(b"b"), Bytes::new())];
    assert_eq!(left, Ok(Response::Pairs { pairs, resume: None }));
    let across = send(&cluster, &key(b"a"), scan(b"", b"")).await;
    assert!(matches!(across, Err(CallError::Server(ServerError::Region(RegionError::KeyNotInRegion { .. })))));
}

/// A client that only retries succeeds under every fault. Duplicated requests do no harm. A seed is reproducible.
#[tokio::test]
async fn mixed_faults_are_survived_and_reproducible() {
    async fn run(seed: u64) -> (u64, Vec<Response>) {
        let delay_max = Duration::from_millis(u64::from(seed == 0));
        let faults = Faults { undetermined: 0.02, delay_max, ..Faults::mixed(seed) };
        let cluster = MemoryCluster::builder().stores(3).split_at(key(b"k")).faults(faults).build();
        let keys = [key(b"a"), key(b"k"), key(b"q")];
        for round in 0..20 {
            let at = &keys[round % keys.len()];
            let start_ts = cluster.timestamp();
            let mutations = vec![Mutation::new(at.clone(), MutationOp::Put(Bytes::from(format!("{round}"))))];
            let prewrite = PrewriteRequest {
                mutations,
                primary: at.clone(),
                start_ts,
                ttl_ms: 1_000,
                commit: crate::api::CommitMode::TwoPhase,
                locker: None,
            };
            until_done(&cluster, at, RequestBody::Prewrite(prewrite)).await;
            let commit_ts = cluster.timestamp();
            until_done(&cluster, at, RequestBody::Commit { keys: vec![at.clone()], start_ts, commit_ts }).await;
        }
        let mut values = Vec::new();
        for at in keys {
            let body = RequestBody::Get { key: at.clone(), start_ts: cluster.timestamp(), pass: Vec::new() };
            values.push(until_done(&cluster, &at, body).await);
        }
        (cluster.calls(), values)
    }
    async fn until_done(cluster: &MemoryCluster, at: &Key, body: RequestBody) -> Response {
        for _ in 0..100 {
            let Ok(Some(status)) = cluster.locate(StoreId::new(1), at.to_storage()).await else { continue };
            let request = Request { context: context(&status.region), body: body.clone() };
            match cluster.call(status.leader.unwrap().store, request).await {
                Ok(response) => return response,
                Err(CallError::Server(ServerError::Key(error))) => panic!("{error}"),
                Err(_) => continue,
            }
        }
        panic!("a hundred attempts failed")
    }
    for seed in 0..20 {
        let (calls, values) = run(seed).await;
        let last = |n: &'static [u8]| Response::Value(Some(Bytes::from_static(n)));
        assert_eq!(values, [last(b"18"), last(b"19"), last(b"17")], "seed {seed}");
        assert_eq!(run(seed).await.0, calls, "seed {seed} is not reproducible");
    }
}
