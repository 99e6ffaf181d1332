//! The client of the key-value layer: finds the leader of each key's region, retries refused requests, and offers
//! operations on keys of the whole cluster.
//!
//! The path of a request:
//! 1. [`Client`] turns an operation into items with one key each (`dispatch.rs`) or into a range (`scan.rs`).
//! 2. [`RegionCache`] gives the region and the replica of each item. Unknown regions are located by asking stores
//!    (`locate.rs`).
//! 3. [`Endpoint`] carries one request per region: within the process ([`RoutedEndpoint`]) or over a link
//!    ([`RemoteEndpoint`]).
//! 4. A failure updates the cache (`region_cache.rs`). After a wait (`backoff.rs`, `retry.rs`) only the failed part is
//!    sent again.
//!
//! Guarantees: every operation ends in bounded time. Reads and idempotent writes are repeated after a lost response. If
//! a commit may have been delivered and no response says what became of it, it ends as [`ClientError::Undetermined`],
//! never as a failure.
//!
//! # Layers
//!
//! 1. `locality`, `options`, `error`, `backoff`, `bound`: where nodes are, how reads choose replicas, errors, pure
//!    arithmetic
//! 2. `config`, `endpoint`, `choice`, `hedge`: settings, the interface to stores, the order of replicas, when reads are
//!    hedged
//! 3. `commit`, `congestion`, `metrics`, `region_cache`, `remote`, `routed`, `stores`: what a prewrite may do, turns at
//!    busy stores, counters, routes, the endpoints, what is known of stores
//! 4. `router`: the state that clones share, one attempt of a request
//! 5. `retry`: the retry loop's state
//! 6. `locate`, `replicas`: the route of a key, one attempt of a read at the replica of its choice
//! 7. `dispatch`, `scan`: operations on many keys, on ranges
//! 8. `first`, `lock_rows`, `safe_point`: reads at a timestamp that the store takes; row locks in memory; requests of
//!    garbage collection

mod backoff;
mod bound;
mod choice;
mod commit;
mod config;
mod congestion;
mod dispatch;
mod endpoint;
mod error;
mod first;
mod hedge;
mod locality;
mod locate;
mod lock_rows;
mod metrics;
mod options;
mod region_cache;
mod remote;
mod replicas;
mod retry;
mod routed;
mod router;
mod safe_point;
mod scan;
mod stores;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use prometheus::Registry;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tso::Timestamp;

pub use backoff::{Backoff, Jitter, RetryClass};
pub use commit::{CommitAttempt, CommitAttempted, Prewritten};
pub use config::ClientConfig;
pub use endpoint::{CallError, Endpoint};
pub use error::ClientError;
pub use first::FirstRead;
pub use locality::Locality;
pub use options::{HedgePolicy, ProofPolicy, ReadOptions, ReadReport, ReadTrace, RegionSet, ReplicaPolicy};
pub use region_cache::{RegionCache, Route};
pub use remote::{BadAddress, RemoteConfig, RemoteEndpoint};
pub use routed::{LocalStore, RoutedEndpoint};
pub use safe_point::LockPage;
pub use scan::{Page, ScanRange, Snapshot};

use crate::api::{
    AcquireRequest, Acquired, CheckLocksRequest, CheckTxnStatusRequest, CommitBounds, CommitMode, DetectorClock,
    LockMode, LockRef, LocksStatus, Mutation, MutationOp, PrewriteRequest, RequestBody, Response, TxnStatus,
    WaitReport,
};
use crate::key::Key;
use crate::size::{decision_bytes, prewrite_bytes};
use congestion::Windows;
use dispatch::{BatchOp, BatchResult, Keyed};
use metrics::Metrics;
use options::Reading;
use retry::{Retry, RetrySemantics};
use router::Router;

