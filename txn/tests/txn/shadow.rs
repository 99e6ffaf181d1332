//! The shadow oracle: what replicas answer is compared with what the leader answers, in the background.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::api::{ReadPath, ReplicaRead, Request, RequestBody, Response, Served};
use kv::client::{CallError, Client, ClientConfig, Endpoint, ProofPolicy, ReadOptions, ReplicaPolicy, ScanRange};
use kv::memory::{Faults, MemoryCluster};
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::{RegionStatus, StoreId};
use tso::TsoClient;
use txn::{Database, Transaction, TxnConfig};

use crate::common::{VirtualTso, cluster, key, run, seeded, value};

/// Followers that know what the leader knows, and answer wrongly if they are told to: every value is another one.
struct Followers {
    cluster: MemoryCluster,
    are_wrong: AtomicBool,
}

impl Followers {
    async fn serve(&self, store: StoreId, request: &Request, read: ReplicaRead) -> Result<Response, CallError> {
        let start_ts = match &*read.read {
            RequestBody::Get { start_ts, .. } | RequestBody::BatchGet { start_ts, .. } => *start_ts,
            RequestBody::Scan(scan) => scan.start_ts,
            other => panic!("not a read: {other:?}"),
        };
        let mut answer = Err(CallError::Lost { store, why: "no store leads".to_owned() });
        for leader in self.cluster.stores() {
            let plain = Request { context: request.context, body: (*read.read).clone() };
            answer = self.cluster.call(leader, plain).await;
            if answer.is_ok() {
                break;
            }
        }
        let mut response = answer?;
        if self.are_wrong.load(Ordering::Relaxed) {
            match &mut response {
                Response::Value(found) => *found = Some(value("wrong")),
                Response::Pairs { pairs, .. } => pairs.iter_mut().for_each(|(_, found)| *found = value("wrong")),
                other => panic!("not the answer to a read: {other:?}"),
            }
        }
        let served = Served { store, path: ReadPath::Grant, start_ts, safe_ts: start_ts, asked: 0, load: 0 };
        Ok(Response::Replica { served, outcome: Box::new(Ok(response)) })
    }
}

impl Endpoint for Followers {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            match request.body.clone() {
                RequestBody::Replica(read) => self.serve(store, &request, read).await,
                _ => self.cluster.call(store, request).await,
            }
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Bench {
    followers: Arc<Followers>,
    db: Database,
    registry: Registry,
}

impl Bench {
    fn new(fraction: f64) -> Bench {
        let followers = Arc::new(Followers { cluster: cluster(Faults::none()), are_wrong: AtomicBool::new(false) });
        let registry = Registry::new();
        let config = ClientConfig { seed: Some(1), ..ClientConfig::default() };
        let client = Client::with_config(followers.clone(), config, &registry).unwrap();
        let config = TxnConfig { shadow_reads: fraction, ..seeded(1) };
        let db = Database::with_config(client, TsoClient::new(VirtualTso::new()), config, &registry).unwrap();
        Bench { followers, db, registry }
    }

    /// The metric, once nothing goes on in the background.
    async fn count(&self, name: &str) -> u64 {
        assert!(self.db.drain(Duration::from_secs(60)).await);
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == name).unwrap();
        family.get_metric()[0].get_counter().get_value() as u64
    }

    async fn compared(&self) -> (u64, u64) {
        (self.count("cortado_txn_shadow_reads_total").await, self.count("cortado_txn_shadow_differences_total").await)
    }

    async fn write(&self, pairs: &[(&str, &str)]) {
        let mut txn = self.db.begin().await.unwrap();
        pairs.iter().for_each(|(at, to)| txn.put(key(at), value(to)).unwrap());
        txn.commit().await.unwrap();
        // A read that meets locks goes to the leader.
        assert!(self.db.drain(Duration::from_secs(60)).await);
    }

    async fn begin(&self, replica: ReplicaPolicy, proof: ProofPolicy) -> Transaction {
        let mut txn = self.db.begin().await.unwrap();
        txn.set_reads(Some(Arc::new(ReadOptions { replica, proof, ..ReadOptions::default() })));
        txn
    }
}

