//! Metrics of the oracle's service and of the client.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

const REASON: &str = "reason";

/// Counters of a [`crate::service::TsoService`].
#[derive(Clone, Debug)]
pub struct ServiceMetrics {
    pub(crate) timestamps: IntCounter,
    pub(crate) requests: IntCounter,
    pub(crate) refused: IntCounterVec,
    pub(crate) raises: IntCounter,
    pub(crate) raise_failures: IntCounter,
    pub(crate) serving: IntGauge,
    pub(crate) offset_ms: IntGauge,
}

impl ServiceMetrics {
    /// Registers the counters. Fails if the registry already has counters of these names.
    pub fn new(registry: &Registry) -> prometheus::Result<ServiceMetrics> {
        let refused = Opts::new("tso_refused_total", "Requests that got no timestamp");
        let metrics = ServiceMetrics {
            timestamps: IntCounter::new("tso_timestamps_total", "Timestamps issued")?,
            requests: IntCounter::new("tso_requests_total", "Requests for timestamps")?,
            refused: IntCounterVec::new(refused, &[REASON])?,
            raises: IntCounter::new("tso_window_raises_total", "Times the durable mark was raised")?,
            raise_failures: IntCounter::new("tso_window_raise_failures_total", "Times raising the mark failed")?,
            serving: IntGauge::new("tso_serving", "1 while this node serves timestamps")?,
            offset_ms: IntGauge::new(
                "tso_wall_clock_offset_ms",
                "Milliseconds by which the oracle is ahead of the wall clock of this node, if it leads",
            )?,
        };
        registry.register(Box::new(metrics.timestamps.clone()))?;
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.refused.clone()))?;
        registry.register(Box::new(metrics.raises.clone()))?;
        registry.register(Box::new(metrics.raise_failures.clone()))?;
        registry.register(Box::new(metrics.serving.clone()))?;
        registry.register(Box::new(metrics.offset_ms.clone()))?;
        Ok(metrics)
    }
}

/// Counters of a [`crate::client::TsoClient`].
#[derive(Clone, Debug)]
pub struct ClientMetrics {
    pub(crate) requests: IntCounter,
    pub(crate) failures: IntCounter,
    pub(crate) batch_size: Histogram,
}

impl ClientMetrics {
    /// Registers the counters. Fails if the registry already has counters of these names.
    pub fn new(registry: &Registry) -> prometheus::Result<ClientMetrics> {
        let sizes = HistogramOpts::new("tso_client_batch_size", "Callers served by one request")
            .buckets(prometheus::exponential_buckets(1.0, 2.0, 12)?);
        let metrics = ClientMetrics {
            requests: IntCounter::new("tso_client_requests_total", "Requests sent to an oracle, retries included")?,
            failures: IntCounter::new("tso_client_failures_total", "Requests that brought no timestamp")?,
            batch_size: Histogram::with_opts(sizes)?,
        };
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.failures.clone()))?;
        registry.register(Box::new(metrics.batch_size.clone()))?;
        Ok(metrics)
    }
}
