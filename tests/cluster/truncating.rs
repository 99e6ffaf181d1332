//! Schema changes that take rows away, while clients write through other gateways.
//!
//! A table is truncated, or dropped and created again, through one gateway. An acknowledged row whose last message was
//! sent after the acknowledgement of that must be there. So must one whose last message was sent after the
//! acknowledgement of any row that is there: that one was committed after the change. A row that was acknowledged
//! before the change was sent must be gone.
//!
//! In between the gateway of most writers is paused until the table was truncated without it. Statements and COMMITs
//! wait for it meanwhile: when it continues, it handles them while it still believes in its old catalog.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::clients::{connect, is_transient};
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT};

/// The schema changes of a round, each a message of its own.
const CHANGES: [&[&str]; 3] = [
    &["TRUNCATE t"],
    &["DROP TABLE t", CREATE],
    &["BEGIN; DROP TABLE t; CREATE TABLE t (id bigint PRIMARY KEY); COMMIT"],
];
const CREATE: &str = "CREATE TABLE t (id bigint PRIMARY KEY)";
/// Rounds before the pause, and after it.
const ROUNDS: usize = 4;
/// Rows that are acknowledged before each change, and after it.
const ROWS: usize = 20;
/// Statements, and COMMITs, that wait for a paused gateway.
const WAITING: usize = 4;
/// The longest that a transaction of several messages stays open: longer than a change takes without it.
const OPEN_MAX_MS: i64 = 120;

/// How a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Extended,
    Simple,
    Transaction,
}

/// An acknowledged row.
#[derive(Clone, Copy, Debug)]
struct Row {
    id: i64,
    /// When the message was sent that committed it.
    sent: Instant,
    acknowledged: Instant,
}

/// What all clients know.
#[derive(Default)]
struct Written {
    next: AtomicI64,
    acknowledged: Mutex<Vec<Row>>,
    stop: AtomicBool,
}

impl Written {
    fn next_id(&self) -> i64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn rows(&self) -> Vec<Row> {
        self.acknowledged.lock().unwrap().clone()
    }

    /// Adds a row whose commit was sent at `sent`, if it was acknowledged. Another outcome is an error that a client
    /// must expect: the table is away, or changes.
    fn add(&self, id: i64, sent: Instant, result: Result<u64, Error>) {
        let expected = [SqlState::UNDEFINED_TABLE, SqlState::LOCK_NOT_AVAILABLE];
        match result {
            Ok(_) => self.acknowledged.lock().unwrap().push(Row { id, sent, acknowledged: Instant::now() }),
            Err(error) if is_transient(&error) || error.code().is_some_and(|code| expected.contains(code)) => {}
            Err(error) => panic!("row {id}: {error:?}"),
        }
    }

