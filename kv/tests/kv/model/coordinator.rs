//! The behaviour of coordinators: read, prewrite, send heartbeats, commit, abort, and resolve other transactions'
//! locks.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use engine::store::Store;
use kv::Key;
use kv::api::{
    CheckTxnStatusRequest, KeyError, LockInfo, LockMode, Mutation, MutationOp, PrewriteRequest, RequestBody, Response,
    TxnStatus,
};
use kv::error::ActionError;
use kv::mvcc::reader;
use rand::Rng;
use rand::seq::IndexedRandom;
use tso::Timestamp;

use super::world::{Message, Phase, Purpose, Txn, World};

/// The locks that transactions share.
const SHARED: [LockMode; 3] = [LockMode::KeyShare, LockMode::Share, LockMode::NoKeyUpdate];
/// The group number of all mutations in one request.
const ALL_MUTATIONS: usize = usize::MAX;

impl World {
    /// Starts a transaction with random reads and writes.
    pub(crate) fn begin(&mut self) {
        let (start_ts, same_ts) = self.start_ts();
        let mut keys = World::keys();
        if let Some(other) = same_ts {
            // The records of the two transactions coincide only on keys that both write.
            keys.retain(|key| self.txns[other].writes.contains_key(key));
        }
        let mut writes = BTreeMap::new();
        let n = self.txns.len();
        for _ in 0..self.rng.random_range(1..4).min(keys.len()) {
            let key = keys.swap_remove(self.rng.random_range(0..keys.len()));
            let size = if self.rng.random_bool(0.2) { 300 } else { 0 };
            let value = Bytes::from(format!("{n:0>size$}"));
            let op = match self.rng.random_range(0..24) {
                0..12 => MutationOp::Put(value),
                12..15 => MutationOp::Delete,
                15..17 => MutationOp::Insert(value),
                17..19 => MutationOp::Lock,
                // The primary must leave a record.
                _ if writes.is_empty() => MutationOp::Delete,
                19 => MutationOp::CheckNotExists,
                _ => MutationOp::Shared(*SHARED.choose(&mut self.rng).unwrap()),
            };
            writes.insert(key, op);
        }
        let exclusive: Vec<&Key> = writes.iter().filter(|(_, op)| op.is_exclusive()).map(|(key, _)| key).collect();
        let primary = Key::clone(exclusive.choose(&mut self.rng).unwrap());
        let keys = World::keys();
        let to_read = (0..self.rng.random_range(0..4)).map(|_| keys[self.rng.random_range(0..6)].clone()).collect();
        let ttl_ms = self.rng.random_range(5..60);
        let phase = Phase::Reading;
        self.txns.push(Txn { start_ts, to_read, reads: Vec::new(), writes, primary, ttl_ms, phase, retries: 0 });
        // Its rollback and the other transaction's commit are then under way at the same time.
        if same_ts.is_some() && self.rng.random_bool(0.5) {
            self.send_prewrites(n);
            self.abort(n);
        }
    }

    /// Lets a coordinator take its next step.
    pub(crate) fn advance(&mut self, txn: usize) -> Result<(), String> {
        if self.rng.random_bool(0.02) {
            self.txns[txn].phase = Phase::Dead;
            self.stats.dead += 1;
            return Ok(());
        }
        match self.txns[txn].phase.clone() {
            Phase::Reading if self.txns[txn].to_read.is_empty() => self.send_prewrites(txn),
            Phase::Reading => self.read(txn)?,
            Phase::Prewriting(_) if self.rng.random_bool(0.05) => self.abort(txn),
            Phase::Prewriting(_) | Phase::CommittingPrimary(..) if self.rng.random_bool(0.2) => {
                self.send_heartbeat(txn);
            }
            _ => (),
        }
        Ok(())
    }

    fn read(&mut self, txn: usize) -> Result<(), String> {
        let Txn { start_ts, .. } = self.txns[txn];
        let Some(key) = self.txns[txn].to_read.pop() else { return Ok(()) };
        match reader::get(&self.store.read_view().snapshot(), &key, start_ts, &[]) {
            Ok(value) => self.txns[txn].reads.push((key, value)),
            Err(ActionError::Key(KeyError::Locked(locks))) => {
                self.stats.locked += 1;
                self.txns[txn].to_read.push(key);
                self.check_owners(txn, locks);
            }
            Err(error) => return Err(format!("a read failed: {error}")),
        }
        Ok(())
    }

