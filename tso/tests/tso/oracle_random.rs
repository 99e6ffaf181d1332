//! Randomised runs of a cluster of oracles: timestamps strictly increase across clock jumps and leader changes.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tso::oracle::{ClockReading, Oracle};
use tso::timestamp::MAX_COUNT;
use tso::{LeaderTerm, Timestamp};

const NODES: usize = 3;
const STEPS: usize = 5000;
const SEEDS: u64 = 50;

struct Cluster {
    rng: StdRng,
    oracles: Vec<Oracle>,
    /// The clocks of each node.
    clocks: Vec<ClockReading>,
    /// The physical part of the first timestamp of each node's current leadership, and the monotonic clock at that
    /// time.
    began: Vec<Option<(u64, u64)>>,
    /// The raise in flight of each node.
    raising: Vec<Option<(LeaderTerm, Timestamp)>>,
    /// The durable mark in the system region.
    mark: Timestamp,
    /// Whether a new leader starts from a lost mark: a planted bug.
    loses_mark: bool,
    term: LeaderTerm,
    leader: usize,
    newest: Timestamp,
    issued: u64,
    leader_changes: u64,
}

impl Cluster {
    fn step(&mut self, check: &mut impl FnMut(Timestamp, Timestamp)) {
        let node = self.rng.random_range(0..NODES);
        match self.rng.random_range(0..100) {
            0..50 => self.allocate(node, check),
            50..65 => {
                let asked = self.oracles[node].extend(self.clocks[node]);
                if let Some((mark, term)) = asked.zip(self.oracles[node].term()) {
                    self.raising[node] = Some((term, mark));
                }
            }
            65..85 => self.answer_raise(node),
            85..97 => {
                let passed = self.rng.random_range(0..1000);
                let jump = match self.rng.random_range(0..20) {
                    0 => 3_600_000,
                    1 => -3_600_000,
                    _ => passed as i64,
                };
                let clock = &mut self.clocks[node];
                clock.wall_ms = clock.wall_ms.saturating_add_signed(jump);
                clock.mono_ms += passed;
            }
            97..99 => {
                self.began[node] = None;
                self.oracles[node].stop();
            }
            _ => {
                // The old leader does not step down. Its lease has ended, which the oracle does not check.
                self.term = LeaderTerm(self.term.0 + 1);
                self.leader = node;
                self.leader_changes += 1;
                self.began[node] = None;
                let mark = if self.loses_mark { Timestamp::ZERO } else { self.mark };
                self.oracles[node].start(self.term, mark, self.clocks[node], None);
            }
        }
    }

    fn allocate(&mut self, node: usize, check: &mut impl FnMut(Timestamp, Timestamp)) {
        let count = if self.rng.random_ratio(1, 10) { MAX_COUNT } else { self.rng.random_range(1..100) };
        let Ok(range) = self.oracles[node].allocate(self.clocks[node], count) else { return };
        // Whatever the wall clock did, physical time followed the monotonic clock.
        let (first_ms, mono_ms) = (range.first().physical_ms(), self.clocks[node].mono_ms);
        let (began_ms, began_mono_ms) = *self.began[node].get_or_insert((first_ms, mono_ms));
        let (passed_ms, elapsed_ms) = (first_ms - began_ms, mono_ms - began_mono_ms);
        assert!(passed_ms >= elapsed_ms / 2, "time stood still: {first_ms} after {began_ms}");
        // The lease check, after the range was computed.
        if node != self.leader || self.oracles[node].term() != Some(self.term) {
            return;
        }
        check(self.newest, range.first());
        assert!(range.last < self.mark, "{} is not below the durable mark {}", range.last, self.mark);
        self.newest = range.last;
        self.issued += u64::from(count);
    }

    /// A raise succeeds if its term is still the newest, fails, or fails although it became durable.
    fn answer_raise(&mut self, node: usize) {
        let Some((term, mark)) = self.raising[node].take() else { return };
        let applied = term == self.term && self.rng.random_ratio(9, 10);
        if applied {
            self.mark = self.mark.max(mark);
        }
        if applied && self.rng.random_ratio(9, 10) {
            self.oracles[node].raised(term, mark);
        } else {
            self.oracles[node].raise_failed(term);
        }
    }
}

fn simulate(seed: u64, loses_mark: bool, mut check: impl FnMut(Timestamp, Timestamp)) -> Cluster {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut clock = |_| ClockReading { wall_ms: rng.random_range(10_000_000..20_000_000), mono_ms: 0 };
    let clocks = (0..NODES).map(&mut clock).collect();
    let mut cluster = Cluster {
        rng,
        oracles: vec![Oracle::new(); NODES],
        clocks,
        began: vec![None; NODES],
        raising: vec![None; NODES],
        mark: Timestamp::ZERO,
        loses_mark,
        term: LeaderTerm(0),
        leader: 0,
        newest: Timestamp::ZERO,
        issued: 0,
        leader_changes: 0,
    };
    for _ in 0..STEPS {
        cluster.step(&mut check);
    }
    cluster
}

#[test]
fn timestamps_strictly_increase() {
    let (mut issued, mut leader_changes) = (0, 0);
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let increases = |newest, first| assert!(first > newest, "seed {seed}: {first} after {newest}");
        let cluster = simulate(seed, false, increases);
        issued += cluster.issued;
        leader_changes += cluster.leader_changes;
    }
    println!("{issued} timestamps, {leader_changes} leader changes");
    assert!(issued > 1_000_000 && leader_changes > 1000, "{issued} {leader_changes}");
}

/// A planted bug, a leader that starts from a lost mark, issues timestamps again.
#[test]
fn a_lost_mark_is_detected() {
    let mut repeated = 0;
    for seed in 0..SEEDS {
        simulate(seed, true, |newest, first| repeated += usize::from(first <= newest));
    }
    assert!(repeated > 0, "the check finds nothing");
}
