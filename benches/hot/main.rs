//! A hot region: what a table can be read that has one leader, by reads at the leader and by reads at all replicas.
//!
//! ```text
//! cargo bench --bench hot [-- --seconds 10 --rounds 3 --clients 64 --cores 0.4
//!     --workload points,mixed,scans,long-scans --policy leader,closest,any --svg FILE --markdown FILE]
//! ```
//!
//! Three nodes (`cortado demo`), one of which leads all regions. Each may use 0.4 cores, by a control group, so that
//! the nodes and not the machine are the limit, and the clients have what is left. As many closed-loop clients read at
//! each node: rows of 200 bytes by key, 50 of them, or 500. All reads are fresh: each sees everything that was
//! acknowledged before it. The policies alternate within each round.

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
#[path = "../system/cpu.rs"]
mod cpu;
#[path = "../system/demo.rs"]
mod demo;
mod limit;
mod load;
#[path = "../system/median.rs"]
mod median;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::demo::{DATA_REGION, Demo, NODES, free_port_range};
use crate::limit::Limits;
use crate::load::{Load, Workload};
use crate::report::{Figures, Report};

/// The values of `cortado.replica_read`. The others are compared with the first.
pub const POLICIES: [&str; 3] = ["leader", "closest", "any"];

#[derive(Parser)]
struct Options {
    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Measurements of each cell; the report shows their median
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Clients of each node
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Cores that each node may use; 0 for no limit
    #[arg(long, default_value_t = 0.4)]
    cores: f64,
    /// What the clients read
    #[arg(long, value_delimiter = ',', value_enum, default_value = "points,mixed,scans,long-scans")]
    workload: Vec<Workload>,
    /// Values of cortado.replica_read
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(POLICIES),
        default_value = "leader,closest,any")]
    policy: Vec<String>,
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

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let data = tempfile::tempdir().unwrap();
    let (demo, leader) = Demo::start_led_by_one(free_port_range(), data.path());
    load::prepare(demo.port, options.rows).await;
    let limits = (options.cores > 0.0).then(|| Limits::new(&demo.nodes(), options.cores)).transpose();
    let limits = match limits {
        Ok(limits) => limits,
        Err(error) => {
            eprintln!("hot: cannot limit each node to {} cores (--cores 0: no limit): {error}", options.cores);
            return ExitCode::FAILURE;
        }
    };
    let mut report = Report::default();
    for &workload in &options.workload {
        for round in 1..=options.rounds {
            for policy in POLICIES.into_iter().filter(|policy| options.policy.iter().any(|asked| asked == policy)) {
                let time = Duration::from_secs(options.seconds);
                let load = Load { workload, policy, clients: options.clients, rows: options.rows, time };
                let figures = measure(&demo, leader, load).await;
                eprintln!("{}, {policy}, round {round}: {figures}", workload.name());
                report.add(workload, policy, figures);
                assert_eq!(demo.leader(DATA_REGION), leader, "the leader moved; the figures are of another layout");
            }
        }
    }
    if let Some(limits) = &limits {
        eprintln!("share of periods with the quota used up, by node: {:.2?}", limits.throttled());
    }
    let table = report.to_markdown();
    println!("{table}");
    if let Some(file) = &options.markdown {
        std::fs::write(file, table).unwrap();
    }
    if let Some(file) = &options.svg {
        std::fs::write(file, report.to_svg(options.cores)).unwrap();
    }
    ExitCode::SUCCESS
}

async fn measure(demo: &Demo, leader: u16, load: Load) -> Figures {
    let ports: Vec<u16> = (0..NODES).map(|node| demo.port + node).collect();
    let (nodes, demo_id) = (demo.nodes(), demo.id());
    let used = || {
        let nodes: Vec<Duration> = nodes.iter().map(|node| cpu::of_tree(*node)).collect();
        (nodes, cpu::of_tree(std::process::id()).saturating_sub(cpu::of_tree(demo_id)))
    };
    let (begun, (nodes_before, clients_before)) = (Instant::now(), used());
    let outcome = load::run(&ports, load).await;
    let (nodes_after, clients_after) = used();
    let elapsed = begun.elapsed().as_secs_f64();
    let cores = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() / elapsed;
    let by_node = nodes_after.into_iter().zip(nodes_before).map(|(after, before)| cores(after, before));
    let by_node: Vec<f64> = by_node.collect();
    for (node, (reads, last_read)) in outcome.by_node.iter().zip(&outcome.last_reads).enumerate() {
        let role = if node == usize::from(leader) { "leads" } else { "follows" };
        eprintln!("  node {} {role}: {reads} reads, {:.2} cores; {last_read}", node + 1, by_node[node]);
    }
    let ms = |quantile| outcome.latency.value_at_quantile(quantile) as f64 / 1e6;
    let leader_cores = by_node[usize::from(leader)];
    Figures {
        per_second: outcome.latency.len() as f64 / load.time.as_secs_f64(),
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        leader_cores,
        follower_cores: by_node.iter().sum::<f64>() - leader_cores,
        client_cores: cores(clients_after, clients_before),
        errors: outcome.errors as f64,
    }
}
