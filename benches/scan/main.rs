//! Rows per second of a count: of the first tenth of a table, of the last and of all of it, after a load, after inserts
//! between the rows that were rolled back, after an update of every row, after a restart of all servers and after a
//! delete of every row.
//!
//! ```text
//! cargo bench --bench scan [-- --rows 1000000 --rounds 3]
//! ```
//!
//! The systems are those of `benches/system`: Cortado through the gateway that leads all regions and through one that
//! leads none, and PostgreSQL. The cost of a row should be the same wherever it is in the table and whatever happened
//! to it. After the delete, the rows are those that were. Figures are medians.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

#[path = "../system/client.rs"]
mod client;
#[path = "../system/cortado.rs"]
mod cortado;
#[path = "../system/cpu.rs"]
mod cpu;
#[path = "../system/demo.rs"]
mod demo;
#[path = "../system/postgres.rs"]
mod postgres;
#[path = "../system/system.rs"]
mod system;

use std::ops::Range;
use std::time::Instant;

use clap::Parser;

use crate::client::connect;
use crate::system::System;

/// Rows of one statement that changes rows.
const BATCH: usize = 1_000;

#[derive(Parser)]
struct Options {
    /// Number of rows in the table
    #[arg(long, default_value_t = 1_000_000)]
    rows: i64,
    /// Counts of each part; the report shows their median
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is done to the table before a count.
enum Change {
    /// The rows of one statement, the statement for a range of rows, and whether it succeeds.
    Statements(usize, fn(Range<i64>) -> String, bool),
    /// All servers are restarted.
    Restart,
}

/// Row `n` has the id `2 * n`. The inserts that fail have odd ids, and the id of an existing row at the end: Cortado
/// locks the keys of a large statement in groups, and rolls back those before the one that fails. The
/// existing row has the greatest key: a failure in the first group, that of the smallest key, leaves no lock.
const STATES: [(&str, Change); 5] = [
    ("loaded", Change::Statements(BATCH, |rows| insert(rows.map(|row| 2 * row)), true)),
    ("among rolled back", Change::Statements(200 * BATCH, insert_in_vain, false)),
    ("updated", Change::Statements(BATCH, |rows| format!("UPDATE scanned SET v = v + 1 WHERE {}", among(&rows)), true)),
    ("restarted", Change::Restart),
    (DELETED, Change::Statements(BATCH, |rows| format!("DELETE FROM scanned WHERE {}", among(&rows)), true)),
];
/// The state without rows.
const DELETED: &str = "deleted";

fn insert_in_vain(rows: Range<i64>) -> String {
    insert(rows.clone().map(|row| 2 * row + 1).chain([2 * (rows.end - 1)]))
}

fn insert(ids: impl Iterator<Item = i64>) -> String {
    let values: Vec<String> = ids.map(|id| format!("({id},{id})")).collect();
    format!("INSERT INTO scanned (id, v) VALUES {}", values.join(","))
}

fn among(rows: &Range<i64>) -> String {
    format!("id >= {} AND id < {}", 2 * rows.start, 2 * rows.end)
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let [leader, other] = cortado::start();
    let systems: Vec<Box<dyn System>> = vec![leader, other, Box::new(postgres::start())];
    for system in systems.iter().filter(|system| !system.shares_data()) {
        let table = "CREATE TABLE scanned (id bigint PRIMARY KEY, v bigint NOT NULL)";
        connect(system.port()).await.batch_execute(table).await.unwrap();
    }
    println!("| rows are | part | system | rows/s | CPU us/row, all nodes |\n|---|---|---|---|---|");
    let tenth = options.rows / 10;
    let parts =
        [("first tenth", 0..tenth), ("last tenth", options.rows - tenth..options.rows), ("all", 0..options.rows)];
    for (state, change) in STATES {
        for system in systems.iter().filter(|system| !system.shares_data()) {
            apply(system.as_ref(), &change, options.rows).await;
            eprintln!("{}: every row is {state}", system.name());
        }
        for (part, rows) in &parts {
            for system in &systems {
                let expected = if state == DELETED { 0 } else { rows.end - rows.start };
                let mut runs = Vec::new();
                for _ in 0..options.rounds {
                    runs.push(count(system.as_ref(), rows.clone(), expected).await);
                }
                runs.sort_by(|a, b| a.0.total_cmp(&b.0));
                let (per_second, cpu_us) = runs[runs.len() / 2];
                println!("| {state} | {part} | {} | {per_second:.0} | {cpu_us:.2} |", system.name());
            }
        }
    }
}

async fn apply(system: &dyn System, change: &Change, rows: i64) {
    match *change {
        Change::Restart => system.restart(),
        Change::Statements(batch, statement, succeeds) => {
            let client = connect(system.port()).await;
            for first in (0..rows).step_by(batch) {
                let done = client.batch_execute(&statement(first..(first + batch as i64).min(rows))).await;
                assert_eq!(done.is_ok(), succeeds, "{done:?}");
            }
        }
    }
}

/// Counts the rows in a range. Returns rows per second, and the CPU time per row in microseconds.
async fn count(system: &dyn System, rows: Range<i64>, expected: i64) -> (f64, f64) {
    let client = connect(system.port()).await;
    let servers = system.servers();
    let spent = || servers.iter().map(|pid| cpu::of_tree(*pid).as_secs_f64()).sum::<f64>();
    let (before, start) = (spent(), Instant::now());
    let sql = "SELECT count(*) FROM scanned WHERE id >= $1 AND id < $2";
    let found: i64 = client.query_one(sql, &[&(2 * rows.start), &(2 * rows.end)]).await.unwrap().get(0);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(found, expected, "{}: {rows:?}", system.name());
    let rows = (rows.end - rows.start) as f64;
    (rows / seconds, (spent() - before) * 1e6 / rows)
}
