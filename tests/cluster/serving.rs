//! What a node says while it cannot serve: SQLSTATE 57P03 to clients, 503 to load balancers. And that it serves as soon as it can.

use std::process::Command;

use tokio_postgres::error::SqlState;

use crate::clients::{is_transient, try_connect};
use crate::harness::Cluster;
use crate::process::{http_get, wait_for};

/// Before `cortado init` a client is told to come back, in the protocol and in psql, and is not left hanging.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_waits_says_so() {
    let mut cluster = Cluster::start_uninitialised(3);
    for node in 0..3 {
        wait_for("the node to listen", || cluster.health(node).is_some());
        let error = try_connect(&cluster.gateways(&[node])).await.expect_err("nothing can be served yet");
        assert_eq!(error.code(), Some(&SqlState::CANNOT_CONNECT_NOW), "{error:?}");
        let (status, reason) = http_get(cluster.nodes[node].http, "/healthz").unwrap();
        assert_eq!(status, 503);
        assert!(!reason.trim().is_empty(), "the reason is told");
    }
    let psql = Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &cluster.nodes[0].pg.to_string(), "-U", "postgres", "-Xc", "SELECT 1"])
        .output()
        .expect("psql must be installed: apt-get install postgresql-client");
    let said = String::from_utf8_lossy(&psql.stderr);
    assert!(!psql.status.success() && said.contains("FATAL"), "{said}");
    assert!(!said.contains("closed the connection unexpectedly"), "{said}");

    cluster.init();
    for node in 0..3 {
        cluster.wait_until_serving(node).await;
    }
}

/// With a majority of the nodes gone nothing can be served: the one left says so, and takes it back when they return.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_follows_the_cluster() {
    let mut cluster = Cluster::start(3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    cluster.kill_all(&[1, 2]);
    wait_for("the node left to call itself unfit", || cluster.health(0) == Some(503));
    let error = client.execute("INSERT INTO t VALUES (1)", &[]).await.expect_err("no majority, no commit");
    assert!(is_transient(&error), "{error:?}");
    cluster.spawn(1);
    cluster.spawn(2);
    for node in 0..3 {
        cluster.wait_until_serving(node).await;
    }
    cluster.connect(0).await.execute("INSERT INTO t VALUES (2)", &[]).await.unwrap();
}
