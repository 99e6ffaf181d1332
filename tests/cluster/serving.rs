//! The answers of a node that cannot serve: SQLSTATE 57P03 to clients, 503 to load balancers. It serves once it can.

use std::process::Command;

use tokio_postgres::error::SqlState;

use crate::clients::{is_transient, try_connect};
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{http_get, wait_for};

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
