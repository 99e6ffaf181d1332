//! The clients: closed loops of point reads and scans, spread evenly over the nodes.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use futures::future::join_all;
use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, Error, Statement};

use crate::client::connect;

/// Rows of a short scan, and of a long one.
const SHORT: i64 = 50;
const LONG: i64 = 500;
/// Of so many reads of the mixed workload one is a scan.
const ONE_SCAN_IN: u64 = 10;
/// How long the clients read before they measure: the first connections and plans, and the quotas.
const WARM_UP: Duration = Duration::from_secs(1);

const POINT: &str = "SELECT v FROM hot WHERE id = $1";
const SCAN: &str = "SELECT id, v FROM hot WHERE id >= $1 AND id < $2";

/// What the clients read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Workload {
    /// Rows by key
    Points,
    /// Nine points for one scan of 50 rows
    Mixed,
    /// 50 rows from a key on
    Scans,
    /// 500 rows from a key on
    LongScans,
}

impl Workload {
    pub fn name(self) -> &'static str {
        match self {
            Workload::Points => "points",
            Workload::Mixed => "9 points : 1 scan of 50",
            Workload::Scans => "scans of 50",
            Workload::LongScans => "scans of 500",
        }
    }

    /// The rows of the read with this number. One row is read by its key.
    fn rows(self, number: u64) -> i64 {
        match self {
            Workload::Points => 1,
            Workload::Mixed if number.is_multiple_of(ONE_SCAN_IN) => SHORT,
            Workload::Mixed => 1,
            Workload::Scans => SHORT,
            Workload::LongScans => LONG,
        }
    }
}

/// What is run.
#[derive(Clone, Copy)]
pub struct Load {
    pub workload: Workload,
    /// The value of `cortado.replica_read`.
    pub policy: &'static str,
    /// Clients of each node.
    pub clients: usize,
    pub rows: i64,
    pub time: Duration,
}

/// The reads of one run.
pub struct Outcome {
    pub latency: Histogram<u64>,
    pub errors: u64,
    /// The reads of the clients of each node.
    pub by_node: Vec<u64>,
    /// How the last read at each node was served, as the server says.
    pub last_reads: Vec<String>,
}

/// Creates the table with `rows` rows of about 200 bytes.
pub async fn prepare(port: u16, rows: i64) {
    let client = connect(port).await;
    client.batch_execute("CREATE TABLE hot (id bigint PRIMARY KEY, v text NOT NULL)").await.unwrap();
    let value = "v".repeat(200);
    for first in (0..rows).step_by(500) {
        let values: Vec<String> = (first..(first + 500).min(rows)).map(|id| format!("({id},'{value}')")).collect();
        client.batch_execute(&format!("INSERT INTO hot VALUES {}", values.join(","))).await.unwrap();
    }
}

/// Runs the clients against the nodes at these ports.
pub async fn run(ports: &[u16], load: Load) -> Outcome {
    let mut readers = Vec::new();
    for (node, port) in ports.iter().enumerate() {
        for number in 0..load.clients {
            readers.push((node, Reader::new(*port, load, (node * load.clients + number) as u64).await));
        }
    }
    let from = Instant::now() + WARM_UP;
    let tasks = readers.into_iter().map(|(node, reader)| {
        let task = tokio::spawn(reader.run(from));
        async move { (node, task.await.unwrap()) }
    });
    let (by_node, last_reads) = (vec![0; ports.len()], vec![String::new(); ports.len()]);
    let mut outcome = Outcome { latency: Histogram::new(3).unwrap(), errors: 0, by_node, last_reads };
    for (node, reader) in join_all(tasks).await {
        outcome.by_node[node] += reader.latency.len();
        outcome.latency.add(reader.latency).unwrap();
        outcome.errors += reader.errors;
        outcome.last_reads[node] = reader.last_read;
    }
    outcome
}

/// A client with its session's settings, and what it has measured.
struct Reader {
    client: Client,
    point: Statement,
    scan: Statement,
    rng: StdRng,
    load: Load,
    latency: Histogram<u64>,
    errors: u64,
    last_read: String,
}

impl Reader {
    async fn new(port: u16, load: Load, seed: u64) -> Reader {
        let client = connect(port).await;
        client.batch_execute(&format!("SET cortado.replica_read = '{}'", load.policy)).await.unwrap();
        let (point, scan) = (client.prepare(POINT).await.unwrap(), client.prepare(SCAN).await.unwrap());
        let (rng, latency) = (StdRng::seed_from_u64(seed), Histogram::new(3).unwrap());
        Reader { client, point, scan, rng, load, latency, errors: 0, last_read: String::new() }
    }

    async fn run(mut self, from: Instant) -> Reader {
        let end = from + self.load.time;
        for number in self.rng.random_range(0..ONE_SCAN_IN).. {
            let begun = Instant::now();
            if begun >= end {
                break;
            }
            match self.read(self.load.workload.rows(number)).await {
                Ok(()) if begun >= from => self.latency.record(begun.elapsed().as_nanos() as u64).unwrap(),
                Ok(()) => {}
                Err(error) => {
                    eprintln!("{error}");
                    self.errors += 1;
                    assert!(self.errors < 100, "too many errors");
                }
            }
        }
        let shown = self.client.query_one("SHOW cortado.last_read", &[]).await;
        self.last_read = shown.map_or_else(|error| error.to_string(), |row| row.get(0));
        self
    }

    async fn read(&mut self, rows: i64) -> Result<(), Error> {
        let first = self.rng.random_range(0..=self.load.rows - rows);
        let found = match rows {
            1 => self.client.query(&self.point, &[&first]).await?,
            rows => self.client.query(&self.scan, &[&first, &(first + rows)]).await?,
        };
        assert_eq!(found.len(), rows as usize, "all rows are there");
        Ok(())
    }
}
