//! Everything a seed decides before the run: the cluster and its faults, and what the clients do.
//!
//! [`Options`] holds everything derived from the seed, and a failure prints it.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use raftstore::{Region, RegionId};
use simulator::options::{Options as ClusterOptions, Topology};

/// A run is a function of this alone.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) cluster: ClusterOptions,
    /// Number of clients, each with one operation at a time.
    pub(crate) clients: usize,
    /// Registers per region that all clients share.
    pub(crate) registers: u64,
    /// How long a client waits for an answer, unless it appends to its list.
    pub(crate) client_timeout: Duration,
    /// Mean think time between two operations.
    pub(crate) think: Duration,
    /// Whether a refused client retries at once.
    pub(crate) retries_fast: bool,
    /// Part of the lease reads whose thread is preempted before it looks at the clock.
    pub(crate) preempts: f64,
    /// Longest padding of a value in bytes.
    pub(crate) padding: usize,
}

impl Options {
    /// Draws all options from a seed. A seed means what it does because of the order in which they are drawn.
    pub(crate) fn from_seed(seed: u64) -> Options {
        let rng = &mut StdRng::seed_from_u64(seed);
        let topology = Topology::draw(rng);
        let election = topology.config.election_timeout();
        let clients = rng.random_range(4..=8);
        let registers = rng.random_range(1..=3);
        let think = election.mul_f64(rng.random_range(0.02..0.2));
        let client_timeout = election.mul_f64(rng.random_range(0.3..1.5));
        let retries_fast = rng.random_bool(0.4);
        let padding = if rng.random_bool(0.3) { 4000 } else { 60 };
        let mut cluster = ClusterOptions::draw(seed, topology, rng);
        let preempts = if rng.random_bool(0.3) { 0.1 } else { 0.0 };
        cluster.draw_slow_parts_only(rng);
        cluster.draw_rarities();
        Options { cluster, clients, registers, client_timeout, think, retries_fast, preempts, padding }
    }

    /// The region with this id.
    pub(crate) fn region(&self, id: RegionId) -> Option<&Region> {
        self.cluster.region(id)
    }
}
