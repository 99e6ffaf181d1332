//! Settings of the log engine.

use super::error::{LogError, Result};
use super::format::{PAGE, UNIT};

/// What opening a log does about what is not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryMode {
    /// Refuses it all, a torn tail too: an error names file and offset, and nothing is changed.
    Strict,
    /// Cuts off a tail that no one can have been told is durable, and reports it. Refuses everything else.
    #[default]
    TruncateTail,
    /// Opens what can still be read, to be read only, and changes nothing on the disk. What is lost is reported; what is asked for
    /// and is lost, or may be, is [`LogError::Lost`]; every write is [`LogError::ReadOnly`].
    Salvage,
}

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size in bytes at which the active file is sealed. Default 64 MiB, minimum 64 KiB, maximum 1 GiB.
    pub file_bytes: u64,
    /// A commit group that is synced is padded to a multiple of this many bytes, so that the next write does not touch a
    /// block of the device that holds synced data. A power of two from 8 (packed) to 64 KiB. Default 4096.
    pub align_bytes: u64,
    /// Space is prefilled with zeros in steps of this many bytes ahead of the writes. Default 4 MiB, 0 prefills nothing.
    pub prefill_bytes: u64,
    /// A commit group takes batches until it has about this many bytes. Default 1 MiB, minimum 4 KiB, maximum 64 MiB.
    pub group_bytes: usize,
    /// Entries are compressed, cached and read in blocks of about this many bytes. Default 32 KiB, minimum 1 KiB, maximum
    /// 1 MiB.
    pub block_bytes: usize,
    /// Blocks and metas shorter than this many bytes are stored raw without trying. Default 256; `usize::MAX` turns
    /// compression off.
    pub compress_from: usize,
    /// Batches that may be queued; more are refused as busy. Default 4096, minimum 1.
    pub queue_batches: usize,
    /// Bytes that may be queued; a batch that comes when there are as many is refused as busy. Default 64 MiB, minimum 1.
    pub queue_bytes: usize,
    /// Bytes of decompressed blocks kept for readers. Default 16 MiB; 0 keeps none.
    pub cache_bytes: usize,
    /// Bytes of files up to which purge leaves live data alone; beyond, it writes again what is live in mostly dead files.
    /// Files in which nothing is live go at once. Default 1 GiB.
    pub purge_threshold: u64,
    /// Files kept for reuse. The last one is a reserve with which purge works on a full disk. Default 2; 0 keeps none.
    pub spare_files: usize,
    /// What opening does about damage. Default [`RecoveryMode::TruncateTail`].
    pub recovery: RecoveryMode,
    /// With [`RecoveryMode::Salvage`]: also shows what stands before a part of the log that is lost and that may have changed it.
    /// What is read then was written once, and may have been replaced, compacted or removed since. Default false.
    pub keep_doubtful: bool,
    /// Threads that read sealed files at open, the caller's own among them; each may take 32 MiB besides the index. With 1 no
    /// thread is started and the disk is called in one order always. Default: as many as the machine has, at most 4. Minimum 1,
    /// maximum 64.
    pub recovery_threads: usize,
    /// Reads and verifies every byte of sealed files at open, instead of their indexes alone; to salvage, every block in use.
    /// Default false.
    pub verify: bool,
    /// Identity of a log that is created; `None` draws one at random. Tests that compare bytes set it. Default `None`.
    pub identity: Option<u128>,
    /// Where metrics are registered. Default `None`: not measured.
    pub registry: Option<prometheus::Registry>,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            file_bytes: 64 << 20,
            align_bytes: 4096,
            prefill_bytes: 4 << 20,
            group_bytes: 1 << 20,
            block_bytes: 32 << 10,
            compress_from: 256,
            queue_batches: 4096,
            queue_bytes: 64 << 20,
            cache_bytes: 16 << 20,
            purge_threshold: 1 << 30,
            spare_files: 2,
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
    /// Refuses settings out of their bounds.
    pub fn validate(&self) -> Result<()> {
        let checks = [
            ((64 << 10..=1 << 30).contains(&self.file_bytes), "file_bytes must be 64 KiB to 1 GiB"),
            (
                self.align_bytes.is_power_of_two() && (UNIT..=16 * PAGE).contains(&self.align_bytes),
                "align_bytes must be a power of two from 8 to 64 KiB",
            ),
            ((4 << 10..=64 << 20).contains(&self.group_bytes), "group_bytes must be 4 KiB to 64 MiB"),
            ((1 << 10..=1 << 20).contains(&self.block_bytes), "block_bytes must be 1 KiB to 1 MiB"),
            (self.queue_batches > 0, "queue_batches must be at least 1"),
            (self.queue_bytes > 0, "queue_bytes must be at least 1"),
            ((1..=64).contains(&self.recovery_threads), "recovery_threads must be 1 to 64"),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(LogError::Invalid((*what).to_owned())),
            None => Ok(()),
        }
    }
}
