//! The client of the key-value layer: finds the leader of each key's region, retries what was refused, and gives
//! callers whole-cluster operations.
//!
//! The way of a request:
//! 1. [`Client`] turns an operation over keys into items (`dispatch.rs`, `scan.rs`).
//! 2. [`RegionCache`] says which region and replica each item belongs to; what it does not know is asked of stores
//!    (`locate.rs`).
//! 3. [`Endpoint`] carries one request per region: in this process ([`RoutedEndpoint`]) or over gRPC
//!    ([`RemoteEndpoint`]).
//! 4. A failure is learnt from (`region_cache.rs`), waited out (`backoff.rs`, `retry.rs`) and only what is left is sent
//!    again.
//!
//! Guarantees: every operation ends in bounded time. Reads and idempotent writes are repeated after a lost answer. A
//! commit that may have been delivered and was never answered ends as [`ClientError::Undetermined`], never as a
//! failure.

mod backoff;
mod bound;
mod config;
mod dispatch;
mod endpoint;
mod error;
mod locate;
mod metrics;
mod region_cache;
mod remote;
mod retry;
mod routed;
mod scan;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use prometheus::Registry;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tso::Timestamp;

pub use backoff::{Backoff, Jitter, RetryClass};
pub use config::ClientConfig;
pub use endpoint::{CallError, Endpoint};
pub use error::ClientError;
pub use region_cache::{RegionCache, Route};
pub use remote::{BadAddress, RemoteConfig, RemoteEndpoint};
pub use routed::{LocalStore, RoutedEndpoint};
pub use scan::{Page, ScanRange};

use crate::api::{CheckTxnStatusRequest, Mutation, PrewriteRequest, Request, RequestBody, Response, TxnStatus};
use crate::key::Key;
use crate::size::{decision_bytes, prewrite_bytes};
use dispatch::Job;
use metrics::Metrics;
use retry::{Nature, Retry};

/// The client; clones share the region cache.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

/// What clones of a client share.
struct Shared {
    endpoint: Arc<dyn Endpoint>,
    config: ClientConfig,
    cache: RwLock<RegionCache>,
    rng: Mutex<StdRng>,
    metrics: Metrics,
}

impl Client {
    /// A client over `endpoint` with default settings and metrics that nobody reads.
    pub fn new(endpoint: Arc<dyn Endpoint>) -> Client {
        #[expect(clippy::expect_used, reason = "the defaults are valid, and a fresh registry holds no duplicate")]
        Client::with_config(endpoint, ClientConfig::default(), &Registry::new()).expect("defaults are valid")
    }

    /// A client with settings, counting into `registry`. Fails on an invalid setting, or if the registry already holds
    /// a client's metrics.
    pub fn with_config(
        endpoint: Arc<dyn Endpoint>,
        config: ClientConfig,
        registry: &Registry,
    ) -> Result<Client, ClientError> {
        config.validate().map_err(ClientError::Failed)?;
        let metrics = Metrics::new(registry).map_err(|error| ClientError::Failed(error.to_string()))?;
        #[expect(clippy::disallowed_methods, reason = "the edge where jitter gets its seed; settings may fix it")]
        let seed = config.seed.unwrap_or_else(rand::random);
        let cache = RwLock::new(RegionCache::new(config.cached_regions));
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        Ok(Client { shared: Arc::new(Shared { endpoint, config, cache, rng, metrics }) })
    }

    /// The newest value committed at or before `start_ts`.
    pub async fn get(&self, key: &Key, start_ts: Timestamp) -> Result<Option<Bytes>, ClientError> {
        let body = || RequestBody::Get { key: key.clone(), start_ts };
        match self.shared.single(key, self.shared.repeatable(), body).await? {
            Response::Value(value) => Ok(value),
            other => Err(unexpected("Get", &other)),
        }
    }

