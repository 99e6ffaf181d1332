//! Snapshots of the past and of sessions, as drivers ask for them: prepared statements, connection options, tokens,
//! what a read in the past costs, and what it finds of tables that are gone.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use kv::api::{Request, RequestBody, Response};
use kv::client::{CallError, Endpoint};
use raftstore::{RegionStatus, StoreId};
use tso::Timestamp;

use super::support::client::{Raw, Reply, bind, execute, parse, query, sync};
use super::support::{TestServer, database};
use kv::memory::MemoryCluster;
use sql::catalog::reclaim::Reclaimer;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

/// A table with one row, whose value is that of ten seconds ago, and then another.
async fn old_and_new(server: &TestServer, client: &Client) {
    client.batch_execute("create table t (id int primary key, v text)").await.expect("creates");
    client.batch_execute("insert into t values (1, 'old')").await.expect("inserts");
    server.cluster.tso().advance_ms(10_000);
    client.batch_execute("update t set v = 'new'").await.expect("updates");
}

async fn value(client: &Client, text: &str) -> String {
    client.query_one(text, &[]).await.unwrap_or_else(|error| panic!("{text}: {error:?}")).get(0)
}

async fn shown(client: &Client, name: &str) -> String {
    let messages = client.simple_query(&format!("show {name}")).await.expect("shows");
    let row = messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.expect("a row").to_owned()
}

/// A connection with these options.
async fn connect(server: &TestServer, options: &str) -> Result<Client, tokio_postgres::Error> {
    let port = server.address.port();
    let config = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres options='{options}'");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::test]
async fn a_prepared_statement_says_its_point_in_time_for_each_execution() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    old_and_new(&server, &client).await;
    let past = client.prepare("select v from t as of system time '-5s' where id = $1").await.expect("prepares");
    let hinted = client.prepare("select /*+ STALENESS('5s') */ v from t where id = $1").await.expect("prepares");
    let mut expected = "old";
    for _ in 0..2 {
        for statement in [&past, &hinted] {
            let row = client.query_one(statement, &[&1]).await.expect("reads");
            assert_eq!(row.get::<_, &str>(0), expected);
        }
        server.cluster.tso().advance_ms(10_000);
        // The gateway learns of the time.
        assert_eq!(value(&client, "select v from t").await, "new");
        expected = "new";
    }
}

#[tokio::test]
async fn options_of_a_connection_set_how_it_reads() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    old_and_new(&server, &client).await;
    let options = "-c cortado.replica_read=closest -c cortado.read_staleness=5s -c cortado.hedge=auto";
    let reader = connect(&server, options).await.expect("connects");
    assert_eq!(shown(&reader, "cortado.replica_read").await, "closest");
    assert_eq!(value(&reader, "select v from t").await, "old");
    let error = reader.batch_execute("update t set v = 'x'").await.expect_err("the session reads the past");
    assert_eq!(error.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
    reader.batch_execute("set cortado.read_staleness = ''; reset cortado.read_staleness").await.expect("resets");
    assert_eq!(value(&reader, "select v from t").await, "old", "RESET restores the option");
    let Err(error) = connect(&server, "-c cortado.replica_read=nearest").await else { panic!("no such replica") };
    assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE));
}

#[tokio::test]
async fn a_token_carries_what_a_session_has_seen_to_another_gateway() {
    let cluster = MemoryCluster::new();
    let (a, b) = (TestServer::over(&cluster).await, TestServer::over(&cluster).await);
    let writer = a.connect().await;
    writer.batch_execute("create table t (id int primary key)").await.expect("creates");
    assert_eq!(shown(&writer, "cortado.session_token").await.get(..3), Some("c1."), "whatever the settings are");
    for id in 0..5 {
        writer.execute(&format!("insert into t values ({id})"), &[]).await.expect("inserts");
        let token = shown(&writer, "cortado.session_token").await;
        // Given by SET, and by an option of the connection.
        let reader = b.connect().await;
        reader.batch_execute("set cortado.session_snapshot = on").await.expect("sets");
        reader.batch_execute(&format!("set cortado.session_token = '{token}'")).await.expect("sets");
        assert_eq!(shown(&reader, "cortado.session_token").await, token);
        let options = format!("-c cortado.session_snapshot=on -c cortado.session_token={token}");
        let other = connect(&b, &options).await.expect("connects");
        for client in [reader, other] {
            assert_eq!(client.query("select id from t", &[]).await.expect("reads").len(), id + 1);
            let later = shown(&client, "cortado.session_token").await;
            assert!(later >= token, "{later} is a later snapshot than {token}");
            client.batch_execute("discard all").await.expect("discards");
            assert_eq!(shown(&client, "cortado.session_token").await, "");
        }
    }
}

