//! The scripts in `tests/sqllogic`, through the simple and through the extended protocol.
//!
//! A script holds statements, and of queries the rows that PostgreSQL 15 returns. They run here on a server over a
//! cluster in memory, or on another server, PostgreSQL among them:
//!
//! ```sh
//! CORTADO_SQLLOGIC_SERVER=127.0.0.1:5432 cargo test -p sql --test sql sqllogic::
//! ```
//!
//! With `UPDATE_GOLDENFILES=1` too, the results of that server are written into the scripts. Each script gets a
//! database of its own.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::{backend, frontend};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::support::{PATIENCE, TestServer};

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Query.
    Simple,
    /// Parse, Bind, Describe, Execute, Sync.
    Extended,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_through_the_simple_protocol() {
    all_scripts(Protocol::Simple).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_through_the_extended_protocol() {
    all_scripts(Protocol::Extended).await;
}

/// A wrong row, a wrong SQLSTATE and a statement that should fail are found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn differences_are_found() {
    let server = TestServer::start().await;
    for wrong in [
        "query I\nselect 1\n----\n2\n",
        "query T\nselect null\n----\nx\n",
        "query II\nselect 1\n----\n1\n",
        "statement error 22012\nselect nope\n",
        "statement error 22012\nselect 1\n",
        "statement ok\nselect 1 / 0\n",
        "statement count 2\ninsert into t values (1)\n",
    ] {
        let script = format!("statement ok\ncreate table if not exists t (a int)\n\n{wrong}");
        for protocol in [Protocol::Simple, Protocol::Extended] {
            let mut runner = Runner::new(|| Connection::open(server.address, "postgres".to_owned(), protocol));
            runner.with_column_validator(sqllogictest::strict_column_validator);
            let found = runner.run_multi_async(sqllogictest::parse(&script).expect("a script")).await;
            assert!(found.is_err(), "{wrong}");
        }
    }
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sqllogic");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut scripts: Vec<_> = files.filter(|path| path.extension().is_some_and(|name| name == "slt")).collect();
    scripts.sort();
    assert!(scripts.len() >= 15, "{} scripts", scripts.len());
    scripts
}

async fn all_scripts(protocol: Protocol) {
    let other = std::env::var("CORTADO_SQLLOGIC_SERVER").ok();
    let writes = std::env::var_os("UPDATE_GOLDENFILES").is_some() && protocol == Protocol::Simple;
    assert!(!writes || other.is_some(), "the results are those of PostgreSQL: set CORTADO_SQLLOGIC_SERVER");
    let server = TestServer::start().await;
    let address = other.map_or(server.address, |other| other.parse().expect("an address"));
    let label = if version(address).await.contains("Cortado") { "cortado" } else { "postgres" };
    let mut failed = Vec::new();
    for script in scripts() {
        let database = fresh_database(address).await;
        let mut runner = Runner::new(|| Connection::open(address, database.clone(), protocol));
        runner.with_column_validator(sqllogictest::strict_column_validator);
        runner.add_label(label);
        if writes {
            let (validator, normalizer) = (sqllogictest::default_validator, sqllogictest::default_normalizer);
            let columns = sqllogictest::strict_column_validator;
            runner.update_test_file(&script, " ", validator, normalizer, columns).await.expect("the script runs");
            continue;
        }
        for record in sqllogictest::parse_file(&script).expect("a script") {
            if let Err(error) = runner.run_async(record).await {
                failed.push(error.display(false).to_string());
            }
        }
    }
    assert!(failed.is_empty(), "{protocol:?}:\n{}", failed.join("\n\n"));
}

async fn version(address: SocketAddr) -> String {
    let mut connection = Connection::open(address, "postgres".to_owned(), Protocol::Simple).await.expect("connects");
    connection.send("select version()").await.expect("every server has a version").rows.remove(0).remove(0)
}

async fn fresh_database(address: SocketAddr) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("logic_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut admin = Connection::open(address, "postgres".to_owned(), Protocol::Simple).await.expect("connects");
    admin.send(&format!("create database {name}")).await.expect("creates");
    name
}

