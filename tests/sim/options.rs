//! Everything a seed decides before the run: the cluster, its faults, and those of the requests between nodes.

use std::time::Duration;

use kv::Key;
use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simulator::options::Topology;

/// User keys below this are in the system region, the others in the data region.
pub(crate) const BOUNDARY: &[u8] = b"t";

/// A run is a function of this alone.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) cluster: simulator::options::Options,
    /// Transfers at a time.
    pub(crate) sessions: u64,
    /// Range of the delay of a request or an answer, in milliseconds.
    pub(crate) delay_ms: (u64, u64),
    /// Probabilities that a request or an answer is lost, and that a late copy of a request arrives.
    pub(crate) loss: f64,
    pub(crate) copies: f64,
    /// The longest difference of a wall clock from the true time, in milliseconds.
    pub(crate) wall_skew_ms: u64,
}

impl Options {
    /// Draws all options from a seed.
    pub(crate) fn from_seed(seed: u64) -> Options {
        let mut rng = StdRng::seed_from_u64(seed);
        let topology = Topology { regions: regions(3), stores: 3, ..Topology::draw(&mut rng) };
        let mut cluster = simulator::options::Options::draw(seed, topology, &mut rng);
        cluster.safety = Duration::from_secs(rng.random_range(20..60));
        cluster.liveness = Duration::from_secs(120);
        let calm = rng.random_bool(0.3);
        Options {
            cluster,
            sessions: rng.random_range(2..=6),
            delay_ms: (1, rng.random_range(1..=20)),
            loss: if calm { 0.0 } else { rng.random_range(0.0..0.05) },
            copies: if calm { 0.0 } else { rng.random_range(0.0..0.1) },
            wall_skew_ms: if rng.random_bool(0.5) { 0 } else { 2_000 },
        }
    }
}

/// The system region and the data region, with a voter on every store.
fn regions(stores: u64) -> Vec<Region> {
    let boundary = Key::from_static(BOUNDARY).to_storage();
    let region = |id: RegionId, start: &[u8], end: &[u8]| Region {
        id,
        start: start.to_vec(),
        end: end.to_vec(),
        epoch: Epoch { conf_ver: 1, version: 1 },
        peers: (1..=stores)
            .map(|store| PeerMeta {
                id: PeerId::new(id.get() * 100 + store),
                store: StoreId::new(store),
                role: PeerRole::Voter,
            })
            .collect(),
    };
    vec![region(RegionId::SYSTEM, b"", &boundary), region(RegionId::FIRST_DATA, &boundary, b"")]
}
