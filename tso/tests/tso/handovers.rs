//! Oracles over virtual time: hundreds of handovers, and wall clocks that jump by an hour. Timestamps increase, and the
//! lead over the true time stays bounded and is given back.
//!
//! Three nodes have an oracle, a wall clock and a monotonic clock each. One leads until the next handover; the old
//! leader steps down, crashes, or goes on without noticing. Raises of the mark take time and can fail. Each node
//! receives timestamps for its health probe at least. A new leader without a timestamp asks the others (`tso::leap`),
//! and one may not answer. Everything is drawn from a seed, which a failure names.

use std::cmp::Reverse;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use tso::leap::{self, Leap};
use tso::oracle::{ClockReading, Oracle, OracleError, WINDOW_MIN_MS, WINDOW_MS};
use tso::timestamp::MAX_COUNT;
use tso::{LeaderTerm, Survey, TimeReport, Timestamp};

const NODES: usize = 3;
const SEEDS: u64 = 20;
const HANDOVERS: u64 = 300;
const HOUR_MS: i64 = 3_600_000;
/// The true time at the start of a run.
const STARTED_MS: u64 = 1_000_000_000;
/// How far a wall clock that did not jump is from the true time, at most.
const SKEW_MS: i64 = 100;
/// How often a node fetches a timestamp for its health probe.
const PROBE_MS: u64 = 1_000;
/// How often the leader checks its window.
const CHECK_MS: u64 = WINDOW_MS / 8;

struct Node {
    oracle: Oracle,
    /// When it received a timestamp last, since it started.
    received_ms: Option<u64>,
    /// The distance of the wall clock from the true time.
    wall_error_ms: i64,
    /// The monotonic clock at the start of the run.
    mono_ms: u64,
    next_check_ms: u64,
    raise: Option<Raise>,
}

#[derive(Clone, Copy)]
struct Raise {
    term: LeaderTerm,
    mark: Timestamp,
    ends_ms: u64,
}

