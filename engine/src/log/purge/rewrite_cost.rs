//! What rewriting a sealed file costs and brings. No I/O.
//!
//! The index counts what is live in a file by what it takes once. But a key, and the location of an entry, are in the
//! file twice: in the meta of a commit group and in the file's index. A file of nothing but live keys looks half dead
//! by the index, and so would the file that it is rewritten to, for ever. So the cost is what the records would take
//! after the rewrite. It is computed from the file's index, which also tells how well all this compresses.

use super::report::MAX_STEP_BYTES;
use crate::log::format::{Compression, FOOTER, Footer};
use crate::log::index::{FileSummary, RECORD_BYTES};
use crate::log::options::LogOptions;

/// What rewriting a sealed file takes. Never changes for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RewriteCost {
    /// The bytes that could be given back: the file without an end that was too short for the next commit group, which
    /// the file that it is rewritten to may have as well.
    len: u64,
    /// Bytes by which the index counted everything live in the file when it was sealed.
    indexed: u64,
    /// Bytes that the same takes when it is rewritten.
    rewritten: u64,
    /// Bytes to say again what the file undoes of older ones.
    undone: u64,
}

impl RewriteCost {
    /// Of a file of `len` bytes, in a log with these options.
    pub(super) fn of(len: u64, footer: &Footer, summary: &FileSummary, options: &LogOptions) -> RewriteCost {
        let (mut entries, mut records, mut undone) = (0, 0, 0);
        for (_, group) in summary.groups() {
            entries += group.spans().map(|span| span.bytes).sum::<u64>();
            records += if group.floor > 0 { RECORD_BYTES } else { 0 };
            undone += if group.reset { REMOVED_GROUP_BYTES } else { 0 };
            for (key, value) in &group.keys {
                match value {
                    Some(value) => records += RECORD_BYTES + (key.len() + value.len()) as u64,
                    None => undone += key.len() as u64,
                }
            }
        }
        let (stored, raw) = (u64::from(footer.index_stored), u64::from(footer.index_raw).max(1));
        // In the meta, which is as long as the index and compressed if anything is; and in the index, which always is.
        let meta = if options.compression == Compression::Off { raw } else { stored };
        let rewritten_records = meta + stored;
        let undone = rewritten_records * undone.min(raw) / raw;
        let used = footer.index_offset.saturating_add(stored + FOOTER as u64).min(len);
        // What a reused file has beyond the size of log files stays with it, or with the next file that it becomes.
        let end = len.min(used.max(options.file_bytes)) - used;
        // A file that was left early, as one made of the reserve is, is rewritten into a file with others: two that are
        // less than half full fit into one.
        let end = if used < end { end } else { end.saturating_sub(MAX_STEP_BYTES as u64) };
        RewriteCost {
            len: used + end,
            indexed: entries + records,
            rewritten: entries + rewritten_records - undone,
            undone,
        }
    }

    /// Whether at most `max_percent` of the file would be rewritten, if the index counts its live records as `live`
    /// bytes.
    pub(super) fn pays(&self, live: u64, is_oldest: bool, max_percent: u64) -> bool {
        let live = u128::from(self.rewritten) * u128::from(live.min(self.indexed)) / u128::from(self.indexed.max(1));
        let undone = if is_oldest { 0 } else { self.undone };
        // Without header and footer, which many files that were left early share after the rewrite.
        (live as u64 + undone) * 100 <= self.len * max_percent
    }
}

/// About how many bytes a removed group takes in the index.
const REMOVED_GROUP_BYTES: u64 = 8;
