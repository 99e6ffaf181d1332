//! Compares whole systems: Cortado with three replicas and PostgreSQL with two synchronous standbys (quorum of one), on
//! the same machine, in the same run, with the same load programs.
//!
//! ```text
//! cargo bench --bench system [-- --seconds 10 --rounds 3 --clients 1,16 --rows 100000 --driver sysbench,own
//!     --workload point_select,insert --json]
//! ```
//!
//! Point selects also run against the [`ceiling`].
//!
//! The load programs are sysbench 1.0, with all of its scripts but `bulk_insert`, and one of our own, which sends point
//! selects and inserts prepared and in binary. The tables are loaded anew before each workload, and before each cell
//! that deletes. The systems alternate within each round, so that a slower machine affects all of them. The report
//! shows medians: requests per second, latency at the 50th, 95th and 99th percentile, CPU time per request of the
//! gateway and of all servers, failed requests, and ratios.
//!
//! With `--sqlstates` each workload of sysbench with writes runs once more on each system, not measured, and the errors
//! that reach its clients are counted by SQLSTATE. It fails if Cortado answers with one that PostgreSQL does not.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

mod ceiling;
mod client;
mod cortado;
mod cpu;
mod demo;
mod load;
mod median;
mod postgres;
mod report;
mod sqlstates;
mod sysbench;
mod system;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::load::Workload;
use crate::report::{Cell, Report};
use crate::sqlstates::Relay;
use crate::system::System;

#[derive(Parser)]
struct Options {
    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Measurements of each cell; the report shows their median
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    clients: Vec<usize>,
    /// Load programs
    #[arg(long, value_delimiter = ',', default_value = "sysbench,own")]
    driver: Vec<Driver>,
    /// Workloads
    #[arg(long, value_delimiter = ',', default_values_t = Workload::ALL, value_enum)]
    workload: Vec<Workload>,
    /// Number of rows in the table
    #[arg(long, default_value_t = 100_000)]
    rows: i64,
    /// Tables as sysbench's own `prepare` makes them: a serial id, char(n), an index of column k
    #[arg(long)]
    sysbench_tables: bool,
    /// Count the errors of workloads with writes by SQLSTATE
    #[arg(long)]
    sqlstates: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Serve as the ceiling at this port, not run the benchmark
    #[arg(long, hide = true)]
    ceiling: Option<u16>,
    /// The directory of the ceiling
    #[arg(long, hide = true)]
    ceiling_dir: Option<PathBuf>,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// The load programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Driver {
    /// sysbench 1.0
    Sysbench,
    /// Prepared statements in binary, from this program
    Own,
}

impl Options {
    fn table(&self, port: u16) -> sysbench::Table {
        sysbench::Table { port, rows: self.rows, is_its_own: self.sysbench_tables }
    }
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    if let (Some(port), Some(dir)) = (options.ceiling, &options.ceiling_dir) {
        return ceiling::serve(port, dir, options.rows).await;
    }
    if options.driver.contains(&Driver::Sysbench) && !sysbench::is_installed() {
        eprintln!("system: sysbench is not installed; install it, or pass --driver own");
        std::process::exit(1);
    }
    let [leader, other] = cortado::start();
    let systems: Vec<Box<dyn System>> = vec![leader, other, Box::new(postgres::start())];
    let ceiling: Box<dyn System> = Box::new(ceiling::start(options.rows));
    let (mut report, mut unexpected) = (Report::default(), Vec::new());
    for &driver in &options.driver {
        for &workload in &options.workload {
            let Some(load) = Load::new(driver, workload) else { continue };
            for system in systems.iter().filter(|system| !system.shares_data()) {
                eprintln!("loading {} rows into {}", options.rows, system.name());
                prepare(&options, system.port()).await;
            }
            for &clients in &options.clients {
                for round in 1..=options.rounds {
                    let ceiling = (workload == Workload::PointSelect).then_some(&ceiling);
                    for system in systems.iter().chain(ceiling) {
                        if workload == Workload::Delete {
                            // Deleting rows that are gone would be a read.
                            prepare(&options, system.port()).await;
                        }
                        let cell = measure(&options, system.as_ref(), load, clients).await;
                        eprintln!("{driver:?} {workload} {clients} client(s), round {round}: {} {cell}", system.name());
                        report.add((driver, workload, clients), system.name(), cell);
                    }
                }
                if options.sqlstates && workload.has_conflicts() && driver == Driver::Sysbench {
                    unexpected.extend(count_sqlstates(&options, &systems, workload, clients).await);
                }
            }
        }
    }
    match options.json {
        true => println!("{}", report.to_json()),
        false => println!("{}", report.to_markdown()),
    }
    if !unexpected.is_empty() {
        eprintln!("system: PostgreSQL does not answer with {}", unexpected.join(", "));
        std::process::exit(1);
    }
}

/// Makes the table anew, and fills it.
async fn prepare(options: &Options, port: u16) {
    let table = options.table(port);
    match options.sysbench_tables {
        true => tokio::task::spawn_blocking(move || sysbench::prepare(table)).await.unwrap(),
        false => load::prepare(port, options.rows).await,
    }
}

/// Runs a workload on each system through a relay, and prints which errors reached the clients. Returns those that
/// PostgreSQL does not give.
async fn count_sqlstates(
    options: &Options,
    systems: &[Box<dyn System>],
    workload: Workload,
    clients: usize,
) -> Vec<String> {
    let mut unexpected = Vec::new();
    for system in systems {
        let relay = Relay::start(system.port()).await;
        let (table, time) = (options.table(relay.port), Duration::from_secs(options.seconds));
        let run = tokio::task::spawn_blocking(move || sysbench::run(table, workload, clients, time));
        let requests = run.await.unwrap().requests;
        let (name, counts) = (system.name(), relay.counts());
        eprintln!("{workload} {clients} client(s), {name}: errors of {requests} transactions by SQLSTATE: {counts:?}");
        if name != "postgres" {
            let others = counts.into_keys().filter(|code| !sqlstates::EXPECTED.contains(&code.as_str()));
            unexpected.extend(others.map(|code| format!("{code} ({name})")));
        }
    }
    unexpected
}

/// A workload of a load program.
#[derive(Clone, Copy)]
enum Load {
    Sysbench(Workload),
    /// With its statement.
    Own(Workload, &'static str),
}

impl Load {
    /// `None` if the program has no such workload.
    fn new(driver: Driver, workload: Workload) -> Option<Load> {
        match driver {
            Driver::Sysbench => Some(Load::Sysbench(workload)),
            Driver::Own => workload.own_statement().map(|sql| Load::Own(workload, sql)),
        }
    }
}

/// Measures one run on one system.
async fn measure(options: &Options, system: &dyn System, load: Load, clients: usize) -> Cell {
    let (port, servers, time) = (system.port(), system.servers(), Duration::from_secs(options.seconds));
    let before: Vec<Duration> = servers.iter().map(|pid| cpu::of_tree(*pid)).collect();
    let outcome = match load {
        Load::Sysbench(workload) => sysbench::run(options.table(port), workload, clients, time),
        Load::Own(workload, sql) => load::run(port, workload, sql, clients, options.rows, time).await,
    };
    let spent = servers.iter().zip(before).map(|(pid, before)| cpu::of_tree(*pid).saturating_sub(before));
    Cell::new(&outcome, &spent.collect::<Vec<_>>())
}
