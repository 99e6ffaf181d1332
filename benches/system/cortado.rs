//! Three Cortado nodes as child processes of `cortado demo`, seen through the gateway that leads all regions, or through one that leads
//! none and must ask others for all that it needs.

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
/// `cortado demo` listens for other nodes this far above the port for SQL.
const LISTEN_ABOVE_PG: u16 = 1000;
/// How many demos are started at most. One in three has the layout that is wanted.
const STARTS: usize = 40;

struct Demo {
    process: Child,
    port: u16,
}

/// The demo cluster, through one kind of gateway.
struct Cortado {
    demo: Arc<Demo>,
    name: &'static str,
    /// Whether the gateway leads the regions.
    leads: bool,
}

/// A demo cluster with two views of it: clients that talk to the node that leads both regions, so that nothing a statement needs is
/// elsewhere, and clients that talk to one that leads none. Which node leads what is up to the first elections, so demos are started
/// until one has that layout: without it the same program gives figures several times apart.
pub fn start() -> [Box<dyn System>; 2] {
    let mut starts = std::iter::repeat_with(Demo::start).take(STARTS);
    let fitting = starts.find(|demo| demo.leader(SYSTEM_REGION) == demo.leader(DATA_REGION));
    let demo = Arc::new(fitting.unwrap_or_else(|| panic!("in {STARTS} starts no node came to lead both regions")));
    let view = |name, leads| Box::new(Cortado { demo: demo.clone(), name, leads }) as Box<dyn System>;
    [view("cortado", true), view("cortado, other gateway", false)]
}

/// The demo takes 3 ports from here, and as many 1000 and 2000 above.
fn free_port_range() -> u16 {
    let free = |base: u16| {
        (0..NODES).all(|n| [0, 1000, 2000].iter().all(|up| TcpListener::bind(("127.0.0.1", base + up + n)).is_ok()))
    };
    (20_000..30_000).step_by(10).find(|base| free(*base)).expect("free ports")
}

impl Demo {
    /// In a temporary directory; waits until it serves.
    fn start() -> Demo {
        let port = free_port_range();
        let mut process = Command::new(env!("CARGO_BIN_EXE_cortado"))
            .args(["demo", "--nodes", &NODES.to_string(), "--pg-port", &port.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("Ctrl-C stops")), "the demo did not come up");
        // Whatever it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Demo { process, port }
    }

    /// The place (from 0) of the node that leads a region.
    fn leader(&self, region: u64) -> u16 {
        let host = format!("127.0.0.1:{}", self.port + LISTEN_ABOVE_PG);
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
            // The nodes report once a second.
            assert!(Instant::now() < deadline, "nobody leads region {region}: {status:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Cortado {
    /// The place (from 0) of the node that clients talk to.
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