/// A timestamp that the oracle has not issued would make a replica wait for years.
#[tokio::test]
async fn a_token_of_the_future_is_refused_however_it_is_given() {
    let server = TestServer::over(&MemoryCluster::new()).await;
    let client = connect(&server, "-c cortado.session_token=69999999999999.7 -c cortado.session_snapshot=on").await;
    let client = client.expect("nothing was asked yet");
    client.batch_execute("create table t (id int primary key)").await.expect("a writer has a snapshot of its own");
    let refused = async |text: &str| {
        let error = client.batch_execute(text).await.expect_err(text);
        assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE), "{text}: {error}");
    };
    refused("select * from t").await;
    refused("set cortado.session_token = '68888888888888.7'").await;
    refused("set cortado.session_token = 'c1.0000000000000000'").await;
    client.batch_execute("reset cortado.session_token").await.expect("resets");
    client.batch_execute("select * from t").await.expect("reads");
}

/// A session snapshot is for a statement alone in its transaction: another one may write.
#[tokio::test]
async fn a_pipeline_that_reads_and_writes_has_one_snapshot_of_its_own() {
    let server = TestServer::over(&MemoryCluster::new()).await;
    let client = server.connect().await;
    client.batch_execute("create table t (id int primary key, v int); insert into t values (1, 1)").await.expect("ok");
    let mut raw = Raw::login(server.address).await;
    let run = |text: &str| [parse("", text, &[]), bind("", "", &[], &[], &[]), execute("", 0)].concat();
    raw.send(&query("set cortado.session_snapshot = on")).await;
    raw.until_ready().await;
    let failed = |replies: &[Reply]| replies.iter().any(|reply| reply.kind == b'E');
    raw.send(&[run("select v from t"), run("update t set v = v + 1"), run("select v from t"), sync()].concat()).await;
    assert!(!failed(&raw.until_ready().await));
    raw.send(&query("select v from t; update t set v = v + 1; select v from t")).await;
    assert!(!failed(&raw.until_ready().await));
    raw.send(
        &[run("select v from t as of system time follower_read_timestamp()"), run("update t set v = 7"), sync()]
            .concat(),
    )
    .await;
    let replies = raw.until_ready().await;
    assert!(failed(&replies), "the database is younger than a second: {replies:?}");
    server.cluster.tso().advance_ms(10_000);
    // The gateway learns of the time.
    assert_eq!(client.query_one("select v from t", &[]).await.expect("reads").get::<_, i32>(0), 3);
    raw.send(&[run("select v from t as of system time '-5s'"), run("update t set v = v + 1"), sync()].concat()).await;
    assert!(!failed(&raw.until_ready().await), "what is read in the past is apart");
    let row = client.query_one("select v from t", &[]).await.expect("reads");
    assert_eq!(row.get::<_, i32>(0), 4);
}

