//! The timestamp oracle over the system region: its mark is a record of that region, its lease the region's leader
//! lease, and it leads where the region's leader is.
//!
//! [`RegionWindow`] implements what `tso::TsoService` needs of its node. How other nodes are found and asked is the
//! node's: [`OtherNodes`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::WriteBatch;
use engine::store::Store;
use futures::future::BoxFuture;
use raftstore::ports::RoleListener;
use raftstore::{
    PeerRole, ProposeError, RegionContext, RegionError, RegionId, RegionSnapshot, StoreHandle, StoreId, Term,
};
use tso::window::{LeaderTerm, Window, WindowError};
use tso::{Inquiry, TimeReport, Timestamp, TsoClient, TsoService};

use super::registry;

/// The other nodes of the cluster, as the oracle needs them.
pub trait OtherNodes: Send + Sync + 'static {
    /// The address of a store's node, as far as it is known.
    fn address(&self, store: StoreId) -> Option<String>;
    /// Asks a node for its time until it answers: at its newest address, or at the `recorded` one. Dropped if no longer
    /// needed.
    fn ask_time(&self, store: StoreId, recorded: Option<String>) -> BoxFuture<'_, TimeReport>;
}

/// The oracle's window over the system region. It gets its store handle and the node's timestamp client late, because
/// the store needs the oracle's role listener before it is opened.
pub struct RegionWindow<S: Store> {
    store: OnceLock<StoreHandle<S>>,
    client: OnceLock<TsoClient>,
    others: Arc<dyn OtherNodes>,
}

impl<S: Store> RegionWindow<S> {
    /// A window without a store, and so without leadership.
    pub fn new(others: Arc<dyn OtherNodes>) -> RegionWindow<S> {
        RegionWindow { store: OnceLock::new(), client: OnceLock::new(), others }
    }

    /// Sets the node's store, and the client through which all its transactions get their timestamps.
    ///
    /// # Panics
    /// If it is called again.
    pub fn connect(&self, store: StoreHandle<S>, client: TsoClient) {
        assert!(self.client.set(client).is_ok(), "the node has one timestamp client");
        assert!(self.store.set(store).is_ok(), "the oracle has one store");
    }

    /// The store, and a snapshot of the system region taken while this node led it in `term`.
    fn leading(&self, term: LeaderTerm) -> Result<(&StoreHandle<S>, RegionSnapshot<S>), WindowError> {
        let store = self.store.get().ok_or(WindowError::NotLeader)?;
        let status = store.region(RegionId::SYSTEM).ok_or(WindowError::NotLeader)?;
        let context = RegionContext { region: RegionId::SYSTEM, epoch: status.region.epoch };
        let snapshot = store.evaluate(context).map_err(from_region)?;
        if snapshot.term != Term::new(term.0) {
            return Err(WindowError::NotLeader);
        }
        Ok((store, snapshot))
    }

    fn mark(snapshot: &RegionSnapshot<S>) -> Result<Timestamp, WindowError> {
        registry::tso_mark(snapshot).map(Timestamp::from_raw).map_err(|e| WindowError::Failed(e.to_string()))
    }
}

fn from_region(error: RegionError) -> WindowError {
    match error {
        RegionError::NotLeader { .. } | RegionError::RegionNotFound { .. } => WindowError::NotLeader,
        other => WindowError::Failed(other.to_string()),
    }
}

impl<S: Store> Window for RegionWindow<S> {
    fn load(&self, term: LeaderTerm) -> BoxFuture<'_, Result<Timestamp, WindowError>> {
        Box::pin(std::future::ready(self.leading(term).and_then(|(_, snapshot)| Self::mark(&snapshot))))
    }

    fn raise(&self, term: LeaderTerm, mark: Timestamp) -> BoxFuture<'_, Result<(), WindowError>> {
        Box::pin(async move {
            let (store, snapshot) = self.leading(term)?;
            if Self::mark(&snapshot)? >= mark {
                return Ok(());
            }
            let mut batch = WriteBatch::new();
            registry::put_tso_mark(&mut batch, mark.raw());
            match store.propose(&snapshot, batch).await {
                Ok(_) => Ok(()),
                Err(ProposeError::Region(error)) => Err(from_region(error)),
                Err(other) => Err(WindowError::Failed(other.to_string())),
            }
        })
    }

    fn lease_holds(&self, term: LeaderTerm) -> bool {
        self.store.get().is_some_and(|store| store.lease_holds(RegionId::SYSTEM, Term::new(term.0)))
    }

    fn quiet(&self) -> Duration {
        self.client.get().map_or(Duration::MAX, |client| client.newest().age)
    }

    fn inquire(&self, term: LeaderTerm) -> Result<Inquiry<'_>, WindowError> {
        let (store, snapshot) = self.leading(term)?;
        // The registry is complete; the address book may still lack nodes after a start. A store without a heartbeat so
        // far has run no transactions.
        let registered = registry::stores(&snapshot).map_err(|e| WindowError::Failed(e.to_string()))?;
        let joined = registered.into_iter().filter(|known| known.joining.is_none());
        let mut recorded: BTreeMap<StoreId, Option<String>> =
            joined.map(|known| (known.id, Some(known.address))).collect();
        let status = store.region(RegionId::SYSTEM).ok_or(WindowError::NotLeader)?;
        let voters = status.region.peers.iter().filter(|peer| peer.role == PeerRole::Voter);
        let voters: BTreeSet<StoreId> = voters.map(|peer| peer.store).collect();
        for voter in &voters {
            recorded.entry(*voter).or_default();
        }
        recorded.remove(&store.store_id());
        let mut inquiry = Inquiry::default();
        for (other, address) in recorded {
            let asked = if voters.contains(&other) { &mut inquiry.of_voters } else { &mut inquiry.of_others };
            asked.push(self.others.ask_time(other, address));
        }
        Ok(inquiry)
    }

    fn leader_address(&self) -> Option<String> {
        let leader = self.store.get()?.region(RegionId::SYSTEM)?.leader?;
        self.others.address(leader.store)
    }
}

/// Starts and stops the oracle with the leadership of the system region.
pub struct OracleRoleListener {
    /// The oracle of this node.
    pub service: TsoService,
}

impl RoleListener for OracleRoleListener {
    fn on_leader(&self, region: RegionId, term: Term) {
        tracing::info!(%region, %term, "leads");
        if region == RegionId::SYSTEM {
            self.service.on_leader(LeaderTerm(term.get()));
        }
    }

    fn on_step_down(&self, region: RegionId, term: Term) {
        tracing::info!(%region, %term, "no longer leads");
        if region == RegionId::SYSTEM {
            self.service.on_step_down();
        }
    }
}