    fn send_prewrites(&mut self, txn: usize) {
        let groups = self.txns[txn].writes.len();
        // Either all mutations in one request, or one request per key, as if each key were in its own region.
        let together = self.rng.random_bool(0.3);
        let groups: BTreeSet<usize> = if together { BTreeSet::from([ALL_MUTATIONS]) } else { (0..groups).collect() };
        self.txns[txn].phase = Phase::Prewriting(groups.clone());
        for group in groups {
            self.send_prewrite(txn, group);
        }
    }

    fn send_prewrite(&mut self, txn: usize, group: usize) {
        let Txn { start_ts, ttl_ms, .. } = self.txns[txn];
        let all = self.txns[txn].writes.iter().enumerate();
        let group_of = all.filter(|(i, _)| group == ALL_MUTATIONS || *i == group);
        let mutations = group_of.map(|(_, (key, op))| Mutation::new(key.clone(), op.clone())).collect();
        let primary = self.txns[txn].primary.clone();
        let body = RequestBody::Prewrite(PrewriteRequest {
            mutations,
            primary,
            start_ts,
            ttl_ms,
            commit: kv::api::CommitMode::TwoPhase,
            locker: None,
        });
        self.send(txn, Purpose::Prewrite(group), body);
    }

    fn send_heartbeat(&mut self, txn: usize) {
        let ttl_ms = self.age_ms(txn) + self.rng.random_range(5..60);
        let Txn { start_ts, ref primary, .. } = self.txns[txn];
        let body = RequestBody::Heartbeat { primary: primary.clone(), start_ts, ttl_ms };
        self.send(txn, Purpose::Heartbeat, body);
    }

    fn abort(&mut self, txn: usize) {
        self.txns[txn].phase = Phase::Aborted;
        self.stats.aborted += 1;
        let start_ts = self.txns[txn].start_ts;
        for keys in self.grouped(self.txns[txn].locking_keys()) {
            self.send(txn, Purpose::Rollback, RequestBody::Rollback { keys, start_ts });
        }
    }

    /// Either all keys in one request, or one request per key.
    fn grouped(&mut self, keys: Vec<Key>) -> Vec<Vec<Key>> {
        let together = self.rng.random_bool(0.7);
        if together && !keys.is_empty() { vec![keys] } else { keys.into_iter().map(|key| vec![key]).collect() }
    }

