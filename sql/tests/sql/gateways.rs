//! Schema changes seen from several gateways of one cluster, and what a statement costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::support::{HeldReads, TestServer};
use kv::memory::MemoryCluster;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Longer than a lease, in the oracle's time.
const PAST_THE_LEASE_MS: u64 = 6_000;

async fn run(client: &Client, text: &str) -> Vec<i64> {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).expect("no NULL").parse().expect("an integer")),
        _ => None,
    });
    rows.collect()
}

async fn refused(client: &Client, text: &str) -> SqlState {
    let error = client.simple_query(text).await.expect_err(text);
    error.code().unwrap_or_else(|| panic!("{error}")).clone()
}

/// Two gateways, with a client of each.
async fn two() -> ([TestServer; 2], Client, Client) {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    (servers, a, b)
}

/// Statements of a round, and rounds of a cost.
const STATEMENTS: i64 = 20;
const ROUNDS: i64 = 5;

/// The requests to stores and to the oracle of one statement: of the round that has the fewest, which reads no catalog.
/// The gateway renews its lease now and then, in some other round, or too late on a machine under load. `statement`
/// gets a number of its own each time.
async fn cost(server: &TestServer, mut statement: impl AsyncFnMut(i64)) -> (f64, f64) {
    let (mut stores, mut oracle, mut reads) = (u64::MAX, u64::MAX, f64::INFINITY);
    let read = || server.metric("sql_catalog_reads_total ").expect("counted");
    for round in 0..ROUNDS {
        let (before, read_before) = (server.requests(), read());
        for i in 0..STATEMENTS {
            statement(round * STATEMENTS + i).await;
        }
        let now = server.requests();
        (stores, oracle) = (stores.min(now.0 - before.0), oracle.min(now.1 - before.1));
        reads = reads.min(read() - read_before);
    }
    assert_eq!(reads, 0.0, "reads of the catalog");
    (stores as f64 / STATEMENTS as f64, oracle as f64 / STATEMENTS as f64)
}

/// Before, each transaction read the version record, and took its timestamp before it read.
#[tokio::test]
async fn statements_cost_no_catalog_read_and_no_timestamp_beside_their_reads() {
    // The oracle is on the gateway's node, or on another one.
    for (server, messages) in [(TestServer::start().await, 0.0), (TestServer::over(&MemoryCluster::new()).await, 1.0)] {
        let client = server.connect().await;
        run(&client, "create table t (id int primary key, v int)").await;
        let insert = client.prepare("insert into t values ($1, 0)").await.expect("prepares");
        let select = client.prepare("select v from t where id = $1").await.expect("prepares");
        let update = client.prepare("update t set v = 1 where id = $1").await.expect("prepares");
        // The first write of the region has its timestamp, and the region is located.
        client.execute(&insert, &[&-1]).await.expect("inserts");
        let text = async |texts: &[String]| {
            for text in texts {
                run(&client, text).await;
            }
        };
        let one = async |statement, id: i64| {
            assert_eq!(client.execute(statement, &[&(id as i32)]).await.expect("runs"), 1);
        };
        let block = |texts: &[&str]| {
            let all = ["begin"].iter().chain(texts).chain(&["commit"]);
            all.map(ToString::to_string).collect::<Vec<_>>()
        };

        let inserts = cost(&server, async |id| one(&insert, id).await).await;
        assert_eq!(inserts, (1.0, 0.0), "a commit in one phase each, for which the store takes the timestamp");
        let selects = cost(&server, async |id| one(&select, id).await).await;
        assert_eq!(selects, (1.0, 0.0), "the store takes the timestamp of a read");
        let ranges = cost(&server, async |_| text(&["select id from t where id between 10 and 14".to_string()]).await);
        assert_eq!(ranges.await, (1.0, 0.0), "also of a range");
        let updates = cost(&server, async |id| one(&update, id).await).await;
        assert_eq!(updates, (2.0, 0.0), "a read and a commit each");
        let looks = cost(&server, async |id| {
            text(&[format!("insert into t values ({id}, 3) on conflict (id) do nothing")]).await;
        });
        let why = "a look for the key, and another one behind whoever may be about to delete it";
        assert_eq!(looks.await, (2.0, 0.0), "{why}");
        let blocks = cost(&server, async |id| {
            let (select, update) =
                (format!("select v from t where id = {id}"), format!("update t set v = 2 where id = {id}"));
            text(&block(&[&select, &update])).await;
        });
        assert_eq!(
            blocks.await,
            (3.0, messages),
            "two reads and a commit each, which comes after all that was acknowledged"
        );
        let blocks = cost(&server, async |id| {
            text(&block(&[&format!("insert into t values ({}, 0)", STATEMENTS * ROUNDS + id)])).await;
        });
        assert_eq!(blocks.await, (2.0, messages), "a look for the key and a commit each");
        for (level, timestamps) in [("read committed", 0.0), ("repeatable read", messages)] {
            let blocks = cost(&server, async |_| {
                text(&[format!("begin isolation level {level}"), "select 1".to_string(), "commit".to_string()]).await;
            });
            assert_eq!(blocks.await, (0.0, timestamps), "a block with one snapshot has it after its first statement");
        }
        let blocks = cost(&server, async |_| {
            text(&block(&["select v from t where id = 1", "select v from t where id = 2"])).await;
        });
        assert_eq!(blocks.await, (2.0, 0.0), "every statement has a snapshot, which its read takes");
    }
}

