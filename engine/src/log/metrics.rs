//! What the log measures: docs/metrics.md has the list, and what to make of it.
//!
//! Two kinds. What happens is counted where it happens ([`LogMetrics`]). What *is* (files, bytes, queues) is read when somebody asks for it
//! ([`Gauges`], a collector of the registry), so it is never older than the question, from the first one after opening on.

use std::sync::Weak;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, IntGauge, Registry, exponential_buckets};

use super::pipeline::Pipeline;
use super::purge::PurgeReport;
use super::stats::Reading;
use super::{LogError, RecoveryReport};

/// Metrics of one engine, built from the registry that is handed in.
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
    /// As purge found them when it looked last.
    pub(crate) lagging_groups: IntGauge,
    pub(crate) pinned_bytes: IntGauge,
    recovery: Recovery,
    registry: Registry,
}

/// What opening the log was like; set once.
struct Recovery {
    seconds: Gauge,
    files: IntGauge,
    read_bytes: IntGauge,
    groups: IntGauge,
    entries: IntGauge,
    truncated_bytes: IntGauge,
}

impl LogMetrics {
    /// Registers all of them. An error is a name that is taken already: two engines need two registries.
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
            damage: counter("cortado_log_damage_total", "Damaged places that purge and scrub met")?,
            batches_per_group: histogram(
                "cortado_log_batches_per_group",
                "Batches that shared a commit group",
                exponential_buckets(1.0, 2.0, 12)?,
            )?,
            write_seconds: histogram("cortado_log_write_seconds", "Encoding and writing a commit group", seconds()?)?,
            sync_seconds: histogram("cortado_log_sync_seconds", "Duration of fdatasync", seconds()?)?,
            lagging_groups: gauge("cortado_log_lagging_groups", "Raft groups whose entries pin old files")?,
            pinned_bytes: gauge("cortado_log_pinned_bytes", "Bytes of the entries that pin old files")?,
            recovery: Recovery {
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

    /// The log is open.
    pub(crate) fn opened(&self, report: &RecoveryReport, took: Duration) {
        let recovery = &self.recovery;
        recovery.seconds.set(took.as_secs_f64());
        recovery.files.set(whole(report.files as u64));
        recovery.read_bytes.set(whole(report.bytes_read));
        recovery.groups.set(whole(report.groups as u64));
        recovery.entries.set(whole(report.entries));
        recovery.truncated_bytes.set(whole(report.truncated_bytes));
    }

    /// From now on the registry asks this log for what it is like.
    pub(crate) fn watch(&self, pipeline: Weak<Pipeline>) -> Result<(), LogError> {
        let gauges = Gauges::new(pipeline).and_then(|gauges| self.registry.register(Box::new(gauges)));
        gauges.map_err(|error| taken(&error))
    }

    /// A step of purge is done, which has looked for groups that stand in the way, or not.
    pub(crate) fn purged(&self, report: &PurgeReport, looked: bool) {
        self.freed_bytes.inc_by(report.freed);
        if looked {
            self.lagging_groups.set(whole(report.lagging.len() as u64));
            self.pinned_bytes.set(whole(report.lagging.iter().map(|lag| lag.pinned_bytes).sum()));
        }
    }
}

/// The error of a name that is taken.
pub(crate) fn taken(error: &prometheus::Error) -> LogError {
    LogError::Invalid(format!("metrics: {error}"))
}

fn registered<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> prometheus::Result<M> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// One gauge, and where its value is.
type Shown = (IntGauge, fn(&Reading) -> u64);
/// One counter that the log keeps itself, and where its value is.
type Counted = (IntCounter, fn(&Reading) -> u64);

/// What a log is like when somebody asks. Does not keep it open: of one that is closed there is nothing to say.
struct Gauges {
    pipeline: Weak<Pipeline>,
    gauges: Vec<Shown>,
    counters: Vec<Counted>,
    /// One who asks brings the counters up to date at a time.
    asking: Mutex<()>,
}

impl Gauges {
    fn new(pipeline: Weak<Pipeline>) -> prometheus::Result<Gauges> {
        let gauge = |name: &str, help: &str, value: fn(&Reading) -> u64| Ok((IntGauge::new(name, help)?, value));
        let counter = |name: &str, help: &str, value: fn(&Reading) -> u64| Ok((IntCounter::new(name, help)?, value));
        let gauges: prometheus::Result<Vec<Shown>> = [
            gauge("cortado_log_files", "Log files", |log| log.files as u64),
            gauge("cortado_log_spare_files", "Files kept for reuse", |log| log.spare_files as u64),
            gauge("cortado_log_disk_bytes", "Bytes of the log files, with what is prefilled", |log| log.disk_bytes),
            gauge("cortado_log_live_bytes", "Bytes of the log files that are referred to, about", |log| log.live_bytes),
            gauge("cortado_log_cache_bytes", "Bytes of decompressed blocks in memory", |log| log.cached_bytes as u64),
            gauge("cortado_log_queued_batches", "Batches that wait to be written", |log| log.queued_batches as u64),
            gauge("cortado_log_queued_bytes", "Bytes that wait to be written", |log| log.queued_bytes as u64),
            gauge("cortado_log_poisoned", "1 when nothing is written any more", |log| u64::from(log.is_poisoned)),
        ]
        .into_iter()
        .collect();
        let counters: prometheus::Result<Vec<Counted>> = [
            counter("cortado_log_cache_hits_total", "Blocks that were in memory when read", |log| log.cache_hits),
            counter("cortado_log_cache_misses_total", "Blocks that were read from a file", |log| log.cache_misses),
        ]
        .into_iter()
        .collect();
        Ok(Gauges { pipeline, gauges: gauges?, counters: counters?, asking: Mutex::default() })
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        let gauges = self.gauges.iter().flat_map(|(gauge, _)| gauge.desc());
        gauges.chain(self.counters.iter().flat_map(|(counter, _)| counter.desc())).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(pipeline) = self.pipeline.upgrade() else { return Vec::new() };
        let now = Reading::of(&pipeline);
        let gauges = self.gauges.iter().flat_map(|(gauge, value)| {
            gauge.set(whole(value(&now)));
            gauge.collect()
        });
        let _one = self.asking.lock();
        let counters = self.counters.iter().flat_map(|(counter, value)| {
            counter.inc_by(value(&now).saturating_sub(counter.get()));
            counter.collect()
        });
        gauges.chain(counters).collect()
    }
}
