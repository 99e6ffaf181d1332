//! What the log measures.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntGauge, Registry, exponential_buckets};

/// Metrics of one engine, built from the registry that is handed in.
pub(crate) struct LogMetrics {
    pub(crate) groups: IntCounter,
    pub(crate) batches: IntCounter,
    pub(crate) bytes_raw: IntCounter,
    pub(crate) bytes_stored: IntCounter,
    pub(crate) rotations: IntCounter,
    pub(crate) rewritten_bytes: IntCounter,
    pub(crate) batches_per_group: Histogram,
    pub(crate) sync_seconds: Histogram,
    pub(crate) files: IntGauge,
    pub(crate) spare_files: IntGauge,
    pub(crate) disk_bytes: IntGauge,
    pub(crate) live_bytes: IntGauge,
}

impl LogMetrics {
    /// Registers all of them. An error is a name that is taken already: two engines need two registries.
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<LogMetrics> {
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let histogram = |name: &str, help: &str, buckets: Vec<f64>| {
            let histogram = Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets))?;
            registry.register(Box::new(histogram.clone()))?;
            Ok::<_, prometheus::Error>(histogram)
        };
        Ok(LogMetrics {
            groups: counter("cortado_log_groups_total", "Commit groups written")?,
            batches: counter("cortado_log_batches_total", "Batches written")?,
            bytes_raw: counter("cortado_log_raw_bytes_total", "Bytes of commit groups before compression")?,
            bytes_stored: counter("cortado_log_stored_bytes_total", "Bytes of commit groups as written, with padding")?,
            rotations: counter("cortado_log_rotations_total", "Files sealed")?,
            rewritten_bytes: counter("cortado_log_rewritten_bytes_total", "Bytes of live entries rewritten by purge")?,
            batches_per_group: histogram(
                "cortado_log_batches_per_group",
                "Batches that shared a commit group",
                exponential_buckets(1.0, 2.0, 12)?,
            )?,
            sync_seconds: histogram(
                "cortado_log_sync_seconds",
                "Duration of fdatasync",
                exponential_buckets(0.000_02, 2.0, 18)?,
            )?,
            files: gauge("cortado_log_files", "Log files")?,
            spare_files: gauge("cortado_log_spare_files", "Files kept for reuse")?,
            disk_bytes: gauge("cortado_log_disk_bytes", "Bytes of the log files, with what is prefilled")?,
            live_bytes: gauge("cortado_log_live_bytes", "Bytes of the log files that are referred to, about")?,
        })
    }
}
