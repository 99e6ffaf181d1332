//! A node's lease on the catalog: the catalog that its statements are planned with, without a read of the store.
//!
//! # The lease
//!
//! The node's lease record names a timestamp E, the end of the lease, and a catalog version v. It promises: above E the
//! node plans no statement and commits nothing; and no transaction of the node that may still commit was planned with a
//! table that v or an older version closes. A statement holds the lease if its start_ts is at most E. Every commit
//! carries E as its greatest commit_ts ([`CommitBound`]). So only the oracle's time decides, no clock of a node.
//!
//! The node renews the lease all the time ([`NodeCatalog::keep`], and a statement that finds it over): it reads the
//! version record at a snapshot s, adopts a newer version, and writes its record with E = s + duration, all in one
//! ordinary transaction. So leases need no memory of a server and survive each change of the leader.
//!
//! # Why a step of a schema change may trust the records
//!
//! A publisher commits version v at p. It later reads all lease records at some s > p, and takes the step for complete
//! if each record names v or ends below s (`Control::step`). Claim: from then on no statement of any node with
//! a start_ts above s is planned with a version below v. Let R be the record of a node at s.
//!
//! 1. *R names v.* A node adopts versions in ascending order, and writes a version only after it has adopted it.
//! 2. *R names less and ends at E < s.* A renewal of R commits at E or below: it carries E as its greatest commit_ts
//!    itself. A commit at or below s is visible to the read at s, or its lock is, and the read waits for it. So R was
//!    the last record of its term, and no statement with a start_ts above E holds that lease.
//! 3. *There is no R, or R is over, and the node acquires a lease under a new term.* The record of the acquisition
//!    commits at c. If c <= s, the publisher sees it and waits: it names version 0. Otherwise the node loads the
//!    catalog at a snapshot above c > s > p, *after* the commit, and finds v there. So an acquisition takes a second
//!    look, and needs no lock on the version record.
//!
//! Renewals and schema changes write different keys and never conflict. Only one process uses a node's id at a time:
//! the lock of the data directory sees to that.
//!
//! # Order within the node
//!
//! A transaction takes the lease first and its start_ts second. So its start_ts is above the commit of the catalog
//! version that it plans with. Most transactions take start_ts only with their first read, after they have planned and
//! entered their tables. What that read returns counts once the *then* current lease covers start_ts and shows the same
//! tables, open (`LiveTransaction::started`). This is as good as a plan under that lease: by the claim, no step that is
//! complete below start_ts is unknown to a lease that covers it. When the lease has been over in between, older
//! transactions keep its end as their bound, unless all tables that they wrote to are open and the same in the newest
//! catalog (`LiveTransaction::begin_commit`).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use kv::Key;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::time::Instant;
use tso::Timestamp;
use txn::{CommitBound, Database, Transaction, TxnError};

use super::keys::{self, LeaseRecord, NodeId, VersionRecord};
use super::object_record;
use super::planted::PlantedBug;
use super::snapshot::{Access, Catalog, first_objects};
use super::statistics::NodeStatistics;
use super::uses::{Lease, LiveTransaction, LiveTransactions, Refusal, SessionSlot};
use super::versions::Versions;
use crate::clock;
use crate::error::{SqlError, SqlState, storage_error};
use crate::metrics::SqlMetrics;
use crate::object::SchemaId;
use crate::table::{StorageId, Table};

/// The shortest and the longest lease.
const LEASE_MIN: Duration = Duration::from_millis(10);
const LEASE_MAX: Duration = Duration::from_secs(3_600);
/// Attempts of one renewal after conflicts.
const RENEW_ATTEMPTS: u32 = 16;
/// How long a statement waits for a schema change before its node looks for a newer catalog.
const CHANGE_WAIT: Duration = Duration::from_millis(500);
/// The first version number for catalogs with a transaction's own schema changes. Above every published version.
const OWN_VERSIONS: u64 = 1 << 63;

