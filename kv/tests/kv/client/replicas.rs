//! Reads with options: which replica gets which request, what happens when it fails, and what a read reports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kv::api::{Mutation, MutationOp, ReadPath};
use kv::client::{Client, ClientError, ProofPolicy, ReadOptions, ReadReport, ReplicaPolicy, ScanRange, Snapshot};
use kv::memory::MemoryCluster;
use prometheus::Registry;
use raftstore::{Epoch, RegionError, RegionId};
use tso::Timestamp;

use super::counter;
use super::fake::{Fault, ONE, Replicas, THREE, TWO, key, labelled, locked, now};

const FALLBACKS: &str = "cortado_kv_client_replica_fallbacks_total";
const READS: &str = "cortado_kv_client_replica_reads_total";

fn options(replica: ReplicaPolicy) -> ReadOptions {
    ReadOptions { replica, ..ReadOptions::default() }
}

fn at(start_ts: Timestamp, options: &Arc<ReadOptions>) -> Snapshot {
    Snapshot { options: Some(Arc::clone(options)), ..Snapshot::from(start_ts) }
}

fn everything() -> ScanRange {
    ScanRange { start: key(""), end: key(""), reverse: false }
}

/// One read of each kind.
async fn read_all(client: &Client, replicas: &Replicas, options: ReadOptions) -> Vec<String> {
    let (options, start_ts) = (Arc::new(options), replicas.cluster.timestamp());
    let value = Some(Bytes::from_static(b"v"));
    assert_eq!(client.get(&key("k"), at(start_ts, &options)).await, Ok(value.clone()));
    let keys = [key("a"), key("k")];
    let found = client.batch_get(&keys, at(start_ts, &options)).await.expect("served");
    assert_eq!(found, [(key("k"), Bytes::from_static(b"v"))]);
    let page = client.scan(&everything(), at(start_ts, &options), 10).await.expect("served");
    assert_eq!(page.pairs, found);
    if let Some(first) = client.first_get(&key("k"), Some(&options)).await {
        assert_eq!(first.outcome, Ok(value));
        assert!(first.start_ts > start_ts);
    }
    if let Some(first) = client.first_scan(&everything(), 10, Some(&options)).await {
        assert_eq!(first.outcome.map(|page| page.pairs), Ok(found));
    }
    replicas.log()
}

/// The requests of each policy, as a table. The node's own store is 2, a follower; 3 is nearer than 1, which leads.
#[tokio::test]
async fn each_policy_sends_its_reads_to_its_replica() {
    use ReplicaPolicy::{Any, Closest, Follower, Leader, Learner};
    let plain = ["1 get", "1 batch get", "1 scan", "1 get", "1 scan"];
    let at_two = ["2 get Grant", "2 batch get Grant", "2 scan Grant", "2 get Grant", "2 scan Grant"];
    let at_three = at_two.map(|sent| sent.replace('2', "3"));
    for (policy, learner, expected) in [
        (Leader, None, plain.map(str::to_owned)),
        (Closest, None, at_two.map(str::to_owned)),
        (Follower, None, at_two.map(str::to_owned)),
        (Learner, Some(THREE), at_three.clone()),
        (Learner, None, at_two.map(str::to_owned)),
        (Any, None, ["1 get", "2 batch get Grant", "3 scan Grant", "1 get", "2 scan Grant"].map(str::to_owned)),
    ] {
        let replicas = Replicas::new(Some(TWO), learner).await;
        let client = replicas.client(&Registry::new()).await;
        let sent = read_all(&client, &replicas, ReadOptions { read_only: true, ..options(policy) }).await;
        assert_eq!(sent, expected, "{policy:?}");
    }
    let replicas = Replicas::new(Some(TWO), None).await;
    let client = replicas.client(&Registry::new()).await;
    for (proof, expected) in [(ProofPolicy::ReadIndex, "2 get ReadIndex"), (ProofPolicy::Unproven, "2 get Unproven")] {
        let sent = read_all(&client, &replicas, ReadOptions { proof, ..options(Closest) }).await;
        assert_eq!(sent[0], expected);
        assert_eq!(sent.len(), 3, "a transaction that may write takes its timestamp itself: {sent:?}");
    }
}

