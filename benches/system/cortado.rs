//! Cortado as a system under load: a demo of three nodes. The clients use the gateway that leads all regions, or one
//! that leads none and must forward every request.

use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use crate::demo::{DATA_REGION, Demo, METRICS_OFFSET, NODES, SYSTEM_REGION, free_port_range};
use crate::system::System;

/// A demo cluster in which one node leads both regions. It can be restarted.
struct Cluster {
    port: u16,
    demo: Mutex<Option<Demo>>,
    data: TempDir,
}

/// The cluster, measured through one kind of gateway.
struct Cortado {
    cluster: Arc<Cluster>,
    name: &'static str,
    /// Whether the gateway leads the regions.
    leads: bool,
}

/// Starts a demo cluster and returns two systems over it: one whose gateway leads both regions, so that statements need
/// no other node, and one whose gateway leads none. In other layouts the figures differ several times.
pub fn start() -> [Box<dyn System>; 2] {
    let cluster = Cluster { port: free_port_range(), demo: Mutex::default(), data: tempfile::tempdir().unwrap() };
    cluster.restart();
    let cluster = Arc::new(cluster);
    let view = |name, leads| Box::new(Cortado { cluster: cluster.clone(), name, leads }) as Box<dyn System>;
    [view("cortado", true), view("cortado, other gateway", false)]
}

impl Cluster {
    /// Starts all nodes with their data.
    fn restart(&self) {
        let mut running = self.demo.lock().unwrap();
        drop(running.take());
        *running = Some(Demo::start_led_by_one(self.port, self.data.path()).0);
    }
}

impl Cortado {
    /// Asks the demo that runs.
    fn ask<T>(&self, ask: impl FnOnce(&Demo) -> T) -> T {
        ask(self.cluster.demo.lock().unwrap().as_ref().expect("it runs"))
    }

    /// The number (from 0) of the node that the clients use.
    fn gateway(&self) -> u16 {
        let [system, data] = [SYSTEM_REGION, DATA_REGION].map(|region| self.ask(|demo| demo.leader(region)));
        let idle = (0..NODES).find(|node| ![system, data].contains(node)).expect("three nodes, two regions");
        if self.leads { data } else { idle }
    }
}

impl System for Cortado {
    fn name(&self) -> &'static str {
        self.name
    }

    fn port(&self) -> u16 {
        self.cluster.port + self.gateway()
    }

    fn servers(&self) -> Vec<u32> {
        let mut nodes = self.ask(Demo::nodes);
        nodes.rotate_left(usize::from(self.gateway()));
        nodes
    }

    fn metrics_ports(&self) -> Vec<u16> {
        (0..NODES).map(|node| self.cluster.port + METRICS_OFFSET + node).collect()
    }

    fn shares_data(&self) -> bool {
        !self.leads
    }

    fn restart(&self) {
        self.cluster.restart();
    }
}
