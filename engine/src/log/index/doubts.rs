//! The certain and the doubtful records of a salvaged log.
//!
//! A lost part of the log may have contained any change: replaced entries, a compacted or removed group, a new value of
//! a key. So for a group that it may concern, only later records are certain. Earlier records are *doubtful*: they were
//! written, and may have been changed since. A group is *whole* if no loss concerns it, or if it was removed after the
//! last loss that does: then its complete state is known.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::group::Group;
use super::ranges::{EntryRange, clip, normalize, subtract};
use super::table::{Editor, Index};
use crate::log::error::{Damage, LogError};
use crate::log::format::{Sink, Span};
use crate::log::types::GroupId;

/// The losses of one group. Groups not reported are whole.
///
/// If all lists are empty, no record of the group before a loss is left. It may have had keys, and entries before those
/// that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLoss {
    /// The group.
    pub group: GroupId,
    /// Entries that existed and have no readable record.
    pub missing: Vec<EntryRange>,
    /// Readable entries from before a loss that may have replaced or compacted them, or removed the group. Returned only
    /// with `LogOptions::keep_doubtful`.
    pub doubtful: Vec<EntryRange>,
    /// Entries in damaged blocks. Set only with `LogOptions::verify`.
    pub unreadable: Vec<EntryRange>,
    /// Keys whose newest readable value is from before a loss.
    pub keys: Vec<Bytes>,
}

/// The groups that are not whole, and their records before the losses.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Whether some loss may concern any group.
    any_doubted: bool,
    /// Groups that a loss may concern, and their records before it.
    groups: BTreeMap<GroupId, PriorRecords>,
    /// Groups that became whole after a loss that may concern any group.
    whole: BTreeSet<GroupId>,
    /// The index after the last entry, if a record after the last loss contains it.
    ends: BTreeMap<GroupId, u64>,
}

/// The records of a group before a loss.
#[derive(Debug, Default)]
struct PriorRecords {
    entries: Vec<EntryRange>,
    /// Keys without a record after the loss.
    keys: BTreeSet<Bytes>,
}

impl Doubts {
    /// Adds a loss that concerns these groups, or any group if `None`. `index` holds the state before it.
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
            self.keep_prior(index, group);
        }
    }

    /// Keeps the records of a group before a loss.
    fn keep_prior(&mut self, index: &Index, group: GroupId) {
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

    /// Whether records of the group may be lost.
    pub(crate) fn is_doubted(&self, group: GroupId) -> bool {
        self.groups.contains_key(&group) || (self.any_doubted && !self.whole.contains(&group))
    }

    /// The error for an entry that is not in the index; `None` if the group is whole. `floor` is that of the group.
    pub(crate) fn absence_error(&self, group: GroupId, floor: u64, index: u64) -> Option<LogError> {
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

    /// The losses of each group, ascending. `index` holds the certain records.
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

    /// A readable record contains the end of a group's log.
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

/// The entries of a group.
pub(crate) fn ranges(group: &Group) -> Vec<EntryRange> {
    let spans =
        group.runs.iter().filter_map(|span| Some(EntryRange { first: span.first, last: span.end().checked_sub(1)? }));
    normalize(spans.collect())
}

/// Applies changes to the index, and records which state they make certain.
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
