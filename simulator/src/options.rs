//! What a seed decides about the cluster before the run: its stores and regions, their settings, and the faults.
//!
//! Swarm testing: each kind of fault is switched on or off independently and its weight is drawn, so some runs see
//! much of one kind alone. Some see slow disks and links only. A load has options of its own. It may draw them from the
//! same generator, between the steps described at [`Options::draw`].

use std::time::Duration;

use engine::store::{Reader, StoreError};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreConfig, StoreId};

/// The stores and regions of a run.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Number of stores; ids start at 1.
    pub stores: u64,
    /// The regions, with a peer on each store, unless one has a sole replica.
    pub regions: Vec<Region>,
    /// Settings of every store.
    pub config: StoreConfig,
}

impl Topology {
    /// Draws the stores, their settings and the regions.
    pub fn draw(rng: &mut StdRng) -> Topology {
        let stores = if rng.random_bool(0.75) { 3 } else { 5 };
        let config = config(rng);
        Topology { stores, regions: regions(rng, stores), config }
    }
}

/// A run is a function of this and of the options of its load.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all other choices.
    pub seed: u64,
    /// Number of stores; ids start at 1.
    pub stores: u64,
    /// The regions, with a peer on each store, unless one has a sole replica.
    pub regions: Vec<Region>,
    /// Virtual time with faults.
    pub safety: Duration,
    /// Virtual time after healing within which the cluster must recover.
    pub liveness: Duration,
    /// Delay and loss of messages.
    pub network: NetworkOptions,
    /// Time and honesty of syncs.
    pub disk: DiskOptions,
    /// Which faults begin, and how often.
    pub faults: FaultOptions,
    /// Range of the time in microseconds of each step of a snapshot: building, sending, installing.
    pub snapshot_work_us: (u64, u64),
    /// Settings of every store.
    pub config: StoreConfig,
    /// Bytes of a log file.
    pub log_file_bytes: u64,
    /// Largest clock drift, in parts per million.
    pub clock_drift_ppm: u64,
    /// Hash of what must be equal on all replicas of a region with one applied index. `None`: of all their data.
    pub hash: Option<RegionHash>,
}

/// Hashes a region's data, as a view of the store shows it.
pub type RegionHash = fn(&dyn Reader, &Region) -> Result<u64, StoreError>;

/// The network outside of partitions.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Range of the message delay in microseconds.
    pub latency_us: (u64, u64),
    /// Probability of a much longer delay.
    pub straggle: f64,
    /// The upper bound, in microseconds.
    pub straggle_us: u64,
    /// Probability of loss.
    pub drop: f64,
    /// Probability of duplication.
    pub duplicate: f64,
    /// Probability that the receiver of a snapshot file refuses it, or takes longer than its sender waits.
    pub busy_receiver: f64,
    /// Whether sends on a cut link fail, as on a broken connection.
    pub reports_unreachable: bool,
    /// Most bytes of a message: an append, and room for one larger entry. Sending more is a violation.
    pub frame_bytes: usize,
    /// Range of what a slow link carries, in kilobytes per election timeout.
    pub slow_link_kb: (u64, u64),
    /// Whether all messages to a store share one lane, as heartbeats once shared the stream of appends. Never drawn.
    pub one_lane: bool,
}

impl NetworkOptions {
    /// Whether the network loses, doubles and delays nothing by itself.
    pub fn is_calm(&self) -> bool {
        (self.drop, self.duplicate, self.straggle) == (0.0, 0.0, 0.0)
    }

    /// Makes the network lose, double and delay nothing by itself.
    pub fn be_calm(&mut self) {
        (self.drop, self.duplicate, self.straggle) = (0.0, 0.0, 0.0);
    }
}

/// Disk behaviour.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// Range of the time of a sync in microseconds.
    pub sync_us: (u64, u64),
    /// The longest sync of a store whose disk alone is slow, in election timeouts.
    pub slowest_sync: u32,
    /// Whether syncs do nothing and report success. Never drawn: no database survives it.
    pub lies: bool,
}

