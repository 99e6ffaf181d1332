//! What a log holds at this moment, in numbers: for callers ([`LogStats`]) and for the metrics registry ([`Gauges`]).

use std::sync::Weak;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntGauge};

use crate::log::commit::Pipeline;
use crate::log::index::Group;
use crate::log::metrics::to_gauge;
use crate::log::types::Lsn;

/// A log in numbers. They are read one after another during writes, so they need not agree to the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStats {
    /// Log files, the active one included.
    pub files: usize,
    /// Files kept for reuse.
    pub spare_files: usize,
    /// Bytes of the log files, including prefilled space.
    pub disk_bytes: u64,
    /// About how many of them are referenced.
    pub live_bytes: u64,
    /// Groups.
    pub groups: usize,
    /// Entries of all groups.
    pub entries: u64,
    /// Bytes of decompressed blocks in the cache.
    pub cached_bytes: usize,
    /// Batches and bytes that are queued.
    pub queued_batches: usize,
    /// See `queued_batches`.
    pub queued_bytes: usize,
    /// Whether the disk had no room for a commit group and has shown none since.
    pub is_full: bool,
    /// The position up to which everything is in the index.
    pub written: Lsn,
    /// The position up to which everything is durable.
    pub synced: Lsn,
}

impl LogStats {
    /// Visits every group: not for a hot path.
    pub(crate) fn of(pipeline: &Pipeline) -> LogStats {
        let state = pipeline.state();
        let (groups, entries) = state.index.totals();
        let now = Snapshot::of(pipeline);
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
            written: Lsn(state.published.load(Ordering::Acquire)),
            synced: Lsn(state.synced.load(Ordering::Acquire)),
        }
    }
}

/// What a group holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Number of entries.
    pub entries: u64,
    /// About how many bytes they take on disk, compressed.
    pub stored_bytes: u64,
    /// Number of runs: blocks, and parts of blocks, with its entries.
    pub runs: usize,
    /// Number of small keys.
    pub keys: usize,
    /// Bytes of these keys and their values.
    pub key_bytes: u64,
}

impl GroupStats {
    pub(crate) fn of(group: &Group) -> GroupStats {
        GroupStats {
            entries: group.runs.iter().map(|span| u64::from(span.count)).sum(),
            stored_bytes: group.runs.iter().map(|span| span.bytes).sum(),
            runs: group.runs.len(),
            keys: group.keys.len(),
            key_bytes: group.keys.iter().map(|kv| (kv.key().len() + kv.value().len()) as u64).sum(),
        }
    }
}

/// What is cheap to read at any time: visits files, but not groups.
pub(crate) struct Snapshot {
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

impl Snapshot {
    pub(crate) fn of(pipeline: &Pipeline) -> Snapshot {
        let state = pipeline.state();
        let (queued_batches, queued_bytes) = pipeline.queued();
        let (cache_hits, cache_misses) = state.cache.used();
        let files = state.files.lengths();
        Snapshot {
            files: files.len(),
            spare_files: pipeline.context.spares.len(),
            disk_bytes: files.iter().map(|(_, len)| len).sum(),
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

/// A gauge, and how to read its value.
type Shown = (IntGauge, fn(&Snapshot) -> u64);
/// A counter that the log keeps itself, and how to read its value.
type Counted = (IntCounter, fn(&Snapshot) -> u64);

/// Collects the state of a log when the registry is scraped. Does not keep the log open, and shows nothing of a closed
/// one.
pub(crate) struct Gauges {
    pipeline: Weak<Pipeline>,
    gauges: Vec<Shown>,
    counters: Vec<Counted>,
    /// One scrape at a time updates the counters.
    asking: Mutex<()>,
}

impl Gauges {
    pub(crate) fn new(pipeline: Weak<Pipeline>) -> prometheus::Result<Gauges> {
        let gauge = |name: &str, help: &str, value: fn(&Snapshot) -> u64| Ok((IntGauge::new(name, help)?, value));
        let counter = |name: &str, help: &str, value: fn(&Snapshot) -> u64| Ok((IntCounter::new(name, help)?, value));
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
        let now = Snapshot::of(&pipeline);
        let gauges = self.gauges.iter().flat_map(|(gauge, value)| {
            gauge.set(to_gauge(value(&now)));
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
