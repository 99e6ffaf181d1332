//! `cortado locks`: a session waits for the row of another one, through different nodes, and any node says so. The
//! locks of clients and nodes that die are free soon, and what they had not committed is not there.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{WAIT_TIMEOUT, cortado, run, wait_for};

impl Cluster {
    /// What `cortado locks` prints, through a node.
    fn locks(&self, node: usize, flags: &[&str]) -> String {
        let host = format!("127.0.0.1:{}", self.nodes[node].listen);
        let out = run(cortado().args(["locks", "--host", &host]).args(flags));
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_shows_who_waits_for_whom() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let (holder, waiter) = (cluster.connect(0).await, cluster.connect(1).await);
    holder.batch_execute("CREATE TABLE accounts (id int PRIMARY KEY, v int)").await.unwrap();
    holder.batch_execute("INSERT INTO accounts VALUES (5, 0)").await.unwrap();
    assert_eq!(cluster.locks(2, &[]), "no row locks\n");
    let pid = |row: tokio_postgres::Row| i64::from(row.get::<_, i32>(0));
    let holder_pid = pid(holder.query_one("SELECT pg_backend_pid()", &[]).await.unwrap());
    let waiter_pid = pid(waiter.query_one("SELECT pg_backend_pid()", &[]).await.unwrap());
    holder.batch_execute("BEGIN; UPDATE accounts SET v = 1 WHERE id = 5").await.unwrap();
    let waiting = tokio::spawn(async move {
        waiter.batch_execute("BEGIN; SELECT * FROM accounts WHERE id = 5 FOR UPDATE; COMMIT").await
    });
    let mut page = serde_json::Value::Null;
    wait_for("a session that waits for a second", || {
        page = serde_json::from_str(&cluster.locks(2, &["--json"])).unwrap();
        page["locks"][1]["wait"]["ms"].as_u64().is_some_and(|ms| ms >= 1_000)
    });
    let (held, waits) = (&page["locks"][0], &page["locks"][1]);
    assert_eq!((&held["table"], &held["row"]), (&"accounts".into(), &"(id)=(5)".into()));
    assert_eq!((&held["mode"], &waits["mode"]), (&"NO KEY UPDATE".into(), &"UPDATE".into()));
    assert_eq!((&held["transaction"]["node"], &held["transaction"]["pid"]), (&1.into(), &holder_pid.into()));
    assert_eq!((&waits["transaction"]["node"], &waits["transaction"]["pid"]), (&2.into(), &waiter_pid.into()));
    assert_eq!(waits["wait"]["for"], serde_json::json!([held["transaction"]]));
    assert_eq!(page["silent_nodes"], serde_json::json!([]));
    holder.batch_execute("COMMIT").await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the lock").unwrap().unwrap();
    // Advisory locks stand there too.
    let (holder_2, waiter_2) = (cluster.connect(1).await, cluster.connect(2).await);
    let pid = pid(holder_2.query_one("SELECT pg_backend_pid()", &[]).await.unwrap());
    holder_2.batch_execute("SELECT pg_advisory_lock(42)").await.unwrap();
    let waiting = tokio::spawn(async move { waiter_2.batch_execute("SELECT pg_advisory_lock_shared(42)").await });
    wait_for("a session that waits for an advisory lock", || {
        page = serde_json::from_str(&cluster.locks(0, &["--json"])).unwrap();
        page["locks"][1]["wait"]["ms"].as_u64().is_some_and(|ms| ms >= 500)
    });
    let (held, waits) = (&page["locks"][0], &page["locks"][1]);
    assert_eq!(
        (&held["table"], &held["row"], &held["mode"]),
        (&"advisory lock".into(), &"(42)".into(), &"EXCLUSIVE".into())
    );
    assert_eq!((&held["transaction"]["node"], &held["transaction"]["pid"]), (&2.into(), &pid.into()));
    assert!(held["held_ms"].as_u64().is_some_and(|ms| ms >= 500), "{held}");
    assert_eq!((&waits["mode"], &waits["wait"]["for"]), (&"SHARE".into(), &serde_json::json!([held["transaction"]])));
    // Regression: its place in the queue was counted beside the record of the holder.
    assert_eq!(page["total"], 2);
    drop(holder_2);
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the lock").unwrap().unwrap();
    // The locks end once what ends their transaction is applied.
    wait_for("no row locks", || cluster.locks(0, &[]) == "no row locks\n");
}

/// Regression: with more locks than fit into a message the command failed, and the node was called silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn very_many_locks_are_listed_in_part() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let (holder, waiter) = (cluster.connect(0).await, cluster.connect(1).await);
    holder.batch_execute("CREATE TABLE many (id int, name text, PRIMARY KEY (id, name))").await.unwrap();
    let name = "n".repeat(1_000);
    for thousand in 0..12 {
        let rows: Vec<String> = (0..1_000).map(|id| format!("({}, '{name}')", thousand * 1_000 + id)).collect();
        holder.batch_execute(&format!("INSERT INTO many VALUES {}", rows.join(", "))).await.unwrap();
    }
    holder.batch_execute("BEGIN; SELECT * FROM many FOR UPDATE").await.unwrap();
    let last = "SELECT * FROM many WHERE id = 11999 FOR SHARE";
    let waiting = tokio::spawn(async move { waiter.batch_execute(last).await });
    let mut text = String::new();
    wait_for("the wait", || {
        text = cluster.locks(2, &["--limit", "2"]);
        text.contains("SHARE")
    });
    assert!(text.contains("(id, name)=(11999, nnnn") && text.contains("2 of 12001 locks and waits"), "{text}");
    let all: serde_json::Value = serde_json::from_str(&cluster.locks(2, &["--json", "--limit", "10000"])).unwrap();
    assert_eq!((all["locks"].as_array().map(Vec::len), &all["total"]), (Some(10_000), &12_001.into()));
    assert_eq!(all["silent_nodes"], serde_json::json!([]));
    holder.batch_execute("COMMIT").await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the lock").unwrap().unwrap();
}