/// The lease of the gateway is over, and nobody tells it of the schema change.
#[tokio::test]
async fn a_read_in_the_past_asks_neither_for_a_lease_nor_for_a_timestamp() {
    let cluster = MemoryCluster::new();
    let (a, b) = (TestServer::over(&cluster).await, TestServer::over(&cluster).await);
    let (writer, reader) = (a.connect().await, b.connect().await);
    old_and_new(&a, &writer).await;
    // The gateway renews its lease, and locates the region.
    assert_eq!(value(&reader, "select v from t").await, "new");
    b.cut();
    cluster.tso().advance_ms(20_000);
    let seen = (b.requests(), b.metric("sql_catalog_reads_total "));
    let past = shown(&reader, "cortado.last_read").await;
    let start_ts = past.split("start_ts=").nth(1).expect("a snapshot").to_owned();
    for _ in 0..10 {
        assert_eq!(value(&reader, &format!("select v from t as of system time {start_ts}")).await, "new");
    }
    let now = (b.requests(), b.metric("sql_catalog_reads_total "));
    assert_eq!((now.0.1 - seen.0.1, now.1), (0, seen.1), "neither the oracle nor the catalog was asked");
    // From before the gateway's catalog: its version is read once for each point in time that is new.
    let before = b.metric("sql_catalog_reads_total ");
    for _ in 0..10 {
        assert_eq!(value(&reader, "select v from t as of system time 105000.0").await, "old");
    }
    let reads = b.metric("sql_catalog_reads_total ").zip(before).map(|(now, before)| now - before);
    assert!(reads.is_some_and(|reads| reads <= 1.0), "{reads:?}");
}

/// Rows of a dropped table are removed as rows are: their versions stay.
#[tokio::test]
async fn the_rows_of_a_reclaimed_table_are_there_in_the_past() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    old_and_new(&server, &client).await;
    client.batch_execute("drop table t").await.expect("drops");
    let db = database(&server.cluster);
    let mut reclaimer = Reclaimer::new();
    for _ in 0..2 {
        while reclaimer.step(&db).await.expect("reclaims").more {}
        server.cluster.tso().advance_ms(3_600_000);
    }
    while reclaimer.step(&db).await.expect("reclaims").more {}
    assert_eq!(value(&client, "select v from t as of system time 105000.0").await, "old");
    let error = client.query("select v from t", &[]).await.expect_err("it is dropped");
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
}

/// A plan of the past is not used for the present, nor the other way round, though the text is the same.
#[tokio::test]
async fn plans_of_two_catalogs_do_not_mix() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    old_and_new(&server, &client).await;
    client.batch_execute("drop table t; create table t (v int primary key, id text)").await.expect("makes it anew");
    client.batch_execute("insert into t values (7, 'x')").await.expect("inserts");
    for _ in 0..3 {
        for staleness in ["5s", ""] {
            client.batch_execute(&format!("set cortado.read_staleness = '{staleness}'")).await.expect("sets");
            let messages = client.simple_query("select v from t").await.expect("reads");
            let rows: Vec<String> = messages
                .iter()
                .filter_map(|message| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                })
                .collect();
            assert_eq!(rows, [if staleness.is_empty() { "7" } else { "old" }]);
        }
    }
}

/// The stores of a cluster. Keeps the least snapshots that replica reads ask for.
struct Floors {
    cluster: MemoryCluster,
    seen: Mutex<Vec<Option<Timestamp>>>,
}

impl Endpoint for Floors {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        if let RequestBody::Replica(read) = &request.body {
            self.seen.lock().expect("no panic").push(read.floor);
        }
        self.cluster.call(store, request)
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// Rule 13: a session snapshot is not below what the session has committed or read.
#[tokio::test]
async fn a_replica_is_told_what_the_session_has_seen() {
    let cluster = MemoryCluster::builder().stores(3).build();
    let floors = Arc::new(Floors { cluster: cluster.clone(), seen: Mutex::default() });
    let server = TestServer::over_endpoint(&cluster, floors.clone()).await;
    let client = server.connect().await;
    client.batch_execute("create table t (id int primary key)").await.expect("creates");
    client.batch_execute("set cortado.session_snapshot = on; set cortado.replica_read = follower").await.expect("sets");
    for id in 0..5 {
        client.batch_execute(&format!("insert into t values ({id})")).await.expect("inserts");
        for rows in [id + 1, id + 1] {
            let token = shown(&client, "cortado.session_token").await;
            let token = u64::from_str_radix(token.get(3..19).expect("a token"), 16).expect("digits");
            floors.seen.lock().expect("no panic").clear();
            assert_eq!(client.query("select id from t", &[]).await.expect("reads").len(), rows);
            let seen = std::mem::take(&mut *floors.seen.lock().expect("no panic"));
            assert!(!seen.is_empty(), "a follower was asked");
            assert!(seen.iter().all(|floor| *floor >= Some(Timestamp::from_raw(token))), "{seen:?} from {token}");
        }
    }
}
