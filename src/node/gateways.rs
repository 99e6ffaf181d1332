//! The SQL gateways of the other nodes, as a schema change reaches them: over the node service, best effort.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use raftstore::StoreId;
use raftstore::transport::ClusterId;
use sql::catalog::CatalogPeers;
use tonic::transport::Channel;

use super::members::Members;
use crate::client;
use crate::config::HostPort;
use crate::proto::RenewLeaseRequest;
use crate::proto::node_client::NodeClient;

/// Limit of one request. A node that takes longer renews its lease by itself.
const LIMIT: Duration = Duration::from_secs(2);

/// The other gateways; see the module documentation.
pub(super) struct OtherGateways {
    cluster: ClusterId,
    own: StoreId,
    members: Members,
    /// The local address of connections, if one was given.
    connect_from: Option<IpAddr>,
    /// Connections that worked, by address.
    connections: Mutex<BTreeMap<String, NodeClient<Channel>>>,
    /// The stores with a request under way. One at a time: another would not be answered sooner.
    asked: Mutex<BTreeSet<StoreId>>,
}

impl OtherGateways {
    /// The gateways of the cluster except the one of the store `own`.
    pub(super) fn new(
        (cluster, own): (ClusterId, StoreId),
        members: Members,
        connect_from: Option<IpAddr>,
    ) -> OtherGateways {
        OtherGateways { cluster, own, members, connect_from, connections: Mutex::default(), asked: Mutex::default() }
    }

    async fn renew_lease(&self, address: String) -> Result<(), String> {
        let known = self.connections.lock().remove(&address);
        let mut node = match known {
            Some(node) => node,
            None => {
                let host: HostPort = address.parse()?;
                client::connect(&host, self.connect_from).await.map_err(|error| error.to_string())?
            }
        };
        let request = RenewLeaseRequest { cluster_id: self.cluster.get() };
        node.renew_lease(request).await.map_err(|status| status.message().to_string())?;
        self.connections.lock().insert(address, node);
        Ok(())
    }
}

impl CatalogPeers for OtherGateways {
    fn renew_leases(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let others = self.members.all().into_iter().filter(|(store, _)| *store != self.own);
            let calls = others.map(|(store, address)| async move {
                if !self.asked.lock().insert(store) {
                    return;
                }
                match tokio::time::timeout(LIMIT, self.renew_lease(address)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => tracing::debug!(%store, %why, "a node does not renew its lease on the catalog yet"),
                    Err(_) => tracing::debug!(%store, "a node takes long to renew its lease on the catalog"),
                }
                self.asked.lock().remove(&store);
            });
            join_all(calls).await;
        })
    }
}
