//! COPY with real clients: psql, whose `\copy` is COPY, and tokio-postgres, which copies through the extended protocol.
//! Sizes, cancellation, clients that vanish.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use kv::memory::MemoryCluster;
use tokio::io::AsyncWriteExt;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::support::client::{Raw, cancel, message, query};
use super::support::{TestServer, eventually};

/// Rows of a large COPY: more than are stored together, with more bytes than a socket buffers.
const MANY: usize = 50_000;

/// A folder of this test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("cortado-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs lines of psql, and returns what it prints, errors included.
async fn psql(server: &TestServer, lines: &str) -> String {
    let port = server.address.port().to_string();
    let mut psql = tokio::process::Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-XAtq"])
        .env("PGCLIENTENCODING", "UTF8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql must be installed: apt-get install postgresql-client");
    psql.stdin.take().expect("piped").write_all(lines.as_bytes()).await.expect("psql reads");
    let out = psql.wait_with_output().await.expect("psql ends");
    let (text, errors) = (String::from_utf8(out.stdout).expect("UTF-8"), String::from_utf8(out.stderr).expect("UTF-8"));
    text + &errors
}

fn read(path: &Path) -> String {
    String::from_utf8(std::fs::read(path).expect("a file")).expect("UTF-8")
}

const TABLE: &str = "create table t (a int primary key, b text, c timestamptz);\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_copies_text_csv_and_binary_both_ways() {
    let server = TestServer::start().await;
    let folder = Folder::new("psql");
    let text = "1\ttab\\there\t2024-02-03 04:05:06+00\n2\t\\N\t\\N\n3\té\\\\\t\\N\n";
    let csv = "a,b,c\n1,tab\there,2024-02-03 04:05:06+00\n2,,\n3,\u{e9}\\,\n";
    let input = folder.file("in.txt", text.as_bytes()).display().to_string();
    let out = |name: &str| folder.0.join(name).display().to_string();
    let (text_out, csv_out, binary_out) = (out("out.txt"), out("out.csv"), out("out.bin"));
    let printed = psql(
        &server,
        &format!(
            "set time zone 'UTC';\n{TABLE}\\copy t from '{input}'\n\\copy t to '{text_out}'\n\
             \\copy t to '{csv_out}' csv header\n\\copy t to '{binary_out}' (format binary)\n\
             create table csv (a int primary key, b text, c timestamptz);\n\
             \\copy csv from '{csv_out}' with (format csv, header match)\n\\copy csv to stdout\n\
             create table bin (a int primary key, b text, c timestamptz);\n\
             \\copy bin from '{binary_out}' binary\n\\copy (select * from bin) to stdout csv\n"
        ),
    )
    .await;
    let (_, rows) = csv.split_once('\n').expect("a header");
    assert_eq!(printed, format!("{text}{rows}"));
    assert_eq!(read(Path::new(&text_out)), text);
    assert_eq!(read(Path::new(&csv_out)), csv);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_shows_where_data_is_wrong() {
    let server = TestServer::start().await;
    let folder = Folder::new("psql-errors");
    let input = folder.file("in.csv", b"1,x,\n2,y,never\n");
    let lines = format!("{TABLE}\\copy t from '{}' csv\nselect count(*) from t;\n", input.display());
    let expected = "0\nERROR:  invalid input syntax for type timestamp with time zone: \"never\"\n\
                    CONTEXT:  COPY t, line 2, column c: \"never\"\n";
    assert_eq!(psql(&server, &lines).await, expected);
    // The data within the script, as dumps have it.
    let inline = "copy t (a, b) from stdin;\n1\tone\n2\ttwo\n\\.\ncopy t (b, a) to stdout (delimiter '|');\n";
    assert_eq!(psql(&server, inline).await, "one|1\ntwo|2\n");
}

fn lines(range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("{n}\tvalue of row {n}\n")).collect()
}