    /// Waits until `more` rows are acknowledged that were sent after `mark`.
    async fn wait_for_rows(&self, mark: Instant, more: usize, writers: &[JoinHandle<()>]) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while self.rows().iter().filter(|row| row.sent > mark).count() < more {
            assert!(writers.iter().all(|writer| !writer.is_finished()), "a writer failed");
            assert!(Instant::now() < deadline, "the writers make no progress");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Writes rows, one after the other, and reconnects.
async fn write(port: u16, protocol: Protocol, written: Arc<Written>) {
    while !written.stop.load(Ordering::SeqCst) {
        let Some(client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        while !written.stop.load(Ordering::SeqCst) && !client.is_closed() {
            let id = written.next_id();
            let mut sent = Instant::now();
            let insert = format!("INSERT INTO t VALUES ({id})");
            let result = match protocol {
                Protocol::Extended => client.execute("INSERT INTO t VALUES ($1)", &[&id]).await,
                Protocol::Simple => client.batch_execute(&insert).await.map(|()| 1),
                Protocol::Transaction => match client.batch_execute(&format!("BEGIN; {insert}")).await {
                    Ok(()) => {
                        tokio::time::sleep(Duration::from_millis((id % OPEN_MAX_MS) as u64)).await;
                        sent = Instant::now();
                        commit(&client).await
                    }
                    Err(error) => client.batch_execute("ROLLBACK").await.and(Err(error)),
                },
            };
            written.add(id, sent, result);
        }
    }
}

/// Commits a transaction in which nothing has failed. So an answer without an error acknowledges it.
async fn commit(client: &Client) -> Result<u64, Error> {
    client.batch_execute("COMMIT").await.map(|()| 1)
}

/// Changes the table through a gateway. Returns when the first message was sent, and when it was acknowledged.
async fn change(client: &Client, messages: &[&str]) -> (Instant, Instant) {
    let began = Instant::now();
    let mut taken_away = None;
    for message in messages {
        while let Err(error) = client.batch_execute(message).await {
            assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{message}: {error:?}");
            client.batch_execute("ROLLBACK").await.unwrap();
        }
        taken_away.get_or_insert_with(Instant::now);
    }
    (began, taken_away.unwrap())
}

/// Asserts that the rows through a node are those of after a change, and no others.
async fn check(cluster: &Cluster, node: usize, written: &Written, (began, ended): (Instant, Instant)) {
    let client = cluster.connect(node).await;
    let acknowledged = written.rows();
    let rows = client.query("SELECT id FROM t", &[]).await.unwrap();
    let found: BTreeSet<i64> = rows.iter().map(|row| row.get(0)).collect();
    let there = acknowledged.iter().filter(|row| found.contains(&row.id));
    let changed = there.map(|row| row.acknowledged).chain([ended]).min().unwrap();
    let lost: Vec<_> = acknowledged.iter().filter(|row| row.sent > changed && !found.contains(&row.id)).collect();
    assert!(lost.is_empty(), "rows are lost on node {} that were sent after {changed:?}: {lost:#?}", node + 1);
    let old: Vec<_> = acknowledged.iter().filter(|row| row.acknowledged < began && found.contains(&row.id)).collect();
    assert!(old.is_empty(), "rows of before are there on node {}: {old:?}, {began:?} {ended:?}", node + 1);
    let unsent = found.iter().find(|id| **id >= written.next.load(Ordering::SeqCst));
    assert_eq!(unsent, None, "a row that nobody wrote");
}

/// Pauses the gateway of the writers, truncates without it, and lets it continue with what waits for it.
async fn truncate_without(
    cluster: &Cluster,
    paused: usize,
    changer: &Client,
    written: &Arc<Written>,
) -> (Instant, Instant) {
    let mut waiting = Vec::new();
    for n in 0..2 * WAITING {
        let (client, id) = (cluster.connect(paused).await, written.next_id());
        let insert = client.prepare("INSERT INTO t VALUES ($1)").await.unwrap();
        let is_open = n % 2 == 0;
        if is_open {
            client.batch_execute("BEGIN").await.unwrap();
            client.execute(&insert, &[&id]).await.unwrap();
        }
        waiting.push((client, insert, id, is_open));
    }
    cluster.pause(&[paused]);
    let changed = change(changer, CHANGES[0]).await;
    let send = |(client, insert, id, is_open): (Client, _, i64, bool)| {
        let written = written.clone();
        async move {
            let sent = Instant::now();
            let result = if is_open { commit(&client).await } else { client.execute(&insert, &[&id]).await };
            written.add(id, sent, result);
        }
    };
    let waiting: Vec<_> = waiting.into_iter().map(|session| tokio::spawn(send(session))).collect();
    check(cluster, (paused + 1) % 3, written, changed).await;
    check(cluster, (paused + 2) % 3, written, changed).await;
    assert!(waiting.iter().all(|session| !session.is_finished()), "the node does not stand still");
    let before = written.rows().len();
    cluster.resume(&[paused]);
    for session in waiting {
        session.await.unwrap();
    }
    println!("{:?}, then {} rows", changed.1 - changed.0, written.rows().len() - before);
    changed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_row_is_lost_with_a_table() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    // The writers' gateway leads no rows: its pause is no outage.
    let leader = cluster.leader_of(2);
    let (gateway, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let changer = cluster.connect(other).await;
    changer.batch_execute(CREATE).await.unwrap();
    let written = Arc::new(Written::default());
    let start = |(node, protocol): (usize, Protocol)| {
        tokio::spawn(write(cluster.nodes[node].pg, protocol, Arc::clone(&written)))
    };
    let writers: Vec<_> = [
        (gateway, Protocol::Extended),
        (gateway, Protocol::Simple),
        (gateway, Protocol::Transaction),
        (gateway, Protocol::Transaction),
        (gateway, Protocol::Transaction),
        (leader, Protocol::Extended),
        (leader, Protocol::Transaction),
        (other, Protocol::Simple),
    ]
    .map(start)
    .into();

    for round in 0..2 * ROUNDS {
        written.wait_for_rows(Instant::now(), ROWS, &writers).await;
        let changed = if round == ROUNDS {
            truncate_without(&cluster, gateway, &changer, &written).await
        } else {
            change(&changer, CHANGES[round % CHANGES.len()]).await
        };
        written.wait_for_rows(changed.1, ROWS, &writers).await;
        for node in 0..3 {
            check(&cluster, node, &written, changed).await;
        }
    }
    written.stop.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.await.unwrap();
    }
    println!("{} of {} rows were acknowledged", written.rows().len(), written.next_id());
}
