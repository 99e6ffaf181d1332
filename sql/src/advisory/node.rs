//! The advisory locks of a node: its lease on them, the changes of records, and the removal of what dead nodes have
//! left. The header of the folder has the argument.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kv::Key;
use kv::api::{LockMode, Presence, RowFound};
use kv::client::ScanRange;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tso::Timestamp;
use txn::{CommitBound, Database, LockAsk, LockWait, Transaction, TxnError};

use super::record::{self, Holder, LockRecord, NodeLease};
use crate::catalog::NodeId;
use crate::clock;
use crate::error::{SqlError, SqlState};
use crate::lock_name::{LockName, Mode};

/// Attempts of a change of a record, or of a renewal, after conflicts.
const ATTEMPTS: u32 = 16;
/// The pause after a failed renewal.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The interval between two looks for what dead nodes have left.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// A lease that has been over for so long is removed, with the locks that were held under it.
const SWEEP_AGE: Duration = Duration::from_secs(60);
/// Records of one page.
const PAGE: u32 = 256;
/// Records that are changed in one transaction.
const CHANGED_AT_ONCE: usize = 256;
/// The most sessions that share a lock.
const SHARERS_MAX: usize = 10_000;

/// Settings of advisory locks.
#[derive(Clone, Debug)]
pub struct AdvisoryConfig {
    /// How long a node keeps its locks after it was last heard of, in the oracle's time. Default 10 s, at least 10 ms.
    pub lease: Duration,
    /// The interval between two renewals of the lease. Default 2 s, more than zero.
    pub renew_interval: Duration,
    /// The most locks of a session. Default 10,000.
    pub session_max: usize,
    /// The most locks of the sessions of a node. Default 100,000.
    pub node_max: usize,
}

impl Default for AdvisoryConfig {
    fn default() -> AdvisoryConfig {
        AdvisoryConfig {
            lease: Duration::from_secs(10),
            renew_interval: Duration::from_secs(2),
            session_max: 10_000,
            node_max: 100_000,
        }
    }
}

impl AdvisoryConfig {
    /// Checks the ranges. The error names the setting.
    pub fn validate(&self) -> Result<(), String> {
        if self.lease < Duration::from_millis(10) {
            return Err("advisory.lease must be at least 10 ms".to_owned());
        }
        if self.renew_interval.is_zero() {
            return Err("advisory.renew_interval must be more than zero".to_owned());
        }
        Ok(())
    }
}

/// A session that holds an advisory lock, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisoryHolder {
    /// The lock.
    pub lock: LockName,
    /// The mode.
    pub mode: Mode,
    /// The name of the session in the queues of locks.
    pub name: Timestamp,
    /// Its node, and its process id there.
    pub session: (NodeId, u32),
    /// Since when it has the lock.
    pub since: Timestamp,
}

/// A deliberate bug, so that a test can prove that it finds real ones. Inert unless a test plants one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlantedBug {
    /// A commit of a session with locks has no greatest commit_ts.
    UnboundCommit,
    /// A lock is taken although its holder lives.
    LeaseIgnored,
    /// A lease that is over is renewed under its old term.
    LeaseRevived,
}

/// A term of the node's lease.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) term: Timestamp,
    pub(super) bound: CommitBound,
}

impl Lease {
    pub(super) fn covers(&self, at: Timestamp) -> bool {
        at <= self.bound.get()
    }
}

/// Who takes which lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) lock: LockName,
    pub(super) mode: Mode,
    pub(super) name: Timestamp,
    pub(super) session: u32,
    /// The term under which it is taken.
    pub(super) term: Timestamp,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Held,
    /// These sessions live and are in the way.
    Blocked(Vec<Timestamp>),
}

/// Ends a session.
pub(crate) type OnLoss = Arc<dyn Fn() + Send + Sync>;

/// The advisory locks of a node. Clones share them.
#[derive(Clone)]
pub(crate) struct NodeLocks {
    state: Arc<State>,
}

