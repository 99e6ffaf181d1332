//! Concurrency, result pages, reclaiming and catalog caching through a server, and random text through parser and
//! binder.

use super::support::{TestServer, database, eventually};
use bytes::Bytes;
use kv::client::ScanRange;
use kv::memory::MemoryCluster;
use proptest::prelude::*;
use sql::catalog::Catalog;
use sql::catalog::reclaim::{Progress, Reclaimer};
use sql::codec::key;
use sql::table::StorageId;
use sql::{parse, plan};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};
use txn::Database;

/// Runs a query string and returns its rows as text.
async fn query(client: &Client, text: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()),
        _ => None,
    });
    rows.collect()
}

/// Runs a query string and returns the first column of its rows.
async fn ints(client: &Client, text: &str) -> Vec<i64> {
    let first = |row: &Vec<Option<String>>| row[0].as_deref().expect("no NULL").parse().expect("an integer");
    query(client, text).await.iter().map(first).collect()
}

/// `insert into t values (from), ..., (to - 1)`
async fn fill(client: &Client, from: i64, to: i64) {
    let rows: Vec<String> = (from..to).map(|i| format!("({i}, {})", i % 7)).collect();
    query(client, &format!("insert into t values {}", rows.join(", "))).await;
}

/// More rows than are sorted on the session's own thread.
#[tokio::test]
async fn many_rows_are_sorted() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    client.batch_execute("create table t (a int primary key, b int)").await.expect("create");
    fill(&client, 0, 10_000).await;
    let sorted = ints(&client, "select a from t order by b desc, a").await;
    let mut expected: Vec<i64> = (0..10_000).collect();
    expected.sort_by_key(|a| (-(a % 7), *a));
    assert_eq!(sorted, expected);
    let middle = ints(&client, "select a from t order by b desc, a limit 10 offset 4500").await;
    assert_eq!(middle, expected[4500..4510]);
    // Surplus rows are dropped in between.
    let first = ints(&client, "select a from t order by b desc, a limit 3 offset 2497").await;
    assert_eq!(first, expected[2497..2500]);
    let first = ints(&client, "select a from t order by b desc, a limit 2500").await;
    assert_eq!(first, expected[..2500]);
    assert!(ints(&client, "select a from t order by b desc, a limit 0").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_concurrent_creators_wins() {
    let server = TestServer::start().await;
    for round in 0..5 {
        let mut creators = Vec::new();
        for _ in 0..8 {
            let client = server.connect().await;
            creators.push(tokio::spawn(async move {
                client.batch_execute(&format!("create table t{round} (a int)")).await
            }));
        }
        let mut winners = 0;
        for creator in creators {
            match creator.await.expect("no panic") {
                Ok(()) => winners += 1,
                Err(error) => assert_eq!(error.code(), Some(&SqlState::DUPLICATE_TABLE), "{error}"),
            }
        }
        assert_eq!(winners, 1);
    }
}

#[tokio::test]
async fn scans_cross_pages() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    query(&client, "create table t (id int primary key, k int)").await;
    fill(&client, 0, 3000).await;
    assert_eq!(ints(&client, "select count(*) from t").await, [3000]);
    assert_eq!(ints(&client, "select id from t").await, (0..3000).collect::<Vec<_>>());
    assert_eq!(ints(&client, "select id from t order by id desc").await, (0..3000).rev().collect::<Vec<_>>());
    assert_eq!(ints(&client, "select id from t where k = 3 order by id desc limit 2").await, [2999, 2992]);
    assert_eq!(ints(&client, "select id from t order by k desc, id limit 3 offset 2").await, [20, 27, 34]);
    assert_eq!(ints(&client, "select distinct k from t order by k").await, (0..7).collect::<Vec<_>>());
    let keys: Vec<String> = (0..600).map(|i| (i * 7).to_string()).collect();
    let text = format!("select id from t where id in ({})", keys.join(", "));
    assert_eq!(query(&client, &text).await.len(), 429);
    // Inside a transaction its own writes are merged into the pages.
    query(&client, "begin").await;
    query(&client, "update t set id = id + 10000 where k = 0").await;
    query(&client, "delete from t where k = 1").await;
    assert_eq!(ints(&client, "select count(*) from t where id < 10000").await, [2142]);
    assert_eq!(ints(&client, "select id from t order by id desc limit 1").await, [12996]);
    query(&client, "commit").await;
    assert_eq!(ints(&client, "select count(*) from t").await, [2571]);
}

#[tokio::test]
async fn hidden_row_keys_never_collide() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    query(&client, "create table t (a int, b int)").await;
    query(&client, "begin").await;
    for from in [0, 700, 1400] {
        fill(&client, from, from + 700).await;
    }
    query(&client, "delete from t where a < 50").await;
    fill(&client, 0, 50).await;
    query(&client, "commit").await;
    fill(&client, 0, 10).await;
    assert_eq!(ints(&client, "select count(*) from t").await, [2110]);
}

