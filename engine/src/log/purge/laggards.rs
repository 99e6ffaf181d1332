//! Which groups keep old files alive, so that their owner compacts them. Pure: it looks at the index and at the files' lengths.
//!
//! Old files are those that make up the oldest fifth of the log. A group that pins little of them is cheaper to write again than to
//! report, so it is left alone, but not while the log takes half as much again as it should: many such groups may hold
//! more together than the log may take, and nothing but their owner can let that go.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::super::index::Index;
use super::{Lagging, Sealed};

/// A group that pins fewer bytes of old files is not worth reporting, unless the log is pressed.
const LAG_BYTES: u64 = 4 << 10;
/// No report names more groups; those that pin most come first.
const LAG_GROUPS: usize = 1024;

/// The groups that pin old files.
pub(super) fn lagging(index: &Index, sealed: &Sealed) -> Vec<Lagging> {
    let least = if sealed.pressed { 1 } else { LAG_BYTES };
    let files = &sealed.files;
    let total: u64 = files.iter().map(|(_, len)| len).sum();
    let mut taken = 0;
    let old: BTreeSet<u64> = files
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
    let mut lagging: Vec<Lagging> = Vec::new();
    for group in index.groups() {
        let pinned = index.with(group, |group| {
            let spans = group.runs.iter().filter(|span| old.contains(&span.file));
            spans.fold((0, 0), |(end, bytes), span| (span.end().max(end), bytes + span.bytes))
        });
        let Some((compact_to, pinned_bytes)) = pinned else { continue };
        if pinned_bytes >= least {
            lagging.push(Lagging { group, compact_to, pinned_bytes });
        }
    }
    lagging.sort_unstable_by_key(|lag| (Reverse(lag.pinned_bytes), lag.group));
    lagging.truncate(LAG_GROUPS);
    lagging
}
