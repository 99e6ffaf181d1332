//! Metrics of the server: requests by kind and outcome, latency by kind, requests in flight, continued scans, waits for
//! row locks, the read pool.

use prometheus::{Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use crate::api::{RequestBody, Response, ServerError};
use crate::read_pool::PoolMetrics;

/// Kinds of request, in the order of the counters.
const KINDS: [&str; 17] = [
    "get",
    "batch_get",
    "scan",
    "prewrite",
    "commit",
    "rollback",
    "check_txn_status",
    "resolve_lock",
    "heartbeat",
    "check_locks",
    "replica_read",
    "acquire",
    "release",
    "refresh",
    "detect",
    "old_locks",
    "raise_safe_point",
];
/// Outcomes of a request, in the order of the counters.
const OUTCOMES: [&str; 7] = ["ok", "region_error", "key_error", "undetermined", "failed", "too_large", "invalid"];
/// Upper bounds of the latency buckets, in seconds: 50 us to about 13 s, each four times the one before.
const LATENCY_BUCKETS: [f64; 10] = [5e-5, 2e-4, 8e-4, 3.2e-3, 1.28e-2, 5.12e-2, 0.2048, 0.8192, 3.2768, 13.1072];

/// Counters of a [`crate::server::KvServer`].
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    requests: Vec<IntCounter>,
    seconds: Vec<Histogram>,
    /// Requests in flight.
    pub in_flight: IntGauge,
    /// Pages of scans that were read on a kept scan.
    pub continued_scans: IntCounter,
    /// Waits of requests for row locks.
    pub(crate) lock_waits: LockWaits,
    /// Those of the read pool.
    pub pool: PoolMetrics,
}

/// How long requests for row locks waited, by what for. A statement that waits for long asks again and again, so it
/// counts several times; the sums are its time.
#[derive(Clone, Debug)]
pub(crate) struct LockWaits {
    /// For the lock of another transaction in memory.
    pub(crate) row: Histogram,
    /// For the lock record of a commit.
    pub(crate) record: Histogram,
}

impl LockWaits {
    fn new() -> Result<(LockWaits, HistogramVec), Error> {
        let opts = HistogramOpts::new(
            "cortado_kv_lock_wait_seconds",
            "Time that requests for row locks waited, for a `row` lock in memory or for the lock `record` of a commit.",
        )
        .buckets(LATENCY_BUCKETS.to_vec());
        let family = HistogramVec::new(opts, &["for"])?;
        let [row, record] = ["row", "record"].map(|what| family.with_label_values(&[what]));
        Ok((LockWaits { row, record }, family))
    }

    fn registered(registry: &Registry) -> Result<LockWaits, Error> {
        let (waits, family) = LockWaits::new()?;
        registry.register(Box::new(family))?;
        Ok(waits)
    }
}

impl ServerMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    ///
    /// Fails if `registry` already holds the metrics of a server.
    pub fn new(registry: &Registry) -> Result<ServerMetrics, Error> {
        let opts = Opts::new("cortado_kv_requests_total", "Requests carried out, by kind and outcome.");
        let counters = IntCounterVec::new(opts, &["kind", "outcome"])?;
        registry.register(Box::new(counters.clone()))?;
        let opts = HistogramOpts::new(
            "cortado_kv_request_seconds",
            "Time to carry out a request, by kind. Point reads without a message or a wait are left out.",
        )
        .buckets(LATENCY_BUCKETS.to_vec());
        let histograms = HistogramVec::new(opts, &["kind"])?;
        registry.register(Box::new(histograms.clone()))?;
        let in_flight = IntGauge::new("cortado_kv_requests_in_flight", "Requests being carried out.")?;
        registry.register(Box::new(in_flight.clone()))?;
        let continued_scans = IntCounter::new("cortado_kv_continued_scans_total", "Pages read on a kept scan.")?;
        registry.register(Box::new(continued_scans.clone()))?;
        let pairs = KINDS.iter().flat_map(|kind| OUTCOMES.iter().map(move |outcome| [*kind, *outcome]));
        Ok(ServerMetrics {
            requests: pairs.map(|labels| counters.with_label_values(&labels)).collect(),
            seconds: KINDS.iter().map(|kind| histograms.with_label_values(&[kind])).collect(),
            in_flight,
            continued_scans,
            lock_waits: LockWaits::registered(registry)?,
            pool: PoolMetrics::new(registry)?,
        })
    }

    /// Counts a point read of this process that was carried out within its call. Its time is not measured: the two
    /// readings of the clock would be a part of it.
    pub(crate) fn count_inline_get(&self) {
        if let Some(counter) = self.requests.first() {
            counter.inc();
        }
    }

    /// Counts a finished request, and how many seconds it took.
    pub(crate) fn observe(&self, kind: Kind, result: &Result<Response, ServerError>, seconds: f64) {
        let outcome = match result {
            Ok(Response::Started { outcome, .. } | Response::Replica { outcome, .. }) if outcome.is_err() => 2,
            Ok(_) => 0,
            Err(ServerError::Region(_)) => 1,
            Err(ServerError::Key(_)) => 2,
            Err(ServerError::Undetermined(_)) => 3,
            Err(ServerError::Failed(_)) => 4,
            Err(ServerError::TooLarge { .. }) => 5,
            Err(ServerError::Invalid(_)) => 6,
        };
        if let Some(counter) = self.requests.get(kind.0 * OUTCOMES.len() + outcome) {
            counter.inc();
        }
        if let Some(histogram) = self.seconds.get(kind.0) {
            histogram.observe(seconds);
        }
    }
}

/// A request's kind, as its index in [`KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(usize);

impl Kind {
    /// The kind of a request.
    pub(crate) const fn of(body: &RequestBody) -> Kind {
        Kind(match body {
            RequestBody::Get { .. } => 0,
            RequestBody::BatchGet { .. } => 1,
            RequestBody::Scan(_) => 2,
            RequestBody::Prewrite(_) => 3,
            RequestBody::Commit { .. } => 4,
            RequestBody::Rollback { .. } => 5,
            RequestBody::CheckTxnStatus(_) => 6,
            RequestBody::ResolveLock { .. } => 7,
            RequestBody::Heartbeat { .. } => 8,
            RequestBody::CheckLocks(_) => 9,
            RequestBody::Replica(_) => 10,
            RequestBody::Acquire(_) => 11,
            RequestBody::Release { .. } => 12,
            RequestBody::Refresh { .. } => 13,
            RequestBody::Detect(_) => 14,
            RequestBody::OldLocks(_) => 15,
            RequestBody::RaiseSafePoint { .. } => 16,
        })
    }
}
