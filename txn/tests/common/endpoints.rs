//! Endpoints that fail in ways a cluster does not: a coordinator that stops, answers that never come, reads that lie.

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

/// Lets `calls` requests through; then nothing leaves the coordinator any more, until it is woken.
pub(crate) struct Stalling {
    endpoint: Arc<dyn Endpoint>,
    left: AtomicU64,
    /// The request that it stalls on is delivered, and only its answer is late.
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

    /// Whether the coordinator has stopped.
    pub(crate) fn has_stalled(&self) -> bool {
        *self.stalled.borrow()
    }

    /// Waits until the coordinator has stopped.
    pub(crate) async fn until_stalled(&self) {
        until(&self.stalled).await;
    }

    /// The coordinator goes on.
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

/// What becomes of a request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// It arrives at once.
    Pass,
    /// It arrives after this time.
    Late(Duration),
    /// Its store is not reached.
    Unreachable,
    /// Nothing is heard of it.
    Silence,
}

/// The course of a request that is sent at this time after the test began.
type Chosen = dyn Fn(&RequestBody, Duration) -> Course + Send + Sync;

/// Requests go the way that `course` says, given what they are and the time since the test began.
pub(crate) struct Courses {
    cluster: MemoryCluster,
    began: Instant,
    course: Box<Chosen>,
}

impl Courses {
    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    pub(crate) fn new(
        cluster: &MemoryCluster,
        course: impl Fn(&RequestBody, Duration) -> Course + Send + Sync + 'static,
    ) -> Arc<Courses> {
        Arc::new(Courses { cluster: cluster.clone(), began: Instant::now(), course: Box::new(course) })
    }
}

impl Endpoint for Courses {
    #[allow(clippy::disallowed_methods, reason = "tokio's time is paused in these tests")]
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            match (self.course)(&request.body, self.began.elapsed()) {
                Course::Pass => {}
                Course::Late(delay) => tokio::time::sleep(delay).await,
                Course::Unreachable => return Err(CallError::Unreachable { store, why: "injected".to_owned() }),
                Course::Silence => std::future::pending().await,
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
