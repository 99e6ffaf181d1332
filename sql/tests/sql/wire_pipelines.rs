//! Pipelines and their timing: errors without Flush, timeouts and cancels between messages, retries, sleeping
//! statements.

use std::time::Duration;

use super::support::client::{Raw, bind, cancel, execute, flush, named, parse, query, sync};
use super::support::{PATIENCE, TestServer, eventually, gateway_config};
use kv::memory::{Faults, MemoryCluster};
use sql::server::SqlConfig;
use tokio_postgres::error::SqlState;

const TIMEOUT: &str = "ErrorResponse ERROR 57014 canceling statement due to statement timeout";

/// Cancels the session's running statement.
async fn send_cancel(server: &TestServer, raw: &Raw) {
    let mut other = Raw::open(server.address).await;
    other.send(&cancel(raw.pid, raw.secret)).await;
    assert_eq!(other.reply().await, None);
}

/// Parse, Describe, Flush with an error waited for ever: asyncpg and libpq's pipelines send it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_is_sent_without_flush() {
    let server = TestServer::start().await;
    let mut raw = Raw::login(server.address).await;
    for messages in [
        parse("", "selec 1", &[]),
        [parse("", "select 1", &[]), bind("", "", &[], &[], &[]), execute("nope", 0)].concat(),
        bind("", "nope", &[], &[], &[]),
        named(b'D', b'S', "nope"),
    ] {
        raw.send(&messages).await;
        let mut reply = raw.reply().await.expect("an answer");
        while matches!(reply.kind, b'1' | b'2') {
            reply = raw.reply().await.expect("an answer");
        }
        assert_eq!(reply.kind, b'E', "{}", reply.show());
        // What follows is skipped.
        raw.send(&[flush(), parse("", "select 2", &[]), flush(), sync()].concat()).await;
        assert_eq!(raw.transcript().await, ["ReadyForQuery I"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_statement_timeout_fires_between_two_messages() {
    let server = TestServer::start().await;
    let mut raw = Raw::login(server.address).await;
    raw.query("set statement_timeout = '20ms'").await;
    raw.send(&[parse("", "select 1", &[]), flush()].concat()).await;
    assert_eq!(raw.reply().await.map(|reply| reply.show()), Some("ParseComplete".to_owned()));
    assert_eq!(raw.reply().await.map(|reply| reply.show()), Some(TIMEOUT.to_owned()), "without another message");
    raw.send(&[named(b'D', b'S', ""), sync()].concat()).await;
    assert_eq!(raw.transcript().await, ["ReadyForQuery I"]);
    // A block fails. The end of the pipeline ends the timeout.
    raw.query("begin").await;
    raw.send(&[parse("", "select 1", &[]), bind("", "", &[], &[], &[]), flush()].concat()).await;
    for expected in ["ParseComplete", "BindComplete", TIMEOUT] {
        assert_eq!(raw.reply().await.map(|reply| reply.show()).as_deref(), Some(expected));
    }
    raw.send(&sync()).await;
    assert_eq!(raw.transcript().await, ["ReadyForQuery E"]);
    assert_eq!(raw.query("rollback").await, ["CommandComplete ROLLBACK", "ReadyForQuery I"]);
}

/// A cancel stayed pending until the end of the pipeline, and hit its next statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_between_two_statements_hits_neither() {
    let server = TestServer::start().await;
    let mut raw = Raw::login(server.address).await;
    let select = [parse("", "select 1", &[]), bind("", "", &[], &[], &[]), execute("", 0)].concat();
    raw.send(&[select.clone(), flush()].concat()).await;
    for expected in ["ParseComplete", "BindComplete", "DataRow [\"1\"]", "CommandComplete SELECT 1"] {
        assert_eq!(raw.reply().await.map(|reply| reply.show()).as_deref(), Some(expected));
    }
    send_cancel(&server, &raw).await;
    raw.send(&[select, sync()].concat()).await;
    let replies = raw.transcript().await;
    assert_eq!(replies[3..], ["CommandComplete SELECT 1", "ReadyForQuery I"], "{replies:?}");
}

/// The retry of an UPDATE rolled the settings of its whole pipeline back, although their replies had been sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_keeps_the_settings_of_its_pipeline() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    client
        .batch_execute("create table t (id int primary key, n int); insert into t values (1, 0)")
        .await
        .expect("runs");
    let mut raw = Raw::login(server.address).await;
    let mut pipeline = Vec::new();
    for (text, name) in [
        ("set timezone = 'Asia/Tokyo'", "zone"),
        ("set default_transaction_read_only = on", "mode"),
        ("update t set n = n + 1 where id = 1", "update"),
    ] {
        let messages = [parse(name, text, &[]), bind(name, name, &[], &[], &[]), execute(name, 0)].concat();
        pipeline.extend(messages);
    }
    client.batch_execute("begin; update t set n = n + 10 where id = 1").await.expect("updates");
    pipeline.extend(sync());
    raw.send(&pipeline).await;
    let retried = || server.metric("sql_statement_retries_total ") >= Some(1.0);
    eventually("the update has met the other one", retried).await;
    client.batch_execute("commit").await.expect("commits");
    let replies: Vec<String> = raw.transcript().await.into_iter().filter(|line| !line.ends_with("Complete")).collect();
    let expected = [
        "CommandComplete SET",
        "CommandComplete SET",
        "CommandComplete UPDATE 1",
        "ParameterStatus default_transaction_read_only = on",
        "ParameterStatus TimeZone = Asia/Tokyo",
        "ReadyForQuery I",
    ];
    assert_eq!(replies, expected);
    assert_eq!(raw.query("show timezone").await[1], "DataRow [\"Asia/Tokyo\"]");
    assert_eq!(raw.query("select n from t").await[1], "DataRow [\"11\"]");
}

/// Rows of RETURNING were sent before the commit found the duplicate key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn returning_sends_no_row_of_a_failed_statement() {
    let config = SqlConfig { reply_buffer_bytes: 1024, ..gateway_config() };
    let server = TestServer::with(config, MemoryCluster::new(), Duration::from_secs(1)).await;
    let mut raw = Raw::login(server.address).await;
    raw.query("create table t (a int primary key, s text); insert into t values (1000, 'taken')").await;
    let rows: Vec<String> = (0..=1000).map(|id| format!("({id}, '{}')", "x".repeat(100))).collect();
    let insert = format!("insert into t values {} returning s", rows.join(", "));
    let error = "ErrorResponse ERROR 23505 duplicate key value violates unique constraint \"t_pkey\" \
                 | detail: Key (a)=(1000) already exists. | table: t | constraint: t_pkey";
    assert_eq!(raw.query(&insert).await, [error, "ReadyForQuery I"]);
    raw.send(&[parse("", &insert, &[]), bind("", "", &[], &[], &[]), execute("", 0), sync()].concat()).await;
    assert_eq!(raw.transcript().await, ["ParseComplete", "BindComplete", error, "ReadyForQuery I"]);
    // Without the duplicate all of them arrive.
    assert_eq!(raw.query("delete from t returning s").await.len(), 4);
    assert_eq!(raw.query(&insert).await.len(), 1001 + 3);
}