/// Settings of the lease and of schema changes.
#[derive(Clone, Debug)]
pub struct CatalogConfig {
    /// How long a lease lasts, in the oracle's time. A schema change waits this long for a dead node. Default 5 s, from
    /// 10 ms to an hour.
    pub lease: Duration,
    /// The interval between two renewals. Default 1.5 s, more than zero.
    pub renew_interval: Duration,
    /// How long a schema change waits for the transactions that write to its table, before it aborts them. Default 5 s.
    pub drain_grace: Duration,
    /// How long a statement waits for a schema change of a table that it uses. Default 10 s.
    pub closed_wait: Duration,
}

impl Default for CatalogConfig {
    fn default() -> CatalogConfig {
        CatalogConfig {
            lease: Duration::from_secs(5),
            renew_interval: Duration::from_millis(1_500),
            drain_grace: Duration::from_secs(5),
            closed_wait: Duration::from_secs(10),
        }
    }
}

impl CatalogConfig {
    /// Checks the ranges. The error names the setting.
    pub fn validate(&self) -> Result<(), String> {
        if !(LEASE_MIN..=LEASE_MAX).contains(&self.lease) {
            return Err(format!("catalog.lease must be between {LEASE_MIN:?} and {LEASE_MAX:?}"));
        }
        if self.renew_interval.is_zero() {
            return Err("catalog.renew_interval must be more than zero".to_owned());
        }
        Ok(())
    }
}

/// The other nodes, as a schema change tells them to renew their leases.
pub trait CatalogPeers: Send + Sync {
    /// Asks every other node to renew its lease now. Best effort: a node that does not hear of it renews by itself.
    fn renew_leases(&self) -> BoxFuture<'_, ()>;
}

/// A node's catalog. Clones share it.
#[derive(Clone)]
pub struct NodeCatalog {
    pub(super) state: Arc<CatalogState>,
}

pub(super) struct CatalogState {
    pub(super) db: Database,
    pub(super) node: NodeId,
    pub(super) config: CatalogConfig,
    metrics: SqlMetrics,
    pub(super) current: RwLock<Option<Arc<Lease>>>,
    pub(super) versions: Versions,
    pub(super) statistics: NodeStatistics,
    /// Held by the renewal under way.
    pub(super) renewal: tokio::sync::Mutex<Renewal>,
    /// The version that the newest renewal has written to the record, or is about to.
    acknowledged: AtomicU64,
    pub(super) live: Arc<LiveTransactions>,
    /// Wakes the keeper.
    pub(super) wake: Notify,
    /// Notified when the node has adopted another catalog.
    adopted: Notify,
    pub(super) peers: OnceLock<Arc<dyn CatalogPeers>>,
    /// The schema changes of this node that have not ended.
    pub(super) changes: Mutex<HashSet<Timestamp>>,
    /// The schemas of temporary relations of its live sessions.
    pub(super) temporary: Mutex<HashSet<SchemaId>>,
    own_versions: AtomicU64,
    /// Whether the node has given its lease back, for good.
    pub(super) released: AtomicBool,
    /// The number of pauses so far.
    pauses: AtomicU64,
    /// A deliberate bug, in tests only.
    pub(super) planted_bug: Option<PlantedBug>,
}

impl CatalogState {
    /// Whether this deliberate bug is planted.
    pub(super) fn planted(&self, bug: PlantedBug) -> bool {
        self.planted_bug == Some(bug)
    }
}

/// The state of the renewals.
#[derive(Default)]
pub(super) struct Renewal {
    /// When the record was last written.
    written: Option<Instant>,
    /// A version that some transactions hold up, and until when they may.
    held_up: Option<(u64, Instant)>,
}

/// The result of one attempt to renew.
enum Attempt {
    Renewed,
    Again,
}

