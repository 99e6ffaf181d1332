//! The load: clients that read ten rows, clients that update one, and clients that scan.

use std::fmt;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use futures::future::join_all;
use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use crate::client::connect;

/// Rows that a cheap read reads.
const KEYS: usize = 10;
/// Lengths of a payload.
const PAYLOAD: std::ops::RangeInclusive<usize> = 1_000..=4_000;
/// Bytes of payloads in one statement that loads the table.
const LOAD_BYTES: usize = 1 << 20;
/// How long requests of an open loop may still be sent after its end. Those that are not are as late as that.
const GRACE: Duration = Duration::from_secs(5);

/// What a scan returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scan {
    /// The number of rows and their bytes: the servers do all the work
    Count,
    /// The rows, which the scanning client must receive
    Rows,
}

/// Requests per second of all clients of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub reads: f64,
    pub writes: f64,
}

/// When a client sends its next request.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// When the last one is answered.
    Closed,
    /// At random moments of its own, at these rates in all.
    Open(Rates),
}

/// The table, and how long a measurement is.
pub struct Load {
    pub port: u16,
    pub rows: i64,
    /// Statements that every connection begins with.
    pub settings: Vec<String>,
    pub time: Duration,
}

/// The requests of one kind.
pub struct Measured {
    /// In nanoseconds, from the moment that was drawn.
    pub latency: Histogram<u64>,
    pub errors: u64,
    time: Duration,
}

impl Measured {
    fn new(time: Duration) -> Measured {
        Measured { latency: Histogram::new(3).unwrap(), errors: 0, time }
    }

    pub fn per_second(&self) -> f64 {
        self.latency.len() as f64 / self.time.as_secs_f64()
    }

    /// A percentile of the latency in milliseconds.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.latency.value_at_percentile(percent) as f64 / 1e6
    }

    fn record(&mut self, latency: Duration) {
        self.latency.record(latency.as_nanos() as u64).unwrap();
    }

    fn add(mut self, other: Measured) -> Measured {
        self.latency.add(other.latency).unwrap();
        self.errors += other.errors;
        self
    }
}

/// A measurement.
pub struct Outcome {
    pub reads: Measured,
    pub writes: Measured,
    pub scans: Measured,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, measured) in [("reads", &self.reads), ("writes", &self.writes), ("scans", &self.scans)] {
            let [p50, p99] = [50.0, 99.0].map(|percent| measured.percentile_ms(percent));
            let (rate, errors) = (measured.per_second(), measured.errors);
            write!(f, "{name} {rate:.1}/s p50 {p50:.2} ms p99 {p99:.2} ms {errors} failed; ")?;
        }
        Ok(())
    }
}

impl Load {
    /// Creates the table.
    pub async fn prepare(&self) {
        let client = connect(self.port).await;
        client.batch_execute("CREATE TABLE expensive (id bigint PRIMARY KEY, payload text NOT NULL)").await.unwrap();
        let mut rng = StdRng::seed_from_u64(1);
        let (mut values, mut bytes) = (Vec::new(), 0);
        for id in 1..=self.rows {
            let payload = payload(&mut rng);
            bytes += payload.len();
            values.push(format!("({id},'{payload}')"));
            if bytes >= LOAD_BYTES || id == self.rows {
                client.batch_execute(&format!("INSERT INTO expensive VALUES {}", values.join(","))).await.unwrap();
                (values, bytes) = (Vec::new(), 0);
            }
        }
    }