    /// The same for many keys, over regions in parallel, in key order; absent keys are left out. On `Locked`, the locks
    /// that all regions reported. Holds all values at once: who need not, asks by [`Client::batch_get_page`].
    pub async fn batch_get(&self, keys: &[Key], start_ts: Timestamp) -> Result<Vec<(Key, Bytes)>, ClientError> {
        self.points(keys, start_ts, usize::MAX).await.map(|page| page.pairs)
    }

    /// The same, as far as it fits about one page: `resume` is the first key, in key order, that was left out.
    pub async fn batch_get_page(&self, keys: &[Key], start_ts: Timestamp) -> Result<Page, ClientError> {
        self.points(keys, start_ts, self.shared.config.page_bytes as usize).await
    }

    async fn points(&self, keys: &[Key], start_ts: Timestamp, enough: usize) -> Result<Page, ClientError> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let job = Job {
            nature: Nature::Repeatable,
            weigh: &decision_bytes,
            body: &|keys| RequestBody::BatchGet { keys, start_ts },
            enough,
        };
        let mut found = Vec::with_capacity(keys.len());
        let answers = self.shared.fan_out(keys, &job).await?;
        for response in answers.responses {
            match response {
                Response::Pairs { pairs, .. } => found.extend(pairs),
                other => return Err(unexpected("BatchGet", &other)),
            }
        }
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let resume = answers.rest.into_iter().min();
        if let Some(resume) = &resume {
            // Regions further on may have answered before this one: a page has no gap.
            found.truncate(found.partition_point(|(key, _)| key < resume));
        }
        Ok(Page { pairs: found, resume })
    }

    /// One page of a range, at most `limit` pairs (with a limit of 0, none); crosses region boundaries, and says
    /// through `resume` where to go on.
    pub async fn scan(&self, range: &ScanRange, start_ts: Timestamp, limit: u32) -> Result<Page, ClientError> {
        self.shared.scan(range, start_ts, limit).await
    }

    /// Prewrites all mutations, regions in parallel. On failure some may be prewritten: the caller rolls back. `ttl_ms`
    /// is asked before every attempt, since a lock's life is counted from start_ts while attempts take their time.
    pub async fn prewrite(
        &self,
        mutations: Vec<Mutation>,
        primary: &Key,
        start_ts: Timestamp,
        ttl_ms: impl Fn() -> u64 + Sync,
    ) -> Result<(), ClientError> {
        let body = |mutations| {
            let (primary, ttl_ms) = (primary.clone(), ttl_ms());
            RequestBody::Prewrite(PrewriteRequest { mutations, primary, start_ts, ttl_ms })
        };
        let weigh = |mutation: &Mutation| prewrite_bytes(mutation, primary);
        let job = Job { nature: Nature::Repeatable, weigh: &weigh, body: &body, enough: usize::MAX };
        self.shared.fan_out(mutations, &job).await.map(drop)
    }

    /// Carries a decision to keys, regions in parallel.
    async fn decide(
        &self,
        keys: &[Key],
        nature: Nature,
        body: &(dyn Fn(Vec<Key>) -> RequestBody + Sync),
    ) -> Result<(), ClientError> {
        let job = Job { nature, weigh: &decision_bytes, body, enough: usize::MAX };
        self.shared.fan_out(keys.to_vec(), &job).await.map(drop)
    }

    /// Commits keys, regions in parallel. `Undetermined` if an answer was lost and never made up for.
    pub async fn commit(&self, keys: &[Key], start_ts: Timestamp, commit_ts: Timestamp) -> Result<(), ClientError> {
        self.decide(keys, Nature::Commit, &|keys| RequestBody::Commit { keys, start_ts, commit_ts }).await
    }

    /// Commits the primary, and in the same request those of `others` that its region holds: they take effect together
    /// or not at all. Returns the others that are left. `Undetermined` if an answer was lost and never made up for;
    /// any other failure only if surely nothing was done.
    pub async fn commit_primary(
        &self,
        primary: &Key,
        others: &[Key],
        start_ts: Timestamp,
        commit_ts: Timestamp,
    ) -> Result<Vec<Key>, ClientError> {
        self.shared.commit_primary(primary, others, start_ts, commit_ts).await
    }

    /// Rolls keys back, regions in parallel.
    pub async fn rollback(&self, keys: &[Key], start_ts: Timestamp) -> Result<(), ClientError> {
        self.decide(keys, Nature::Repeatable, &|keys| RequestBody::Rollback { keys, start_ts }).await
    }

    /// Asks the region of the primary for the fate of a transaction.
    pub async fn check_txn_status(&self, request: CheckTxnStatusRequest) -> Result<TxnStatus, ClientError> {
        let body = || RequestBody::CheckTxnStatus(request.clone());
        match self.shared.single(&request.primary, self.shared.repeatable(), body).await? {
            Response::Status(status) => Ok(status),
            other => Err(unexpected("CheckTxnStatus", &other)),
        }
    }

    /// Commits or rolls back the locks of a decided transaction.
    pub async fn resolve_locks(
        &self,
        keys: &[Key],
        start_ts: Timestamp,
        commit_ts: Option<Timestamp>,
    ) -> Result<(), ClientError> {
        self.decide(keys, Nature::Repeatable, &|keys| RequestBody::ResolveLock { keys, start_ts, commit_ts }).await
    }

    /// Extends the primary lock to `ttl_ms`, which is asked before every attempt; returns the ttl in force. Gives up
    /// after about `limit`: a heartbeat that is late is worth less than the next one.
    pub async fn heartbeat(
        &self,
        primary: &Key,
        start_ts: Timestamp,
        ttl_ms: impl Fn() -> u64,
        limit: Duration,
    ) -> Result<u64, ClientError> {
        let body = || RequestBody::Heartbeat { primary: primary.clone(), start_ts, ttl_ms: ttl_ms() };
        match self.shared.single(primary, Retry::within(limit, Nature::Repeatable), body).await? {
            Response::Ttl(ttl_ms) => Ok(ttl_ms),
            other => Err(unexpected("Heartbeat", &other)),
        }
    }

    /// The route the cache holds for a key, for display.
    pub fn cached_route(&self, key: &Key) -> Option<Route> {
        self.shared.cache.read().lookup(&key.to_storage())
    }
}