/// Reads without options are what they were: the plain request, to the leader.
#[tokio::test]
async fn reads_without_options_go_to_the_leader_and_report_nothing() {
    let (replicas, registry) = (Replicas::new(Some(TWO), None).await, Registry::new());
    let client = replicas.client(&registry).await;
    let start_ts = replicas.cluster.timestamp();
    client.get(&key("k"), start_ts).await.expect("served");
    client.batch_get(&[key("a"), key("k")], start_ts).await.expect("served");
    client.scan(&everything(), start_ts, 10).await.expect("served");
    client.first_get(&key("k"), None).await.expect("served");
    client.first_scan(&everything(), 10, None).await.expect("served");
    assert_eq!(replicas.log(), ["1 get", "1 batch get", "1 scan", "1 get", "1 scan"]);
    assert_eq!(labelled(&registry, READS, "leader"), 0);
}

/// A replica that cannot serve: the next one is asked at once, in the end the leader. Nobody sees an error, the leader
/// stays the leader, and the next read leaves the replica out.
#[tokio::test(start_paused = true)]
async fn a_replica_that_fails_is_passed_over() {
    let region = RegionId::FIRST_DATA;
    let old = Epoch { conf_ver: 1, version: 0 };
    let refusals = |replicas: &Replicas| {
        let mut older = replicas.cluster.regions()[0].region.clone();
        older.epoch = old;
        [
            Fault::Unreachable,
            Fault::Refuse(RegionError::NotReady { region, why: "no grant".to_owned() }),
            Fault::Refuse(RegionError::NotLeader { region, leader: None }),
            Fault::Refuse(RegionError::RegionNotFound { region, store: TWO }),
            Fault::Refuse(RegionError::ServerBusy { store: TWO, what: "reads".to_owned() }),
            Fault::Refuse(RegionError::EpochNotMatch { current: Box::new(older) }),
        ]
    };
    let count = refusals(&*Replicas::new(None, None).await).len();
    for number in 0..count {
        let (replicas, registry) = (Replicas::new(Some(TWO), None).await, Registry::new());
        let client = replicas.client(&registry).await;
        let options = Arc::new(options(ReplicaPolicy::Closest));
        let read = || async {
            let start_ts = replicas.cluster.timestamp();
            let found = client.get(&key("k"), at(start_ts, &options)).await;
            assert_eq!(found, Ok(Some(Bytes::from_static(b"v"))));
            replicas.log()
        };
        let fault = refusals(&replicas).into_iter().nth(number).expect("one of them");
        replicas.set_fault(TWO, fault.clone());
        let began = now();
        assert_eq!(read().await, ["2 get Grant", "3 get Grant"], "{fault:?}");
        // A replica that has refused may still answer what it has proved; a store that fails or is busy is left alone.
        let own = match &fault {
            Fault::Refuse(error) if !matches!(error, RegionError::ServerBusy { .. }) => &["2 get Covered"][..],
            _ => &[],
        };
        assert_eq!(read().await, [own, &["3 get Grant"]].concat(), "{fault:?}");
        assert_eq!(counter(&registry, FALLBACKS), 0);
        replicas.set_fault(THREE, fault.clone());
        assert_eq!(read().await, [own, &["3 get Grant", "1 get"]].concat(), "{fault:?}");
        assert_eq!(read().await, [own, &["1 get"]].concat(), "{fault:?}");
        assert_eq!(counter(&registry, FALLBACKS), 1);
        assert_eq!(now() - began, Duration::ZERO, "nothing waits");
        assert_eq!(counter(&registry, "cortado_kv_client_locates_total"), 1, "the region stays known");
        client.get(&key("k"), replicas.cluster.timestamp()).await.expect("served");
        assert_eq!(replicas.log(), ["1 get"], "the leader stays the leader");
        // It is tried again later.
        replicas.set_fault(TWO, None);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(read().await, ["2 get Grant"], "{fault:?}");
    }
}