struct World {
    rng: StdRng,
    now_ms: u64,
    nodes: Vec<Node>,
    leader: usize,
    term: LeaderTerm,
    /// The durable mark.
    mark: Timestamp,
    /// Whether a node may be silent when a new leader asks.
    may_be_silent: bool,
    /// How long an answer takes at most.
    answer_max: Duration,
    /// The newest timestamp handed out.
    newest: Timestamp,
    /// The largest distance between the newest timestamp and the true time.
    lead_max_ms: i64,
    /// Timestamps handed out, and requests that found no window.
    issued: u64,
    waited: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = StdRng::seed_from_u64(seed);
        let nodes = (0..NODES).map(|_| Node {
            oracle: Oracle::new(),
            received_ms: None,
            wall_error_ms: rng.random_range(-SKEW_MS..=SKEW_MS),
            mono_ms: rng.random_range(0..1_000_000),
            next_check_ms: 0,
            raise: None,
        });
        let nodes = nodes.collect();
        let mut world = World {
            rng,
            now_ms: STARTED_MS,
            nodes,
            leader: 0,
            term: LeaderTerm(0),
            mark: Timestamp::ZERO,
            may_be_silent: true,
            answer_max: Duration::from_secs(1),
            newest: Timestamp::ZERO,
            lead_max_ms: 0,
            issued: 0,
            waited: 0,
        };
        world.lead(0);
        world.run_until_issued();
        world
    }

    fn clocks(&self, node: usize) -> ClockReading {
        let Node { wall_error_ms, mono_ms, .. } = self.nodes[node];
        let wall_ms = self.now_ms.saturating_add_signed(wall_error_ms);
        ClockReading { wall_ms, mono_ms: mono_ms + self.now_ms - STARTED_MS }
    }

    fn lead_ms(&self) -> i64 {
        self.newest.physical_ms() as i64 - self.now_ms as i64
    }

    /// Node `node` leads from now on, in a new term.
    fn lead(&mut self, node: usize) {
        self.term = LeaderTerm(self.term.0 + 1);
        self.leader = node;
        let leap_ms = self.find_leap(node);
        let now = self.clocks(node);
        self.nodes[node].oracle.start(self.term, self.mark, now, leap_ms);
        self.nodes[node].next_check_ms = self.now_ms;
    }

    /// What the service does: asks the other nodes if it has no timestamp. An answer may never come. Nobody is served
    /// meanwhile.
    fn find_leap(&mut self, leader: usize) -> Option<u64> {
        if !leap::must_ask(self.mark, self.time_report(leader).quiet) {
            return None;
        }
        let started_ms = self.now_ms;
        let mut survey = Survey::new(NODES, 0);
        survey.voter_answered(self.time_report(leader), Duration::ZERO);
        let is_one_silent = self.may_be_silent && self.rng.random_bool(0.5);
        let silent = is_one_silent.then_some((leader + 1) % NODES);
        let asked = (0..NODES).filter(|node| *node != leader && Some(*node) != silent);
        let longest_ms = self.answer_max.as_millis() as u64;
        let mut answers: Vec<(u64, usize)> =
            asked.map(|node| (started_ms + self.rng.random_range(1..longest_ms), node)).collect();
        answers.sort_unstable_by_key(|(at_ms, _)| Reverse(*at_ms));
        loop {
            let waited = Duration::from_millis(self.now_ms - started_ms);
            match survey.decide(self.mark, waited) {
                Leap::To(leap_ms) => return Some(leap_ms),
                Leap::NotDue | Leap::Refused => return None,
                Leap::Undecided => {}
                Leap::Unknown => panic!("a majority has answered"),
            }
            match answers.pop() {
                Some((at_ms, node)) => {
                    self.now_ms = at_ms;
                    survey.voter_answered(self.time_report(node), Duration::from_millis(at_ms - started_ms));
                }
                None => self.now_ms += 250,
            }
        }
    }

    fn time_report(&self, node: usize) -> TimeReport {
        let received_ms = self.nodes[node].received_ms;
        let quiet = received_ms.map_or(Duration::MAX, |ms| Duration::from_millis(self.now_ms - ms));
        TimeReport { wall_ms: self.clocks(node).wall_ms, quiet }
    }

    /// The leadership passes to another node, at once or after an outage.
    fn hand_over(&mut self) {
        let (old, outage_ms) = (self.leader, self.rng.random_range(0..3_000));
        match self.rng.random_range(0..3) {
            0 => self.nodes[old].oracle.stop(),
            1 => self.restart(old),
            // It does not notice. Its lease has ended.
            _ => {}
        }
        let orderly = self.rng.random_bool(0.5);
        self.leader = NODES;
        self.run_for(if orderly { outage_ms / 100 } else { outage_ms });
        let new = (old + self.rng.random_range(1..NODES)) % NODES;
        self.lead(new);
        self.run_until_issued();
    }

    /// The process of a node starts anew.
    fn restart(&mut self, node: usize) {
        (self.nodes[node].oracle, self.nodes[node].received_ms) = (Oracle::new(), None);
    }

    /// Runs until the leader has issued timestamps.
    fn run_until_issued(&mut self) {
        let before = self.newest;
        for _ in 0..100 {
            self.run_for(10);
            if self.newest > before {
                return;
            }
        }
        panic!("the leader of {} issues nothing", self.term);
    }

    /// Advances the true time by `ms`, in steps. In each step every node may issue timestamps and raise the mark.
    fn run_for(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            self.now_ms = until_ms.min(self.now_ms + self.rng.random_range(1..50));
            for node in 0..NODES {
                self.end_raise(node);
                self.check_window(node);
                self.allocate(node);
            }
        }
    }

    fn check_window(&mut self, node: usize) {
        if self.nodes[node].next_check_ms > self.now_ms || self.nodes[node].raise.is_some() {
            return;
        }
        self.nodes[node].next_check_ms = self.now_ms + CHECK_MS;
        let now = self.clocks(node);
        let Node { oracle, raise, .. } = &mut self.nodes[node];
        if let Some((mark, term)) = oracle.extend(now).zip(oracle.term()) {
            *raise = Some(Raise { term, mark, ends_ms: self.now_ms + self.rng.random_range(2..60) });
        }
    }

    /// A raise of an older term fails. One of the current term may fail, or report a failure and be durable.
    fn end_raise(&mut self, node: usize) {
        let Some(raise) = self.nodes[node].raise.filter(|raise| raise.ends_ms <= self.now_ms) else { return };
        self.nodes[node].raise = None;
        self.nodes[node].next_check_ms = self.now_ms;
        let applied = raise.term == self.term && node == self.leader && self.rng.random_ratio(19, 20);
        if applied {
            self.mark = self.mark.max(raise.mark);
        }
        if applied && self.rng.random_ratio(19, 20) {
            self.nodes[node].oracle.raised(raise.term, raise.mark);
        } else {
            self.nodes[node].oracle.raise_failed(raise.term);
        }
    }

    fn allocate(&mut self, node: usize) {
        let count = if self.rng.random_ratio(1, 50) { MAX_COUNT } else { self.rng.random_range(1..100) };
        let now = self.clocks(node);
        let before = self.nodes[node].oracle.clone();
        let result = self.nodes[node].oracle.allocate(now, count);
        // The lease check: what a deposed leader computes is dropped.
        if node != self.leader {
            return;
        }
        let range = match result {
            Ok(range) => range,
            Err(OracleError::WindowUsedUp) => {
                // The caller waits and wakes the window task.
                self.waited += 1;
                self.nodes[node].next_check_ms = self.now_ms;
                return;
            }
            Err(error) => panic!("the leader refuses: {error}"),
        };
        assert!(range.first() > self.newest, "{} after {}: {before:?}", range.first(), self.newest);
        assert!(range.last < self.mark, "{} is not below the durable mark {}", range.last, self.mark);
        self.newest = range.last;
        // Some of them are for the health probes of all nodes.
        for node in &mut self.nodes {
            let is_due = node.received_ms.is_none_or(|ms| self.now_ms - ms >= PROBE_MS);
            node.received_ms = if is_due { Some(self.now_ms) } else { node.received_ms };
        }
        self.issued += u64::from(count);
        self.lead_max_ms = self.lead_max_ms.max(self.lead_ms());
    }

    /// Runs without faults for twice the lead and the bounded lag, and checks that the oracle is then at the true time.
    fn check_given_back(&mut self) {
        for node in &mut self.nodes {
            node.wall_error_ms = node.wall_error_ms.clamp(-SKEW_MS, SKEW_MS);
        }
        let (lead_ms, bursts_ms) = (self.lead_ms(), 20);
        self.run_for(2 * (lead_ms.unsigned_abs() + SKEW_MS.unsigned_abs()) + 1_000);
        let left_ms = self.lead_ms();
        assert!(left_ms.abs() <= SKEW_MS + bursts_ms, "{left_ms} ms of {lead_ms} ms are left");
    }
}

