//! Secondary indexes under concurrency and faults, and while they are built.

use std::sync::Arc;
use std::time::Duration;

use super::support::{TestServer, database, gateway_config};
use bytes::Bytes;
use futures::SinkExt;
use kv::Key;
use kv::memory::{Faults, MemoryCluster};
use raftstore::StoreId;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sql::catalog::Catalog;
use sql::catalog::reclaim::Reclaimer;
use sql::exec::{CheckedTable, check_table};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

async fn run(client: &Client, text: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()),
        _ => None,
    });
    rows.collect()
}

/// Compares a table with its indexes.
async fn check(cluster: &MemoryCluster, table: &str) -> CheckedTable {
    let txn = database(cluster).begin().await.expect("a timestamp");
    let catalog = Catalog::load(&txn).await.expect("a catalog");
    check_table(&txn, &catalog, table).await.expect("a table")
}

const TABLE: &str = "
    create table t (id int primary key, a int, b int, c text, n numeric);
    create unique index t_a on t (a);
    create unique index t_b on t (b desc, lower(c)) where c <> 'q';
    create index t_c on t (c, a desc) include (n);
    create index t_n on t (n nulls first);
";

/// What a COPY begins with.
const COPY: &str = "copy t from stdin\n";

/// Keys are few, so that sessions meet.
struct Draws(StdRng);

impl Draws {
    fn id(&mut self) -> i32 {
        self.0.random_range(0..24)
    }

    fn value(&mut self) -> String {
        let value = self.0.random_range(-1..20);
        if value < 0 { "null".to_owned() } else { value.to_string() }
    }

    fn text(&mut self) -> &'static str {
        ["'x'", "'X'", "'y'", "'q'", "null"][self.0.random_range(0..5)]
    }

    fn number(&mut self) -> &'static str {
        ["1.0", "1.00", "2", "null"][self.0.random_range(0..4)]
    }

    fn row(&mut self) -> String {
        format!("({}, {}, {}, {}, {})", self.id(), self.value(), self.value(), self.text(), self.number())
    }

    /// COPY and its data, which begins in the second line.
    fn copy(&mut self) -> String {
        let mut text = COPY.to_owned();
        for _ in 0..self.0.random_range(1..4) {
            let mut field = || self.value().replace("null", "\\N");
            let (a, b) = (field(), field());
            let (c, n) = (self.text().trim_matches('\'').replace("null", "\\N"), self.number().replace("null", "\\N"));
            text += &format!("{}\t{a}\t{b}\t{c}\t{n}\n", self.id());
        }
        text
    }

    /// A condition: on the primary key, on an index, on none.
    fn condition(&mut self) -> String {
        match self.0.random_range(0..6) {
            0 => format!("id = {}", self.id()),
            1 => format!("a = {}", self.value()),
            2 => format!("a in ({}, {})", self.value(), self.value()),
            3 => format!("c = {} and a > 2", self.text()),
            4 => "n is null".to_owned(),
            _ => format!("id > {} and b < 7", self.id()),
        }
    }

    fn statement(&mut self) -> String {
        match self.0.random_range(0..12) {
            11 => self.copy(),
            0 | 1 => format!("insert into t values {}", self.row()),
            2 => format!("insert into t values {}, {}", self.row(), self.row()),
            3 => format!("insert into t values {} on conflict do nothing", self.row()),
            4 => {
                let target = ["id", "a"][self.0.random_range(0..2)];
                let row = self.row();
                format!(
                    "insert into t values {row} on conflict ({target}) do update set b = excluded.b, n = excluded.n"
                )
            }
            5 => format!(
                "insert into t values {} on conflict (a) do update set a = {}, c = {}",
                self.row(),
                self.value(),
                self.text()
            ),
            6 => format!("update t set a = {}, c = {} where {}", self.value(), self.text(), self.condition()),
            7 => format!("update t set n = {}, b = b + 1 where {}", self.number(), self.condition()),
            8 => format!("update t set id = {} where {}", self.id(), self.condition()),
            9 => format!("delete from t where {}", self.condition()),
            _ => format!("select * from t where {} for update", self.condition()),
        }
    }
}

