//! The placement role of a node, active while its store leads the system region.
//!
//! It is the edge around two pure parts: it reads and proposes the replicated registry of stores, and feeds heartbeats
//! to the cluster view. Registry changes are serialised, and each is proposed on the snapshot from which it was
//! computed, so no update is lost. Raft rejects the proposal of a leader that lost its term.

use std::time::Duration;

use engine::WriteBatch;
use engine::store::Store;
use kv::placement::registry::{self, Admission, InstanceId, RegistryError, StoreRecord};
use kv::placement::safe_point::{self, Choice, HeldBy};
use kv::placement::{ClusterView, Heartbeat, Liveness};
use parking_lot::Mutex;
use raftstore::transport::ClusterId;
use raftstore::{
    PeerRole, ProposeError, RegionContext, RegionError, RegionId, RegionSnapshot, RegionStatus, StoreHandle, StoreId,
    Term,
};
use tso::Timestamp;

use crate::proto;

/// How long a transfer of leadership may take.
const TRANSFER_LIMIT: Duration = Duration::from_secs(2);
/// The interval at which its end is looked for.
const TRANSFER_POLL: Duration = Duration::from_millis(5);

/// Why placement cannot answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlacementError {
    /// This store does not lead the system region.
    #[error("this node does not lead the system region")]
    NotLeader,
    /// Another store has the address.
    #[error(
        "{address} belongs to node {store} of this cluster: \
         start it with its own data directory, or take another address"
    )]
    AddressTaken { address: String, store: StoreId },
    /// The region cannot serve now.
    #[error(transparent)]
    Region(RegionError),
    /// The change may or may not have been applied; a retry is safe.
    #[error(transparent)]
    Propose(ProposeError),
    /// Another store leads the region.
    #[error("this node does not lead region {0}")]
    NotLeaderOf(RegionId),
    /// The store could not lead.
    #[error("store {store} has no voter of region {region}")]
    NoVoter { region: RegionId, store: StoreId },
    /// The leader still leads.
    #[error("store {store} does not lead region {region} within {TRANSFER_LIMIT:?}")]
    NotTransferred { region: RegionId, store: StoreId },
    /// The replicated records cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl From<RegionError> for PlacementError {
    fn from(error: RegionError) -> PlacementError {
        match error {
            RegionError::NotLeader { .. } | RegionError::RegionNotFound { .. } => PlacementError::NotLeader,
            other => PlacementError::Region(other),
        }
    }
}

impl From<ProposeError> for PlacementError {
    fn from(error: ProposeError) -> PlacementError {
        match error {
            ProposeError::Region(error) => error.into(),
            other => PlacementError::Propose(other),
        }
    }
}

/// The leader's view of the cluster, during one term.
struct LeaderView {
    term: Term,
    view: ClusterView,
    registered: Vec<StoreRecord>,
    /// When it began, by the node's uptime.
    began: Duration,
    /// The last choice of the safe point, its time and the ttl.
    choice: Option<(Choice, Timestamp, Duration)>,
}

/// The placement role; see the module documentation.
pub(crate) struct Placement<S: Store> {
    store: StoreHandle<S>,
    /// Serialises changes of the registry.
    registry_lock: tokio::sync::Mutex<()>,
    leader_view: Mutex<Option<LeaderView>>,
}

impl<S: Store> Placement<S> {
    /// The placement role over the node's own store.
    pub(crate) fn new(store: StoreHandle<S>) -> Placement<S> {
        Placement { store, registry_lock: tokio::sync::Mutex::new(()), leader_view: Mutex::new(None) }
    }

    /// A snapshot of the system region from which a change can be proposed. `NotLeader` unless this store leads it.
    fn snapshot(&self) -> Result<RegionSnapshot<S>, PlacementError> {
        let status = self.store.region(RegionId::SYSTEM).ok_or(PlacementError::NotLeader)?;
        if !status.is_leader {
            return Err(PlacementError::NotLeader);
        }
        Ok(self.store.evaluate(RegionContext { region: RegionId::SYSTEM, epoch: status.region.epoch })?)
    }