impl NodeCatalog {
    /// The catalog of a node over its database. Reads nothing before the first statement.
    pub fn new(db: Database, node: NodeId, config: CatalogConfig, metrics: SqlMetrics) -> NodeCatalog {
        let state = CatalogState {
            statistics: NodeStatistics::new(db.clone()),
            db,
            node,
            config,
            metrics,
            current: RwLock::new(None),
            versions: Versions::default(),
            renewal: tokio::sync::Mutex::new(Renewal::default()),
            acknowledged: AtomicU64::new(0),
            live: Arc::new(LiveTransactions::default()),
            wake: Notify::new(),
            adopted: Notify::new(),
            peers: OnceLock::new(),
            changes: Mutex::default(),
            temporary: Mutex::default(),
            own_versions: AtomicU64::new(OWN_VERSIONS),
            released: AtomicBool::new(false),
            pauses: AtomicU64::new(0),
            planted_bug: None,
        };
        NodeCatalog { state: Arc::new(state) }
    }

    /// With a deliberate bug.
    #[cfg(test)]
    pub(super) fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> NodeCatalog {
        Arc::get_mut(&mut self.state).expect("not shared yet").planted_bug = bug;
        self
    }

    /// Sets how the other nodes are told of schema changes. Without it they notice by themselves. The first call
    /// counts.
    pub fn set_peers(&self, peers: Arc<dyn CatalogPeers>) {
        // A second call changes nothing.
        let _ = self.state.peers.set(peers);
    }

    /// A slot for the transactions of one session.
    pub(crate) fn register(&self) -> SessionSlot {
        self.state.live.register()
    }

    /// Begins a transaction under a lease, which takes its start_ts when it needs it ([`Database::begin_deferred`]).
    /// Then the caller asks [`LiveTransaction::started`]. At once if the oracle is on this node, or if the lease may be
    /// over.
    pub(crate) async fn begin_deferred(&self) -> Result<(Arc<Lease>, Transaction), SqlError> {
        if let Some(lease) = self.current() {
            let txn = self.state.db.begin_deferred();
            let start_ts = Some(txn.start_ts()).filter(|start_ts| *start_ts > Timestamp::ZERO);
            let latest = start_ts.unwrap_or_else(|| self.state.db.latest());
            if lease.covers(latest) {
                self.renew_in_time(&lease, latest);
                // A session with many statements at hand yields to other tasks now and then, although none of them
                // waits.
                tokio::task::coop::consume_budget().await;
                return Ok((lease, txn));
            }
        }
        self.begin().await
    }

    /// Begins a transaction under a lease that covers its start_ts. Renews the lease if it is over. 57P03 if that
    /// fails.
    pub(crate) async fn begin(&self) -> Result<(Arc<Lease>, Transaction), SqlError> {
        loop {
            let Some(lease) = self.current() else {
                self.renew_unless(|_| true).await?;
                continue;
            };
            let txn = self.state.db.begin().await?;
            let start_ts = txn.start_ts();
            if lease.covers(start_ts) {
                self.renew_in_time(&lease, start_ts);
                return Ok((lease, txn));
            }
            self.state.metrics.lease_wait();
            self.renew_unless(|lease| lease.covers(start_ts)).await?;
        }
    }

    /// Wakes the keeper if less than half of the lease is left.
    pub(super) fn renew_in_time(&self, lease: &Lease, now: Timestamp) {
        if !lease.covers(later(now, self.state.config.lease / 2)) {
            self.state.wake.notify_one();
        }
    }

    /// The node's lease. It may be over.
    pub(super) fn current(&self) -> Option<Arc<Lease>> {
        self.state.current.read().clone()
    }

    fn current_catalog(&self) -> Option<Arc<Catalog>> {
        self.state.current.read().as_ref().map(|lease| lease.catalog.clone())
    }

