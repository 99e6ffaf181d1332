//! The simulated world: transactions, the mailbox that carries their requests, and the clock. `coordinator.rs` has the
//! behaviour of coordinators.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use engine::{Cf, WriteBatch};
use kv::Key;
use kv::api::{CheckTxnStatusRequest, KeyError, MutationOp, RequestBody, Response, TxnStatus};
use kv::mvcc::shared::lock_of_row;
use kv::mvcc::{LockRecord, LockRow};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tso::Timestamp;

use super::planted::{ModelStore, PlantedBug, rows};

/// The number of transactions in a history.
const TXNS: usize = 24;
/// The most transactions that run at a time.
const LIVE_MAX: usize = 5;
const KEYS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"eeeeeeee", b"eeeeeeeef"];

/// How often each event happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) committed: u64,
    pub(crate) aborted: u64,
    pub(crate) dead: u64,
    pub(crate) conflicts: u64,
    pub(crate) locked: u64,
    pub(crate) late_prewrites: u64,
    pub(crate) echoes: u64,
    pub(crate) expired: u64,
    pub(crate) duplicates: u64,
    pub(crate) heartbeats: u64,
    pub(crate) commits_together: u64,
    pub(crate) resolves_together: u64,
    pub(crate) too_early: u64,
    pub(crate) overlaps: u64,
    /// Commits with shared locks.
    pub(crate) shared: u64,
}

impl Stats {
    pub(crate) fn add(&mut self, other: &Stats) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.dead += other.dead;
        self.conflicts += other.conflicts;
        self.locked += other.locked;
        self.late_prewrites += other.late_prewrites;
        self.echoes += other.echoes;
        self.expired += other.expired;
        self.duplicates += other.duplicates;
        self.heartbeats += other.heartbeats;
        self.commits_together += other.commits_together;
        self.resolves_together += other.resolves_together;
        self.too_early += other.too_early;
        self.overlaps += other.overlaps;
        self.shared += other.shared;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Reading,
    /// The groups of mutations that are not acknowledged yet.
    Prewriting(BTreeSet<usize>),
    /// The commit_ts requested, and the keys in the primary's request.
    CommittingPrimary(Timestamp, Vec<Key>),
    Committed(Timestamp),
    Aborted,
    Dead,
}

pub(crate) struct Txn {
    pub(crate) start_ts: Timestamp,
    pub(crate) to_read: Vec<Key>,
    pub(crate) reads: Vec<(Key, Option<Bytes>)>,
    pub(crate) writes: BTreeMap<Key, MutationOp>,
    pub(crate) primary: Key,
    pub(crate) ttl_ms: u64,
    pub(crate) phase: Phase,
    pub(crate) retries: u32,
}

impl Txn {
    pub(crate) fn locking_keys(&self) -> Vec<Key> {
        let locking = self.writes.iter().filter(|(_, op)| **op != MutationOp::CheckNotExists);
        locking.map(|(key, _)| key.clone()).collect()
    }

    /// Of these, those that it does not share, and those that it shares.
    pub(crate) fn exclusive_keys(&self) -> Vec<Key> {
        self.writes.iter().filter(|(_, op)| op.is_exclusive()).map(|(key, _)| key.clone()).collect()
    }

    pub(crate) fn shared_keys(&self) -> Vec<Key> {
        let shared = self.writes.iter().filter(|(_, op)| matches!(op, MutationOp::Shared(_)));
        shared.map(|(key, _)| key.clone()).collect()
    }
}

/// The purpose of a message, which says how to handle the response.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    Prewrite(usize),
    Heartbeat,
    CommitPrimary(Timestamp),
    CommitSecondaries,
    Rollback,
    /// A status check of the transaction that locked these keys.
    Check(Timestamp, Vec<Key>),
    Resolve,
}

#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) txn: usize,
    pub(crate) purpose: Purpose,
    pub(crate) body: RequestBody,
}

pub(crate) struct World {
    pub(crate) store: ModelStore,
    pub(crate) txns: Vec<Txn>,
    pub(crate) stats: Stats,
    pub(crate) rng: StdRng,
    last_ts: Timestamp,
    /// The commit timestamps taken, with their transactions. A later transaction may start at one of them.
    commit_timestamps: Vec<(Timestamp, usize)>,
    mailbox: Vec<Message>,
}

impl World {
    pub(crate) fn new(seed: u64, bug: Option<PlantedBug>) -> World {
        World {
            store: ModelStore::new(bug),
            txns: Vec::new(),
            stats: Stats::default(),
            rng: StdRng::seed_from_u64(seed),
            last_ts: Timestamp::new(1_000, 0),
            commit_timestamps: Vec::new(),
            mailbox: Vec::new(),
        }
    }

    pub(crate) fn keys() -> Vec<Key> {
        KEYS.iter().map(|key| Key::from_static(key)).collect()
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        for _ in 0..20_000 {
            let live: Vec<usize> = (0..self.txns.len()).filter(|i| !self.has_ended(*i)).collect();
            if live.is_empty() && self.mailbox.is_empty() && self.txns.len() == TXNS {
                self.stats.overlaps = self.store.overlaps;
                return Ok(());
            }
            if self.txns.len() < TXNS && live.len() < LIVE_MAX && self.rng.random_bool(0.3) {
                self.begin();
            } else if self.rng.random_bool(0.02) {
                self.push_min_commit_ts()?;
            } else if !self.mailbox.is_empty() && self.rng.random_bool(0.7) {
                self.deliver()?;
            } else if let Some(txn) = live.choose(&mut self.rng) {
                self.advance(*txn)?;
            }
        }
        Err("the history does not end".to_owned())
    }

