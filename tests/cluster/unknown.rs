//! Unknown outcomes: a commit that loses the majority of its region fails with 08007, and `cortado txn status` says
//! what became of it.
//!
//! Clients insert through a node that does not lead. The leader is killed, which leaves each client with a commit that
//! was sent and not answered, and the third node is paused. So nothing can be committed or rolled back, and the gateway
//! cannot tell. `--retry-for` shortens the time that it tries to. Then the others are there again, and what is in the
//! logs decides. The answer to what each DETAIL asks for must agree with the row.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tokio_postgres::error::SqlState;

use crate::clients::is_transient;
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT, cortado, run, wait_for};

const CLIENTS: i64 = 8;
/// Rows that are there when the leader is killed.
const ROWS: usize = 100;
/// The distance between the first row ids of two clients.
const APART: i64 = 1 << 32;

/// The commit of a row, as the DETAIL of its error names it.
#[derive(Debug)]
struct Unknown {
    id: i64,
    start_ts: String,
    primary: String,
}

impl Unknown {
    /// Reads the command in the DETAIL; it may have other flags.
    fn new(id: i64, detail: &str) -> Unknown {
        let words: Vec<&str> = detail.split_whitespace().collect();
        let after = |word: &str| {
            let at = words.iter().position(|found| *found == word);
            at.and_then(|at| words.get(at + 1)).unwrap_or_else(|| panic!("no {word} in {detail:?}")).to_string()
        };
        Unknown { id, start_ts: after("status"), primary: after("--primary") }
    }

    /// The state and the commit_ts that `cortado txn status` prints, through a node.
    fn ask(&self, cluster: &Cluster, node: usize) -> (String, Option<String>) {
        let host = format!("127.0.0.1:{}", cluster.nodes[node].listen);
        let args = ["txn", "status", &self.start_ts, "--primary", &self.primary, "--host", &host, "--json"];
        let mut outcome = serde_json::Value::Null;
        // A node may be without a leader for a while, and does not wait for one for long.
        wait_for("an answer to `cortado txn status`", || {
            let out = run(cortado().args(args));
            outcome = serde_json::from_slice(&out.stdout).unwrap_or_default();
            out.status.success()
        });
        let text = |name: &str| outcome[name].as_str().map(str::to_owned);
        (text("state").unwrap(), text("commit_ts"))
    }
}

/// What a client has seen: acknowledged rows, and the error that ended it.
#[derive(Default)]
struct Seen {
    acknowledged: Vec<i64>,
    unknown: Option<Unknown>,
    /// The row whose INSERT has failed: it is not there, and never will be.
    failed: Option<i64>,
}

/// Inserts rows, one after the other, until one fails.
async fn insert(client: tokio_postgres::Client, first: i64) -> Seen {
    let mut seen = Seen::default();
    for id in first.. {
        match client.execute("INSERT INTO t VALUES ($1)", &[&id]).await {
            Ok(inserted) => {
                assert_eq!(inserted, 1);
                seen.acknowledged.push(id);
            }
            Err(error) => {
                assert!(is_transient(&error), "{error:?}");
                if error.code() == Some(&SqlState::TRANSACTION_RESOLUTION_UNKNOWN) {
                    let detail = error.as_db_error().and_then(|error| error.detail()).expect("a DETAIL");
                    seen.unknown = Some(Unknown::new(id, detail));
                } else if error.code().is_some() {
                    seen.failed = Some(id);
                }
                break;
            }
        }
    }
    seen
}

/// The rows that are there, through a node.
async fn rows(cluster: &Cluster, node: usize) -> BTreeSet<i64> {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        match cluster.connect(node).await.query("SELECT id FROM t", &[]).await {
            Ok(rows) => return rows.iter().map(|row| row.get(0)).collect(),
            Err(error) => assert!(is_transient(&error) && Instant::now() < deadline, "{error:?}"),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_an_unknown_outcome_agrees_with_the_row() {
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start_with(&lock, 3, &["--retry-for", "500ms"]).await;
    cluster.connect(0).await.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)").await.unwrap();
    let leader = cluster.leader_of(2);
    let (gateway, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let mut clients = Vec::new();
    for n in 0..CLIENTS {
        clients.push(tokio::spawn(insert(cluster.connect(gateway).await, n * APART)));
    }
    while rows(&cluster, leader).await.len() < ROWS {
        assert!(clients.iter().all(|client| !client.is_finished()), "an INSERT failed before its time");
    }
    cluster.pause(&[third]);
    cluster.kill(leader);
    let killed = Instant::now();
    let (mut acknowledged, mut unknown, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for client in clients {
        let seen = client.await.unwrap();
        acknowledged.extend(seen.acknowledged);
        unknown.extend(seen.unknown);
        failed.extend(seen.failed);
    }
    println!("{} rows, {} unknown outcomes after {:?}", acknowledged.len(), unknown.len(), killed.elapsed());
    assert!(!unknown.is_empty(), "no outcome was unknown");
    cluster.resume(&[third]);
    cluster.spawn(leader);
    for node in 0..3 {
        cluster.wait_until_serving(node).await;
    }

    // A late copy of a commit may still arrive. So the rows are read before and after each answer.
    let mut committed = BTreeMap::new();
    for round in 0..3 {
        let before = rows(&cluster, round).await;
        let answers: Vec<_> = unknown.iter().map(|commit| commit.ask(&cluster, (round + 1) % 3)).collect();
        let after = rows(&cluster, (round + 2) % 3).await;
        for (Unknown { id, .. }, (state, commit_ts)) in unknown.iter().zip(answers) {
            let (was, is) = (before.contains(id), after.contains(id));
            println!("row {id}: {state}, {was} and {is}");
            match state.as_str() {
                "committed" => assert!(is, "row {id} is committed and not there"),
                "rolled back" => assert!(!was && !is, "row {id} is rolled back and there"),
                "missing" | "undecided" => assert!(!was, "row {id} is {state} and there"),
                _ => panic!("row {id} is {state}"),
            }
            assert_eq!(state == "committed", commit_ts.is_some(), "row {id}");
            let known = committed.entry(*id).or_insert_with(|| commit_ts.clone());
            assert!(known.is_none() || *known == commit_ts, "row {id}: {known:?}, then {commit_ts:?}");
            *known = commit_ts;
        }
        let lost: Vec<_> = acknowledged.iter().filter(|id| !after.contains(id)).collect();
        assert!(lost.is_empty(), "acknowledged rows are lost: {lost:?}");
        let there: Vec<_> = failed.iter().filter(|id| after.contains(id)).collect();
        assert!(there.is_empty(), "rows are there although their INSERT failed: {there:?}");
    }
}