/// A client of the key-value layer. Cheap to clone; clones share the region cache and the metrics.
///
/// Any task may call it, also concurrently.
///
/// # Time
///
/// An operation retries each request until [`ClientConfig::deadline`] has passed since the request's first failure. An
/// operation on several regions, or several pages of one region, has one such deadline for each run of keys. The
/// deadline does not interrupt an attempt: the endpoint's timeout ends it. Nor does the time count in which a write
/// waits behind others that a busy store takes (`congestion.rs`). Stores that report failures of their own are asked 12
/// more times at most.
///
/// # Errors
///
/// Every operation can return, unless its own documentation says otherwise:
/// - [`ClientError::Unavailable`]: the deadline passed. An idempotent write may have taken effect.
/// - [`ClientError::Overloaded`]: the deadline of a read passed, and the store has no room for it.
/// - [`ClientError::Invalid`]: a store refused a request as such: a timestamp that the oracle does not issue, two
///   mutations of one key, a key above `percolator::KEY_LEN_MAX`, a read whose response exceeds the largest message.
///   That request had no effect.
/// - [`ClientError::TooLarge`]: one item exceeds the largest message or proposal. That request had no effect.
/// - [`ClientError::Failed`]: every replica asked failed, or a response was of another kind than the request asks for.
///   An idempotent write may have taken effect.
///
/// After an error of a write on several keys, requests to other regions may have taken effect or may be under way.
///
/// # Panics
///
/// An operation panics if it has to wait for a timer outside of a tokio runtime: before a retry, in
/// [`Client::heartbeat`], in the endpoints of this module.
///
/// # Cancel safety
///
/// The future of an operation may be dropped at any time. Reads leave nothing behind. Requests of a write that are not
/// sent yet are never sent. A request that was sent may still be executed, even after the future is gone, and takes
/// effect for all its keys or for none. No task continues the operation: after a drop of a commit, its outcome is
/// unknown.
#[derive(Clone)]
pub struct Client {
    router: Arc<Router>,
}

impl Client {
    /// A client over `endpoint` with default settings and unregistered metrics.
    pub fn new(endpoint: Arc<dyn Endpoint>) -> Client {
        #[expect(clippy::expect_used, reason = "the defaults are valid, and a fresh registry holds no duplicate")]
        Client::with_config(endpoint, ClientConfig::default(), &Registry::new()).expect("defaults are valid")
    }

