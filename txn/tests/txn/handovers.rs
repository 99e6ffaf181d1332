//! Handovers of the oracle while transactions run. Each moves the oracle's time forward by what is left of its window,
//! and locks expire by that time. A lock lives its whole ttl from its prewrite or heartbeat on, whatever came before.
//!
//! The oracles are real ones (`tso::oracle`), on the paused clock.

use std::sync::Arc;
use std::time::Duration;

use super::common::endpoints::{FaultyEndpoint, RequestFault};
use super::common::{cluster, database, key, run, seeded, two_phase, value};
use futures::future::BoxFuture;
use kv::api::RequestBody;
use kv::memory::Faults;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tso::oracle::{ClockReading, Oracle};
use tso::{LeaderTerm, Timestamp, TsRange, TsoError, TsoSource};
use txn::{Database, Transaction, TxnConfig, TxnError};

/// By how much a lock's life may be shorter than its ttl: times are rounded to milliseconds.
const TOLERANCE_MS: u64 = 3;

/// Two oracles that lead in turns. Raises of the mark take no time.
struct OraclePair {
    started: Instant,
    state: Mutex<PairState>,
}

struct PairState {
    oracles: [Oracle; 2],
    term: LeaderTerm,
    mark: Timestamp,
    /// How far the wall clocks are from the true time.
    wall_error_ms: i64,
}

impl OraclePair {
    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    fn new() -> Arc<OraclePair> {
        let oracles = [Oracle::new(), Oracle::new()];
        let state = PairState { oracles, term: LeaderTerm(0), mark: Timestamp::ZERO, wall_error_ms: 0 };
        let pair = Arc::new(OraclePair { started: Instant::now(), state: Mutex::new(state) });
        pair.hand_over();
        pair
    }

    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    fn clocks(&self, state: &PairState) -> ClockReading {
        let mono_ms = self.started.elapsed().as_millis() as u64;
        ClockReading { wall_ms: (1_000_000_000 + mono_ms).saturating_add_signed(state.wall_error_ms), mono_ms }
    }

    /// The other oracle leads, at once.
    fn hand_over(&self) {
        let mut state = self.state.lock();
        state.oracle().stop();
        state.term = LeaderTerm(state.term.0 + 1);
        let (term, mark, now) = (state.term, state.mark, self.clocks(&state));
        state.oracle().start(term, mark, now, None);
        state.keep_window(now);
    }

    /// All wall clocks jump.
    fn jump(&self, wall_error_ms: i64) {
        self.state.lock().wall_error_ms = wall_error_ms;
    }

    /// What the window task does several times a second. Returns the oracle's time.
    fn tick(&self) -> u64 {
        let mut state = self.state.lock();
        let now = self.clocks(&state);
        state.keep_window(now);
        let offset_ms = state.oracle().offset_ms(now).expect("it leads");
        now.wall_ms.saturating_add_signed(offset_ms)
    }
}

impl PairState {
    fn oracle(&mut self) -> &mut Oracle {
        &mut self.oracles[self.term.0 as usize % 2]
    }

    fn keep_window(&mut self, now: ClockReading) {
        if let Some(mark) = self.oracle().extend(now) {
            self.mark = mark;
            let term = self.term;
            self.oracle().raised(term, mark);
        }
    }
}

impl TsoSource for OraclePair {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        let mut state = self.state.lock();
        let now = self.clocks(&state);
        state.keep_window(now);
        let range = state.oracle().allocate(now, count).expect("the window is never used up");
        Box::pin(std::future::ready(Ok(range)))
    }
}

/// Sleeps `ms` while the window is kept and the clocks do what `rng` says: handovers, and jumps of an hour.
async fn pass(oracles: &OraclePair, rng: &mut StdRng, ms: u64, handovers: usize) {
    let mut due: Vec<u64> = (0..handovers).map(|_| rng.random_range(0..ms)).collect();
    due.sort_unstable();
    for step in 0..ms / 100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        while due.first().is_some_and(|at| *at < (step + 1) * 100) {
            due.remove(0);
            oracles.hand_over();
            oracles.jump(rng.random_range(-1..=1) * 3_600_000);
        }
        oracles.tick();
    }
}

/// A database whose prewrites and heartbeats must give the lock its whole life, from the moment of their delivery.
fn checked(oracles: &Arc<OraclePair>, seed: u64, commit_delay: Duration) -> Database {
    let (source, lock_ttl) = (Arc::clone(oracles), TxnConfig::default().lock_ttl.as_millis() as u64);
    let check = move |body: &RequestBody, _| {
        let (start_ts, ttl_ms) = match body {
            RequestBody::Prewrite(prewrite) => (prewrite.start_ts, prewrite.ttl_ms),
            RequestBody::Heartbeat { start_ts, ttl_ms, .. } => (*start_ts, *ttl_ms),
            RequestBody::Commit { .. } => return RequestFault::Late(commit_delay),
            _ => return RequestFault::Pass,
        };
        let (expires_ms, now_ms) = (start_ts.physical_ms() + ttl_ms, source.tick());
        assert!(
            expires_ms + TOLERANCE_MS >= now_ms + lock_ttl,
            "seed {seed}: a lock that expires at {expires_ms} is written at {now_ms}"
        );
        RequestFault::Pass
    };
    let endpoint = FaultyEndpoint::new(&cluster(Faults::none()), check);
    database(endpoint, oracles.clone(), seeded(seed))
}

