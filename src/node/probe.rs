//! The health probe: checks whether the cluster serves through this node, with the requests that a session would send.
//!
//! One probe fetches a timestamp, which needs a leader of the system region with a lease, and reads in each of the two
//! regions, whichever node leads them. It changes nothing and is bounded in time. `/healthz` shows the last result.

use std::convert::Infallible;
use std::time::Duration;

use kv::Key;
use txn::{Database, TxnError};

use crate::http::Health;
use crate::plan::DATA_START;

/// The interval between two probes.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval between two probes before the node serves for the first time: clients are waiting.
const STARTUP_INTERVAL: Duration = Duration::from_millis(200);
/// The timeout of a probe. Below that of a statement, so that the health is known before clients give up.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A key of the system region, below every catalog record.
const SYSTEM_START: &[u8] = b"m";

/// Completes when a probe succeeds. Until then `health` shows the reason of the last failure.
pub(crate) async fn until_ready(database: &Database, health: &Health) {
    while let Err(why) = probe(database, TIMEOUT).await {
        health.not_serving(format!("waiting for the cluster: {why}"));
        tokio::time::sleep(STARTUP_INTERVAL).await;
    }
}

/// Probes periodically and keeps `health` up to date. Never ends.
pub(crate) async fn watch(database: &Database, health: &Health) -> Infallible {
    loop {
        tokio::time::sleep(INTERVAL).await;
        match probe(database, TIMEOUT).await {
            Ok(()) if health.reason().is_some() => {
                tracing::info!("the cluster serves again");
                health.serving();
            }
            Ok(()) => {}
            Err(why) => {
                if health.reason().is_none() {
                    tracing::warn!(%why, "the cluster does not serve");
                }
                health.not_serving(format!("the cluster does not serve: {why}"));
            }
        }
    }
}

/// One probe. The error names the step that failed.
async fn probe(database: &Database, limit: Duration) -> Result<(), String> {
    let mut step = "a timestamp";
    let steps = async {
        let snapshot = database.begin().await?;
        for (what, key) in [("the system region", SYSTEM_START), ("the data region", DATA_START)] {
            step = what;
            snapshot.get(&Key::from_static(key)).await?;
        }
        Ok::<_, TxnError>(())
    };
    let outcome = tokio::time::timeout(limit, steps).await;
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("{step}: {error}")),
        Err(_) => Err(format!("{step}: no answer within {limit:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::BoxFuture;
    use kv::api::{Request, Response};
    use kv::client::{CallError, Client, Endpoint};
    use kv::memory::MemoryCluster;
    use parking_lot::RwLock;
    use raftstore::{RegionStatus, StoreId};
    use tso::TsoClient;

    use super::*;

    /// A cluster that is unreachable for reads of keys that begin with `cut_off`.
    struct Network {
        cluster: MemoryCluster,
        cut_off: RwLock<Option<u8>>,
    }

    impl Endpoint for Network {
        fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
            let first = match &request.body {
                kv::api::RequestBody::Get { key, .. } => key.as_bytes().first().copied(),
                _ => None,
            };
            if first.is_some() && first == *self.cut_off.read() {
                let why = "cut off".to_string();
                return Box::pin(std::future::ready(Err(CallError::Unreachable { store, why })));
            }
            self.cluster.call(store, request)
        }

        fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
            self.cluster.locate(store, key)
        }

        fn stores(&self) -> Vec<StoreId> {
            self.cluster.stores()
        }
    }

    #[tokio::test]
    async fn both_regions_must_answer() {
        let cluster = MemoryCluster::builder().split_at(Key::from_static(DATA_START)).build();
        let tso = TsoClient::new(cluster.tso());
        let network = Arc::new(Network { cluster, cut_off: RwLock::new(None) });
        let database = Database::new(Client::new(network.clone()), tso);
        assert_eq!(probe(&database, TIMEOUT).await, Ok(()));
        for (first, what) in [(b'm', "the system region"), (b't', "the data region")] {
            *network.cut_off.write() = Some(first);
            let why = probe(&database, Duration::from_millis(100)).await.unwrap_err();
            assert!(why.starts_with(what), "{why}");
        }
        *network.cut_off.write() = None;
        let health = Health::starting();
        until_ready(&database, &health).await;
        assert_eq!(health.reason(), Some("starting".to_string()), "the caller marks the node as serving");
    }
}