    /// Sends a status check to the primary of every owner of these locks.
    fn check_owners(&mut self, txn: usize, locks: Vec<LockInfo>) {
        let mut by_owner: BTreeMap<Timestamp, Vec<LockInfo>> = BTreeMap::new();
        for lock in locks {
            by_owner.entry(lock.start_ts).or_default().push(lock);
        }
        for (lock_ts, locks) in by_owner {
            let current_ts = self.next_ts();
            let ends_ms = locks.iter().map(|lock| lock.start_ts.physical_ms() + lock.ttl_ms).max().unwrap_or_default();
            let body = RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
                primary: locks[0].primary.clone(),
                lock_ts,
                current_ts,
                rollback_if_missing: ends_ms < current_ts.physical_ms(),
                reader_ts: Timestamp::ZERO,
                fell_back: false,
            });
            let keys = locks.into_iter().map(|lock| lock.key).collect();
            self.send(txn, Purpose::Check(lock_ts, keys), body);
        }
    }

    /// Sends the commit of the primary and some of the other keys in one request, at a new commit_ts.
    fn commit_primary(&mut self, txn: usize) {
        let commit_ts = self.commit_ts(txn);
        let Txn { start_ts, ref primary, .. } = self.txns[txn];
        let mut keys = vec![primary.clone()];
        let others = self.txns[txn].exclusive_keys().into_iter().filter(|key| *key != keys[0]);
        let along: Vec<Key> = others.filter(|_| self.rng.random_bool(0.4)).collect();
        keys.extend(along);
        self.stats.commits_together += u64::from(keys.len() > 1);
        self.txns[txn].phase = Phase::CommittingPrimary(commit_ts, keys.clone());
        self.send(txn, Purpose::CommitPrimary(commit_ts), RequestBody::Commit { keys, start_ts, commit_ts });
    }

    pub(crate) fn on_response(&mut self, message: &Message, result: Result<Response, KeyError>) -> Result<(), String> {
        let txn = message.txn;
        match (&message.purpose, self.txns[txn].phase.clone()) {
            (Purpose::Prewrite(group), Phase::Prewriting(left)) if left.contains(group) => {
                self.on_prewrite(txn, *group, result);
            }
            (Purpose::Prewrite(_), _) => {
                self.stats.late_prewrites += u64::from(matches!(result, Err(KeyError::RolledBack { .. })));
            }
            (Purpose::Heartbeat, _) => self.on_heartbeat(&message.body, result)?,
            (Purpose::CommitPrimary(asked), Phase::CommittingPrimary(commit_ts, keys)) if *asked == commit_ts => {
                self.on_commit_primary(txn, commit_ts, &keys, result)?;
            }
            (Purpose::CommitSecondaries, _) => {
                result.map_err(|error| format!("commit of secondaries: {error}"))?;
            }
            (Purpose::Check(start_ts, keys), phase) if phase != Phase::Dead => {
                self.resolve(txn, *start_ts, keys, result)
            }
            (Purpose::Resolve, _) => {
                result.map_err(|error| format!("resolving locks: {error}"))?;
            }
            _ => (),
        }
        Ok(())
    }

    fn on_prewrite(&mut self, txn: usize, group: usize, result: Result<Response, KeyError>) {
        match result {
            Ok(_) => {
                let Phase::Prewriting(left) = &mut self.txns[txn].phase else { return };
                left.remove(&group);
                if left.is_empty() {
                    self.commit_primary(txn);
                }
            }
            Err(KeyError::Locked(locks)) => {
                self.stats.locked += 1;
                self.txns[txn].retries += 1;
                if self.txns[txn].retries > 20 {
                    return self.abort(txn);
                }
                self.check_owners(txn, locks);
                self.send_prewrite(txn, group);
            }
            Err(error) => {
                self.stats.conflicts += u64::from(matches!(error, KeyError::WriteConflict { .. }));
                self.abort(txn);
            }
        }
    }

    fn on_heartbeat(&mut self, asked: &RequestBody, result: Result<Response, KeyError>) -> Result<(), String> {
        let RequestBody::Heartbeat { ttl_ms: asked, .. } = asked else { return Ok(()) };
        match result {
            Ok(Response::Ttl(ttl_ms)) if ttl_ms >= *asked => {
                self.stats.heartbeats += 1;
                Ok(())
            }
            // The primary is not prewritten yet, or its lock is gone.
            Err(KeyError::LockNotFound { .. }) => Ok(()),
            other => Err(format!("a heartbeat of {asked} ms: {other:?}")),
        }
    }

    fn on_commit_primary(
        &mut self,
        txn: usize,
        commit_ts: Timestamp,
        keys: &[Key],
        result: Result<Response, KeyError>,
    ) -> Result<(), String> {
        match result {
            Ok(_) => {
                self.txns[txn].phase = Phase::Committed(commit_ts);
                self.stats.committed += 1;
                let start_ts = self.txns[txn].start_ts;
                let left = self.txns[txn].exclusive_keys().into_iter().filter(|key| !keys.contains(key)).collect();
                let shared = self.txns[txn].shared_keys();
                self.stats.shared += u64::from(!shared.is_empty());
                for keys in self.grouped(shared) {
                    let commit_ts = Some(commit_ts);
                    self.send(txn, Purpose::Resolve, RequestBody::ResolveLock { keys, start_ts, commit_ts });
                }
                for keys in self.grouped(left) {
                    self.stats.commits_together += u64::from(keys.len() > 1);
                    self.send(txn, Purpose::CommitSecondaries, RequestBody::Commit { keys, start_ts, commit_ts });
                }
            }
            Err(KeyError::CommitTsTooEarly { min_commit_ts, .. }) if min_commit_ts > commit_ts => {
                self.stats.too_early += 1;
                self.commit_primary(txn);
            }
            Err(KeyError::RolledBack { .. } | KeyError::LockNotFound { .. }) => self.abort(txn),
            Err(error) => return Err(format!("commit of a primary at {commit_ts}: {error}")),
        }
        Ok(())
    }

    fn resolve(&mut self, txn: usize, start_ts: Timestamp, keys: &[Key], status: Result<Response, KeyError>) {
        let commit_ts = match status {
            Ok(Response::Status(TxnStatus::Committed { commit_ts })) => Some(commit_ts),
            Ok(Response::Status(TxnStatus::RolledBack)) => None,
            _ => return,
        };
        for keys in self.grouped(keys.to_vec()) {
            self.stats.resolves_together += u64::from(keys.len() > 1);
            self.send(txn, Purpose::Resolve, RequestBody::ResolveLock { keys, start_ts, commit_ts });
        }
    }
}
