//! Sessions of real processes, as operators see them through another node: signals, activity, locks.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;

const PATIENCE: Duration = Duration::from_secs(30);

async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// Asks until there is such a row.
async fn until(client: &Client, text: &str) {
    let asks = async {
        while client.query_opt(text, &[]).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asks).await.unwrap_or_else(|_| panic!("never a row: {text}"));
}

async fn code(statement: tokio::task::JoinHandle<Result<(), tokio_postgres::Error>>) -> SqlState {
    let ended = tokio::time::timeout(PATIENCE, statement).await.expect("it ends").unwrap();
    ended.expect_err("it is ended").code().expect("an error of the server").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_reach_the_sessions_of_other_nodes() {
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start(&lock, 3).await;
    let leader = cluster.leader_of(1);
    let (one, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let (holder, waiter, operator) =
        (cluster.connect(one).await, cluster.connect(other).await, cluster.connect(other).await);
    let (of_holder, of_waiter) = (pid(&holder).await, pid(&waiter).await);
    holder.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)").await.unwrap();
    holder.batch_execute("BEGIN; UPDATE t SET n = 1; SELECT pg_advisory_lock(7)").await.unwrap();
    let shown = format!(
        "SELECT query FROM pg_stat_activity WHERE pid = {of_holder} AND state = 'idle in transaction' \
         AND xact_start IS NOT NULL AND client_addr = '127.0.0.1'"
    );
    until(&operator, &shown).await;
    let cancel = waiter.cancel_token();
    let waits = tokio::spawn(async move {
        let done = waiter.batch_execute("UPDATE t SET n = 2").await;
        assert!(waiter.batch_execute("SELECT 1").await.is_ok(), "the session goes on");
        done
    });
    until(&operator, &format!("SELECT 1 WHERE pg_blocking_pids({of_waiter}) = ARRAY[{of_holder}]")).await;
    let rows = format!(
        "SELECT 1 FROM pg_locks h JOIN pg_locks w USING (locktype, relation) WHERE locktype = 'tuple' \
         AND h.granted AND NOT w.granted AND h.pid = {of_holder} AND w.pid = {of_waiter} \
         AND relation = 't'::regclass"
    );
    until(&operator, &rows).await;
    let advisory = format!("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND pid = {of_holder}");
    until(&operator, &advisory).await;
    // A cancel request of its client comes to its own node; that of an operator to any.
    cancel.cancel_query(tokio_postgres::NoTls).await.unwrap();
    assert_eq!(code(waits).await, SqlState::QUERY_CANCELED);
    let through = cluster.connect(leader).await;
    let ended: bool =
        through.query_one(&format!("SELECT pg_terminate_backend({of_holder}, 30000)"), &[]).await.unwrap().get(0);
    assert!(ended);
    until(&operator, "UPDATE t SET n = 3 RETURNING 1").await;
    let found: bool = through.query_one(&format!("SELECT pg_cancel_backend({of_holder})"), &[]).await.unwrap().get(0);
    assert!(!found, "it is gone");
    // A node that is down is left out, and cannot be signalled.
    let of_dead = pid(&cluster.connect(one).await).await;
    cluster.kill(one);
    let error = operator.query_one(&format!("SELECT pg_cancel_backend({of_dead})"), &[]).await.expect_err("it is down");
    assert_eq!(error.code(), Some(&SqlState::CANNOT_CONNECT_NOW));
    let left = "SELECT count(DISTINCT pid >> 20) FROM pg_stat_activity";
    assert_eq!(operator.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 2);
}
