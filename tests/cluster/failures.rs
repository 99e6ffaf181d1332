//! Nodes are killed while clients write.
//!
//! A client writes one row after the other and reconnects, like a driver with retries. At the end every acknowledged
//! row must exist with its value. Other rows may exist or not. A writer that does not go on within a generous bound
//! fails the test; how long writing stops is measured by `cargo bench --bench failover`. The metrics of the nodes tell
//! whether a leader handed over or another was elected after it.

use std::time::{Duration, Instant};

use crate::clients::{Writer, Written, check, create_log};
use crate::exclusive::ClusterLock;
use crate::harness::{Begun, Cluster};
use crate::process::{WAIT_TIMEOUT, wait_for};

/// How often a leader is stopped. Each stop hands over both leaderships.
const STOPS: usize = 3;
/// The longest that writing may stop for a client of a leader that stops in order. Generous: it takes some 30 ms.
const STOP_GAP_MAX: Duration = Duration::from_secs(5);
/// The distance between the first row ids of two writers.
const APART: i64 = 1 << 32;

async fn cluster_with_table(lock: &ClusterLock) -> Cluster {
    let cluster = Cluster::start(lock, 3).await;
    create_log(&cluster).await;
    cluster
}

/// Waits until both regions have a leader by the nodes' own metrics. Returns the nodes that lead a region.
fn leaders(cluster: &Cluster) -> Vec<usize> {
    let mut found = Vec::new();
    wait_for("a leader of each region", || {
        let leads: Vec<usize> = (0..3).map(|node| cluster.leads(node)).collect();
        found = (0..3).filter(|node| leads[*node] > 0).collect();
        leads.iter().sum::<usize>() == 2
    });
    found
}

/// Restarts nodes until one of them leads both regions, and returns it.
///
/// A node that stops gracefully transfers its leadership to one of the two others, and to the same one whenever both
/// are equally up to date. So the two leaders are stopped alternately.
async fn one_leader_of_both(cluster: &mut Cluster) -> usize {
    for attempt in 0..16 {
        match leaders(cluster)[..] {
            [both] => return both,
            ref two => {
                let node = two[attempt % 2];
                assert_eq!(cluster.terminate(node), Some(0));
                cluster.spawn(node);
                cluster.wait_until_serving(node).await;
            }
        }
    }
    panic!("no node became the leader of both regions");
}

/// Waits until the replicas of a restarted node have applied as much as the others.
async fn wait_until_caught_up(cluster: &Cluster, node: usize) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let status = cluster.status((node + 1) % cluster.nodes.len());
        let regions = status["regions"].as_array().cloned().unwrap_or_default();
        let applied = |region: &serde_json::Value, node: usize| {
            let replicas = region["replicas"].as_array().unwrap().clone();
            replicas.iter().find(|r| r["node"] == (node + 1) as u64).and_then(|r| r["applied"].as_u64())
        };
        let is_caught_up = |region: &serde_json::Value| {
            let newest = (0..cluster.nodes.len()).filter_map(|n| applied(region, n)).max();
            newest.is_some() && applied(region, node) == newest
        };
        let alive = status["nodes"].as_array().is_some_and(|nodes| nodes.iter().all(|n| n["state"] == "alive"));
        if alive && regions.len() == 2 && regions.iter().all(is_caught_up) {
            return;
        }
        assert!(Instant::now() < deadline, "node {} does not catch up: {status:#}", node + 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Kills a node while a writer uses the given gateways, restarts it, and waits until it has caught up.
async fn kill_one(
    cluster: &mut Cluster,
    victim: usize,
    gateways: &[usize],
    leads: Option<usize>,
    first: i64,
) -> Written {
    let writer = Writer::start(cluster.gateways(gateways), first);
    writer.wait_for_rows(100).await;
    if let Some(regions) = leads {
        assert_eq!(cluster.leads(victim), regions, "leadership moved without a reason");
    }
    let others: Vec<usize> = (0..cluster.nodes.len()).filter(|node| *node != victim).collect();
    let before = cluster.begun(&others);
    let kill = Instant::now();
    cluster.kill(victim);
    writer.wait_for_rows(100).await;
    let outage = writer.largest_gap(kill);
    if let Some(regions) = leads {
        let begun = cluster.begun(&others).since(before);
        assert!(begun.by_election >= regions && begun.by_handover == 0, "{begun:?} after a kill");
    }
    cluster.spawn(victim);
    cluster.wait_until_serving(victim).await;
    writer.wait_for_rows(100).await;
    let largest = writer.largest_gap(kill);
    println!("killed node {}: writing stopped for {outage:?}, at most {largest:?} until it was back", victim + 1);
    let written = writer.finish().await;
    wait_until_caught_up(cluster, victim).await;
    written
}

/// Kills each node in turn: the leader of both regions, then the gateway of the client, which continues through another
/// one, then the remaining node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_one_node_may_be_killed() {
    let lock = ClusterLock::acquire();
    let mut cluster = cluster_with_table(&lock).await;
    let both = one_leader_of_both(&mut cluster).await;
    let (second, third) = ((both + 1) % 3, (both + 2) % 3);
    let mut written = vec![kill_one(&mut cluster, both, &[second], Some(2), 0).await];
    check(&cluster, &written).await;
    written.push(kill_one(&mut cluster, second, &[second, third, both], None, APART).await);
    check(&cluster, &written).await;
    written.push(kill_one(&mut cluster, third, &[both], None, 2 * APART).await);
    check(&cluster, &written).await;
}