struct State {
    db: Database,
    node: NodeId,
    config: AdvisoryConfig,
    lease: RwLock<Option<Lease>>,
    /// Held by the renewal under way.
    renewal: tokio::sync::Mutex<()>,
    /// The sessions that may hold locks, with the terms under which they do.
    sessions: Mutex<HashMap<Timestamp, (Timestamp, OnLoss)>>,
    /// The locks of all sessions.
    held: AtomicUsize,
    /// Wakes the keeper.
    wake: Notify,
    /// Whether the node stops, and takes no more locks.
    released: AtomicBool,
    /// A deliberate bug, in tests only.
    planted_bug: Option<PlantedBug>,
}

impl NodeLocks {
    pub(crate) fn new(db: Database, node: NodeId, config: AdvisoryConfig) -> NodeLocks {
        let state = State {
            db,
            node,
            config,
            lease: RwLock::new(None),
            renewal: tokio::sync::Mutex::new(()),
            sessions: Mutex::default(),
            held: AtomicUsize::new(0),
            wake: Notify::new(),
            released: AtomicBool::new(false),
            planted_bug: None,
        };
        NodeLocks { state: Arc::new(state) }
    }

    /// With a deliberate bug.
    #[cfg(test)]
    pub(super) fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> NodeLocks {
        Arc::get_mut(&mut self.state).expect("not shared yet").planted_bug = bug;
        self
    }

    /// Whether this deliberate bug is planted.
    pub(super) fn planted(&self, bug: PlantedBug) -> bool {
        self.state.planted_bug == Some(bug)
    }

    pub(super) fn db(&self) -> &Database {
        &self.state.db
    }

    /// 53200 if a session with `held` locks, or the node, has no room for one more.
    pub(super) fn check_room(&self, held: usize) -> Result<(), SqlError> {
        let config = &self.state.config;
        if held < config.session_max && self.state.held.load(Ordering::Relaxed) < config.node_max {
            return Ok(());
        }
        Err(out_of_memory())
    }

