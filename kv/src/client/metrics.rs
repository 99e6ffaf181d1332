//! Metrics of the client.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use super::backoff::RetryClass;

const REQUESTS: &str = "cortado_kv_client_requests_total";
const RETRIES: &str = "cortado_kv_client_retries_total";
const WAITS: &str = "cortado_kv_client_waits_total";
const LOCATES: &str = "cortado_kv_client_locates_total";
const EXHAUSTED: &str = "cortado_kv_client_exhausted_total";
const UNDETERMINED: &str = "cortado_kv_client_undetermined_total";
const REGIONS: &str = "cortado_kv_client_cached_regions";

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
}

impl Metrics {
    /// Registers the counters. Fails if `registry` already holds the metrics of a client.
    pub(super) fn new(registry: &Registry) -> Result<Metrics, prometheus::Error> {
        let retries =
            IntCounterVec::new(Opts::new(RETRIES, "Requests sent again, by the class of the failure"), &["class"])?;
        let metrics = Metrics {
            requests: IntCounter::new(REQUESTS, "Requests sent to stores, retries included")?,
            retries: RetryClass::ALL.map(|class| retries.with_label_values(&[class.name()])),
            waits: IntCounter::new(WAITS, "Writes that waited for their turn at a busy store")?,
            locates: IntCounter::new(LOCATES, "Regions looked up at a store")?,
            exhausted: IntCounter::new(EXHAUSTED, "Calls that ran out of retries")?,
            undetermined: IntCounter::new(UNDETERMINED, "Commits whose outcome stayed unknown")?,
            regions: IntGauge::new(REGIONS, "Regions in the cache")?,
        };
        registry.register(Box::new(retries))?;
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.waits.clone()))?;
        registry.register(Box::new(metrics.locates.clone()))?;
        registry.register(Box::new(metrics.exhausted.clone()))?;
        registry.register(Box::new(metrics.undetermined.clone()))?;
        registry.register(Box::new(metrics.regions.clone()))?;
        Ok(metrics)
    }

    /// Counts a retry.
    pub(super) fn count_retry(&self, class: RetryClass) {
        if let Some(counter) = self.retries.get(class.index()) {
            counter.inc();
        }
    }
}
