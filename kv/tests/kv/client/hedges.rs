//! Hedged reads: when a second request is sent, to whom, and what becomes of the loser. The time is virtual.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kv::api::{CheckTxnStatusRequest, Mutation, MutationOp, ReadPath};
use kv::client::{Client, HedgePolicy, ProofPolicy, ReadOptions, ReplicaPolicy, ScanRange, Snapshot};
use prometheus::Registry;
use raftstore::RegionError;
use tso::Timestamp;

use super::fake::{Fault, ONE, Replicas, THREE, TWO, key, labelled, now};

const HEDGES: &str = "cortado_kv_client_hedges_total";
const SUPPRESSED: &str = "cortado_kv_client_hedges_suppressed_total";
const DELAY: Duration = Duration::from_millis(2);
const SLOW: Duration = Duration::from_millis(500);

struct Hedged {
    replicas: Arc<Replicas>,
    registry: Registry,
    client: Client,
    options: Arc<ReadOptions>,
}

impl Hedged {
    /// A node whose own store is 2; reads with `policy` are hedged after [`DELAY`].
    async fn new(replica: ReplicaPolicy) -> Hedged {
        Hedged::with(ReadOptions { replica, hedge: HedgePolicy::After(DELAY), ..ReadOptions::default() }).await
    }

    async fn with(options: ReadOptions) -> Hedged {
        let (replicas, registry) = (Replicas::new(Some(TWO), None).await, Registry::new());
        let client = replicas.client(&registry).await;
        Hedged { replicas, registry, client, options: Arc::new(options) }
    }

    fn at(&self, start_ts: Timestamp) -> Snapshot {
        Snapshot { options: Some(Arc::clone(&self.options)), ..Snapshot::from(start_ts) }
    }

    /// A get at `start_ts`, and the time that it takes.
    async fn get(&self, start_ts: Timestamp) -> Duration {
        let began = now();
        let found = self.client.get(&key("k"), self.at(start_ts)).await;
        assert_eq!(found, Ok(Some(Bytes::from_static(b"v"))));
        now() - began
    }

    /// Hedges that were sent, that won, that were wasted.
    fn hedges(&self) -> [u64; 3] {
        ["sent", "won", "wasted"].map(|outcome| labelled(&self.registry, HEDGES, outcome))
    }

    fn suppressed(&self, reason: &str) -> u64 {
        labelled(&self.registry, SUPPRESSED, reason)
    }
}