    /// Counts the locks of a session, which were `before` and are `now`.
    pub(super) fn count(&self, before: usize, now: usize) {
        if now >= before {
            self.state.held.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.state.held.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// A session may hold locks under `term` from now on. `on_loss` ends it when the term is over.
    pub(super) fn enter(&self, name: Timestamp, term: Timestamp, on_loss: &OnLoss) {
        self.state.sessions.lock().insert(name, (term, Arc::clone(on_loss)));
        self.state.wake.notify_one();
    }

    /// A session holds no lock any more.
    pub(super) fn leave(&self, name: Timestamp) {
        self.state.sessions.lock().remove(&name);
    }

    fn is_in_use(&self) -> bool {
        !self.state.sessions.lock().is_empty()
    }

    pub(super) fn current(&self) -> Option<Lease> {
        self.state.lease.read().clone()
    }

    /// A lease with some time left: the current term, or a new one.
    pub(super) async fn lease(&self) -> Result<Lease, SqlError> {
        let soon = later(self.state.db.latest(), self.state.config.lease / 2);
        match self.current().filter(|lease| lease.covers(soon)) {
            Some(lease) => Ok(lease),
            None => self.renew().await,
        }
    }

    /// Fails with the FATAL error of a lost session unless `term` still counts, as far as this node can know.
    pub(super) async fn confirm(&self, term: Timestamp) -> Result<Lease, SqlError> {
        let holds = |lease: Option<Lease>| lease.filter(|lease| lease.term == term);
        let lease = holds(self.current()).ok_or_else(lost)?;
        if lease.covers(self.state.db.latest()) {
            return Ok(lease);
        }
        self.renew().await?;
        holds(self.current()).ok_or_else(lost)
    }

    /// Renews the lease, or acquires one under a new term. The old term is lost then.
    async fn renew(&self) -> Result<Lease, SqlError> {
        let _renewal = self.state.renewal.lock().await;
        if self.state.released.load(Ordering::Acquire) {
            return Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the database system is shutting down"));
        }
        for attempt in 0..ATTEMPTS {
            match self.renew_once().await {
                Ok(lease) => return Ok(lease),
                // After an unknown outcome the next attempt reads what became of it.
                Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            clock::sleep(clock::jitter(Duration::from_millis(1) * (1 << attempt.min(6)))).await;
        }
        let why = "the lease on advisory locks could not be renewed";
        Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the cluster cannot serve now").detail(why))
    }

    async fn renew_once(&self) -> Result<Lease, TxnError> {
        let state = &self.state;
        let mut txn = state.db.begin().await?;
        let (now, key) = (txn.start_ts(), record::lease_key(state.node));
        let own = txn.get(&key).await?.map(|bytes| NodeLease::decode(&bytes)).transpose().map_err(damaged)?;
        let current = self.current();
        let kept = current.clone().filter(|lease| {
            let is_over = !NodeLease::holds(own, lease.term, now) || !lease.covers(now);
            !is_over || self.planted(PlantedBug::LeaseRevived)
        });
        let until = later(now, state.config.lease);
        if let Some(lease) = kept {
            txn.put(key, NodeLease { term: lease.term, until }.encode())?;
            // At the end of the lease or below, so that whoever finds it over finds it so for good.
            if !self.planted(PlantedBug::LeaseRevived) {
                txn.set_commit_bound(lease.bound.clone());
            }
            txn.commit().await?;
            lease.bound.raise(until);
            return Ok(lease);
        }
        if let Some(over) = current {
            self.lose(over.term);
        }
        txn.put(key, NodeLease { term: now, until }.encode())?;
        txn.commit().await?;
        let lease = Lease { term: now, bound: CommitBound::new(until) };
        *state.lease.write() = Some(lease.clone());
        if let Some(own) = own {
            let node = self.clone();
            tokio::spawn(async move {
                if let Err(error) = node.remove_dead(BTreeMap::from([(node.state.node, own.term)])).await {
                    tracing::debug!(%error, "advisory locks of an earlier life of this node stay for now");
                }
            });
        }
        Ok(lease)
    }

    /// A term is over: its sessions end.
    fn lose(&self, term: Timestamp) {
        self.state.lease.write().take_if(|lease| lease.term == term);
        let mut lost = Vec::new();
        self.state.sessions.lock().retain(|_, (held_under, on_loss)| {
            let is_lost = *held_under == term;
            if is_lost {
                lost.push(Arc::clone(on_loss));
            }
            !is_lost
        });
        if !lost.is_empty() {
            tracing::warn!(sessions = lost.len(), "the lease on advisory locks is over: their sessions end");
        }
        lost.iter().for_each(|on_loss| on_loss());
    }

    /// Takes a lock as its record allows. An outcome that is not known is looked at again, until it is.
    ///
    /// # Errors
    /// Of a failed attempt: nothing was taken, unless `unknown` is set.
    pub(super) async fn take(&self, claim: &Claim, unknown: &mut bool) -> Result<Taken, SqlError> {
        for attempt in 0..ATTEMPTS {
            let lease = self.confirm(claim.term).await?;
            match self.take_once(claim, &lease).await {
                Ok(Some(taken)) => return Ok(taken),
                Ok(None) => return Err(out_of_memory()),
                Err(TxnError::Undetermined { .. }) => *unknown = true,
                Err(TxnError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
            clock::sleep(clock::jitter(Duration::from_millis(1) * (1 << attempt.min(6)))).await;
        }
        Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the cluster cannot serve now")
            .detail(format!("the record of {} could not be changed", claim.lock.in_words())))
    }

    /// `None`: too many share the lock.
    async fn take_once(&self, claim: &Claim, lease: &Lease) -> Result<Option<Taken>, TxnError> {
        let key = claim.lock.record_key();
        let mut txn = self.state.db.begin_deferred();
        let mut record = lock_records(&mut txn, std::slice::from_ref(&key)).await?.remove(0);
        // A session whose lock could not be given up before the term was over stays in the record, and lives.
        record.forget_other_terms(claim.name, claim.term);
        if record.held(claim.name).is_some_and(|held| held >= claim.mode) {
            txn.release_locks().await;
            return Ok(Some(Taken::Held));
        }
        let mut live = live_against(&txn, &mut record, claim.name, claim.mode).await?;
        if self.planted(PlantedBug::LeaseIgnored) {
            record.holders.clear();
            live.clear();
        }
        if !live.is_empty() {
            txn.release_locks().await;
            return Ok(Some(Taken::Blocked(live)));
        }
        if record.holders.len() >= SHARERS_MAX {
            txn.release_locks().await;
            return Ok(None);
        }
        let &Claim { mode, name, session, term, .. } = claim;
        let since = self.state.db.now().await?;
        record.add(Holder { node: self.state.node, term, name, session, mode, since });
        txn.put(key, record.encode())?;
        txn.set_commit_bound(lease.bound.clone());
        txn.commit().await?;
        Ok(Some(Taken::Held))
    }

    /// The sessions that live and are in the way of another one.
    pub(super) async fn blockers(&self, claim: &Claim) -> Result<Vec<Timestamp>, TxnError> {
        let txn = self.state.db.begin().await?;
        let found = txn.get(&claim.lock.record_key()).await?;
        let record = found.map(|bytes| LockRecord::decode(&bytes)).transpose().map_err(damaged)?;
        live_against(&txn, &mut record.unwrap_or_default(), claim.name, claim.mode).await
    }

    /// Leaves a session only these modes in the records of locks, or nothing. Writes each record, so that what the
    /// session may have sent before cannot change it later.
    pub(super) async fn lower(&self, name: Timestamp, locks: &[(LockName, Option<Mode>)]) -> Result<(), TxnError> {
        for locks in locks.chunks(CHANGED_AT_ONCE) {
            let keys: Vec<Key> = locks.iter().map(|(lock, _)| lock.record_key()).collect();
            self.change(&keys, |at, record| record.lower(name, locks[at].1)).await?;
        }
        Ok(())
    }

    async fn change(&self, keys: &[Key], change: impl Fn(usize, &mut LockRecord)) -> Result<(), TxnError> {
        let mut txn = self.state.db.begin_deferred();
        let records = lock_records(&mut txn, keys).await?;
        for (at, (key, mut record)) in keys.iter().zip(records).enumerate() {
            change(at, &mut record);
            match record.holders.is_empty() {
                true => txn.delete(key.clone())?,
                false => txn.put(key.clone(), record.encode())?,
            }
        }
        txn.commit().await.map(drop)
    }

    /// All live holders of locks.
    pub(crate) async fn holders(&self) -> Result<Vec<AdvisoryHolder>, TxnError> {
        let txn = self.state.db.begin().await?;
        let leases = leases(&txn).await?;
        let mut holders = Vec::new();
        for (key, bytes) in scan(&txn, record::all_locks()).await? {
            let Some(lock) = LockName::of_key(&key) else { continue };
            for holder in LockRecord::decode(&bytes).map_err(damaged)?.holders {
                let Holder { node, term, name, session, mode, since } = holder;
                if NodeLease::holds(leases.get(&node).copied(), term, txn.start_ts()) {
                    holders.push(AdvisoryHolder { lock, mode, name, session: (node, session), since });
                }
            }
        }
        Ok(holders)
    }

    /// Keeps the lease while sessions hold locks, and removes what dead nodes have left, until `stop`.
    pub(crate) async fn keep(&self, stop: CancellationToken) {
        let (mut swept, mut failed) = (clock::instant(), false);
        loop {
            let in_use = self.is_in_use();
            let pause = match (in_use, failed) {
                (true, true) => RETRY_PAUSE,
                (true, false) => self.state.config.renew_interval,
                (false, _) => SWEEP_INTERVAL,
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                // Whoever takes the first lock sees to it that more than half of the lease is left.
                () = self.state.wake.notified(), if !in_use => continue,
                () = clock::sleep(pause) => {}
            }
            if self.is_in_use() {
                let renewed = self.renew_kept().await;
                failed = renewed.is_err();
                if let Err(error) = renewed {
                    tracing::debug!("the lease on advisory locks is not renewed: {error}");
                }
            }
            if clock::instant().duration_since(swept) >= SWEEP_INTERVAL {
                swept = clock::instant();
                if let Err(error) = self.sweep().await {
                    tracing::debug!(%error, "advisory locks of dead nodes stay for now");
                }
            }
        }
    }

    /// Renews the lease. If that fails, and it is over as far as this node can tell, its sessions end.
    async fn renew_kept(&self) -> Result<(), SqlError> {
        let Some(lease) = self.current() else { return Ok(()) };
        let renewed = tokio::time::timeout(self.state.config.lease, self.renew()).await;
        if !matches!(renewed, Ok(Ok(_))) && self.state.db.now().await.is_ok_and(|now| !lease.covers(now)) {
            self.lose(lease.term);
        }
        match renewed {
            Ok(renewed) => renewed.map(drop),
            Err(_) => Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the cluster cannot serve now")),
        }
    }

    /// Gives the lease back at the end of the node, so that nobody waits for it. The node takes no more locks.
    pub(crate) async fn release(&self) {
        let _renewal = self.state.renewal.lock().await;
        self.state.released.store(true, Ordering::Release);
        if self.is_in_use() {
            // A session may still commit under it.
            return;
        }
        let Some(lease) = self.state.lease.write().take() else { return };
        let removed = async {
            let mut txn = self.state.db.begin().await?;
            let key = record::lease_key(self.state.node);
            let own = txn.get(&key).await?.map(|bytes| NodeLease::decode(&bytes)).transpose().map_err(damaged)?;
            if own.is_some_and(|own| own.term == lease.term) {
                txn.delete(key)?;
                txn.commit().await?;
            }
            Ok::<(), TxnError>(())
        };
        if let Err(error) = removed.await {
            tracing::debug!(%error, "the lease on advisory locks stays until it is over");
        }
    }

    /// Removes the leases that have been over for long, and the locks that were held under them.
    async fn sweep(&self) -> Result<(), TxnError> {
        let txn = self.state.db.begin().await?;
        let dead: BTreeMap<NodeId, NodeLease> = leases(&txn)
            .await?
            .into_iter()
            .filter(|(node, lease)| *node != self.state.node && later(lease.until, SWEEP_AGE) < txn.start_ts())
            .collect();
        if dead.is_empty() {
            return Ok(());
        }
        self.remove_dead(dead.iter().map(|(node, lease)| (*node, lease.term)).collect()).await?;
        for (node, lease) in dead {
            let mut txn = self.state.db.begin().await?;
            let key = record::lease_key(node);
            if txn.get(&key).await?.is_some_and(|bytes| NodeLease::decode(&bytes) == Ok(lease)) {
                // A node that has come back conflicts.
                txn.delete(key)?;
                txn.commit().await?;
            }
        }
        Ok(())
    }

    /// Removes from the records of locks what these nodes held under terms up to these, which are over. A node may have
    /// a later term meanwhile, whatever the snapshot of this work is.
    pub(super) async fn remove_dead(&self, over: BTreeMap<NodeId, Timestamp>) -> Result<(), TxnError> {
        let is_dead = |holder: &Holder| over.get(&holder.node).is_some_and(|term| holder.term <= *term);
        let txn = self.state.db.begin().await?;
        let mut keys = Vec::new();
        for (key, bytes) in scan(&txn, record::all_locks()).await? {
            if LockRecord::decode(&bytes).map_err(damaged)?.holders.iter().any(is_dead) {
                keys.push(key);
            }
        }
        for keys in keys.chunks(CHANGED_AT_ONCE) {
            self.change(keys, |_, record| record.holders.retain(|holder| !is_dead(holder))).await?;
        }
        Ok(())
    }
}

/// Locks records, in the order of their keys, and reads them as they are then.
async fn lock_records(txn: &mut Transaction, keys: &[Key]) -> Result<Vec<LockRecord>, TxnError> {
    // So the newest state counts, not that of a snapshot.
    txn.begin_statement();
    let (mode, presence, wait) = (LockMode::Update, Presence::Any, LockWait::Queue(None));
    let rows = txn.lock_rows(keys.to_vec(), LockAsk { mode, presence, was_read: false, wait }).await?;
    // What is read beside them comes from a snapshot above them: the lock may have been waited for, with a timestamp
    // that was taken before.
    txn.begin_statement();
    let record = |row: RowFound| match row {
        RowFound::Present(bytes) => LockRecord::decode(&bytes).map_err(damaged),
        RowFound::Absent | RowFound::Unchanged | RowFound::Skipped => Ok(LockRecord::default()),
    };
    rows.into_iter().map(|row| record(row.row)).collect()
}

/// The sessions in the way that live. Removes those that do not from the record.
async fn live_against(
    txn: &Transaction,
    record: &mut LockRecord,
    name: Timestamp,
    mode: Mode,
) -> Result<Vec<Timestamp>, TxnError> {
    let against: Vec<Holder> = record.against(name, mode).copied().collect();
    if against.is_empty() {
        return Ok(Vec::new());
    }
    let nodes: BTreeSet<NodeId> = against.iter().map(|holder| holder.node).collect();
    let keys: Vec<Key> = nodes.into_iter().map(record::lease_key).collect();
    let mut leases = HashMap::new();
    for (key, bytes) in txn.batch_get(&keys).await? {
        if let Some(node) = record::lease_node(&key) {
            leases.insert(node, NodeLease::decode(&bytes).map_err(damaged)?);
        }
    }
    let now = txn.take_read_ts().await?;
    let (live, dead): (Vec<Holder>, Vec<Holder>) =
        against.into_iter().partition(|holder| NodeLease::holds(leases.get(&holder.node).copied(), holder.term, now));
    dead.iter().for_each(|holder| record.lower(holder.name, None));
    Ok(live.into_iter().map(|holder| holder.name).collect())
}

async fn leases(txn: &Transaction) -> Result<BTreeMap<NodeId, NodeLease>, TxnError> {
    let mut leases = BTreeMap::new();
    for (key, bytes) in scan(txn, record::all_leases()).await? {
        if let Some(node) = record::lease_node(&key) {
            leases.insert(node, NodeLease::decode(&bytes).map_err(damaged)?);
        }
    }
    Ok(leases)
}

async fn scan(txn: &Transaction, (start, end): (Key, Key)) -> Result<Vec<(Key, bytes::Bytes)>, TxnError> {
    let mut range = ScanRange { start, end, reverse: false };
    let mut found = Vec::new();
    loop {
        let page = txn.scan(&range, PAGE).await?;
        found.extend(page.pairs);
        match page.resume {
            Some(resume) if resume > range.start => range.start = resume,
            Some(_) => return Err(TxnError::Internal("a page of a scan does not advance".to_owned())),
            None => return Ok(found),
        }
    }
}

fn damaged(error: impl std::fmt::Display) -> TxnError {
    TxnError::Internal(error.to_string())
}

/// A timestamp `by` after another.
fn later(ts: Timestamp, by: Duration) -> Timestamp {
    let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    Timestamp::new(ts.physical_ms().saturating_add(ms), ts.counter())
}

/// The FATAL error of a session whose advisory locks are lost.
pub(crate) fn lost() -> SqlError {
    let message = "terminating connection because its advisory locks are lost";
    SqlError::new(SqlState::ADMIN_SHUTDOWN, message)
        .detail("The node was not heard of for longer than it keeps advisory locks, and others may have them now.")
}

fn out_of_memory() -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of shared memory")
        .hint("The number of advisory locks of a session, and of a node, is limited.")
}
