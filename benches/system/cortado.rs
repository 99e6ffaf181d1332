//! Three Cortado nodes as child processes of `cortado demo`. The clients use the gateway that leads all regions, or one
//! that leads none and must forward every request.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::System;

const NODES: u16 = 3;
/// The region whose leader issues timestamps.
const SYSTEM_REGION: u64 = 1;
/// The region that holds all tables.
const DATA_REGION: u64 = 2;
/// The distance from a node's PostgreSQL port to its port for other nodes.
const LISTEN_OFFSET: u16 = 1000;
/// The most demos that are started. One in three has the required layout.
const STARTS_MAX: usize = 40;

struct Demo {
    process: Child,
    port: u16,
}

/// The demo cluster, measured through one kind of gateway.
struct Cortado {
    demo: Arc<Demo>,
    name: &'static str,
    /// Whether the gateway leads the regions.
    leads: bool,
}

/// Starts a demo cluster and returns two systems over it: one whose gateway leads both regions, so that statements need
/// no other node, and one whose gateway leads none. The first elections decide which node leads a region, so demos are
/// started until one node leads both. In other layouts the figures differ several times.
pub fn start() -> [Box<dyn System>; 2] {
    let mut starts = std::iter::repeat_with(Demo::start).take(STARTS_MAX);
    let demo = starts.find(|demo| demo.leader(SYSTEM_REGION) == demo.leader(DATA_REGION));
    let demo = Arc::new(demo.unwrap_or_else(|| panic!("in {STARTS_MAX} starts no node led both regions")));
    let view = |name, leads| Box::new(Cortado { demo: demo.clone(), name, leads }) as Box<dyn System>;
    [view("cortado", true), view("cortado, other gateway", false)]
}

/// The first of three free ports in a row, with free ports 1000 and 2000 above each.
fn free_port_range() -> u16 {
    let free = |base: u16| {
        (0..NODES).all(|n| [0, 1000, 2000].iter().all(|up| TcpListener::bind(("127.0.0.1", base + up + n)).is_ok()))
    };
    (20_000..30_000).step_by(10).find(|base| free(*base)).expect("free ports")
}

impl Demo {
    /// Starts a demo in a temporary directory and waits until it serves.
    fn start() -> Demo {
        let port = free_port_range();
        let mut process = Command::new(env!("CARGO_BIN_EXE_cortado"))
            .args(["demo", "--nodes", &NODES.to_string(), "--pg-port", &port.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("Ctrl-C stops")), "the demo did not come up");
        // Drains later output, which would otherwise fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Demo { process, port }
    }

    /// The number (from 0) of the node that leads a region.
    fn leader(&self, region: u64) -> u16 {
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
}

impl Cortado {
    /// The number (from 0) of the node that the clients use.
    fn gateway(&self) -> u16 {
        let [system, data] = [SYSTEM_REGION, DATA_REGION].map(|region| self.demo.leader(region));
        let idle = (0..NODES).find(|node| ![system, data].contains(node)).expect("three nodes, two regions");
        if self.leads { data } else { idle }
    }
}

impl System for Cortado {
    fn name(&self) -> &'static str {
        self.name
    }

    fn port(&self) -> u16 {
        self.demo.port + self.gateway()
    }

    fn servers(&self) -> Vec<u32> {
        let id = self.demo.process.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let mut nodes: Vec<u32> = text.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        nodes.rotate_left(usize::from(self.gateway()));
        nodes
    }

    fn shares_data(&self) -> bool {
        !self.leads
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // SIGTERM: the demo stops its nodes and removes their data.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}