/// A follower that knows of a split: the read goes on by the new regions, and nobody has asked the leader.
#[tokio::test]
async fn a_replica_that_names_a_newer_region_reroutes_the_read() {
    let replicas = Replicas::new(Some(TWO), None).await;
    let client = replicas.client(&Registry::new()).await;
    let options = Arc::new(options(ReplicaPolicy::Closest));
    replicas.cluster.split(&key("j"));
    let current = replicas.cluster.regions().into_iter().find(|status| status.region.start.is_empty()).expect("one");
    replicas.set_fault(TWO, Fault::Refuse(RegionError::EpochNotMatch { current: Box::new(current.region) }));
    let found = client.get(&key("a"), at(replicas.cluster.timestamp(), &options)).await;
    assert_eq!(found, Ok(None));
    assert_eq!(replicas.log(), ["2 get Grant", "2 get Covered", "3 get Grant"], "the leader was not asked");
    replicas.set_fault(TWO, None);
    let found = client.get(&key("k"), at(replicas.cluster.timestamp(), &options)).await;
    assert_eq!(found, Ok(Some(Bytes::from_static(b"v"))), "the other half is located");
}

/// No replica answers: the read ends with its patience, and says so.
#[tokio::test(start_paused = true)]
async fn a_read_ends_with_its_patience() {
    let replicas = Replicas::new(Some(TWO), None).await;
    let client = replicas.client(&Registry::new()).await;
    let patience = Duration::from_secs(3);
    let options = Arc::new(ReadOptions { patience, read_only: true, ..options(ReplicaPolicy::Closest) });
    for store in [ONE, TWO, THREE] {
        replicas.set_fault(store, Fault::Slow(Duration::from_secs(60)));
    }
    let start_ts = replicas.cluster.timestamp();
    let began = now();
    assert_eq!(client.first_get(&key("k"), Some(&options)).await, None);
    assert_eq!(replicas.log(), ["2 get Grant", "3 get Grant", "1 get"], "each has its share of the time");
    tokio::time::sleep(patience).await;
    let failed = client.get(&key("k"), at(start_ts, &options)).await;
    assert!(matches!(failed, Err(ClientError::Unavailable { .. })), "{failed:?}");
    let failed = client.batch_get(&[key("a"), key("k")], at(start_ts, &options)).await;
    assert!(matches!(failed, Err(ClientError::Unavailable { .. })), "{failed:?}");
    let failed = client.scan(&everything(), at(start_ts, &options), 10).await;
    assert!(matches!(failed, Err(ClientError::Unavailable { .. })), "{failed:?}");
    let took = now() - began;
    assert!((patience * 5..patience * 5 + Duration::from_millis(100)).contains(&took), "{took:?}");
    assert_eq!(options.trace.take(), None, "nothing was served");
}

/// The own replica waited for a proof that did not come, and is avoided. What it has proved it answers at once. Before,
/// a node that was cut off asked the others first, which took all of the patience.
#[tokio::test(start_paused = true)]
async fn an_own_replica_that_is_avoided_answers_what_it_has_proved() {
    let replicas = Replicas::new(Some(TWO), None).await;
    let client = replicas.client(&Registry::new()).await;
    let past = replicas.cluster.timestamp();
    replicas.set_safe_ts(TWO, past);
    let options = Arc::new(ReadOptions { read_only: true, ..options(ReplicaPolicy::Closest) });
    for store in [ONE, TWO, THREE] {
        replicas.set_fault(store, Fault::Slow(Duration::from_secs(60)));
    }
    assert_eq!(client.first_get(&key("k"), Some(&options)).await, None, "nobody has a proof");
    replicas.set_fault(TWO, None);
    replicas.log();
    let began = now();
    let page = client.scan(&everything(), at(past, &options), 10).await.expect("served");
    assert_eq!(page.pairs, [(key("k"), Bytes::from_static(b"v"))]);
    let session = Arc::new(ReadOptions { floor: Some(past), ..self::options(ReplicaPolicy::Closest) });
    let first = client.first_scan(&everything(), 10, Some(&session)).await.expect("served");
    assert_eq!(first.start_ts, past);
    let log = replicas.log();
    assert!(log.contains(&"2 scan Covered".to_owned()) && log.iter().all(|sent| sent.starts_with('2')), "{log:?}");
    assert!(now() - began < Duration::from_secs(1), "nobody else was waited for");
}

