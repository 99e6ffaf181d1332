//! The clients: readers with every combination of settings, and writers. What fails is tried anew: nodes are paused.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, Error, NoTls};

/// The pause after a statement that has failed, or without a connection.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);
/// Statements of a reader with the same settings.
const SAME_SETTINGS: usize = 20;

/// Creates the table.
pub async fn prepare(port: u16, rows: i64) {
    let client = connect(port).await;
    client.batch_execute("CREATE TABLE soak (id bigint PRIMARY KEY, n bigint NOT NULL, v text)").await.unwrap();
    for first in (1..=rows).step_by(500) {
        let last = (first + 499).min(rows);
        let values: Vec<String> = (first..=last).map(|id| format!("({id},100,repeat('v',200))")).collect();
        client.batch_execute(&format!("INSERT INTO soak VALUES {}", values.join(","))).await.unwrap();
    }
}

async fn connect(port: u16) -> Client {
    let config = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    loop {
        if let Ok((client, connection)) = tokio_postgres::connect(&config, NoTls).await {
            tokio::spawn(connection);
            return client;
        }
        tokio::time::sleep(FAILURE_PAUSE).await;
    }
}

fn one_of<'a>(rng: &mut StdRng, values: &[&'a str]) -> &'a str {
    values[rng.random_range(0..values.len())]
}

/// Reads for ever.
pub async fn read(port: u16, seed: u64, rows: i64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut client = connect(port).await;
    loop {
        if client.is_closed() {
            client = connect(port).await;
        }
        if read_some(&client, &mut rng, rows).await.is_err() {
            let _ = client.batch_execute("ROLLBACK").await;
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
    }
}

/// Some statements with other settings.
async fn read_some(client: &Client, rng: &mut StdRng, rows: i64) -> Result<(), Error> {
    let settings = format!(
        "SET cortado.replica_read = '{}'; SET cortado.hedge = '{}'; SET cortado.grants = '{}'; \
         SET cortado.session_snapshot = '{}'; SET cortado.read_staleness = '{}'",
        one_of(rng, &["follower", "closest", "any", "learner"]),
        one_of(rng, &["off", "auto", "1ms"]),
        one_of(rng, &["on", "on", "on", "off"]),
        one_of(rng, &["off", "on"]),
        one_of(rng, &["", "", "", "200ms", "max 2s"]),
    );
    client.batch_execute(&settings).await?;
    let in_block = rng.random_bool(0.3);
    if in_block {
        client.batch_execute("BEGIN READ ONLY").await?;
    }
    for _ in 0..SAME_SETTINGS {
        let (id, other) = (rng.random_range(1..=rows), rng.random_range(1..=rows));
        let statement = match rng.random_range(0..10) {
            0..6 => format!("SELECT n FROM soak WHERE id = {id}"),
            6..8 => format!("SELECT n FROM soak WHERE id IN ({id}, {other})"),
            _ => format!("SELECT sum(n) FROM soak WHERE id BETWEEN {id} AND {id} + 20"),
        };
        client.simple_query(&statement).await?;
    }
    if in_block {
        client.batch_execute("COMMIT").await?;
    }
    Ok(())
}

/// Writes for ever: moves an amount between two rows, or updates one.
pub async fn write(port: u16, seed: u64, rows: i64) {
    let mut rng = StdRng::seed_from_u64(!seed);
    let mut client = connect(port).await;
    loop {
        if client.is_closed() {
            client = connect(port).await;
        }
        // The first rows are written most, so that reads meet locks.
        let most = if rng.random_bool(0.5) { rows.min(20) } else { rows };
        let (from, to) = (rng.random_range(1..=most), rng.random_range(1..=most));
        let statement = if rng.random_bool(0.5) {
            format!("UPDATE soak SET n = n - 1 WHERE id = {from}")
        } else {
            format!(
                "BEGIN; UPDATE soak SET n = n - 1 WHERE id = {from}; UPDATE soak SET n = n + 1 WHERE id = {to}; COMMIT"
            )
        };
        if client.batch_execute(&statement).await.is_err() {
            let _ = client.batch_execute("ROLLBACK").await;
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
    }
}