/// Whether a session may go on: what concurrent statements and faults do to each other.
fn is_expected(error: &tokio_postgres::Error) -> bool {
    let code = error.code().map(|code| code.code().to_owned()).unwrap_or_default();
    ["23505", "40001", "40P01", "55P03", "21000", "08007", "25P02", "57P03"].contains(&code.as_str())
}

/// Sends a statement; of a COPY also the data.
async fn send(client: &Client, text: &str) -> Result<(), tokio_postgres::Error> {
    let Some(data) = text.strip_prefix(COPY) else { return client.batch_execute(text).await };
    let mut sink = Box::pin(client.copy_in::<_, Bytes>(COPY).await?);
    sink.send(Bytes::copy_from_slice(data.as_bytes())).await?;
    sink.as_mut().finish().await.map(drop)
}

/// One session: single statements and blocks at both levels. Returns the number of statements that succeeded.
async fn session(client: Client, seed: u64, rounds: u32) -> u32 {
    let mut draws = Draws(StdRng::seed_from_u64(seed));
    let mut succeeded = 0;
    let execute = async |text: &str| match send(&client, text).await {
        Ok(()) => 1,
        Err(error) => {
            assert!(is_expected(&error), "seed {seed}: {text}: {error:?}");
            0
        }
    };
    for _ in 0..rounds {
        let begin = match draws.0.random_range(0..4) {
            0 | 1 => None,
            2 => Some("begin isolation level read committed"),
            _ => Some("begin isolation level repeatable read"),
        };
        let Some(begin) = begin else {
            succeeded += execute(&draws.statement()).await;
            continue;
        };
        execute(begin).await;
        for _ in 0..draws.0.random_range(1..5) {
            let done = execute(&draws.statement()).await;
            succeeded += done;
            if done == 0 {
                break;
            }
        }
        execute(if draws.0.random_range(0..6) == 0 { "rollback" } else { "commit" }).await;
    }
    succeeded
}

