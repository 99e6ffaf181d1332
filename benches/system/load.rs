//! The load program: closed-loop clients with prepared statements, and a histogram of latencies.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use futures::future::join_all;
use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, Statement};

use crate::client::connect;

/// What the clients run: a script of sysbench, or the statement that it is named for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    /// One row by primary key
    PointSelect,
    /// A read-only transaction: ten rows by key, four ranges of 100 rows
    ReadOnly,
    /// Ten rows by a column without an index
    RandomPoints,
    /// Ten ranges of a column without an index
    RandomRanges,
    /// One row, autocommit; without an index the same as UpdateNonIndex
    UpdateIndex,
    /// One row, autocommit
    UpdateNonIndex,
    /// A transaction of two updates, a delete and an insert
    WriteOnly,
    /// A transaction of ReadOnly and WriteOnly
    ReadWrite,
    /// One row, autocommit, that may be gone already
    Delete,
    /// One new row, autocommit
    Insert,
}

impl Workload {
    /// All workloads. Those that take rows away come last.
    pub const ALL: [Workload; 10] = [
        Workload::PointSelect,
        Workload::ReadOnly,
        Workload::RandomPoints,
        Workload::RandomRanges,
        Workload::UpdateIndex,
        Workload::UpdateNonIndex,
        Workload::WriteOnly,
        Workload::ReadWrite,
        Workload::Delete,
        Workload::Insert,
    ];

    /// The statement of our own program, if it has one for this workload.
    pub fn own_statement(self) -> Option<&'static str> {
        match self {
            Workload::PointSelect => Some("SELECT c FROM sbtest1 WHERE id = $1"),
            Workload::Insert => Some("INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, $3, $4)"),
            _ => None,
        }
    }

    /// Whether its transactions may meet each other.
    pub fn has_conflicts(self) -> bool {
        matches!(
            self,
            Workload::UpdateIndex
                | Workload::UpdateNonIndex
                | Workload::WriteOnly
                | Workload::ReadWrite
                | Workload::Delete
                | Workload::Insert
        )
    }

    /// The name of sysbench's script.
    pub fn script(self) -> &'static str {
        match self {
            Workload::PointSelect => "oltp_point_select",
            Workload::ReadOnly => "oltp_read_only",
            Workload::RandomPoints => "select_random_points",
            Workload::RandomRanges => "select_random_ranges",
            Workload::UpdateIndex => "oltp_update_index",
            Workload::UpdateNonIndex => "oltp_update_non_index",
            Workload::WriteOnly => "oltp_write_only",
            Workload::ReadWrite => "oltp_read_write",
            Workload::Delete => "oltp_delete",
            Workload::Insert => "oltp_insert",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.script())
    }
}

/// The measurements of one run.
pub struct Outcome {
    pub requests: u64,
    pub errors: u64,
    pub elapsed: Duration,
    pub latency: Histogram<u64>,
}

/// The next id to insert. It continues from run to run, so that no insert meets an existing row.
static NEXT_ID: AtomicI64 = AtomicI64::new(1 << 32);

/// Creates the table with `rows` rows, with sysbench's column widths.
pub async fn prepare(port: u16, rows: i64) {
    let client = connect(port).await;
    let table = "CREATE TABLE sbtest1 \
         (id bigint PRIMARY KEY, k int NOT NULL, c varchar(120) NOT NULL, pad varchar(60) NOT NULL)";
    client.batch_execute("DROP TABLE IF EXISTS sbtest1").await.unwrap();
    client.batch_execute(table).await.unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    for first in (1..=rows).step_by(500) {
        let values = (first..(first + 500).min(rows + 1)).map(|id| {
            let (k, c, pad) = row(&mut rng);
            format!("({id},{k},'{c}','{pad}')")
        });
        let insert = format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES {}", values.collect::<Vec<_>>().join(","));
        client.batch_execute(&insert).await.unwrap();
    }
}

/// The columns `k`, `c` and `pad` of a row.
pub fn row(rng: &mut StdRng) -> (i32, String, String) {
    let mut digits = |groups: usize| {
        let group = |rng: &mut StdRng| format!("{:011}", rng.random_range(0..100_000_000_000u64));
        (0..groups).map(|_| group(rng)).collect::<Vec<_>>().join("-")
    };
    let (c, pad) = (digits(10), digits(5));
    (rng.random_range(0..1 << 20), c, pad)
}

/// Runs `clients` clients for `time` with the workload's own statement `sql`.
pub async fn run(port: u16, workload: Workload, sql: &str, clients: usize, rows: i64, time: Duration) -> Outcome {
    let mut connections = Vec::new();
    for _ in 0..clients {
        let client = connect(port).await;
        let statement = client.prepare(sql).await.unwrap();
        connections.push((client, statement));
    }
    let start = Instant::now();
    let deadline = start + time;
    let tasks = connections.into_iter().enumerate().map(|(n, (client, statement))| {
        tokio::spawn(client_loop(client, statement, workload, rows, n as u64, deadline))
    });
    let mut outcome = Outcome { requests: 0, errors: 0, elapsed: Duration::ZERO, latency: Histogram::new(3).unwrap() };
    for task in join_all(tasks).await {
        let (latency, errors) = task.unwrap();
        outcome.requests += latency.len();
        outcome.errors += errors;
        outcome.latency.add(latency).unwrap();
    }
    outcome.elapsed = start.elapsed();
    outcome
}

async fn client_loop(
    client: Client,
    statement: Statement,
    workload: Workload,
    rows: i64,
    seed: u64,
    deadline: Instant,
) -> (Histogram<u64>, u64) {
    let mut latency = Histogram::new(3).unwrap();
    let mut errors = 0;
    let mut rng = StdRng::seed_from_u64(seed);
    while Instant::now() < deadline {
        let start;
        let result = match workload {
            Workload::PointSelect => {
                let id = rng.random_range(1..=rows);
                start = Instant::now();
                client.query(&statement, &[&id]).await.map(|rows| rows.len() as u64)
            }
            _ => {
                let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
                let (k, c, pad) = row(&mut rng);
                start = Instant::now();
                client.execute(&statement, &[&id, &k, &c, &pad]).await
            }
        };
        match result {
            Ok(1) => latency.record(start.elapsed().as_nanos() as u64).unwrap(),
            Ok(n) => panic!("{workload} touched {n} rows"),
            Err(error) => {
                eprintln!("{workload}: {error}");
                errors += 1;
                assert!(errors < 100, "too many errors");
            }
        }
    }
    (latency, errors)
}
