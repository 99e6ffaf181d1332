//! Temporary relations of several gateways: nobody else reaches them, and they go with their session or their gateway.

use std::time::Duration;

use kv::memory::MemoryCluster;
use sql::server::SqlConfig;
use tokio_postgres::Client;

use super::support::{PATIENCE, TestServer};

const SCHEMAS: &str = "select count(*) from pg_namespace where nspname like 'pg\\_temp\\_%'";
const RELATIONS: &str = "select count(*) from pg_class where relpersistence = 't'";

/// A gateway that renews its lease, and sweeps, as usual.
async fn gateway(cluster: &MemoryCluster) -> TestServer {
    TestServer::with(SqlConfig::default(), cluster.clone(), Duration::from_secs(1)).await
}

async fn count(client: &Client, text: &str) -> i64 {
    client.query_one(text, &[]).await.expect("a count").get(0)
}

/// Waits until there are so many schemas of temporary relations.
async fn until_schemas(client: &Client, wanted: i64) {
    let reached = async {
        while count(client, SCHEMAS).await != wanted {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.expect("the sweep of a gateway");
}

#[tokio::test]
async fn temporary_relations_go_with_their_session() {
    let cluster = MemoryCluster::new();
    let servers = [gateway(&cluster).await, gateway(&cluster).await];
    let (first, second, watcher) = (servers[0].connect().await, servers[0].connect().await, servers[1].connect().await);
    for client in [&first, &second] {
        client.batch_execute("create temp table t (a serial primary key, b text)").await.expect("a table");
        client
            .batch_execute("create temp view v as select b from t; insert into t (b) values ('x')")
            .await
            .expect("rows");
    }
    assert_eq!((count(&watcher, SCHEMAS).await, count(&watcher, RELATIONS).await), (2, 8));
    let schema: String = first
        .query_one("select relnamespace::regnamespace::text from pg_class where oid = 't'::regclass", &[])
        .await
        .expect("a schema")
        .get(0);
    for client in [&second, &watcher] {
        let error = client.batch_execute(&format!("select * from {schema}.t")).await.expect_err("another session's");
        let error = error.as_db_error().expect("an answer");
        assert_eq!(
            (error.code().code(), error.message()),
            ("0A000", "cannot access temporary tables of other sessions")
        );
        let error = client.batch_execute(&format!("create table {schema}.u (a int)")).await.expect_err("another's");
        let error = error.as_db_error().expect("an answer");
        let message = "cannot create relations in temporary schemas of other sessions";
        assert_eq!((error.code().code(), error.message()), ("42P16", message));
    }
    drop(first);
    until_schemas(&watcher, 1).await;
    assert_eq!((count(&second, "select count(*) from t").await, count(&watcher, RELATIONS).await), (1, 4));
    drop(second);
    until_schemas(&watcher, 0).await;
    assert_eq!(count(&watcher, RELATIONS).await, 0);
}

#[tokio::test]
async fn another_gateway_drops_what_a_gateway_has_left() {
    let cluster = MemoryCluster::new();
    let (mut left, other) = (gateway(&cluster).await, gateway(&cluster).await);
    let (client, watcher) = (left.connect().await, other.connect().await);
    client.batch_execute("create temp table t (a int); insert into t values (1)").await.expect("a table");
    assert_eq!(count(&watcher, SCHEMAS).await, 1);
    left.begin_stop();
    left.stopped().await;
    until_schemas(&watcher, 0).await;
}

/// They were created in the first database, whatever the session's was.
#[tokio::test]
async fn each_database_has_its_own_temporary_relations() {
    let server = TestServer::start().await;
    let here = server.connect().await;
    here.batch_execute("create database shop").await.expect("a database");
    let there = server.connect_to("shop").await;
    for (client, value) in [(&here, 1), (&there, 2)] {
        let made = format!("create temp table t (a int primary key, b text); insert into t values ({value})");
        client.batch_execute(&made).await.expect("a table");
    }
    for (client, value) in [(&here, 1), (&there, 2)] {
        let row = client.query_one("select a from t", &[]).await.expect("a row");
        assert_eq!((row.get::<_, i32>(0), count(client, SCHEMAS).await), (value, 1));
        let own = "select pg_my_temp_schema() = relnamespace from pg_class where oid = 't'::regclass";
        assert!(client.query_one(own, &[]).await.expect("a row").get::<_, bool>(0));
    }
    there.batch_execute("discard temp").await.expect("discards");
    assert_eq!((count(&there, RELATIONS).await, count(&here, RELATIONS).await), (0, 2));
}

/// The schema of a duplicate that the commit found was empty in every database but the first.
#[tokio::test]
async fn a_duplicate_names_its_schema_in_every_database() {
    let server = TestServer::start().await;
    server.connect().await.batch_execute("create database shop").await.expect("a database");
    let client = server.connect_to("shop").await;
    client.batch_execute("create table t (a int primary key)").await.expect("a table");
    client.batch_execute("insert into t values (1)").await.expect("a row");
    let error = client.batch_execute("insert into t values (1)").await.expect_err("a duplicate");
    let error = error.as_db_error().expect("an answer");
    assert_eq!((error.code().code(), error.schema(), error.table()), ("23505", Some("public"), Some("t")));
}