async fn rows_under(db: &Database, storage: StorageId) -> usize {
    let txn = db.begin().await.expect("a timestamp");
    let (start, end) = key::storage_range(storage);
    txn.scan(&ScanRange { start, end, reverse: false }, 10_000).await.expect("it can be read").pairs.len()
}

/// The storage of the table `t`.
async fn storage_of_t(db: &Database) -> StorageId {
    let txn = db.begin().await.expect("a timestamp");
    Catalog::load(&txn).await.expect("a catalog").table("t").expect("there").storage
}

#[tokio::test]
async fn dropped_rows_are_reclaimed() {
    let cluster = MemoryCluster::new();
    let (tso, db) = (cluster.tso(), database(&cluster));
    let server = TestServer::over(&cluster).await;
    let client = server.connect().await;
    query(&client, "create table t (a int primary key, b int)").await;
    fill(&client, 0, 1200).await;
    let storage = storage_of_t(&db).await;
    query(&client, "drop table t").await;
    let mut reclaimer = Reclaimer::new();
    assert_eq!(run_reclaimer(&mut reclaimer, &db).await, Progress { rows: 1200, ..Progress::default() });
    assert_eq!(rows_under(&db, storage).await, 0);
    // No session can write such a row. If there is one, it stays until the last sweep. Nothing is scanned before.
    let mut late = db.begin().await.expect("a timestamp");
    late.put(key::storage_range(storage).0, Bytes::from_static(b"late")).expect("fits");
    late.commit().await.expect("no conflict");
    assert_eq!(rows_under(&db, storage).await, 1);
    let before = cluster.calls();
    assert_eq!(reclaimer.step(&db).await.expect("it works"), Progress::default());
    assert_eq!(cluster.calls() - before, 1, "the list of storages, and no more");
    tso.advance_ms(3_600_001);
    let last = run_reclaimer(&mut reclaimer, &db).await;
    assert_eq!(last, Progress { rows: 1, storages: 1, more: false });
    assert_eq!(rows_under(&db, storage).await, 0);
    assert_eq!(reclaimer.step(&db).await.expect("it works"), Progress::default());
}

/// Steps until there is nothing left to do now. Returns the sum of the steps.
async fn run_reclaimer(reclaimer: &mut Reclaimer, db: &Database) -> Progress {
    let mut sum = Progress::default();
    for _ in 0..20 {
        let progress = reclaimer.step(db).await.expect("it works");
        sum.rows += progress.rows;
        sum.storages += progress.storages;
        if !progress.more {
            return sum;
        }
    }
    panic!("the reclaimer does not finish: {sum:?}")
}

/// Removed rows leave versions behind. Scanning them again for every batch would be quadratic.
#[tokio::test]
async fn a_sweep_resumes_where_it_stopped() {
    let cluster = MemoryCluster::new();
    let db = database(&cluster);
    let server = TestServer::over(&cluster).await;
    let client = server.connect().await;
    query(&client, "create table t (a int primary key, b int)").await;
    for from in [0, 700, 1400, 2100] {
        fill(&client, from, from + 700).await;
    }
    let storage = storage_of_t(&db).await;
    query(&client, "drop table t").await;
    let (mut first, mut second) = (Reclaimer::new(), Reclaimer::new());
    assert_eq!(first.step(&db).await.expect("it works"), Progress { rows: 512, storages: 0, more: true });
    // The sweep does not return to a row behind its position.
    let mut behind = db.begin().await.expect("a timestamp");
    behind.put(key::storage_range(storage).0, Bytes::from_static(b"late")).expect("fits");
    behind.commit().await.expect("no conflict");
    // Two reclaimers alternate, as when the system region's leader changes: neither disturbs the other.
    let mut rows = 512;
    for _ in 0..2 {
        rows += first.step(&db).await.expect("it works").rows;
    }
    assert_eq!((rows, rows_under(&db, storage).await), (1536, 2801 - 1536));
    rows += run_reclaimer(&mut second, &db).await.rows;
    rows += run_reclaimer(&mut first, &db).await.rows;
    assert_eq!((rows, rows_under(&db, storage).await), (2801, 0));
}

