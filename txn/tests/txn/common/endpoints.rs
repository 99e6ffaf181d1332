//! Endpoints that fail in ways the in-memory cluster does not: a coordinator that stops, lost answers, wrong snapshots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kv::api::{Request, RequestBody, Response};
use kv::client::{CallError, Endpoint};
use kv::memory::MemoryCluster;
use raftstore::{RegionStatus, StoreId};
use tokio::sync::watch;
use tokio::time::Instant;
use tso::Timestamp;

type Answer = Result<Response, CallError>;

/// Passes `calls` requests. Then the coordinator sends nothing more until it is woken.
pub(crate) struct Stalling {
    endpoint: Arc<dyn Endpoint>,
    left: AtomicU64,
    /// The first stalled request is delivered, and only its answer is delayed.
    deliver_last: bool,
    awake: watch::Sender<bool>,
    stalled: watch::Sender<bool>,
}

impl Stalling {
    pub(crate) fn new(endpoint: Arc<dyn Endpoint>, calls: u64, deliver_last: bool) -> Arc<Stalling> {
        let (awake, _) = watch::channel(false);
        let (stalled, _) = watch::channel(false);
        Arc::new(Stalling { endpoint, left: AtomicU64::new(calls), deliver_last, awake, stalled })
    }

    /// Whether the coordinator has stalled.
    pub(crate) fn has_stalled(&self) -> bool {
        *self.stalled.borrow()
    }

    /// Waits until the coordinator has stalled.
    pub(crate) async fn until_stalled(&self) {
        until(&self.stalled).await;
    }

    /// Resumes the coordinator.
    pub(crate) fn wake(&self) {
        self.awake.send_replace(true);
    }
}

async fn until(signal: &watch::Sender<bool>) {
    let mut signal = signal.subscribe();
    signal.wait_for(|given| *given).await.expect("the sender is still there");
}

impl Endpoint for Stalling {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let through = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if through.is_ok() || *self.awake.borrow() {
                return self.endpoint.call(store, request).await;
            }
            let first = !self.stalled.send_replace(true);
            if first && self.deliver_last {
                let answer = self.endpoint.call(store, request).await;
                until(&self.awake).await;
                return answer;
            }
            until(&self.awake).await;
            self.endpoint.call(store, request).await
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.endpoint.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.endpoint.stores()
    }
}

/// The fault injected into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFault {
    /// None: it arrives at once.
    Pass,
    /// It arrives after this delay.
    Late(Duration),
    /// Its store is unreachable.
    Unreachable,
    /// It is never delivered and never answered.
    Silence,
}

/// Chooses the fault of a request, given its body and the time since the test began.
type ChooseFault = dyn Fn(&RequestBody, Duration) -> RequestFault + Send + Sync;

/// Injects into each request the fault that `fault` chooses.
pub(crate) struct FaultyEndpoint {
    cluster: MemoryCluster,
    began: Instant,
    fault: Box<ChooseFault>,
}

impl FaultyEndpoint {
    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    pub(crate) fn new(
        cluster: &MemoryCluster,
        fault: impl Fn(&RequestBody, Duration) -> RequestFault + Send + Sync + 'static,
    ) -> Arc<FaultyEndpoint> {
        Arc::new(FaultyEndpoint { cluster: cluster.clone(), began: Instant::now(), fault: Box::new(fault) })
    }
}

impl Endpoint for FaultyEndpoint {
    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            match (self.fault)(&request.body, self.began.elapsed()) {
                RequestFault::Pass => {}
                RequestFault::Late(delay) => tokio::time::sleep(delay).await,
                RequestFault::Unreachable => return Err(CallError::Unreachable { store, why: "injected".to_owned() }),
                RequestFault::Silence => std::future::pending().await,
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

/// The fault injected into commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitFault {
    /// Not delivered, and the sender knows it.
    Unreachable,
    /// Not delivered, and the sender does not know it.
    LostRequest,
    /// Executed, and the sender does not know it.
    LostReply,
}

/// Injects one fault into all commits; other requests pass.
pub(crate) struct NoCommits {
    pub(crate) cluster: MemoryCluster,
    pub(crate) fault: CommitFault,
}

impl Endpoint for NoCommits {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if !matches!(request.body, RequestBody::Commit { .. }) {
                return self.cluster.call(store, request).await;
            }
            let why = "injected".to_owned();
            match self.fault {
                CommitFault::Unreachable => return Err(CallError::Unreachable { store, why }),
                CommitFault::LostRequest => {}
                CommitFault::LostReply => drop(self.cluster.call(store, request).await),
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

/// Injects one fault into all prewrites, and if `also_settling` into what settles their outcome.
pub(crate) struct NoPrewrites {
    pub(crate) cluster: MemoryCluster,
    pub(crate) fault: CommitFault,
    pub(crate) also_settling: bool,
}

impl Endpoint for NoPrewrites {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let why = "injected".to_owned();
            match (&request.body, self.fault) {
                (RequestBody::Prewrite(_), CommitFault::Unreachable) => Err(CallError::Unreachable { store, why }),
                (RequestBody::Prewrite(_), CommitFault::LostRequest) => Err(CallError::Lost { store, why }),
                (RequestBody::Prewrite(_), CommitFault::LostReply) => {
                    drop(self.cluster.call(store, request).await);
                    Err(CallError::Lost { store, why })
                }
                (RequestBody::Rollback { .. } | RequestBody::CheckLocks(_), _) if self.also_settling => {
                    Err(CallError::Lost { store, why })
                }
                _ => self.cluster.call(store, request).await,
            }
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

/// A planted bug: point reads return the newest version instead of the snapshot's.
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
