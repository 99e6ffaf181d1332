//! What a sealed file is made of, and so what writing it again would bring. Pure.
//!
//! The index counts what lives in a file by what it takes once. But a key, and the place of an entry, stand in the file twice, in the meta of a commit group
//! and in the dense index. A file of nothing but live keys looks half dead by the index, and so would the file that it is written again to: for ever.
//! So what is worth writing again is judged by what it would take then, drawn from the file's dense index, which tells also how well all this
//! compresses.

use super::super::effects::FileEffects;
use super::super::format::{FOOTER, Footer};
use super::super::group::RECORD_BYTES;
use super::super::{Compression, LogOptions};
use super::GROUP_BYTES;

/// The makeup of a sealed file; it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Makeup {
    /// The bytes that could be given back: without an end that was too short for the next commit group, which the file that it is written again to may have as well.
    len: u64,
    /// What all that lived in the file when it was sealed counted for in the index, and what it takes when it is written again.
    weight: u64,
    again: u64,
    /// What it takes to say again what the file undoes of older ones.
    undone: u64,
}

impl Makeup {
    /// Of a file of `len` bytes, in a log with these options.
    pub(super) fn of(len: u64, footer: &Footer, effects: &FileEffects, options: &LogOptions) -> Makeup {
        let (mut entries, mut records, mut undone) = (0, 0, 0);
        for (_, group) in effects.groups() {
            entries += group.spans().map(|span| span.bytes).sum::<u64>();
            records += if group.floor > 0 { RECORD_BYTES } else { 0 };
            undone += if group.reset { REMOVED_BYTES } else { 0 };
            for (key, value) in &group.keys {
                match value {
                    Some(value) => records += RECORD_BYTES + (key.len() + value.len()) as u64,
                    None => undone += key.len() as u64,
                }
            }
        }
        let (stored, raw) = (u64::from(footer.index_stored), u64::from(footer.index_raw).max(1));
        // In the meta, which is as long as the index, and compressed where anything is; and in the index, which always is.
        let meta = if options.compression == Compression::Off { raw } else { stored };
        let records_again = meta + stored;
        let undone = records_again * undone.min(raw) / raw;
        let used = footer.index_offset.saturating_add(stored + FOOTER as u64).min(len);
        // What a reused file has beyond the bound of files stays with it, or with the next one that it becomes.
        let end = len.min(used.max(options.file_bytes)) - used;
        // A file that was left early, as one made of the reserve is, comes back in a file with others: two that are less than half full fit into one.
        let end = if used < end { end } else { end.saturating_sub(GROUP_BYTES as u64) };
        Makeup { len: used + end, weight: entries + records, again: entries + records_again - undone, undone }
    }

    /// Whether at most `most` percent of the file would be written again, where what lives in it counts for `live` in the index.
    pub(super) fn pays(&self, live: u64, is_oldest: bool, most: u64) -> bool {
        let live = u128::from(self.again) * u128::from(live.min(self.weight)) / u128::from(self.weight.max(1));
        let undone = if is_oldest { 0 } else { self.undone };
        // Without header and footer, which it shares there with others: many files that were left early fit into one.
        (live as u64 + undone) * 100 <= self.len * most
    }
}

/// About what a removed group takes in the index.
const REMOVED_BYTES: u64 = 8;
