//! The placement role of a node: active while its store leads the system region.
//!
//! An edge around two pure parts: it reads and proposes the replicated registry, and feeds the view of the cluster with heartbeats.
//! Changes of the registry are made one at a time, each proposed on the snapshot it was computed from, so none is lost; a proposal of
//! a leader that lost its term is refused by Raft.

use std::time::Duration;

use engine::WriteBatch;
use engine::store::Store;
use kv::placement::registry::{self, Admission, InstanceId, RegistryError, StoreRecord};
use kv::placement::{ClusterView, Heartbeat, Liveness};
use parking_lot::Mutex;
use raftstore::transport::ClusterId;
use raftstore::{ProposeError, RegionContext, RegionError, RegionId, RegionSnapshot, StoreHandle, StoreId, Term};

use super::proto;

/// Why placement cannot answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlacementError {
    /// Another store leads the system region, if anyone.
    #[error("this node does not lead the system region")]
    NotLeader,
    /// The address is taken.
    #[error(
        "{address} belongs to node {store} of this cluster: start it with its own data directory, or take another address"
    )]
    AddressTaken { address: String, store: StoreId },
    /// The region refused for now.
    #[error(transparent)]
    Region(RegionError),
    /// The change may or may not be made; it is safe to ask again.
    #[error(transparent)]
    Propose(ProposeError),
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

/// The view of one term as leader.
struct Reign {
    term: Term,
    view: ClusterView,
    registered: Vec<StoreRecord>,
}

/// See the module documentation.
pub(crate) struct Placement<S: Store> {
    store: StoreHandle<S>,
    /// One change of the registry at a time.
    registry_turn: tokio::sync::Mutex<()>,
    reign: Mutex<Option<Reign>>,
}

impl<S: Store> Placement<S> {
    /// Over the node's own store.
    pub(crate) fn new(store: StoreHandle<S>) -> Placement<S> {
        Placement { store, registry_turn: tokio::sync::Mutex::new(()), reign: Mutex::new(None) }
    }

    /// The snapshot of the system region that a change is computed from; `NotLeader` unless this store leads it.
    fn snapshot(&self) -> Result<RegionSnapshot<S>, PlacementError> {
        let status = self.store.region(RegionId::SYSTEM).ok_or(PlacementError::NotLeader)?;
        if !status.is_leader {
            return Err(PlacementError::NotLeader);
        }
        Ok(self.store.evaluate(RegionContext { region: RegionId::SYSTEM, epoch: status.region.epoch })?)
    }

    /// Adds a store to the cluster and tells its number. Whoever is not sure of having been heard asks again, with the same `instance`.
    pub(crate) async fn register(
        &self,
        address: &str,
        locality: &str,
        instance: InstanceId,
    ) -> Result<StoreId, PlacementError> {
        let _turn = self.registry_turn.lock().await;
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
        self.remember(&snapshot, abandoned)?;
        Ok(id)
    }

    /// Takes in a store's report; records it anew if it is the first, or if address or place changed. Returns every known store.
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
        let known = self.with_reign(&snapshot, |reign| {
            reign.view.apply_heartbeat(heartbeat, now);
            reign.registered.contains(&record)
        })?;
        if !known {
            let _turn = self.registry_turn.lock().await;
            let snapshot = self.snapshot()?;
            let mut batch = WriteBatch::new();
            registry::put_store(&mut batch, &record);
            self.store.propose(&snapshot, batch).await?;
            self.remember(&snapshot, None)?;
        }
        self.with_reign(&snapshot, |reign| reign.registered.clone())
    }

    /// The cluster as this leader sees it.
    pub(crate) fn status(&self, cluster: ClusterId, now: Duration) -> Result<proto::StatusResponse, PlacementError> {
        let snapshot = self.snapshot()?;
        self.with_reign(&snapshot, |reign| describe(&reign.view, cluster, now))
    }

    /// Runs `f` on the view of the present term, beginning a new one if the term is new.
    fn with_reign<T>(
        &self,
        snapshot: &RegionSnapshot<S>,
        f: impl FnOnce(&mut Reign) -> T,
    ) -> Result<T, PlacementError> {
        let mut reign = self.reign.lock();
        if reign.as_ref().is_none_or(|reign| reign.term < snapshot.term) {
            let registered = registry::stores(snapshot)?;
            let mut view = ClusterView::new();
            for record in &registered {
                view.add_registered(record.id, &record.address, &record.locality);
            }
            *reign = Some(Reign { term: snapshot.term, view, registered });
        }
        match reign.as_mut() {
            Some(reign) if reign.term == snapshot.term => Ok(f(reign)),
            // Our snapshot is of an older term than the view: leadership came back meanwhile.
            _ => Err(PlacementError::NotLeader),
        }
    }

    /// Reads the registry again after a change that was proposed on `basis`, and that removed `gone`.
    fn remember(&self, basis: &RegionSnapshot<S>, gone: Option<StoreId>) -> Result<(), PlacementError> {
        let registered = registry::stores(&self.snapshot()?)?;
        self.with_reign(basis, |reign| {
            if let Some(gone) = gone {
                reign.view.remove(gone);
            }
            for record in &registered {
                reign.view.add_registered(record.id, &record.address, &record.locality);
            }
            reign.registered = registered;
        })
    }
}

fn describe(view: &ClusterView, cluster: ClusterId, now: Duration) -> proto::StatusResponse {
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
        // A leader that is silent is none that a client can use.
        let leader = entry.leader.filter(|(_, store)| view.liveness(*store, now) == Liveness::Alive);
        proto::RegionStatus {
            region: Some(proto::Region::from(&entry.region)),
            leader_store: leader.map_or(0, |(_, store)| store.get()),
            term: leader.map_or(0, |(term, _)| term.get()),
            applied: entry
                .applied
                .iter()
                .map(|(store, index)| proto::Applied { store_id: store.get(), index: index.get() })
                .collect(),
        }
    });
    proto::StatusResponse { cluster_id: cluster.get(), stores: stores.collect(), regions: regions.collect() }
}
