//! Everything a seed decides before the run: the cluster, its faults, those of requests and coordinators, and the load.

use std::time::Duration;

use kv::Key;
use kv::client::ClientConfig;
use kv::grants::GrantsConfig;
use kv::server::KvServerConfig;
use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simulator::options::{FaultKind, RegionHash, Topology};
use txn::TxnConfig;

use crate::collection::visible_hash;
use crate::steps::{STEPS, Step};

/// User keys below the first bound are in the system region, those between two bounds in one data region.
const BOUNDS: [&[u8]; 2] = [b"t", b"w"];

/// A run is a function of this alone.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) cluster: simulator::options::Options,
    pub(crate) requests: RequestFaults,
    pub(crate) coordinators: CoordinatorFaults,
    /// Mean time between two changes of the epoch of a data region.
    pub(crate) epoch_changes: Option<Duration>,
    /// Mean virtual time between two faults of the oracle's node. `None`: it fails as any other.
    pub(crate) oracle_faults: Option<Duration>,
    /// Sessions that transfer and audit, that read and append to lists, and that read and write registers.
    pub(crate) transfers: u64,
    pub(crate) lists: u64,
    pub(crate) registers: u64,
    /// Sessions that lock counters before they change them.
    pub(crate) counters: u64,
    /// Sessions that lock parents, for children or to change them.
    pub(crate) parents: u64,
    /// Nothing takes row locks away from a session that goes on: no transaction on counters meets a conflict.
    pub(crate) keeps_locks: bool,
    /// Garbage collection. `None`: all versions stay.
    pub(crate) collection: Option<CollectionOptions>,
    /// The share of the transactions that choose how they read.
    pub(crate) surface: f64,
    /// Whether some of them ask for snapshots by their age.
    pub(crate) ages: bool,
    /// The longest pause of a session between two transactions.
    pub(crate) pause: Duration,
    pub(crate) settings: Settings,
    /// The longest difference of a wall clock from the true time, in milliseconds.
    pub(crate) wall_skew_ms: u64,
}

/// How old versions are collected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectionOptions {
    /// How long versions are kept.
    pub(crate) ttl: Duration,
    /// Mean time between two rounds.
    pub(crate) interval: Duration,
    /// Sessions that hold snapshots.
    pub(crate) holders: u64,
}

impl CollectionOptions {
    /// In half of the seeds.
    fn draw(rng: &mut StdRng) -> Option<CollectionOptions> {
        rng.random_bool(0.5).then(|| CollectionOptions {
            ttl: Duration::from_millis(rng.random_range(20..1_500)),
            interval: Duration::from_millis(rng.random_range(50..800)),
            holders: rng.random_range(1..=3),
        })
    }
}

/// What happens to a request and its answer: probabilities, if not said otherwise.
#[derive(Clone, Debug)]
pub(crate) struct RequestFaults {
    /// Range of the delay of a request or an answer, in milliseconds.
    pub(crate) delay_ms: (u64, u64),
    /// It is lost, or its answer is.
    pub(crate) loss: f64,
    /// A lost request arrives after all, seconds later.
    pub(crate) late: f64,
    /// A copy of an executed request arrives, up to six seconds later.
    pub(crate) copies: f64,
    /// The answer to an executed write is lost, and the attempts after it are refused.
    pub(crate) refusals: f64,
    /// A request is dropped where it is executed once its caller does not wait for it any more.
    pub(crate) drops: f64,
    /// Whether requests stop at the links that faults cut. Otherwise only Raft does.
    pub(crate) stop_at_cuts: bool,
    /// A read goes to any replica instead of the leader.
    pub(crate) replica_reads: f64,
}

/// Probabilities of the faults of a coordinator, at each of its steps.
#[derive(Clone, Debug)]
pub(crate) struct CoordinatorFaults {
    /// It dies, at this step.
    pub(crate) step: Step,
    pub(crate) at_step: f64,
    /// It dies, at any step.
    pub(crate) anywhere: f64,
    /// The whole node dies with it.
    pub(crate) with_node: f64,
    /// Its session leaves in the middle of a transaction, which has to end without it.
    pub(crate) cancels: f64,
    /// The oracle's node changes in the middle of a commit.
    pub(crate) oracle_moves: f64,
    /// A commit in one phase stalls, and the region's leader hands over before it leaves.
    pub(crate) leader_moves: f64,
}

/// Settings of the product.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The life of a lock without heartbeats. One below three seconds may end in a handover of the oracle.
    pub(crate) lock_ttl: Duration,
    /// How long the clients of stores and of the oracle retry. A short time makes outcomes unknown.
    pub(crate) deadline: Duration,
    /// Keys of a prewrite batch of the coordinator, and of a request of the client.
    pub(crate) txn_batch_keys: usize,
    pub(crate) kv_batch_keys: usize,
    pub(crate) batches_in_flight: usize,
    /// Commits that clean up after their answer.
    pub(crate) background: usize,
    pub(crate) status_cache_entries: usize,
    /// Writes of a store that hold latches or wait for them.
    pub(crate) latch_capacity: usize,
    pub(crate) grants: GrantsConfig,
    /// The fraction of the reads at replicas that are compared with the leader's.
    pub(crate) shadow_reads: f64,
    /// The store whose replicas of the data regions are learners.
    pub(crate) learner: Option<StoreId>,
    pub(crate) bugs: Bugs,
}

