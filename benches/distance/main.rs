//! Reads in a distant region: scans of rows of 1 KB, from clients beside the leader of the table and beside a follower,
//! by each way to read, with 28 ms and 297 Mbit/s between the regions and without any distance.
//!
//! ```text
//! cargo bench --bench distance [-- --seconds 4 --rounds 3 --clients 16 --keys 10,1000 --mode "grant" --rtt 28ms
//!     --bandwidth 297Mbit --statements first,later --json distance.json --svg distance.svg --markdown distance.txt]
//! ```
//!
//! The nodes are those of `cortado demo --regions`; its proxies make the distance and count the bytes. The first
//! statements of transactions and later ones of a read-only transaction are measured apart: a transaction needs a
//! timestamp and a proof once. A way to read that the server does not have is named as not available. All figures are
//! of closed loops on one machine, so the table shows how many cores the clients, the nodes and the proxies used: where
//! they use all there are, the rate says more about the machine than about the distance.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

mod chart;
#[path = "../system/client.rs"]
mod client;
#[path = "../system/cpu.rs"]
mod cpu;
#[path = "../system/demo.rs"]
mod demo;
mod load;
#[path = "../system/median.rs"]
mod median;
#[path = "../system/metrics.rs"]
mod metrics;
mod modes;
mod report;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::demo::{DATA_REGION, Demo, SYSTEM_REGION, free_port_range};
use crate::load::{Load, Statements};
use crate::metrics::Page;
use crate::modes::{Client, MODES, Mode, Nodes};
use crate::report::{Cell, Figures, Report};

/// The names of the regions. The first one leads.
const REGIONS: [&str; 3] = ["leader", "follower", "other"];
/// The distance from the first PostgreSQL port to the page with the bytes between regions.
const METRICS_OFFSET: u16 = 1200;

#[derive(Parser)]
struct Options {
    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Measurements of each cell; the report shows their median
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Number of clients
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Numbers of keys of a scan
    #[arg(long, value_delimiter = ',', default_value = "10,100,200,500,1000,1500")]
    keys: Vec<i64>,
    /// Number of rows in the table
    #[arg(long, default_value_t = 20_000)]
    rows: i64,
    /// Round trip between the regions
    #[arg(long, default_value = "28ms")]
    rtt: String,
    /// Bandwidth between the regions
    #[arg(long, default_value = "297Mbit")]
    bandwidth: String,
    /// Ways to read, by name; by default all
    #[arg(long, value_delimiter = ',')]
    mode: Vec<String>,
    /// Which statements of a transaction
    #[arg(long, value_delimiter = ',', value_enum, default_value = "first,later")]
    statements: Vec<Statements>,
    /// Write all figures to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the chart to this file
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Write the table to this file, and not to standard output
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn modes(&self) -> Vec<&'static Mode> {
        for name in &self.mode {
            assert!(MODES.iter().any(|mode| mode.name == name), "there is no way to read called {name:?}");
        }
        let asked = |mode: &&Mode| self.mode.is_empty() || self.mode.iter().any(|name| name == mode.name);
        MODES.iter().filter(asked).collect()
    }
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let data = tempfile::tempdir().unwrap();
    let (port, modes) = (free_port_range(), options.modes());
    let mut report = Report::new(options.clients, milliseconds(&options.rtt));
    let mut is_loaded = false;
    for round in 1..=options.rounds {
        for nodes in Nodes::ALL {
            let modes: Vec<&Mode> = modes.iter().copied().filter(|mode| mode.push == nodes.push).collect();
            if modes.is_empty() {
                continue;
            }
            let Some(demo) = start(&options, nodes, port, data.path()) else {
                for mode in modes {
                    report.refuse(mode, nodes.apart, format!("the nodes do not start with {:?}", nodes.flags()));
                }
                continue;
            };
            if !is_loaded {
                eprintln!("loading {} rows", options.rows);
                load::prepare(port, options.rows).await;
                is_loaded = true;
            }
            for mode in modes {
                eprintln!("round {round}, {}", title(mode, nodes));
                measure(&options, &demo, mode, nodes, &mut report).await;
            }
        }
    }
    let to = |path: &Path, text: String| std::fs::write(path, text).unwrap();
    match &options.markdown {
        Some(path) => to(path, report.to_markdown()),
        None => println!("{}", report.to_markdown()),
    }
    options.json.iter().for_each(|path| to(path, report.to_json()));
    let about = format!("{} and {} apart, {} clients", options.rtt, options.bandwidth, options.clients);
    options.svg.iter().for_each(|path| to(path, chart::svg(&report.lines(), &about)));
}