/// Kinds of faults with their weights (0 is off), and their frequency.
#[derive(Clone, Debug)]
pub struct FaultOptions {
    /// Mean virtual time between two faults.
    pub interval: Duration,
    /// Longest duration of a fault.
    pub longest: Duration,
    /// Each kind and its weight.
    pub weights: Vec<(FaultKind, u32)>,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A store loses power and restarts later.
    Crash,
    /// A store loses power during its next disk writes and restarts later.
    TornCrash,
    /// All stores lose power at once.
    CrashAll,
    /// A store pauses and resumes.
    Pause,
    /// The stores split into two groups that cannot reach each other.
    Partition,
    /// One direction between two stores is cut.
    OneWay,
    /// A sync of the log fails; the store is poisoned and restarted.
    FailedSync,
    /// The log's disk is full for a while.
    DiskFull,
    /// The log's disk is slow for a while.
    SlowDisk,
    /// A write or flush of the key-value store fails; the store is poisoned and restarted.
    FailedStore,
    /// A leader is asked to transfer its leadership.
    Transfer,
    /// A leader is cut off in both directions.
    IsolateLeader,
    /// A follower is cut off from its leader; when it campaigns, other voters restart and meet it without the leader.
    RestartVoters,
    /// A leader transfers its leadership and is isolated before it learns that it was replaced.
    TransferAway,
    /// A `MsgTimeoutNow` arrives long after the leader abandoned the transfer, while the leader is isolated.
    LateTimeoutNow,
    /// A store's apply is slow, for entries and snapshots.
    SlowApply,
    /// Time passes within a store's turns: between intake, decide and carry out.
    SlowTurns,
    /// A leader's turn stalls between decide and carry out, while the leader is isolated.
    StallLeaderTurn,
    /// The answers to a leader arrive late: after it was isolated, and perhaps replaced.
    LateAnswers,
    /// Syncs of the log take up to some election timeouts: on one store, or a little less on all.
    SlowSync,
    /// What a store sends leaves it so slowly that messages queue.
    SlowLink,
    /// A leader is cut off, and the first candidate loses power as it campaigns, before any message arrives.
    CrashCandidate,
}

const KINDS: [FaultKind; 22] = [
    FaultKind::Crash,
    FaultKind::TornCrash,
    FaultKind::CrashAll,
    FaultKind::Pause,
    FaultKind::Partition,
    FaultKind::OneWay,
    FaultKind::FailedSync,
    FaultKind::DiskFull,
    FaultKind::SlowDisk,
    FaultKind::FailedStore,
    FaultKind::Transfer,
    FaultKind::IsolateLeader,
    FaultKind::RestartVoters,
    FaultKind::TransferAway,
    FaultKind::LateTimeoutNow,
    FaultKind::SlowApply,
    FaultKind::SlowTurns,
    FaultKind::StallLeaderTurn,
    FaultKind::CrashCandidate,
    FaultKind::SlowSync,
    FaultKind::SlowLink,
    FaultKind::LateAnswers,
];

impl Options {
    /// Draws the options of a cluster. The steps are [`Topology::draw`], this, [`Options::draw_slow_parts_only`], all
    /// with one generator made from the seed, and [`Options::draw_rarities`].
    pub fn draw(seed: u64, topology: Topology, rng: &mut StdRng) -> Options {
        let Topology { stores, regions, config } = topology;
        let election = config.election_timeout();
        Options {
            seed,
            stores,
            regions,
            safety: election * rng.random_range(30..60),
            liveness: election * 60 + Duration::from_secs(5),
            network: network(rng, election, config.max_append_bytes as usize + ENTRY_MOST),
            disk: DiskOptions {
                sync_us: if rng.random_bool(0.7) { (50, 1500) } else { (1000, 15_000) },
                slowest_sync: 6,
                lies: false,
            },
            faults: faults(rng, election),
            log_file_bytes: if rng.random_bool(0.7) { 64 << 10 } else { 1 << 20 },
            snapshot_work_us: snapshot_work(rng, election),
            clock_drift_ppm: if rng.random_bool(0.5) { 0 } else { 10_000 },
            hash: None,
            config,
        }
    }

