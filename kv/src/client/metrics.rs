//! Metrics of the client.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use super::backoff::RetryClass;
use super::choice::{Role, Suppressed};
use crate::api::ReadPath;

const REQUESTS: &str = "cortado_kv_client_requests_total";
const RETRIES: &str = "cortado_kv_client_retries_total";
const WAITS: &str = "cortado_kv_client_waits_total";
const LOCATES: &str = "cortado_kv_client_locates_total";
const EXHAUSTED: &str = "cortado_kv_client_exhausted_total";
const UNDETERMINED: &str = "cortado_kv_client_undetermined_total";
const REGIONS: &str = "cortado_kv_client_cached_regions";
const REPLICA_READS: &str = "cortado_kv_client_replica_reads_total";
const FALLBACKS: &str = "cortado_kv_client_replica_fallbacks_total";
const HEDGES: &str = "cortado_kv_client_hedges_total";
const SUPPRESSED: &str = "cortado_kv_client_hedges_suppressed_total";

/// The paths of reads, in the order of their counters.
const PATHS: [(ReadPath, &str); 5] = [
    (ReadPath::Lease, "lease"),
    (ReadPath::ReadIndex, "read_index"),
    (ReadPath::Grant, "grant"),
    (ReadPath::SessionSnapshot, "session_snapshot"),
    (ReadPath::Unproven, "unproven"),
];

/// Counters of one client.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    /// Requests sent to stores, retries included.
    pub(super) requests: IntCounter,
    retries: [IntCounter; RetryClass::ALL.len()],
    /// Writes that waited for their turn at a busy store.
    pub(super) waits: IntCounter,
    /// Lookups of a region that asked a store.
    pub(super) locates: IntCounter,
    /// Calls that ran out of retries.
    pub(super) exhausted: IntCounter,
    /// Commits whose outcome stayed unknown.
    pub(super) undetermined: IntCounter,
    /// Regions in the cache.
    pub(super) regions: IntGauge,
    /// Requests of reads with options that were answered, by the replica's role and the path.
    replica_reads: [[IntCounter; PATHS.len()]; Role::ALL.len()],
    /// Reads that the leader served after another replica had failed or refused.
    pub(super) fallbacks: IntCounter,
    /// Hedges that were sent.
    pub(super) hedges_sent: IntCounter,
    /// Hedges that answered first.
    pub(super) hedges_won: IntCounter,
    /// Hedges that were refused, or whose read was answered without them.
    pub(super) hedges_wasted: IntCounter,
    suppressed: [IntCounter; Suppressed::ALL.len()],
}

impl Metrics {
    /// Registers the counters. Fails if `registry` already holds the metrics of a client.
    pub(super) fn new(registry: &Registry) -> Result<Metrics, prometheus::Error> {
        let retries =
            IntCounterVec::new(Opts::new(RETRIES, "Requests sent again, by the class of the failure"), &["class"])?;
        let reads = "Answered requests of reads that choose a replica, by its role and the proof";
        let replica_reads = IntCounterVec::new(Opts::new(REPLICA_READS, reads), &["replica", "path"])?;
        let hedges = IntCounterVec::new(Opts::new(HEDGES, "Hedges, by what became of them"), &["outcome"])?;
        let suppressed = "Slow reads that were not hedged, by the reason";
        let suppressed = IntCounterVec::new(Opts::new(SUPPRESSED, suppressed), &["reason"])?;
        let metrics = Metrics {
            requests: IntCounter::new(REQUESTS, "Requests sent to stores, retries included")?,
            retries: RetryClass::ALL.map(|class| retries.with_label_values(&[class.name()])),
            waits: IntCounter::new(WAITS, "Writes that waited for their turn at a busy store")?,
            locates: IntCounter::new(LOCATES, "Regions looked up at a store")?,
            exhausted: IntCounter::new(EXHAUSTED, "Calls that ran out of retries")?,
            undetermined: IntCounter::new(UNDETERMINED, "Commits whose outcome stayed unknown")?,
            regions: IntGauge::new(REGIONS, "Regions in the cache")?,
            replica_reads: Role::ALL
                .map(|role| PATHS.map(|(_, path)| replica_reads.with_label_values(&[role.name(), path]))),
            fallbacks: IntCounter::new(FALLBACKS, "Reads that the leader served after another replica failed")?,
            hedges_sent: hedges.with_label_values(&["sent"]),
            hedges_won: hedges.with_label_values(&["won"]),
            hedges_wasted: hedges.with_label_values(&["wasted"]),
            suppressed: Suppressed::ALL.map(|reason| suppressed.with_label_values(&[reason.name()])),
        };
        for labelled in [retries, replica_reads, hedges, suppressed] {
            registry.register(Box::new(labelled))?;
        }
        registry.register(Box::new(metrics.fallbacks.clone()))?;
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.waits.clone()))?;
        registry.register(Box::new(metrics.locates.clone()))?;
        registry.register(Box::new(metrics.exhausted.clone()))?;
        registry.register(Box::new(metrics.undetermined.clone()))?;
        registry.register(Box::new(metrics.regions.clone()))?;
        Ok(metrics)
    }

    /// Counts an answered request of a read with options.
    pub(super) fn count_read(&self, role: Role, path: ReadPath) {
        let path = PATHS.iter().position(|(of, _)| *of == path);
        let counters = self.replica_reads.get(role.index());
        if let Some(counter) = path.and_then(|path| counters?.get(path)) {
            counter.inc();
        }
    }

    /// Counts a hedge that was not sent.
    pub(super) fn count_suppressed(&self, reason: Suppressed) {
        if let Some(counter) = self.suppressed.get(reason.index()) {
            counter.inc();
        }
    }

    /// Counts a retry.
    pub(super) fn count_retry(&self, class: RetryClass) {
        if let Some(counter) = self.retries.get(class.index()) {
            counter.inc();
        }
    }
}
