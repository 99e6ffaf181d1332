//! Nodes die while a client writes.
//!
//! The client writes one row after the other through one gateway, reconnecting as a driver with retries does. What was acknowledged
//! must be there at the end; what was not may be there or not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;

use crate::harness::{Cluster, PATIENCE, connect};

/// Writing must go on this soon after a kill.
const RECOVERY: Duration = Duration::from_secs(5);

/// A client that inserts 1, 2, 3, ... until it is told to stop.
struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    task: JoinHandle<BTreeSet<i64>>,
}

impl Writer {
    fn start(port: u16) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(write(port, stop.clone(), acknowledged.clone()));
        Writer { stop, acknowledged, task }
    }

    /// Waits until `more` further rows are acknowledged; how long that took.
    async fn progress(&self, more: u64) -> Duration {
        let start = Instant::now();
        let target = self.acknowledged.load(Ordering::SeqCst) + more;
        while self.acknowledged.load(Ordering::SeqCst) < target {
            assert!(start.elapsed() < PATIENCE, "writing does not go on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        start.elapsed()
    }

    async fn finish(self) -> BTreeSet<i64> {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

async fn write(port: u16, stop: Arc<AtomicBool>, acknowledged: Arc<AtomicU64>) -> BTreeSet<i64> {
    let mut done = BTreeSet::new();
    let mut next = 0;
    while !stop.load(Ordering::SeqCst) {
        let Some(client) = connect(port).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) {
            next += 1;
            match client.execute("INSERT INTO log VALUES ($1, $2)", &[&next, &format!("row {next}")]).await {
                Ok(1) => {
                    done.insert(next);
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                Ok(n) => panic!("one row was inserted, not {n}"),
                // The fate of this row is open; the next one is another row, so no retry is needed.
                Err(error) if client.is_closed() || is_transient(&error) => break,
                Err(error) => panic!("row {next}: {error:?}"),
            }
        }
    }
    done
}

/// Errors that a client meets while a cluster recovers.
fn is_transient(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return true };
    [
        SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::T_R_SERIALIZATION_FAILURE,
    ]
    .contains(code)
}

async fn rows(cluster: &Cluster, node: usize) -> BTreeSet<i64> {
    let client = cluster.connect(node).await;
    client.query("SELECT id FROM log", &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn check(cluster: &Cluster, acknowledged: &BTreeSet<i64>) {
    for node in 0..cluster.nodes.len() {
        let found = rows(cluster, node).await;
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        assert!(lost.is_empty(), "{} acknowledged rows are lost on node {}: {lost:?}", lost.len(), node + 1);
    }
}

async fn cluster_with_table() -> Cluster {
    let cluster = Cluster::start(3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE log (id bigint PRIMARY KEY, v text NOT NULL)").await.unwrap();
    cluster
}

/// Waits until the replicas of the killed and restarted node have applied what the others have.
async fn wait_until_caught_up(cluster: &Cluster, node: usize) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = cluster.status((node + 1) % cluster.nodes.len());
        let regions = status["regions"].as_array().cloned().unwrap_or_default();
        let applied = |region: &serde_json::Value, node: usize| {
            let replicas = region["replicas"].as_array().unwrap().clone();
            replicas.iter().find(|r| r["node"] == (node + 1) as u64).and_then(|r| r["applied"].as_u64())
        };
        let level = |region: &serde_json::Value| {
            let newest = (0..cluster.nodes.len()).filter_map(|n| applied(region, n)).max();
            newest.is_some() && applied(region, node) == newest
        };
        let alive = status["nodes"].as_array().is_some_and(|nodes| nodes.iter().all(|n| n["state"] == "alive"));
        if alive && !regions.is_empty() && regions.iter().all(level) {
            return;
        }
        assert!(Instant::now() < deadline, "node {} does not catch up: {status:#}", node + 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Kills each node in turn, the leader of both regions first; writes through a node that stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_one_node_may_die() {
    let mut cluster = cluster_with_table().await;
    for round in 0..3 {
        // Round 0 kills the leader of the data region, round 1 the system region's, round 2 whoever is left.
        let leader = |cluster: &Cluster, region| {
            let mut found = None;
            crate::harness::wait_for("a leader", || {
                found = (0..3).find_map(|ask| cluster.leader_of(region, ask));
                found.is_some()
            });
            found.unwrap()
        };
        let victim = match round {
            0 => leader(&cluster, 2),
            1 => leader(&cluster, 1),
            _ => (0..3).find(|n| *n != leader(&cluster, 1) && *n != leader(&cluster, 2)).unwrap_or(2),
        };
        let gateway = (victim + 1) % 3;
        if round > 0 {
            cluster.connect(gateway).await.batch_execute("TRUNCATE log").await.unwrap();
        }
        let writer = Writer::start(cluster.nodes[gateway].pg);
        writer.progress(100).await;
        cluster.kill(victim);
        let outage = writer.progress(1).await;
        println!("round {round}: killed node {}, writing went on after {outage:?}", victim + 1);
        assert!(outage < RECOVERY, "writing stood still for {outage:?}");
        writer.progress(50).await;
        cluster.spawn(victim);
        cluster.wait_until_serving(victim).await;
        writer.progress(50).await;
        let acknowledged = writer.finish().await;
        wait_until_caught_up(&cluster, victim).await;
        check(&cluster, &acknowledged).await;
    }
}

/// Kills all nodes at once in the middle of writing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_may_die_at_once() {
    let mut cluster = cluster_with_table().await;
    let writer = Writer::start(cluster.nodes[0].pg);
    writer.progress(300).await;
    for node in 0..3 {
        cluster.kill(node);
    }
    for node in 0..3 {
        cluster.spawn(node);
    }
    for node in 0..3 {
        cluster.wait_until_serving(node).await;
    }
    writer.progress(50).await;
    let acknowledged = writer.finish().await;
    check(&cluster, &acknowledged).await;
}

/// A polite stop: exit code 0, leadership moves away, the others go on at once, and the node comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_stops_politely() {
    let mut cluster = cluster_with_table().await;
    let mut leader = None;
    crate::harness::wait_for("a leader", || {
        leader = cluster.leader_of(2, 0);
        leader.is_some()
    });
    let leader = leader.unwrap();
    let writer = Writer::start(cluster.nodes[(leader + 1) % 3].pg);
    writer.progress(50).await;
    assert_eq!(cluster.terminate(leader), Some(0), "SIGTERM ends in exit code 0");
    writer.progress(50).await;
    cluster.spawn(leader);
    cluster.wait_until_serving(leader).await;
    let acknowledged = writer.finish().await;
    check(&cluster, &acknowledged).await;
}