impl CoordinatorFaults {
    fn draw(step: Step, rng: &mut StdRng) -> CoordinatorFaults {
        CoordinatorFaults {
            step,
            at_step: rng.random_range(0.02..0.15) * step.scale(),
            anywhere: if rng.random_bool(0.5) { 0.0 } else { 0.003 },
            with_node: rng.random_range(0.0..0.2),
            cancels: if rng.random_bool(0.5) { 0.0 } else { 0.05 },
            oracle_moves: if rng.random_bool(0.5) { 0.0 } else { rng.random_range(0.0..0.08) },
            leader_moves: if rng.random_bool(0.4) { 0.0 } else { rng.random_range(0.0..0.25) },
        }
    }
}

/// Draws how stores exchange grants. A third of the seeds push none.
fn draw_grants(rng: &mut StdRng) -> GrantsConfig {
    let ms = Duration::from_millis;
    GrantsConfig {
        push_interval: if rng.random_bool(0.3) { Duration::ZERO } else { ms(rng.random_range(5..60)) },
        exchange_interval: ms(rng.random_range(50..400)),
        patience: ms(rng.random_range(100..3_000)),
        place_wait: ms(rng.random_range(0..20)),
        ..GrantsConfig::default()
    }
}

impl Settings {
    /// Draws them. Each is the default in some seeds, and small in the others.
    fn draw(rng: &mut StdRng) -> Settings {
        let (txn, kv, server) = (TxnConfig::default(), ClientConfig::default(), KvServerConfig::default());
        Settings {
            lock_ttl: if rng.random_bool(0.3) {
                txn.lock_ttl
            } else {
                Duration::from_millis(rng.random_range(300..3_000))
            },
            deadline: if rng.random_bool(0.5) {
                kv.deadline
            } else {
                Duration::from_millis(rng.random_range(200..3_000))
            },
            txn_batch_keys: if rng.random_bool(0.6) { txn.commit.batch_keys } else { rng.random_range(1..=3) },
            kv_batch_keys: if rng.random_bool(0.6) { kv.batch_keys } else { rng.random_range(1..=3) },
            batches_in_flight: if rng.random_bool(0.6) { txn.commit.batches_in_flight } else { 1 },
            background: if rng.random_bool(0.7) { txn.background } else { rng.random_range(0..=2) },
            status_cache_entries: if rng.random_bool(0.8) { txn.status_cache_entries } else { 1 },
            latch_capacity: if rng.random_bool(0.8) { server.latch_capacity } else { 4 },
            grants: server.grants,
            shadow_reads: 0.0,
            learner: None,
            bugs: Bugs::default(),
        }
    }
}

/// The deliberate bugs of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bugs {
    #[cfg(feature = "planted-bugs")]
    pub(crate) kv: Option<kv::planted::PlantedBug>,
    #[cfg(feature = "planted-bugs")]
    pub(crate) tso: Option<tso::service::PlantedBug>,
    #[cfg(feature = "planted-bugs")]
    pub(crate) txn: Option<txn::planted::PlantedBug>,
    #[cfg(feature = "planted-bugs")]
    pub(crate) gc: Option<GcBug>,
}

/// Deliberate bugs of the rounds.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GcBug {
    /// The safe point is chosen by the ttl alone, whatever snapshots live.
    SnapshotsIgnored,
    /// Stores collect as soon as the safe point is chosen: old writes are not refused and old locks not resolved.
    CollectedEarly,
}

