//! Endpoints that fail in ways a cluster does not: a coordinator that stops, answers that never come, reads that lie.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kv::api::{Request, RequestBody, Response};
use kv::client::{CallError, Endpoint};
use kv::memory::MemoryCluster;
use raftstore::{RegionStatus, StoreId};
use tokio::sync::watch;
use tso::Timestamp;

type Answer = Result<Response, CallError>;

/// Lets `calls` requests through; then nothing leaves the coordinator any more, until it is woken.
pub(crate) struct Stalling {
    cluster: MemoryCluster,
    left: AtomicU64,
    /// The request that it stalls on is delivered, and only its answer is late.
    deliver_last: bool,
    awake: watch::Sender<bool>,
    stalled: AtomicBool,
}

impl Stalling {
    pub(crate) fn new(cluster: &MemoryCluster, calls: u64, deliver_last: bool) -> Arc<Stalling> {
        let (awake, _) = watch::channel(false);
        let (left, stalled) = (AtomicU64::new(calls), AtomicBool::new(false));
        Arc::new(Stalling { cluster: cluster.clone(), left, deliver_last, awake, stalled })
    }

    /// Whether the coordinator has stopped.
    pub(crate) fn has_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// The coordinator goes on.
    pub(crate) fn wake(&self) {
        self.awake.send_replace(true);
    }

    async fn until_awake(&self) {
        let mut awake = self.awake.subscribe();
        awake.wait_for(|awake| *awake).await.expect("the sender is in self");
    }
}

impl Endpoint for Stalling {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let through = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if through.is_ok() || *self.awake.borrow() {
                return self.cluster.call(store, request).await;
            }
            let first = !self.stalled.swap(true, Ordering::Relaxed);
            if first && self.deliver_last {
                let answer = self.cluster.call(store, request).await;
                self.until_awake().await;
                return answer;
            }
            self.until_awake().await;
            self.cluster.call(store, request).await
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// What happens to commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitFate {
    /// Not delivered, and the sender knows.
    Unreachable,
    /// Not delivered, and the sender does not know.
    LostRequest,
    /// Carried out, and the sender does not know.
    LostReply,
}

/// All commits meet one fate; everything else works.
pub(crate) struct NoCommits {
    pub(crate) cluster: MemoryCluster,
    pub(crate) fate: CommitFate,
}

impl Endpoint for NoCommits {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if !matches!(request.body, RequestBody::Commit { .. }) {
                return self.cluster.call(store, request).await;
            }
            let why = "injected".to_owned();
            match self.fate {
                CommitFate::Unreachable => return Err(CallError::Unreachable { store, why }),
                CommitFate::LostRequest => {}
                CommitFate::LostReply => drop(self.cluster.call(store, request).await),
            }
            Err(CallError::Lost { store, why })
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// Every write takes this long: commits outlive the ttl of their locks.
pub(crate) struct SlowWrites {
    pub(crate) cluster: MemoryCluster,
    pub(crate) delay: Duration,
}

impl Endpoint for SlowWrites {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if matches!(request.body, RequestBody::Prewrite(_) | RequestBody::Commit { .. }) {
                tokio::time::sleep(self.delay).await;
            }
            self.cluster.call(store, request).await
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// The prewrite of the primary takes this long on its way, while other keys are locked.
pub(crate) struct LatePrimary {
    pub(crate) cluster: MemoryCluster,
    pub(crate) delay: Duration,
}

impl Endpoint for LatePrimary {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if let RequestBody::Prewrite(prewrite) = &request.body
                && prewrite.mutations.iter().any(|mutation| mutation.key == prewrite.primary)
            {
                tokio::time::sleep(self.delay).await;
            }
            self.cluster.call(store, request).await
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// A planted bug: point reads see the newest version, not the snapshot's.
pub(crate) struct NoSnapshots(pub(crate) MemoryCluster);

impl Endpoint for NoSnapshots {
    fn call(&self, store: StoreId, mut request: Request) -> BoxFuture<'_, Answer> {
        if let RequestBody::Get { start_ts, .. } = &mut request.body {
            *start_ts = Timestamp::MAX.prev();
        }
        self.0.call(store, request)
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.0.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.0.stores()
    }
}