/// The snapshot of a block is that of its first statement, whatever it reads.
#[tokio::test]
async fn a_block_sees_nothing_that_is_committed_after_its_first_statement() {
    let (_servers, a, b) = two().await;
    run(&a, "create table t (id int primary key, v int); insert into t values (1, 0), (2, 0)").await;
    for (round, first) in
        ["select v from t where id = 1", "select 1", "update t set v = v where false"].iter().enumerate()
    {
        run(&b, "begin isolation level repeatable read").await;
        run(&a, &format!("update t set v = {round} where id = 1")).await;
        run(&b, first).await;
        run(&a, "update t set v = 7").await;
        assert_eq!(run(&b, "select v from t where id = 1").await, [round as i64], "{first}");
        run(&b, "commit").await;
    }
}

/// Every statement of a READ COMMITTED block sees the newest data, and the newest catalog.
#[tokio::test]
async fn a_statement_sees_what_was_committed_through_other_gateways_before_it() {
    let (_servers, a, b) = two().await;
    run(&a, "create table t (id int primary key, v int); insert into t values (1, 0)").await;
    run(&b, "begin; select v from t").await;
    run(&a, "update t set v = 7; create table u (id int primary key); insert into u values (3)").await;
    assert_eq!(run(&b, "select v from t").await, [7]);
    assert_eq!(run(&b, "select id from u").await, [3]);
    run(&a, "truncate u").await;
    assert_eq!(run(&b, "select count(*) from u").await, [0]);
    run(&b, "insert into u values (4); drop table t; commit").await;
    assert_eq!(run(&a, "select id from u").await, [4]);
}

/// Before, the other gateway saw the table because it read the catalog itself.
#[tokio::test]
async fn a_schema_change_is_visible_through_all_gateways_once_it_is_acknowledged() {
    let (_servers, a, b) = two().await;
    for round in 0..5 {
        let (a, b) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        run(a, "create table t (id int primary key)").await;
        run(b, "insert into t values (1), (2)").await;
        run(a, "truncate t").await;
        assert_eq!(run(b, "select count(*) from t").await, [0]);
        run(a, "begin; create table u (id int); insert into u values (7); insert into t values (3); commit").await;
        assert_eq!(run(b, "select u.id from u").await, [7]);
        run(a, "drop table t; drop table u").await;
        assert_eq!(refused(b, "select * from t").await, SqlState::UNDEFINED_TABLE);
    }
}

