//! The sealed files at one moment: their lengths, whether the log is too large, which files are dead, and which groups
//! pin the old ones. No I/O.
//!
//! Old files are the oldest fifth of the log. A group that pins little of them is cheaper to rewrite than to report. It
//! is reported only under pressure: many such groups together may hold more than the threshold, and only their owner
//! can compact them.

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
    /// Whether the log, with its active and its prepared file, exceeds its threshold. A log whose disk is full always
    /// does.
    pub(super) exceeds_threshold: bool,
    /// Whether it exceeds one and a half times its threshold: the log is under pressure.
    pub(super) under_pressure: bool,
}

impl SealedFiles {
    /// The sealed files without the `dropped` ones. These are no longer part of the log, but take space until they are
    /// deleted.
    pub(super) fn of(state: &LogState, dropped: &BTreeSet<u64>) -> SealedFiles {
        let (total, mut files) = (state.disk_bytes(), state.files.lengths());
        files.pop();
        let unsealed = state.unsealed().map(|file| file.place.seq);
        files.retain(|(seq, _)| !dropped.contains(seq) && Some(*seq) != unsealed);
        let threshold = state.options.purge_threshold;
        let full = state.full.load(Ordering::Acquire);
        SealedFiles {
            files,
            exceeds_threshold: full || total > threshold,
            under_pressure: full || total > threshold + threshold / 2,
        }
    }

    /// The oldest files up to the first one with live records.
    pub(super) fn dead(&self, index: &Index) -> Vec<u64> {
        self.files.iter().map(|(seq, _)| *seq).take_while(|seq| index.usage(*seq).refs == 0).collect()
    }

    /// The groups that pin old files.
    pub(super) fn pinning_groups(&self, index: &Index) -> Vec<PinningGroup> {
        let least = if self.under_pressure { 1 } else { MIN_PINNED_BYTES };
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