impl Options {
    /// Draws all options from a seed.
    pub(crate) fn from_seed(seed: u64) -> Options {
        let mut rng = StdRng::seed_from_u64(seed);
        let stores = rng.random_range(3..=5);
        let regions = regions(stores, rng.random_range(1..=2));
        let topology = Topology { regions, stores, ..Topology::draw(&mut rng) };
        let mut cluster = simulator::options::Options::draw(seed, topology, &mut rng);
        cluster.safety = Duration::from_millis(rng.random_range(5_000..12_000));
        // A commit takes several rounds of Raft: fewer faults let more of them meet one in the middle.
        cluster.faults.interval *= 2;
        cluster.liveness = Duration::from_secs(120);
        let calm = rng.random_bool(0.25);
        // Most often up to `usual`, and up to `wild` in a few seeds.
        let mut chance = |usual: f64, wild: f64| match rng.random_range(0..10) {
            _ if calm => 0.0,
            0 => rng.random_range(usual..wild),
            _ => rng.random_range(0.0..usual),
        };
        let (loss, copies, refusals) = (chance(0.05, 0.3), chance(0.1, 0.8), chance(0.05, 0.4));
        let requests = RequestFaults {
            delay_ms: (1, rng.random_range(1..=20)),
            loss,
            late: rng.random_range(0.0..1.0),
            copies,
            refusals,
            drops: if rng.random_bool(0.5) { 0.0 } else { 0.5 },
            stop_at_cuts: rng.random_bool(0.7),
            replica_reads: 0.0,
        };
        let coordinators = CoordinatorFaults::draw(STEPS[(seed % STEPS.len() as u64) as usize], &mut rng);
        let mut settings = Settings::draw(&mut rng);
        let mut of_replicas = cluster.generator(7);
        settings.grants = draw_grants(&mut of_replicas);
        let often = Duration::from_millis(of_replicas.random_range(300..4_000));
        let epoch_changes = of_replicas.random_bool(0.5).then_some(often);
        if stores > 3 && of_replicas.random_bool(0.5) {
            let learner = StoreId::new(of_replicas.random_range(1..=stores));
            make_learner(&mut cluster.regions, learner);
            settings.learner = Some(learner);
        }
        let replica_reads = if of_replicas.random_bool(0.2) { 0.0 } else { of_replicas.random_range(0.2..0.9) };
        let requests = RequestFaults { replica_reads, ..requests };
        let surface = if of_replicas.random_bool(0.15) { 0.0 } else { of_replicas.random_range(0.3..1.0) };
        // A comparison raises max_ts at the leader, so most seeds do without.
        settings.shadow_reads = if of_replicas.random_bool(0.3) { 1.0 } else { 0.0 };
        let mut of_counters = cluster.generator(9);
        let counters = if of_counters.random_bool(0.2) { 0 } else { of_counters.random_range(1..=5) };
        let parents = if of_counters.random_bool(0.2) { 0 } else { of_counters.random_range(1..=4) };
        let collection = CollectionOptions::draw(&mut cluster.generator(11));
        cluster.hash = collection.map(|_| visible_hash as RegionHash);
        if coordinators.step.needs_short_locks() {
            settings.lock_ttl = Duration::from_millis(300);
        }
        Options {
            cluster,
            requests,
            coordinators,
            epoch_changes,
            oracle_faults: rng.random_bool(0.5).then(|| Duration::from_millis(rng.random_range(500..5_000))),
            transfers: rng.random_range(1..=4),
            lists: rng.random_range(3..=10),
            registers: rng.random_range(1..=4),
            counters,
            parents,
            keeps_locks: false,
            collection,
            surface,
            ages: true,
            pause: Duration::from_millis(rng.random_range(1..=60)),
            settings,
            wall_skew_ms: if rng.random_bool(0.5) { 0 } else { 2_000 },
        }
    }
}

impl Options {
    /// Sessions lock the same few rows at once, and nothing takes their locks away: no faults, and nobody leaves.
    pub(crate) fn crowd_counters(&mut self) {
        let none = RequestFaults { loss: 0.0, copies: 0.0, refusals: 0.0, drops: 0.0, ..self.requests.clone() };
        self.requests = none;
        let (at_step, anywhere, cancels, oracle_moves, leader_moves) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let coordinators = self.coordinators.clone();
        self.coordinators =
            CoordinatorFaults { at_step, anywhere, cancels, oracle_moves, leader_moves, ..coordinators };
        self.cluster.faults.interval = Duration::from_secs(3_600);
        (self.epoch_changes, self.oracle_faults) = (None, None);
        (self.counters, self.parents, self.keeps_locks) = (8, 4, true);
        self.pause = Duration::from_millis(5);
    }
}

impl Options {
    /// The same, and leaders hand over, again and again: what they have in memory goes to the next ones.
    pub(crate) fn hand_over_politely(&mut self) {
        self.crowd_counters();
        for (kind, weight) in &mut self.cluster.faults.weights {
            *weight = u32::from(*kind == FaultKind::Transfer);
        }
        self.cluster.faults.interval = Duration::from_millis(300);
        self.cluster.network.be_calm();
        (self.settings.lock_ttl, self.settings.deadline) =
            (TxnConfig::default().lock_ttl, ClientConfig::default().deadline);
    }
}

/// Makes the replicas of the data regions on this store learners.
fn make_learner(regions: &mut [Region], store: StoreId) {
    let data_regions = regions.iter_mut().filter(|region| region.id != RegionId::SYSTEM);
    for peer in data_regions.flat_map(|region| &mut region.peers).filter(|peer| peer.store == store) {
        peer.role = PeerRole::Learner;
    }
}

/// The system region and the data regions, with a voter on every store.
fn regions(stores: u64, data_regions: usize) -> Vec<Region> {
    let bounds: Vec<Vec<u8>> =
        BOUNDS.iter().take(data_regions).map(|bound| Key::from_static(bound).to_storage()).collect();
    let region = |at: usize| {
        let id = RegionId::new(RegionId::SYSTEM.get() + at as u64);
        Region {
            id,
            start: at.checked_sub(1).map_or_else(Vec::new, |before| bounds[before].clone()),
            end: bounds.get(at).cloned().unwrap_or_default(),
            epoch: Epoch { conf_ver: 1, version: 1 },
            peers: (1..=stores)
                .map(|store| PeerMeta {
                    id: PeerId::new(id.get() * 100 + store),
                    store: StoreId::new(store),
                    role: PeerRole::Voter,
                })
                .collect(),
        }
    };
    (0..=data_regions).map(region).collect()
}
