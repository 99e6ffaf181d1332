//! Whole systems side by side: Cortado with three replicas against PostgreSQL with two synchronous standbys (quorum of one), same
//! machine, same run, same load program.
//!
//! ```text
//! cargo bench --bench system [-- --seconds 10 --rounds 3 --clients 1,16 --rows 100000 --json]
//! ```
//!
//! The statements are those of sysbench's `oltp_point_select` and `oltp_insert`, prepared once per connection. The two systems take
//! turns, round by round, so that a machine that slows down slows both; medians are printed. Figures: requests per second, latency at the 50th,
//! 95th and 99th percentile, CPU time per request of the server that the clients talk to and of all three, and ratios.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

mod cortado;
mod cpu;
mod load;
mod postgres;
mod report;

use std::time::Duration;

use clap::Parser;

use crate::load::Workload;
use crate::report::{Cell, Report};

#[derive(Parser)]
struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Measurements of each cell; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    clients: Vec<usize>,
    /// Rows in the table
    #[arg(long, default_value_t = 100_000)]
    rows: i64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// A running system under load.
pub trait System {
    /// What it is called in the report.
    fn name(&self) -> &'static str;
    /// Port that the clients connect to.
    fn port(&self) -> u16;
    /// Process ids of its servers, the one at `port` first; each with all its descendants.
    fn servers(&self) -> Vec<u32>;
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let systems: Vec<Box<dyn System>> = vec![Box::new(cortado::start()), Box::new(postgres::start())];
    for system in &systems {
        eprintln!("loading {} rows into {}", options.rows, system.name());
        load::prepare(system.port(), options.rows).await;
    }
    let mut report = Report::default();
    for workload in [Workload::PointSelect, Workload::Insert] {
        for &clients in &options.clients {
            for round in 0..options.rounds {
                for system in &systems {
                    let servers = system.servers();
                    let before: Vec<Duration> = servers.iter().map(|pid| cpu::of_tree(*pid)).collect();
                    let outcome =
                        load::run(system.port(), workload, clients, options.rows, Duration::from_secs(options.seconds))
                            .await;
                    let spent =
                        servers.iter().zip(before).map(|(pid, before)| cpu::of_tree(*pid).saturating_sub(before));
                    let cell = Cell::new(&outcome, &spent.collect::<Vec<_>>());
                    eprintln!("{workload} {clients} client(s), round {}: {} {cell}", round + 1, system.name());
                    report.add(workload, clients, system.name(), cell);
                }
            }
        }
    }
    match options.json {
        true => println!("{}", report.to_json()),
        false => println!("{}", report.to_markdown()),
    }
}
