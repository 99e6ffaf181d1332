//! Settings of the log engine.

use super::compress::Compression;
use super::error::{LogError, Result};
use super::format::{PAGE, UNIT};

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
    /// How entries are compressed. Default LZ4.
    pub compression: Compression,
    /// Blocks and metas shorter than this many bytes are stored raw without trying. Default 256.
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
    /// Reads and verifies every byte of sealed files at open, instead of their indexes alone. Default false.
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
            compression: Compression::default(),
            compress_from: 256,
            queue_batches: 4096,
            queue_bytes: 64 << 20,
            cache_bytes: 16 << 20,
            purge_threshold: 1 << 30,
            spare_files: 2,
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
            (self.compression.is_valid(), "compression level of zstd must be 1 to 19"),
            (self.queue_batches > 0, "queue_batches must be at least 1"),
            (self.queue_bytes > 0, "queue_bytes must be at least 1"),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(LogError::Invalid((*what).to_owned())),
            None => Ok(()),
        }
    }
}
