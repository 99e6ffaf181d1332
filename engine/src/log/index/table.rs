//! The index of all groups, and the referenced bytes of each file.
//!
//! One thread changes it: the writer. (During recovery, each shard is given to one thread at a time.) Any number of
//! threads read. A change locks the group's shard for one item at a time and never during I/O.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::group::Group;
use super::usage::{Usage, UsageDelta};
use crate::log::error::Damage;
use crate::log::format::{Sink, Span};
use crate::log::types::{GroupBounds, GroupId};

/// Number of shards, each with a lock of its own.
pub(crate) const SHARDS: usize = 64;

/// The shard of a group.
pub(crate) fn shard_of(group: GroupId) -> usize {
    (group.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHARDS
}

/// Counts of one shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShardSurvey {
    pub(crate) groups: usize,
    pub(crate) entries: u64,
    /// The lowest group whose entries are not consecutive, with the missing index.
    pub(crate) gap: Option<(GroupId, u64)>,
}

/// The index.
pub(crate) struct Index {
    /// Groups are boxed: half of a map's slots may be empty.
    shards: Vec<RwLock<HashMap<GroupId, Box<Group>>>>,
    usage: Mutex<BTreeMap<u64, Usage>>,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index { shards: (0..SHARDS).map(|_| RwLock::default()).collect(), usage: Mutex::default() }
    }

    fn shard(&self, group: GroupId) -> &RwLock<HashMap<GroupId, Box<Group>>> {
        &self.shards[shard_of(group)]
    }

    /// Calls `read` with a group; `None` if it does not exist.
    pub(crate) fn with<T>(&self, group: GroupId, read: impl FnOnce(&Group) -> T) -> Option<T> {
        self.shard(group).read().get(&group).map(|group| read(group))
    }

    /// The bounds of a group.
    pub(crate) fn bounds(&self, group: GroupId) -> Option<GroupBounds> {
        self.with(group, Group::bounds)
    }

    /// All groups, sorted.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> =
            self.shards.iter().flat_map(|s| s.read().keys().copied().collect::<Vec<_>>()).collect();
        groups.sort_unstable();
        groups
    }

    /// The groups with entries in the block at `offset` of `file`, sorted. Visits every group: for errors.
    pub(crate) fn groups_at(&self, file: u64, offset: u64) -> Vec<GroupId> {
        let mut groups = self.groups();
        let is_in_it = |group: &Group| group.runs.iter().any(|span| (span.file, span.offset) == (file, offset));
        groups.retain(|id| self.with(*id, is_in_it).unwrap_or(false));
        groups
    }

    /// The groups with an entry, a key or the floor recorded in `file`, sorted. Visits every group: for errors.
    pub(crate) fn groups_in(&self, file: u64) -> Vec<GroupId> {
        let mut groups = self.groups();
        let is_in_it = |group: &Group| {
            group.floor > 0 && group.floor_file == file
                || group.keys.iter().any(|kv| kv.file == file)
                || group.runs.iter().any(|span| span.file == file)
        };
        groups.retain(|id| self.with(*id, is_in_it).unwrap_or(false));
        groups
    }

    /// The references to `file`.
    pub(crate) fn usage(&self, file: u64) -> Usage {
        self.usage.lock().get(&file).copied().unwrap_or_default()
    }

    /// Number of groups and of entries.
    pub(crate) fn totals(&self) -> (usize, u64) {
        let parts = (0..SHARDS).map(|shard| self.survey(shard));
        parts.fold((0, 0), |(groups, entries), part| (groups + part.groups, entries + part.entries))
    }

    /// Counts the groups and entries of one shard, and looks for gaps.
    pub(crate) fn survey(&self, shard: usize) -> ShardSurvey {
        let Some(shard) = self.shards.get(shard) else { return ShardSurvey::default() };
        let shard = shard.read();
        let mut survey = ShardSurvey { groups: shard.len(), ..ShardSurvey::default() };
        for (id, group) in shard.iter() {
            survey.entries += group.runs.iter().map(|span| u64::from(span.count)).sum::<u64>();
            if survey.gap.is_none_or(|(known, _)| known > *id)
                && let Some(missing) = group.runs.gap()
            {
                survey.gap = Some((*id, missing));
            }
        }
        survey
    }

    /// The references to each file, counted from the groups. Must equal `usage`.
    #[cfg(test)]
    pub(crate) fn audit(&self) -> BTreeMap<u64, Usage> {
        let mut delta = UsageDelta::default();
        for shard in &self.shards {
            shard.read().values().for_each(|group| group.count(&mut delta));
        }
        let counted = delta.drain().map(|(file, refs, bytes)| (file, Usage { refs: refs as u64, bytes: bytes as u64 }));
        counted.collect()
    }

    /// A handle to change the index. For the writer, or during recovery for the thread that has the shard.
    pub(crate) fn editor(&self) -> Editor<'_> {
        Editor { index: self, delta: UsageDelta::default() }
    }

    /// Changes a group. Creates it first if needed, and removes it if it is empty afterwards.
    fn edit<T>(&self, group: GroupId, change: impl FnOnce(&mut Group) -> T) -> T {
        let mut shard = self.shard(group).write();
        let entry = shard.entry(group).or_default();
        let out = change(entry);
        if entry.is_empty() {
            shard.remove(&group);
        }
        out
    }
}

/// Changes the index and, when dropped, the usage of files.
pub(crate) struct Editor<'a> {
    index: &'a Index,
    delta: UsageDelta,
}

impl Sink for Editor<'_> {
    fn place(&mut self, group: GroupId, end: u64, spans: &[Span]) -> Result<(), Damage> {
        self.index.edit(group, |group| group.place(end, spans, &mut self.delta))
    }

    fn put(&mut self, group: GroupId, key: &Bytes, value: &Bytes, file: u64) {
        self.index.edit(group, |group| group.put(key, value, file, &mut self.delta));
    }

    fn delete(&mut self, group: GroupId, key: &[u8]) {
        self.index.edit(group, |group| group.delete(key, &mut self.delta));
    }

    fn compact(&mut self, group: GroupId, first_kept: u64, file: u64) {
        self.index.edit(group, |group| group.compact(first_kept, file, &mut self.delta));
    }

    fn remove(&mut self, group: GroupId) {
        self.index.edit(group, |group| group.clear(&mut self.delta));
    }

    fn drop_file(&mut self, _dropped: u64) {}
}

impl Drop for Editor<'_> {
    fn drop(&mut self) {
        let mut usage = self.index.usage.lock();
        for (file, refs, bytes) in self.delta.drain() {
            let entry = usage.entry(file).or_default();
            entry.refs = entry.refs.saturating_add_signed(refs);
            entry.bytes = entry.bytes.saturating_add_signed(bytes);
            if entry.refs == 0 {
                usage.remove(&file);
            }
        }
    }
}