/// A lock at a replica is the answer. Whoever resolved it reads on at the leader.
#[tokio::test(start_paused = true)]
async fn a_read_that_met_locks_goes_on_at_the_leader() {
    let replicas = Replicas::new(Some(TWO), None).await;
    let client = replicas.client(&Registry::new()).await;
    let options = Arc::new(ReadOptions { read_only: true, ..options(ReplicaPolicy::Closest) });
    let start_ts = replicas.cluster.timestamp();
    let mutation = Mutation::new(key("k"), MutationOp::Delete);
    client.prewrite(vec![mutation], &key("k"), start_ts, || 3_000).await.expect("prewritten");
    let read = at(replicas.cluster.timestamp(), &options);
    replicas.log();
    let met = client.get(&key("k"), read.clone()).await.expect_err("locked");
    assert!(locked(&met), "{met:?}");
    let page = client.scan(&everything(), read.clone(), 10).await.expect_err("locked");
    assert!(locked(&page), "{page:?}");
    let first = client.first_get(&key("k"), Some(&options)).await.expect("served");
    assert_eq!(first.outcome.map_err(|locks| locks.len()), Err(1));
    assert_eq!(replicas.log(), ["2 get Grant", "2 scan Grant", "2 get Grant"]);
    client.rollback(&[key("k")], start_ts).await.expect("rolled back");
    let again = client.get(&key("k"), Snapshot { locks_met: true, ..read.clone() }).await;
    assert_eq!(again, Ok(Some(Bytes::from_static(b"v"))));
    assert_eq!(replicas.log(), ["1 write", "1 get"]);
    // There too, it ends with its patience.
    replicas.set_fault(ONE, Fault::Slow(Duration::from_secs(60)));
    let began = now();
    let failed = client.get(&key("k"), Snapshot { locks_met: true, ..read }).await;
    assert!(matches!(failed, Err(ClientError::Unavailable { .. })), "{failed:?}");
    assert_eq!((now() - began).as_secs(), 5);
}