/// Reads by every call: a key, keys, a page of keys, a page of a range in each direction.
async fn read_all(txn: &Transaction) -> Vec<Bytes> {
    let keys = [key("a"), key("bb"), key("x"), key("none")];
    let mut found: Vec<Bytes> = txn.get(&key("a")).await.unwrap().into_iter().collect();
    found.extend(txn.batch_get(&keys).await.unwrap().into_iter().map(|(_, value)| value));
    found.extend(txn.batch_get_page(&keys).await.unwrap().pairs.into_iter().map(|(_, value)| value));
    for reverse in [false, true] {
        let range = ScanRange { start: key("a"), end: key("z"), reverse };
        found.extend(txn.scan(&range, 2).await.unwrap().pairs.into_iter().map(|(_, value)| value));
    }
    found
}

#[test]
fn right_answers_are_compared_and_nothing_is_reported() {
    run(async {
        let bench = Bench::new(1.0);
        bench.write(&[("a", "1"), ("bb", "2"), ("x", "3")]).await;
        let mut txn = bench.begin(ReplicaPolicy::Follower, ProofPolicy::Grants).await;
        // What comes from the transaction's own writes is not.
        let savepoint = txn.savepoint();
        txn.put(key("a"), value("own")).unwrap();
        assert_eq!(txn.get(&key("a")).await.unwrap(), Some(value("own")));
        assert_eq!(bench.compared().await, (0, 0));
        txn.rollback_to(savepoint);
        read_all(&txn).await;
        // The data has changed since, which the snapshot does not show.
        bench.write(&[("a", "4"), ("bb", "5"), ("c", "6")]).await;
        assert_eq!(bench.compared().await, (5, 0));
        assert_eq!(read_all(&txn).await.len(), 1 + 3 + 3 + 2 + 2);
        assert_eq!(bench.compared().await, (10, 0));
    });
}

#[test]
fn a_wrong_answer_is_reported_with_both_proofs() {
    let log = Log::default();
    let lines = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || lines.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    run(async {
        let bench = Bench::new(1.0);
        bench.write(&[("a", "1"), ("bb", "2"), ("x", "3")]).await;
        bench.followers.are_wrong.store(true, Ordering::Relaxed);
        let txn = bench.begin(ReplicaPolicy::Follower, ProofPolicy::Grants).await;
        let found = read_all(&txn).await;
        assert!(found.iter().all(|found| *found == value("wrong")), "{found:?}");
        assert_eq!(bench.compared().await, (5, 5));
        let start_ts = txn.start_ts();
        let told = String::from_utf8(log.0.lock().clone()).unwrap();
        let reports: Vec<&str> = told.lines().filter(|line| line.contains("differs on the leader")).collect();
        assert_eq!(reports.len(), 5, "{told}");
        for report in reports {
            let words = ["ERROR", "Grant of store", "Lease of store", &format!("safe_ts {start_ts}"), "\"wrong\""];
            assert!(words.iter().all(|word| report.contains(word)), "{report}");
        }
    });
}

/// Leaders' reads are the measure, and nobody promised that reads without a proof are right.
#[test]
fn reads_of_leaders_and_without_proof_are_not_compared() {
    run(async {
        for (fraction, replica, proof) in [
            (0.0, ReplicaPolicy::Follower, ProofPolicy::Grants),
            (1.0, ReplicaPolicy::Leader, ProofPolicy::Grants),
            (1.0, ReplicaPolicy::Follower, ProofPolicy::Unproven),
        ] {
            let bench = Bench::new(fraction);
            bench.write(&[("a", "1"), ("bb", "2"), ("x", "3")]).await;
            read_all(&bench.begin(replica, proof).await).await;
            assert_eq!(bench.compared().await, (0, 0), "{replica:?} {proof:?}");
        }
    });
}

/// Samples that wait for their comparison have bounded room. What exceeds it is not compared, and no read waits for it.
#[test]
fn what_exceeds_the_room_is_not_sampled() {
    run(async {
        let bench = Bench::new(1.0);
        bench.write(&[("a", "1")]).await;
        let txn = bench.begin(ReplicaPolicy::Follower, ProofPolicy::Grants).await;
        for _ in 0..2_000 {
            txn.get(&key("a")).await.unwrap();
        }
        let (compared, differences) = bench.compared().await;
        assert!((100..2_000).contains(&compared), "{compared}");
        assert_eq!(differences, 0);
    });
}
