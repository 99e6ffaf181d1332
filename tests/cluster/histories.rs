//! Histories of lists, at both levels, while a leader is killed and comes back: what each level promises holds, and
//! what it allows is found.
//!
//! Clients at all gateways read some of a few lists and append to others, in transactions. Two checkers look at the
//! histories, our own and one of others ([`simulator::checkers::independent`]).
//!
//! - REPEATABLE READ is strong snapshot isolation. Write skew (G2-item) is found: otherwise the transactions
//!   would hardly have met, and the checkers would have seen nothing. The history also fits the timestamps that
//!   sessions name: `cortado.last_read` the snapshot, `cortado.session_token` the commit.
//! - READ COMMITTED has no dirty, aborted or intermediate reads. A transaction of several snapshots (G-single) is
//!   found.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simulator::checkers::independent::{self, Model};
use simulator::checkers::replay::{self, Time, Times};
use simulator::checkers::snapshot_isolation::{self, Op, Outcome, Txn};
use tokio_postgres::{Client, Error, IsolationLevel, SimpleQueryMessage};
use tso::Timestamp;

use crate::clients::{connect, is_transient};
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::lists::{self, is_refused};
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT};

const CLIENTS: u64 = 6;
/// Lists that are in use at a time, and elements after which the next ones are.
const OPEN: u64 = 4;
const ELEMENTS_EACH: u64 = 80;
/// Commits in each phase: before the kill, while a node is down, after it has come back.
const COMMITS: u64 = 150;
/// Transactions of a REPEATABLE READ history whose commit_ts is known, at least.
const REPLAYED_MIN: usize = 100;

/// What the clients of a table know.
struct Record {
    level: IsolationLevel,
    /// Positions in the order of events.
    clock: AtomicU64,
    elements: AtomicU64,
    commits: AtomicU64,
    /// The transactions, with the timestamps of some.
    history: Mutex<Vec<(Txn, Option<Stamps>)>>,
}

/// The timestamps that a session names: of its snapshot, and of its commit.
#[derive(Clone, Copy)]
struct Stamps {
    read: Time,
    commit: Option<Time>,
}

impl Record {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn list(&self, rng: &mut StdRng) -> u64 {
        self.elements.load(Ordering::SeqCst) / ELEMENTS_EACH * OPEN + rng.random_range(0..OPEN)
    }

    /// Waits until more transactions have committed.
    async fn wait_for_commits(&self, more: u64) {
        let (deadline, target) = (Instant::now() + WAIT_TIMEOUT, self.commits.load(Ordering::SeqCst) + more);
        while self.commits.load(Ordering::SeqCst) < target {
            assert!(Instant::now() < deadline, "the clients make no progress");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// A client through the gateway at `port`. It reconnects after an error.
async fn run(record: Arc<Record>, port: u16, seed: u64, stop: Arc<AtomicBool>) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            if let Err(error) = transact(&record, &mut client, &mut rng).await {
                assert!(is_transient(&error), "a client through port {port}: {error:?}");
            }
        }
    }
}

/// One transaction: looks at three lists, appends to two or to none, and looks again.
async fn transact(record: &Record, client: &mut Client, rng: &mut StdRng) -> Result<(), Error> {
    let began = record.tick();
    let (mut ops, mut read) = (Vec::new(), None);
    let writes = rng.random_bool(0.7);
    let work = async {
        let txn = client.build_transaction().isolation_level(record.level).start().await?;
        for _ in 0..3 {
            ops.push(lists::look(&txn, record.list(rng)).await?);
        }
        if matches!(record.level, IsolationLevel::RepeatableRead) {
            read = last_read(&txn.simple_query("SHOW cortado.last_read").await?);
        }
        // In the order of their ids, so that nobody waits in a circle.
        let mut targets = [record.list(rng), record.list(rng)];
        targets.sort_unstable();
        for list in targets.into_iter().filter(|_| writes) {
            let element = record.elements.fetch_add(1, Ordering::SeqCst) + 1;
            ops.push(Op::Append(list, element));
            lists::add(&txn, list, element).await?;
        }
        ops.push(lists::look(&txn, record.list(rng)).await?);
        Ok(txn)
    };
    let ended: Result<(), (Error, Outcome)> = match work.await {
        Ok(txn) => txn.commit().await.map_err(|error| {
            let outcome = if is_refused(&error) || !writes { Outcome::Aborted } else { Outcome::Unknown };
            (error, outcome)
        }),
        Err(error) => Err((error, Outcome::Aborted)),
    };
    let (outcome, error) = match ended {
        Ok(()) => (Outcome::Committed, None),
        Err((error, outcome)) => (outcome, Some(error)),
    };
    let ended = record.tick();
    let mut stamps = None;
    if outcome == Outcome::Committed {
        record.commits.fetch_add(1, Ordering::SeqCst);
        let token = if writes { client.simple_query("SHOW cortado.session_token").await.ok() } else { None };
        let commit = token.and_then(|shown| token_time(&shown));
        stamps = read.map(|read| Stamps { read, commit });
    }
    record.history.lock().unwrap().push((Txn { ops, outcome, began, ended }, stamps));
    error.map_or(Ok(()), Err)
}

