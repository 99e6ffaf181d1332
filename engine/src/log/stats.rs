//! The current sizes and counts of a log: for callers ([`LogStats`]) and for the metrics registry ([`Gauges`]).

use std::sync::Weak;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntGauge};

use crate::log::commit::Pipeline;
use crate::log::metrics::to_gauge;
use crate::log::types::Lsn;

/// Sizes and counts of a log. They are read one after another during writes, so they may differ by a few writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStats {
    /// Log files, the active one included.
    pub files: usize,
    /// Files kept for reuse.
    pub spare_files: usize,
    /// Bytes of the log files and of the one prepared next, including prefilled space.
    pub disk_bytes: u64,
    /// Approximate size of their referenced parts, in bytes.
    pub live_bytes: u64,
    /// Groups.
    pub groups: usize,
    /// Entries of all groups.
    pub entries: u64,
    /// Bytes of decompressed blocks in the cache.
    pub cached_bytes: usize,
    /// Queued batches.
    pub queued_batches: usize,
    /// Bytes of the queued batches.
    pub queued_bytes: usize,
    /// Whether the disk had no space for a commit group and has reported none since.
    pub is_full: bool,
    /// The position up to which everything is in the index.
    pub published: Lsn,
    /// The position up to which everything is durable.
    pub synced: Lsn,
}

impl LogStats {
    /// Visits every group: not for a hot path.
    pub(crate) fn of(pipeline: &Pipeline) -> LogStats {
        let state = pipeline.state();
        let (groups, entries) = state.index.totals();
        let now = GaugeValues::of(pipeline);
        LogStats {
            files: now.files,
            spare_files: now.spare_files,
            disk_bytes: now.disk_bytes,
            live_bytes: now.live_bytes,
            groups,
            entries,
            cached_bytes: now.cached_bytes,
            queued_batches: now.queued_batches,
            queued_bytes: now.queued_bytes,
            is_full: state.full.load(Ordering::Acquire),
            published: Lsn(state.published.load(Ordering::Acquire)),
            synced: Lsn(state.synced.load(Ordering::Acquire)),
        }
    }
}

/// The values of the gauges. Cheap to read: visits files, but not groups.
pub(crate) struct GaugeValues {
    pub(crate) files: usize,
    pub(crate) spare_files: usize,
    pub(crate) disk_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) cached_bytes: usize,
    pub(crate) cache_hits: u64,
    pub(crate) cache_misses: u64,
    pub(crate) queued_batches: usize,
    pub(crate) queued_bytes: usize,
    pub(crate) is_poisoned: bool,
}

impl GaugeValues {
    pub(crate) fn of(pipeline: &Pipeline) -> GaugeValues {
        let state = pipeline.state();
        let (queued_batches, queued_bytes) = pipeline.queued();
        let (cache_hits, cache_misses) = state.cache.used();
        let files = state.files.lengths();
        GaugeValues {
            files: files.len(),
            spare_files: pipeline.spares().len(),
            disk_bytes: state.disk_bytes(),
            live_bytes: files.iter().map(|(file, len)| state.index.usage(*file).bytes.min(*len)).sum(),
            cached_bytes: state.cache.bytes(),
            cache_hits,
            cache_misses,
            queued_batches,
            queued_bytes,
            is_poisoned: state.poisoned().is_some(),
        }
    }
}

/// A gauge, and the function that reads its value.
type GaugeReader = (IntGauge, fn(&GaugeValues) -> u64);
/// A counter that the log keeps itself, and the function that reads its value.
type CounterReader = (IntCounter, fn(&GaugeValues) -> u64);

/// Collects the state of a log when the registry is scraped. Does not keep the log open, and returns no values for a
/// closed one.
pub(crate) struct Gauges {
    pipeline: Weak<Pipeline>,
    gauges: Vec<GaugeReader>,
    counters: Vec<CounterReader>,
    /// Held by the scrape that updates the counters.
    scrape: Mutex<()>,
}

impl Gauges {
    pub(crate) fn new(pipeline: Weak<Pipeline>) -> prometheus::Result<Gauges> {
        let gauge = |name: &str, help: &str, value: fn(&GaugeValues) -> u64| Ok((IntGauge::new(name, help)?, value));
        let counter =
            |name: &str, help: &str, value: fn(&GaugeValues) -> u64| Ok((IntCounter::new(name, help)?, value));
        let gauges: prometheus::Result<Vec<GaugeReader>> = [
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
        let counters: prometheus::Result<Vec<CounterReader>> = [
            counter("cortado_log_cache_hits_total", "Blocks that were in memory when read", |log| log.cache_hits),
            counter("cortado_log_cache_misses_total", "Blocks that were read from a file", |log| log.cache_misses),
        ]
        .into_iter()
        .collect();
        Ok(Gauges { pipeline, gauges: gauges?, counters: counters?, scrape: Mutex::default() })
    }
}

impl Collector for Gauges {
    fn desc(&self) -> Vec<&Desc> {
        let gauges = self.gauges.iter().flat_map(|(gauge, _)| gauge.desc());
        gauges.chain(self.counters.iter().flat_map(|(counter, _)| counter.desc())).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(pipeline) = self.pipeline.upgrade() else { return Vec::new() };
        let now = GaugeValues::of(&pipeline);
        let gauges = self.gauges.iter().flat_map(|(gauge, value)| {
            gauge.set(to_gauge(value(&now)));
            gauge.collect()
        });
        let _guard = self.scrape.lock();
        let counters = self.counters.iter().flat_map(|(counter, value)| {
            counter.inc_by(value(&now).saturating_sub(counter.get()));
            counter.collect()
        });
        gauges.chain(counters).collect()
    }
}
