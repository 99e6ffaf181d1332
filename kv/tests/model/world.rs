//! Coordinators, their mailbox, and a store that may have a bug planted in it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use engine::store::memory::MemoryStore;
use engine::store::{Reader, Store};
use engine::{Cf, WriteBatch};
use kv::Key;
use kv::api::{
    CheckTxnStatusRequest, KeyError, LockInfo, Mutation, MutationOp, PrewriteRequest, RequestBody, Response, TxnStatus,
};
use kv::error::ActionError;
use kv::mvcc::{LockRecord, WriteKind, WriteRecord, reader};
use kv::percolator;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tso::Timestamp;

/// Transactions of one history, and how many of them run at a time.
const TXNS: usize = 24;
const LIVE_MAX: usize = 5;
const KEYS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"eeeeeeee", b"eeeeeeeef"];

/// A bug to plant: what an action does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Prewrite does not see commits above its start_ts.
    BlindPrewrite,
    /// Reads do not see locks.
    BlindRead,
    /// Prewrite does not see rollback records.
    ForgetRollbacks,
}

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
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Reading,
    /// Groups of mutations that are not acknowledged.
    Prewriting(BTreeSet<usize>),
    CommittingPrimary(Timestamp),
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
    retries: u32,
}

/// Why a message was sent, for whoever gets the answer.
#[derive(Clone, Debug)]
enum Purpose {
    Prewrite(usize),
    CommitPrimary,
    CommitSecondary,
    Rollback,
    Check(LockInfo),
    Resolve,
}