    /// A client over `endpoint` that counts into `registry`. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`ClientError::Failed`] if a setting is below its minimum, or if `registry` already holds the metrics of a
    /// client.
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
        let own_store = endpoint.own_store();
        let (windows, stores, hedges) = (Windows::default(), Mutex::default(), Mutex::default());
        let turn = AtomicUsize::new(0);
        let router = Router { endpoint, config, cache, rng, metrics, windows, own_store, stores, hedges, turn };
        Ok(Client { router: Arc::new(router) })
    }

    /// Reads the newest value of `key` committed at or before `start_ts`; `None` if the key does not exist there.
    ///
    /// # Errors
    ///
    /// `Key(Locked)` if a transaction that may commit at or below `start_ts` holds the lock, and those of [`Client`].
    /// Never `Undetermined`.
    pub async fn get(&self, key: &Key, at: impl Into<Snapshot>) -> Result<Option<Bytes>, ClientError> {
        let at = at.into();
        let body = || RequestBody::Get { key: key.clone(), start_ts: at.start_ts, pass: at.pass.clone() };
        match self.router.read_key(key, at.reading(), body).await? {
            Response::Value(value) => Ok(value),
            other => Err(ClientError::unexpected_response("Get", &other)),
        }
    }

    /// Reads `key` at `start_ts` within this call, without a message or a wait: if this node leads the key's region and
    /// has a lease, or `options` choose its replica and that one has a grant, and no lock is in the way. Otherwise
    /// returns `None`, and [`Client::get`] is the way.
    pub fn try_get(&self, key: &Key, start_ts: Timestamp, options: Option<&ReadOptions>) -> Option<Option<Bytes>> {
        let storage = key.to_storage();
        if let Some(options) = options {
            return self.router.try_read((key, &storage), start_ts, options);
        }
        let (store, context) = self.router.cache.read().lookup_proven(&storage)?;
        let value = self.router.endpoint.try_get(store, context, (key, &storage), start_ts)?;
        self.router.metrics.requests.inc();
        Some(value)
    }

    /// Reads `key` at a timestamp that its leader's store takes, in one request. One attempt, which costs nothing if it
    /// fails but the time. `None`, and the caller takes a timestamp, if the region is not in the cache, or its store
    /// did not serve.
    ///
    /// With `options` for another replica than the leader, that one takes the snapshot, and the next one is asked if it
    /// fails, within the options' patience. `None`, and nothing is sent, if the options neither name a bound
    /// ([`ReadOptions::floor`]) nor are of a transaction that never writes.
    pub async fn first_get(&self, key: &Key, options: Option<&ReadOptions>) -> Option<FirstRead<Option<Bytes>>> {
        self.router.first_get(key, options).await
    }

    /// Reads the first page of a range, as [`Client::scan`], at a timestamp that the store of its first region takes.
    /// It ends where that region ends. `None` as [`Client::first_get`], or if there is nothing to read.
    pub async fn first_scan(
        &self,
        range: &ScanRange,
        limit: u32,
        options: Option<&ReadOptions>,
    ) -> Option<FirstRead<Page>> {
        self.router.first_scan(range, limit, options).await
    }

    /// Reads many keys at `start_ts`, regions in parallel. Returns the pairs in key order; absent keys are left out.
    /// `keys` may be unordered and repeated. All values are in memory at once; to avoid that, use
    /// [`Client::batch_get_page`].
    ///
    /// # Errors
    ///
    /// `Key(Locked)` with the locks that all regions reported, and those of [`Client`]. Never `Undetermined`.
    pub async fn batch_get(&self, keys: &[Key], at: impl Into<Snapshot>) -> Result<Vec<(Key, Bytes)>, ClientError> {
        self.batch_get_up_to(keys, at.into(), usize::MAX).await.map(|page| page.pairs)
    }

    /// Reads a prefix of `keys`, in key order, until about [`ClientConfig::page_bytes`] bytes of pairs are found. At
    /// least the smallest key is looked up. `resume` is the first key, in key order, that was not looked up: call again
    /// with the keys from there on, at the same `start_ts`.
    ///
    /// # Errors
    ///
    /// As [`Client::batch_get`].
    pub async fn batch_get_page(&self, keys: &[Key], at: impl Into<Snapshot>) -> Result<Page, ClientError> {
        self.batch_get_up_to(keys, at.into(), self.router.config.page_bytes as usize).await
    }

    /// Reads keys in key order until the pairs found take `max_bytes` bytes.
    async fn batch_get_up_to(&self, keys: &[Key], at: Snapshot, max_bytes: usize) -> Result<Page, ClientError> {
        // Its requests are under way together.
        let together = ReadTrace::default();
        let reading = at.reading().map(|reading| Reading { trace: &together, is_parallel: true, ..reading });
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let op = BatchOp {
            request: "BatchGet",
            reading,
            semantics: RetrySemantics::Read,
            is_answer: |response| matches!(response, Response::Pairs { .. }),
            item_bytes: &decision_bytes,
            body: &|keys| RequestBody::BatchGet { keys, start_ts: at.start_ts, pass: at.pass.clone() },
            max_bytes,
            unanswered: &AtomicBool::new(false),
        };
        let BatchResult { mut pairs, unsent, .. } = self.router.fan_out(keys, &op).await?;
        if let (Some(options), Some(report)) = (&at.options, together.take()) {
            options.trace.add(report);
        }
        pairs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let resume = unsent.into_iter().min();
        if let Some(resume) = &resume {
            // Regions of greater keys may have answered first. Drop their pairs, so that the page has no gap.
            pairs.truncate(pairs.partition_point(|(key, _)| key < resume));
        }
        Ok(Page { pairs, resume })
    }

    /// Reads one page of a range at `start_ts`: at most `limit` pairs and about [`ClientConfig::page_bytes`] bytes.
    /// Crosses region boundaries, one region after the other. A page may hold fewer than `limit` pairs, or none, while
    /// `resume` is set: only `resume: None` marks the end. With a `limit` of 0 it sends nothing and returns no pairs. A
    /// page that has pairs ends before a lock, and the next page begins with it.
    ///
    /// # Errors
    ///
    /// `Key(Locked)` if a lock blocks the first pair. And those of [`Client`]. Never `Undetermined`.
    pub async fn scan(&self, range: &ScanRange, at: impl Into<Snapshot>, limit: u32) -> Result<Page, ClientError> {
        self.router.scan(range, &at.into(), limit).await
    }

    /// Prewrites all mutations, regions in parallel: locks their keys for two phases and stages their values. The keys
    /// must be distinct. A transaction may take several calls; one of them prewrites `primary`. Only the transaction's
    /// coordinator calls it.
    ///
    /// `ttl_ms` gives the TTL of the locks in milliseconds from the physical part of `start_ts`. It is called before
    /// every attempt, because a fixed ttl would shrink while attempts are retried.
    ///
    /// # Errors
    ///
    /// - `Key(Locked)` with the locks that all regions reported. Requests that met no lock have prewritten their keys.
    /// - `Key(WriteConflict)`: another transaction committed to a key above `start_ts`.
    /// - `Key(AlreadyExists)`: an `Insert` or `CheckNotExists` found a value.
    /// - `Key(RolledBack)`: the transaction was rolled back.
    /// - Those of [`Client`]. Never `Undetermined`.
    ///
    /// After any error some keys may be prewritten or become so: the caller retries (after `Locked`) or rolls back all
    /// keys. The same holds if the future is dropped.
    pub async fn prewrite(
        &self,
        mutations: Vec<Mutation>,
        primary: &Key,
        start_ts: Timestamp,
        ttl_ms: impl Fn() -> u64 + Sync,
    ) -> Result<Prewritten, ClientError> {
        let bounds = CommitBounds { least: start_ts, greatest: Timestamp::MAX };
        let attempt = CommitAttempt { primary, start_ts, locker: None, bounds, one_phase: false, async_commit: false };
        self.try_commit(mutations, &attempt, ttl_ms).await.result
    }

    /// Prewrites all mutations of a transaction, as [`Client::prewrite`], and commits it with that where `attempt` and
    /// the regions allow it: in one phase if one request of one region holds all mutations, or as an async commit.
    /// Every transaction takes one call at a time, and none of [`Client::prewrite`] beside it.
    ///
    /// After an error other than those that refuse a key for good, an attempt may still commit the transaction if
    /// `unanswered` is set.
    pub async fn try_commit(
        &self,
        mutations: Vec<Mutation>,
        attempt: &CommitAttempt<'_>,
        ttl_ms: impl Fn() -> u64 + Sync,
    ) -> CommitAttempted {
        let CommitAttempt { primary, start_ts, locker, bounds, .. } = *attempt;
        let total = mutations.len();
        let locked = mutations.iter().filter(|m| m.op != MutationOp::CheckNotExists && m.key != *primary);
        let secondaries: Vec<Key> =
            if attempt.async_commit { locked.map(|m| m.key.clone()).collect() } else { Vec::new() };
        let (unanswered, is_split) = (AtomicBool::new(false), AtomicBool::new(false));
        let body = |mutations: Vec<Mutation>| {
            let is_whole = mutations.len() == total;
            is_split.fetch_or(!is_whole, Ordering::Relaxed);
            let commit = if is_whole && attempt.one_phase {
                CommitMode::OnePhase(bounds)
            } else if attempt.async_commit {
                let has_primary = mutations.iter().any(|mutation| mutation.key == *primary);
                CommitMode::Async { bounds, secondaries: if has_primary { secondaries.clone() } else { Vec::new() } }
            } else {
                CommitMode::TwoPhase
            };
            let (primary, ttl_ms) = (primary.clone(), ttl_ms());
            RequestBody::Prewrite(PrewriteRequest { mutations, primary, start_ts, ttl_ms, commit, locker })
        };
        let op = BatchOp {
            request: "Prewrite",
            reading: None,
            semantics: RetrySemantics::Idempotent,
            is_answer: |response| {
                matches!(response, Response::Done | Response::AsyncLocked { .. } | Response::Committed { .. })
            },
            item_bytes: &|mutation: &Mutation| prewrite_bytes(mutation, primary),
            body: &body,
            max_bytes: usize::MAX,
            unanswered: &unanswered,
        };
        let result = self.router.fan_out(mutations, &op).await.map(|result| Prewritten::of(&result.others));
        let is_whole = !is_split.load(Ordering::Relaxed);
        // A request to another region may be under way when one fails.
        let unanswered = unanswered.load(Ordering::Relaxed) || (!is_whole && result.is_err());
        CommitAttempted { result, is_whole, unanswered }
    }

    /// Sends a write of `items`, regions in parallel. Every region must answer with [`Response::Done`].
    async fn write<T: Keyed>(
        &self,
        request: &'static str,
        semantics: RetrySemantics,
        items: Vec<T>,
        item_bytes: &(dyn Fn(&T) -> usize + Sync),
        body: &(dyn Fn(Vec<T>) -> RequestBody + Sync),
    ) -> Result<(), ClientError> {
        let is_answer = |response: &Response| *response == Response::Done;
        let unanswered = &AtomicBool::new(false);
        let op = BatchOp {
            request,
            reading: None,
            semantics,
            is_answer,
            item_bytes,
            body,
            max_bytes: usize::MAX,
            unanswered,
        };
        self.router.fan_out(items, &op).await.map(drop)
    }

    /// Commits prewritten keys at `commit_ts`, regions in parallel. The coordinator calls it for the secondaries, after
    /// [`Client::commit_primary`] succeeded. Keys that are already committed at `commit_ts` count as done.
    ///
    /// # Errors
    ///
    /// - `Undetermined`: a request may have been delivered, and no response says what became of it. Returned when the
    ///   deadline passes, and earlier when a later attempt is refused for good or a response is of another kind than a
    ///   commit asks for.
    /// - `Key(RolledBack)`, `Key(LockNotFound)`, `Key(Committed)`: the transaction holds no lock on a key and has not
    ///   committed it at `commit_ts`.
    /// - `Key(CommitTsTooEarly)`: a lock requires a higher commit_ts.
    /// - Those of [`Client`]. They say that the failed request had no effect; other regions may have committed.
    pub async fn commit(&self, keys: &[Key], start_ts: Timestamp, commit_ts: Timestamp) -> Result<(), ClientError> {
        let body = |keys| RequestBody::Commit { keys, start_ts, commit_ts };
        self.write("Commit", RetrySemantics::Commit, keys.to_vec(), &decision_bytes, &body).await
    }

    /// Commits the primary at `commit_ts`: the commit point of the transaction. The same request commits those of
    /// `others` that are in the primary's region and fit; all of them take effect together or none does. Returns the
    /// rest of `others`, which [`Client::commit`] must commit. `commit_ts` must be taken from the oracle after every
    /// prewrite was acknowledged. Only the transaction's coordinator calls it.
    ///
    /// # Errors
    ///
    /// - `Undetermined`: as [`Client::commit`]. The transaction may be committed, now or later.
    /// - `Key(RolledBack)`, `Key(CommitTsTooEarly)`: as [`Client::commit`].
    /// - `Key(LockNotFound)`, `Key(Committed)`: as [`Client::commit`]. They contradict an acknowledged prewrite;
    ///   [`Client::rollback`] of the primary settles the outcome.
    /// - Those of [`Client`].
    ///
    /// Every error but `Undetermined` means that no attempt of this call took effect. After `Key(Committed)` the
    /// transaction is committed all the same, at another commit_ts. If the future is dropped, the outcome is unknown.
    pub async fn commit_primary(
        &self,
        primary: &Key,
        others: &[Key],
        start_ts: Timestamp,
        commit_ts: Timestamp,
    ) -> Result<Vec<Key>, ClientError> {
        self.router.commit_primary(primary, others, start_ts, commit_ts).await
    }

    /// Rolls back `keys` of the transaction `start_ts`, regions in parallel, and leaves rollback marks, so that a
    /// prewrite that is still under way fails. Idempotent. The coordinator calls it after a failed prewrite.
    ///
    /// # Errors
    ///
    /// `Key(Committed)` if the transaction has committed a key, and those of [`Client`]. Never `Undetermined`: after
    /// `Unavailable` the locks may remain until their ttl ends and another transaction resolves them.
    pub async fn rollback(&self, keys: &[Key], start_ts: Timestamp) -> Result<(), ClientError> {
        let body = |keys| RequestBody::Rollback { keys, start_ts };
        self.write("Rollback", RetrySemantics::Idempotent, keys.to_vec(), &decision_bytes, &body).await
    }

    /// Reads the status of a transaction from the region of its primary, and rolls it back if its lock has expired (see
    /// [`CheckTxnStatusRequest`]). Idempotent. Any transaction that met a lock of the other one may call it.
    ///
    /// # Errors
    ///
    /// `Invalid` if the lock on the key names another primary, and those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn check_txn_status(&self, request: CheckTxnStatusRequest) -> Result<TxnStatus, ClientError> {
        let body = || RequestBody::CheckTxnStatus(request.clone());
        match self.router.send_to_key(&request.primary, self.router.idempotent_retry(), body).await? {
            Response::Status(status) => Ok(status),
            other => Err(ClientError::unexpected_response("CheckTxnStatus", &other)),
        }
    }

    /// Reads the state of the async commit of `start_ts` from its `keys`, regions in parallel (see
    /// [`CheckLocksRequest`]). Idempotent. Any transaction that met a lock of the other one may call it.
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn check_locks(
        &self,
        keys: &[Key],
        start_ts: Timestamp,
        reader_ts: Timestamp,
        mark_missing: bool,
    ) -> Result<LocksStatus, ClientError> {
        let op = BatchOp {
            request: "CheckLocks",
            reading: None,
            semantics: RetrySemantics::Idempotent,
            is_answer: |response| matches!(response, Response::Locks(_)),
            item_bytes: &decision_bytes,
            body: &|keys| {
                RequestBody::CheckLocks(CheckLocksRequest { keys, lock_ts: start_ts, reader_ts, mark_missing })
            },
            max_bytes: usize::MAX,
            unanswered: &AtomicBool::new(false),
        };
        let answers = self.router.fan_out(keys.to_vec(), &op).await?.others.into_iter();
        let statuses =
            answers.filter_map(|answer| if let Response::Locks(status) = answer { Some(status) } else { None });
        let status = statuses.reduce(LocksStatus::merge);
        status.ok_or_else(|| ClientError::Failed("no keys to check".to_owned()))
    }

    /// Commits (with `commit_ts`) or rolls back the locks that the transaction `start_ts` left on `keys`, regions in
    /// parallel. Keys without its lock are skipped. Idempotent. Any transaction may call it, but only with the decision
    /// that [`Client::check_txn_status`] returned: nothing else checks it.
    ///
    /// # Errors
    ///
    /// `Key(CommitTsTooEarly)` if a lock requires a higher commit_ts, and those of [`Client`]. Never `Undetermined`.
    pub async fn resolve_locks(
        &self,
        keys: &[Key],
        start_ts: Timestamp,
        commit_ts: Option<Timestamp>,
    ) -> Result<(), ClientError> {
        let body = |keys| RequestBody::ResolveLock { keys, start_ts, commit_ts };
        self.write("ResolveLock", RetrySemantics::Idempotent, keys.to_vec(), &decision_bytes, &body).await
    }

    /// Extends the life of the primary lock to at least `ttl_ms` milliseconds from the physical part of `start_ts`.
    /// Returns the ttl in force in milliseconds, which may be longer. `ttl_ms` is called before every attempt. Retries
    /// and the current attempt end after `limit`, not after the configured deadline: the next heartbeat serves better
    /// than a late one. A lookup of the region under way is not interrupted. Only the transaction's coordinator calls
    /// it.
    ///
    /// # Errors
    ///
    /// `Key(LockNotFound)` if the transaction has no lock there: it was rolled back, has committed, or its prewrite has
    /// not arrived yet. And those of [`Client`]. Never `Undetermined`.
    pub async fn heartbeat(
        &self,
        primary: &Key,
        start_ts: Timestamp,
        ttl_ms: impl Fn() -> u64,
        limit: Duration,
    ) -> Result<u64, ClientError> {
        let body = || RequestBody::Heartbeat { primary: primary.clone(), start_ts, ttl_ms: ttl_ms() };
        match self.router.send_to_key(primary, Retry::with_cutoff(limit, RetrySemantics::Idempotent), body).await? {
            Response::Ttl(ttl_ms) => Ok(ttl_ms),
            other => Err(ClientError::unexpected_response("Heartbeat", &other)),
        }
    }

    /// Locks the rows of `request`, in its order, up to the first one that another transaction has locked. The answer
    /// is that of [`RequestBody::Acquire`], over all regions; it never ends early for another reason. With
    /// [`Waiting::Queue`](crate::api::Waiting::Queue) every request to a region waits that long.
    ///
    /// # Errors
    ///
    /// - `Key(WriteConflict)`: a row has changed since the snapshot of the request.
    /// - `Key(AlreadyExists)`: a row exists that must not.
    /// - Those of [`Client`]. Never `Undetermined`.
    ///
    /// After any error, and if the future is dropped, some rows may be locked: the caller releases all of them.
    pub async fn acquire(&self, request: &AcquireRequest) -> Result<Acquired, ClientError> {
        self.router.acquire(request).await
    }

    /// Gives up the row locks of a transaction on `keys`, and its places in their queues, regions in parallel. Of locks
    /// that are stronger than `keep`, that is kept.
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`. The locks end with their ttl anyway.
    pub async fn release(
        &self,
        keys: Vec<Key>,
        start_ts: Timestamp,
        keep: Option<LockMode>,
    ) -> Result<(), ClientError> {
        let body = |keys| RequestBody::Release { keys, start_ts, keep };
        self.write("Release", RetrySemantics::Idempotent, keys, &decision_bytes, &body).await
    }

    /// Keeps the row locks of transactions that live, regions in parallel. Names for each transaction a row of each
    /// region in which it may have locked any; see [`Client::one_of_each_region`].
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn refresh(&self, locks: Vec<LockRef>) -> Result<(), ClientError> {
        let (item_bytes, body) = (|lock: &LockRef| decision_bytes(&lock.key), |locks| RequestBody::Refresh { locks });
        self.write("Refresh", RetrySemantics::Idempotent, locks, &item_bytes, &body).await
    }

    /// Reports a wait to the detector of deadlocks. Returns the deadlock that the wait has closed, and the clock of the
    /// detector; see [`Response::Waits`]. Ends after `limit`: the next report serves better than a late one.
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn report_wait(
        &self,
        report: &WaitReport,
        limit: Duration,
    ) -> Result<(Vec<WaitReport>, DetectorClock), ClientError> {
        self.router.report_wait(report, limit).await
    }

    /// Raises the safe point of the region that holds `at`: of writes, and of reads, which is not above it. Returns the
    /// first key of the next region. Idempotent; lower values have no effect.
    ///
    /// The safe point of reads of a region may rise only after that of writes has risen in all regions, and then the
    /// locks of older transactions were resolved in all regions.
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn raise_safe_point(
        &self,
        at: &Key,
        (writes, reads): (Timestamp, Timestamp),
    ) -> Result<Option<Key>, ClientError> {
        self.router.raise_safe_point(at, (writes, reads)).await
    }

    /// Lists locks of transactions with a start_ts at or below `max_ts`, from `start` on. Reads the newest state.
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn old_locks(&self, start: &Key, max_ts: Timestamp) -> Result<LockPage, ClientError> {
        self.router.old_locks(start, max_ts).await
    }

    /// The first of `keys` in each region, as far as the regions are known here. All keys of unknown regions.
    pub fn one_of_each_region(&self, keys: &BTreeSet<Key>) -> Vec<Key> {
        self.router.one_of_each_region(keys)
    }
}
