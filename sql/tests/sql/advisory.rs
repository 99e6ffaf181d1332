//! Advisory locks seen from several gateways: waits, deadlocks, sessions and nodes that end, limits.

use std::time::Duration;

use kv::Key;
use kv::memory::MemoryCluster;
use raftstore::StoreId;
use sql::server::{AdvisoryConfig, SqlConfig};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::support::{PATIENCE, TestServer, eventually, gateway_config};

/// Longer than the lease of a node on its locks, in the oracle's time.
const PAST_THE_LEASE_MS: u64 = 11_000;

async fn two() -> ([TestServer; 2], Client, Client) {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    (servers, a, b)
}

/// Two gateways, and two stores that can lead the system region.
async fn two_stores() -> (MemoryCluster, [TestServer; 2], Client, Client) {
    let cluster = MemoryCluster::builder().stores(2).build();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    (cluster, servers, a, b)
}

async fn run(client: &Client, text: &str) {
    client.batch_execute(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
}

/// The only value of a boolean statement.
async fn is(client: &Client, text: &str) -> bool {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0) == Some("t")),
        _ => None,
    });
    row.expect("a row")
}

async fn refused(client: &Client, text: &str) -> SqlState {
    let error = client.simple_query(text).await.expect_err(text);
    error.code().unwrap_or_else(|| panic!("{error}")).clone()
}

/// Sends a statement that waits.
async fn waits(server: &TestServer, client: Client, text: &'static str) -> tokio::task::JoinHandle<(Client, Outcome)> {
    let waiting = || server.cluster.row_locks().iter().filter(|lock| lock.wait.is_some()).count();
    let before = waiting();
    let statement = tokio::spawn(async move {
        let outcome = client.batch_execute(text).await.map_err(|error| {
            let error = error.as_db_error().expect("an error of the server");
            (error.code().code().to_owned(), error.detail().unwrap_or_default().to_owned())
        });
        (client, outcome)
    });
    eventually("the statement waits", || waiting() > before).await;
    statement
}

type Outcome = Result<(), (String, String)>;

async fn ended(statement: tokio::task::JoinHandle<(Client, Outcome)>) -> (Client, Outcome) {
    tokio::time::timeout(PATIENCE, statement).await.expect("it ends").expect("no panic")
}

#[tokio::test]
async fn a_lock_of_one_gateway_is_one_of_all_and_ends_with_its_session() {
    let (servers, a, b) = two().await;
    run(&a, "select pg_advisory_lock(1), pg_advisory_lock_shared(2)").await;
    assert!(!is(&b, "select pg_try_advisory_lock(1)").await);
    assert!(is(&b, "select pg_try_advisory_lock_shared(2)").await);
    let waiting = waits(&servers[1], b, "select pg_advisory_lock(1)").await;
    drop(a);
    let (b, outcome) = ended(waiting).await;
    assert_eq!(outcome, Ok(()));
    let c = servers[0].connect().await;
    assert!(!is(&c, "select pg_try_advisory_lock(1)").await);
    run(&b, "select pg_advisory_unlock(1), pg_advisory_unlock_shared(2)").await;
    assert!(is(&c, "select pg_try_advisory_lock(1) and pg_try_advisory_lock(2)").await);
}

/// A session that is cancelled while it waits, or ends, leaves nothing behind.
#[tokio::test]
async fn a_wait_that_is_given_up_leaves_nothing() {
    let (servers, a, b) = two().await;
    run(&a, "select pg_advisory_lock(1)").await;
    run(&b, "set statement_timeout = '100ms'").await;
    for _ in 0..3 {
        assert_eq!(refused(&b, "select pg_advisory_lock(1)").await, SqlState::QUERY_CANCELED);
    }
    let (c, token) = (servers[1].connect().await, b.cancel_token());
    run(&b, "reset statement_timeout").await;
    let waiting = waits(&servers[1], b, "select pg_advisory_lock(1)").await;
    token.cancel_query(tokio_postgres::NoTls).await.expect("cancels");
    let (b, outcome) = ended(waiting).await;
    assert_eq!(outcome.unwrap_err().0, "57014");
    run(&a, "select pg_advisory_unlock(1)").await;
    assert!(is(&c, "select pg_try_advisory_lock(1)").await);
    run(&c, "select pg_advisory_unlock(1)").await;
    assert!(is(&b, "select pg_try_advisory_lock(1)").await);
}