impl Shared {
    /// Patience for a request that may be repeated.
    fn repeatable(&self) -> Retry {
        Retry::new(self.config.deadline, Nature::Repeatable)
    }

    /// One attempt.
    async fn send(&self, route: &Route, request: Request) -> Result<Response, CallError> {
        self.metrics.requests.inc();
        let answer = self.endpoint.call(route.store, request).await;
        let served = matches!(&answer, Ok(_) | Err(CallError::Server(crate::api::ServerError::Key(_))));
        if served && route.unproven {
            self.cache.write().confirm(route.region.id);
        }
        answer
    }

    /// Takes what a failure teaches into the cache; the class of retry it deserves, if any.
    fn learn(&self, route: &Route, error: &CallError) -> Option<RetryClass> {
        let mut cache = self.cache.write();
        let class = cache.on_failure(route, error);
        self.count_regions(&cache);
        class
    }

    fn count_regions(&self, cache: &RegionCache) {
        self.metrics.regions.set(i64::try_from(cache.len()).unwrap_or(i64::MAX));
    }

    fn jitter(&self) -> Jitter {
        Jitter::new(self.rng.lock().random::<f64>())
    }
}

/// A server answered with something that does not belong to the request.
fn unexpected(request: &str, response: &Response) -> ClientError {
    ClientError::Failed(format!("a store answered {request} with {}", kind_of(response)))
}

fn kind_of(response: &Response) -> &'static str {
    match response {
        Response::Value(_) => "a value",
        Response::Pairs { .. } => "pairs",
        Response::Status(_) => "a transaction status",
        Response::Ttl(_) => "a ttl",
        Response::Done => "an acknowledgement",
    }
}