fn for_each_seed(run: impl Fn(&mut World)) {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut world = World::new(seed);
        run(&mut world);
        let World { issued, waited, lead_max_ms, .. } = world;
        println!("{issued} timestamps, {waited} waits, lead up to {lead_max_ms} ms");
        assert!(issued > 100_000, "only {issued} timestamps");
    }
}

/// The first handover adds what is left of the window, a second at most. Later ones add half a second at most, and half
/// of the time between them is given back.
#[test]
fn the_lead_of_hundreds_of_handovers_is_bounded_and_given_back() {
    for_each_seed(|world| {
        for _ in 0..HANDOVERS {
            let ms = world.rng.random_range(1_000..6_000);
            world.run_for(ms);
            world.hand_over();
        }
        let bound_ms = (WINDOW_MS + 2 * WINDOW_MIN_MS) as i64;
        assert!(world.lead_max_ms < bound_ms, "{} ms after {HANDOVERS} handovers", world.lead_max_ms);
        world.check_given_back();
    });
}

/// Wall clocks jump by an hour, forward and back, also between two handovers. Physical time keeps within half a second
/// per second of the true time, whatever they do, and returns to it.
#[test]
fn clock_jumps_of_an_hour_are_followed_slowly() {
    for_each_seed(|world| {
        for _ in 0..60 {
            let (node, jump) = (world.rng.random_range(0..NODES), world.rng.random_range(-1..=1));
            world.nodes[node].wall_error_ms = jump * HOUR_MS;
            for _ in 0..world.rng.random_range(1..5) {
                let (before_ms, lead_ms, elapsed_ms) =
                    (world.now_ms, world.lead_ms(), world.rng.random_range(1_000..10_000));
                world.run_for(elapsed_ms);
                let moved_ms = world.lead_ms() - lead_ms;
                let bound_ms = (elapsed_ms / 2 + CHECK_MS) as i64;
                assert!(moved_ms.abs() <= bound_ms, "{moved_ms} ms from {before_ms} ms in {elapsed_ms} ms");
                world.hand_over();
            }
        }
        world.check_given_back();
    });
}

/// A node restarts with a wall clock an hour ahead and is elected before it hears of a leader. It knows as little as
/// the first leader of a cluster that was down, but the other nodes have running transactions.
#[test]
fn a_restarted_node_with_a_wrong_clock_does_not_leap() {
    for_each_seed(|world| {
        world.run_for(10_000);
        let lead_ms = world.lead_ms();
        world.restart(1);
        world.nodes[1].wall_error_ms = HOUR_MS;
        world.lead(1);
        world.run_until_issued();
        world.run_for(20_000);
        let moved_ms = world.lead_ms() - lead_ms;
        assert!((0..=10_000 + 2 * WINDOW_MS as i64).contains(&moved_ms), "{moved_ms} ms in 20 s");
        world.check_given_back();
    });
}

