//! The write path of two servers under random faults: latches and fences keep every write off a snapshot that misses an
//! earlier one, and computed commit_ts keep off every read that could miss them.
//!
//! A few clients run transactions over a few keys through [`KvServer::handle`]: in one phase, asynchronously or in two
//! phases. They repeat what was undetermined, give up, and drop requests under way. Others read, and pass or resolve
//! the locks that they meet. The region applies proposals late, loses replies and proposals, and changes its leader.
//! Everything is drawn from a seed, which a failure names. The following must hold:
//!
//! 1. A transaction whose prewrite was acknowledged finds its locks when it commits.
//! 2. At the end no lock is left, and each key has at most one commit record or rollback mark of a transaction.
//! 3. Two committed transactions that wrote the same key do not overlap in time: no lost update.
//! 4. What was read at a timestamp is what the final data shows there.
//!
//! `planted.rs` plants bugs in the server and demands the violation that each must cause.

#[cfg(feature = "planted-bugs")]
mod planted;
mod readers;
mod region;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use engine::Cf;
use engine::store::{Reader, Store};
use futures::FutureExt;
use kv::Key;
use kv::api::{
    CheckLocksRequest, CommitBounds, CommitMode, KeyError, LocksStatus, Mutation, MutationOp, PrewriteRequest, Request,
    RequestBody, Response, ServerError,
};
use kv::key::split_ts;
use kv::memory::CountingTso;
use kv::mvcc::mark::is_mark;
use kv::mvcc::{LockRecord, WriteRecord, reader};
use kv::server::{KvServer, KvServerConfig};
use prometheus::Registry;
use raftstore::StoreId;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::LocalSet;
use tso::Timestamp;

use region::ModelRegion;

const CLIENTS: u64 = 6;
/// Transactions of a client.
const TXNS: usize = 8;
const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];
/// The most steps of a run.
const STEPS: usize = 50_000;

/// How often each event happened.
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    committed: u64,
    one_phase: u64,
    async_locked: u64,
    /// Attempts of one phase or with the async flag that locked for two phases.
    fallbacks: u64,
    reads: u64,
    /// Locks that a read passed.
    passed: u64,
    /// Locks of finished transactions that a read resolved.
    resolved: u64,
    rolled_back: u64,
    undetermined: u64,
    fenced: u64,
    dropped: u64,
    lost_replies: u64,
    terms: u64,
}

impl Stats {
    fn add(&mut self, other: &Stats) {
        self.committed += other.committed;
        self.one_phase += other.one_phase;
        self.async_locked += other.async_locked;
        self.fallbacks += other.fallbacks;
        self.reads += other.reads;
        self.passed += other.passed;
        self.resolved += other.resolved;
        self.rolled_back += other.rolled_back;
        self.undetermined += other.undetermined;
        self.fenced += other.fenced;
        self.dropped += other.dropped;
        self.lost_replies += other.lost_replies;
        self.terms += other.terms;
    }
}

/// What the clients share.
struct World {
    /// Of stores 1 and 2.
    servers: [KvServer<ModelRegion>; 2],
    region: ModelRegion,
    oracle: Arc<CountingTso>,
    stats: RefCell<Stats>,
    /// The acknowledged commits: key, start_ts, commit_ts.
    commits: RefCell<Vec<(Key, Timestamp, Timestamp)>>,
    /// What was read: timestamp, key, value.
    reads: RefCell<Vec<(Timestamp, Key, Option<Bytes>)>>,
    violation: RefCell<Option<String>>,
}

impl World {
    fn timestamp(&self) -> Timestamp {
        self.oracle.next()
    }

    fn server(&self) -> &KvServer<ModelRegion> {
        &self.servers[usize::from(self.region.leader() != StoreId::new(1))]
    }

    fn report(&self, violation: String) {
        self.violation.borrow_mut().get_or_insert(violation);
    }

