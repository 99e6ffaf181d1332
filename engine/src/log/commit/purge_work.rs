//! The work that purge hands to the writer: rewrite a part of an old file, or drop files.
//!
//! A file also undoes what older files say: it removes groups, deletes keys, truncates entries. While an older file
//! exists, that must be said again, or the older file's records would come back. A rewrite says the present state again
//! (the group is absent, the key is absent, the log ends here), so writing it changes nothing by itself:
//!
//! - A truncation: a live entry at or after it is in this file or a newer one and is placed after the older file's
//!   entry. What is beyond the group's last entry is truncated again.
//! - A floor, a live entry, a live key: counted as references to the file, and rewritten.
//! - A deleted key, a removed group: said again if it is still absent. If it exists again, a newer record says so.
//! - A removed group that exists again: its old keys would have to be known. Such a file waits until it is the oldest,
//!   also if the group came back after the file was chosen.
//!
//! What is said again stays said, because later changes are in newer files. So a file may be rewritten in parts. When
//! all parts are written the file is *superseded*: nothing of it is needed.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::log::format::{BlockBuilder, Item, Span};
use crate::log::index::{FileSummary, Index};
use crate::log::types::GroupId;

/// A step of purge, as it is queued.
pub(crate) struct PurgeWork {
    task: PurgeTask,
    effect: Arc<OnceLock<PurgeEffect>>,
}

enum PurgeTask {
    /// Live records of an old file, again.
    Rewrite(Rewrite),
    /// Files that hold nothing live, each with whether it is superseded.
    Drop(Vec<(u64, bool)>),
}

/// What a step of purge changed, once it is published.
#[derive(Debug, Default)]
pub(crate) struct PurgeEffect {
    /// Files that are recorded as dropped and can be deleted.
    pub(crate) dropped: Vec<u64>,
    /// A superseded file: nothing of it is needed, not even what it undoes of older files.
    pub(crate) superseded: Option<u64>,
}

/// A step of purge in a drafted commit group.
pub(crate) struct DraftedPurge {
    planned: PurgeEffect,
    effect: Arc<OnceLock<PurgeEffect>>,
}

impl PurgeWork {
    /// Rewrites a part of an old file. The effect is set when the group is published.
    pub(crate) fn rewrite(rewrite: Rewrite) -> (PurgeWork, Arc<OnceLock<PurgeEffect>>) {
        PurgeWork::new(PurgeTask::Rewrite(rewrite))
    }

    /// Drops files, each with whether it is superseded. The effect is set when the group is published.
    pub(crate) fn drop_files(files: Vec<(u64, bool)>) -> (PurgeWork, Arc<OnceLock<PurgeEffect>>) {
        PurgeWork::new(PurgeTask::Drop(files))
    }

    fn new(task: PurgeTask) -> (PurgeWork, Arc<OnceLock<PurgeEffect>>) {
        let effect = Arc::default();
        (PurgeWork { task, effect: Arc::clone(&effect) }, effect)
    }

    /// Bytes it counts for in the queue.
    pub(crate) fn bytes(&self) -> usize {
        match &self.task {
            PurgeTask::Rewrite(rewrite) => rewrite.bytes,
            PurgeTask::Drop(_) => 0,
        }
    }

    /// Adds it to a commit group that holds nothing else. Returns the bytes of rewritten entries, too.
    pub(crate) fn add(
        self,
        index: &Index,
        is_droppable: impl Fn(u64, bool) -> bool,
        items: &mut Vec<Item>,
        builder: &mut BlockBuilder<'_>,
    ) -> (DraftedPurge, u64) {
        let mut planned = PurgeEffect::default();
        let mut bytes = 0;
        match self.task {
            PurgeTask::Rewrite(rewrite) => {
                planned.superseded = rewrite.supersedes(index).then_some(rewrite.file);
                bytes = rewrite.add(index, items, builder);
            }
            PurgeTask::Drop(files) => {
                for (file, _) in files.into_iter().filter(|(file, superseded)| is_droppable(*file, *superseded)) {
                    items.push(Item::Drop { file });
                    planned.dropped.push(file);
                }
            }
        }
        (DraftedPurge { planned, effect: self.effect }, bytes)
    }
}

