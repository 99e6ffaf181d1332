//! The answers of a node that cannot serve: SQLSTATE 57P03 to clients, 503 to load balancers. It serves once it can.

use std::process::Command;

use tokio_postgres::error::SqlState;

use crate::clients::{is_transient, try_connect};
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{http_get, metric, wait_for};

/// Before `cortado init` a client is rejected at once with 57P03, also in psql.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uninitialised_node_rejects_clients() {
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start_uninitialised(&lock, 3);
    for node in 0..3 {
        wait_for("the node to listen", || cluster.health(node).is_some());
        let error = try_connect(&cluster.gateways(&[node])).await.expect_err("nothing can be served yet");
        assert_eq!(error.code(), Some(&SqlState::CANNOT_CONNECT_NOW), "{error:?}");
        let (status, reason) = http_get(cluster.nodes[node].http, "/healthz").unwrap();
        assert_eq!(status, 503);
        assert!(!reason.trim().is_empty(), "the page shows the reason");
    }
    let psql = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &cluster.nodes[0].pg.to_string(), "-U", "postgres", "-Xc", "SELECT 1"])
        .output()
        .expect("psql must be installed: apt-get install postgresql-client");
    let stderr = String::from_utf8_lossy(&psql.stderr);
    assert!(!psql.status.success() && stderr.contains("FATAL"), "{stderr}");
    assert!(!stderr.contains("closed the connection unexpectedly"), "{stderr}");

    cluster.init();
    for node in 0..3 {
        cluster.wait_until_serving(node).await;
    }
    // A schema change is there through all gateways once it is acknowledged, and no statement is run twice.
    let clients = [cluster.connect(0).await, cluster.connect(1).await, cluster.connect(2).await];
    for round in 0..3 {
        let [a, b, c] = [0, 1, 2].map(|at| &clients[(round + at) % 3]);
        a.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
        b.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
        c.batch_execute("TRUNCATE t; INSERT INTO t VALUES (2)").await.unwrap();
        let rows = a.query("SELECT id FROM t", &[]).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [2]);
        b.batch_execute("DROP TABLE t").await.unwrap();
    }
    count_requests(&cluster).await;
}

/// Through a node that leads nothing, a prepared point select is one request to another node, and so is an insert.
/// Before, each took two: its timestamp was a request of its own.
async fn count_requests(cluster: &Cluster) {
    const STATEMENTS: i32 = 100;
    // What the node does besides, such as the renewal of its lease.
    const OTHERS: f64 = 40.0;
    cluster.connect(0).await.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int)").await.unwrap();
    let mut counts = Vec::new();
    for round in 0..5 {
        let leaders = [cluster.leader_of(1), cluster.leader_of(2)];
        let gateway = (0..3).find(|node| !leaders.contains(node)).unwrap();
        let client = cluster.connect(gateway).await;
        let insert = client.prepare("INSERT INTO t VALUES ($1, 0)").await.unwrap();
        let select = client.prepare("SELECT v FROM t WHERE id = $1").await.unwrap();
        let ids: Vec<i32> = (0..STATEMENTS).map(|n| round * STATEMENTS + n).collect();
        client.query(&select, &[&0]).await.unwrap();
        let count = |name| metric(cluster.nodes[gateway].http, name).unwrap();
        let requests = || count("cortado_link_requests_total");
        let (before, first_reads) = (requests(), count("cortado_txn_first_reads_total"));
        for id in &ids {
            client.execute(&insert, &[id]).await.unwrap();
        }
        let inserted = requests();
        for id in &ids {
            assert_eq!(client.query(&select, &[id]).await.unwrap().len(), 1);
        }
        let (selected, statements) = (requests(), f64::from(STATEMENTS));
        let first_reads = count("cortado_txn_first_reads_total") - first_reads;
        counts.push((inserted - before, selected - inserted, first_reads));
        let is_as_told = |requests: f64, each: f64| (0.0..OTHERS).contains(&(requests - each * statements));
        if is_as_told(inserted - before, 1.0) && is_as_told(selected - inserted, 1.0) && first_reads >= statements {
            return;
        }
        // A leader has changed meanwhile.
    }
    panic!("requests of {STATEMENTS} inserts, of so many selects, and first reads among these: {counts:?}");
}

/// Without a majority the remaining node is unhealthy. It is healthy again when the others return.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_follows_the_majority() {
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start(&lock, 3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    cluster.kill_all(&[1, 2]);
    wait_for("the remaining node to be unhealthy", || cluster.health(0) == Some(503));
    let error = client.execute("INSERT INTO t VALUES (1)", &[]).await.expect_err("no majority, no commit");
    assert!(is_transient(&error), "{error:?}");
    cluster.spawn(1);
    cluster.spawn(2);
    for node in 0..3 {
        cluster.wait_until_serving(node).await;
    }
    cluster.connect(0).await.execute("INSERT INTO t VALUES (2)", &[]).await.unwrap();
}
