//! Cortado as a system under load: a demo of three nodes. The clients use the gateway that leads all regions, or one
//! that leads none and must forward every request.

use std::sync::Arc;

use crate::demo::{DATA_REGION, Demo, NODES, SYSTEM_REGION};
use crate::system::System;

/// The most demos that are started. One in three has the required layout.
const STARTS_MAX: usize = 40;

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
        let mut nodes = self.demo.nodes();
        nodes.rotate_left(usize::from(self.gateway()));
        nodes
    }

    fn shares_data(&self) -> bool {
        !self.leads
    }
}