impl DraftedPurge {
    /// The files that the group drops.
    pub(crate) fn dropped(&self) -> &[u64] {
        &self.planned.dropped
    }

    /// The group is in the index.
    pub(crate) fn published(mut self, index: &Index) {
        let is_dead = |file: &u64| index.usage(*file).refs == 0;
        self.planned.superseded = self.planned.superseded.filter(is_dead);
        let planned = self.planned;
        self.effect.get_or_init(|| planned);
    }
}

/// A part of what must be said again of one file, as it was when purge looked.
#[derive(Debug, Default)]
pub(crate) struct Rewrite {
    pub(crate) file: u64,
    /// Entries, by group and first index.
    pub(crate) entries: Vec<(GroupId, u64, Vec<Bytes>)>,
    pub(crate) keys: Vec<(GroupId, Bytes)>,
    pub(crate) floors: Vec<GroupId>,
    pub(crate) undone: Undone,
    /// About how many bytes all this takes.
    pub(crate) bytes: usize,
    /// Set in the last part. Once it is written the file is superseded, if these groups, which the file removed, are
    /// absent.
    pub(crate) last: Option<Vec<GroupId>>,
}

/// What a file undoes of older ones. Empty for the oldest file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undone {
    pub(crate) removed: Vec<GroupId>,
    truncated: Vec<GroupId>,
    deleted: Vec<(GroupId, Bytes)>,
}

impl Undone {
    /// Of the file with this summary.
    pub(crate) fn of(summary: &FileSummary) -> Undone {
        let mut undone = Undone::default();
        for (group, changes) in summary.groups() {
            if changes.reset {
                undone.removed.push(group);
            }
            if changes.end.is_some() {
                undone.truncated.push(group);
            }
            let deleted = changes.keys.iter().filter(|(_, value)| value.is_none());
            undone.deleted.extend(deleted.map(|(key, _)| (group, key.clone())));
        }
        undone
    }

    /// Takes a part of about `max_bytes` away: at least one record, if there is any.
    pub(crate) fn take(&mut self, max_bytes: usize) -> (Undone, usize) {
        let (mut part, mut bytes) = (Undone::default(), 0);
        while bytes < max_bytes {
            if let Some(group) = self.removed.pop() {
                part.removed.push(group);
                bytes += 16;
            } else if let Some(group) = self.truncated.pop() {
                part.truncated.push(group);
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

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.truncated.is_empty() && self.deleted.is_empty()
    }

    fn items(self, index: &Index) -> Vec<Item> {
        let absent = |group: &GroupId| index.bounds(*group).is_none();
        let removed = self.removed.into_iter().filter(absent).map(|group| Item::Remove { group });
        let truncated = self.truncated.into_iter().filter_map(|group| {
            let (floor, last) = index.with(group, |known| (known.floor, known.bounds().last))?;
            let first = last.checked_add(1)?;
            Some(Item::Rewrite { group, floor, last, first, count: 0 })
        });
        let deleted = self.deleted.into_iter().filter_map(|(group, key)| {
            let exists = index.with(group, |known| known.get(&key).is_some()).unwrap_or(false);
            (!exists).then_some(Item::Delete { group, key })
        });
        removed.chain(truncated).chain(deleted).collect()
    }
}

impl Rewrite {
    /// Whether it is the last part.
    pub(crate) fn is_last(&self) -> bool {
        self.last.is_some()
    }

    /// Whether the file is superseded once this is written, as the index is now.
    fn supersedes(&self, index: &Index) -> bool {
        self.last.as_ref().is_some_and(|removed| are_absent(removed, index))
    }

    /// Adds what is still live, and still in that file, to a commit group. Returns the bytes of its entries. Records
    /// that were overwritten, compacted or removed since purge looked are left out.
    fn add(self, index: &Index, items: &mut Vec<Item>, builder: &mut BlockBuilder<'_>) -> u64 {
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

/// Whether none of these groups exists.
pub(crate) fn are_absent(groups: &[GroupId], index: &Index) -> bool {
    groups.iter().all(|group| index.bounds(*group).is_none())
}