/// A session of a client that has no time for a good-bye: it holds the row, and its process is killed.
fn psql_with_row(cluster: &Cluster, node: usize) -> std::process::Child {
    let url = format!("postgresql://postgres@127.0.0.1:{}/postgres", cluster.nodes[node].pg);
    let mut psql = Command::new("psql");
    psql.args(["-XAtq", &url]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = psql.spawn().expect("psql");
    // It waits for more input within its transaction.
    let text = b"BEGIN;\nUPDATE accounts SET v = v + 100 WHERE id = 5;\n";
    running.stdin.as_mut().expect("a pipe").write_all(text).expect("psql reads");
    running
}

/// Adds 1 to the row at another node than `dies`, once the row is held, and `kill` has killed its holder meanwhile.
async fn add_after(cluster: &mut Cluster, at: usize, kill: impl FnOnce(&mut Cluster)) {
    wait_for("the lock of the row", || cluster.locks(at, &[]).contains("(id)=(5)"));
    let waiter = cluster.connect(at).await;
    let waiting = tokio::spawn(async move { waiter.batch_execute("UPDATE accounts SET v = v + 1 WHERE id = 5").await });
    wait_for("a waiter", || cluster.locks(at, &[]).matches("(id)=(5)").count() == 2);
    kill(cluster);
    tokio::time::timeout(WAIT_TIMEOUT, waiting).await.expect("the lock is free").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_the_dead_are_free_soon() {
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start(&lock, 3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE accounts (id int PRIMARY KEY, v int)").await.unwrap();
    client.batch_execute("INSERT INTO accounts VALUES (5, 0)").await.unwrap();
    let leader = cluster.leader_of(2);
    let (gateway, third) = ((leader + 1) % 3, (leader + 2) % 3);
    // A client dies.
    let mut psql = psql_with_row(&cluster, gateway);
    add_after(&mut cluster, third, |_| psql.kill().expect("it runs")).await;
    psql.wait().unwrap();
    // Its node dies: the leader, which knows of the lock, hears no more that the transaction lives.
    let mut psql = psql_with_row(&cluster, gateway);
    add_after(&mut cluster, third, |cluster| cluster.kill(gateway)).await;
    psql.kill().ok();
    psql.wait().unwrap();
    cluster.spawn(gateway);
    cluster.wait_until_serving(gateway).await;
    // The leader dies, and with it what it knew.
    let leader = cluster.leader_of(2);
    let (gateway, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let holder = cluster.connect(gateway).await;
    holder.batch_execute("BEGIN; UPDATE accounts SET v = v + 100 WHERE id = 5").await.unwrap();
    add_after(&mut cluster, third, |cluster| cluster.kill(leader)).await;
    let refused = holder.batch_execute("COMMIT").await.expect_err("another transaction has changed the row");
    assert_eq!(refused.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    let row = cluster.connect(third).await.query_one("SELECT v FROM accounts WHERE id = 5", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 3);
}
