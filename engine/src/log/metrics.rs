//! The metrics of the log. docs/metrics.md lists and explains them.
//!
//! There are two kinds. Events are counted where they happen ([`LogMetrics`]). State (files, bytes, queues) is read by
//! a collector in `stats.rs` when the registry is scraped, so it is never stale.

use prometheus::core::Collector;
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntGauge, Registry, exponential_buckets};

use crate::log::error::LogError;

/// Metrics of one engine, built from the registry that is passed in.
pub(crate) struct LogMetrics {
    pub(crate) groups: IntCounter,
    pub(crate) batches: IntCounter,
    pub(crate) bytes_raw: IntCounter,
    pub(crate) bytes_stored: IntCounter,
    pub(crate) bytes_padding: IntCounter,
    pub(crate) no_space: IntCounter,
    pub(crate) rotations: IntCounter,
    pub(crate) rewritten_bytes: IntCounter,
    pub(crate) freed_bytes: IntCounter,
    pub(crate) scrubbed_bytes: IntCounter,
    pub(crate) damage: IntCounter,
    pub(crate) batches_per_group: Histogram,
    pub(crate) write_seconds: Histogram,
    pub(crate) sync_seconds: Histogram,
    /// Set by each purge that looks for them. The exported name, `cortado_log_lagging_groups`, is older than the term
    /// "pinning group". It stays: dashboards and alerts use it.
    pub(crate) pinning_groups: IntGauge,
    pub(crate) pinned_bytes: IntGauge,
    pub(crate) recovery: RecoveryMetrics,
    registry: Registry,
}

/// Gauges of the recovery. Set once.
pub(crate) struct RecoveryMetrics {
    pub(crate) seconds: Gauge,
    pub(crate) files: IntGauge,
    pub(crate) read_bytes: IntGauge,
    pub(crate) groups: IntGauge,
    pub(crate) entries: IntGauge,
    pub(crate) truncated_bytes: IntGauge,
}

impl LogMetrics {
    /// Registers all metrics. Fails if a name is registered already: each engine needs its own registry.
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<LogMetrics> {
        let counter = |name: &str, help: &str| registered(registry, IntCounter::new(name, help)?);
        let gauge = |name: &str, help: &str| registered(registry, IntGauge::new(name, help)?);
        let histogram = |name: &str, help: &str, buckets: Vec<f64>| {
            registered(registry, Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets))?)
        };
        let seconds = || exponential_buckets(0.000_02, 2.0, 18);
        Ok(LogMetrics {
            groups: counter("cortado_log_groups_total", "Commit groups written")?,
            batches: counter("cortado_log_batches_total", "Batches written")?,
            bytes_raw: counter("cortado_log_raw_bytes_total", "Bytes of commit groups before compression and padding")?,
            bytes_stored: counter("cortado_log_stored_bytes_total", "Bytes of commit groups as written, with padding")?,
            bytes_padding: counter("cortado_log_padding_bytes_total", "Bytes of padding among those written")?,
            no_space: counter("cortado_log_no_space_total", "Commit groups not written because the disk was full")?,
            rotations: counter("cortado_log_rotations_total", "Files sealed")?,
            rewritten_bytes: counter("cortado_log_rewritten_bytes_total", "Bytes of live entries rewritten by purge")?,
            freed_bytes: counter("cortado_log_freed_bytes_total", "Bytes of files deleted or kept for reuse by purge")?,
            scrubbed_bytes: counter("cortado_log_scrubbed_bytes_total", "Bytes read again to find damage")?,
            damage: counter("cortado_log_damage_total", "Damaged locations found by purge and scrub")?,
            batches_per_group: histogram(
                "cortado_log_batches_per_group",
                "Batches per commit group",
                exponential_buckets(1.0, 2.0, 12)?,
            )?,
            write_seconds: histogram("cortado_log_write_seconds", "Encoding and writing a commit group", seconds()?)?,
            sync_seconds: histogram("cortado_log_sync_seconds", "Duration of fdatasync", seconds()?)?,
            pinning_groups: gauge("cortado_log_lagging_groups", "Raft groups whose entries pin old files")?,
            pinned_bytes: gauge("cortado_log_pinned_bytes", "Bytes of the entries that pin old files")?,
            recovery: RecoveryMetrics {
                seconds: registered(registry, Gauge::new("cortado_log_recovery_seconds", "How long opening took")?)?,
                files: gauge("cortado_log_recovery_files", "Files found at opening")?,
                read_bytes: gauge("cortado_log_recovery_read_bytes", "Bytes read to open")?,
                groups: gauge("cortado_log_recovery_groups", "Raft groups found at opening")?,
                entries: gauge("cortado_log_recovery_entries", "Live entries found at opening")?,
                truncated_bytes: gauge("cortado_log_recovery_truncated_bytes", "Bytes cut off as a torn tail")?,
            },
            registry: registry.clone(),
        })
    }

    /// Sets how many groups pin old files, and the bytes that they pin.
    pub(crate) fn set_pinning(&self, groups: u64, bytes: u64) {
        self.pinning_groups.set(to_gauge(groups));
        self.pinned_bytes.set(to_gauge(bytes));
    }

    /// Registers a collector. It collects at each scrape of the registry.
    pub(crate) fn register(&self, collector: impl Collector + 'static) -> Result<(), LogError> {
        self.registry.register(Box::new(collector)).map_err(|error| name_taken(&error))
    }
}

/// The error for a metric name that is registered already.
pub(crate) fn name_taken(error: &prometheus::Error) -> LogError {
    LogError::Invalid(format!("metrics: {error}"))
}

/// Registers a metric.
fn registered<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> prometheus::Result<M> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

/// A value as a gauge stores it.
pub(crate) fn to_gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