/// A connection, by messages: no driver shows the text of a value in both protocols.
struct Connection {
    stream: TcpStream,
    received: BytesMut,
    protocol: Protocol,
}

/// What a statement returns.
#[derive(Default)]
struct Reply {
    columns: Vec<DefaultColumnType>,
    rows: Vec<Vec<String>>,
    count: u64,
    error: Option<Refused>,
}

/// An error of the server, or of the connection to it.
#[derive(Debug)]
struct Refused(String);

impl Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Refused {
        Refused(error.to_string())
    }
}

impl Connection {
    async fn open(address: SocketAddr, database: String, protocol: Protocol) -> Result<Connection, Refused> {
        let stream = TcpStream::connect(address).await?;
        let mut connection = Connection { stream, received: BytesMut::new(), protocol };
        let mut message = BytesMut::new();
        frontend::startup_message([("user", "postgres"), ("database", database.as_str())], &mut message)?;
        connection.stream.write_all(&message).await?;
        connection.reply().await?.error.map_or(Ok(connection), Err)
    }

    async fn send(&mut self, sql: &str) -> Result<Reply, Refused> {
        let mut message = BytesMut::new();
        match self.protocol {
            Protocol::Simple => frontend::query(sql, &mut message)?,
            Protocol::Extended => {
                frontend::parse("", sql, [], &mut message)?;
                frontend::bind("", "", [], [], |(): (), _| unreachable!("no values"), [0], &mut message)
                    .map_err(|_| Refused("a long message".to_owned()))?;
                frontend::describe(b'P', "", &mut message)?;
                frontend::execute("", 0, &mut message)?;
                frontend::sync(&mut message);
            }
        }
        self.stream.write_all(&message).await?;
        self.reply().await
    }

    /// The messages up to ReadyForQuery.
    async fn reply(&mut self) -> Result<Reply, Refused> {
        let mut reply = Reply::default();
        loop {
            while let Some(message) = backend::Message::parse(&mut self.received)? {
                match message {
                    backend::Message::RowDescription(body) => {
                        reply.columns = body.fields().map(|field| Ok(letter(field.type_oid()))).collect()?;
                    }
                    backend::Message::DataRow(body) => {
                        let value = |range: Option<std::ops::Range<usize>>| {
                            Ok(range.map_or("NULL".to_owned(), |range| shown(&body.buffer()[range])))
                        };
                        reply.rows.push(body.ranges().map(value).collect()?);
                    }
                    backend::Message::CommandComplete(body) => {
                        reply.count = body.tag()?.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                    }
                    backend::Message::ErrorResponse(body) => {
                        let mut fields = body.fields();
                        while let Some(field) = fields.next()? {
                            if field.type_() == b'C' {
                                reply.error = Some(Refused(String::from_utf8_lossy(field.value_bytes()).into_owned()));
                            }
                        }
                    }
                    backend::Message::ReadyForQuery(_) => return Ok(reply),
                    _ => {}
                }
            }
            let read = self.stream.read_buf(&mut self.received);
            if tokio::time::timeout(PATIENCE, read).await.expect("the server answers in time")? == 0 {
                return Err(Refused("the server closed the connection".to_owned()));
            }
        }
    }
}

/// The letter of a type in a script: I, R or T.
fn letter(oid: u32) -> DefaultColumnType {
    match oid {
        20 | 21 | 23 => DefaultColumnType::Integer,
        700 | 701 | 1700 => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

/// A value as in a script, where an empty one would be no value.
fn shown(value: &[u8]) -> String {
    match String::from_utf8_lossy(value) {
        empty if empty.is_empty() => "(empty)".to_owned(),
        text => text.replace('\n', "\\n"),
    }
}

#[async_trait::async_trait]
impl AsyncDB for Connection {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Refused> {
        let reply = self.send(sql).await?;
        match reply {
            Reply { error: Some(error), .. } => Err(error),
            Reply { columns, count, .. } if columns.is_empty() => Ok(DBOutput::StatementComplete(count)),
            Reply { columns: types, rows, .. } => Ok(DBOutput::Rows { types, rows }),
        }
    }

    async fn shutdown(&mut self) {
        // The server sees the end of the connection too.
        let _ = self.stream.shutdown().await;
    }
}