/// A follower hangs: the leader answers in its place, and the request to the follower is dropped.
#[tokio::test(start_paused = true)]
async fn a_slow_follower_is_overtaken_by_the_leader() {
    let hedged = Hedged::new(ReplicaPolicy::Closest).await;
    hedged.replicas.set_fault(TWO, Fault::Slow(SLOW));
    let took = hedged.get(hedged.replicas.cluster.timestamp()).await;
    assert_eq!(took, DELAY);
    assert_eq!(hedged.replicas.log(), ["2 get Grant", "1 get"]);
    assert_eq!((hedged.hedges(), hedged.replicas.dropped()), ([1, 1, 0], 1));
    let report = hedged.options.trace.take().expect("reported");
    assert_eq!((report.path, report.store, report.requests, report.round_trips), (ReadPath::Lease, ONE, 2, 1));
    // For a moment the store is left out. It is tried again, and avoided longer each time.
    assert_eq!(hedged.get(hedged.replicas.cluster.timestamp()).await, Duration::ZERO);
    assert_eq!(hedged.replicas.log(), ["3 get Grant"]);
    let mut overtaken = 0;
    for _ in 0..150 {
        hedged.get(hedged.replicas.cluster.timestamp()).await;
        overtaken += hedged.replicas.log().iter().filter(|sent| sent.starts_with('2')).count();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!((3..=5).contains(&overtaken), "{overtaken} of 150 reads met the store that hangs");
}

/// The other follower has a grant, and is nearer than the leader.
#[tokio::test(start_paused = true)]
async fn a_hedge_goes_to_a_replica_that_is_covered() {
    let hedged = Hedged::new(ReplicaPolicy::Closest).await;
    let start_ts = hedged.replicas.cluster.timestamp();
    hedged.replicas.set_fault(TWO, Fault::Unreachable);
    hedged.get(start_ts).await;
    assert_eq!(hedged.replicas.log(), ["2 get Grant", "3 get Grant"], "the client learns that 3 has a grant");
    tokio::time::sleep(Duration::from_secs(2)).await;
    hedged.replicas.set_fault(TWO, Fault::Slow(SLOW));
    assert_eq!(hedged.get(start_ts).await, DELAY);
    assert_eq!(hedged.replicas.log(), ["2 get Grant", "3 get Covered"]);
    assert_eq!(hedged.hedges(), [1, 1, 0]);
}

/// Reads of the leader are hedged where a follower is covered. One that is not refuses, silently, and is left alone.
#[tokio::test(start_paused = true)]
async fn a_slow_leader_is_overtaken_by_a_covered_follower() {
    let hedged = Hedged::new(ReplicaPolicy::Leader).await;
    let (covered, uncovered) = (hedged.replicas.cluster.timestamp(), hedged.replicas.cluster.timestamp());
    hedged.replicas.set_safe_ts(TWO, covered);
    let slow = || hedged.replicas.set_fault(ONE, Fault::Slow(SLOW));
    slow();
    // The value itself comes from the cluster, not from the store that hangs.
    assert_eq!(hedged.get(covered).await, DELAY);
    assert_eq!(hedged.replicas.log(), ["1 get", "2 get Covered"]);
    let report = hedged.options.trace.take().expect("reported");
    assert_eq!((report.path, report.store, report.round_trips), (ReadPath::Grant, TWO, 0));
    assert_eq!(hedged.get(uncovered).await, SLOW);
    assert_eq!(hedged.replicas.log(), ["1 get", "2 get Covered"]);
    assert_eq!(hedged.get(uncovered).await, SLOW);
    assert_eq!((hedged.hedges(), hedged.replicas.log().len()), ([3, 1, 2], 2));
}

/// The primary answers after the hedge was sent, and first.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_loses_is_dropped() {
    let hedged = Hedged::new(ReplicaPolicy::Closest).await;
    hedged.replicas.set_fault(TWO, Fault::Slow(DELAY * 2));
    hedged.replicas.set_fault(ONE, Fault::Slow(SLOW));
    assert_eq!(hedged.get(hedged.replicas.cluster.timestamp()).await, DELAY * 2);
    assert_eq!(hedged.replicas.log(), ["2 get Grant", "1 get"]);
    assert_eq!((hedged.hedges(), hedged.replicas.dropped()), ([1, 0, 1], 1));
}

/// One request hangs and so does its hedge: there is no third.
#[tokio::test(start_paused = true)]
async fn there_is_at_most_one_hedge() {
    let hedged = Hedged::new(ReplicaPolicy::Closest).await;
    [ONE, TWO, THREE].into_iter().for_each(|store| hedged.replicas.set_fault(store, Fault::Slow(SLOW)));
    let start_ts = hedged.replicas.cluster.timestamp();
    assert_eq!(hedged.get(start_ts).await, SLOW);
    assert_eq!(hedged.replicas.log(), ["2 get Grant", "1 get"]);
    let keys = [key("a"), key("k")];
    hedged.client.batch_get(&keys, hedged.at(start_ts)).await.expect("served");
    let range = ScanRange { start: key(""), end: key(""), reverse: false };
    hedged.client.scan(&range, hedged.at(start_ts), 10).await.expect("served");
    let sent = hedged.replicas.log();
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert!(sent[1].ends_with("batch get") && sent[3].ends_with("scan"), "{sent:?}");
}

