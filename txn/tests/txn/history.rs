//! Histories of list-append transactions under injected faults, checked for strong snapshot isolation by the checker of
//! `simulator`. Planted bugs show that a history detects violations.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::common::endpoints::NoSnapshots;
use super::common::{Prefetching, VirtualTso, cluster, database, key, run, seeded, two_phase};
use bytes::Bytes;
use kv::Key;
use kv::client::Endpoint;
use kv::memory::{Faults, MemoryCluster};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simulator::checkers::Violation;
use simulator::checkers::snapshot_isolation::{Op, Outcome, Txn, check};
use tso::TsoSource;
use txn::{Database, Transaction, TxnError};

const KEYS: u64 = 5;

fn list_key(n: u64) -> Key {
    key(["a", "b", "ba", "c", "d"][n as usize % 5])
}

fn decode(value: Option<Bytes>) -> Vec<u64> {
    let text = String::from_utf8(value.unwrap_or_default().to_vec()).expect("text");
    text.split_whitespace().map(|n| n.parse().expect("a number")).collect()
}

fn encode(list: &[u64]) -> Bytes {
    Bytes::from(list.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
}

/// The logical clock, the source of elements and the history that all clients of a run share.
#[derive(Default)]
struct Recorder {
    clock: Cell<u64>,
    elements: Cell<u64>,
    history: RefCell<Vec<Txn>>,
}

impl Recorder {
    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    fn element(&self) -> u64 {
        self.elements.set(self.elements.get() + 1);
        self.elements.get()
    }
}

async fn body(txn: &mut Transaction, rng: &mut StdRng, recorder: &Recorder, ops: &mut Vec<Op>) -> Result<(), TxnError> {
    for _ in 0..rng.random_range(1..5) {
        let n = rng.random_range(0..KEYS);
        let mut list = decode(txn.get(&list_key(n)).await?);
        ops.push(Op::Read(n, list.clone()));
        if rng.random_bool(0.5) {
            let element = recorder.element();
            list.push(element);
            txn.put(list_key(n), encode(&list))?;
            ops.push(Op::Append(n, element));
        }
    }
    Ok(())
}

async fn client(db: Database, seed: u64, recorder: Rc<Recorder>) {
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..25 {
        let began = recorder.tick();
        let mut ops = Vec::new();
        let Ok(mut txn) = db.begin().await else { continue };
        let result = match body(&mut txn, &mut rng, &recorder, &mut ops).await {
            Ok(()) => {
                if rng.random_bool(0.5) {
                    txn.set_single_statement();
                }
                txn.commit().await.map(drop)
            }
            Err(error) => Err(error),
        };
        let outcome = match result {
            Ok(()) => Outcome::Committed,
            Err(TxnError::Undetermined { .. }) => Outcome::Unknown,
            Err(_) => Outcome::Aborted,
        };
        let ended = recorder.tick();
        recorder.history.borrow_mut().push(Txn { ops, outcome, began, ended });
        tokio::task::yield_now().await;
    }
}

/// Records a history of six clients on two gateways, followed by a read of every key.
async fn record(
    seed: u64,
    cluster: MemoryCluster,
    endpoint: Arc<dyn Endpoint>,
    oracles: [Arc<dyn TsoSource>; 2],
) -> Vec<Txn> {
    let recorder = Rc::new(Recorder::default());
    // Every third seed has a gateway that commits in two phases only.
    let second = if seed.is_multiple_of(3) { two_phase(seed + 1_000) } else { seeded(seed + 1_000) };
    let mut configs = [seeded(seed), second].into_iter();
    let gateways = oracles.map(|tso| database(Arc::clone(&endpoint), tso, configs.next().unwrap_or_default()));
    let clients = (0..6u64).map(|n| client(gateways[n as usize % 2].clone(), seed * 100 + n, Rc::clone(&recorder)));
    futures::future::join_all(clients).await;
    cluster.set_faults(Faults::none());
    let txn = gateways[0].begin().await.expect("a timestamp");
    let began = recorder.tick();
    let mut ops = Vec::new();
    for n in 0..KEYS {
        ops.push(Op::Read(n, decode(txn.get(&list_key(n)).await.expect("healed"))));
    }
    let ended = recorder.tick();
    recorder.history.borrow_mut().push(Txn { ops, outcome: Outcome::Committed, began, ended });
    for gateway in gateways {
        assert!(gateway.drain(Duration::from_secs(60)).await, "seed {seed}: background work does not end");
    }
    recorder.history.take()
}

fn oracles() -> [Arc<dyn TsoSource>; 2] {
    let tso = VirtualTso::new();
    [tso.clone(), tso]
}

/// `CORTADO_HISTORY_SEEDS=1000` runs that many seeds; the default is 25.
#[test]
fn histories_under_faults_are_snapshot_isolated() {
    let seeds = std::env::var("CORTADO_HISTORY_SEEDS").map_or(25, |seeds| seeds.parse().expect("a number"));
    for seed in 0..seeds {
        println!("seed {seed}");
        let faults =
            Faults { undetermined: 0.03, delay_max: Duration::from_millis(seed % 3 * 20), ..Faults::mixed(seed) };
        let history = run(async {
            let cluster = cluster(faults);
            record(seed, cluster.clone(), Arc::new(cluster), oracles()).await
        });
        let committed = history.iter().filter(|txn| txn.outcome == Outcome::Committed).count();
        assert!(committed > 30, "seed {seed}: only {committed} of {} committed", history.len());
        if let Err(Violation(error)) = check(&history) {
            panic!("seed {seed}: {error}\n{history:#?}");
        }
    }
}

/// Seeds within which a planted bug must show.
const PLANTED_SEEDS: u64 = 10;

/// Demands that the planted bug causes this violation, and that the same seed without the bug causes none. `plant`
/// makes the endpoint and the oracles of the two gateways.
fn must_find(
    violation: &str,
    plant: impl Fn(MemoryCluster, Arc<VirtualTso>) -> (Arc<dyn Endpoint>, [Arc<dyn TsoSource>; 2]),
) {
    let verdict = |seed: u64, is_planted: bool| {
        let history = run(async {
            let cluster = cluster(Faults { delay_max: Duration::from_millis(5), ..Faults::none() });
            let (endpoint, oracles) = if is_planted {
                plant(cluster.clone(), VirtualTso::new())
            } else {
                (Arc::new(cluster.clone()) as Arc<dyn Endpoint>, oracles())
            };
            record(seed, cluster, endpoint, oracles).await
        });
        check(&history)
    };
    for seed in 0..PLANTED_SEEDS {
        let Err(Violation(found)) = verdict(seed, true) else { continue };
        if !found.contains(violation) {
            continue;
        }
        if let Err(Violation(error)) = verdict(seed, false) {
            panic!("without the bug, seed {seed}: {error}");
        }
        println!("found with seed {seed}: {found}");
        return;
    }
    panic!("{PLANTED_SEEDS} seeds did not show that the planted bug causes: {violation}");
}

#[test]
fn reads_that_ignore_the_snapshot_are_detected() {
    must_find("twice, and it changed", |cluster, tso| (Arc::new(NoSnapshots(cluster)), [tso.clone(), tso]));
}

/// The second gateway begins transactions at timestamps from before their begin.
#[test]
fn prefetched_timestamps_are_detected() {
    must_find("stale: cycle", |cluster, tso| {
        let prefetching = Prefetching::new(tso.clone());
        (Arc::new(cluster), [tso, prefetching])
    });
}
