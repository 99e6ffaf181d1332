//! The table, and the clients that scan it: closed loops with prepared statements and binary values.

use std::fmt;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use futures::future::join_all;
use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use tokio_postgres::{Client, Error, Statement};

use crate::client::connect;
use crate::modes::Mode;

/// Bytes of a row, about.
const ROW: usize = 1_000;
/// Rows of one INSERT.
const BATCH: i64 = 200;
/// How long a read-only transaction lasts after its first statement: so long that most clients are in the middle of
/// one, with a distance as without. Short ones begin together at each round trip, and their later statements hinder
/// each other.
const LATER: Duration = Duration::from_millis(500);
/// How long a client reads before it measures.
const WARM_UP: Duration = Duration::from_secs(1);

const SCAN: &str = "SELECT id, v FROM scanned WHERE id >= $1 AND id < $2";
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Which statements are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statements {
    /// The first statement of a transaction: each is a transaction of its own
    First,
    /// Further statements of a read-only transaction, whose first one is not measured
    Later,
}

impl fmt::Display for Statements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Statements::First => "first",
            Statements::Later => "later",
        })
    }
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub statements: Statements,
    /// Rows of each scan.
    pub keys: i64,
    pub clients: usize,
    /// Rows of the table.
    pub rows: i64,
    pub time: Duration,
}

/// The measurements of one run.
pub struct Outcome {
    /// Nanoseconds of each statement that is measured.
    pub latency: Histogram<u64>,
    /// The rate of statements that are measured, summed over the clients. What a client does between them does not
    /// count.
    pub per_second: f64,
    /// All scans of the run, measured or not, warm-up included.
    pub scans: u64,
    pub errors: u64,
    /// What the server says about the last read, if it can.
    pub last_read: Option<String>,
}

/// Creates the table with `rows` rows.
pub async fn prepare(port: u16, rows: i64) {
    let client = connect(port).await;
    client.batch_execute("DROP TABLE IF EXISTS scanned").await.unwrap();
    client.batch_execute("CREATE TABLE scanned (id bigint PRIMARY KEY, v text NOT NULL)").await.unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    for first in (0..rows).step_by(BATCH as usize) {
        let row = |id| format!("({id},'{}')", text(&mut rng));
        let values: Vec<String> = (first..(first + BATCH).min(rows)).map(row).collect();
        client.batch_execute(&format!("INSERT INTO scanned VALUES {}", values.join(","))).await.unwrap();
    }
}

fn text(rng: &mut StdRng) -> String {
    (0..ROW).map(|_| char::from(rng.random_range(b'a'..=b'z'))).collect()
}

/// A client with its session's settings.
struct Reader {
    client: Client,
    scan: Statement,
    rng: StdRng,
    load: Load,
    outcome: Outcome,
    /// How long the statements took that are measured.
    measured: Duration,
}

/// Runs the clients of a mode against the gateway at `port`. `Err`: the server does not have what the mode needs.
pub async fn run(port: u16, mode: &Mode, load: Load) -> Result<Outcome, String> {
    let mut readers = Vec::new();
    for seed in 0..load.clients {
        readers.push(Reader::new(port, mode, load, seed as u64).await.map_err(|error| describe(&error))?);
    }
    let begun = Instant::now();
    let tasks = readers.into_iter().map(|reader| tokio::spawn(reader.run(begun)));
    let mut all: Option<Outcome> = None;
    for task in join_all(tasks).await {
        let one = task.unwrap()?;
        match &mut all {
            None => all = Some(one),
            Some(all) => {
                all.latency.add(&one.latency).unwrap();
                all.per_second += one.per_second;
                all.scans += one.scans;
                all.errors += one.errors;
            }
        }
    }
    Ok(all.expect("a client"))
}

fn describe(error: &Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_string())
}

impl Reader {
    async fn new(port: u16, mode: &Mode, load: Load, seed: u64) -> Result<Reader, Error> {
        let client = connect(port).await;
        for setting in mode.settings {
            client.batch_execute(setting).await?;
        }
        let scan = client.prepare(SCAN).await?;
        let outcome =
            Outcome { latency: Histogram::new(3).unwrap(), per_second: 0.0, scans: 0, errors: 0, last_read: None };
        Ok(Reader { client, scan, rng: StdRng::seed_from_u64(seed), load, outcome, measured: Duration::ZERO })
    }

    async fn run(mut self, begun: Instant) -> Result<Outcome, String> {
        let measure_from = begun + WARM_UP;
        let end = measure_from + self.load.time;
        while Instant::now() < end {
            let done = match self.load.statements {
                Statements::First => self.scan(Some(measure_from)).await,
                Statements::Later => self.transaction(measure_from, end).await,
            };
            if let Err(error) = done {
                eprintln!("{}", describe(&error));
                self.outcome.errors += 1;
                if self.outcome.errors >= 20 {
                    return Err(format!("too many errors, such as: {}", describe(&error)));
                }
                // The transaction has failed, if there is one.
                let _ = self.client.batch_execute("ROLLBACK").await;
            }
        }
        self.outcome.last_read = self.last_read().await;
        self.outcome.per_second = self.outcome.latency.len() as f64 / self.measured.as_secs_f64().max(1e-9);
        Ok(self.outcome)
    }

    async fn last_read(&self) -> Option<String> {
        let shown = self.client.query("SHOW cortado.last_read", &[]).await.ok()?;
        shown.first()?.try_get(0).ok()
    }

    /// A read-only transaction.
    async fn transaction(&mut self, measure_from: Instant, end: Instant) -> Result<(), Error> {
        self.client.batch_execute(BEGIN).await?;
        self.scan(None).await?;
        let end = end.min(Instant::now() + LATER);
        while Instant::now() < end {
            self.scan(Some(measure_from)).await?;
        }
        self.client.batch_execute("COMMIT").await
    }

    /// A scan, which is measured if it begins after `measure_from`.
    async fn scan(&mut self, measure_from: Option<Instant>) -> Result<(), Error> {
        let first = self.rng.random_range(0..=self.load.rows - self.load.keys);
        let begun = Instant::now();
        let rows = self.client.query(&self.scan, &[&first, &(first + self.load.keys)]).await?;
        let took = begun.elapsed();
        assert_eq!(rows.len() as i64, self.load.keys, "a scan of the keys from {first}");
        self.outcome.scans += 1;
        if measure_from.is_some_and(|from| begun >= from) {
            self.outcome.latency.record(took.as_nanos() as u64).unwrap();
            self.measured += took;
        }
        Ok(())
    }
}
