//! What a log with losses can still vouch for.
//!
//! A lost part of the log may have said anything: entries replaced, a group compacted or removed, a key set anew. So of
//! a group that it may concern, only records after it are believed. Records before it are *doubtful*: they were
//! written, and may not hold any more. A group is *whole* if no loss concerns it, or if it was removed after the last
//! one that does: then everything about it is known again.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::group::Group;
use super::ranges::{EntryRange, clip, normalize, subtract};
use super::table::{Editor, Index};
use crate::log::error::{Damage, LogError};
use crate::log::format::{Sink, Span};
use crate::log::types::GroupId;

/// What is lost of one group. A group that is not named is whole.
///
/// If nothing is listed below, nothing is known of the group from before a lost part of the log that may concern it.
/// There may have been keys, and entries before those that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLoss {
    /// The group.
    pub group: GroupId,
    /// Entries that existed, and of which no readable record is left.
    pub missing: Vec<EntryRange>,
    /// Entries that can be read but were recorded before a loss, which may have replaced or compacted them, or removed
    /// the group. Shown only with `LogOptions::keep_doubtful`.
    pub doubtful: Vec<EntryRange>,
    /// Entries whose blocks are damaged. Looked for only with `LogOptions::verify`.
    pub unreadable: Vec<EntryRange>,
    /// Keys of which only a value from before a loss is known.
    pub keys: Vec<Bytes>,
}

/// The groups that are not whole, and what was known of them before.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Whether some loss may concern any group.
    any_doubted: bool,
    /// Groups that a loss concerns, or may concern, and what was recorded of them before it.
    groups: BTreeMap<GroupId, Before>,
    /// Groups that are whole after a loss that may concern any group.
    whole: BTreeSet<GroupId>,
    /// The index after the last entry, if a record after the last loss says it.
    ends: BTreeMap<GroupId, u64>,
}

/// What was known of a group before a loss.
#[derive(Debug, Default)]
struct Before {
    entries: Vec<EntryRange>,
    /// Keys that no record after the loss sets or removes.
    keys: BTreeSet<Bytes>,
}

impl Doubts {
    /// Notes a loss that concerns these groups, or any group if `None`. `index` holds what is known up to there.
    pub(crate) fn add_loss(&mut self, index: &Index, concerns: Option<&[GroupId]>) {
        let known = match concerns {
            Some(groups) => groups.to_vec(),
            None => {
                self.any_doubted = true;
                self.whole.clear();
                let mut known = index.groups();
                known.extend(self.groups.keys());
                known
            }
        };
        for group in known {
            self.note_before(index, group);
        }
    }

    fn note_before(&mut self, index: &Index, group: GroupId) {
        let end = self.ends.remove(&group);
        self.whole.remove(&group);
        let before = self.groups.entry(group).or_default();
        let floor = index.with(group, |known| known.floor).unwrap_or(0);
        let mut entries = clip(&before.entries, floor, end);
        index.with(group, |known| {
            entries.extend(ranges(known));
            before.keys.extend(known.keys.iter().map(|kv| Bytes::copy_from_slice(kv.key())));
        });
        before.entries = normalize(entries);
    }

    /// Whether something of the group may be lost.
    pub(crate) fn is_doubted(&self, group: GroupId) -> bool {
        self.groups.contains_key(&group) || (self.any_doubted && !self.whole.contains(&group))
    }

    /// Why an entry of a group that is not whole is not in the index; `None` for a whole group. `floor` is the group's.
    pub(crate) fn absent(&self, group: GroupId, floor: u64, index: u64) -> Option<LogError> {
        if !self.is_doubted(group) {
            return None;
        }
        if index < floor {
            return Some(LogError::Compacted { first: floor });
        }
        match self.ends.get(&group) {
            Some(end) if index >= *end => Some(LogError::NotFound { last: end.saturating_sub(1) }),
            _ => Some(LogError::Lost { group, what: format!("entry {index}") }),
        }
    }

    /// The losses of each group, ascending. `index` holds what is believed.
    pub(crate) fn losses(&self, index: &Index) -> Vec<GroupLoss> {
        let mut groups: BTreeSet<GroupId> = self.groups.keys().copied().collect();
        if self.any_doubted {
            groups.extend(index.groups().into_iter().filter(|group| !self.whole.contains(group)));
        }
        groups.into_iter().map(|group| self.loss(index, group)).collect()
    }

    fn loss(&self, index: &Index, group: GroupId) -> GroupLoss {
        let end = self.ends.get(&group).copied();
        let (floor, held) = index.with(group, |known| (known.floor, ranges(known))).unwrap_or_default();
        let before = self.groups.get(&group);
        let doubtful = before.map_or_else(Vec::new, |before| subtract(&clip(&before.entries, floor, end), &held));
        let mut readable = held;
        readable.extend(&doubtful);
        let readable = normalize(readable);
        let lowest = readable.first().map(|range| range.first);
        let from = if floor > 0 { Some(floor) } else { lowest };
        let last = end.map(|end| end.saturating_sub(1)).max(readable.last().map(|range| range.last));
        let all = from.zip(last).map(|(first, last)| EntryRange { first, last });
        let all = normalize(all.into_iter().collect());
        let keys = before.map_or_else(Vec::new, |before| before.keys.iter().cloned().collect());
        GroupLoss { group, missing: subtract(&all, &readable), doubtful, unreadable: Vec::new(), keys }
    }

    /// A readable record says that the log of a group ends before `end`.
    fn set_end(&mut self, group: GroupId, end: u64) {
        if self.is_doubted(group) {
            self.ends.insert(group, end);
        }
    }

    fn forget_key(&mut self, group: GroupId, key: &[u8]) {
        if let Some(before) = self.groups.get_mut(&group) {
            before.keys.remove(key);
        }
    }

    fn group_removed(&mut self, group: GroupId) {
        self.groups.remove(&group);
        self.ends.remove(&group);
        if self.any_doubted {
            self.whole.insert(group);
        }
    }
}

/// The entries that are known of a group.
pub(crate) fn ranges(group: &Group) -> Vec<EntryRange> {
    let spans =
        group.runs.iter().filter_map(|span| Some(EntryRange { first: span.first, last: span.end().checked_sub(1)? }));
    normalize(spans.collect())
}

/// Applies changes to the index, and notes what is certain again.
pub(crate) struct DoubtTracker<'a> {
    pub(crate) editor: Editor<'a>,
    pub(crate) doubts: &'a mut Doubts,
}

impl Sink for DoubtTracker<'_> {
    fn place(&mut self, group: GroupId, end: u64, spans: &[Span]) -> Result<(), Damage> {
        self.doubts.set_end(group, spans.last().map_or(end, |span| span.end().max(end)));
        self.editor.place(group, end, spans)
    }

    fn put(&mut self, group: GroupId, key: &Bytes, value: &Bytes, file: u64) {
        self.doubts.forget_key(group, key);
        self.editor.put(group, key, value, file);
    }

    fn delete(&mut self, group: GroupId, key: &[u8]) {
        self.doubts.forget_key(group, key);
        self.editor.delete(group, key);
    }

    fn compact(&mut self, group: GroupId, first_kept: u64, file: u64) {
        self.editor.compact(group, first_kept, file);
    }

    fn remove(&mut self, group: GroupId) {
        self.doubts.group_removed(group);
        self.editor.remove(group);
    }

    fn drop_file(&mut self, dropped: u64) {
        self.editor.drop_file(dropped);
    }
}
