//! The timestamp oracle of a node: where it finds the other nodes, and where its clients find it.

use std::sync::Arc;

use engine::store::Store;
use futures::future::BoxFuture;
use kv::placement::oracle::{OtherNodes, RegionWindow};
use link::Links;
use raftstore::{RegionId, StoreHandle, StoreId};
use tso::{TimeReport, TsoService};

use super::members::Members;

/// The other nodes by the address book, asked over links.
struct KnownNodes {
    members: Members,
    links: Arc<Links>,
}

impl OtherNodes for KnownNodes {
    fn address(&self, store: StoreId) -> Option<String> {
        self.members.get(store)
    }

    fn ask_time(&self, store: StoreId, recorded: Option<String>) -> BoxFuture<'_, TimeReport> {
        let find = move || self.members.get(store).or_else(|| recorded.clone());
        Box::pin(tso::remote::ask_time(find, &self.links))
    }
}

/// The address of the leader of the system region, as far as this node's replica and address book know it.
pub(super) fn leader_address<S: Store>(store: &StoreHandle<S>, members: &Members) -> Option<String> {
    let leader = store.region(RegionId::SYSTEM)?.leader?;
    members.get(leader.store)
}

/// The nodes that may be the oracle; the leader of the system region is.
pub(crate) struct OracleDirectory<S: Store> {
    /// This node's store.
    pub(crate) store: StoreHandle<S>,
    /// The address book.
    pub(crate) members: Members,
}

impl<S: Store> tso::NodeDirectory for OracleDirectory<S> {
    fn leader(&self) -> Option<String> {
        leader_address(&self.store, &self.members)
    }

    fn nodes(&self) -> Vec<String> {
        self.members.all().into_iter().map(|(_, address)| address).collect()
    }
}

/// Builds the window and the oracle over it.
pub(crate) fn oracle<S: Store>(
    members: Members,
    links: Arc<Links>,
    registry: &prometheus::Registry,
) -> prometheus::Result<(Arc<RegionWindow<S>>, TsoService)> {
    let window = Arc::new(RegionWindow::new(Arc::new(KnownNodes { members, links })));
    let metrics = tso::metrics::ServiceMetrics::new(registry)?;
    let service = TsoService::new(window.clone(), tso::service::system_clock(), Some(metrics));
    Ok((window, service))
}