/// A get at this node's own replica takes no message while a grant covers it.
#[tokio::test]
async fn a_covered_read_at_the_own_replica_sends_nothing() {
    let (replicas, registry) = (Replicas::new(Some(TWO), None).await, Registry::new());
    let client = replicas.client(&registry).await;
    let closest = ReadOptions { floor: Some(Timestamp::new(0, 1)), ..options(ReplicaPolicy::Closest) };
    let (old, safe_ts) = (replicas.cluster.timestamp(), replicas.cluster.timestamp());
    let new = replicas.cluster.timestamp();
    let value = Some(Bytes::from_static(b"v"));
    assert_eq!(client.try_get(&key("k"), old, Some(&closest)), None, "no grant yet");
    replicas.set_safe_ts(TWO, safe_ts);
    assert_eq!(client.try_get(&key("k"), old, Some(&closest)), Some(value.clone()));
    let report = ReadReport { path: ReadPath::Grant, store: TWO, start_ts: old, safe_ts, requests: 1, round_trips: 0 };
    assert_eq!(closest.trace.take(), Some(report));
    assert_eq!(client.try_get(&key("k"), new, Some(&closest)), None, "above the grant");
    let first = client.first_get(&key("k"), Some(&closest)).await.expect("served");
    assert_eq!((first.start_ts, first.outcome), (safe_ts, Ok(value.clone())));
    let session = ReadReport { path: ReadPath::SessionSnapshot, start_ts: safe_ts, ..report };
    assert_eq!(closest.trace.take(), Some(session));
    assert_eq!(replicas.log(), [] as [&str; 0]);
    assert_eq!(labelled(&registry, READS, "session_snapshot"), 1);

    // Others go elsewhere, or ask.
    for (other, proof) in [
        (ReplicaPolicy::Leader, ProofPolicy::Grants),
        (ReplicaPolicy::Learner, ProofPolicy::ReadIndex),
        (ReplicaPolicy::Closest, ProofPolicy::ReadIndex),
    ] {
        assert_eq!(client.try_get(&key("k"), old, Some(&ReadOptions { proof, ..options(other) })), None);
    }
    // `any` takes the own replica when it is its turn.
    let (any, shared) = (options(ReplicaPolicy::Any), Arc::new(options(ReplicaPolicy::Any)));
    let mut local = 0u32;
    for _ in 0..30 {
        match client.try_get(&key("k"), old, Some(&any)) {
            Some(found) => {
                local += 1;
                assert_eq!(found, value);
            }
            None => assert_eq!(client.get(&key("k"), at(old, &shared)).await, Ok(value.clone())),
        }
    }
    let sent = replicas.log();
    let count = |store: &str| sent.iter().filter(|sent| sent.starts_with(store)).count();
    assert_eq!((local, count("1"), count("2"), count("3")), (10, 10, 0, 10));
}

/// The leader at home: plain local reads, reported as such.
#[tokio::test]
async fn a_leader_at_home_reads_under_its_lease() {
    let replicas = Replicas::new(Some(ONE), None).await;
    let client = replicas.client(&Registry::new()).await;
    let start_ts = replicas.cluster.timestamp();
    for policy in [ReplicaPolicy::Leader, ReplicaPolicy::Closest] {
        let options = options(policy);
        assert_eq!(client.try_get(&key("k"), start_ts, Some(&options)), Some(Some(Bytes::from_static(b"v"))));
        let path = ReadPath::Lease;
        let report = ReadReport { path, store: ONE, start_ts, safe_ts: start_ts, requests: 1, round_trips: 0 };
        assert_eq!(options.trace.take(), Some(report), "{policy:?}");
    }
    assert_eq!(replicas.log(), [] as [&str; 0]);
}

/// The bound of a first read reaches the replica, also the one that leads. Without one, only a transaction that never
/// writes leaves a fresh snapshot to a replica.
#[tokio::test]
async fn first_reads_name_their_bound() {
    let replicas = Replicas::new(Some(THREE), None).await;
    let client = replicas.client(&Registry::new()).await;
    let floor = replicas.cluster.timestamp();
    let bounded = |replica| ReadOptions { floor: Some(floor), ..options(replica) };
    let first = client.first_get(&key("k"), Some(&bounded(ReplicaPolicy::Closest))).await.expect("served");
    assert!(first.start_ts > floor, "nothing newer was proven, so it is fresh");
    let again = client.first_scan(&everything(), 10, Some(&bounded(ReplicaPolicy::Closest))).await.expect("served");
    assert_eq!(again.start_ts, first.start_ts, "the newest that is proven");
    assert_eq!(replicas.log(), ["3 get Grant floor", "3 scan Grant floor"]);
    client.first_get(&key("k"), Some(&bounded(ReplicaPolicy::Leader))).await.expect("served");
    assert_eq!(replicas.log(), ["1 get"], "the leader's snapshot is fresh");
    let learner = Replicas::new(Some(ONE), None).await;
    let client = learner.client(&Registry::new()).await;
    client.first_get(&key("k"), Some(&bounded(ReplicaPolicy::Closest))).await.expect("served");
    assert_eq!(learner.log(), ["1 get Grant floor"], "the leader may have an older proof");
    assert_eq!(client.first_get(&key("k"), Some(&options(ReplicaPolicy::Closest))).await, None);
    assert_eq!(learner.log(), [] as [&str; 0]);
}