    /// Draws whether the run sees slow syncs and slow links only.
    pub fn draw_slow_parts_only(&mut self, rng: &mut StdRng) {
        if rng.random_bool(0.15) {
            self.keep_slow_parts_only(rng.random_bool(0.5));
        }
    }

    /// Draws busy receivers of snapshots and a sole voter, by a generator of their own, so that the other options of a
    /// seed stay what they were.
    pub fn draw_rarities(&mut self) {
        let mut rng = StdRng::seed_from_u64(self.seed ^ 0x5eed_0f5a_4d5e_ed5a);
        self.network.busy_receiver = if rng.random_bool(0.5) { rng.random_range(0.1..0.8) } else { 0.0 };
        if rng.random_bool(0.15) {
            let (region, store) = (rng.random_range(0..self.regions.len()), rng.random_range(1..=self.stores));
            self.make_sole_voter(region, StoreId::new(store), rng.random_bool(0.7));
        }
    }

    /// A generator of the run, derived from the seed. The cluster uses the streams 1, 2 and 4. One and the same number
    /// always gives the same choices.
    pub fn generator(&self, stream: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream)
    }

    /// Nothing but slow syncs and slow links, which other faults would hide: leaderships must last. `stalls`: some
    /// syncs take so long that leaders hand over.
    fn keep_slow_parts_only(&mut self, stalls: bool) {
        for (kind, weight) in &mut self.faults.weights {
            *weight = u32::from(matches!(kind, FaultKind::SlowSync | FaultKind::SlowLink));
        }
        self.network.be_calm();
        self.disk.slowest_sync = if stalls { 60 } else { 6 };
        self.faults.longest = self.config.election_timeout() * if stalls { 60 } else { 20 };
    }

    /// Leaves a region one voter, with learners on the other stores or with no other replica.
    pub fn make_sole_voter(&mut self, region: usize, voter: StoreId, learners: bool) {
        let Some(region) = self.regions.get_mut(region) else { return };
        region.peers.retain(|peer| learners || peer.store == voter);
        for peer in &mut region.peers {
            peer.role = if peer.store == voter { PeerRole::Voter } else { PeerRole::Learner };
        }
    }

    /// The region with this id.
    pub fn region(&self, id: RegionId) -> Option<&Region> {
        self.regions.iter().find(|region| region.id == id)
    }
}

/// Small limits, so that batching, truncation, snapshots and back-pressure all happen within seconds.
fn config(rng: &mut StdRng) -> StoreConfig {
    let tick = Duration::from_millis(rng.random_range(10..=40));
    let election_ticks = rng.random_range(8..=12);
    let narrow = rng.random_bool(0.2);
    StoreConfig {
        tick_interval: tick,
        election_ticks,
        heartbeat_ticks: rng.random_range(1..=2),
        max_lease: tick * (election_ticks - 2),
        read_timeout: tick * election_ticks * 2,
        log_stall: tick * election_ticks * 2,
        mailbox_capacity: if rng.random_bool(0.2) { 16 } else { 16_384 },
        turn_messages: if rng.random_bool(0.3) { 4 } else { 4096 },
        inflight_log_batches: rng.random_range(1..=8),
        apply_backlog_bytes: if narrow { 64 << 10 } else { 64 << 20 },
        log_backlog_bytes: if rng.random_bool(0.2) { 64 << 10 } else { 64 << 20 },
        pending_proposals: if rng.random_bool(0.2) { 1 } else { 8192 },
        pending_reads: if rng.random_bool(0.2) { 1 } else { 8192 },
        apply_batch_bytes: if rng.random_bool(0.3) { 4 << 10 } else { 4 << 20 },
        max_append_bytes: if narrow || rng.random_bool(0.3) { 1 << 10 } else { 1 << 20 },
        max_inflight_appends: if rng.random_bool(0.3) { 2 } else { 64 },
        entry_cache_bytes: if rng.random_bool(0.5) { 0 } else { 1 << 20 },
        log_gc_ticks: rng.random_range(2..=20),
        log_tail_entries: rng.random_range(0..=20),
        log_lag_entries: if rng.random_bool(0.6) { rng.random_range(5..=40) } else { 65_536 },
        log_hold_free_bytes: 1 << rng.random_range(10..=16),
        flush_log_bytes: 1 << rng.random_range(9..=17),
        ..StoreConfig::default()
    }
}

