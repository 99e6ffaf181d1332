//! Transactions that take start_ts with their first read, with their commit, or ahead of it: what they see, and how
//! many requests it takes. The cluster's stores and the gateways share an oracle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::common::endpoints::{FaultyEndpoint, RequestFault};
use super::common::{cluster, database, key, locks, run, seeded, two_phase, value};
use futures::FutureExt;
use futures::future::BoxFuture;
use kv::api::RequestBody;
use kv::client::{ReadOptions, ReplicaPolicy, ScanRange};
use kv::memory::{CountingTso, Fault, Faults, MemoryCluster};
use raftstore::{RegionError, RegionId};
use tso::{Timestamp, TsRange, TsoError, TsoSource};
use txn::{Database, Transaction, TxnConfig, TxnError};

/// The cluster's oracle, on another node. Counts the requests of gateways.
struct Counted {
    tso: Arc<CountingTso>,
    requests: AtomicU64,
}

impl TsoSource for Counted {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.tso.allocate(count)
    }
}

struct World {
    cluster: MemoryCluster,
    oracle: Arc<Counted>,
    db: Database,
}

impl World {
    /// The keys `a` and `c` are 1, the regions are located and synced.
    async fn new() -> World {
        let cluster = cluster(Faults::none());
        let oracle = Arc::new(Counted { tso: cluster.tso(), requests: AtomicU64::new(0) });
        let db = database(Arc::new(cluster.clone()), oracle.clone(), seeded(1));
        let world = World { cluster, oracle, db };
        for _ in 0..2 {
            world.set("a", "1").await;
            world.set("c", "1").await;
        }
        world
    }

    async fn set(&self, at: &str, text: &str) {
        let mut txn = self.db.begin().await.expect("a timestamp");
        txn.put(key(at), value(text)).expect("fits");
        txn.commit().await.expect("nothing is in the way");
        assert!(self.db.drain(Duration::from_secs(60)).await);
    }

    /// What `work` returns, with its requests to stores and to the oracle.
    async fn counting<T>(&self, work: impl Future<Output = T>) -> (T, u64, u64) {
        let (calls, asked) = (self.cluster.calls(), self.oracle.requests.load(Ordering::Relaxed));
        let done = work.await;
        (done, self.cluster.calls() - calls, self.oracle.requests.load(Ordering::Relaxed) - asked)
    }
}

fn all() -> ScanRange {
    ScanRange { start: key("a"), end: key("b"), reverse: false }
}

/// Before, the timestamp was one more request.
#[test]
fn a_first_read_is_one_request_and_fixes_the_snapshot() {
    run(async {
        let world = World::new().await;
        for is_scan in [false, true] {
            world.set("a", "1").await;
            let txn = world.db.begin_deferred();
            assert_eq!(txn.start_ts(), Timestamp::ZERO);
            let before = world.oracle.tso.last();
            let read = async |txn: &Transaction| match is_scan {
                true => txn.scan(&all(), 10).await.map(|page| page.pairs.into_iter().next().map(|(_, value)| value)),
                false => txn.get(&key("a")).await,
            };
            let (found, calls, asked) = world.counting(read(&txn)).await;
            assert_eq!((found, calls, asked), (Ok(Some(value("1"))), 1, 0), "scan: {is_scan}");
            let start_ts = txn.start_ts();
            assert!(start_ts > before);
            world.set("a", "2").await;
            world.set("c", "2").await;
            for (at, seen) in [("a", "1"), ("c", if is_scan { "2" } else { "1" })] {
                // The second round has begun after the first one wrote `c`.
                assert_eq!(txn.get(&key(at)).await, Ok(Some(value(seen))), "{at}, scan: {is_scan}");
            }
            assert_eq!(txn.start_ts(), start_ts);
        }
    });
}

/// A transaction whose first read is of many keys asks the oracle, and so does one whose read goes wrong.
#[test]
fn other_first_reads_take_a_timestamp_from_the_oracle() {
    run(async {
        let world = World::new().await;
        let txn = world.db.begin_deferred();
        let (found, _, asked) = world.counting(txn.batch_get(&[key("a"), key("c")])).await;
        assert_eq!((found.expect("served").len(), asked), (2, 1));
        let elsewhere = RegionError::NotLeader { region: RegionId::new(1), leader: None };
        for fault in [Fault::LoseReply, Fault::Unreachable, Fault::Refuse(elsewhere)] {
            world.cluster.inject([fault.clone()]);
            let txn = world.db.begin_deferred();
            let (found, _, asked) = world.counting(txn.get(&key("a"))).await;
            assert_eq!((found, asked), (Ok(Some(value("1"))), 1), "{fault:?}");
            assert!(txn.start_ts() > Timestamp::ZERO);
        }
    });
}