    pub(crate) fn next_ts(&mut self) -> Timestamp {
        let ms = self.last_ts.physical_ms() + self.rng.random_range(0..3);
        let counter = if ms == self.last_ts.physical_ms() { self.last_ts.counter() + 1 } else { 0 };
        self.last_ts = Timestamp::new(ms, counter);
        self.last_ts
    }

    /// Milliseconds since the start of a transaction, by the oracle's clock.
    pub(crate) fn age_ms(&self, txn: usize) -> u64 {
        self.last_ts.physical_ms() - self.txns[txn].start_ts.physical_ms()
    }

    /// A start_ts: a new timestamp, or the commit_ts of another transaction, which is then returned too.
    pub(crate) fn start_ts(&mut self) -> (Timestamp, Option<usize>) {
        if self.rng.random_bool(0.3)
            && let Some((commit_ts, txn)) = self.commit_timestamps.pop()
        {
            return (commit_ts, Some(txn));
        }
        (self.next_ts(), None)
    }

    /// A new commit_ts.
    pub(crate) fn commit_ts(&mut self, txn: usize) -> Timestamp {
        let commit_ts = self.next_ts();
        self.commit_timestamps.push((commit_ts, txn));
        commit_ts
    }

    fn has_ended(&self, txn: usize) -> bool {
        matches!(self.txns[txn].phase, Phase::Committed(_) | Phase::Aborted | Phase::Dead)
    }

    /// Raises the min_commit_ts of a random primary lock, as a reader would.
    fn push_min_commit_ts(&mut self) -> Result<(), String> {
        let mut primaries = Vec::new();
        for (cf, key, value) in rows(&self.store.store) {
            if cf == Cf::Lock && matches!(LockRow::of(&key), Ok(LockRow::Lock(_))) {
                let lock = LockRecord::decode(&value).map_err(|error| error.to_string())?;
                primaries.extend((lock.primary.to_storage() == key).then_some((key, lock)));
            }
        }
        let Some((key, lock)) = primaries.choose(&mut self.rng).cloned() else { return Ok(()) };
        let min_commit_ts = self.next_ts();
        let mut batch = WriteBatch::new();
        batch.put(Cf::Lock, &key, &LockRecord { min_commit_ts, ..lock }.encode());
        self.store.write(&batch)
    }

    pub(crate) fn send(&mut self, txn: usize, purpose: Purpose, body: RequestBody) {
        self.mailbox.push(Message { txn, purpose, body });
    }

    /// Delivers a random message. It may be duplicated or lost, and its response may be lost.
    fn deliver(&mut self) -> Result<(), String> {
        let at = self.rng.random_range(0..self.mailbox.len());
        let message = self.mailbox.swap_remove(at);
        if self.rng.random_bool(0.15) {
            self.stats.duplicates += 1;
            self.mailbox.push(message.clone());
        }
        if self.rng.random_bool(0.05) {
            // The request is lost; its sender retries.
            self.mailbox.push(message);
            return Ok(());
        }
        let result = self.execute(&message)?;
        if self.rng.random_bool(0.05) {
            self.mailbox.push(message);
            return Ok(());
        }
        self.on_response(&message, result)
    }

    fn execute(&mut self, message: &Message) -> Result<Result<Response, KeyError>, String> {
        let (result, changed) = self.store.execute(&message.body)?;
        match &message.purpose {
            Purpose::Prewrite(_) => self.stats.echoes += u64::from(result.is_ok() && !changed),
            Purpose::Check(..) => self.stats.expired += u64::from(changed),
            _ => (),
        }
        Ok(result)
    }

    /// Resolves every remaining lock, as readers would in time.
    pub(crate) fn resolve_all(&mut self) -> Result<(), String> {
        for (cf, key, value) in rows(&self.store.store) {
            if cf != Cf::Lock {
                continue;
            }
            let lock = lock_of_row(&key, &value).map_err(|error| error.to_string())?;
            let Some(lock) = lock else { continue };
            let check = RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
                primary: lock.primary,
                lock_ts: lock.start_ts,
                current_ts: Timestamp::MAX,
                rollback_if_missing: true,
                reader_ts: Timestamp::ZERO,
                fell_back: false,
            });
            let commit_ts = match self.evaluate(&check)? {
                Response::Status(TxnStatus::Committed { commit_ts }) => Some(commit_ts),
                Response::Status(TxnStatus::RolledBack) => None,
                other => return Err(format!("a status check after the end left a transaction {other:?}")),
            };
            self.evaluate(&RequestBody::ResolveLock { keys: vec![lock.key], start_ts: lock.start_ts, commit_ts })?;
        }
        Ok(())
    }

    pub(crate) fn evaluate(&mut self, body: &RequestBody) -> Result<Response, String> {
        let (result, _) = self.store.execute(body)?;
        result.map_err(|error| format!("{body:?}: {error}"))
    }
}