/// One or two regions, each with a peer on every store; with five stores, one peer may be a learner. (`draw_rarities`
/// may leave one of them a sole voter.)
fn regions(rng: &mut StdRng, stores: u64) -> Vec<Region> {
    let bounds: &[(&[u8], &[u8])] = if rng.random_bool(0.5) { &[(b"", b"")] } else { &[(b"", b"m"), (b"m", b"")] };
    let mut regions = Vec::new();
    for (at, (start, end)) in bounds.iter().enumerate() {
        let id = RegionId::new(at as u64 + 1);
        let learner = (rng.random_bool(0.2) && stores > 3).then(|| rng.random_range(1..=stores));
        let peers = (1..=stores).map(|store| PeerMeta {
            id: PeerId::new(id.get() * 100 + store),
            store: StoreId::new(store),
            role: if learner == Some(store) { PeerRole::Learner } else { PeerRole::Voter },
        });
        let epoch = Epoch { conf_ver: 1, version: 1 };
        regions.push(Region { id, start: start.to_vec(), end: end.to_vec(), epoch, peers: peers.collect() });
    }
    regions
}

/// Upper bound of an entry's size.
const ENTRY_MOST: usize = 64 << 10;

fn network(rng: &mut StdRng, election: Duration, frame_bytes: usize) -> NetworkOptions {
    let base = rng.random_range(50..1000);
    let calm = rng.random_bool(0.3);
    let election_us = election.as_micros() as u64;
    let latest = if rng.random_bool(0.2) { 12 } else { 2 };
    NetworkOptions {
        latency_us: (base, base * rng.random_range(2..10)),
        straggle: if calm { 0.0 } else { rng.random_range(0.0..0.05) },
        straggle_us: rng.random_range(election_us / 4..election_us * latest),
        drop: if calm { 0.0 } else { rng.random_range(0.0..0.1) },
        duplicate: if calm { 0.0 } else { rng.random_range(0.0..0.1) },
        busy_receiver: 0.0,
        reports_unreachable: rng.random_bool(0.5),
        frame_bytes,
        slow_link_kb: (60, 600),
        one_lane: false,
    }
}

/// Quick, or slow enough for many writes, elections and restarts during a step.
fn snapshot_work(rng: &mut StdRng, election: Duration) -> (u64, u64) {
    let election_us = election.as_micros() as u64;
    if rng.random_bool(0.5) { (10, 5_000) } else { (election_us / 4, election_us * rng.random_range(1..=4)) }
}

fn faults(rng: &mut StdRng, election: Duration) -> FaultOptions {
    let mut weights = Vec::new();
    for kind in KINDS {
        let weight = if rng.random_bool(0.5) { rng.random_range(1..=4) } else { 0 };
        weights.push(match kind {
            FaultKind::CrashAll => (kind, weight.min(1)),
            // Takes many faults, because each stalls few turns, or refuses few writes.
            FaultKind::SlowTurns | FaultKind::DiskFull => (kind, weight * 2),
            _ => (kind, weight),
        });
    }
    FaultOptions {
        interval: election.mul_f64(rng.random_range(0.7..4.0)),
        longest: election.mul_f64(rng.random_range(1.5..6.0)),
        weights,
    }
}