    /// Sends a write until its outcome is known. `None` if the client stops asking, or drops the request.
    async fn send(&self, rng: &mut StdRng, body: &RequestBody, give_up: f64) -> Option<Result<Response, KeyError>> {
        loop {
            let request = Request { context: self.region.context(), body: body.clone() };
            let call = self.server().handle(request);
            let result = if rng.random_bool(give_up) {
                let patience = async {
                    for _ in 0..rng.random_range(0..4) {
                        tokio::task::yield_now().await;
                    }
                };
                futures::select_biased! {
                    result = Box::pin(call).fuse() => result,
                    () = Box::pin(patience).fuse() => {
                        self.stats.borrow_mut().dropped += 1;
                        return None;
                    }
                }
            } else {
                call.await
            };
            match result {
                Ok(response) => return Some(Ok(response)),
                Err(ServerError::Key(error)) => return Some(Err(error)),
                Err(ServerError::Undetermined(_)) => {
                    self.stats.borrow_mut().undetermined += 1;
                    if rng.random_bool(give_up) {
                        return None;
                    }
                }
                // Refused for now: a fence, or a term that has ended.
                Err(ServerError::Region(_)) => self.stats.borrow_mut().fenced += 1,
                Err(error) => {
                    self.report(format!("a write fails: {error}"));
                    return None;
                }
            }
            tokio::task::yield_now().await;
        }
    }

    async fn transaction(&self, rng: &mut StdRng) {
        let start_ts = self.timestamp();
        let mut keys: Vec<Key> = KEYS.iter().map(|key| Key::from_static(key)).collect();
        keys.swap_remove(rng.random_range(0..keys.len()));
        keys.truncate(rng.random_range(1..=2));
        let value = Bytes::from(start_ts.raw().to_string());
        let put = |key: &Key| Mutation::new(key.clone(), MutationOp::Put(value.clone()));
        let bounds = CommitBounds { least: start_ts, greatest: Timestamp::MAX };
        let commit = match rng.random_range(0..4) {
            0 => CommitMode::TwoPhase,
            1 => CommitMode::Async { bounds, secondaries: keys[1..].to_vec() },
            _ => CommitMode::OnePhase(bounds),
        };
        let is_computed = commit != CommitMode::TwoPhase;
        let is_async = matches!(commit, CommitMode::Async { .. });
        let prewrite = RequestBody::Prewrite(PrewriteRequest {
            mutations: keys.iter().map(put).collect(),
            primary: keys[0].clone(),
            start_ts,
            ttl_ms: 1_000,
            commit,
            locker: None,
        });
        let outcome = self.send(rng, &prewrite, 0.2).await;
        let count = |event: fn(&mut Stats)| event(&mut self.stats.borrow_mut());
        match outcome {
            // A reader found all locks and committed a part of them, before a repeated request.
            Some(Ok(Response::Committed { commit_ts })) if is_async => {
                self.commit_at(rng, keys, start_ts, commit_ts).await;
            }
            Some(Ok(Response::Committed { commit_ts })) => {
                count(|stats| stats.one_phase += 1);
                self.record_commit(keys, start_ts, commit_ts);
            }
            Some(Ok(Response::AsyncLocked { min_commit_ts })) => {
                count(|stats| stats.async_locked += 1);
                self.commit_at(rng, keys, start_ts, min_commit_ts).await;
            }
            Some(Ok(_)) if rng.random_bool(0.9) => {
                if is_computed {
                    count(|stats| stats.fallbacks += 1);
                }
                self.commit(rng, keys, start_ts).await;
            }
            _ => self.roll_back(rng, keys, start_ts, is_async).await,
        }
    }

    fn record_commit(&self, keys: Vec<Key>, start_ts: Timestamp, commit_ts: Timestamp) {
        self.commits.borrow_mut().extend(keys.into_iter().map(|key| (key, start_ts, commit_ts)));
    }

    /// Commits at a timestamp of the oracle. A reader may push the transaction above it.
    async fn commit(&self, rng: &mut StdRng, keys: Vec<Key>, start_ts: Timestamp) {
        let mut commit_ts = self.timestamp();
        loop {
            let body = RequestBody::Commit { keys: keys.clone(), start_ts, commit_ts };
            match self.send(rng, &body, 0.0).await {
                Some(Err(KeyError::CommitTsTooEarly { .. })) => commit_ts = self.timestamp(),
                Some(Ok(_)) => return self.record_committed(keys, start_ts, commit_ts),
                Some(Err(error)) => return self.report(format!("a prewritten lock of {start_ts} is lost: {error}")),
                None => return,
            }
        }
    }