/// The store says at which timestamp it has met the lock: the reader pushes its holder there, and reads on.
#[test]
fn a_first_read_that_meets_a_lock_keeps_its_timestamp() {
    run(async {
        let world = World::new().await;
        let slow = |body: &RequestBody, _| match body {
            RequestBody::Prewrite(request) if request.mutations.iter().any(|m| m.key == key("c")) => {
                RequestFault::Late(Duration::from_secs(2))
            }
            _ => RequestFault::Pass,
        };
        let mut config = two_phase(2);
        config.commit.batch_keys = 1;
        let writer = database(FaultyEndpoint::new(&world.cluster, slow), world.oracle.clone(), config);
        let mut txn = writer.begin().await.expect("a timestamp");
        ["a", "c"].into_iter().for_each(|at| txn.put(key(at), value("2")).expect("fits"));
        let commit = tokio::spawn(txn.commit());
        while locks(&world.cluster).is_empty() {
            tokio::task::yield_now().await;
        }
        let reader = world.db.begin_deferred();
        let (found, calls, asked) = world.counting(reader.get(&key("a"))).await;
        assert_eq!(found, Ok(Some(value("1"))));
        assert_eq!((calls, asked), (3, 1), "the read, the push at the primary with a fresh timestamp, the read");
        let commit_ts = commit.await.expect("no panic").expect("committed").expect("a commit_ts");
        assert!(commit_ts > reader.start_ts());
    });
}

/// The timestamp that a transaction without reads takes when it commits is also its least commit_ts.
#[test]
fn a_commit_without_reads_takes_one_timestamp_and_one_request() {
    run(async {
        let world = World::new().await;
        let mut txn = world.db.begin_deferred();
        txn.put(key("a"), value("3")).expect("fits");
        let (committed, calls, asked) = world.counting(txn.commit()).await;
        assert!(matches!(committed, Ok(Some(_))), "{committed:?}");
        assert_eq!((calls, asked), (1, 1));
    });
}

/// Commits a put of one statement, which has read nothing.
async fn put_at_once(world: &World, at: &[&str]) -> Result<Option<Timestamp>, TxnError> {
    let mut txn = world.db.begin_deferred();
    at.iter().try_for_each(|at| txn.put(key(at), value("3")))?;
    txn.set_single_statement();
    txn.commit().await
}

/// The name of the transaction was there before the statement, and its commit_ts is after every commit that was
/// acknowledged before it. Before, the name was one more request.
#[test]
fn a_statement_without_reads_is_one_request() {
    run(async {
        let world = World::new().await;
        // The first one finds no name, and has some fetched.
        put_at_once(&world, &["a1"]).await.expect("nothing is in the way");
        tokio::time::sleep(Duration::from_millis(1)).await;
        for at in [&["c"] as &[&str], &["a", "a2"]] {
            let before = world.oracle.tso.next();
            let (committed, calls, asked) = world.counting(put_at_once(&world, at)).await;
            assert!(matches!(committed, Ok(Some(commit_ts)) if commit_ts > before), "{committed:?}");
            assert_eq!((calls, asked), (1, 0), "{at:?}");
        }
    });
}

/// A name from before the newest commit of a key is a conflict. It is the last one: the next attempt has a new name.
#[test]
fn a_statement_with_an_old_name_conflicts_once() {
    run(async {
        let world = World::new().await;
        put_at_once(&world, &["a1"]).await.expect("nothing is in the way");
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.set("a", "2").await;
        let refused = put_at_once(&world, &["a"]).await;
        assert!(matches!(refused, Err(TxnError::Conflict(_))), "{refused:?}");
        let (committed, calls, asked) = world.counting(put_at_once(&world, &["a"])).await;
        assert!(matches!(committed, Ok(Some(_))), "{committed:?}");
        assert_eq!((calls, asked), (1, 2), "a name, and names for later");
        // A caller that does not run it again is spared the conflict.
        world.set("a", "2").await;
        let mut txn = world.db.begin_deferred();
        txn.put(key("a"), value("4")).expect("fits");
        assert!(matches!(txn.commit().await, Ok(Some(_))));
    });
}

/// The conflicts of a transaction are those since its start_ts, wherever that came from.
#[test]
fn a_write_after_a_first_read_conflicts_with_what_was_committed_since() {
    run(async {
        let world = World::new().await;
        let mut txn = world.db.begin_deferred();
        txn.get(&key("a")).await.expect("served");
        world.set("a", "2").await;
        txn.put(key("a"), value("3")).expect("fits");
        txn.set_single_statement();
        let committed = txn.commit().await;
        assert!(matches!(committed, Err(TxnError::Conflict(_))), "{committed:?}");
        let mut txn = world.db.begin_deferred();
        txn.get(&key("a")).await.expect("served");
        txn.put(key("a"), value("4")).expect("fits");
        txn.set_single_statement();
        let (committed, calls, asked) = world.counting(txn.commit()).await;
        assert!(matches!(committed, Ok(Some(_))), "{committed:?}");
        assert_eq!((calls, asked), (1, 0));
    });
}

