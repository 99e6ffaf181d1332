//! The bytes that rewriting a sealed file takes. No I/O.
//!
//! The index counts each live record once. But a file holds a key, and the location of an entry, twice: in the meta of
//! a commit group and in the file's index. By the index, a file of nothing but live keys is half dead. So is the file
//! that it is rewritten to, and purge would never end. So the cost is computed from the file's own index: what the live
//! records take after the rewrite. The lengths in the footer also give the compression ratio.

use super::report::MAX_STEP_BYTES;
use crate::log::format::{Compression, FOOTER, Footer, GROUP_HEADER};
use crate::log::index::{FileSummary, RECORD_BYTES};
use crate::log::options::LogOptions;

/// The cost of rewriting a sealed file. It never changes for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RewriteCost {
    /// The bytes that a rewrite can free at most. They exclude unused space at the end that was too short for the next
    /// commit group: the file that the records move to may have as much.
    pub(super) len: u64,
    /// Bytes by which the index counted the live records when the file was sealed.
    indexed: u64,
    /// Bytes that the same records take when they are rewritten.
    rewritten: u64,
    /// Bytes that each commit group of the rewrite takes in addition: its header, and its alignment at most.
    group_overhead: u64,
}

impl RewriteCost {
    /// Of a file of `len` bytes, in a log with these options.
    pub(super) fn of(len: u64, footer: &Footer, summary: &FileSummary, options: &LogOptions) -> RewriteCost {
        let (mut entries, mut records, mut removals) = (0, 0, 0);
        for (_, group) in summary.groups() {
            entries += group.spans().map(|span| span.bytes).sum::<u64>();
            records += if group.floor > 0 { RECORD_BYTES } else { 0 };
            removals += if group.reset { REMOVED_GROUP_BYTES } else { 0 };
            for (key, value) in &group.keys {
                match value {
                    Some(value) => records += RECORD_BYTES + (key.len() + value.len()) as u64,
                    None => removals += key.len() as u64,
                }
            }
        }
        let (stored, raw) = (u64::from(footer.index_stored), u64::from(footer.index_raw).max(1));
        // The meta is as long as the index and compressed if the log compresses. The index is always compressed.
        let meta = if options.compression == Compression::Off { raw } else { stored };
        let rewritten_records = meta + stored;
        // Deleted keys and removed groups are not rewritten: no older file has them.
        let removals = rewritten_records * removals.min(raw) / raw;
        let used = footer.index_offset.saturating_add(stored + FOOTER as u64).min(len);
        // A reused file may exceed the size of log files. The excess stays with it, or with the next file made of it.
        let end = len.min(used.max(options.file_bytes)) - used;
        // A file that was left early, as one made of the reserve is, is rewritten into a file with others: two that are
        // less than half full fit into one.
        let end = if used < end { end } else { end.saturating_sub(MAX_STEP_BYTES as u64) };
        // Without header and footer, which many files that were left early share after the rewrite.
        RewriteCost {
            len: used + end,
            indexed: entries + records,
            rewritten: entries + rewritten_records - removals,
            group_overhead: GROUP_HEADER as u64 + options.align_bytes,
        }
    }

    /// Bytes to rewrite if the index counts the file's live records as `live` bytes: the records, and the overhead of
    /// their commit groups and of the group that drops the file.
    pub(super) fn rewritten(&self, live: u64) -> u64 {
        if live == 0 {
            return 0;
        }
        let rewritten = u128::from(self.rewritten) * u128::from(live.min(self.indexed));
        let rewritten = (rewritten / u128::from(self.indexed.max(1))) as u64;
        rewritten + (rewritten / MAX_STEP_BYTES as u64 + 2) * self.group_overhead
    }
}

/// About how many bytes a removed group takes in the index.
const REMOVED_GROUP_BYTES: u64 = 8;
