//! Three Cortado nodes as child processes of `cortado demo`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The number of nodes.
pub const NODES: u16 = 3;
/// The region whose leader issues timestamps.
pub const SYSTEM_REGION: u64 = 1;
/// The region that holds all tables.
pub const DATA_REGION: u64 = 2;
/// The most starts of a demo until one node leads all regions. One start in three has that layout.
const STARTS_MAX: usize = 40;
/// The distance from a node's PostgreSQL port to its port for other nodes.
const LISTEN_OFFSET: u16 = 1000;
/// The distance to the port of its page with metrics.
#[allow(dead_code, reason = "not all benchmarks that share this file read metrics")]
pub const METRICS_OFFSET: u16 = 2000;

/// A running demo. Dropping it stops its nodes in order.
pub struct Demo {
    process: Child,
    /// The PostgreSQL port of the first node; those of the others follow.
    pub port: u16,
}

/// The first of three free ports in a row, with free ports for all that a demo listens at.
pub fn free_port_range() -> u16 {
    let free = |base: u16| {
        (0..NODES).all(|n| {
            [0, 1000, 1100, 1200, 2000].iter().all(|up| TcpListener::bind(("127.0.0.1", base + up + n)).is_ok())
        })
    };
    (20_000..30_000).step_by(10).find(|base| free(*base)).expect("free ports")
}

impl Demo {
    /// Starts a demo with these flags at a port of [`free_port_range`] and waits until it serves. An empty directory
    /// gets a new cluster, that of an earlier demo at this port goes on with its data. `None` if it does not come up;
    /// it has printed the reason.
    pub fn start(port: u16, data: &Path, flags: &[&str]) -> Option<Demo> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cortado"))
            .args(["demo", "--pg-port", &port.to_string(), "--data"])
            .arg(data)
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let is_up = lines.any(|line| line.unwrap().contains("Ctrl-C stops"));
        // Drains later output, which would otherwise fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let demo = Demo { process, port };
        is_up.then_some(demo)
    }

    /// Starts demos until one node leads all regions, which the elections decide. Returns its number, from 0. In other
    /// layouts the figures differ several times.
    #[allow(dead_code, reason = "not all benchmarks that share this file need that layout")]
    pub fn start_led_by_one(port: u16, data: &Path) -> (Demo, u16) {
        for _ in 0..STARTS_MAX {
            let demo = Demo::start(port, data, &[]).expect("the demo comes up");
            let leader = demo.leader(DATA_REGION);
            if demo.leader(SYSTEM_REGION) == leader {
                return (demo, leader);
            }
        }
        panic!("in {STARTS_MAX} starts no node led all regions");
    }

    /// The number (from 0) of the node that leads a region.
    pub fn leader(&self, region: u64) -> u16 {
        let host = format!("127.0.0.1:{}", self.port + LISTEN_OFFSET);
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let mut status = Command::new(env!("CARGO_BIN_EXE_cortado"));
            let out = status.args(["status", "--json", "--host", &host]).output().unwrap();
            let status: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
            let regions = status["regions"].as_array().cloned().unwrap_or_default();
            let found = regions.iter().find(|r| r["id"] == region).and_then(|r| r["leader"].as_u64());
            if let Some(node) = found {
                return node as u16 - 1;
            }
            // The nodes send heartbeats once a second.
            assert!(Instant::now() < deadline, "nobody leads region {region}: {status:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The process id of the demo itself.
    #[allow(dead_code, reason = "only one of the benchmarks that share this file asks for it")]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The process ids of the nodes, in the order of their numbers.
    #[allow(dead_code, reason = "benches/expensive shares this file and does not ask")]
    pub fn nodes(&self) -> Vec<u32> {
        let id = self.process.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}