/// The value that a SHOW has answered.
fn shown(messages: &[SimpleQueryMessage]) -> &str {
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    row.expect("a value")
}

/// The snapshot in `cortado.last_read`.
fn last_read(messages: &[SimpleQueryMessage]) -> Option<Time> {
    let text = shown(messages).split("start_ts=").nth(1)?.split(' ').next()?;
    let (physical, logical) = text.split_once('.')?;
    Some(Time(Timestamp::new(physical.parse().ok()?, logical.parse().ok()?).raw()))
}

/// The timestamp in `cortado.session_token`.
fn token_time(messages: &[SimpleQueryMessage]) -> Option<Time> {
    let digits = shown(messages).strip_prefix("c1.")?.get(..16)?;
    u64::from_str_radix(digits, 16).ok().map(Time)
}

/// Runs the clients through a kill. Returns the history, ended by a read of every list, and what is known of its
/// timestamps.
async fn record(level: IsolationLevel) -> (Vec<Txn>, Vec<Times>) {
    let seed: u64 = std::env::var("CORTADO_TEST_SEED").ok().map_or_else(rand::random, |s| s.parse().unwrap());
    println!("seed {seed} (repeat the clients' choices with CORTADO_TEST_SEED={seed})");
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start(&lock, 3).await;
    lists::create(&cluster.connect(0).await).await;
    let (clock, elements, commits) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
    let record = Arc::new(Record { level, clock, elements, commits, history: Mutex::default() });
    let stop = Arc::new(AtomicBool::new(false));
    let client = |n: u64| {
        let port = cluster.nodes[n as usize % 3].pg;
        tokio::spawn(run(Arc::clone(&record), port, seed.wrapping_add(n), Arc::clone(&stop)))
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    record.wait_for_commits(COMMITS).await;
    let victim = cluster.leader_of(2);
    cluster.kill(victim);
    record.wait_for_commits(COMMITS).await;
    cluster.spawn(victim);
    cluster.wait_until_serving(victim).await;
    record.wait_for_commits(COMMITS).await;
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    let began = record.tick();
    let ops = lists::all(&cluster.connect(victim).await).await;
    let last = Txn { ops, outcome: Outcome::Committed, began, ended: record.tick() };
    let recorded = std::mem::take(&mut *record.history.lock().unwrap());
    let stamps = |(txn, (_, stamps)): (usize, &(Txn, Option<Stamps>))| {
        stamps.map(|Stamps { read, commit }| Times { txn, read, commit })
    };
    let times = recorded.iter().enumerate().filter_map(stamps).collect();
    let history: Vec<Txn> = recorded.into_iter().map(|(txn, _)| txn).chain([last]).collect();
    let count = |outcome| history.iter().filter(|txn| txn.outcome == outcome).count();
    let counts = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown].map(count);
    println!("transactions committed, aborted, unknown: {counts:?}");
    (history, times)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeatable_read_is_snapshot_isolation_with_write_skew() {
    let (history, times) = record(IsolationLevel::RepeatableRead).await;
    snapshot_isolation::check(&history).unwrap();
    independent::check(&history, Model::StrongSnapshotIsolation).unwrap();
    replay::check(&history, &times).unwrap();
    let replayed = times.iter().filter(|times| times.commit.is_some()).count();
    assert!(replayed >= REPLAYED_MIN, "{replayed} commits were replayed");
    assert_eq!(independent::anomalies(&history, Model::Serializable), ["G2-item"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_committed_has_several_snapshots_and_no_dirty_reads() {
    let (history, _) = record(IsolationLevel::ReadCommitted).await;
    independent::check(&history, Model::ReadCommitted).unwrap();
    let found = independent::anomalies(&history, Model::SnapshotIsolation);
    println!("{found:?}");
    assert!(found.iter().any(|name| name == "G-single-item"), "{found:?}");
    snapshot_isolation::check(&history).unwrap_err();
}
