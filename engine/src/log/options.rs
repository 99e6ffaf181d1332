//! Settings of the log engine.

use crate::log::error::{LogError, Result};
use crate::log::format::{Compression, PAGE, UNIT};

/// How an open handles damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryMode {
    /// Fails on any damage, also on a torn tail. The error names file and offset, and nothing is changed.
    Strict,
    /// Truncates a torn tail, which is not proven to be synced, and reports it. Fails on any other damage.
    #[default]
    TruncateTail,
    /// Opens the readable part of the log, read-only, and changes nothing on the disk. Losses are reported. A read of a
    /// value that is or may be lost fails with [`LogError::Lost`], and every write with [`LogError::ReadOnly`]. Lists
    /// of groups, bounds and sizes cover the readable part.
    Salvage,
}

/// Settings of the engine. [`LogOptions::validate`] checks the documented bounds. Fields without bounds take any value.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size in bytes at which the active file is sealed. Default 64 MiB, minimum 64 KiB, maximum 1 GiB.
    pub file_bytes: u64,
    /// Alignment of the end of a synced commit group, in bytes. A power of two from 8 (packed) to 64 KiB. Default 8:
    /// packed groups take less space, fill files more slowly and were never slower (docs/benchmarks.md). A write of the
    /// next group rewrites the last sector of the previous one with the same bytes. For a device that may tear a
    /// sector, set its sector size, so that no write touches synced data.
    pub align_bytes: u64,
    /// Size of the steps in which space ahead of the writes is filled with zeros, in bytes. A writer may wait for a
    /// step and its sync, so steps are small. Space that is only reserved is taken in steps of a sixteenth of
    /// `file_bytes`, if that is more. Default 128 KiB, maximum 1 GiB. 0 allocates nothing ahead, not even for the seal
    /// of a file: then the log does not survive a full disk, because a file without space for the seal cannot be
    /// followed by the reserve.
    pub prefill_bytes: u64,
    /// Approximate maximum size of a commit group, in bytes. Default 1 MiB, minimum 4 KiB, maximum 64 MiB.
    pub group_bytes: usize,
    /// Approximate size of a block, the unit in which entries are compressed, cached and read, in bytes. Default 32
    /// KiB, minimum 1 KiB, maximum 1 MiB.
    pub block_bytes: usize,
    /// The compression of entries. Default LZ4.
    pub compression: Compression,
    /// Minimum size of a block or meta to compress, in bytes. Default 256.
    pub compress_from: usize,
    /// Maximum number of queued batches; more are rejected as busy. The memory is allocated at open. Default 4096,
    /// minimum 1, maximum 65536.
    pub queue_batches: usize,
    /// Size of the queued batches from which further batches are rejected as busy, in bytes. Default 64 MiB, minimum 1.
    pub queue_bytes: usize,
    /// Size of the cache of decompressed blocks, in bytes. Default 16 MiB; 0 disables it. A block larger than a
    /// sixteenth of the cache is not cached.
    pub cache_bytes: usize,
    /// Size of the log, with the file that is prepared next, from which purge rewrites the live records of the oldest
    /// files, in bytes, if that frees enough. Dead files at the old end are dropped at any size, and on a full disk
    /// purge rewrites at any size. Default 1 GiB, maximum 1 PiB; 0 always rewrites.
    pub purge_threshold: u64,
    /// Maximum number of files kept for reuse. The last one is a reserve for purge on a full disk. Default 2, maximum
    /// 1024; 0 keeps none.
    pub spare_files: usize,
    /// Whether to create a log if there is none. Set `false` when a log must already exist: an open without one then
    /// fails with [`LogError::NoLog`]. (A directory without log files but with remains of a log, such as spares, is
    /// [`LogError::Missing`] in any case.) Default true; salvage never creates one.
    pub create: bool,
    /// How an open handles damage. Default [`RecoveryMode::TruncateTail`].
    pub recovery: RecoveryMode,
    /// With [`RecoveryMode::Salvage`]: also returns records from before a lost part of the log that may have changed
    /// them. Such entries were written, and may have been replaced, compacted or removed since. Default false.
    pub keep_doubtful: bool,
    /// Number of threads that read sealed files at open, including the caller's. Each may take 32 MiB besides the
    /// index. With 1 no thread is started and the order of disk calls is deterministic. Default: the number of
    /// processors, at most 4. Minimum 1, maximum 64.
    pub recovery_threads: usize,
    /// Reads and verifies every byte of sealed files at open, instead of their indexes alone; in salvage mode, every
    /// block in use. Default false.
    pub verify: bool,
    /// The identity of a new log; `None` draws one at random. Set by tests that compare bytes. Default `None`.
    pub identity: Option<u128>,
    /// The registry for metrics. Default `None`: no metrics.
    pub registry: Option<prometheus::Registry>,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            file_bytes: 64 << 20,
            align_bytes: 8,
            prefill_bytes: 128 << 10,
            group_bytes: 1 << 20,
            block_bytes: 32 << 10,
            compression: Compression::default(),
            compress_from: 256,
            queue_batches: 4096,
            queue_bytes: 64 << 20,
            cache_bytes: 16 << 20,
            purge_threshold: 1 << 30,
            spare_files: 2,
            create: true,
            recovery: RecoveryMode::default(),
            keep_doubtful: false,
            recovery_threads: std::thread::available_parallelism().map_or(1, usize::from).min(4),
            verify: false,
            identity: None,
            registry: None,
        }
    }
}

