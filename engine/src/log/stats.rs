//! What a log holds at this moment, in numbers.

use std::sync::atomic::Ordering;

use super::Lsn;
use super::group::Group;
use super::pipeline::Pipeline;

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
        let (groups, entries) = shared.index.totals();
        let now = Reading::of(pipeline);
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
            written: Lsn(shared.landed.load(Ordering::Acquire)),
            synced: Lsn(shared.synced.load(Ordering::Acquire)),
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
    /// Number of blocks and parts of blocks that they stand in.
    pub runs: usize,
    /// Number of small keys.
    pub keys: usize,
    /// Bytes of these keys and their values.
    pub key_bytes: u64,
}

impl GroupStats {
    pub(super) fn of(group: &Group) -> GroupStats {
        GroupStats {
            entries: group.runs.iter().map(|span| u64::from(span.count)).sum(),
            stored_bytes: group.runs.iter().map(|span| span.bytes).sum(),
            runs: group.runs.len(),
            keys: group.keys.len(),
            key_bytes: group.keys.iter().map(|kv| (kv.key().len() + kv.value().len()) as u64).sum(),
        }
    }
}

/// What is cheap to say of a log at any time: it looks at files, and not at groups.
pub(super) struct Reading {
    pub(super) files: usize,
    pub(super) spare_files: usize,
    pub(super) disk_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) cached_bytes: usize,
    pub(super) cache_hits: u64,
    pub(super) cache_misses: u64,
    pub(super) queued_batches: usize,
    pub(super) queued_bytes: usize,
    pub(super) is_poisoned: bool,
}

impl Reading {
    pub(super) fn of(pipeline: &Pipeline) -> Reading {
        let shared = &pipeline.shared;
        let (queued_batches, queued_bytes) = pipeline.queued();
        let (cache_hits, cache_misses) = shared.cache.used();
        let files = shared.files.lengths();
        Reading {
            files: files.len(),
            spare_files: shared.spares.lock().len(),
            disk_bytes: files.iter().map(|(_, len)| len).sum(),
            live_bytes: files.iter().map(|(file, len)| shared.index.usage(*file).bytes.min(*len)).sum(),
            cached_bytes: shared.cache.bytes(),
            cache_hits,
            cache_misses,
            queued_batches,
            queued_bytes,
            is_poisoned: shared.poisoned().is_some(),
        }
    }
}
