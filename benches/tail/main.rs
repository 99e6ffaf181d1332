//! The tail of read latency while one replica stalls, with and without hedged reads.
//!
//! ```text
//! cargo bench --bench tail [-- --seconds 20 --rounds 3 --policy any --workload read_only,mixed
//!     --svg FILE --markdown FILE]
//! ```
//!
//! Three nodes (`cortado demo`); the clients use the node that leads all regions. One of the two followers is paused
//! (SIGSTOP) for 50 to 200 ms, again and again, at random. Autocommit point reads choose their replicas by the policy,
//! so that some meet the paused one. Arrivals are an open loop at half of what a closed loop reaches when nobody is
//! slow: a read that waits delays no other arrival, and its latency counts from the time when it was due.
//!
//! Each cell is a workload (only reads, or 20 reads for one update), with and without pauses, with and without
//! `cortado.hedge = auto`. The report shows the latency of the reads, the extra requests as the gateway's metrics count
//! them, and what hedging costs a closed loop when nobody is slow.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

#[path = "../system/bars.rs"]
mod bars;
#[path = "../system/client.rs"]
mod client;
#[path = "../system/demo.rs"]
mod demo;
mod gateway;
mod load;
#[path = "../system/median.rs"]
mod median;
#[path = "../system/metrics.rs"]
mod metrics;
mod report;
#[path = "../system/signal.rs"]
mod signal;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::demo::{DATA_REGION, Demo, NODES, free_port_range};
use crate::gateway::Gateway;
use crate::report::{Cell, Report};
use crate::signal::signal;

#[derive(Parser)]
pub struct Options {
    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Measurements of each cell; the report shows their median
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Connections. An arrival waits for its connection if the read before is still under way
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// The value of cortado.replica_read
    #[arg(long, default_value = "any")]
    policy: String,
    /// Workloads
    #[arg(long, value_delimiter = ',', default_value = "read_only,mixed")]
    workload: Vec<Workload>,
    /// Number of rows in the table
    #[arg(long, default_value_t = 20_000)]
    rows: i64,
    /// Write the chart to this file
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Write the table to this file, too
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// What the clients send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    /// Point reads
    ReadOnly,
    /// 20 point reads for one update of a row
    Mixed,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Workload::ReadOnly => "reads only",
            Workload::Mixed => "20 reads : 1 update",
        }
    }

    /// Whether the statement with this number reads.
    fn reads(self, number: u64) -> bool {
        self == Workload::ReadOnly || !number.is_multiple_of(21)
    }
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let data = tempfile::tempdir().unwrap();
    let (demo, leader) = Demo::start_led_by_one(free_port_range(), data.path());
    let gateway = Gateway::new(demo.port, leader, &options.policy);
    let follower = demo.nodes()[usize::from((leader + 1) % NODES)];
    gateway.prepare(options.rows).await;
    let mut report = Report::default();
    for &workload in &options.workload {
        let time = Duration::from_secs(options.seconds);
        let mut rate = 0.0;
        for round in 1..=options.rounds {
            for hedge in ["off", "auto"] {
                let connections = gateway.connect(options.connections, hedge).await;
                let capacity = load::closed_loop(connections, workload, options.rows, time / 4).await;
                eprintln!("{}, hedge {hedge}, round {round}: {capacity:.0} statements/s", workload.name());
                if hedge == "off" {
                    rate = capacity / 2.0;
                }
                report.add_capacity(workload, hedge, capacity);
                for paused in [false, true] {
                    let connections = gateway.connect(options.connections, hedge).await;
                    let before = gateway.counts().await;
                    let pauses = paused.then(|| Pauses::start(follower, round as u64));
                    let outcome = load::open_loop(connections, workload, options.rows, rate, time).await;
                    drop(pauses);
                    let cell = Cell::new(&outcome, gateway.counts().await.since(before));
                    eprintln!("{}, hedge {hedge}, paused {paused}, round {round}: {cell}", workload.name());
                    report.add((workload, paused, hedge), cell);
                }
                assert_eq!(demo.leader(DATA_REGION), leader, "the leader moved; the figures are of another layout");
            }
        }
    }
    let table = report.to_markdown();
    println!("{table}");
    if let Some(file) = &options.markdown {
        std::fs::write(file, table).unwrap();
    }
    if let Some(file) = &options.svg {
        std::fs::write(file, report.to_svg()).unwrap();
    }
}

/// Pauses a process again and again until dropped.
struct Pauses {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pauses {
    fn start(process: u32, seed: u64) -> Pauses {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut rng = StdRng::seed_from_u64(seed);
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(rng.random_range(200..=1_000)));
                signal("STOP", process);
                std::thread::sleep(Duration::from_millis(rng.random_range(50..=200)));
                signal("CONT", process);
            }
        });
        Pauses { stop, thread: Some(thread) }
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the process is there");
        }
    }
}
