//! What of an old file is written again before it goes: its live records, and what it says of older files.
//!
//! A file also undoes what older files say: it removes groups, deletes keys, cuts entries. While an older file is there, that
//! must be said again, or the older file's records would come back. What is said again is the present state (the group is
//! absent, the key is absent, the log ends here), so writing it changes nothing by itself:
//!
//! - A cut: an entry at or after the cut that is live stands in this file or a newer one, and is placed after the older file's;
//!   what lies beyond the group's last entry is cut again.
//! - A floor, a live entry, a live key: counted as references to the file, and written again like entries.
//! - A deleted key, a removed group: said again where it is still absent. Where it is there again, a newer record says so.
//! - A removed group that is there again: its old keys would have to be known. Such a file waits until it is the oldest; also if
//!   the group came back after the file was chosen.
//!
//! What is said again stays said: whatever changes afterwards is in a newer file. So it may be said in parts, and nothing is needed of the file any
//! more when all of them are.

use bytes::Bytes;

use super::super::GroupId;
use super::super::block::BlockBuilder;
use super::super::effects::FileEffects;
use super::super::index::Index;
use super::super::items::Item;
use super::super::runs::Span;

/// A part of what is to be said again of one file, as it was when looked at.
#[derive(Debug, Default)]
pub(crate) struct Rewrite {
    pub(crate) file: u64,
    pub(super) entries: Vec<(GroupId, u64, Vec<Bytes>)>,
    pub(super) keys: Vec<(GroupId, Bytes)>,
    pub(super) floors: Vec<GroupId>,
    pub(super) undone: Undone,
    /// Bytes of all this, about.
    pub(super) bytes: usize,
    /// Set in the last part: nothing of the file is needed any more once it is written, if these groups are absent, which the file removed.
    pub(super) last: Option<Vec<GroupId>>,
}

/// What a file undoes of older ones. Empty where there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undone {
    pub(super) removed: Vec<GroupId>,
    cut: Vec<GroupId>,
    deleted: Vec<(GroupId, Bytes)>,
}

impl Undone {
    /// Of the file with these effects.
    pub(super) fn of(effects: &FileEffects) -> Undone {
        let mut undone = Undone::default();
        for (group, changes) in effects.groups() {
            if changes.reset {
                undone.removed.push(group);
            }
            if changes.end.is_some() {
                undone.cut.push(group);
            }
            let deleted = changes.keys.iter().filter(|(_, value)| value.is_none());
            undone.deleted.extend(deleted.map(|(key, _)| (group, key.clone())));
        }
        undone
    }

    /// Takes a part of it away, of about `most` bytes: at least one thing, if there is any.
    pub(super) fn take(&mut self, most: usize) -> (Undone, usize) {
        let (mut part, mut bytes) = (Undone::default(), 0);
        while bytes < most {
            if let Some(group) = self.removed.pop() {
                part.removed.push(group);
                bytes += 16;
            } else if let Some(group) = self.cut.pop() {
                part.cut.push(group);
                bytes += 32;
            } else if let Some((group, key)) = self.deleted.pop() {
                bytes += key.len() + 16;
                part.deleted.push((group, key));
            } else {
                break;
            }
        }
        (part, bytes)
    }

    /// Whether nothing is left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.cut.is_empty() && self.deleted.is_empty()
    }

    fn items(self, index: &Index) -> Vec<Item> {
        let absent = |group: &GroupId| index.bounds(*group).is_none();
        let removed = self.removed.into_iter().filter(absent).map(|group| Item::Remove { group });
        let cut = self.cut.into_iter().filter_map(|group| {
            let (floor, last) = index.with(group, |known| (known.floor, known.bounds().last))?;
            let first = last.checked_add(1)?;
            Some(Item::Rewrite { group, floor, last, first, count: 0 })
        });
        let deleted = self.deleted.into_iter().filter_map(|(group, key)| {
            let there = index.with(group, |known| known.get(&key).is_some()).unwrap_or(false);
            (!there).then_some(Item::Delete { group, key })
        });
        removed.chain(cut).chain(deleted).collect()
    }
}

impl Rewrite {
    /// Bytes it will take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is the last part.
    pub(crate) fn is_last(&self) -> bool {
        self.last.is_some()
    }

    /// Whether nothing is needed of the file any more once this is written, as the index stands now.
    pub(crate) fn settles(&self, index: &Index) -> bool {
        self.last.as_ref().is_some_and(|removed| are_absent(removed, index))
    }

    /// Adds what is still live, and still in that file, to a commit group that holds nothing else; returns the bytes of its
    /// entries. What was overwritten, compacted or removed since the look is left out.
    pub(crate) fn add(self, index: &Index, items: &mut Vec<Item>, builder: &mut BlockBuilder) -> u64 {
        let mut bytes = 0;
        for (id, first, entries) in &self.entries {
            let end = first + entries.len() as u64;
            let live = index.with(*id, |group| {
                let spans = group.runs.iter_from(*first).take_while(|span| span.first < end);
                let spans: Vec<Span> = spans.filter(|span| span.file == self.file).collect();
                (group.floor, group.bounds().last, spans)
            });
            let Some((floor, last, spans)) = live else { continue };
            for span in spans {
                let (from, to) = (span.first.max(*first), span.end().min(end));
                let entries = &entries[(from - first) as usize..(to - first) as usize];
                builder.append(*id, entries);
                bytes += entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
                items.push(Item::Rewrite { group: *id, floor, last, first: from, count: to - from });
            }
        }
        for (id, key) in self.keys {
            let live = index.with(id, |group| {
                let live = group.get(&key).filter(|kv| kv.file == self.file);
                live.map(|kv| Bytes::copy_from_slice(kv.value()))
            });
            if let Some(value) = live.flatten() {
                items.push(Item::Put { group: id, key, value });
            }
        }
        for id in self.floors {
            let floor = index.with(id, |group| (group.floor_file == self.file).then_some(group.floor)).flatten();
            if let Some(first_kept) = floor.filter(|floor| *floor > 0) {
                items.push(Item::Compact { group: id, first_kept });
            }
        }
        items.extend(self.undone.items(index));
        bytes
    }
}

/// Whether none of these groups exists: a file that removed one that is there again waits (see the module documentation).
pub(super) fn are_absent(groups: &[GroupId], index: &Index) -> bool {
    groups.iter().all(|group| index.bounds(*group).is_none())
}
