//! Services whose nodes are paused while they compute timestamps, and deposed meanwhile.
//!
//! Three nodes have a service each, on a runtime of its own with paused time. The leadership moves at random, and an
//! old leader may not notice. A node can be paused where it reads its clock, between the arrival of a request and the
//! range: another node is then elected and issues timestamps before the first one continues. Everything happens in one
//! order, drawn from a seed. In this order a range must be above everything that was acknowledged before it was
//! computed.
//!
//! The tests with planted bugs demand that this check finds them.

use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::Runtime;
use tso::oracle::ClockReading;
use tso::service::Clocks;
use tso::{Timestamp, TsoService, Window};

use super::region::{NodeWindow, Region};

const NODES: usize = 3;
const STEPS: usize = 150;

/// Builds the service of a node.
type BuildService = fn(Arc<dyn Window>, Clocks) -> TsoService;

/// Runs while a node is paused.
type Pause = Box<dyn FnOnce() + Send>;

struct Node {
    service: TsoService,
    runtime: Runtime,
    /// The pause that the next reading of the clock takes.
    pause: Arc<Mutex<Option<Pause>>>,
}

/// What all nodes share.
#[derive(Default)]
struct Shared {
    region: Arc<Region>,
    now_ms: Mutex<u64>,
    /// The newest timestamp that was acknowledged.
    acknowledged: Mutex<Timestamp>,
    /// The same, when a node last read its clock.
    at_compute: Mutex<Timestamp>,
}

impl Node {
    fn new(number: usize, shared: &Arc<Shared>, build: BuildService) -> Node {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let pause: Arc<Mutex<Option<Pause>>> = Arc::default();
        let clocks: Clocks = {
            let (shared, pause) = (Arc::clone(shared), Arc::clone(&pause));
            Arc::new(move || {
                let paused = pause.lock().take();
                if let Some(paused) = paused {
                    paused();
                }
                *shared.at_compute.lock() = *shared.acknowledged.lock();
                let now_ms = *shared.now_ms.lock();
                ClockReading { wall_ms: now_ms, mono_ms: now_ms }
            })
        };
        let window = Arc::new(NodeWindow { region: Arc::clone(&shared.region), node: number });
        let service = runtime.block_on(async { build(window, clocks) });
        Node { service, runtime, pause }
    }

    /// Requests timestamps and checks them. A node that does not lead answers nothing.
    fn allocate(&self, shared: &Shared, count: u32) -> Result<u64, String> {
        let Ok(range) = self.runtime.block_on(self.service.allocate(count)) else { return Ok(0) };
        let before = *shared.at_compute.lock();
        if range.first() <= before {
            return Err(format!("{} was computed after {before} was acknowledged", range.first()));
        }
        let mut acknowledged = shared.acknowledged.lock();
        *acknowledged = range.last.max(*acknowledged);
        Ok(u64::from(range.count))
    }
}

/// Runs one history; returns the number of timestamps and of pauses. The error is a violation.
fn run(seed: u64, build: BuildService) -> Result<(u64, u64), String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let shared = Arc::new(Shared { now_ms: Mutex::new(10_000), ..Shared::default() });
    let nodes: Vec<Arc<Node>> = (0..NODES).map(|number| Arc::new(Node::new(number, &shared, build))).collect();
    let (mut leader, mut issued, mut pauses) = (0, 0, 0);
    let elect = |node: usize| nodes[node].service.on_leader(shared.region.elect(node));
    elect(leader);
    for _ in 0..STEPS {
        *shared.now_ms.lock() += rng.random_range(0..200);
        let count = rng.random_range(1..50);
        let next = (leader + rng.random_range(1..NODES)) % NODES;
        match rng.random_range(0..10) {
            0..7 => issued += nodes[rng.random_range(0..NODES)].allocate(&shared, count)?,
            7..9 => {
                if rng.random_bool(0.5) {
                    nodes[leader].service.on_step_down();
                }
                elect(next);
                leader = next;
            }
            _ => {
                // The leader has a window, so that its next reading of the clock computes a range.
                issued += nodes[leader].allocate(&shared, 1)?;
                let (node, during) = (Arc::clone(&nodes[next]), Arc::clone(&shared));
                *nodes[leader].pause.lock() = Some(Box::new(move || {
                    node.service.on_leader(during.region.elect(next));
                    // A runtime cannot be entered from within another one on the same thread.
                    let result = std::thread::scope(|scope| scope.spawn(|| node.allocate(&during, 5)).join());
                    assert!(matches!(result, Ok(Ok(5))), "the new leader serves: {result:?}");
                }));
                pauses += 1;
                issued += nodes[leader].allocate(&shared, count)?;
                leader = next;
            }
        }
    }
    Ok((issued, pauses))
}

#[test]
fn a_paused_node_issues_nothing_below_its_successor() {
    let (mut issued, mut pauses) = (0, 0);
    for seed in 0..20 {
        let (more, paused) =
            run(seed, |window, clocks| TsoService::new(window, clocks, None)).unwrap_or_else(|violation| {
                panic!("seed {seed}: {violation}");
            });
        (issued, pauses) = (issued + more, pauses + paused);
    }
    assert!(issued > 10_000 && pauses > 100, "{issued} timestamps, {pauses} pauses");
}

#[cfg(feature = "planted-bugs")]
mod planted {
    //! The check must find each bug planted in the service within a bounded number of seeds.

    use tso::TsoService;
    use tso::service::PlantedBug;

    use super::{BuildService, run};

    /// Seeds within which a bug must be found.
    const SEEDS: u64 = 5;

    fn must_find(what: &str, build: BuildService) {
        for seed in 0..SEEDS {
            if let Err(violation) = run(seed, build) {
                assert!(violation.contains("was computed after"), "{what}, seed {seed}: {violation}");
                println!("{what} found with seed {seed}: {violation}");
                return;
            }
        }
        panic!("{what} was not found by {SEEDS} seeds");
    }

    #[test]
    fn a_lease_checked_before_the_computation() {
        must_find("LeaseCheckedBeforeCompute", |window, clocks| {
            TsoService::with_planted_bug(window, clocks, PlantedBug::LeaseCheckedBeforeCompute)
        });
    }

    #[test]
    fn a_lease_that_is_not_checked() {
        must_find("LeaseNotChecked", |window, clocks| {
            TsoService::with_planted_bug(window, clocks, PlantedBug::LeaseNotChecked)
        });
    }
}