/// A primary that fails after its hedge was sent: the hedge is the answer.
#[tokio::test(start_paused = true)]
async fn a_hedge_answers_for_a_primary_that_fails() {
    let patience = Duration::from_millis(20);
    let hedge = HedgePolicy::After(DELAY);
    let options = ReadOptions { replica: ReplicaPolicy::Closest, hedge, patience, ..ReadOptions::default() };
    let hedged = Hedged::with(options).await;
    hedged.replicas.set_fault(TWO, Fault::Slow(SLOW));
    hedged.replicas.set_fault(ONE, Fault::Slow(patience * 3 / 4));
    assert_eq!(hedged.get(hedged.replicas.cluster.timestamp()).await, DELAY + patience * 3 / 4);
    assert_eq!((hedged.replicas.log().len(), hedged.hedges()), (2, [1, 1, 0]));
}

/// A first read leaves its fresh snapshot to whoever serves it. Only the leader can without asking.
#[tokio::test(start_paused = true)]
async fn a_first_read_is_hedged_at_the_leader() {
    let options = ReadOptions { read_only: true, hedge: HedgePolicy::After(DELAY), ..ReadOptions::default() };
    let hedged = Hedged::with(ReadOptions { replica: ReplicaPolicy::Closest, ..options }).await;
    hedged.replicas.set_fault(TWO, Fault::Slow(SLOW));
    let (began, before) = (now(), hedged.replicas.cluster.timestamp());
    let first = hedged.client.first_get(&key("k"), Some(&hedged.options)).await.expect("served");
    assert!(first.start_ts > before);
    assert_eq!((first.outcome, now() - began), (Ok(Some(Bytes::from_static(b"v"))), DELAY));
    assert_eq!(hedged.replicas.log(), ["2 get Grant", "1 get"]);
}

/// The leader cannot be asked, and the other follower says that it is busy.
#[tokio::test(start_paused = true)]
async fn a_busier_replica_gets_no_hedge() {
    let hedged = Hedged::new(ReplicaPolicy::Follower).await;
    let start_ts = hedged.replicas.cluster.timestamp();
    let leader = Snapshot { locks_met: true, ..hedged.at(start_ts) };
    hedged.replicas.set_fault(ONE, Fault::Refuse(RegionError::ServerBusy { store: ONE, what: "reads".to_owned() }));
    hedged.replicas.set_fault(TWO, Fault::Refuse(RegionError::ServerBusy { store: TWO, what: "reads".to_owned() }));
    hedged.replicas.set_load(THREE, 50);
    hedged.get(start_ts).await;
    assert_eq!(hedged.replicas.log(), ["2 get Grant", "3 get Grant"], "it names its load");
    // The store of the leader is known to fail for a moment, that of the primary is not any more.
    tokio::time::sleep(Duration::from_millis(30)).await;
    let k = key("k");
    let busy = hedged.client.get(&k, leader);
    assert!(tokio::time::timeout(Duration::from_millis(1), busy).await.is_err(), "it waits to ask the leader again");
    hedged.replicas.log();
    hedged.replicas.set_fault(TWO, Fault::Slow(SLOW));
    assert_eq!(hedged.get(start_ts).await, SLOW);
    assert_eq!(hedged.replicas.log(), ["2 get Grant"]);
    assert_eq!((hedged.hedges(), hedged.suppressed("busier")), ([0; 3], 1));
}

/// Every read is slow: the budget holds the hedges at a twentieth, and the others just take their time.
#[tokio::test(start_paused = true)]
async fn the_budget_bounds_the_extra_requests() {
    let hedged = Hedged::new(ReplicaPolicy::Leader).await;
    [ONE, TWO, THREE].into_iter().for_each(|store| hedged.replicas.set_fault(store, Fault::Slow(DELAY * 3)));
    let start_ts = hedged.replicas.cluster.timestamp();
    [TWO, THREE].into_iter().for_each(|store| hedged.replicas.set_safe_ts(store, start_ts));
    const READS: u64 = 400;
    for _ in 0..READS {
        hedged.get(start_ts).await;
    }
    let [sent, won, wasted] = hedged.hedges();
    assert_eq!((sent, won + wasted, sent + hedged.suppressed("budget")), (10 + READS / 20, sent, READS));
    assert_eq!(hedged.replicas.log().len() as u64, READS + sent);
}