#[tokio::test]
async fn reports_count_requests_and_round_trips() {
    let cluster = MemoryCluster::builder().stores(3).split_at(key("j")).build();
    let replicas = Replicas::over(cluster, Some(TWO), None).await;
    let client = replicas.client(&Registry::new()).await;
    let (start_ts, newer) = (replicas.cluster.timestamp(), replicas.cluster.timestamp());
    let follower = Arc::new(options(ReplicaPolicy::Follower));
    let took = |options: &ReadOptions| {
        let report = options.trace.take().expect("reported");
        (report.store, report.path, report.requests, report.round_trips)
    };
    let k = key("k");
    let get = |start_ts| client.get(&k, at(start_ts, &follower));
    get(start_ts).await.expect("served");
    assert_eq!(took(&follower), (TWO, ReadPath::Grant, 1, 1), "the own replica has asked its leader");
    get(start_ts).await.expect("served");
    assert_eq!(took(&follower), (TWO, ReadPath::Grant, 1, 0), "it is covered now");
    get(newer).await.expect("served");
    get(newer).await.expect("served");
    assert_eq!(took(&follower), (TWO, ReadPath::Grant, 2, 1), "two requests of a statement");
    let keys = [key("a"), key("k")];
    replicas.set_safe_ts(TWO, start_ts);
    client.batch_get(&keys, at(newer, &follower)).await.expect("served");
    assert_eq!(took(&follower), (TWO, ReadPath::Grant, 2, 1), "two requests at a time, one of which asked");
    replicas.set_fault(TWO, Fault::Unreachable);
    get(start_ts).await.expect("served");
    assert_eq!(took(&follower), (THREE, ReadPath::Grant, 2, 2), "the own store failed without a message");
    replicas.set_fault(THREE, Fault::Unreachable);
    get(start_ts).await.expect("served");
    assert_eq!(took(&follower), (ONE, ReadPath::Lease, 2, 2), "store 3 failed, the leader served");
    let leader = Arc::new(options(ReplicaPolicy::Leader));
    client.batch_get(&keys, at(newer, &leader)).await.expect("served");
    assert_eq!(took(&leader), (ONE, ReadPath::Lease, 2, 1));
    client.scan(&everything(), at(newer, &leader), 10).await.expect("served");
    assert_eq!(took(&leader), (ONE, ReadPath::Lease, 2, 2), "one region after the other");
}

/// An answer at another timestamp than the read's, or below its bound, is not taken.
#[tokio::test]
async fn an_answer_at_another_timestamp_is_refused() {
    let replicas = Replicas::new(Some(TWO), None).await;
    let client = replicas.client(&Registry::new()).await;
    let (old, start_ts) = (replicas.cluster.timestamp(), replicas.cluster.timestamp());
    let closest = Arc::new(options(ReplicaPolicy::Closest));
    replicas.set_fault(TWO, Fault::ReadsAt(old));
    replicas.set_fault(THREE, Fault::ReadsAt(old));
    client.get(&key("k"), at(start_ts, &closest)).await.expect("served");
    assert_eq!(replicas.log(), ["2 get Grant", "3 get Grant", "1 get"]);
    assert_eq!(closest.trace.take().map(|report| (report.store, report.start_ts)), Some((ONE, start_ts)));
    let client = replicas.client(&Registry::new()).await;
    let floor = replicas.cluster.timestamp();
    let bounded = ReadOptions { floor: Some(floor), ..options(ReplicaPolicy::Closest) };
    let first = client.first_get(&key("k"), Some(&bounded)).await.expect("served");
    assert!(first.start_ts > floor);
    assert_eq!(replicas.log(), ["2 get Grant floor", "3 get Grant floor", "1 get Grant floor"]);
}