/// What the sessions of a seed leave behind.
async fn storm(seed: u64, faults: Faults) {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let client = servers[0].connect().await;
    client.batch_execute(TABLE).await.expect("a table");
    cluster.set_faults(faults);
    let mut sessions = Vec::new();
    for number in 0..6u64 {
        let client = servers[usize::from(number % 2 == 1)].connect().await;
        client.batch_execute("set lock_timeout = '300ms'").await.ok();
        sessions.push(tokio::spawn(session(client, seed * 100 + number, 60)));
    }
    let mut succeeded = 0;
    for session in sessions {
        succeeded += session.await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    cluster.set_faults(Faults::none());
    let found = check(&cluster, "t").await;
    assert_eq!(found.described, Vec::<String>::new(), "seed {seed}");
    assert!(succeeded > 60 && found.rows > 0 && found.entries > found.rows, "seed {seed}: {succeeded} {found:?}");
    // The same by the way of the indexes.
    for (by_index, by_row) in [
        ("select id from t where a >= 0 order by id", "select id from t where a + 0 >= 0 order by id"),
        ("select id from t where n > 0 order by id", "select id from t where n + 0 > 0 order by id"),
        (
            "select t.id, u.id from t join t u on u.a = t.b where t.id in (1, 2, 3, 4, 5) order by 1, 2",
            "select t.id, u.id from t join t u on u.a + 0 = t.b + 0 where t.id + 0 < 6 and t.id + 0 > 0 order by 1, 2",
        ),
        (
            "select t.id, u.id from t join t u on u.c = t.c where t.id = 3 order by 1, 2",
            "select t.id, u.id from t join t u on u.c || '' = t.c || '' where t.id + 0 = 3 order by 1, 2",
        ),
        ("select min(a), max(b) from t where a > 3", "select min(a + 0), max(b + 0) from t where a + 0 > 3"),
        ("select max(a) from t", "select max(a + 0) from t"),
        ("select min(a) from t", "select min(a + 0) from t"),
        // Which of two equal numbers it is does not matter.
        ("select trim_scale(max(n)) from t", "select trim_scale(max(n + 0)) from t"),
        (
            "select a, n, id from t where c = 'x' order by a, id",
            "select a, n, id from t where c || '' = 'x' order by a, id",
        ),
    ] {
        assert_eq!(run(&client, by_index).await, run(&client, by_row).await, "seed {seed}: {by_index}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_say_the_same_as_rows() {
    for seed in 0..4 {
        storm(seed, Faults::none()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_say_the_same_as_rows_under_faults() {
    for seed in 10..14 {
        storm(seed, Faults { delay_max: Duration::from_millis(2), ..Faults::mixed(seed) }).await;
    }
}

/// A table of more rows than one transaction writes when an index is built, and indexes that are refused.
#[tokio::test]
async fn an_index_of_many_rows_is_built_in_pages() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    run(&client, "create table t (id int, a int, b text)").await;
    for from in [0, 1000, 2000] {
        // The last row repeats the first one's text.
        let rows: Vec<String> = (from..from + 1000).map(|i| format!("({i}, {}, 'b{}')", i % 100, i % 2999)).collect();
        run(&client, &format!("insert into t values {}", rows.join(", "))).await;
    }
    run(&client, "create index t_a on t (a) include (id)").await;
    run(&client, "create unique index t_ab on t (a, id desc)").await;
    let refused = client.simple_query("create unique index on t (b)").await.expect_err("duplicates");
    assert_eq!(refused.code(), Some(&SqlState::UNIQUE_VIOLATION));
    let found = check(&server.cluster, "t").await;
    assert_eq!((found.rows, found.entries, found.differences), (3000, 6000, 0), "{found:?}");
    assert_eq!(run(&client, "select count(*) from t where a = 7").await, [[Some("30".to_owned())]]);
    // A primary key gives the rows new keys.
    run(&client, "alter table t add primary key (id)").await;
    let found = check(&server.cluster, "t").await;
    assert_eq!((found.rows, found.entries, found.differences), (3000, 6000, 0), "{found:?}");
    run(&client, "alter table t drop constraint t_pkey").await;
    run(&client, "drop index t_a").await;
    let found = check(&server.cluster, "t").await;
    assert_eq!((found.rows, found.entries, found.differences), (3000, 3000, 0), "{found:?}");
    assert_eq!(run(&client, "select id from t where a = 7 order by id desc limit 2").await.len(), 2);
    // What was given up, and what was built in vain, is removed; what is in use is not.
    let mut reclaimer = Reclaimer::new();
    let db = database(&server.cluster);
    let mut removed = 0;
    for _ in 0..200 {
        let progress = reclaimer.step(&db).await.expect("a step");
        removed += progress.rows;
        if !progress.more {
            break;
        }
    }
    // Two generations of rows and entries, an index, and the pages of the one that was refused.
    assert!(removed > 2 * (3000 + 6000) + 3000 + 2000, "{removed}");
    let found = check(&server.cluster, "t").await;
    assert_eq!((found.rows, found.entries, found.differences), (3000, 3000, 0), "{found:?}");
}

/// Rows that other sessions write while an index is built are in it: they wait, or come before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_complete_although_others_write() {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let client = Arc::new(servers[0].connect().await);
    run(&client, "create table t (id int primary key, a int)").await;
    let rows: Vec<String> = (0..2000).map(|i| format!("({i}, {i})")).collect();
    run(&client, &format!("insert into t values {}", rows.join(", "))).await;
    let mut writers = Vec::new();
    for number in 0..4 {
        let writer = servers[number % 2].connect().await;
        writers.push(tokio::spawn(async move {
            for round in 0..40usize {
                let id = 10_000 + 100 * number + round;
                let text = format!("insert into t values ({id}, 7); update t set a = a + 1 where id = {}", round * 50);
                // A conflict with the schema change is no row.
                let _ = writer.simple_query(&text).await;
            }
        }));
    }
    for index in ["create index t_a on t (a)", "create index t_b on t (a desc, id)", "drop index t_a"] {
        run(&client, index).await;
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
    let found = check(&cluster, "t").await;
    assert_eq!(found.described, Vec::<String>::new());
    assert!(found.rows > 2000 && found.entries == found.rows, "{found:?}");
}

/// A session that has found a row by an index looks at the row again when it has waited for it.
#[tokio::test]
async fn a_row_that_has_left_the_range_of_an_index_scan_does_not_count() {
    let config = gateway_config();
    let server = TestServer::with(config, MemoryCluster::new(), Duration::from_secs(1)).await;
    let (a, b) = (server.connect().await, server.connect().await);
    run(&a, "create table t (id int primary key, a int); create index on t (a); insert into t values (1, 1), (2, 1)")
        .await;
    for (statement, expected) in [
        ("update t set a = a + 100 where a = 1 returning id", vec!["2"]),
        ("delete from t where a = 1 returning id", vec!["2"]),
        ("select id from t where a = 1 for update", vec!["2"]),
    ] {
        run(&a, "delete from t; insert into t values (1, 1), (2, 1)").await;
        run(&a, "begin; update t set a = 5 where id = 1").await;
        run(&b, "begin").await;
        let waiting = async { run(&b, statement).await };
        let commit = async {
            super::support::eventually("it waits", || server.cluster.row_locks().iter().any(|l| l.wait.is_some()))
                .await;
            run(&a, "commit").await;
        };
        let (found, ()) = tokio::join!(waiting, commit);
        let found: Vec<&str> = found.iter().filter_map(|row| row[0].as_deref()).collect();
        assert_eq!(found, expected, "{statement}");
        run(&b, "commit").await;
        assert_eq!(check(&server.cluster, "t").await.described, Vec::<String>::new(), "{statement}");
    }
}

/// Regression: a scan told of damage (XX001) where a transaction had lost the lock of a row that it had written, with
/// the leader, and another one had written the row.
#[tokio::test]
async fn an_index_scan_after_a_lost_lock_is_a_conflict() {
    let server = TestServer::over(&MemoryCluster::builder().stores(3).build()).await;
    let (a, b) = (server.connect().await, server.connect().await);
    run(&a, "create table t (id int primary key, a int, b int); create index on t (a)").await;
    for write in ["update t set a = 2 where id = 1", "delete from t where id = 1"] {
        run(&a, "delete from t; insert into t values (1, 1, 0), (2, 1, 0)").await;
        run(&a, "begin").await;
        run(&a, write).await;
        for store in [1, 2, 3].map(StoreId::new) {
            server.cluster.move_leader(&Key::new("t"), store);
        }
        run(&b, "update t set a = 3 where id = 1").await;
        let refused = a.simple_query("update t set b = 1 where a > 0").await.expect_err("its lock was lost");
        assert_eq!(refused.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{write}: {refused:?}");
        run(&a, "rollback").await;
        assert_eq!(run(&a, "select id from t where a = 3").await, [[Some("1".to_owned())]]);
        assert_eq!(check(&server.cluster, "t").await.described, Vec::<String>::new(), "{write}");
    }
}

/// The entry that a writer removes is newer than the snapshot of its statement, as the row is that it has waited for.
#[tokio::test]
async fn a_writer_that_has_waited_replaces_the_newest_entries() {
    let server = TestServer::start().await;
    let (a, b) = (server.connect().await, server.connect().await);
    run(&a, "create table t (id int primary key, a int unique, b int); create index on t (b)").await;
    run(&a, "insert into t values (1, 1, 1)").await;
    for (round, statement) in [
        "update t set a = a + 1, b = b + 1 where id = 1",
        "insert into t values (1, 0, 0) on conflict (id) do update set a = t.a + 1, b = t.b + 1",
        "delete from t where id = 1",
    ]
    .iter()
    .enumerate()
    {
        run(&a, "begin; update t set a = 50, b = 50 where id = 1").await;
        run(&b, "begin; select 1").await;
        let waiting = async { run(&b, statement).await };
        let commit = async {
            super::support::eventually("it waits", || server.cluster.row_locks().iter().any(|l| l.wait.is_some()))
                .await;
            run(&a, "commit").await;
        };
        tokio::join!(waiting, commit);
        run(&b, "commit").await;
        let found = run(&a, "select a, b from t").await;
        let expected = vec![vec![Some("51".to_owned()); 2]; usize::from(round < 2)];
        assert_eq!(found, expected, "{statement}");
        assert_eq!(check(&server.cluster, "t").await.described, Vec::<String>::new(), "{statement}");
    }
}