/// A statement waits for the schema change that closes its table, and is planned anew.
#[tokio::test]
async fn statements_wait_for_a_schema_change_of_their_table() {
    let (servers, a, b) = two().await;
    run(&a, "create table t (id int primary key); insert into t values (1), (2), (3); create table u (id int)").await;
    for (end, rows) in [("insert into t values (9); commit", 1), ("rollback", 1)] {
        run(&a, "begin; truncate t").await;
        let other = servers[1].connect().await;
        let waiting = tokio::spawn(async move { run(&other, "select count(*) from t").await });
        // Other tables are open.
        run(&b, "insert into u values (1)").await;
        run(&a, end).await;
        assert_eq!(waiting.await.expect("no panic"), [rows], "{end}");
    }
    // Within a transaction that has another snapshot it fails.
    run(&b, "begin isolation level repeatable read; select * from u").await;
    run(&a, "truncate t").await;
    assert_eq!(refused(&b, "insert into t values (1)").await, SqlState::T_R_SERIALIZATION_FAILURE);
    run(&b, "rollback; insert into t values (1)").await;
    assert_eq!(run(&a, "select id from t").await, [1]);
}

/// Before, a commit at the same moment on a gateway that had not heard of the truncation was acknowledged and lost.
#[tokio::test]
async fn a_transaction_that_overlaps_a_truncation_commits_before_it_or_fails() {
    let (_servers, a, b) = two().await;
    run(&a, "create table t (id int primary key); create table u (id int)").await;
    // The truncation gives up waiting.
    run(&b, "begin; insert into t values (1); insert into u values (1)").await;
    run(&a, "truncate t").await;
    assert_eq!(refused(&b, "commit").await, SqlState::T_R_SERIALIZATION_FAILURE);
    assert_eq!(run(&a, "select count(*) from u").await, [0]);
    // A reader keeps its snapshot.
    run(&a, "insert into t values (1), (2)").await;
    assert_eq!(run(&b, "begin isolation level repeatable read; select count(*) from t").await, [2]);
    run(&a, "truncate t").await;
    assert_eq!(run(&b, "select count(*) from t").await, [2]);
    assert_eq!(run(&b, "insert into u values (2); commit; select count(*) from t").await, [0]);
}