    /// Adds a store to the cluster and returns its id. Idempotent: a caller that got no answer retries with the same
    /// `instance`.
    pub(crate) async fn register(
        &self,
        address: &str,
        locality: &str,
        instance: InstanceId,
        now: Duration,
    ) -> Result<StoreId, PlacementError> {
        let _guard = self.registry_lock.lock().await;
        let snapshot = self.snapshot()?;
        let abandoned = match registry::admit(&registry::stores(&snapshot)?, address, instance) {
            Admission::Known(store) => return Ok(store),
            Admission::Taken(store) => {
                return Err(PlacementError::AddressTaken { address: address.to_string(), store });
            }
            Admission::New { abandoned } => abandoned,
        };
        let mut batch = WriteBatch::new();
        let id = StoreId::new(registry::allocate_ids(&snapshot, &mut batch, 1)?);
        let (address, locality) = (address.to_string(), locality.to_string());
        registry::put_store(&mut batch, &StoreRecord { id, address, locality, joining: Some(instance) });
        if let Some(abandoned) = abandoned {
            registry::remove_store(&mut batch, abandoned);
        }
        self.store.propose(&snapshot, batch).await?;
        self.reload_registry((&snapshot, now), abandoned)?;
        Ok(id)
    }

    /// Processes a store's heartbeat. Writes the store's record if it is new or if its address or locality changed.
    /// Returns the records of all stores.
    pub(crate) async fn heartbeat(
        &self,
        heartbeat: Heartbeat,
        now: Duration,
    ) -> Result<Vec<StoreRecord>, PlacementError> {
        let snapshot = self.snapshot()?;
        let record = StoreRecord {
            id: heartbeat.store,
            address: heartbeat.address.clone(),
            locality: heartbeat.locality.clone(),
            joining: None,
        };
        let known = self.with_view(&snapshot, now, |leader_view| {
            leader_view.view.apply_heartbeat(heartbeat, now);
            leader_view.registered.contains(&record)
        })?;
        if !known {
            let _guard = self.registry_lock.lock().await;
            let snapshot = self.snapshot()?;
            let mut batch = WriteBatch::new();
            registry::put_store(&mut batch, &record);
            self.store.propose(&snapshot, batch).await?;
            self.reload_registry((&snapshot, now), None)?;
        }
        self.with_view(&snapshot, now, |leader_view| leader_view.registered.clone())
    }

    /// Chooses the safe point of garbage collection and writes it down, which announces it. Returns the one that is
    /// written down. `oracle_now`: about the oracle's time; `now`: by the node's uptime.
    pub(crate) async fn announce_safe_point(
        &self,
        (oracle_now, ttl): (Timestamp, Duration),
        now: Duration,
    ) -> Result<Timestamp, PlacementError> {
        let _guard = self.registry_lock.lock().await;
        let snapshot = self.snapshot()?;
        let present = registry::safe_point(&snapshot)?;
        let choice = self.with_view(&snapshot, now, |leader_view| {
            let choice = safe_point::choose(present, (oracle_now, ttl), &leader_view.view, (leader_view.began, now));
            leader_view.choice = Some((choice, oracle_now, ttl));
            choice
        })?;
        if choice.safe_point > present {
            let mut batch = WriteBatch::new();
            registry::put_safe_point(&mut batch, choice.safe_point);
            self.store.propose(&snapshot, batch).await?;
        }
        Ok(choice.safe_point)
    }

    /// Makes `to` the leader of a region that this store leads, and waits until that is so. Works for every region, not
    /// only for leaders of the system region.
    pub(crate) async fn transfer_leader(&self, region: RegionId, to: StoreId) -> Result<(), PlacementError> {
        let leads = |status: &RegionStatus| status.leader.as_ref().is_some_and(|leader| leader.store == to);
        let status = self.store.region(region).ok_or(PlacementError::NotLeaderOf(region))?;
        if !status.is_leader {
            return Err(PlacementError::NotLeaderOf(region));
        }
        if leads(&status) {
            return Ok(());
        }
        if status.region.peer_on(to).is_none_or(|peer| peer.role != PeerRole::Voter) {
            return Err(PlacementError::NoVoter { region, store: to });
        }
        self.store.transfer_leader(region, to).map_err(|error| match error {
            RegionError::NotLeader { .. } | RegionError::RegionNotFound { .. } => PlacementError::NotLeaderOf(region),
            other => PlacementError::Region(other),
        })?;
        let done = async {
            while !self.store.region(region).as_ref().is_some_and(leads) {
                tokio::time::sleep(TRANSFER_POLL).await;
            }
        };
        let not_transferred = |_| PlacementError::NotTransferred { region, store: to };
        tokio::time::timeout(TRANSFER_LIMIT, done).await.map_err(not_transferred)
    }

