//! Whether the cluster serves through this node, found out by asking it what a session would.
//!
//! One look is a timestamp (which needs a leader of the system region under its lease) and a read in each of the two regions, wherever they lead. It
//! changes nothing and is bounded in time. `/healthz` shows the last look.

use std::convert::Infallible;
use std::time::Duration;

use kv::Key;
use txn::{Database, TxnError};

use crate::http::Health;
use crate::plan::DATA_START;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks while the node has not served yet: clients are waiting.
const FIRST_INTERVAL: Duration = Duration::from_millis(200);
/// A look takes no longer. Less than a statement waits, so that the answer is there before clients give up.
const LIMIT: Duration = Duration::from_secs(2);

/// Below the first key of every catalog record, in the system region.
const SYSTEM_START: &[u8] = b"m";

/// Ends when a look succeeds; until then `health` says what is missing.
pub(crate) async fn until_ready(database: &Database, health: &Health) {
    while let Err(why) = look(database, LIMIT).await {
        health.not_serving(format!("waiting for the cluster: {why}"));
        tokio::time::sleep(FIRST_INTERVAL).await;
    }
}

/// Keeps `health` true to the last look, for ever.
pub(crate) async fn watch(database: &Database, health: &Health) -> Infallible {
    loop {
        tokio::time::sleep(INTERVAL).await;
        match look(database, LIMIT).await {
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

/// One look, bounded by `limit`; the error says how far it came.
async fn look(database: &Database, limit: Duration) -> Result<(), String> {
    let mut step = "a timestamp";
    let asking = async {
        let snapshot = database.begin().await?;
        for (what, key) in [("the system region", SYSTEM_START), ("the data region", DATA_START)] {
            step = what;
            snapshot.get(&Key::from_static(key)).await?;
        }
        Ok::<_, TxnError>(())
    };
    let outcome = tokio::time::timeout(limit, asking).await;
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

    /// A cluster of which nobody can be reached for requests on keys that begin with `cut_off`.
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
        assert_eq!(look(&database, LIMIT).await, Ok(()));
        for (first, what) in [(b'm', "the system region"), (b't', "the data region")] {
            *network.cut_off.write() = Some(first);
            let why = look(&database, Duration::from_millis(100)).await.unwrap_err();
            assert!(why.starts_with(what), "{why}");
        }
        *network.cut_off.write() = None;
        let health = Health::starting();
        until_ready(&database, &health).await;
        assert_eq!(health.reason(), Some("starting".to_string()), "the node says when it serves");
    }
}