/// A statement of its own takes the timestamp that it begins with. A commit after several statements takes one more,
/// because other transactions may have been acknowledged in between.
#[tokio::test]
async fn an_autocommit_insert_takes_one_timestamp() {
    let cluster = MemoryCluster::new();
    let tso = cluster.tso();
    let server = TestServer::over(&cluster).await;
    let client = server.connect().await;
    query(&client, "create table t (a int primary key, b int); insert into t values (1, 1)").await;
    // It also has names fetched for those after it.
    let before = tso.last();
    query(&client, "insert into t values (0, 0)").await;
    eventually("names are fetched", || tso.last().raw() > before.raw() + 1_000).await;
    let cases = [
        ("insert into t values (2, 2)", 1),
        ("begin; insert into t values (3, 3); commit", 1),
        ("insert into t values (4, 4); insert into t values (5, 5)", 1),
        ("select * from t where a = 2", 1),
    ];
    for (sql, timestamps) in cases {
        let before = tso.last().raw();
        query(&client, sql).await;
        assert_eq!(tso.last().raw() - before, timestamps, "{sql}");
        assert_eq!(cluster.locks().expect("well-formed").len(), 0, "{sql}");
    }
    let insert = client.prepare("insert into t values ($1, $2)").await.expect("prepared");
    let before = tso.last().raw();
    client.execute(&insert, &[&6i32, &6i32]).await.expect("inserted");
    assert_eq!(tso.last().raw() - before, 1);
}

/// Two transactions, through two gateways, wait for each other. One of them is told, and the other goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_found_and_one_transaction_goes_on() {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    query(&a, "create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)").await;
    for round in 1..4 {
        query(&a, "begin; update t set n = n + 1 where id = 1").await;
        query(&b, "begin; update t set n = n + 1 where id = 2").await;
        let (one, two) = tokio::join!(
            a.batch_execute("update t set n = n + 1 where id = 2"),
            b.batch_execute("update t set n = n + 1 where id = 1"),
        );
        assert!(one.is_err() != two.is_err(), "{one:?} {two:?}");
        let error = one.err().or(two.err()).expect("one of them");
        let error = error.as_db_error().expect("from the server");
        assert_eq!((error.code().code(), error.message()), ("40P01", "deadlock detected"));
        let detail = error.detail().expect("says who waits for whom");
        assert_eq!(detail.matches(" waits for ShareLock on transaction ").count(), 2, "{detail}");
        query(&a, "commit").await;
        query(&b, "commit").await;
        let rows = a.query("select n from t order by id", &[]).await.expect("selects");
        let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, [round, round], "one of the two has changed both rows");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_nodes_initialise_one_catalog() {
    let cluster = MemoryCluster::new();
    let nodes: Vec<_> = (0..6)
        .map(|_| {
            let cluster = cluster.clone();
            tokio::spawn(async move { query(&TestServer::over(&cluster).await.connect().await, "select 1").await })
        })
        .collect();
    for node in nodes {
        node.await.expect("no panic");
    }
    let server = TestServer::over(&cluster).await;
    let client = server.connect().await;
    query(&client, "create table t (a int); insert into t values (1)").await;
    assert_eq!(ints(&client, "select a from t").await, [1]);
}

#[tokio::test]
async fn a_stale_cache_follows_other_gateways() {
    let cluster = MemoryCluster::new();
    let (first, second) = (TestServer::over(&cluster).await, TestServer::over(&cluster).await);
    let (a, b) = (first.connect().await, second.connect().await);
    query(&a, "create table t (a int primary key, b int)").await;
    query(&b, "insert into t values (1, 1)").await;
    query(&a, "drop table t; create table t (c text)").await;
    let error = b.simple_query("insert into t values (1, 1)").await.expect_err("the new schema is in force");
    assert_eq!(error.code(), Some(&SqlState::SYNTAX_ERROR), "{error}");
    query(&b, "insert into t values ('x')").await;
    assert_eq!(query(&a, "select c from t").await, [[Some("x".to_owned())]]);
}

/// Words of random statements, separated by blanks.
const WORDS: &str = "\
    select from t where a b = < 1 2.5 'x' null $1 $2 ( ) , and or not in between like is order by limit \
    offset insert into values update set delete returning * + - / || ::int ::text ::timestamptz case \
    when then else end count sum coalesce distinct desc default create table primary key int explain . \
    as on conflict do nothing excluded '2024-01-01' now length ^ ~ escape nulls first drop";

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(WORDS.split(' ').collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_text_panics(words in proptest::collection::vec(word(), 0..24)) {
        check(&words.join(" "));
    }

    #[test]
    fn no_mangled_statement_panics(cut in 0usize..200, insert in "\\PC{0,3}", which in 0usize..6) {
        let statements = [
            "select a, b + 1 as x, case when a = 1 then 'x' else b::text end from t \
             where a in (1, 2) or (a, b) in ((1, 2)) order by 1 desc limit 3",
            "insert into t (a, b) values (1, default), ($1, 'ä') \
             on conflict (a) do update set b = excluded.b returning *",
            "update t set b = b + $1, a = 3 where a between 1 and 5 and b is not null returning a",
            "create table u (a int primary key, b varchar(5) default 'x' not null, primary key (a))",
            "select count(distinct b), sum(a) filter (where a > 1), trim(both 'x' from 'xax') from t \
             having count(*) > 1",
            "delete from t where a = '1'::int or b = 1::int8 and not a < - 2 ^ 2",
        ];
        let text = statements[which];
        let mut at = cut.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        check(&format!("{}{insert}{}", &text[..at], text.get(at + 1..).unwrap_or("")));
    }
}