/// Kills all nodes at once during writes, twice: the state after the first recovery must survive a second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_may_be_killed_at_once() {
    let lock = ClusterLock::acquire();
    let mut cluster = cluster_with_table(&lock).await;
    let mut written = Vec::new();
    for round in 0..2 {
        let writer = Writer::start(cluster.gateways(&[0]), round * APART);
        writer.wait_for_rows(200).await;
        cluster.kill_all(&[0, 1, 2]);
        for node in 0..3 {
            cluster.spawn(node);
        }
        for node in 0..3 {
            cluster.wait_until_serving(node).await;
        }
        writer.wait_for_rows(50).await;
        written.push(writer.finish().await);
        check(&cluster, &written).await;
    }
}

/// Stops the leader of both regions with SIGTERM while two clients write, through the other nodes and through itself,
/// and restarts it. Both leaderships must be handed over. Returns the rows.
async fn stop_the_leader(cluster: &mut Cluster, first: i64) -> [Written; 2] {
    let leader = one_leader_of_both(cluster).await;
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let elsewhere = Writer::start(cluster.gateways(&others), first);
    let here = Writer::start(cluster.gateways(&[leader, others[0], others[1]]), first + APART);
    elsewhere.wait_for_rows(50).await;
    here.wait_for_rows(50).await;
    assert_eq!(cluster.leads(leader), 2, "leadership moved without a reason");

    let before = cluster.begun(&others);
    let stop = Instant::now();
    assert_eq!(cluster.terminate(leader), Some(0), "SIGTERM ends in exit code 0");
    let new = leaders(cluster);
    assert!(!new.contains(&leader), "leadership moved to {new:?}");
    let begun = cluster.begun(&others).since(before);
    elsewhere.wait_for_rows(50).await;
    let gap = elsewhere.largest_gap(stop);
    println!("stopped node {}: {begun:?}, writing stopped for {gap:?}", leader + 1);
    assert_eq!(begun, Begun { by_election: 0, by_handover: 2 }, "writing stopped for {gap:?}");
    here.wait_for_rows(50).await;
    cluster.spawn(leader);
    cluster.wait_until_serving(leader).await;
    elsewhere.wait_for_rows(50).await;
    here.wait_for_rows(50).await;
    for (client, writer) in [("another node", &elsewhere), ("the node itself", &here)] {
        let gap = writer.largest_gap(stop);
        assert!(gap < STOP_GAP_MAX, "writing through {client} stopped for {gap:?}");
    }
    let written = [elsewhere.finish().await, here.finish().await];
    wait_until_caught_up(cluster, leader).await;
    written
}

/// A graceful stop: exit code 0, leadership is handed over without an election, the node's own clients and those of the
/// others continue, and the node can be restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_stops_gracefully() {
    let lock = ClusterLock::acquire();
    let mut cluster = cluster_with_table(&lock).await;
    let mut written = Vec::new();
    for stop in 0..STOPS {
        written.extend(stop_the_leader(&mut cluster, 2 * APART * stop as i64).await);
    }
    check(&cluster, &written).await;
}