impl LogOptions {
    /// Checks that all settings are within their bounds.
    pub fn validate(&self) -> Result<()> {
        let checks = [
            ((64 << 10..=1 << 30).contains(&self.file_bytes), "file_bytes must be 64 KiB to 1 GiB"),
            (
                self.align_bytes.is_power_of_two() && (UNIT..=16 * PAGE).contains(&self.align_bytes),
                "align_bytes must be a power of two from 8 to 64 KiB",
            ),
            (self.prefill_bytes <= 1 << 30, "prefill_bytes must be at most 1 GiB"),
            ((4 << 10..=64 << 20).contains(&self.group_bytes), "group_bytes must be 4 KiB to 64 MiB"),
            ((1 << 10..=1 << 20).contains(&self.block_bytes), "block_bytes must be 1 KiB to 1 MiB"),
            (self.compression.is_valid(), "compression level of zstd must be 1 to 19"),
            ((1..=1 << 16).contains(&self.queue_batches), "queue_batches must be 1 to 65536"),
            (self.queue_bytes > 0, "queue_bytes must be at least 1"),
            (self.purge_threshold <= 1 << 50, "purge_threshold must be at most 1 PiB"),
            (self.spare_files <= 1024, "spare_files must be at most 1024"),
            ((1..=64).contains(&self.recovery_threads), "recovery_threads must be 1 to 64"),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(LogError::Invalid((*what).to_owned())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A field, how to set it, its minimum, and its maximum if it has one.
    pub(crate) type Bounds = (&'static str, fn(&mut LogOptions, u64), u64, Option<u64>);

    pub(crate) const BOUNDS: [Bounds; 11] = [
        ("file_bytes", |options, value| options.file_bytes = value, 64 << 10, Some(1 << 30)),
        ("align_bytes", |options, value| options.align_bytes = value, 8, Some(64 << 10)),
        ("prefill_bytes", |options, value| options.prefill_bytes = value, 0, Some(1 << 30)),
        ("group_bytes", |options, value| options.group_bytes = value as usize, 4 << 10, Some(64 << 20)),
        ("block_bytes", |options, value| options.block_bytes = value as usize, 1 << 10, Some(1 << 20)),
        ("queue_batches", |options, value| options.queue_batches = value as usize, 1, Some(1 << 16)),
        ("queue_bytes", |options, value| options.queue_bytes = value as usize, 1, None),
        ("cache_bytes", |options, value| options.cache_bytes = value as usize, 0, None),
        ("purge_threshold", |options, value| options.purge_threshold = value, 0, Some(1 << 50)),
        ("spare_files", |options, value| options.spare_files = value as usize, 0, Some(1024)),
        ("recovery_threads", |options, value| options.recovery_threads = value as usize, 1, Some(64)),
    ];

    pub(crate) fn with(set: fn(&mut LogOptions, u64), value: u64) -> LogOptions {
        // Small, because the simulated disk keeps it all in memory.
        let mut options =
            LogOptions { file_bytes: 64 << 10, prefill_bytes: 0, spare_files: 0, ..LogOptions::default() };
        set(&mut options, value);
        options
    }

    fn refused(name: &str, set: fn(&mut LogOptions, u64), value: u64) -> bool {
        match with(set, value).validate() {
            Err(LogError::Invalid(what)) => what.starts_with(name),
            _ => false,
        }
    }

    #[test]
    fn settings_are_accepted_within_their_bounds_only() {
        for (name, set, least, greatest) in BOUNDS {
            with(set, least).validate().unwrap();
            with(set, greatest.unwrap_or(u64::MAX)).validate().unwrap();
            assert!(least == 0 || refused(name, set, least - 1), "{name} below");
            if let Some(greatest) = greatest {
                assert!(refused(name, set, greatest + 1) && refused(name, set, u64::MAX), "{name} above");
            }
        }
        assert!(refused("align_bytes", |options, value| options.align_bytes = value, 24), "no power of two");
        LogOptions::default().validate().unwrap();
    }
}