async fn put(db: &Database, oracles: &OraclePair, rng: &mut StdRng, handovers: usize) -> Result<(), TxnError> {
    let mut txn = db.begin().await?;
    for at in ["a", "b", "c"] {
        txn.put(key(at), value("new"))?;
    }
    // Others on the node may see some of the handovers.
    let seen = rng.random_range(0..=handovers);
    pass(oracles, rng, 2_000, seen).await;
    if rng.random_bool(0.5) {
        drop(db.begin().await?);
    }
    pass(oracles, rng, 2_000, handovers - seen).await;
    txn.commit().await.map(drop)
}

/// The node sees no timestamp, or few, between the begin and the commit.
#[test]
fn a_lock_written_after_handovers_lives_its_whole_ttl() {
    for seed in 0..40 {
        run(async {
            let mut rng = StdRng::seed_from_u64(seed);
            let oracles = OraclePair::new();
            let db = checked(&oracles, seed, Duration::ZERO);
            let handovers = rng.random_range(0..8);
            put(&db, &oracles, &mut rng, handovers).await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(db.drain(Duration::from_secs(60)).await);
        });
    }
}

/// Handovers during a slow commit: the next heartbeat gives the lock its whole ttl again.
#[test]
fn heartbeats_follow_the_oracle_over_handovers() {
    for seed in 0..20 {
        run(async {
            let mut rng = StdRng::seed_from_u64(seed);
            let oracles = OraclePair::new();
            let db = checked(&oracles, seed, Duration::from_secs(12));
            let mut during = StdRng::seed_from_u64(seed + 1_000);
            let handovers = rng.random_range(0..4);
            let passed = async {
                tokio::time::sleep(Duration::from_secs(4)).await;
                pass(&oracles, &mut during, 10_000, 5).await;
            };
            let (outcome, ()) = tokio::join!(put(&db, &oracles, &mut rng, handovers), passed);
            outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(db.drain(Duration::from_secs(60)).await);
        });
    }
}

/// A writer whose commits are slow, a reader on another node, and the oracles that both ask.
struct Meeting {
    seed: u64,
    oracles: Arc<OraclePair>,
    writer: Database,
    reader: Database,
}

impl Meeting {
    fn new(seed: u64) -> Meeting {
        let oracles = OraclePair::new();
        let cluster = cluster(Faults::none());
        let slow = |body: &RequestBody, _| match body {
            RequestBody::Commit { .. } => RequestFault::Late(Duration::from_millis(500)),
            _ => RequestFault::Pass,
        };
        let writer = database(FaultyEndpoint::new(&cluster, slow), oracles.clone(), two_phase(seed));
        let reader = database(Arc::new(cluster), oracles.clone(), seeded(seed + 1_000));
        Meeting { seed, oracles, writer, reader }
    }

    /// A transaction that will write "a".
    async fn begin(&self) -> Transaction {
        let mut txn = self.writer.begin().await.expect("a timestamp");
        txn.put(key("a"), value("new")).expect("small");
        txn
    }

    /// A reader that begins now meets the lock, finds its transaction alive and passes it.
    async fn reader_passes(&self, commit: JoinHandle<Result<Option<Timestamp>, TxnError>>) {
        let seed = self.seed;
        let snapshot = self.reader.begin().await.expect("a timestamp");
        let seen = snapshot.get(&key("a")).await.expect("it passes");
        let commit_ts = commit.await.expect("no panic");
        let commit_ts = commit_ts.unwrap_or_else(|error| panic!("seed {seed}: the reader rolled it back: {error}"));
        assert!(commit_ts > Some(snapshot.start_ts()), "seed {seed}: the commit_ts is below the reader's snapshot");
        assert_eq!((seen, snapshot.get(&key("a")).await), (None, Ok(None)), "seed {seed}: the snapshot changed");
    }
}

/// A reader that meets the lock of a transaction which began before several handovers passes it. The lock was born
/// dead when its ttl counted the time of the node instead of the oracle's.
#[test]
fn a_transaction_from_before_handovers_is_not_rolled_back() {
    run(async {
        let meeting = Meeting::new(1);
        let txn = meeting.begin().await;
        for _ in 0..4 {
            meeting.oracles.hand_over();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let commit = tokio::spawn(txn.commit());
        tokio::time::sleep(Duration::from_millis(100)).await;
        meeting.reader_passes(commit).await;
    });
}

/// Handovers between the prewrite and the commit take a part of the lock's life, and a reader that meets the lock
/// passes it. The window of the oracle was as long as the life of a lock: one handover could end it.
#[test]
fn a_lock_outlives_two_handovers_in_quick_succession() {
    for seed in 0..20 {
        run(async {
            let mut rng = StdRng::seed_from_u64(seed);
            let meeting = Meeting::new(seed);
            // Any part of the window may be left.
            let before_ms = rng.random_range(100..5_000);
            pass(&meeting.oracles, &mut rng, before_ms, 0).await;
            let commit = tokio::spawn(meeting.begin().await.commit());
            tokio::time::sleep(Duration::from_millis(rng.random_range(1..300))).await;
            for _ in 0..rng.random_range(1..=2) {
                meeting.oracles.hand_over();
            }
            meeting.reader_passes(commit).await;
        });
    }
}
