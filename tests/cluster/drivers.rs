//! Four drivers run their sections ([tests/drivers](../drivers/README.md)) against the nodes of a cluster: psql,
//! psycopg, asyncpg, tokio-postgres. The pipelines of asyncpg and libpq get their errors.
//!
//! `make test` installs psql, psycopg and asyncpg (Debian: postgresql-client, python3-psycopg, python3-asyncpg).
//! Without them the test fails with that message. `make drivers` runs ten drivers in newer versions.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;

/// The sections of every driver.
const SECTIONS: [&str; 11] = [
    "connect",
    "types_text",
    "types_binary",
    "prepared",
    "batch",
    "transactions",
    "errors",
    "cancel",
    "copy",
    "cursors",
    "catalog",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drivers_pass_their_sections() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let port = |node: usize| cluster.nodes[node].pg;
    check_sections("psql", Command::new(folder().join("psql/main.sh")), port(0));
    check_sections("psycopg", python_program("psycopg", "psycopg3/main.py"), port(1));
    check_sections("asyncpg", python_program("asyncpg", "asyncpg/main.py"), port(2));
    let mut driver = Command::new(env!("CARGO"));
    driver.args(["run", "-q", "--locked", "-p", "driver"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    check_sections("tokio-postgres", driver, port(0));
    let errors = ["42601", "42703", "22012", "42P01"];
    let mut pipelines: Vec<String> = errors.iter().map(|state| format!("asyncpg {state}")).collect();
    pipelines.push("asyncpg cursor [1, 2, 3]".to_string());
    pipelines.extend(errors[..3].iter().map(|state| format!("libpq {state}")));
    pipelines.push("libpq flush 42601".to_string());
    let mut program = python_program("asyncpg, psycopg", "pipelines.py");
    assert_eq!(lines_of(program.arg(port(1).to_string())), pipelines);
}

/// Runs a driver against a node: each section passes, or the driver has no such thing.
fn check_sections(driver: &str, mut command: Command, port: u16) {
    command
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port.to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres")
        .env("PYTHONPATH", folder().join("harness"));
    let out = command.output().unwrap_or_else(|error| panic!("{driver}: {error}"));
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    for section in SECTIONS {
        let passed = text.lines().any(|line| {
            let mut words = line.split(' ');
            matches!(words.next(), Some("ok" | "none")) && words.next() == Some(section)
        });
        assert!(passed, "{driver} {section}:\n{text}");
    }
    assert!(out.status.success(), "{driver}:\n{text}");
}

/// A Python program, for a Python that has these modules.
fn python_program(modules: &str, program: &str) -> Command {
    // They may be installed for the distribution's Python or for the first one on the PATH.
    let has_modules = |python: &&str| {
        Command::new(python).args(["-c", &format!("import {modules}")]).output().is_ok_and(|out| out.status.success())
    };
    let python = ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(has_modules)
        .unwrap_or_else(|| panic!("{modules} must be installed: apt-get install python3-psycopg python3-asyncpg"));
    let mut command = Command::new(python);
    command.arg("-B").arg(folder().join(program)).env_remove("PGTZ");
    command
}

fn lines_of(command: &mut Command) -> Vec<String> {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_string).collect()
}

/// psql with ON_ERROR_ROLLBACK puts a savepoint around each statement of a block: an error undoes that statement alone.
/// With `interactive` it does so only at a terminal, which `script` provides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_rolls_back_to_its_savepoint_after_an_error() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    let block = "BEGIN;
        INSERT INTO t VALUES (1);
        INSERT INTO t VALUES (1);
        SELECT * FROM nothing;
        SAVEPOINT mine;
        INSERT INTO t VALUES (2);
        SELECT 1 / 0;
        INSERT INTO t VALUES (3);
        ROLLBACK TO mine;
        SELECT pg_advisory_xact_lock(5);
        SELECT 1 / 0;
        INSERT INTO t VALUES (4);
        COMMIT;
        \\q\n";
    let url = format!("postgresql://postgres@127.0.0.1:{}/postgres", cluster.nodes[1].pg);
    for (mode, at_terminal, expected) in [
        ("on", false, vec![1, 4]),
        ("interactive", true, vec![1, 4]),
        ("interactive", false, vec![]),
        ("off", true, vec![]),
    ] {
        client.batch_execute("TRUNCATE t").await.unwrap();
        let psql = format!("psql -XAtq -v ON_ERROR_ROLLBACK={mode} {url}");
        let mut command = match at_terminal {
            true => {
                let mut command = Command::new("script");
                command.args(["-qec", &psql, "/dev/null"]).env("PAGER", "cat");
                command
            }
            false => {
                let mut command = Command::new("sh");
                command.args(["-c", &psql]);
                command
            }
        };
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(block.as_bytes()).unwrap();
        let out = running.wait_with_output().unwrap();
        let rows = client.query("SELECT id FROM t ORDER BY id", &[]).await.unwrap();
        let rows: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, expected, "{mode}, at a terminal: {at_terminal}: {out:?}");
    }
}

/// A name that was fetched ahead conflicts with commits since. INSERT is run again then; the data of a COPY is not
/// there any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_conflicts_with_nothing_that_was_committed_before_it() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let setup = cluster.connect(0).await;
    setup.batch_execute("CREATE TABLE copied (id int PRIMARY KEY)").await.unwrap();
    for node in 0..cluster.nodes.len() {
        let (own, other) = (cluster.connect(node).await, cluster.connect((node + 1) % cluster.nodes.len()).await);
        for round in 0..8 {
            let id = 100 * node as i32 + 2 * round;
            // A commit in one request, for which names are fetched ahead.
            own.execute("INSERT INTO copied VALUES ($1)", &[&(id + 1)]).await.unwrap();
            other.execute("INSERT INTO copied VALUES ($1)", &[&id]).await.unwrap();
            let refused = copy_row(&own, id).await.unwrap_err();
            assert_eq!(refused.code(), Some(&SqlState::UNIQUE_VIOLATION), "node {node}, round {round}: {refused:?}");
            other.execute("DELETE FROM copied WHERE id = $1", &[&id]).await.unwrap();
            assert_eq!(copy_row(&own, id).await.unwrap(), 1, "node {node}, round {round}");
        }
    }
}

async fn copy_row(client: &Client, id: i32) -> Result<u64, Error> {
    let mut sink = Box::pin(client.copy_in::<_, Bytes>("COPY copied FROM STDIN").await?);
    sink.send(Bytes::from(format!("{id}\n"))).await?;
    sink.as_mut().finish().await
}
