//! pgbench's TPC-B-like script on Cortado with three replicas and on PostgreSQL with two synchronous standbys (quorum
//! of one), on the same machine, in the same run.
//!
//! ```text
//! cargo bench --bench tpcb [-- --seconds 10 --rounds 3 --scale 10 --clients 16 --mode simple,extended,prepared
//!     --gateway leader,other --json]
//! ```
//!
//! A transaction updates a random account, a random teller and one of `scale` branches, reads the account, and adds a
//! row to the history: with more clients than branches they wait for each other. It runs at READ COMMITTED, by each of
//! pgbench's protocols. The tables are made by hand, without CHAR(n) and secondary indexes, and with `timestamptz` in
//! the history. The systems alternate within each round.
//!
//! No error may reach a client: a failed transaction ends the benchmark. At the end the balances of branches, tellers
//! and accounts and the deltas of the history have one sum, and the history one row for each transaction.
//!
//! The report shows medians: transactions per second, latency, CPU time per transaction of the gateway and of all
//! servers, how long a transaction waited for row locks, and ratios. Cortado counts its waits
//! (`cortado_kv_lock_wait_seconds`). PostgreSQL is asked a hundred times a second how many sessions wait for a lock.

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
#[path = "../system/median.rs"]
mod median;
#[path = "../system/metrics.rs"]
mod metrics;
mod pgbench;
#[path = "../system/postgres.rs"]
mod postgres;
mod report;
#[path = "../system/system.rs"]
mod system;
mod tables;
mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::pgbench::Mode;
use crate::report::{Cell, Report};
use crate::system::System;
use crate::waits::Waits;

#[derive(Parser)]
struct Options {
    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Measurements of each cell; the report shows their median
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Branches. Each has 10 tellers and 100,000 accounts
    #[arg(long, default_value_t = 10)]
    scale: i64,
    /// Number of clients
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Protocols
    #[arg(long, value_delimiter = ',', default_value = "simple,extended,prepared")]
    mode: Vec<Mode>,
    /// Gateways of Cortado
    #[arg(long, value_delimiter = ',', default_value = "leader,other")]
    gateway: Vec<Gateway>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// The gateway of Cortado that the clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Gateway {
    /// It leads all regions
    Leader,
    /// It leads none
    Other,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    if !pgbench::is_installed() {
        eprintln!("tpcb: pgbench is not installed; install postgresql-15");
        std::process::exit(1);
    }
    let [leader, other] = cortado::start();
    let mut systems: Vec<Box<dyn System>> = vec![leader];
    if options.gateway.contains(&Gateway::Other) {
        systems.push(other);
    }
    systems.push(Box::new(postgres::start()));
    for system in systems.iter().filter(|system| !system.shares_data()) {
        eprintln!("loading scale {} into {}", options.scale, system.name());
        tables::load(system.port(), options.scale).await;
    }
    if !options.gateway.contains(&Gateway::Leader) {
        systems.remove(0);
    }
    let mut report = Report::default();
    // By the system that has the data.
    let mut done: BTreeMap<&'static str, u64> = BTreeMap::new();
    for &mode in &options.mode {
        for round in 1..=options.rounds {
            for system in &systems {
                let cell = measure(&options, system.as_ref(), mode, done.entry(data_of(system.as_ref())).or_default());
                let cell = cell.await;
                eprintln!("{mode:?}, round {round}: {} {cell}", system.name());
                report.add(mode, system.name(), cell);
            }
        }
    }
    for system in &systems {
        tables::check(system.port(), done[data_of(system.as_ref())]).await;
    }
    match options.json {
        true => println!("{}", report.to_json()),
        false => println!("{}", report.to_markdown()),
    }
}

/// The name of the data of a system: both gateways have the same.
fn data_of(system: &dyn System) -> &'static str {
    system.name().split(',').next().expect("a name")
}

/// Measures one run on one system, and adds the transactions to those that it has done.
async fn measure(options: &Options, system: &dyn System, mode: Mode, done: &mut u64) -> Cell {
    let (port, servers, time) = (system.port(), system.servers(), Duration::from_secs(options.seconds));
    let waits = Waits::begin(system).await;
    let before: Vec<Duration> = servers.iter().map(|pid| cpu::of_tree(*pid)).collect();
    let clients = options.clients;
    let run = tokio::task::spawn_blocking(move || pgbench::run(port, mode, clients, time));
    let outcome = run.await.unwrap();
    let spent = servers.iter().zip(before).map(|(pid, before)| cpu::of_tree(*pid).saturating_sub(before));
    let spent: Vec<Duration> = spent.collect();
    let waited = waits.end().await;
    *done += outcome.transactions;
    Cell::new(&outcome, &spent, waited)
}
