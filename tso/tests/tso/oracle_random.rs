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
                self.oracles[node].start(self.term, self.mark, self.clocks[node], None);
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

fn simulate(seed: u64, mut check: impl FnMut(Timestamp, Timestamp)) -> Cluster {
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
        let cluster = simulate(seed, |newest, first| assert!(first > newest, "seed {seed}: {first} after {newest}"));
        issued += cluster.issued;
        leader_changes += cluster.leader_changes;
    }
    println!("{issued} timestamps, {leader_changes} leader changes");
    assert!(issued > 1_000_000 && leader_changes > 1000, "{issued} {leader_changes}");
}

/// A planted bug, a leader that starts from a lost mark, violates the same check.
#[test]
fn a_lost_mark_is_detected() {
    let mut old = Oracle::new();
    let at = |wall_ms| ClockReading { wall_ms, mono_ms: 0 };
    old.start(LeaderTerm(1), Timestamp::ZERO, at(10_000), None);
    let mark = old.extend(at(10_000)).unwrap();
    old.raised(LeaderTerm(1), mark);
    let newest = old.allocate(at(10_000), 10).unwrap().last;
    let mut new = Oracle::new();
    new.start(LeaderTerm(2), Timestamp::ZERO, at(9_000), None);
    let mark = new.extend(at(9_000)).unwrap();
    new.raised(LeaderTerm(2), mark);
    let first = new.allocate(at(9_000), 1).unwrap().first();
    assert!(first <= newest, "the planted bug shows");
}
