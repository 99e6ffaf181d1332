//! What a log holds at this moment, in numbers.

use std::sync::atomic::Ordering;

use super::Lsn;
use super::pipeline::Pipeline;
use super::read::Shared;

/// A log in numbers. Taken one after another while it is written to, so they need not agree to the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStats {
    /// Log files, the active one included.
    pub files: usize,
    /// Files kept for reuse.
    pub spare_files: usize,
    /// Bytes of the log files, with what is prefilled.
    pub disk_bytes: u64,
    /// About how many of them are referred to.
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
    /// The position up to which all is in the index.
    pub written: Lsn,
    /// The position up to which all is durable.
    pub synced: Lsn,
}

impl LogStats {
    /// Looks at every group: not for a hot path.
    pub(super) fn of(pipeline: &Pipeline) -> LogStats {
        let shared = &pipeline.shared;
        let (queued_batches, queued_bytes) = pipeline.queued();
        let (groups, entries) = shared.index.totals();
        let (files, disk_bytes, live_bytes) = shared.space();
        LogStats {
            files,
            spare_files: shared.spares.lock().len(),
            disk_bytes,
            live_bytes,
            groups,
            entries,
            cached_bytes: shared.cache.bytes(),
            queued_batches,
            queued_bytes,
            written: Lsn(shared.landed.load(Ordering::Acquire)),
            synced: Lsn(shared.synced.load(Ordering::Acquire)),
        }
    }
}

impl Shared {
    /// Number of files, their bytes, and about how many of these are referred to.
    pub(super) fn space(&self) -> (usize, u64, u64) {
        let files = self.files.lengths();
        let bytes = files.iter().map(|(_, len)| len).sum();
        let live = files.iter().map(|(file, len)| self.index.usage(*file).bytes.min(*len)).sum();
        (files.len(), bytes, live)
    }

    /// Brings the gauges up to date.
    pub(super) fn observe(&self) {
        if let Some(metrics) = &self.metrics {
            let (files, bytes, live) = self.space();
            metrics.files.set(files as i64);
            metrics.disk_bytes.set(bytes as i64);
            metrics.live_bytes.set(live as i64);
            metrics.spare_files.set(self.spares.lock().len() as i64);
        }
    }
}