/// All nodes were down for three days. The first leader falls before it raises the mark; the second one, which has
/// heard of it, starts at the wall clock. Later ones take over from it.
#[test]
fn days_of_downtime_are_leapt_over_by_the_second_leader_too() {
    for_each_seed(|world| {
        world.run_for(10_000);
        (0..NODES).for_each(|node| world.restart(node));
        world.now_ms += 3 * 24 * HOUR_MS.unsigned_abs();
        world.lead(0);
        world.nodes[0].oracle.stop();
        world.leader = NODES;
        world.run_for(1_000);
        world.lead(1);
        world.run_until_issued();
        assert!(world.lead_ms().abs() <= SKEW_MS + 20, "{} ms after a cold start", world.lead_ms());
        for node in &mut world.nodes {
            node.wall_error_ms = HOUR_MS;
        }
        world.hand_over();
        world.run_for(10_000);
        assert!(world.lead_ms() <= 6_000 + WINDOW_MS as i64, "{} ms after a handover", world.lead_ms());
        world.check_given_back();
    });
}

/// The first leader of a cluster that was down has a wall clock an hour ahead: it leaps to what the others have.
#[test]
fn a_cold_start_goes_by_the_clocks_of_a_majority() {
    for_each_seed(|world| {
        world.run_for(10_000);
        (0..NODES).for_each(|node| world.restart(node));
        world.now_ms += 2 * HOUR_MS.unsigned_abs();
        world.nodes[1].wall_error_ms = HOUR_MS;
        world.lead(1);
        world.run_until_issued();
        // In the meantime the time runs at one and a half times the speed.
        assert!(world.lead_ms().abs() <= 2 * SKEW_MS + 20, "{} ms after a cold start", world.lead_ms());
        world.check_given_back();
    });
}

/// The first leader of a cluster that was down has a clock that stands at the time of before, or was not set at all. It
/// finds no lag by its own clock, and starts the oracle at the time of the others. Later leaders find no lag either.
#[test]
fn a_slow_clock_of_the_first_leader_leaves_no_lag() {
    for_each_seed(|world| {
        world.may_be_silent = false;
        world.run_for(10_000);
        (0..NODES).for_each(|node| world.restart(node));
        world.now_ms += 3 * HOUR_MS.unsigned_abs();
        let slow_ms = if world.rng.random() { -3 * HOUR_MS } else { -(world.now_ms as i64) };
        world.nodes[1].wall_error_ms = slow_ms;
        world.lead(1);
        world.run_until_issued();
        assert!(world.lead_ms().abs() <= 2 * SKEW_MS + 20, "{} ms after a cold start", world.lead_ms());
        world.run_for(5_000);
        world.restart(1);
        world.lead(2);
        world.run_until_issued();
        // The slow clock has held the time back by half of five seconds.
        assert!(world.lead_ms().abs() <= 3_000 + SKEW_MS, "{} ms under the second leader", world.lead_ms());
        world.check_given_back();
    });
}

/// Two voters restart with clocks an hour ahead; the third one runs on and is slow to answer. It has transactions, so
/// the time does not leap.
#[test]
fn a_node_that_is_slow_to_answer_keeps_its_locks() {
    for_each_seed(|world| {
        world.may_be_silent = false;
        world.answer_max = leap::SURVEY_LIMIT;
        world.run_for(10_000);
        let lead_ms = world.lead_ms();
        for node in [0, 1] {
            world.restart(node);
            world.nodes[node].wall_error_ms = HOUR_MS;
        }
        world.lead(1);
        world.run_until_issued();
        let moved_ms = world.lead_ms() - lead_ms;
        assert!(moved_ms <= WINDOW_MS as i64 + SKEW_MS, "the time leaps by {moved_ms} ms");
        world.check_given_back();
    });
}

/// The oracle was down and the nodes were not. An outage of minutes is leapt over: every commit of before has failed. A
/// shorter one is caught up slowly, within a minute.
#[test]
fn an_outage_never_leaves_a_long_lag() {
    for_each_seed(|world| {
        for outage_ms in [5_000, 29_000, 40_000, 600_000] {
            world.run_for(10_000);
            world.leader = NODES;
            world.nodes.iter_mut().for_each(|node| node.oracle.stop());
            world.now_ms += outage_ms;
            world.lead(1);
            world.run_until_issued();
            let lag_ms = -world.lead_ms();
            assert!(lag_ms <= SKEW_MS + leap::LAG_MAX.as_millis() as i64, "{lag_ms} ms after {outage_ms} ms");
            if outage_ms < 30_000 {
                assert!(lag_ms >= outage_ms as i64 - 2 * WINDOW_MS as i64, "{lag_ms} ms after {outage_ms} ms");
            } else {
                assert!(lag_ms.abs() <= SKEW_MS + 20, "{lag_ms} ms after {outage_ms} ms");
            }
            world.check_given_back();
        }
    });
}