async fn count(client: &Client) -> i64 {
    client.query_one("select count(*) from t", &[]).await.expect("counts").get(0)
}

async fn with_table(server: &TestServer) -> Client {
    let client = server.connect().await;
    client.batch_execute("create table t (a int primary key, b text)").await.expect("creates");
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_copies_many_rows_in_and_out() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let sink = client.copy_in("copy t from stdin").await.expect("begins");
    futures::pin_mut!(sink);
    let data = Bytes::from(lines(0..MANY));
    // Pieces that end anywhere.
    for at in (0..data.len()).step_by(70_001) {
        sink.send(data.slice(at..data.len().min(at + 70_001))).await.expect("sends");
    }
    assert_eq!(sink.finish().await.expect("commits"), MANY as u64);
    assert_eq!(count(&client).await, i64::try_from(MANY).expect("fits"));
    let stream = client.copy_out("copy (select * from t order by a) to stdout").await.expect("begins");
    let pieces: Vec<Bytes> = stream.try_collect().await.expect("all rows");
    assert_eq!(pieces.len(), MANY);
    assert_eq!(Bytes::from(pieces.concat()), data);
}

/// Nobody sees a part of it, whatever fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_atomic() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    // The last row is wrong, long after others were stored.
    let sink = client.copy_in("copy t from stdin").await.expect("begins");
    futures::pin_mut!(sink);
    sink.send(Bytes::from(lines(0..5_000))).await.expect("sends");
    sink.send(Bytes::from_static(b"x\ty\n")).await.expect("sends");
    let error = sink.finish().await.expect_err("a wrong row");
    let error = error.as_db_error().expect("the server's");
    assert_eq!(error.code(), &SqlState::INVALID_TEXT_REPRESENTATION);
    assert_eq!(error.where_(), Some("COPY t, line 5001, column a: \"x\""));
    assert_eq!(count(&client).await, 0);
    // The client gives up: the driver sends CopyFail.
    {
        let sink = client.copy_in("copy t from stdin").await.expect("begins");
        futures::pin_mut!(sink);
        sink.send(Bytes::from(lines(0..5_000))).await.expect("sends");
    }
    assert_eq!(count(&client).await, 0);
    // The client is gone.
    let mut raw = Raw::login(server.address).await;
    raw.send(&query("copy t from stdin")).await;
    assert_eq!(raw.reply().await.map(|reply| reply.kind), Some(b'G'));
    raw.send(&message(b'd', lines(0..5_000).as_bytes())).await;
    drop(raw);
    eventually("the session ends", || server.server.connections() == 1).await;
    assert_eq!(count(&client).await, 0);
    // An existing key is found by the commit.
    client.batch_execute("insert into t values (4999, 'x')").await.expect("inserts");
    let sink = client.copy_in("copy t from stdin").await.expect("begins");
    futures::pin_mut!(sink);
    sink.send(Bytes::from(lines(0..5_000))).await.expect("sends");
    let error = sink.finish().await.expect_err("a duplicate");
    assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
    assert_eq!(count(&client).await, 1);
}

/// Foreign keys are checked once all rows are there: their errors are of no line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_a_foreign_key_has_no_line() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.batch_execute("create table child (a int references t)").await.expect("creates");
    let sink = client.copy_in("copy child from stdin").await.expect("begins");
    futures::pin_mut!(sink);
    sink.send(Bytes::from("5\n")).await.expect("sends");
    let error = sink.finish().await.expect_err("no parent");
    let error = error.as_db_error().expect("the server's");
    assert_eq!((error.code(), error.where_()), (&SqlState::FOREIGN_KEY_VIOLATION, None));
}