/// Parses and binds. An error's position must lie within the text.
fn check(text: &str) {
    use pgtypes::SqlType;
    use sql::table::{Column, ColumnId, IndexId, Table, TableId};
    let column = |id, name: &str, not_null| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        ty: SqlType::INT4,
        not_null,
        default: None,
        generated: None,
        identity: None,
        domain: None,
    };
    let table = Table {
        schema: sql::object::FIRST_SCHEMA,
        id: TableId(20_000),
        storage: StorageId(20_000),
        name: "t".to_owned(),
        columns: vec![column(1, "a", true), column(2, "b", false)],
        primary_key: vec![0],
        key_name: "t_pkey".to_owned(),
        key_id: IndexId(16_999),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(2),
    };
    let catalog = Catalog::new(1, [table]);
    let within = |position: Option<u32>| position.is_none_or(|at| at as usize <= text.chars().count() + 1);
    match parse::parse(text) {
        Err(error) => assert!(within(error.position), "{text}: {error:?}"),
        Ok(statements) => {
            for statement in statements {
                if let Err(error) = plan::bind(&statement, Some(&[]), &catalog) {
                    assert!(within(error.position), "{text}: {error:?}");
                }
            }
        }
    }
}

/// The OIDs of all databases are those of one cluster: `regclass` and the functions over OIDs named tables, indexes and
/// schemas of other databases.
#[tokio::test]
async fn objects_of_other_databases_are_not_found_by_their_oids() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    let table = "create schema s; create table s.t (a int primary key, b int unique check (b > 0) references s.t (a))";
    client.batch_execute("create database shop").await.expect("create");
    client.batch_execute(table).await.expect("create");
    let other = server.connect_to("shop").await;
    for text in [
        "select oid::text, oid::regclass::text from pg_class where relname like 't%' and oid > 16383",
        "select indexrelid::text, pg_get_indexdef(indexrelid) from pg_index where indrelid > 16383",
        "select oid::text, pg_get_constraintdef(oid) from pg_constraint where oid > 16383",
        "select oid::text, oid::regnamespace::text from pg_namespace where nspname = 's'",
        "select oid::text, pg_relation_size(oid)::text from pg_class where relname = 't'",
    ] {
        let found = query(&client, text).await;
        assert!(!found.is_empty(), "{text}");
        for row in found {
            let [Some(oid), Some(shown)] = row.as_slice() else { panic!("{text}: {row:?}") };
            let source = text.split_once(", ").expect("two columns").1.split_once(" from").expect("a source").0;
            let again = format!("select {}", source.replace("indexrelid", &format!("{oid}::oid")));
            let again =
                again.replace("(oid)", &format!("({oid}::oid)")).replace("oid::reg", &format!("{oid}::oid::reg"));
            assert_eq!(query(&client, &again).await, [[Some(shown.clone())]], "{again}");
            let elsewhere = query(&other, &again).await;
            assert!(elsewhere == [[None]] || elsewhere == [[Some(oid.clone())]], "{again}: {elsewhere:?}");
        }
    }
}

/// Schema changes saw the catalog from the first database: they did not find the types of stored expressions elsewhere,
/// nor the tables of a domain.
#[tokio::test]
async fn a_schema_change_sees_the_database_of_its_session() {
    let server = TestServer::start().await;
    server.connect().await.batch_execute("create database shop").await.expect("a database");
    let client = server.connect_to("shop").await;
    client
        .batch_execute(
            "create type mood as enum ('x', 'y'); create domain small as int check (value < 10);
             create table t (a int primary key, m mood check (m <> 'x'::mood), d small);
             insert into t values (1, 'y', 2)",
        )
        .await
        .expect("a table");
    client.batch_execute("alter table t add column b mood default 'y'::mood").await.expect("a column");
    client.batch_execute("alter type mood add value 'z'").await.expect("a label");
    assert_eq!(query(&client, "select * from t").await, [["1", "y", "2", "y"].map(|shown| Some(shown.to_owned()))]);
    let error = client.batch_execute("alter domain small add check (value > 5)").await.expect_err("a row");
    let error = error.as_db_error().expect("an answer");
    assert_eq!((error.code().code(), error.table()), ("23514", Some("t")));
}