    /// Whether a transaction may use these tables, which were planned with the catalog `planned`.
    pub(crate) fn access<'t>(
        &self,
        planned: &Arc<Catalog>,
        mut tables: impl Iterator<Item = &'t Arc<Table>>,
        owner: Timestamp,
    ) -> Access {
        let Some(current) = self.current_catalog() else { return Access::Changed };
        if Arc::ptr_eq(&current, planned) && current.is_open() {
            return Access::Open;
        }
        tables
            .find_map(|table| Some(current.access(table, owner)).filter(|access| *access != Access::Open))
            .unwrap_or(Access::Open)
    }

    /// Lets a statement use tables; see [`LiveTransaction::enter`].
    pub(crate) fn enter<'t>(
        &self,
        live: &LiveTransaction,
        tables: impl Iterator<Item = &'t Arc<Table>>,
        written: &[StorageId],
    ) -> Result<(), Refusal> {
        live.enter(tables, written, || self.current())
    }

    /// Lets a statement use what it has read; see [`LiveTransaction::started`].
    pub(crate) fn started(
        &self,
        live: &LiveTransaction,
        start_ts: Timestamp,
        read_ts: Timestamp,
    ) -> Result<(), Refusal> {
        if self.state.planted(PlantedBug::UncheckedStart) {
            return Ok(());
        }
        live.started(start_ts, read_ts, || self.current())
    }

    /// Whether there is a database of this folded name. If the node does not know it, it takes the newest catalog.
    pub(crate) async fn has_database(&self, name: &str) -> Result<bool, SqlError> {
        if self.current_catalog().is_some_and(|catalog| catalog.database(name).is_some()) {
            return Ok(true);
        }
        self.renew().await?;
        Ok(self.current_catalog().is_some_and(|catalog| catalog.database(name).is_some()))
    }

    /// The node's lease, for a later statement of a transaction. It may be over.
    pub(crate) fn newest_lease(&self) -> Option<Arc<Lease>> {
        let lease = self.current()?;
        self.renew_in_time(&lease, self.state.db.latest());
        Some(lease)
    }

    /// Begins the commit of a transaction; see [`LiveTransaction::begin_commit`]. Sets its greatest commit_ts, which
    /// `other` limits too.
    pub(crate) fn begin_commit(
        &self,
        live: &LiveTransaction,
        txn: &mut Transaction,
        other: Option<&CommitBound>,
    ) -> Result<(), Refusal> {
        let bound = live.begin_commit(|| self.current())?;
        let bound = other.map_or_else(|| bound.clone(), |other| bound.and(other));
        if !self.state.planted(PlantedBug::UnboundCommit) {
            txn.set_commit_bound(bound);
        }
        Ok(())
    }

    /// Waits until the node adopts another catalog than that of `version`.
    pub(crate) async fn until_changed(&self, version: u64) {
        let notified = self.state.adopted.notified();
        let mut notified = std::pin::pin!(notified);
        notified.as_mut().enable();
        if self.version() == version {
            // A node that is told of nothing looks by itself.
            let looked = tokio::time::timeout(CHANGE_WAIT, notified).await.is_ok();
            if !looked && let Err(error) = self.renew().await {
                tracing::debug!("the lease on the catalog is not renewed: {error}");
            }
        }
    }

    /// The version that the node has adopted. 0 for none.
    pub(crate) fn version(&self) -> u64 {
        self.current_catalog().map_or(0, |catalog| catalog.version)
    }

    /// A pause between half of `pause` and all of it, so that neither nodes nor the tasks of one retry in step. Spread
    /// by the node and a count, so that a simulation replays.
    pub(super) fn spread(&self, pause: Duration) -> Duration {
        let count = self.state.pauses.fetch_add(1, Ordering::Relaxed).wrapping_add(self.state.node.0 << 32);
        let mixed = count.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_right(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        pause.mul_f64(0.5 + f64::from((mixed >> 32) as u32) / f64::from(u32::MAX) / 2.0)
    }

    /// How long a statement waits for a schema change.
    pub(crate) fn closed_wait(&self) -> Duration {
        self.state.config.closed_wait
    }

    /// A version number for a catalog with a transaction's own schema changes.
    pub(super) fn own_version(&self) -> u64 {
        self.state.own_versions.fetch_add(1, Ordering::Relaxed)
    }

    /// Renews the lease, and with it adopts the newest catalog.
    ///
    /// # Errors
    /// 57P03 if the store or the oracle does not answer.
    pub async fn renew(&self) -> Result<(), SqlError> {
        self.renew_unless(|_| false).await
    }

    /// Renews the lease unless it is `fresh`.
    async fn renew_unless(&self, fresh: impl Fn(&Lease) -> bool) -> Result<(), SqlError> {
        let mut renewal = self.state.renewal.lock().await;
        if self.current().is_some_and(|lease| fresh(&lease)) {
            return Ok(());
        }
        // In a box: every statement waits in a future that has room for this, and moves it.
        Box::pin(self.renew_locked(&mut renewal)).await
    }

    /// Makes progress towards a record that names `version`: adopts it, and writes the record if no transaction holds
    /// it up.
    pub(super) async fn acknowledge(&self, version: u64) -> Result<(), SqlError> {
        let mut renewal = self.state.renewal.lock().await;
        if self.state.acknowledged.load(Ordering::Acquire) >= version {
            return Ok(());
        }
        self.renew_unless_held_up(&mut renewal, version).await
    }

    /// Renews, but not while transactions hold up `version` and the record is young.
    pub(super) async fn renew_unless_held_up(&self, renewal: &mut Renewal, version: u64) -> Result<(), SqlError> {
        let interval = self.state.config.renew_interval;
        let is_young = renewal.written.is_some_and(|at| clock::instant().duration_since(at) < interval);
        let adopted = self.current_catalog().filter(|catalog| catalog.version >= version);
        match adopted {
            Some(catalog) if is_young && !self.is_drained(renewal, &catalog) => Ok(()),
            _ => self.renew_locked(renewal).await,
        }
    }

    pub(super) async fn renew_locked(&self, renewal: &mut Renewal) -> Result<(), SqlError> {
        if self.state.released.load(Ordering::Acquire) {
            return Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the database system is shutting down"));
        }
        for attempt in 0..RENEW_ATTEMPTS {
            if let Attempt::Renewed = self.renew_once(renewal).await? {
                return Ok(());
            }
            clock::sleep(self.spread(Duration::from_micros(200) * (1 << attempt.min(8)))).await;
        }
        let why = "the lease on the catalog could not be renewed";
        Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the cluster cannot serve now").detail(why))
    }

    async fn renew_once(&self, renewal: &mut Renewal) -> Result<Attempt, SqlError> {
        let state = &self.state;
        let txn = state.db.begin().await?;
        let (version_key, lease_key) = (keys::version(), keys::lease(state.node));
        state.metrics.catalog_read();
        let found = txn.batch_get(&[version_key.clone(), lease_key.clone()]).await.map_err(storage_error)?;
        let found: HashMap<Key, bytes::Bytes> = found.into_iter().collect();
        let Some(version) = found.get(&version_key) else {
            self.initialise().await?;
            return Ok(Attempt::Again);
        };
        let version = VersionRecord::decode(version)?.version;
        let own = found.get(&lease_key).map(|record| LeaseRecord::decode(record)).transpose()?;
        let lease = self.current().filter(|lease| lease.covers(txn.start_ts()));
        let Some(lease) = lease.filter(|lease| own.is_some_and(|own| own.term == lease.term)) else {
            return self.acquire(txn).await;
        };
        let lease = if version > lease.catalog.version {
            state.metrics.catalog_read();
            let catalog = Catalog::load_version(&txn, version, Some(&lease.catalog)).await?;
            let (term, since, bound) = (lease.term, txn.start_ts(), lease.bound.clone());
            self.adopt(Lease { catalog: self.shared(catalog), term, since, bound })
        } else {
            lease
        };
        self.extend(txn, &lease, renewal).await
    }

    /// Writes the record of a lease that the node holds.
    async fn extend(&self, mut txn: Transaction, lease: &Lease, renewal: &mut Renewal) -> Result<Attempt, SqlError> {
        let state = &self.state;
        if self.is_drained(renewal, &lease.catalog) {
            state.acknowledged.store(lease.catalog.version, Ordering::Release);
        } else {
            // The keeper watches the transactions.
            state.wake.notify_one();
        }
        let version = state.acknowledged.load(Ordering::Acquire);
        let until = later(txn.start_ts(), state.config.lease);
        let record = LeaseRecord { term: lease.term, until, version };
        txn.put(keys::lease(state.node), record.encode()).map_err(storage_error)?;
        if !state.planted(PlantedBug::UnboundRenewal) {
            txn.set_commit_bound(lease.bound.clone());
        }
        match txn.commit().await {
            Ok(_) => {
                lease.bound.raise(until);
                renewal.written = Some(clock::instant());
                Ok(Attempt::Renewed)
            }
            // After an unknown outcome the next attempt reads what became of it.
            Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => Ok(Attempt::Again),
            Err(error) => Err(error.into()),
        }
    }

    /// Acquires a lease under a new term. The next attempt names the version.
    async fn acquire(&self, mut txn: Transaction) -> Result<Attempt, SqlError> {
        let state = &self.state;
        let (term, until) = (txn.start_ts(), later(txn.start_ts(), state.config.lease));
        let record = LeaseRecord { term, until, version: 0 };
        txn.put(keys::lease(state.node), record.encode()).map_err(storage_error)?;
        let early = if state.planted(PlantedBug::NoSecondLook) { Some(Catalog::load(&txn).await?) } else { None };
        match txn.commit().await {
            Ok(_) => {}
            Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => return Ok(Attempt::Again),
            Err(error) => return Err(error.into()),
        }
        // The second look; see the module documentation.
        let look = state.db.begin().await?;
        state.metrics.catalog_read();
        let catalog = match early {
            Some(catalog) => catalog,
            None => Catalog::load(&look).await?,
        };
        state.acknowledged.store(0, Ordering::Release);
        let (since, bound) = (look.start_ts(), CommitBound::new(until));
        self.adopt(Lease { catalog: self.shared(catalog), term, since, bound });
        Ok(Attempt::Again)
    }

    fn shared(&self, catalog: Catalog) -> Arc<Catalog> {
        Arc::new(catalog.with_statistics(self.state.statistics.clone()))
    }

    fn adopt(&self, lease: Lease) -> Arc<Lease> {
        let lease = Arc::new(lease);
        *self.state.current.write() = Some(lease.clone());
        self.state.adopted.notify_waiters();
        lease
    }

    /// Whether no transaction holds up the adopted catalog. Dooms them when their time is over.
    fn is_drained(&self, renewal: &mut Renewal, catalog: &Catalog) -> bool {
        let (state, now) = (&self.state, clock::instant());
        let until = match renewal.held_up {
            Some((version, until)) if version == catalog.version => until,
            _ => now + state.config.drain_grace,
        };
        let drained = state.live.is_drained(catalog, now >= until) || state.planted(PlantedBug::NoDrain);
        renewal.held_up = (!drained).then_some((catalog.version, until));
        drained
    }

    /// Creates the catalog's own records in a new cluster. Idempotent: every node may call it.
    pub async fn initialise(&self) -> Result<(), SqlError> {
        let mut txn = self.state.db.begin().await?;
        if let Some(record) = txn.get(&keys::version()).await.map_err(storage_error)? {
            VersionRecord::decode(&record)?;
            return Ok(());
        }
        // No transaction owns version 1.
        let record = VersionRecord { version: 1, writer: Timestamp::ZERO };
        txn.insert(keys::version(), record.encode()).map_err(storage_error)?;
        txn.insert(keys::next_id(), keys::encode_id(keys::FIRST_ID)).map_err(storage_error)?;
        for object in first_objects() {
            txn.insert(keys::object(object.id()), object_record::encode(&object)).map_err(storage_error)?;
            let name = keys::object_name(&object);
            txn.insert(name, keys::encode_id(object.id().0)).map_err(storage_error)?;
        }
        match txn.commit().await {
            // Another node has created them.
            Ok(_) | Err(TxnError::AlreadyExists { .. } | TxnError::Conflict(_)) => Ok(()),
            Err(error) => Err(storage_error(error)),
        }
    }

    /// Counts a read of catalog records.
    pub(super) fn count_read(&self) {
        self.state.metrics.catalog_read();
    }
}

/// A timestamp `by` after another.
fn later(ts: Timestamp, by: Duration) -> Timestamp {
    let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    Timestamp::new(ts.physical_ms().saturating_add(ms), ts.counter())
}