/// Sessions wait for each other's locks: both advisory; or one for a row, under the name of its transaction, and the
/// other for an advisory lock of the session.
#[tokio::test]
async fn deadlocks_among_advisory_locks_and_rows_are_found() {
    let cases = [
        ("select pg_advisory_lock(1)", "select pg_advisory_lock(2)", ["ExclusiveLock on advisory lock [5,0,1,1]"; 2]),
        ("select pg_advisory_lock_shared(1)", "update t set n = 1", ["advisory lock [5,0,1,1]", "transaction"]),
        ("select pg_advisory_xact_lock(1)", "update t set n = 1", ["advisory lock [5,0,1,1]", "transaction"]),
    ];
    for (first, second, words) in cases {
        let (servers, a, b) = two().await;
        run(&a, "create table t (id int primary key, n int); insert into t values (1, 0)").await;
        run(&a, &format!("begin; {first}")).await;
        run(&b, &format!("begin; {second}")).await;
        // Each wants what the other one has.
        let a = waits(&servers[0], a, second).await;
        let (_b, of_b) = {
            let text: &'static str = if first.contains("shared") { "select pg_advisory_lock(1)" } else { first };
            let b = tokio::spawn(async move {
                let outcome = b.batch_execute(text).await.map_err(|error| {
                    let error = error.as_db_error().expect("an error of the server");
                    (error.code().code().to_owned(), error.detail().unwrap_or_default().to_owned())
                });
                b.batch_execute("rollback; select pg_advisory_unlock_all()").await.expect("ends");
                (b, outcome)
            });
            // The victim is one of both.
            let (_a, of_a) = ended(a).await;
            if let Err((code, detail)) = &of_a {
                assert_eq!(code, "40P01");
                check(detail, words);
                run(&_a, "rollback; select pg_advisory_unlock_all()").await;
            }
            let (b, of_b) = ended(b).await;
            assert_eq!(of_a.is_ok(), of_b.is_err(), "{first}, {second}: {of_a:?} {of_b:?}");
            (b, of_b)
        };
        if let Err((code, detail)) = of_b {
            assert_eq!(code, "40P01");
            check(&detail, words);
        }
    }
}

fn check(detail: &str, words: [&str; 2]) {
    assert_eq!(detail.lines().count(), 2, "{detail}");
    assert!(words.iter().all(|word| detail.contains(word)), "{detail}");
}

/// The lease of a node ends: others take its locks, and its sessions end before they do anything else.
#[tokio::test]
async fn a_node_that_sleeps_past_its_lease_has_lost_its_locks() {
    let (cluster, servers, a, b) = two_stores().await;
    run(&a, "create table t (id int primary key, n int); insert into t values (1, 0)").await;
    let (idle, writer) = (servers[0].connect().await, servers[0].connect().await);
    run(&idle, "select pg_advisory_lock(1)").await;
    run(&writer, "begin; select pg_advisory_xact_lock(2); update t set n = 7").await;
    assert!(!is(&b, "select pg_try_advisory_lock(1) or pg_try_advisory_lock(2)").await);
    cluster.tso().advance_ms(PAST_THE_LEASE_MS);
    // The queue ends too when its node sleeps.
    cluster.move_leader(&Key::default(), StoreId::new(2));
    assert!(is(&b, "select pg_try_advisory_lock(1) and pg_try_advisory_lock(2)").await);
    let error = writer.batch_execute("commit").await.expect_err("it has lost its lock");
    let error = error.as_db_error().expect("an error of the server");
    assert_eq!((error.code().code(), error.severity()), ("57P01", "FATAL"));
    assert_eq!(error.message(), "terminating connection because its advisory locks are lost");
    eventually("the other session of the node has ended too", || idle.is_closed()).await;
    assert!(!a.is_closed(), "one without locks goes on");
    assert!(is(&a, "select n = 0 from t").await, "nothing was committed");
    assert!(!is(&a, "select pg_try_advisory_lock(1)").await);
    run(&b, "select pg_advisory_unlock_all()").await;
    assert!(is(&a, "select pg_try_advisory_lock(1)").await, "the node has a new term");
}

