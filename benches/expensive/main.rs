//! What an expensive scan costs others: latency of cheap reads and of writes, with and without a client that scans.
//!
//! ```text
//! cargo bench --bench expensive [-- --rows 100000 --readers 100 --writers 20 --seconds 20 --rounds 3
//!     --gateway leader,other --set "NAME = VALUE" --scan count --svg FILE --markdown FILE]
//! ```
//!
//! Three nodes hold a table with rows of 1 to 4 KB. A hundred clients read ten rows by key, twenty update one. First
//! they run as fast as they can, which is the capacity. Then they run at half of it, as an open loop: each client draws
//! its own moments to start, whatever became of its earlier requests, and a latency counts from the moment that was
//! drawn. So a request that waits behind a slow one is as late as it is. In each round this is measured alone, and
//! beside a client that scans a fifth of the table over and over.
//!
//! The report shows medians of the rounds, and the ratio of the 99th percentiles. All clients use one gateway: the node
//! that leads all regions, or one that leads none. `--set` runs a SET statement on every connection.

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
#[path = "../system/cortado.rs"]
mod cortado;
#[path = "../system/demo.rs"]
mod demo;
mod load;
#[path = "../system/median.rs"]
mod median;
mod report;
#[path = "../system/system.rs"]
mod system;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::load::{Load, Pace, Rates, Scan};
use crate::report::Report;

#[derive(Clone, Parser)]
struct Options {
    /// Number of rows in the table
    #[arg(long, default_value_t = 100_000)]
    rows: i64,
    /// Clients that read ten rows by key
    #[arg(long, default_value_t = 100)]
    readers: usize,
    /// Clients that update a row
    #[arg(long, default_value_t = 20)]
    writers: usize,
    /// Clients that scan
    #[arg(long, default_value_t = 1)]
    scanners: usize,
    /// Rows of a scan
    #[arg(long, default_value_t = 20_000)]
    scan_rows: i64,
    /// What a scan returns
    #[arg(long, default_value = "count")]
    scan: Scan,
    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Measurements with and without scans; the report shows medians
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The share of the capacity at which the cheap clients run
    #[arg(long, default_value_t = 0.5)]
    share: f64,
    /// The nodes that the clients connect to
    #[arg(long, value_delimiter = ',', default_value = "leader,other")]
    gateway: Vec<Gateway>,
    /// A setting of every connection, such as "cortado.replica_read = closest"; may be repeated
    #[arg(long)]
    set: Vec<String>,
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

/// A node of the cluster.
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
    let [leader, other] = cortado::start();
    let settings = options.set.iter().map(|set| format!("SET {set}")).collect();
    let mut load =
        Load { port: leader.port(), rows: options.rows, settings, time: Duration::from_secs(options.seconds) };
    eprintln!("loading {} rows", options.rows);
    load.prepare().await;
    let mut report = Report::default();
    for gateway in &options.gateway {
        let system = if *gateway == Gateway::Leader { &leader } else { &other };
        load.port = system.port();
        measure(&options, &load, system.name(), &mut report).await;
        assert_eq!(system.port(), load.port, "a leadership moved: the figures are of no use");
    }
    let table = report.to_markdown();
    println!("{table}");
    if let Some(path) = &options.markdown {
        std::fs::write(path, table).unwrap();
    }
    if let Some(path) = &options.svg {
        std::fs::write(path, report.to_svg()).unwrap();
    }
}

async fn measure(options: &Options, load: &Load, gateway: &str, report: &mut Report) {
    let clients = [options.readers, options.writers];
    // The first run warms the caches and the pace of the slices.
    load.run(clients, Pace::Closed, 0, None).await;
    let full = load.run(clients, Pace::Closed, 0, None).await;
    let rates =
        Rates { reads: full.reads.per_second() * options.share, writes: full.writes.per_second() * options.share };
    eprintln!("{gateway}: at {:.0} reads and {:.0} writes per second", rates.reads, rates.writes);
    for round in 1..=options.rounds {
        for scanners in [0, options.scanners] {
            let scan = (scanners > 0).then_some((scanners, options.scan, options.scan_rows));
            let outcome = load.run(clients, Pace::Open(rates), round as u64, scan).await;
            eprintln!("{gateway}, round {round}: {outcome}");
            report.add(gateway, &outcome, scanners > 0);
        }
    }
}