/// The delay is that of the class itself, once enough of its reads were measured.
#[tokio::test(start_paused = true)]
async fn the_delay_is_learnt() {
    let options = ReadOptions { replica: ReplicaPolicy::Closest, hedge: HedgePolicy::Auto, ..ReadOptions::default() };
    let hedged = Hedged::with(options).await;
    let usual = Duration::from_millis(8);
    hedged.replicas.set_fault(TWO, Fault::Slow(usual));
    for _ in 0..100 {
        assert_eq!(hedged.get(hedged.replicas.cluster.timestamp()).await, usual);
    }
    assert_eq!((hedged.hedges(), hedged.suppressed("unmeasured")), ([0; 3], 100));
    hedged.replicas.set_fault(TWO, Fault::Slow(SLOW));
    let took = hedged.get(hedged.replicas.cluster.timestamp()).await;
    assert!((usual..usual * 5 / 4).contains(&took), "{took:?}");
    assert_eq!(hedged.hedges(), [1, 1, 0]);
}

/// Low isolation needs no proof, so any replica can answer.
#[tokio::test(start_paused = true)]
async fn an_unproven_read_is_hedged_anywhere() {
    let hedge = HedgePolicy::After(DELAY);
    let proof = ProofPolicy::Unproven;
    let options = ReadOptions { replica: ReplicaPolicy::Closest, hedge, proof, ..ReadOptions::default() };
    let hedged = Hedged::with(options).await;
    let start_ts = hedged.replicas.cluster.timestamp();
    hedged.replicas.set_fault(TWO, Fault::Slow(SLOW));
    hedged.replicas.set_fault(ONE, Fault::Refuse(RegionError::ServerBusy { store: ONE, what: "reads".to_owned() }));
    let leader = Snapshot { locks_met: true, ..hedged.at(start_ts) };
    let k = key("k");
    let unreachable = hedged.client.get(&k, leader);
    assert!(tokio::time::timeout(Duration::from_millis(1), unreachable).await.is_err());
    hedged.replicas.log();
    assert_eq!(hedged.get(start_ts).await, DELAY);
    assert_eq!(hedged.replicas.log(), ["2 get Unproven", "3 get Unproven"]);
}

/// Writes, and reads of the state of transactions, are sent once, however slow: they take no options.
#[tokio::test(start_paused = true)]
async fn nothing_but_reads_is_hedged() {
    let hedged = Hedged::new(ReplicaPolicy::Any).await;
    let Hedged { replicas, client, .. } = &hedged;
    [ONE, TWO, THREE].into_iter().for_each(|store| replicas.set_fault(store, Fault::Slow(SLOW)));
    let (start_ts, primary) = (replicas.cluster.timestamp(), key("w"));
    let lock = vec![Mutation::new(primary.clone(), MutationOp::Lock)];
    client.prewrite(lock, &primary, start_ts, || 3_000).await.expect("locked");
    client.heartbeat(&primary, start_ts, || 4_000, Duration::from_secs(9)).await.expect("extended");
    let status = CheckTxnStatusRequest {
        primary: primary.clone(),
        lock_ts: start_ts,
        current_ts: start_ts.next(),
        rollback_if_missing: false,
        reader_ts: Timestamp::ZERO,
        fell_back: false,
    };
    client.check_txn_status(status).await.expect("alive");
    client.commit_primary(&primary, &[], start_ts, replicas.cluster.timestamp()).await.expect("committed");
    client.resolve_locks(std::slice::from_ref(&primary), start_ts, None).await.expect("resolved");
    client.rollback(&[key("x")], start_ts).await.expect("rolled back");
    assert_eq!(replicas.log(), ["1 write"; 6]);
    assert_eq!(hedged.hedges(), [0; 3]);
}
