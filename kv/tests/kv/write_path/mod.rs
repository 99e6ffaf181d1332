//! The write path of a server under random faults: latches and fences keep every write off a snapshot that misses an
//! earlier one.
//!
//! A few clients run transactions over a few keys through [`KvServer::handle`]: prewrite, commit or rollback. They
//! repeat what was undetermined, give up, and drop requests under way. The region applies proposals late, loses replies
//! and proposals, and changes its term. Everything is drawn from a seed, which a failure names. No transaction touches
//! another's locks, so the following must hold:
//!
//! 1. A transaction whose prewrite was acknowledged finds its locks when it commits.
//! 2. At the end no lock is left, and each key has at most one commit record or rollback mark of a transaction.
//! 3. Two committed transactions that wrote the same key do not overlap in time: no lost update.
//!
//! `planted.rs` plants bugs in the server and demands the violation that each must cause.

#[cfg(feature = "planted-bugs")]
mod planted;
mod region;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bytes::Bytes;
use engine::Cf;
use engine::store::{Reader, Store};
use futures::FutureExt;
use kv::Key;
use kv::api::{KeyError, Mutation, MutationOp, PrewriteRequest, Request, RequestBody, Response, ServerError};
use kv::key::split_ts;
use kv::mvcc::mark::is_mark;
use kv::mvcc::{LockRecord, WriteRecord};
use kv::server::{KvServer, KvServerConfig};
use prometheus::Registry;
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
    server: KvServer<ModelRegion>,
    region: ModelRegion,
    last_ms: Cell<u64>,
    stats: RefCell<Stats>,
    /// The acknowledged commits: key, start_ts, commit_ts.
    commits: RefCell<Vec<(Key, Timestamp, Timestamp)>>,
    violation: RefCell<Option<String>>,
}

impl World {
    fn timestamp(&self) -> Timestamp {
        self.last_ms.set(self.last_ms.get() + 1);
        Timestamp::new(self.last_ms.get(), 0)
    }

    fn report(&self, violation: String) {
        self.violation.borrow_mut().get_or_insert(violation);
    }

    /// Sends a write until its outcome is known. `None` if the client stops asking, or drops the request.
    async fn send(&self, rng: &mut StdRng, body: &RequestBody, give_up: f64) -> Option<Result<Response, KeyError>> {
        loop {
            let request = Request { context: self.region.context(), body: body.clone() };
            let call = self.server.handle(request);
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
        let put = |key: &Key| Mutation { key: key.clone(), op: MutationOp::Put(Bytes::from_static(b"v")) };
        let prewrite = RequestBody::Prewrite(PrewriteRequest {
            mutations: keys.iter().map(put).collect(),
            primary: keys[0].clone(),
            start_ts,
            ttl_ms: 1_000,
        });
        match self.send(rng, &prewrite, 0.2).await {
            Some(Ok(_)) if rng.random_bool(0.9) => self.commit(rng, keys, start_ts).await,
            _ => self.roll_back(rng, keys, start_ts).await,
        }
    }

    async fn commit(&self, rng: &mut StdRng, keys: Vec<Key>, start_ts: Timestamp) {
        let commit_ts = self.timestamp();
        let body = RequestBody::Commit { keys: keys.clone(), start_ts, commit_ts };
        match self.send(rng, &body, 0.0).await {
            Some(Ok(_)) => {
                self.stats.borrow_mut().committed += 1;
                self.commits.borrow_mut().extend(keys.into_iter().map(|key| (key, start_ts, commit_ts)));
            }
            Some(Err(error)) => self.report(format!("a prewritten lock of {start_ts} is lost: {error}")),
            None => {}
        }
    }

    async fn roll_back(&self, rng: &mut StdRng, keys: Vec<Key>, start_ts: Timestamp) {
        match self.send(rng, &RequestBody::Rollback { keys, start_ts }, 0.0).await {
            Some(Ok(_)) => self.stats.borrow_mut().rolled_back += 1,
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
                world.region.elect(rng.random_range(0..=pending));
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
    let server = KvServer::new(region.clone(), config, &Registry::new()).unwrap();
    let world = Rc::new(World {
        server,
        region,
        last_ms: Cell::new(1_000),
        stats: RefCell::default(),
        commits: RefCell::default(),
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

#[test]
fn writes_see_every_earlier_write_of_their_keys() {
    let mut total = Stats::default();
    for seed in 0..60 {
        let stats = run(seed, &KvServerConfig::default()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        total.add(&stats);
    }
    println!("{total:?}");
    assert!(total.committed > 500 && total.rolled_back > 1_000 && total.undetermined > 500, "{total:?}");
    assert!(total.fenced > 500 && total.dropped > 300 && total.terms > 200 && total.lost_replies > 500, "{total:?}");
}