/// With the oracle on the gateway's own node the transaction has its timestamp at once.
#[test]
fn at_the_oracle_a_transaction_takes_its_timestamp_at_once() {
    struct Local(Arc<CountingTso>);
    impl TsoSource for Local {
        fn try_allocate(&self, count: u32) -> Option<TsRange> {
            self.0.allocate(count).now_or_never()?.ok()
        }
        fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
            self.0.allocate(count)
        }
    }
    run(async {
        let cluster = cluster(Faults::none());
        let oracle = Arc::new(Local(cluster.tso()));
        let db = database(Arc::new(cluster.clone()), oracle, TxnConfig::default());
        assert_eq!(db.begin_deferred().start_ts(), cluster.tso().last());
    });
}

fn shared(floor: Option<Timestamp>) -> Option<Arc<ReadOptions>> {
    Some(Arc::new(ReadOptions { floor, read_only: true, replica: ReplicaPolicy::Closest, ..ReadOptions::default() }))
}

/// Before, many keys took a timestamp from the oracle, which no replica needs to have a proof for.
#[test]
fn a_replica_takes_a_shared_snapshot_also_for_many_keys() {
    run(async {
        let world = World::new().await;
        for floor in [None, Some(Timestamp::ZERO)] {
            for is_page in [false, true] {
                let mut txn = world.db.begin_shared();
                txn.set_reads(shared(floor));
                let keys = [key("a"), key("c")];
                let read = async {
                    match is_page {
                        true => txn.batch_get_page(&keys).await.map(|page| page.pairs.len()),
                        false => txn.batch_get(&keys).await.map(|pairs| pairs.len()),
                    }
                };
                let (found, _, asked) = world.counting(read).await;
                assert_eq!((found, asked), (Ok(2), 0), "{floor:?}");
                let start_ts = txn.start_ts();
                world.set("a", "2").await;
                assert!(start_ts > Timestamp::ZERO && txn.batch_get(&keys).await.is_ok_and(|pairs| pairs.len() == 2));
                assert_eq!((txn.start_ts(), txn.commit().await), (start_ts, Ok(None)), "it has nothing to commit");
            }
        }
    });
}

/// Before, a node that was cut off waited for the oracle's deadline, whatever the patience of its reads was.
#[test]
#[expect(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
fn a_snapshot_at_a_replica_is_waited_for_as_long_as_its_reads_say() {
    struct Silent;
    impl TsoSource for Silent {
        fn allocate(&self, _: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
            Box::pin(std::future::pending())
        }
    }
    run(async {
        for (replica, waits) in [(ReplicaPolicy::Closest, 300), (ReplicaPolicy::Leader, 10_000)] {
            let patience = Duration::from_millis(300);
            for floor in [None, Some(Timestamp::ZERO.next())] {
                // It knows no region. One is located for a snapshot that a replica has proved.
                let db = database(Arc::new(cluster(Faults::none())), Arc::new(Silent), seeded(1));
                let mut txn = db.begin_shared();
                let options = ReadOptions { floor, replica, patience, read_only: true, ..ReadOptions::default() };
                txn.set_reads(Some(Arc::new(options)));
                let since = tokio::time::Instant::now();
                let failed = [txn.get(&key("a")).await.map(drop), txn.scan(&all(), 1).await.map(drop)];
                if floor.is_some() && replica == ReplicaPolicy::Closest {
                    assert_eq!(failed, [Ok(()), Ok(())]);
                    continue;
                }
                assert!(matches!(failed, [Err(TxnError::Unavailable(_)), Err(TxnError::Unavailable(_))]), "{failed:?}");
                assert_eq!(since.elapsed().as_millis() / 10 * 10, 2 * waits, "{replica:?} {floor:?}");
            }
        }
    });
}

#[test]
fn a_transaction_in_the_past_sees_what_was_there_and_none_is_in_the_future() {
    run(async {
        let world = World::new().await;
        let past = world.db.begin().await.expect("a timestamp").start_ts();
        world.set("a", "2").await;
        let (txn, _, asked) = world.counting(world.db.begin_at(past)).await;
        assert_eq!((txn.expect("it is past").get(&key("a")).await, asked), (Ok(Some(value("1"))), 0));
        let now = world.oracle.tso.last();
        assert!(world.db.begin_at(now).await.is_ok());
        let future = Timestamp::new(now.physical_ms() + 1_000_000, 0);
        assert_eq!(world.db.begin_at(future).await.map(drop), Err(TxnError::InFuture(future)));
        assert!(world.db.now().await.is_ok_and(|now| now >= past));
    });
}

/// Rule 7: a writer's name is its own timestamp.
#[test]
#[should_panic(expected = "a transaction with a shared snapshot writes")]
fn a_transaction_with_a_shared_snapshot_does_not_write() {
    run(async {
        let world = World::new().await;
        let mut txn = world.db.begin_deferred();
        txn.set_reads(shared(None));
        assert_eq!(txn.get(&key("a")).await, Ok(Some(value("1"))));
        txn.set_reads(None);
        let _ = txn.put(key("a"), value("2"));
    });
}

#[test]
#[should_panic(expected = "a writer does not share its snapshot")]
fn a_writer_does_not_come_to_share_its_snapshot() {
    run(async {
        let mut txn = World::new().await.db.begin_deferred();
        txn.put(key("a"), value("2")).expect("fits");
        txn.set_reads(shared(Some(Timestamp::ZERO)));
    });
}