    /// The status of the cluster, as this leader sees it.
    pub(crate) fn status(&self, cluster: ClusterId, now: Duration) -> Result<proto::StatusResponse, PlacementError> {
        let snapshot = self.snapshot()?;
        let safe_point = registry::safe_point(&snapshot)?;
        self.with_view(&snapshot, now, |leader_view| proto::StatusResponse {
            gc: leader_view.choice.map(|choice| gc_response(safe_point, choice)),
            ..status_response(&leader_view.view, cluster, now)
        })
    }

    /// Runs `f` on the view of the snapshot's term, after creating a new view if the term is new.
    fn with_view<T>(
        &self,
        snapshot: &RegionSnapshot<S>,
        now: Duration,
        f: impl FnOnce(&mut LeaderView) -> T,
    ) -> Result<T, PlacementError> {
        let mut leader_view = self.leader_view.lock();
        if leader_view.as_ref().is_none_or(|leader_view| leader_view.term < snapshot.term) {
            let registered = registry::stores(snapshot)?;
            let mut view = ClusterView::new();
            for record in &registered {
                view.add_registered(record.id, &record.address, &record.locality);
            }
            *leader_view = Some(LeaderView { term: snapshot.term, view, registered, began: now, choice: None });
        }
        match leader_view.as_mut() {
            Some(leader_view) if leader_view.term == snapshot.term => Ok(f(leader_view)),
            // The snapshot is of an older term than the view: this store was elected again meanwhile.
            _ => Err(PlacementError::NotLeader),
        }
    }

    /// Reads the registry again after a change that was proposed on `basis` and removed the store `gone`.
    fn reload_registry(
        &self,
        (basis, now): (&RegionSnapshot<S>, Duration),
        gone: Option<StoreId>,
    ) -> Result<(), PlacementError> {
        let registered = registry::stores(&self.snapshot()?)?;
        self.with_view(basis, now, |leader_view| {
            if let Some(gone) = gone {
                leader_view.view.remove(gone);
            }
            for record in &registered {
                leader_view.view.add_registered(record.id, &record.address, &record.locality);
            }
            leader_view.registered = registered;
        })
    }
}

fn gc_response(safe_point: Timestamp, (choice, now, ttl): (Choice, Timestamp, Duration)) -> proto::GarbageCollection {
    let age_ms = |ts: Timestamp| now.physical_ms().saturating_sub(ts.physical_ms());
    let (held_by_store, held_by_session, held_ms) = match choice.held_by {
        HeldBy::Ttl => (0, 0, 0),
        HeldBy::Node(store, oldest) => (store.get(), oldest.session.unwrap_or(0), age_ms(oldest.bound)),
        HeldBy::Unheard(store) => (store.get(), 0, 0),
    };
    proto::GarbageCollection {
        safe_point: safe_point.raw(),
        age_ms: if safe_point == Timestamp::ZERO { 0 } else { age_ms(safe_point) },
        ttl_ms: ttl.as_millis() as u64,
        held_by_store,
        held_by_session,
        held_ms,
    }
}

fn status_response(view: &ClusterView, cluster: ClusterId, now: Duration) -> proto::StatusResponse {
    let stores = view.stores().map(|entry| {
        let (state, silent) = match view.liveness(entry.heartbeat.store, now) {
            Liveness::Alive => ("alive", Duration::ZERO),
            Liveness::Silent(silent) => ("silent", silent),
            Liveness::Unknown => ("unknown", Duration::ZERO),
        };
        proto::StoreStatus {
            store_id: entry.heartbeat.store.get(),
            address: entry.heartbeat.address.clone(),
            pg_address: entry.heartbeat.pg_address.clone(),
            locality: entry.heartbeat.locality.clone(),
            version: entry.heartbeat.version.clone(),
            state: state.to_string(),
            silent_ms: silent.as_millis() as u64,
            replicas: entry.replicas as u32,
            leaders: entry.leaders as u32,
        }
    });
    let regions = view.regions().map(|entry| {
        // Clients cannot use a silent leader.
        let leader = entry.leader.filter(|(_, store)| view.liveness(*store, now) == Liveness::Alive);
        proto::RegionStatus {
            region: Some(proto::Region::from(&entry.region)),
            leader_store: leader.map_or(0, |(_, store)| store.get()),
            term: leader.map_or(0, |(term, _)| term.get()),
            applied: entry
                .applied
                .iter()
                .map(|(store, (index, behind))| proto::Applied {
                    store_id: store.get(),
                    index: index.get(),
                    behind_ms: behind.map(|behind| behind.as_millis() as u64),
                })
                .collect(),
        }
    });
    proto::StatusResponse { cluster_id: cluster.get(), stores: stores.collect(), regions: regions.collect(), gc: None }
}
