//! Garbage collection with a ttl of a second: old versions go, a snapshot that is held stays readable, one of the past
//! is refused, and `cortado status` says what holds the safe point back.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{metric, wait_for};

/// The rows of the table that is updated often, and how often. A store examines a part of its keys after 4,096 writes.
const ROWS: u32 = 500;
const ROUNDS: u32 = 10;

async fn one(client: &Client, text: &str) -> String {
    match &client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error}"))[1] {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).unwrap().to_owned(),
        other => panic!("{text}: {other:?}"),
    }
}

async fn refusal(client: &Client, text: &str) -> SqlState {
    client.simple_query(text).await.expect_err(text).code().unwrap_or_else(|| panic!("{text}")).clone()
}

impl Cluster {
    /// What the status says of garbage collection, in milliseconds.
    fn gc(&self, field: &str) -> serde_json::Value {
        self.status(0)["gc"][field].clone()
    }

    /// The versions that the store which has dropped the fewest has dropped.
    fn dropped(&self) -> u32 {
        let of_node = |http| metric(http, "cortado_kv_gc_versions_dropped_total").expect("a node that runs") as u32;
        self.nodes.iter().map(|node| of_node(node.http)).min().expect("nodes")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_versions_go_and_snapshots_that_are_held_stay() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let (admin, holder, writer) = (cluster.connect(0).await, cluster.connect(1).await, cluster.connect(2).await);
    assert_eq!(one(&admin, "SHOW cortado.gc_ttl").await, "10min");
    assert_eq!(refusal(&admin, "SET cortado.gc_ttl = '1s'").await, SqlState::CANT_CHANGE_RUNTIME_PARAM);
    assert_eq!(refusal(&admin, "ALTER SYSTEM SET cortado.gc_ttl = '10ms'").await, SqlState::INVALID_PARAMETER_VALUE);
    assert_eq!(refusal(&admin, "BEGIN; ALTER SYSTEM RESET ALL").await, SqlState::ACTIVE_SQL_TRANSACTION);
    admin.simple_query("ROLLBACK").await.unwrap();
    admin.simple_query("ALTER SYSTEM SET cortado.gc_ttl = '1s'").await.unwrap();
    assert_eq!(one(&holder, "SHOW cortado.gc_ttl").await, "1s", "it is that of the cluster");

    admin.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)").await.unwrap();
    admin.batch_execute("CREATE TABLE busy (id int PRIMARY KEY, v int)").await.unwrap();
    let rows: Vec<String> = (1..=ROWS).map(|id| format!("({id}, 1)")).collect();
    admin.batch_execute(&format!("INSERT INTO busy VALUES {}", rows.join(", "))).await.unwrap();
    assert_eq!(one(&admin, "SELECT v FROM t WHERE id = 1").await, "0");
    let read = one(&admin, "SHOW cortado.last_read").await;
    let before = read.split_once("start_ts=").and_then(|(_, rest)| rest.split(' ').next()).expect("a start_ts");
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert_eq!(one(&holder, "SELECT v FROM t WHERE id = 1").await, "0");
    let sum = "SELECT sum(v) FROM busy";
    assert_eq!(one(&holder, sum).await, ROWS.to_string());
    let pid: u32 = one(&holder, "SELECT pg_backend_pid()").await.parse().unwrap();
    for v in 1..=200 {
        writer.batch_execute(&format!("UPDATE t SET v = {v} WHERE id = 1")).await.unwrap();
    }
    for _ in 0..ROUNDS {
        writer.batch_execute("UPDATE busy SET v = v + 1").await.unwrap();
    }
    // The snapshot is far older than the ttl, and holds the safe point back.
    wait_for("the session that holds the safe point back", || cluster.gc("held_by")["pid"] == pid);
    wait_for("a snapshot of six seconds", || cluster.gc("held_by")["age_ms"].as_u64().is_some_and(|ms| ms > 6_000));
    assert_eq!(one(&holder, "SELECT v FROM t WHERE id = 1").await, "0");
    assert_eq!(one(&holder, sum).await, ROWS.to_string());
    assert!(cluster.dropped() < ROWS, "versions that the snapshot sees are gone");
    assert_eq!(one(&admin, &format!("SELECT v FROM t AS OF SYSTEM TIME {before} WHERE id = 1")).await, "0");
    holder.batch_execute("COMMIT").await.unwrap();

    wait_for("a young safe point", || cluster.gc("age_ms").as_u64().is_some_and(|ms| ms < 6_000));
    let past = format!("SELECT v FROM t AS OF SYSTEM TIME {before} WHERE id = 1");
    let mut refused = false;
    for _ in 0..300 {
        refused = match admin.simple_query(&past).await {
            Err(error) => error.code().is_some_and(|code| code.code() == "72000"),
            Ok(_) => false,
        };
        if refused {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(refused, "a read below the safe point is refused");
    assert_eq!(one(&admin, "SELECT v FROM t WHERE id = 1").await, "200");
    assert_eq!(one(&writer, "SELECT v FROM t AS OF SYSTEM TIME '-10ms' WHERE id = 1").await, "200");
    wait_for("old versions to go on all nodes", || cluster.dropped() >= ROWS * (ROUNDS - 1));
    assert_eq!(one(&admin, sum).await, (ROWS * (ROUNDS + 1)).to_string());
    admin.simple_query("ALTER SYSTEM RESET cortado.gc_ttl").await.unwrap();
    assert_eq!(one(&writer, "SHOW cortado.gc_ttl").await, "10min");
}
