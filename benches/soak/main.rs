//! The soak of the shadow oracle: reads at replicas under pauses, until many were compared with the leader's.
//!
//! ```text
//! cargo bench --bench soak [-- --samples 1000000 --connections 24 --rows 2000 --seed 1]
//! ```
//!
//! Three nodes (`cortado demo`) with `--shadow-reads 1`. At each of them connections read, with every combination of
//! `cortado.replica_read`, proof, hedge and snapshot, points, lists of keys and ranges; others move amounts between
//! rows and update single ones. Nodes are paused (SIGSTOP), most often for a moment, at times until another one leads.
//! It ends when the nodes have compared as many reads as `--samples` says, prints samples and differences, and fails if
//! there is a difference. The nodes log each with both proofs.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a benchmark, at the edge"
)]

#[path = "../system/demo.rs"]
mod demo;
mod load;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::demo::{DATA_REGION, Demo, NODES, SYSTEM_REGION, free_port_range};

/// The distance from a node's PostgreSQL port to its port for metrics.
const HTTP_OFFSET: u16 = 2000;
const SAMPLES: &str = "cortado_txn_shadow_reads_total";
const DIFFERENCES: &str = "cortado_txn_shadow_differences_total";
const READS: &str = "cortado_kv_client_replica_reads_total";
const HEDGES: &str = "cortado_kv_client_hedges_total";

#[derive(Parser)]
pub struct Options {
    /// Reads to compare
    #[arg(long, default_value_t = 1_000_000)]
    samples: u64,
    /// Connections that read; a third as many write
    #[arg(long, default_value_t = 24)]
    connections: u64,
    /// Number of rows in the table
    #[arg(long, default_value_t = 2_000)]
    rows: i64,
    /// Determines settings, statements and pauses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let data = tempfile::tempdir().unwrap();
    let demo = Demo::start(free_port_range(), data.path(), &["--node-flag=--shadow-reads=1"]).expect("it comes up");
    let leaders = [DATA_REGION, SYSTEM_REGION].map(|region| demo.leader(region) + 1);
    println!("node {} leads the table at first, node {} is the oracle", leaders[0], leaders[1]);
    load::prepare(demo.port, options.rows).await;
    let stop = Arc::new(AtomicBool::new(false));
    let pauses = tokio::spawn(pause(demo.nodes(), options.seed, Arc::clone(&stop)));
    for number in 0..options.connections {
        let port = demo.port + (number % u64::from(NODES)) as u16;
        tokio::spawn(load::read(port, options.seed * 1_000 + number, options.rows));
        if number.is_multiple_of(3) {
            let port = demo.port + (number / 3 % u64::from(NODES)) as u16;
            tokio::spawn(load::write(port, options.seed * 1_000 + number, options.rows));
        }
    }
    let begin = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let pages = pages(demo.port).await;
        let (samples, differences) = (sum(&pages, SAMPLES), sum(&pages, DIFFERENCES));
        eprintln!("{:.0?}: {samples} samples, {differences} differences", begin.elapsed());
        if samples >= options.samples || differences > 0 {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let paused = pauses.await.expect("the nodes are there");
    let pages = pages(demo.port).await;
    let (samples, differences) = (sum(&pages, SAMPLES), sum(&pages, DIFFERENCES));
    println!("{paused} pauses in {:.0?}", begin.elapsed());
    for name in [READS, HEDGES] {
        lines(&pages, name).into_iter().for_each(|(labels, count)| println!("{name}{labels} {count}"));
    }
    println!("{samples} samples, {differences} differences");
    assert_eq!(differences, 0, "the logs of the nodes say which");
}

/// Pauses one node after the other. Returns how often. Leaves none paused.
async fn pause(nodes: Vec<u32>, seed: u64, stop: Arc<AtomicBool>) -> u64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(rng.random_range(500..3_000))).await;
        let node = nodes[rng.random_range(0..nodes.len())];
        // Longer than an election takes, or shorter.
        let ms = if rng.random_bool(0.2) { rng.random_range(1_500..4_000) } else { rng.random_range(20..400) };
        signal("STOP", node);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        signal("CONT", node);
        count += 1;
    }
    count
}

fn signal(name: &str, process: u32) {
    let done = Command::new("kill").args(["-s", name, &process.to_string()]).status();
    assert!(done.is_ok_and(|status| status.success()), "cannot signal process {process}");
}

/// The metrics of all nodes. One that is paused answers later.
async fn pages(first_port: u16) -> String {
    let mut pages = String::new();
    for node in 0..NODES {
        let mut stream = TcpStream::connect(("127.0.0.1", first_port + node + HTTP_OFFSET)).await.unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_to_string(&mut pages).await.unwrap();
    }
    pages
}

/// The counter with each of its labels.
fn lines(pages: &str, name: &str) -> std::collections::BTreeMap<String, u64> {
    let mut counts = std::collections::BTreeMap::new();
    for line in pages.lines() {
        let Some((labels, count)) = line.strip_prefix(name).and_then(|rest| rest.rsplit_once(' ')) else { continue };
        *counts.entry(labels.to_owned()).or_default() += count.parse::<f64>().expect("a count") as u64;
    }
    counts
}

fn sum(pages: &str, name: &str) -> u64 {
    lines(pages, name).values().sum()
}