    /// Runs readers and writers, and scanners beside them.
    pub async fn run(
        &self,
        [readers, writers]: [usize; 2],
        pace: Pace,
        seed: u64,
        scan: Option<(usize, Scan, i64)>,
    ) -> Outcome {
        let keys: Vec<String> = (1..=KEYS).map(|n| format!("${n}")).collect();
        let read = format!("SELECT id, payload FROM expensive WHERE id IN ({})", keys.join(","));
        let write = "UPDATE expensive SET payload = $2 WHERE id = $1";
        let (read_rate, write_rate) = match pace {
            Pace::Closed => (None, None),
            Pace::Open(rates) => (Some(rates.reads / readers as f64), Some(rates.writes / writers as f64)),
        };
        let (scanners, kind, scan_rows) = scan.unwrap_or((0, Scan::Count, 0));
        let scanned = match kind {
            Scan::Count => "SELECT count(*), sum(length(payload)) FROM expensive WHERE id >= $1 AND id < $2",
            Scan::Rows => "SELECT id, payload FROM expensive WHERE id >= $1 AND id < $2",
        };
        let kinds = [
            (readers, Kind::Read, read.as_str(), read_rate),
            (writers, Kind::Write, write, write_rate),
            (scanners, Kind::Scan(scan_rows), scanned, None),
        ];
        let mut sessions = Vec::new();
        for (kind, (count, work, sql, rate)) in kinds.into_iter().enumerate() {
            for n in 0..count {
                let client = self.connect().await;
                let statement = client.prepare(sql).await.unwrap();
                let rng = StdRng::seed_from_u64(seed << 32 | (kind as u64) << 16 | n as u64);
                sessions.push((kind, Session { client, statement, work, rows: self.rows, rate, rng }));
            }
        }
        let start = Instant::now();
        let tasks = sessions.into_iter().map(|(kind, session)| {
            let task = tokio::spawn(session.run(start, self.time));
            async move { (kind, task.await.unwrap()) }
        });
        let mut measured = [(); 3].map(|()| Some(Measured::new(self.time)));
        for (kind, one) in join_all(tasks).await {
            measured[kind] = measured[kind].take().map(|all| all.add(one));
        }
        let [reads, writes, scans] = measured.map(Option::unwrap);
        Outcome { reads, writes, scans }
    }

    async fn connect(&self) -> Client {
        let client = connect(self.port).await;
        for setting in &self.settings {
            client.batch_execute(setting).await.unwrap();
        }
        client
    }
}

/// What a client does.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
    /// Of so many rows.
    Scan(i64),
}

struct Session {
    client: Client,
    statement: Statement,
    work: Kind,
    rows: i64,
    /// Requests per second. `None`: one after the other.
    rate: Option<f64>,
    rng: StdRng,
}

impl Session {
    async fn run(mut self, start: Instant, time: Duration) -> Measured {
        let mut measured = Measured::new(time);
        let deadline = start + time;
        let mut due = start + self.pause();
        loop {
            if self.rate.is_none() {
                due = Instant::now();
            }
            if due >= deadline {
                return measured;
            }
            tokio::time::sleep_until(due.into()).await;
            if Instant::now() > deadline + GRACE {
                // It was never sent.
                measured.record(due.elapsed());
            } else {
                match self.request().await {
                    Ok(()) => measured.record(due.elapsed()),
                    Err(error) => {
                        eprintln!("{error:?}");
                        measured.errors += 1;
                        assert!(measured.errors < 100, "too many errors");
                    }
                }
            }
            due += self.pause();
        }
    }

    /// The time to the next moment of an open loop: those of all clients together are as of many independent users.
    fn pause(&mut self) -> Duration {
        let uniform: f64 = self.rng.random_range(f64::MIN_POSITIVE..1.0);
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64((-uniform.ln() / rate).min(60.0)))
    }

    async fn request(&mut self) -> Result<(), tokio_postgres::Error> {
        let Session { client, statement, rows, rng, .. } = self;
        match self.work {
            Kind::Read => {
                let first = rng.random_range(0..*rows);
                // Distinct, and far from each other.
                let ids: Vec<i64> = (0..KEYS as i64).map(|n| (first + n * (*rows / KEYS as i64)) % *rows + 1).collect();
                let ids: Vec<&(dyn ToSql + Sync)> = ids.iter().map(|id| id as &(dyn ToSql + Sync)).collect();
                let found = client.query(&*statement, &ids).await?;
                assert_eq!(found.len(), KEYS);
            }
            Kind::Write => {
                let id = rng.random_range(1..=*rows);
                let updated = client.execute(&*statement, &[&id, &payload(rng)]).await?;
                assert_eq!(updated, 1);
            }
            Kind::Scan(length) => {
                let first = rng.random_range(1..=(*rows - length + 1).max(1));
                let found = client.query(&*statement, &[&first, &(first + length)]).await?;
                assert!(!found.is_empty());
            }
        }
        Ok(())
    }
}

/// Text that does not compress well, of a random length.
fn payload(rng: &mut StdRng) -> String {
    let length = rng.random_range(PAYLOAD);
    let letters =
        |_| char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[rng.random_range(0..64)]);
    (0..length).map(letters).collect()
}