/// A node that is gone without a word: its locks are free when its lease is over, also for one who waits in line.
#[tokio::test]
async fn who_waits_for_a_dead_node_gets_the_lock_when_its_lease_is_over() {
    let (servers, a, b) = two().await;
    run(&a, "select pg_advisory_lock(1)").await;
    let waiting = waits(&servers[1], b, "select pg_advisory_lock(1)").await;
    servers[0].cluster.tso().advance_ms(PAST_THE_LEASE_MS);
    // What the memory of the leader says of the queue ends with the session.
    let (run, read) = ("create table t (id int primary key)", "select count(*) from t");
    let other = servers[1].connect().await;
    other.batch_execute(run).await.expect("creates");
    assert_eq!(refused(&a, read).await.code(), "57P01", "what it has read is from after its lease");
    let (_b, outcome) = ended(waiting).await;
    assert_eq!(outcome, Ok(()));
}

/// The queue is lost with the memory of its leader. The record is not.
#[tokio::test]
async fn a_lock_survives_the_loss_of_its_queue() {
    let (cluster, servers, a, b) = two_stores().await;
    run(&a, "select pg_advisory_lock(1)").await;
    cluster.move_leader(&Key::default(), StoreId::new(2));
    assert!(!is(&b, "select pg_try_advisory_lock(1)").await);
    let c = servers[1].connect().await;
    let waiting = tokio::spawn(async move {
        c.batch_execute("select pg_advisory_lock(1)").await.expect("takes the lock");
        c
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    assert!(is(&a, "select pg_advisory_unlock(1)").await);
    tokio::time::timeout(PATIENCE, waiting).await.expect("it ends").expect("no panic");
    assert!(!is(&b, "select pg_try_advisory_lock(1)").await);
}

#[tokio::test]
async fn locks_are_bounded() {
    let advisory = AdvisoryConfig { session_max: 3, node_max: 4, ..gateway_config().advisory };
    let config = SqlConfig { advisory, ..gateway_config() };
    let server = TestServer::with(config, MemoryCluster::new(), Duration::from_secs(1)).await;
    let (a, b) = (server.connect().await, server.connect().await);
    run(&a, "select pg_advisory_lock(1), pg_advisory_lock(2), pg_advisory_lock(3), pg_advisory_lock(3)").await;
    assert_eq!(refused(&a, "select pg_try_advisory_lock(4)").await.code(), "53200");
    assert!(is(&b, "select pg_try_advisory_lock(4)").await);
    assert_eq!(refused(&b, "select pg_advisory_xact_lock(5)").await.code(), "53200", "the node is full");
    run(&a, "select pg_advisory_unlock(1)").await;
    assert!(is(&b, "select pg_try_advisory_lock(5)").await);
    drop(a);
    eventually("the room of a session that has ended", || server.server.connections() == 1).await;
    assert!(is(&b, "select pg_try_advisory_lock(6)").await);
}

/// A statement that writes and meets a conflict runs again: what it has taken before does not count twice.
#[tokio::test]
async fn an_exclusive_lock_is_never_held_by_two() {
    let (servers, a, _b) = two().await;
    run(&a, "create table t (id int primary key, n int); insert into t values (1, 0)").await;
    let mut tasks = Vec::new();
    for at in 0..8 {
        let client = servers[at % 2].connect().await;
        tasks.push(tokio::spawn(async move {
            for round in 0..10 {
                let (lock, unlock) = match (at + round) % 3 {
                    0 => ("begin; select pg_advisory_xact_lock(9)", "commit"),
                    1 => ("select pg_advisory_lock(9)", "select pg_advisory_unlock(9)"),
                    _ => ("begin; select pg_advisory_lock_shared(8), pg_advisory_xact_lock(9)", "commit"),
                };
                client.batch_execute(lock).await.expect("locks");
                let text = "select n from t where id = 1";
                let rows = client.simple_query(text).await.expect("reads");
                let n: i64 = rows
                    .iter()
                    .find_map(|m| match m {
                        SimpleQueryMessage::Row(row) => row.get(0).and_then(|n| n.parse().ok()),
                        _ => None,
                    })
                    .expect("a number");
                // Without the lock, an increment would be lost.
                client.batch_execute(&format!("update t set n = {} where id = 1", n + 1)).await.expect("writes");
                client.batch_execute(unlock).await.expect("unlocks");
            }
        }));
    }
    for task in tasks {
        tokio::time::timeout(PATIENCE, task).await.expect("it ends").expect("no panic");
    }
    assert!(is(&a, "select n = 80 from t").await);
}