#[derive(Clone)]
struct Message {
    txn: usize,
    purpose: Purpose,
    body: RequestBody,
}

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) txns: Vec<Txn>,
    pub(crate) stats: Stats,
    pub(crate) last_ts: Timestamp,
    rng: StdRng,
    plant: Option<Plant>,
    mailbox: Vec<Message>,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Option<Plant>) -> World {
        World {
            store: MemoryStore::new(),
            txns: Vec::new(),
            stats: Stats::default(),
            last_ts: Timestamp::new(1_000, 0),
            rng: StdRng::seed_from_u64(seed),
            plant,
            mailbox: Vec::new(),
        }
    }

    pub(crate) fn keys() -> Vec<Key> {
        KEYS.iter().map(|key| Key::from_static(key)).collect()
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        for _ in 0..20_000 {
            let live: Vec<usize> = (0..self.txns.len()).filter(|i| !self.is_over(*i)).collect();
            if live.is_empty() && self.mailbox.is_empty() && self.txns.len() == TXNS {
                return Ok(());
            }
            if self.txns.len() < TXNS && live.len() < LIVE_MAX && self.rng.random_bool(0.3) {
                self.begin();
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

    fn is_over(&self, txn: usize) -> bool {
        matches!(self.txns[txn].phase, Phase::Committed(_) | Phase::Aborted | Phase::Dead)
    }

    fn begin(&mut self) {
        let start_ts = self.next_ts();
        let mut keys = World::keys();
        let mut writes = BTreeMap::new();
        let n = self.txns.len();
        for _ in 0..self.rng.random_range(1..4) {
            let key = keys.swap_remove(self.rng.random_range(0..keys.len()));
            let size = if self.rng.random_bool(0.2) { 300 } else { 0 };
            let value = Bytes::from(format!("{n:0>size$}"));
            let op = match self.rng.random_range(0..20) {
                0..12 => MutationOp::Put(value),
                12..15 => MutationOp::Delete,
                15..17 => MutationOp::Insert(value),
                17..19 => MutationOp::Lock,
                // The primary must leave a record.
                _ if writes.is_empty() => MutationOp::Delete,
                _ => MutationOp::CheckNotExists,
            };
            writes.insert(key, op);
        }
        let locking: Vec<&Key> =
            writes.iter().filter(|(_, op)| **op != MutationOp::CheckNotExists).map(|(key, _)| key).collect();
        let primary = Key::clone(locking.choose(&mut self.rng).unwrap());
        let to_read = (0..self.rng.random_range(0..4)).map(|_| Key::from_static(KEYS[self.rng.random_range(0..6)]));
        let to_read = to_read.collect();
        let ttl_ms = self.rng.random_range(5..60);
        let phase = Phase::Reading;
        self.txns.push(Txn { start_ts, to_read, reads: Vec::new(), writes, primary, ttl_ms, phase, retries: 0 });
    }

    /// A coordinator does something of its own accord.
    fn advance(&mut self, txn: usize) -> Result<(), String> {
        if self.rng.random_bool(0.02) {
            self.txns[txn].phase = Phase::Dead;
            self.stats.dead += 1;
            return Ok(());
        }
        match self.txns[txn].phase.clone() {
            Phase::Reading if self.txns[txn].to_read.is_empty() => self.send_prewrites(txn),
            Phase::Reading => self.read(txn)?,
            Phase::Prewriting(_) if self.rng.random_bool(0.03) => self.abort(txn),
            _ => (),
        }
        Ok(())
    }

    fn read(&mut self, txn: usize) -> Result<(), String> {
        let Txn { start_ts, .. } = self.txns[txn];
        let Some(key) = self.txns[txn].to_read.pop() else { return Ok(()) };
        let store = match self.plant {
            Some(Plant::BlindRead) => self.without(|cf, _, _| cf == Cf::Lock),
            _ => self.store.clone(),
        };
        match reader::get(&store.snapshot(), &key, start_ts) {
            Ok(value) => self.txns[txn].reads.push((key, value)),
            Err(ActionError::Key(KeyError::Locked(locks))) => {
                self.stats.locked += 1;
                self.txns[txn].to_read.push(key);
                self.ask_about(txn, locks);
            }
            Err(error) => return Err(format!("a read failed: {error}")),
        }
        Ok(())
    }

    fn send_prewrites(&mut self, txn: usize) {
        let groups = self.txns[txn].writes.len();
        // All in one request, or each key in one of its own, as if in a region of its own.
        let together = self.rng.random_bool(0.3);
        let groups: BTreeSet<usize> = if together { BTreeSet::from([usize::MAX]) } else { (0..groups).collect() };
        self.txns[txn].phase = Phase::Prewriting(groups.clone());
        for group in groups {
            self.send_prewrite(txn, group);
        }
    }

    fn send_prewrite(&mut self, txn: usize, group: usize) {
        let Txn { start_ts, ttl_ms, .. } = self.txns[txn];
        let all = self.txns[txn].writes.iter().enumerate();
        let group_of = all.filter(|(i, _)| group == usize::MAX || *i == group);
        let mutations = group_of.map(|(_, (key, op))| Mutation { key: key.clone(), op: op.clone() }).collect();
        let primary = self.txns[txn].primary.clone();
        let body = RequestBody::Prewrite(PrewriteRequest { mutations, primary, start_ts, ttl_ms });
        self.send(txn, Purpose::Prewrite(group), body);
    }

    fn abort(&mut self, txn: usize) {
        self.txns[txn].phase = Phase::Aborted;
        self.stats.aborted += 1;
        let start_ts = self.txns[txn].start_ts;
        for key in self.locking_keys(txn) {
            self.send(txn, Purpose::Rollback, RequestBody::Rollback { keys: vec![key], start_ts });
        }
    }

    fn locking_keys(&self, txn: usize) -> Vec<Key> {
        let writes = self.txns[txn].writes.iter();
        writes.filter(|(_, op)| **op != MutationOp::CheckNotExists).map(|(key, _)| key.clone()).collect()
    }

    fn ask_about(&mut self, txn: usize, locks: Vec<LockInfo>) {
        for lock in locks {
            let current_ts = self.next_ts();
            let expired = lock.start_ts.physical_ms() + lock.ttl_ms < current_ts.physical_ms();
            let body = RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
                primary: lock.primary.clone(),
                lock_ts: lock.start_ts,
                current_ts,
                rollback_if_missing: expired,
            });
            self.send(txn, Purpose::Check(lock), body);
        }
    }

    fn send(&mut self, txn: usize, purpose: Purpose, body: RequestBody) {
        self.mailbox.push(Message { txn, purpose, body });
    }

    /// Some message arrives, perhaps not for the last time, perhaps without an answer.
    fn deliver(&mut self) -> Result<(), String> {
        let at = self.rng.random_range(0..self.mailbox.len());
        let message = self.mailbox.swap_remove(at);
        if self.rng.random_bool(0.15) {
            self.stats.duplicates += 1;
            self.mailbox.push(message.clone());
        }
        if self.rng.random_bool(0.05) {
            // Lost on the way; whoever sent it tries again.
            self.mailbox.push(message);
            return Ok(());
        }
        let result = self.execute(&message)?;
        if self.rng.random_bool(0.05) {
            self.mailbox.push(message);
            return Ok(());
        }
        self.answer(&message, result)
    }

    fn execute(&mut self, message: &Message) -> Result<Result<Response, KeyError>, String> {
        let store = match (&message.body, self.plant) {
            (RequestBody::Prewrite(request), Some(Plant::BlindPrewrite)) => {
                let above = |key: &[u8]| Key::from_versioned(key).unwrap().1 > request.start_ts;
                self.without(|cf, key, _| cf == Cf::Write && above(key))
            }
            (RequestBody::Prewrite(_), Some(Plant::ForgetRollbacks)) => self.without(|cf, _, value| {
                cf == Cf::Write && WriteRecord::decode(value).unwrap().kind == WriteKind::Rollback
            }),
            _ => self.store.clone(),
        };
        match percolator::evaluate(&store.snapshot(), &message.body) {
            Ok((batch, response)) => {
                self.stats.echoes += u64::from(matches!(message.purpose, Purpose::Prewrite(_)) && batch.is_empty());
                self.stats.expired += u64::from(matches!(message.purpose, Purpose::Check(_)) && !batch.is_empty());
                self.store.write(&batch).map_err(|error| error.to_string())?;
                Ok(Ok(response))
            }
            Err(ActionError::Key(error)) => Ok(Err(error)),
            Err(error) => Err(format!("{:?}: {error}", message.body)),
        }
    }

    fn answer(&mut self, message: &Message, result: Result<Response, KeyError>) -> Result<(), String> {
        let txn = message.txn;
        let start_ts = self.txns[txn].start_ts;
        match (&message.purpose, &self.txns[txn].phase.clone()) {
            (Purpose::Prewrite(group), Phase::Prewriting(left)) if left.contains(group) => {
                self.prewritten(txn, *group, result);
            }
            (Purpose::Prewrite(_), _) => {
                self.stats.late_prewrites += u64::from(matches!(result, Err(KeyError::RolledBack { .. })));
            }
            (Purpose::CommitPrimary, Phase::CommittingPrimary(commit_ts)) => match result {
                Ok(_) => {
                    self.txns[txn].phase = Phase::Committed(*commit_ts);
                    self.stats.committed += 1;
                    let primary = self.txns[txn].primary.clone();
                    for key in self.locking_keys(txn).into_iter().filter(|key| *key != primary) {
                        let body = RequestBody::Commit { keys: vec![key], start_ts, commit_ts: *commit_ts };
                        self.send(txn, Purpose::CommitSecondary, body);
                    }
                }
                Err(KeyError::RolledBack { .. } | KeyError::LockNotFound { .. }) => self.abort(txn),
                Err(error) => return Err(format!("commit of a primary: {error}")),
            },
            (Purpose::CommitSecondary, _) => {
                result.map_err(|error| format!("commit of a secondary: {error}"))?;
            }
            (Purpose::Check(lock), phase) if *phase != Phase::Dead => {
                let fate = match result {
                    Ok(Response::Status(TxnStatus::Committed { commit_ts })) => Some(commit_ts),
                    Ok(Response::Status(TxnStatus::RolledBack)) => None,
                    _ => return Ok(()),
                };
                let keys = vec![lock.key.clone()];
                let body = RequestBody::ResolveLock { keys, start_ts: lock.start_ts, commit_ts: fate };
                self.send(txn, Purpose::Resolve, body);
            }
            _ => (),
        }
        Ok(())
    }

    fn prewritten(&mut self, txn: usize, group: usize, result: Result<Response, KeyError>) {
        match result {
            Ok(_) => {
                let Phase::Prewriting(left) = &mut self.txns[txn].phase else { return };
                left.remove(&group);
                if left.is_empty() {
                    let commit_ts = self.next_ts();
                    self.txns[txn].phase = Phase::CommittingPrimary(commit_ts);
                    let Txn { start_ts, ref primary, .. } = self.txns[txn];
                    let body = RequestBody::Commit { keys: vec![primary.clone()], start_ts, commit_ts };
                    self.send(txn, Purpose::CommitPrimary, body);
                }
            }
            Err(KeyError::Locked(locks)) => {
                self.stats.locked += 1;
                self.txns[txn].retries += 1;
                if self.txns[txn].retries > 20 {
                    return self.abort(txn);
                }
                self.ask_about(txn, locks);
                self.send_prewrite(txn, group);
            }
            Err(error) => {
                self.stats.conflicts += u64::from(matches!(error, KeyError::WriteConflict { .. }));
                self.abort(txn);
            }
        }
    }

    /// A copy of the store without some rows: what a planted bug does not see.
    fn without(&self, hidden: impl Fn(Cf, &[u8], &[u8]) -> bool) -> MemoryStore {
        let mut batch = WriteBatch::new();
        for (cf, key, value) in rows(&self.store) {
            if !hidden(cf, &key, &value) {
                batch.put(cf, &key, &value);
            }
        }
        let copy = MemoryStore::new();
        copy.write(&batch).unwrap();
        copy
    }

    /// Resolves every lock that is left, as readers would in time.
    pub(crate) fn resolve_all(&mut self) -> Result<(), String> {
        for (cf, key, value) in rows(&self.store) {
            if cf != Cf::Lock {
                continue;
            }
            let lock = LockRecord::decode(&value).map_err(|error| error.to_string())?;
            let key = Key::from_storage(&key).map_err(|error| error.to_string())?;
            let check = RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
                primary: lock.primary,
                lock_ts: lock.start_ts,
                current_ts: Timestamp::MAX,
                rollback_if_missing: true,
            });
            let commit_ts = match self.evaluate(&check)? {
                Response::Status(TxnStatus::Committed { commit_ts }) => Some(commit_ts),
                Response::Status(TxnStatus::RolledBack) => None,
                other => return Err(format!("the last resort left a transaction {other:?}")),
            };
            self.evaluate(&RequestBody::ResolveLock { keys: vec![key], start_ts: lock.start_ts, commit_ts })?;
        }
        Ok(())
    }

    pub(crate) fn evaluate(&mut self, body: &RequestBody) -> Result<Response, String> {
        let (batch, response) =
            percolator::evaluate(&self.store.snapshot(), body).map_err(|error| format!("{body:?}: {error}"))?;
        self.store.write(&batch).map_err(|error| error.to_string())?;
        Ok(response)
    }
}

/// All rows of the store.
pub(crate) fn rows(store: &MemoryStore) -> Vec<(Cf, Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot();
    let mut rows = Vec::new();
    for cf in Cf::DATA {
        let mut cursor = snapshot.cursor(cf, b"", b"").unwrap();
        let mut found = cursor.seek_to_first().unwrap();
        while found {
            rows.push((cf, cursor.key().to_vec(), cursor.value().to_vec()));
            found = cursor.next().unwrap();
        }
    }
    rows
}
