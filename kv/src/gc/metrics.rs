//! Metrics of the collection on one store.

use prometheus::{IntCounter, IntGauge, Registry};

/// The metrics of one store. Clones share the counters.
#[derive(Clone, Debug)]
pub struct GcMetrics {
    pub(super) versions: IntCounter,
    pub(super) rows: IntCounter,
    pub(super) unreadable: IntCounter,
    pub(super) ranges: IntCounter,
    pub(super) examined: IntCounter,
    pub(super) reclaimed_bytes: IntCounter,
    pub(super) seconds: prometheus::Counter,
    pub(super) bound_ms: IntGauge,
    pub(super) published_ms: IntGauge,
}

impl GcMetrics {
    /// Registers the metrics. Fails if the registry already has metrics with these names.
    pub fn new(registry: &Registry) -> prometheus::Result<GcMetrics> {
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounter> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let seconds =
            prometheus::Counter::new("cortado_kv_gc_compaction_seconds_total", "Time spent in requested compactions")?;
        registry.register(Box::new(seconds.clone()))?;
        let gauge = |name: &str, help: &str| -> prometheus::Result<IntGauge> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        Ok(GcMetrics {
            versions: counter("cortado_kv_gc_versions_dropped_total", "Write records that compactions dropped")?,
            rows: counter(
                "cortado_kv_gc_values_dropped_total",
                "Long values and rollback marks that compactions dropped",
            )?,
            unreadable: counter(
                "cortado_kv_gc_unreadable_total",
                "Records that compactions kept because they are malformed",
            )?,
            ranges: counter(
                "cortado_kv_gc_compacted_ranges_total",
                "Ranges that were compacted because of their garbage",
            )?,
            examined: counter("cortado_kv_gc_examined_ranges_total", "Ranges of which a sample was examined")?,
            reclaimed_bytes: counter(
                "cortado_kv_gc_reclaimed_bytes_total",
                "Bytes of files that requested compactions saved",
            )?,
            seconds,
            bound_ms: gauge(
                "cortado_kv_gc_bound_ms",
                "Up to where the store collects, in milliseconds since the epoch",
            )?,
            published_ms: gauge("cortado_kv_gc_published_ms", "The least safe point of the replicas, in milliseconds")?,
        })
    }

    /// Write records that compactions have dropped.
    pub fn versions_dropped(&self) -> u64 {
        self.versions.get()
    }

    /// Long values and rollback marks that compactions have dropped.
    pub fn values_dropped(&self) -> u64 {
        self.rows.get()
    }

    /// Requested compactions of a range of one family.
    pub fn ranges_compacted(&self) -> u64 {
        self.ranges.get()
    }

    /// Ranges of which a sample was examined.
    pub fn ranges_examined(&self) -> u64 {
        self.examined.get()
    }
}