/// The gateway sleeps past the end of its lease, then commits what it has begun before.
#[tokio::test]
async fn a_paused_gateway_cannot_commit_into_a_truncated_table() {
    let (servers, a, b) = two().await;
    run(&a, "create table t (id int primary key); create table u (id int primary key)").await;
    run(&b, "begin; insert into t values (1)").await;
    let other = servers[1].connect().await;
    run(&other, "begin; insert into u values (1)").await;
    servers[1].cut();
    servers[0].cluster.tso().advance_ms(PAST_THE_LEASE_MS);
    run(&a, "truncate t").await;
    assert_eq!(refused(&b, "commit").await, SqlState::T_R_SERIALIZATION_FAILURE);
    // The gateway renews its lease with its next statement.
    run(&b, "insert into t values (2)").await;
    assert_eq!(run(&a, "select id from t").await, [2]);
    // A transaction that is older than the new lease commits under it, if its tables are the same.
    run(&other, "commit").await;
    assert_eq!(run(&a, "select id from u").await, [1]);
    assert_eq!(servers[1].metric("sql_lease_waits_total "), Some(1.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inserts_through_one_gateway_survive_truncations_through_another() {
    const TRUNCATIONS: u64 = 8;
    let (servers, a, _b) = two().await;
    run(&a, "create table t (id int primary key)").await;
    let (acknowledged, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for writer in 0..4 {
        let (acknowledged, stop) = (acknowledged.clone(), stop.clone());
        let client = servers[1].connect().await;
        writers.push(tokio::spawn(async move {
            let mut inserted = Vec::new();
            let mut id = writer;
            while !stop.load(Ordering::Acquire) {
                let truncated = acknowledged.load(Ordering::Acquire);
                id += 4;
                let text = match id % 3 {
                    0 => format!("begin; insert into t values ({id}); commit"),
                    _ => format!("insert into t values ({id})"),
                };
                match client.simple_query(&text).await {
                    Ok(_) => inserted.push((id, truncated)),
                    Err(error) => {
                        assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{error}");
                        let _ = client.simple_query("rollback").await;
                    }
                }
            }
            inserted
        }));
    }
    let mut seen = 0;
    for round in 1..=TRUNCATIONS {
        // Some rows must be there.
        while seen == 0 {
            seen = run(&a, "select count(*) from t").await[0];
        }
        run(&a, "truncate t").await;
        acknowledged.store(round, Ordering::Release);
        seen = 0;
    }
    while run(&a, "select count(*) from t").await[0] < 20 {}
    stop.store(true, Ordering::Release);
    let mut kept = Vec::new();
    for writer in writers {
        let inserted = writer.await.expect("no panic");
        kept.extend(inserted.iter().filter(|(_, truncated)| *truncated == TRUNCATIONS).map(|(id, _)| *id));
    }
    let present = run(&a, "select id from t").await;
    let missing: Vec<i64> = kept.into_iter().filter(|id| !present.contains(id)).collect();
    assert_eq!(missing, Vec::<i64>::new(), "acknowledged after the last truncation, and not there");
}

/// Concurrent changes of the same tables, in any order: each succeeds or gets a clean error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_schema_changes_never_wait_for_each_other_for_ever() {
    let (servers, a, _b) = two().await;
    run(&a, "create table t (id int); create table u (id int)").await;
    let mut changers = Vec::new();
    for at in 0..4 {
        let client = servers[at % 2].connect().await;
        changers.push(tokio::spawn(async move {
            let tables = if at < 2 { "t, u" } else { "u, t" };
            let creates = "create table if not exists t (id int); create table if not exists u (id int)";
            for round in 0..6 {
                let text = match (at + round) % 4 {
                    0 => format!("drop table if exists {tables}"),
                    1 => format!("truncate {tables}"),
                    2 => format!("begin; truncate {}; drop table {}; commit", &tables[..1], &tables[3..]),
                    _ => creates.to_owned(),
                };
                if let Err(error) = client.simple_query(&text).await {
                    let clean = [
                        SqlState::T_R_SERIALIZATION_FAILURE,
                        SqlState::UNDEFINED_TABLE,
                        SqlState::DUPLICATE_TABLE,
                        SqlState::LOCK_NOT_AVAILABLE,
                    ];
                    assert!(error.code().is_some_and(|code| clean.contains(code)), "{text}: {error}");
                    let _ = client.simple_query("rollback").await;
                }
            }
        }));
    }
    for changer in changers {
        changer.await.expect("no panic");
    }
    run(&a, "create table if not exists t (id int); truncate t; insert into t values (1)").await;
    assert_eq!(run(&a, "select id from t").await, [1]);
}

/// The gateway is told of the truncation while the first read of a statement is on its way to the store, which then
/// takes a start_ts above the truncation. Without a second look at the catalog, the block saw the old rows of one table
/// and the new row of the other.
#[tokio::test]
async fn a_read_that_is_overtaken_by_a_truncation_is_planned_again() {
    let cluster = MemoryCluster::new();
    let reads = Arc::new(HeldReads::new(&cluster));
    let a = TestServer::over(&cluster).await;
    let b = TestServer::over_endpoint(&cluster, reads.clone()).await;
    let (writer, reader) = (a.connect().await, b.connect().await);
    run(&writer, "create table t (id int primary key, v int); create table u (id int primary key, v int)").await;
    run(&writer, "insert into t values (1, 0); insert into u values (1, 0)").await;
    let prepared = reader.prepare("select v from t where id = $1").await.expect("prepares");
    for round in 1..=4 {
        let in_block = round % 2 == 0;
        if in_block {
            run(&reader, "begin").await;
        }
        reads.hold();
        let read = async {
            match round {
                1 | 2 => run(&reader, "select v from t").await,
                _ => {
                    let rows = reader.query(&prepared, &[&1i32]).await.expect("no error");
                    rows.iter().map(|row| i64::from(row.get::<_, i32>(0))).collect()
                }
            }
        };
        let change = async {
            reads.until_held().await;
            run(&writer, &format!("begin; truncate t; insert into t values (1, {round})")).await;
            run(&writer, &format!("update u set v = {round} where id = 1; commit")).await;
            reads.release();
        };
        let (found, ()) = tokio::join!(read, change);
        assert_eq!((found, run(&reader, "select v from u").await), (vec![round], vec![round]), "round {round}");
        if in_block {
            run(&reader, "commit").await;
        }
    }
}
