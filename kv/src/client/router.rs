//! The state that clones of a client share, and one attempt of a request.
//!
//! `locate.rs`, `dispatch.rs` and `scan.rs` add the operations on top.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::{Mutex, RwLock};
use raftstore::StoreId;
use rand::Rng;
use rand::rngs::StdRng;

use super::backoff::{Jitter, RetryClass};
use super::config::ClientConfig;
use super::congestion::Windows;
use super::endpoint::{CallError, Endpoint};
use super::hedge::Hedges;
use super::metrics::Metrics;
use super::region_cache::{RegionCache, Route};
use super::stores::StoreStates;
use crate::api::{Request, Response, ServerError};

/// Routes requests to region leaders.
pub(super) struct Router {
    pub(super) endpoint: Arc<dyn Endpoint>,
    pub(super) config: ClientConfig,
    pub(super) cache: RwLock<RegionCache>,
    /// Source of the jitter between retries.
    pub(super) rng: Mutex<StdRng>,
    pub(super) metrics: Metrics,
    /// The bounds of writes in flight at busy stores.
    pub(super) windows: Windows,
    /// This node's own store. A call to it sends no message.
    pub(super) own_store: Option<StoreId>,
    /// What reads with options have learnt of stores.
    pub(super) stores: Mutex<StoreStates>,
    /// The delays and the budget of hedges.
    pub(super) hedges: Mutex<Hedges>,
    /// Counts the reads that take replicas by turns.
    pub(super) turn: AtomicUsize,
}

impl Router {
    /// Sends a request along `route`, once.
    pub(super) async fn send(&self, route: &Route, request: Request) -> Result<Response, CallError> {
        self.metrics.requests.inc();
        let result = self.endpoint.call(route.store, request).await;
        let served = matches!(&result, Ok(_) | Err(CallError::Server(ServerError::Key(_))));
        if served && route.unproven {
            self.cache.write().confirm(route.region.id);
        }
        result
    }

    /// Updates the cache after a failed call. Returns the class of the retry, or `None` if a retry cannot help.
    pub(super) fn learn_failure(&self, route: &Route, error: &CallError) -> Option<RetryClass> {
        let mut cache = self.cache.write();
        let class = cache.on_failure(route, error);
        self.update_region_gauge(&cache);
        class
    }

    pub(super) fn update_region_gauge(&self, cache: &RegionCache) {
        self.metrics.regions.set(i64::try_from(cache.len()).unwrap_or(i64::MAX));
    }

    pub(super) fn jitter(&self) -> Jitter {
        Jitter::new(self.rng.lock().random::<f64>())
    }
}