    fn record_committed(&self, keys: Vec<Key>, start_ts: Timestamp, commit_ts: Timestamp) {
        self.stats.borrow_mut().committed += 1;
        self.record_commit(keys, start_ts, commit_ts);
    }

    async fn commit_at(&self, rng: &mut StdRng, keys: Vec<Key>, start_ts: Timestamp, commit_ts: Timestamp) {
        let body = RequestBody::Commit { keys: keys.clone(), start_ts, commit_ts };
        match self.send(rng, &body, 0.0).await {
            Some(Ok(_)) => self.record_committed(keys, start_ts, commit_ts),
            Some(Err(error)) => self.report(format!("a prewritten lock of {start_ts} is lost: {error}")),
            None => {}
        }
    }

    /// Ends a transaction whose prewrite failed or was not answered. It may have committed.
    async fn roll_back(&self, rng: &mut StdRng, keys: Vec<Key>, start_ts: Timestamp, is_async: bool) {
        if is_async {
            let check = CheckLocksRequest {
                keys: keys.clone(),
                lock_ts: start_ts,
                reader_ts: Timestamp::ZERO,
                mark_missing: true,
            };
            let settled = self.send(rng, &RequestBody::CheckLocks(check), 0.0).await;
            if let Some(Ok(Response::Locks(LocksStatus::Locked { min_commit_ts: commit_ts }))) = settled {
                return self.commit_at(rng, keys, start_ts, commit_ts).await;
            }
        }
        match self.send(rng, &RequestBody::Rollback { keys: keys.clone(), start_ts }, 0.0).await {
            Some(Ok(_)) => self.stats.borrow_mut().rolled_back += 1,
            // A reader may have committed a part of its locks.
            Some(Err(KeyError::Committed { commit_ts, .. })) => self.commit_at(rng, keys, start_ts, commit_ts).await,
            Some(Err(error)) => self.report(format!("the rollback of {start_ts} fails: {error}")),
            None => {}
        }
    }

    fn rows(&self, cf: Cf) -> Vec<(Vec<u8>, Vec<u8>)> {
        let snapshot = self.region.data.snapshot();
        let mut cursor = snapshot.cursor(cf, b"", b"").unwrap();
        let mut rows = Vec::new();
        let mut found = cursor.seek_to_first().unwrap();
        while found {
            rows.push((cursor.key().to_vec(), cursor.value().to_vec()));
            found = cursor.next().unwrap();
        }
        rows
    }

    /// Checks the store after all transactions have ended.
    fn check_end(&self) -> Result<(), String> {
        if let Some((_, lock)) = self.rows(Cf::Lock).first() {
            let lock = LockRecord::decode(lock).map_err(|error| error.to_string())?;
            return Err(format!("a lock of {} outlives its transaction", lock.start_ts));
        }
        let mut records = BTreeSet::new();
        for (row, value) in self.rows(Cf::Write) {
            let (key, commit_ts) = split_ts(&row).map_err(|error| error.to_string())?;
            let start_ts = WriteRecord::decode(&value).map_err(|error| error.to_string())?.start_ts;
            let key = Key::from_storage(key).map_err(|error| error.to_string())?;
            if !self.commits.borrow().contains(&(key.clone(), start_ts, commit_ts)) {
                return Err(format!("nobody committed {start_ts}"));
            }
            if !records.insert((key, start_ts)) {
                return Err(format!("two commits of {start_ts} on one key"));
            }
        }
        for (row, value) in self.rows(Cf::Default) {
            let (key, start_ts) = split_ts(&row).map_err(|error| error.to_string())?;
            let key = Key::from_storage(key).map_err(|error| error.to_string())?;
            if is_mark(&value).map_err(|error| error.to_string())? && records.contains(&(key, start_ts)) {
                return Err(format!("{start_ts} is committed and rolled back on one key"));
            }
        }
        let snapshot = self.region.data.snapshot();
        for (read_ts, key, seen) in self.reads.borrow().iter() {
            let now = reader::get(&snapshot, key, *read_ts, &[]).map_err(|error| error.to_string())?;
            if now != *seen {
                return Err(format!("the read of {key:?} at {read_ts} saw {seen:?}, but there is {now:?}"));
            }
        }
        let mut intervals: BTreeMap<Key, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
        for (key, start_ts, commit_ts) in self.commits.borrow().iter() {
            if !records.contains(&(key.clone(), *start_ts)) {
                return Err(format!("the commit of {start_ts} is lost"));
            }
            intervals.entry(key.clone()).or_default().push((*commit_ts, *start_ts));
        }
        for intervals in intervals.values_mut() {
            intervals.sort_unstable();
            if let Some(pair) = intervals.windows(2).find(|pair| pair[1].1 < pair[0].0) {
                return Err(format!("lost update: {} began before the commit at {}", pair[1].1, pair[0].0));
            }
        }
        Ok(())
    }
}