/// The milliseconds of a time such as `28ms` or `1.5s`.
fn milliseconds(time: &str) -> f64 {
    let digits = time.trim_end_matches(char::is_alphabetic);
    let unit = match &time[digits.len()..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        other => panic!("a round trip in us, ms or s, not in {other:?}"),
    };
    digits.parse::<f64>().expect("a number and its unit") * unit
}

fn title(mode: &Mode, nodes: Nodes) -> String {
    format!("{}, {}", mode.name, if nodes.apart { "at a distance" } else { "without distance" })
}

/// Starts the nodes with the data of earlier ones, and waits until the first one leads all regions.
fn start(options: &Options, nodes: Nodes, port: u16, data: &Path) -> Option<Demo> {
    let regions = REGIONS.join(",");
    let mut flags = vec!["--regions", &regions];
    if nodes.apart {
        flags.extend(["--rtt", &options.rtt, "--bandwidth", &options.bandwidth]);
    }
    flags.extend(nodes.flags());
    let demo = Demo::start(port, data, &flags)?;
    let deadline = Instant::now() + Duration::from_secs(30);
    // By the heartbeats, which take a second.
    while [SYSTEM_REGION, DATA_REGION].iter().any(|region| demo.leader(*region) != 0) {
        assert!(Instant::now() < deadline, "the first node does not lead");
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(demo)
}

/// Measures all cells of a mode.
async fn measure(options: &Options, demo: &Demo, mode: &'static Mode, nodes: Nodes, report: &mut Report) {
    let gateway = match mode.client {
        Client::ByLeader => demo.port,
        Client::ByFollower => demo.port + 1,
    };
    for &statements in &options.statements {
        for &keys in &options.keys {
            let time = Duration::from_secs(options.seconds);
            let load = Load { statements, keys, clients: options.clients, rows: options.rows, time };
            let before = Usage::now(demo, nodes).await;
            let begun = Instant::now();
            match load::run(gateway, mode, load).await {
                Err(why) => {
                    eprintln!("  not available: {why}");
                    return report.refuse(mode, nodes.apart, why);
                }
                Ok(outcome) => {
                    let used = Usage::now(demo, nodes).await.since(&before);
                    let figures = used.figures(&outcome, begun.elapsed());
                    eprintln!("  {statements} statements, {keys} keys: {figures}");
                    let key = Cell { mode: mode.name, apart: nodes.apart, statements, keys };
                    report.add(key, figures, outcome.last_read);
                }
            }
        }
    }
}

/// What was used since the start.
struct Usage {
    /// Bytes between different regions; `None` without a distance.
    bytes: Option<f64>,
    clients: Duration,
    nodes: Duration,
    proxies: Duration,
}

impl Usage {
    async fn now(demo: &Demo, nodes: Nodes) -> Usage {
        let all_nodes: Duration = demo.nodes().into_iter().map(cpu::of_tree).sum();
        let whole_demo = cpu::of_tree(demo.id());
        Usage {
            bytes: if nodes.apart { Some(bytes_between_regions(demo.port).await) } else { None },
            clients: cpu::of_tree(std::process::id()).saturating_sub(whole_demo),
            nodes: all_nodes,
            proxies: whole_demo.saturating_sub(all_nodes),
        }
    }

    fn since(&self, before: &Usage) -> Usage {
        Usage {
            bytes: self.bytes.zip(before.bytes).map(|(now, before)| now - before),
            clients: self.clients.saturating_sub(before.clients),
            nodes: self.nodes.saturating_sub(before.nodes),
            proxies: self.proxies.saturating_sub(before.proxies),
        }
    }

    fn figures(&self, outcome: &load::Outcome, elapsed: Duration) -> Figures {
        let ms = |quantile| outcome.latency.value_at_quantile(quantile) as f64 / 1e6;
        let cores = |time: Duration| time.as_secs_f64() / elapsed.as_secs_f64();
        Figures {
            per_second: outcome.per_second,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            bytes_per_scan: self.bytes.map(|bytes| bytes / outcome.scans.max(1) as f64),
            client_cores: cores(self.clients),
            node_cores: cores(self.nodes),
            proxy_cores: cores(self.proxies),
            errors: outcome.errors,
        }
    }
}

/// The bytes that the proxies have taken in, from each region to each other one.
async fn bytes_between_regions(port: u16) -> f64 {
    let page = Page::read(port + METRICS_OFFSET).await;
    let sent = |from: &str, to: &str| {
        let counter = format!("cortado_demo_sent_bytes_total{{from=\"{from}\",to=\"{to}\"}} ");
        page.sum(&counter).expect("a counter of each pair")
    };
    let pairs = REGIONS.iter().flat_map(|from| REGIONS.iter().map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to).map(|(from, to)| sent(from, to)).sum()
}