/// Another session that inserts the same key is waited for, as INSERT does in a block.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_in_a_block_waits_for_the_same_key() {
    let server = TestServer::start().await;
    let other = with_table(&server).await;
    other.batch_execute("begin; insert into t values (2, 'x')").await.expect("inserts");
    let client = server.connect().await;
    client.batch_execute("begin").await.expect("begins");
    let sink = client.copy_in("copy t from stdin").await.expect("begins");
    futures::pin_mut!(sink);
    sink.send(Bytes::from(lines(0..4))).await.expect("sends");
    let (done, ()) = tokio::join!(sink.finish(), async {
        let waits = || server.cluster.row_locks().iter().any(|lock| lock.wait.is_some());
        eventually("the copy waits", waits).await;
        other.batch_execute("commit").await.expect("commits");
    });
    let error = done.expect_err("a duplicate");
    let error = error.as_db_error().expect("the server's");
    assert_eq!((error.code(), error.where_()), (&SqlState::UNIQUE_VIOLATION, Some("COPY t, line 3")));
    client.batch_execute("rollback").await.expect("rolls back");
    assert_eq!(count(&client).await, 1);
}

/// The rows of a table of the same transaction, which nobody else sees, are not locked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_into_a_table_of_its_transaction_locks_no_rows() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    client.batch_execute("insert into t values (1, 'old')").await.expect("inserts");
    for (own, locks) in [("truncate t", 0), ("select 1", 3)] {
        client.batch_execute(&format!("begin; {own}")).await.expect("begins");
        let sink = client.copy_in("copy t from stdin with (freeze on)").await.expect("begins");
        futures::pin_mut!(sink);
        sink.send(Bytes::from(lines(2..5))).await.expect("sends");
        assert_eq!(sink.finish().await.expect("copies"), 3);
        assert_eq!(server.cluster.row_locks().len(), locks, "{own}");
        client.batch_execute("rollback").await.expect("rolls back");
    }
    assert_eq!(count(&client).await, 1);
}

/// Beyond the size of a transaction the error comes before anything is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_too_large_writes_nothing() {
    let server = TestServer::with_transactions_of(1 << 20, MemoryCluster::new()).await;
    let client = with_table(&server).await;
    let sink = client.copy_in("copy t from stdin").await.expect("begins");
    futures::pin_mut!(sink);
    let before = server.cluster.calls();
    for at in 0..100 {
        // Once the server has refused the data, the driver does not send it any more.
        if sink.send(Bytes::from(lines(at * 1_000..(at + 1) * 1_000))).await.is_err() {
            break;
        }
    }
    let error = sink.finish().await.expect_err("too large");
    let error = error.as_db_error().expect("the server's");
    assert_eq!((error.code(), error.message()), (&SqlState::PROGRAM_LIMIT_EXCEEDED, "transaction is too large"));
    assert!(error.where_().is_some_and(|place| place.starts_with("COPY t, line ")), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("several transactions")), "{error:?}");
    assert_eq!(server.cluster.calls(), before, "no request was sent");
    assert_eq!(count(&client).await, 0);
}

/// Neither the data of the client nor a client that does not read keeps a cancel waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_a_copy() {
    let server = TestServer::start().await;
    let client = with_table(&server).await;
    let text = "x".repeat(100_000);
    for id in 0..300 {
        client.execute("insert into t values ($1, $2)", &[&id, &text]).await.expect("inserts");
    }
    for (statement, first) in [("copy t to stdout", b'H'), ("copy t from stdin", b'G')] {
        let mut raw = Raw::login(server.address).await;
        raw.send(&query(statement)).await;
        assert_eq!(raw.reply().await.map(|reply| reply.kind), Some(first), "the statement has begun");
        let mut other = Raw::open(server.address).await;
        other.send(&cancel(raw.pid, raw.secret)).await;
        assert_eq!(other.reply().await, None);
        let replies = raw.until_ready().await;
        let error = &replies[replies.len() - 2];
        assert_eq!(error.field(b'C').as_deref(), Some("57014"), "{}", error.show());
        assert!(replies.len() < 300, "not all rows came");
        assert_eq!(raw.query("select 1").await.len(), 4, "the session goes on");
    }
}
