//! The clients: a closed loop, which finds the capacity, and an open loop at a given rate.

use std::time::{Duration, Instant};

use futures::future::join_all;
use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, Statement};

use crate::Workload;

/// The reads of one run.
pub struct Outcome {
    /// Nanoseconds from when a read was due to its answer.
    pub latency: Histogram<u64>,
    pub errors: u64,
    pub elapsed: Duration,
}

/// A connection with its statements.
struct Session {
    client: Client,
    read: Statement,
    write: Statement,
    rng: StdRng,
    workload: Workload,
    rows: i64,
}

impl Session {
    async fn new(client: Client, number: u64, workload: Workload, rows: i64) -> Session {
        let read = client.prepare("SELECT v FROM tail WHERE id = $1").await.unwrap();
        let write = client.prepare("UPDATE tail SET v = $2 WHERE id = $1").await.unwrap();
        Session { client, read, write, rng: StdRng::seed_from_u64(number), workload, rows }
    }

    /// Sends the statement with this number. Returns whether it was a read.
    async fn send(&mut self, number: u64) -> Result<bool, tokio_postgres::Error> {
        let id = self.rng.random_range(1..=self.rows);
        let is_read = self.workload.reads(number);
        if is_read {
            let rows = self.client.query(&self.read, &[&id]).await?;
            assert_eq!(rows.len(), 1, "row {id} is there");
        } else {
            let value = format!("{number:0200}");
            self.client.execute(&self.write, &[&id, &value]).await?;
        }
        Ok(is_read)
    }
}

async fn sessions(clients: Vec<Client>, workload: Workload, rows: i64) -> Vec<Session> {
    let clients = clients.into_iter().enumerate();
    join_all(clients.map(|(number, client)| Session::new(client, number as u64, workload, rows))).await
}

/// Statements per second of clients that send one after the other.
pub async fn closed_loop(clients: Vec<Client>, workload: Workload, rows: i64, time: Duration) -> f64 {
    let sessions = sessions(clients, workload, rows).await;
    let start = Instant::now();
    let tasks = sessions.into_iter().map(|mut session| {
        tokio::spawn(async move {
            let mut sent = 0u64;
            while start.elapsed() < time {
                session.send(sent).await.expect("nobody is slow");
                sent += 1;
            }
            sent
        })
    });
    let sent: u64 = join_all(tasks).await.into_iter().map(|task| task.unwrap()).sum();
    sent as f64 / start.elapsed().as_secs_f64()
}

/// Sends `rate` statements per second, each at its time or as soon as its connection is free.
pub async fn open_loop(clients: Vec<Client>, workload: Workload, rows: i64, rate: f64, time: Duration) -> Outcome {
    let sessions = sessions(clients, workload, rows).await;
    let (step, total) = (sessions.len() as u64, (rate * time.as_secs_f64()) as u64);
    let start = Instant::now();
    let tasks = sessions.into_iter().enumerate().map(|(first, mut session)| {
        tokio::spawn(async move {
            let (mut latency, mut errors) = (Histogram::new(3).unwrap(), 0u64);
            for number in (first as u64..total).step_by(step as usize) {
                let due = start + Duration::from_secs_f64(number as f64 / rate);
                tokio::time::sleep_until(due.into()).await;
                match session.send(number).await {
                    Ok(true) => latency.record(due.elapsed().as_nanos() as u64).unwrap(),
                    Ok(false) => {}
                    Err(error) => {
                        eprintln!("statement {number}: {error}");
                        errors += 1;
                        assert!(errors < 100, "too many errors");
                    }
                }
            }
            (latency, errors)
        })
    });
    let mut outcome = Outcome { latency: Histogram::new(3).unwrap(), errors: 0, elapsed: Duration::ZERO };
    for task in join_all(tasks).await {
        let (latency, errors) = task.unwrap();
        outcome.latency.add(latency).unwrap();
        outcome.errors += errors;
    }
    outcome.elapsed = start.elapsed();
    outcome
}