/// Lets the clients run, while the region applies and loses what they propose, until all have ended.
async fn drive(world: &World, rng: &mut StdRng, ended: &Cell<u64>) -> Result<(), String> {
    let mut stalled_until = 0;
    for step in 0..STEPS {
        if ended.get() == CLIENTS && world.region.pending() == 0 {
            return Ok(());
        }
        if let Some(violation) = world.violation.take() {
            return Err(violation);
        }
        for _ in 0..rng.random_range(0..3) {
            tokio::task::yield_now().await;
        }
        let pending = world.region.pending();
        match rng.random_range(0..100) {
            0..40 if step >= stalled_until => world.region.apply_next(),
            // What nobody waits for is often what is late.
            40..50 if pending > 0 => {
                world.region.lose_reply(rng.random_range(0..pending));
                world.stats.borrow_mut().lost_replies += 1;
                stalled_until = step + rng.random_range(0..20);
            }
            50..53 => {
                world.region.elect(StoreId::new(rng.random_range(1..=2)), rng.random_range(0..=pending));
                world.stats.borrow_mut().terms += 1;
            }
            _ => tokio::task::yield_now().await,
        }
    }
    Err("the history does not end".to_owned())
}

/// Runs one history. The error is a violation.
fn run(seed: u64, config: &KvServerConfig) -> Result<Stats, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let region = ModelRegion::new();
    let oracle = Arc::new(CountingTso::new(1));
    let servers = [1, 2].map(|store| {
        let region = region.on(StoreId::new(store));
        KvServer::new(region, oracle.clone(), config, &Registry::new()).unwrap()
    });
    let world = Rc::new(World {
        servers,
        region,
        oracle,
        stats: RefCell::default(),
        commits: RefCell::default(),
        reads: RefCell::default(),
        violation: RefCell::default(),
    });
    let mut rng = StdRng::seed_from_u64(seed);
    LocalSet::new().block_on(&runtime, async {
        let ended = Rc::new(Cell::new(0));
        for client in 0..CLIENTS {
            let (world, ended) = (Rc::clone(&world), Rc::clone(&ended));
            let mut rng = StdRng::seed_from_u64(seed * 1_000 + client);
            tokio::task::spawn_local(async move {
                for _ in 0..TXNS {
                    if rng.random_bool(0.4) {
                        world.read(&mut rng).await;
                    }
                    world.transaction(&mut rng).await;
                }
                ended.set(ended.get() + 1);
            });
        }
        drive(&world, &mut rng, &ended).await?;
        world.check_end()
    })?;
    Ok(*world.stats.borrow())
}

/// `CORTADO_MODEL_SEEDS=10000` runs that many seeds; the default is 60.
#[test]
fn writes_see_every_earlier_write_of_their_keys() {
    let seeds = std::env::var("CORTADO_MODEL_SEEDS").map_or(60, |seeds| seeds.parse().unwrap());
    let mut total = Stats::default();
    for seed in 0..seeds {
        let stats = run(seed, &KvServerConfig::default()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        total.add(&stats);
    }
    println!("{total:?}");
    assert!(total.one_phase > 200 && total.async_locked > 80 && total.fallbacks > 100, "{total:?}");
    assert!(total.reads > 800 && total.passed > 80 && total.resolved > 200, "{total:?}");
    assert!(total.committed > 500 && total.rolled_back > 1_000 && total.undetermined > 500, "{total:?}");
    assert!(total.fenced > 500 && total.dropped > 300 && total.terms > 200 && total.lost_replies > 500, "{total:?}");
}
