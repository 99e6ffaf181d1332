//! The sealed files, which are those that purge can drop, and the groups that pin the old ones. Decides nothing.
//!
//! Old files are the oldest fifth of the log. A group that pins little of them is cheaper to rewrite than to report. It
//! is reported only while the log takes half as much again as its threshold: many such groups may hold more together
//! than the log may take, and only their owner can compact them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::report::PinningGroup;
use crate::log::index::Index;
use crate::log::read::LogState;

/// A group that pins fewer bytes of old files is reported only under pressure.
const MIN_PINNED_BYTES: u64 = 4 << 10;
/// No report names more groups; those that pin most come first.
const MAX_PINNING_GROUPS: usize = 1024;

/// See the module documentation.
pub(super) struct SealedFiles {
    /// Number and length of each, oldest first.
    pub(super) files: Vec<(u64, u64)>,
    /// Whether the log, with its active file, takes more than its threshold.
    pub(super) over: bool,
    /// Whether it takes half as much again. A log whose disk is full takes too much in any case.
    pub(super) pressed: bool,
}

impl SealedFiles {
    /// The sealed files without the `dropped` ones, which are not part of the log any more but take space until the
    /// disk lets go of them.
    pub(super) fn of(state: &LogState, dropped: &BTreeSet<u64>) -> SealedFiles {
        let mut files = state.files.lengths();
        let total: u64 = files.iter().map(|(_, len)| len).sum();
        files.pop();
        files.retain(|(seq, _)| !dropped.contains(seq));
        let threshold = state.options.purge_threshold;
        let full = state.full.load(Ordering::Acquire);
        SealedFiles { files, over: full || total > threshold, pressed: full || total > threshold + threshold / 2 }
    }

    /// Whether `file` is one of them.
    pub(super) fn has(&self, file: u64) -> bool {
        self.files.binary_search_by_key(&file, |(seq, _)| *seq).is_ok()
    }

    /// Files that can be dropped, each with whether it is superseded.
    pub(super) fn droppable(&self, index: &Index, superseded: &BTreeSet<u64>) -> Vec<(u64, bool)> {
        let mut all_older_dead = true;
        let mut out = Vec::new();
        for (seq, _) in &self.files {
            let dead = index.usage(*seq).refs == 0;
            let is_superseded = superseded.contains(seq);
            if dead && (all_older_dead || is_superseded) {
                out.push((*seq, is_superseded));
            }
            all_older_dead &= dead;
        }
        out
    }

    /// The groups that pin old files.
    pub(super) fn pinning_groups(&self, index: &Index) -> Vec<PinningGroup> {
        let least = if self.pressed { 1 } else { MIN_PINNED_BYTES };
        let total: u64 = self.files.iter().map(|(_, len)| len).sum();
        let mut taken = 0;
        let old: BTreeSet<u64> = self
            .files
            .iter()
            .take_while(|(_, len)| {
                taken += len;
                taken <= total / 5
            })
            .map(|(seq, _)| *seq)
            .collect();
        let live: u64 = old.iter().map(|seq| index.usage(*seq).bytes).sum();
        if live < least {
            return Vec::new();
        }
        let mut pinning: Vec<PinningGroup> = Vec::new();
        for group in index.groups() {
            let pinned = index.with(group, |group| {
                let spans = group.runs.iter().filter(|span| old.contains(&span.file));
                spans.fold((0, 0), |(end, bytes), span| (span.end().max(end), bytes + span.bytes))
            });
            let Some((compact_to, pinned_bytes)) = pinned else { continue };
            if pinned_bytes >= least {
                pinning.push(PinningGroup { group, compact_to, pinned_bytes });
            }
        }
        pinning.sort_unstable_by_key(|pinning| (Reverse(pinning.pinned_bytes), pinning.group));
        pinning.truncate(MAX_PINNING_GROUPS);
        pinning
    }
}