#[tokio::test]
async fn sleeping_statements_hold_no_thread_and_can_be_stopped() {
    // One thread serves all of them.
    let server = TestServer::start().await;
    let mut sleeping = Vec::new();
    for _ in 0..20 {
        let mut raw = Raw::login(server.address).await;
        raw.send(&query("select pg_sleep(1000000)")).await;
        sleeping.push(raw);
    }
    let asleep = || server.metric("sql_statements_total{kind=\"select\"} ") >= Some(20.0);
    eventually("all sleep", asleep).await;
    let mut awake = Raw::login(server.address).await;
    let pid = awake.pid;
    assert_eq!(awake.query("select pg_backend_pid()").await[1], format!("DataRow [\"{pid}\"]"));
    for raw in &mut sleeping {
        send_cancel(&server, raw).await;
        let replies = raw.transcript().await;
        let canceled = "ErrorResponse ERROR 57014 canceling statement due to user request";
        assert_eq!(replies[1..], [canceled, "ReadyForQuery I"]);
    }
    awake.query("set statement_timeout = '10ms'").await;
    assert_eq!(awake.query("select pg_sleep(1000000)").await[1..], [TIMEOUT, "ReadyForQuery I"]);
    assert_eq!(awake.query("select pg_sleep('infinity')").await[1..], [TIMEOUT, "ReadyForQuery I"]);
}

