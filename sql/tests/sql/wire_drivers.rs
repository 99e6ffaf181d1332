//! A real driver against the server: tokio-postgres, which prepares all statements, uses binary formats and pipelines.

use std::time::Duration;

use super::support::client::{Raw, bind, cancel, execute, named, parse, query, sync};
use super::support::{PATIENCE, TestServer, eventually, gateway_config};
use futures::TryStreamExt;
use kv::memory::{Faults, MemoryCluster};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, SimpleQueryMessage};

async fn with_table(server: &TestServer) -> Client {
    let client = server.connect().await;
    client
        .batch_execute("create table t (id int8 primary key, n int, s text, f float8, ok bool, raw bytea)")
        .await
        .expect("creates");
    client
}

/// Every call to the store waits, almost surely far longer than a test.
fn stalled() -> Faults {
    Faults { delay_max: Duration::from_secs(1_000_000), ..Faults::none() }
}

fn state(error: &tokio_postgres::Error) -> &str {
    error.code().map_or("", SqlState::code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_binary_in_both_directions() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let insert = client.prepare("insert into t values ($1, $2, $3, $4, $5, $6)").await.expect("prepares");
    assert_eq!(insert.params(), [Type::INT8, Type::INT4, Type::TEXT, Type::FLOAT8, Type::BOOL, Type::BYTEA]);
    for id in 0..10i64 {
        let n = i32::try_from(id).expect("small") - 5;
        let (s, f, ok, raw) = (format!("é{id}"), 0.1 + n as f64, id % 2 == 0, vec![0u8, 255, n.unsigned_abs() as u8]);
        let params: [&(dyn ToSql + Sync); 6] = [&id, &n, &s, &f, &ok, &raw];
        assert_eq!(client.execute(&insert, &params).await.expect("inserts"), 1);
    }
    client.execute("insert into t (id) values ($1)", &[&100i64]).await.expect("inserts");
    let rows = client.query("select * from t where id >= $1 order by id desc", &[&8i64]).await.expect("selects");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0].get::<_, Option<i32>>(1), None);
    assert_eq!(rows[0].get::<_, Option<Vec<u8>>>("raw"), None);
    assert_eq!(rows[1].get::<_, i64>("id"), 9);
    assert_eq!(rows[1].get::<_, i32>("n"), 4);
    assert_eq!(rows[1].get::<_, String>("s"), "é9");
    assert!((rows[1].get::<_, f64>("f") - 4.1).abs() < 1e-12);
    assert!(!rows[1].get::<_, bool>("ok"));
    assert_eq!(rows[1].get::<_, Vec<u8>>("raw"), [0, 255, 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simple_queries_and_errors() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let messages =
        client.simple_query("insert into t (id) values (1), (2); select id from t order by id").await.expect("runs");
    let rows: Vec<&str> = messages
        .iter()
        .filter_map(|m| match m {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    assert_eq!(rows, ["1", "2"]);
    let error = client.simple_query("select nope from t").await.expect_err("no such column");
    assert_eq!(state(&error), "42703");
    let error = client.execute("insert into t (id) values ($1)", &[&1i64]).await.expect_err("taken");
    assert_eq!(state(&error), "23505");
    let error = error.as_db_error().expect("from the server");
    assert_eq!((error.table(), error.constraint()), (Some("t"), Some("t_pkey")));
    let error = client.query("select * from nope", &[]).await.expect_err("no such table");
    assert_eq!(state(&error), "42P01");
    assert_eq!(client.query_one("select 1 + 1", &[]).await.expect("the session continues").get::<_, i32>(0), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_commit_and_roll_back() {
    let server = TestServer::start().await;
    let mut client = with_table(&server).await;
    let txn = client.transaction().await.expect("begins");
    txn.execute("insert into t (id) values (1)", &[]).await.expect("inserts");
    txn.rollback().await.expect("rolls back");
    let txn = client.transaction().await.expect("begins");
    txn.execute("insert into t (id) values (2)", &[]).await.expect("inserts");
    txn.commit().await.expect("commits");
    let txn = client.build_transaction().read_only(true).start().await.expect("begins");
    let error = txn.execute("insert into t (id) values (3)", &[]).await.expect_err("read only");
    assert_eq!(state(&error), "25006");
    let error = txn.query("select 1", &[]).await.expect_err("failed");
    assert_eq!(state(&error), "25P02");
    drop(txn);
    let ids = client.query("select id from t", &[]).await.expect("selects");
    assert_eq!(ids.iter().map(|r| r.get::<_, i64>(0)).collect::<Vec<_>>(), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn portals_return_rows_in_parts() {
    let server = TestServer::start().await;
    let mut client = with_table(&server).await;
    let values: Vec<String> = (0..1000).map(|id| format!("({id})")).collect();
    client.batch_execute(&format!("insert into t (id) values {}", values.join(", "))).await.expect("inserts");
    let txn = client.transaction().await.expect("begins");
    let portal = txn.bind("select id from t order by id", &[]).await.expect("binds");
    let mut seen = 0i64;
    loop {
        let rows = txn.query_portal(&portal, 300).await.expect("fetches");
        for row in &rows {
            assert_eq!(row.get::<_, i64>(0), seen);
            seen += 1;
        }
        if rows.len() < 300 {
            break;
        }
    }
    assert_eq!(seen, 1000);
    txn.commit().await.expect("commits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_statements_answer_in_order() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let insert = client.prepare("insert into t (id) values ($1)").await.expect("prepares");
    let ids: Vec<i64> = (0..200).collect();
    let inserts = ids.iter().map(|id| {
        let (client, insert) = (&client, &insert);
        async move { client.execute(insert, &[id]).await }
    });
    for done in futures::future::join_all(inserts).await {
        assert_eq!(done.expect("inserts"), 1);
    }
    let select = client.prepare("select id from t where id = $1").await.expect("prepares");
    let selects = ids.iter().map(|id| {
        let (client, select) = (&client, &select);
        async move { client.query_one(select, &[id]).await.map(|row| row.get::<_, i64>(0)) }
    });
    let found = futures::future::try_join_all(selects).await.expect("selects");
    assert_eq!(found, ids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_results_stream() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let text = "x".repeat(1000);
    for start in (0..5_000).step_by(500) {
        let values: Vec<String> = (start..start + 500).map(|id| format!("({id}, '{text}')")).collect();
        client.batch_execute(&format!("insert into t (id, s) values {}", values.join(", "))).await.expect("inserts");
    }
    let no_parameters: [&(dyn ToSql + Sync); 0] = [];
    let stream = client.query_raw("select * from t", no_parameters).await.expect("selects");
    let count = stream.try_fold(0, |count, row| async move { Ok(count + row.get::<_, &str>("s").len()) }).await;
    assert_eq!(count.expect("streams"), 5_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_stops_a_statement_that_waits_for_the_store() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.batch_execute("insert into t (id) values (1)").await.expect("inserts");
    let token = client.cancel_token();
    server.cluster.set_faults(stalled());
    let waiting = tokio::spawn(async move {
        let error = client.query("select * from t", &[]).await.expect_err("canceled");
        (client, state(&error).to_owned())
    });
    // The request may not have begun yet, so a first cancel may be dropped.
    let canceled = async {
        while !waiting.is_finished() {
            token.cancel_query(tokio_postgres::NoTls).await.expect("reaches the server");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, canceled).await.expect("canceled in time");
    let (client, state) = waiting.await.expect("no panic");
    assert_eq!(state, "57014");
    server.cluster.set_faults(Faults::none());
    while let Err(error) = client.query("select * from t", &[]).await {
        assert_eq!(error.code().map(SqlState::code), Some("57014"), "a cancel that was still under way");
    }
}

/// pgjdbc sends a limit of one row with statements without rows, which disabled their retry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_sync_has_not_committed_holds_its_row() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.batch_execute("insert into t (id, n) values (1, 0)").await.expect("inserts");
    let mut raw = Raw::login(server.address).await;
    raw.send(&parse("u", "update t set n = n + 1 where id = 1", &[])).await;
    raw.send(&bind("", "u", &[], &[], &[])).await;
    raw.send(&execute("", 1)).await;
    let updates = "sql_statements_total{kind=\"update\"} ";
    eventually("the update has its snapshot", || server.metric(updates) >= Some(1.0)).await;
    let mut update = Box::pin(client.batch_execute("update t set n = n * 10 where id = 1"));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut update).await;
    assert!(early.is_err(), "it waits for the row: {early:?}");
    raw.send(&sync()).await;
    let replies = ["ParseComplete", "BindComplete", "CommandComplete UPDATE 1", "ReadyForQuery I"];
    assert_eq!(raw.transcript().await, replies);
    update.await.expect("updates");
    let row = client.query_one("select n from t", &[]).await.expect("selects");
    assert_eq!(row.get::<_, i32>(0), 10, "it has seen the newest row");
}

/// All statements were parsed before the first ran, and their trees kept: gigabytes for a string of a few megabytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_string_of_very_many_statements_is_refused_before_it_runs() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let many = |count: usize| format!("insert into t (id) values (1);{}", "select 1;".repeat(count));
    let error = client.batch_execute(&many(1_000_000)).await.expect_err("too many");
    assert_eq!(state(&error), "54000");
    let error = client.batch_execute(&(many(10_000) + "selec 1")).await.expect_err("does not parse");
    assert_eq!(state(&error), "42601");
    assert_eq!(client.query("select id from t", &[]).await.expect("selects").len(), 0, "nothing has run");
    client.batch_execute(&many(10_000)).await.expect("runs");
    assert_eq!(client.query("select id from t", &[]).await.expect("selects").len(), 1);
}

/// Only their number was bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_and_portals_are_bounded_in_bytes() {
    let server = TestServer::start().await;
    let mut raw = Raw::login(server.address).await;
    let large = format!("select '{}'", "x".repeat(4 << 20));
    let state = |replies: Vec<String>| replies.join(" ").contains("ErrorResponse ERROR 53200");
    for (name, refused) in [("a", false), ("b", true), ("", true)] {
        raw.send(&parse(name, &large, &[])).await;
        raw.send(&sync()).await;
        assert_eq!(state(raw.transcript().await), refused, "statement {name:?}");
    }
    raw.send(&named(b'C', b'S', "a")).await;
    raw.send(&parse("b", &large, &[])).await;
    raw.send(&sync()).await;
    assert!(!state(raw.transcript().await), "Close frees the bytes of the statement");
    raw.send(&query("begin")).await;
    raw.transcript().await;
    raw.send(&parse("p", "select length($1::bytea)", &[])).await;
    let value = vec![7u8; 40 << 20];
    for (name, refused) in [("a", false), ("b", true)] {
        raw.send(&bind(name, "p", &[1], &[Some(&value)], &[])).await;
        raw.send(&sync()).await;
        assert_eq!(state(raw.transcript().await), refused, "portal {name:?}");
    }
    raw.send(&query("rollback")).await;
    raw.transcript().await;
    raw.send(&bind("b", "p", &[1], &[Some(&value)], &[])).await;
    raw.send(&execute("b", 0)).await;
    raw.send(&sync()).await;
    let replies = ["BindComplete", "DataRow [\"41943040\"]", "CommandComplete SELECT 1", "ReadyForQuery I"];
    assert_eq!(raw.transcript().await, replies);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_stops_a_statement() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.batch_execute("set statement_timeout = '20ms'").await.expect("sets");
    server.cluster.set_faults(stalled());
    let error = client.query("select * from t", &[]).await.expect_err("times out");
    let error = error.as_db_error().expect("from the server");
    let (code, message) = (error.code().code(), error.message());
    assert_eq!((code, message), ("57014", "canceling statement due to statement timeout"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_transactions_and_idle_sessions_time_out() {
    let server = TestServer::start().await;
    let mut raw = Raw::login(server.address).await;
    raw.query("set idle_in_transaction_session_timeout = '20ms'").await;
    raw.query("begin").await;
    let reply = raw.reply().await.expect("a final error");
    assert_eq!(reply.field(b'C').as_deref(), Some("25P03"));
    assert_eq!(raw.reply().await, None);
    let mut raw = Raw::login(server.address).await;
    raw.query("set idle_session_timeout = '20ms'").await;
    let reply = raw.reply().await.expect("a final error");
    assert_eq!(reply.field(b'C').as_deref(), Some("57P05"));
    assert_eq!(raw.reply().await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_concurrent_increment_is_lost() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.batch_execute("insert into t (id, n) values (1, 0)").await.expect("inserts");
    let mut workers = Vec::new();
    for _ in 0..4 {
        let client = server.connect().await;
        workers.push(tokio::spawn(async move {
            let mut done = 0;
            while done < 25 {
                // The session retries the statement after a conflict. The client sees one only if that happens too
                // often.
                match client.execute("update t set n = n + 1 where id = $1", &[&1i64]).await {
                    Ok(count) => {
                        assert_eq!(count, 1);
                        done += 1;
                    }
                    Err(error) => assert_eq!(state(&error), "40001"),
                }
            }
        }));
    }
    for worker in workers {
        worker.await.expect("no panic");
    }
    let total: i32 = client.query_one("select n from t", &[]).await.expect("selects").get(0);
    assert_eq!(total, 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_waits_for_one_of_the_same_key_and_is_a_duplicate_if_that_commits() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let other = server.connect().await;
    for (end, duplicate) in [("rollback", false), ("commit", true)] {
        client.batch_execute("begin; insert into t (id) values (7)").await.expect("inserts");
        let mut insert = Box::pin(other.batch_execute("insert into t (id) values (7)"));
        let early = tokio::time::timeout(Duration::from_millis(300), &mut insert).await;
        assert!(early.is_err(), "it waits for the other one: {early:?}");
        client.batch_execute(end).await.expect("ends");
        match insert.await {
            Ok(()) => assert!(!duplicate),
            Err(error) => {
                assert!(duplicate && state(&error) == "23505", "{error}");
                assert_eq!(error.as_db_error().and_then(|e| e.constraint()), Some("t_pkey"));
            }
        }
        other.batch_execute("delete from t where id = 7").await.expect("deletes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_waits_for_transactions_and_ends_idle_sessions() {
    let mut server = TestServer::with(gateway_config(), MemoryCluster::new(), Duration::from_secs(30)).await;
    let mut idle = Raw::login(server.address).await;
    let mut busy = Raw::login(server.address).await;
    busy.query("create table t (a int primary key)").await;
    busy.query("begin").await;
    busy.query("insert into t values (1)").await;
    server.begin_stop();
    let reply = idle.reply().await.expect("a final error");
    assert_eq!(reply.field(b'C').as_deref(), Some("57P01"));
    assert_eq!(idle.reply().await, None);
    assert_eq!(busy.query("commit").await, ["CommandComplete COMMIT", "ReadyForQuery I"]);
    let reply = busy.reply().await.expect("a final error");
    assert_eq!(reply.field(b'C').as_deref(), Some("57P01"));
    drop((idle, busy));
    server.stopped().await;
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err(), "the port is closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_ends_sessions_after_the_grace_period() {
    let mut server = TestServer::with(gateway_config(), MemoryCluster::new(), Duration::from_millis(50)).await;
    let mut raw = Raw::login(server.address).await;
    raw.query("create table t (a int primary key)").await;
    raw.query("begin").await;
    let mut stuck = Raw::login(server.address).await;
    server.cluster.set_faults(stalled());
    stuck.send(&query("select * from t")).await;
    server.begin_stop();
    for raw in [&mut raw, &mut stuck] {
        let replies = raw.until_ready().await;
        let reply = replies.last().expect("a final error");
        assert_eq!(reply.field(b'C').as_deref(), Some("57P01"), "{}", reply.show());
    }
    drop((raw, stuck));
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_statements_errors_and_connections() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.execute("insert into t (id) values (1)", &[]).await.expect("inserts");
    let _ = client.query("select 1/0", &[]).await;
    eventually("a request is timed", || server.metric("sql_request_seconds_count ").is_some_and(|n| n >= 3.0)).await;
    assert_eq!(server.metric("sql_statements_total{kind=\"insert\"} "), Some(1.0));
    assert_eq!(server.metric("sql_statements_total{kind=\"schema\"} "), Some(1.0));
    assert_eq!(server.metric("sql_errors_total{class=\"22\"} "), Some(1.0));
    assert_eq!(server.metric("sql_connections "), Some(1.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_statement_is_bound_once() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.batch_execute("insert into t (id) values (1)").await.expect("inserts");
    let before = server.metric("sql_bindings_total ").expect("counted");
    let select = client.prepare("select id from t where id = $1").await.expect("prepares");
    for _ in 0..50 {
        assert_eq!(client.query(&select, &[&1i64]).await.expect("selects").len(), 1);
    }
    assert_eq!(server.metric("sql_bindings_total "), Some(before + 1.0));
    for _ in 0..50 {
        client.batch_execute("select s from t where id = 1").await.expect("selects");
    }
    assert_eq!(server.metric("sql_bindings_total "), Some(before + 2.0));
    // Changes of other tables leave its plan alone.
    for change in ["create table another (a int)", "truncate another", "drop table another"] {
        client.batch_execute(change).await.expect("changes");
        client.query(&select, &[&1i64]).await.expect("selects");
    }
    assert_eq!(server.metric("sql_bindings_total "), Some(before + 5.0), "once for each change");
    // A change of the table does not.
    client.batch_execute("truncate t").await.expect("truncates");
    for _ in 0..2 {
        assert_eq!(client.query(&select, &[&1i64]).await.expect("selects").len(), 0);
    }
    assert_eq!(server.metric("sql_bindings_total "), Some(before + 7.0), "for the change, and for the new table");
    // A plan for a name that leads to nothing is bound again once there is a table, and the other way round.
    let before = server.metric("sql_bindings_total ").expect("counted");
    for text in ["drop table if exists u", "create table u (a int)", "drop table if exists u"] {
        client.batch_execute(text).await.expect(text);
    }
    assert!(client.simple_query("select * from u").await.is_err(), "it is gone");
    assert_eq!(server.metric("sql_bindings_total "), Some(before + 4.0));
}

/// Every call to the store waits a while.
fn slow() -> Faults {
    Faults { delay_max: Duration::from_millis(100), ..Faults::none() }
}

/// A session that has sent the COMMIT of three rows to a slow store.
async fn commit_in_flight(server: &TestServer) -> Raw {
    let mut raw = Raw::login(server.address).await;
    raw.query("create table t (a int primary key)").await;
    raw.query("begin").await;
    raw.query("insert into t values (1), (2), (3)").await;
    server.cluster.set_faults(slow());
    raw.send(&query("commit")).await;
    raw
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_does_not_interrupt_a_commit() {
    let server = TestServer::start().await;
    let mut raw = commit_in_flight(&server).await;
    for _ in 0..20 {
        let mut other = Raw::open(server.address).await;
        other.send(&cancel(raw.pid, raw.secret)).await;
        assert_eq!(other.reply().await, None);
    }
    assert_eq!(raw.transcript().await, ["CommandComplete COMMIT", "ReadyForQuery I"]);
    server.cluster.set_faults(Faults::none());
    let count = raw.query("select count(*) from t").await;
    assert_eq!(count[1], "DataRow [\"3\"]", "and it hits no later statement");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disconnect_does_not_interrupt_a_commit() {
    let server = TestServer::start().await;
    let mut raw = commit_in_flight(&server).await;
    raw.shutdown().await;
    drop(raw);
    eventually("the session ends", || server.server.connections() == 0).await;
    server.cluster.set_faults(Faults::none());
    let mut raw = Raw::login(server.address).await;
    let count = raw.query("select count(*) from t").await;
    assert_eq!(count[1], "DataRow [\"3\"]");
}

/// A session that has requested more than the sockets buffer, and does not read.
async fn unread_result(server: &TestServer) -> Raw {
    let mut raw = Raw::login(server.address).await;
    raw.query("create table t (a int primary key, s text)").await;
    let text = "x".repeat(100_000);
    for id in 0..300 {
        raw.query(&format!("insert into t values ({id}, '{text}')")).await;
    }
    raw.send(&query("select * from t")).await;
    raw
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_a_statement_whose_client_does_not_read() {
    let server = TestServer::start().await;
    let mut raw = unread_result(&server).await;
    let mut other = Raw::open(server.address).await;
    assert_eq!(raw.reply().await.map(|r| r.kind), Some(b'T'), "the statement has begun");
    other.send(&cancel(raw.pid, raw.secret)).await;
    assert_eq!(other.reply().await, None);
    let lines = raw.until_ready().await;
    let error = &lines[lines.len() - 2];
    assert_eq!(error.field(b'C').as_deref(), Some("57014"), "{}", error.show());
    assert!(lines.len() < 302, "not all rows came");
    assert_eq!(raw.query("select 1").await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_does_not_delay_shutdown() {
    let mut server = TestServer::with(gateway_config(), MemoryCluster::new(), Duration::from_millis(50)).await;
    let mut raw = unread_result(&server).await;
    assert_eq!(raw.reply().await.map(|r| r.kind), Some(b'T'), "the statement has begun");
    server.begin_stop();
    server.stopped().await;
    assert_eq!(server.server.connections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_result_columns_are_refused() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let error = client.batch_execute(&format!("select {}", vec!["1"; 70_000].join(","))).await.expect_err("too many");
    assert_eq!(state(&error), "54011");
    client.batch_execute("select 1").await.expect("the connection is in order");
}