/// A portal that is read through the store in pages does not see writes between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_portal_reads_its_snapshot_across_pages() {
    let server = TestServer::start().await;
    let mut client = server.connect().await;
    let values: Vec<String> = (0..3000).map(|id| format!("({id}, 0)")).collect();
    let setup = format!("create table t (id int primary key, n int); insert into t values {}", values.join(", "));
    client.batch_execute(&setup).await.expect("runs");
    let txn = client.transaction().await.expect("begins");
    txn.execute("update t set n = 1 where id % 2 = 0", &[]).await.expect("updates");
    let up = txn.bind("select id, n from t order by id", &[]).await.expect("binds");
    let down = txn.bind("select id, n from t order by id desc", &[]).await.expect("binds");
    let mut seen = Vec::new();
    for round in 0.. {
        let rows = txn.query_portal(&up, 500).await.expect("fetches");
        if rows.is_empty() {
            break;
        }
        seen.extend(rows.iter().map(|row| (row.get::<_, i32>(0), row.get::<_, i32>(1))));
        let changes =
            ["delete from t where id % 3 = 0", "update t set n = 7", "insert into t values (-1, 7), (9999, 7)"];
        if let Some(change) = changes.get(round) {
            txn.batch_execute(change).await.expect("changes");
        }
    }
    let expected: Vec<(i32, i32)> = (0..3000).map(|id| (id, 1 - id % 2)).collect();
    assert_eq!(seen, expected);
    let rows = txn.query_portal(&down, 0).await.expect("fetches");
    let seen: Vec<(i32, i32)> = rows.iter().rev().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(seen, expected, "bound before the changes, executed after them");
    let count: i64 = txn.query_one("select count(*) from t where n = 7", &[]).await.expect("selects").get(0);
    assert_eq!(count, 2002, "statements see all changes");
}

/// Updates of one row under an open portal keep one old version of it. One for each update would exceed the 64 MiB that
/// a transaction may buffer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_under_an_open_portal_keep_one_old_row() {
    let server = TestServer::with_transactions_of(64 << 20, MemoryCluster::new()).await;
    let mut client = server.connect().await;
    let setup = "create table t (id int primary key, v text); insert into t values (1, 'old'), (2, 'old')";
    client.batch_execute(setup).await.expect("runs");
    let txn = client.transaction().await.expect("begins");
    let portal = txn.bind("select v from t order by id", &[]).await.expect("binds");
    assert_eq!(txn.query_portal(&portal, 1).await.expect("fetches").len(), 1);
    let update = txn.prepare("update t set v = $1 where id = 2").await.expect("prepares");
    let large = "x".repeat(3 << 20);
    for _ in 0..25 {
        assert_eq!(txn.execute(&update, &[&large]).await.expect("updates"), 1);
    }
    let rows = txn.query_portal(&portal, 0).await.expect("fetches");
    assert_eq!(rows.iter().map(|row| row.get::<_, &str>(0)).collect::<Vec<_>>(), ["old"]);
}

/// A cancel that reaches a statement which waits for the store is not dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_in_a_pipeline_stops_its_running_statement() {
    let server = TestServer::start().await;
    server.connect().await.batch_execute("create table t (id int primary key)").await.expect("creates");
    let mut raw = Raw::login(server.address).await;
    raw.send(&[parse("", "select 1", &[]), bind("", "", &[], &[], &[]), execute("", 0), flush()].concat()).await;
    for _ in 0..4 {
        raw.reply().await.expect("an answer");
    }
    server.cluster.set_faults(Faults { delay_max: Duration::from_secs(1_000_000), ..Faults::none() });
    raw.send(&[parse("", "select * from t", &[]), bind("", "", &[], &[], &[]), execute("", 0), sync()].concat()).await;
    let canceled = async {
        loop {
            // The statement may not run yet.
            send_cancel(&server, &raw).await;
            if server.metric("sql_errors_total{class=\"57\"} ") >= Some(1.0) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, canceled).await.expect("canceled in time");
    let replies = raw.until_ready().await;
    let error = replies.iter().find(|reply| reply.kind == b'E').expect("an error");
    assert_eq!(error.field(b'C').as_deref(), Some(SqlState::QUERY_CANCELED.code()));
}

/// `pg_prepared_statements` has the named statements of the session, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_system_catalog_shows_prepared_statements() {
    let server = TestServer::start().await;
    let (mut raw, mut other) = (Raw::login(server.address).await, Raw::login(server.address).await);
    let statement = "select $1::int4 + $2";
    raw.send(&[parse("mine", statement, &[]), parse("", "select 1", &[]), sync()].concat()).await;
    raw.transcript().await;
    // A plan gives the types of parameters.
    raw.send(&[named(b'D', b'S', "mine"), sync()].concat()).await;
    raw.transcript().await;
    let look = "select name, statement, parameter_types from pg_prepared_statements";
    let shown = raw.query(look).await.join("; ");
    assert!(shown.contains(&format!("[\"mine\", \"{statement}\", \"{{integer,integer}}\"]")), "{shown}");
    assert!(shown.contains("SELECT 1"), "{shown}");
    assert!(other.query(look).await.join("; ").contains("SELECT 0"));
}
