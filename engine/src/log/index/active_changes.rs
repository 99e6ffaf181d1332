//! The changes of the active file that the index does not hold. They are kept until the file is sealed.
//!
//! The index locates every entry and key, also those in the active file. A second copy of these, as in a
//! [`FileSummary`], would double the memory of a changed group and the work of every write. So only changes that the
//! index does not hold are kept: how far a group was truncated and compacted, whether it was removed, which keys were
//! deleted.
//!
//! Invariant: if every group of the file is published to the index, then index and changes together encode to the same
//! bytes as a replay of these groups into a [`FileSummary`].

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::file_summary::FileSummary;
use super::group::Group;
use super::table::Index;
use crate::log::error::Damage;
use crate::log::format::{BLOCK_ENTRIES, GroupHead, IndexKey, Sink, Span, UNIT, encode_group, put_varint, varint_len};
use crate::log::types::GroupId;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct ActiveChanges {
    groups: BTreeMap<GroupId, GroupChanges>,
    /// Removed keys that were not set afterwards.
    deleted: BTreeSet<(GroupId, Bytes)>,
    /// An upper bound of the length of the file's index if it is sealed now.
    max_len: usize,
    /// The length when it was last measured.
    measured: usize,
}

/// Maximum size of a group without its number, end, floor, keys and spans, in bytes: flags, an empty floor, two counts.
const MAX_GROUP_LEN: usize = 4;
/// Maximum size of a key without its bytes and those of its value, in bytes.
const MAX_KEY_LEN: usize = 12;
/// Maximum size of the number of groups, in bytes.
const MAX_COUNT_LEN: usize = 10;

/// Maximum size of a span in the index, in bytes, also if it is truncated at either end.
fn max_span_len(span: &Span) -> usize {
    let numbers = varint_len(span.end()) + varint_len(span.offset / UNIT) + varint_len(span.bytes);
    // One more for the number of spans, which may grow by a byte.
    numbers + 2 * varint_len(BLOCK_ENTRIES as u64) + 1
}

/// The changes of one group. See `file_summary.rs`.
#[derive(Clone, Copy, Debug, Default)]
struct GroupChanges {
    /// The group was removed in this file: all its records in older files are dead.
    reset: bool,
    end: Option<u64>,
    floor: u64,
    /// The lowest index of an entry in the file. The encoder skips all runs before it, which are in older files.
    from: Option<u64>,
}

impl Sink for ActiveChanges {
    fn place(&mut self, group: GroupId, end: u64, spans: &[Span]) -> Result<(), Damage> {
        self.max_len += spans.iter().map(max_span_len).sum::<usize>();
        let change = self.group_mut(group);
        let new = if change.end.is_none() { varint_len(end) } else { 0 };
        change.end = Some(change.end.map_or(end, |known| known.min(end)));
        change.from = change.from.into_iter().chain(spans.first().map(|span| span.first)).min();
        self.max_len += new;
        Ok(())
    }

    fn put(&mut self, group: GroupId, key: &Bytes, value: &Bytes, _file: u64) {
        self.max_len += MAX_KEY_LEN + key.len() + value.len();
        self.group_mut(group);
        if !self.deleted.is_empty() {
            self.deleted.remove(&(group, key.clone()));
        }
    }

    fn delete(&mut self, group: GroupId, key: &[u8]) {
        self.max_len += MAX_KEY_LEN + key.len();
        self.group_mut(group);
        self.deleted.insert((group, Bytes::copy_from_slice(key)));
    }

    fn compact(&mut self, group: GroupId, first_kept: u64, _file: u64) {
        let change = self.group_mut(group);
        let more = varint_len(first_kept).saturating_sub(varint_len(change.floor));
        change.floor = change.floor.max(first_kept);
        self.max_len += more;
    }

    fn remove(&mut self, group: GroupId) {
        *self.group_mut(group) = GroupChanges { reset: true, ..GroupChanges::default() };
        let deleted: Vec<Bytes> = self.deleted_of(group).cloned().collect();
        for key in deleted {
            self.deleted.remove(&(group, key));
        }
    }

    fn drop_file(&mut self, _dropped: u64) {}
}

impl ActiveChanges {
    /// The changes of a file that was read.
    pub(crate) fn of(summary: &FileSummary) -> ActiveChanges {
        let mut changes = ActiveChanges::default();
        for (group, summary) in summary.groups() {
            let from = summary.spans().next().map(|span| span.first);
            let change = GroupChanges { reset: summary.reset, end: summary.end, floor: summary.floor, from };
            changes.groups.insert(group, change);
            let deleted = summary.keys.iter().filter(|(_, value)| value.is_none());
            changes.deleted.extend(deleted.map(|(key, _)| (group, key.clone())));
        }
        changes.measured = summary.encode().len();
        changes.max_len = changes.measured;
        changes
    }

    /// The changes of a group.
    fn group_mut(&mut self, group: GroupId) -> &mut GroupChanges {
        self.groups.entry(group).or_insert_with(|| {
            self.max_len += MAX_GROUP_LEN + varint_len(group.0);
            GroupChanges::default()
        })
    }

    /// The groups that the file changes, ascending.
    pub(crate) fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.groups.keys().copied()
    }

    /// The keys of a group that were removed, sorted.
    fn deleted_of(&self, group: GroupId) -> impl Iterator<Item = &Bytes> {
        let from = self.deleted.range((group, Bytes::new())..);
        from.take_while(move |(of, _)| *of == group).map(|(_, key)| key)
    }

    /// An upper bound of the length of the file's index if it is sealed after the groups written so far.
    pub(crate) fn max_index_len(&self) -> usize {
        self.max_len + MAX_COUNT_LEN
    }

    /// Whether the bound may be far too high, for a file of `written` bytes: it counts records that replace each other
    /// within the file twice. A measurement visits all changed groups, so it pays off only if it saves much.
    pub(crate) fn is_overestimated(&self, written: u64) -> bool {
        self.max_len > 2 * self.measured + (64 << 10) + written as usize / 8
    }

    /// Replaces the bound by the exact length. All groups of the file must be published to the index.
    pub(crate) fn measure(&mut self, file: u64, index: &Index) {
        self.measured = self.encode(file, index).len();
        self.max_len = self.measured;
    }

    /// The index of `file` if it is sealed now, before compression. All its groups must be published to `index`.
    pub(crate) fn encode(&self, file: u64, index: &Index) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.measured);
        put_varint(&mut out, self.groups.len() as u64);
        for (group, change) in &self.groups {
            self.encode_group(*group, change, file, index, &mut out);
        }
        out
    }

    fn encode_group(&self, group: GroupId, change: &GroupChanges, file: u64, index: &Index, out: &mut Vec<u8>) {
        let deleted: Vec<IndexKey<'_>> = self.deleted_of(group).map(|key| (key.as_ref(), None)).collect();
        let known = index.with(group, |known| change.encode(group, Some(known), &deleted, file, out));
        if known.is_none() {
            change.encode(group, None, &deleted, file, out);
        }
    }

    /// Encodes the part of one group, and forgets the group. False if the file does not change it.
    pub(super) fn encode_and_forget(&mut self, group: GroupId, file: u64, index: &Index, out: &mut Vec<u8>) -> bool {
        let Some(change) = self.groups.remove(&group) else { return false };
        self.encode_group(group, &change, file, index, out);
        true
    }
}

impl GroupChanges {
    fn encode(&self, group: GroupId, known: Option<&Group>, deleted: &[IndexKey<'_>], file: u64, out: &mut Vec<u8>) {
        let mut keys = deleted.to_vec();
        let set = known.into_iter().flat_map(|known| &known.keys).filter(|kv| kv.file == file);
        keys.extend(set.map(|kv| (kv.key(), Some(kv.value()))));
        keys.sort_unstable();
        let from = self.from.unwrap_or(u64::MAX);
        let spans = || known.into_iter().flat_map(|known| known.runs.iter_from(from)).filter(|span| span.file == file);
        let head = GroupHead { group, reset: self.reset, end: self.end, floor: self.floor };
        encode_group(&head, spans().count(), spans(), &keys, out);
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A change that passes validation: no entry below the floor, no gap.
    fn change(rng: &mut StdRng, index: &Index, file: u64, offset: u64, sinks: &mut [&mut dyn Sink]) {
        let group = GroupId([1, 2, 300, u64::MAX][rng.random_range(0..4)]);
        let key = Bytes::from(vec![b'a' + rng.random_range(0..4u8)]);
        let (floor, end) = index.with(group, |known| (known.floor, known.runs.end())).unwrap_or_default();
        let first = floor.max(index.with(group, |known| known.runs.first()).flatten().unwrap_or(0));
        match rng.random_range(0..12) {
            0..6 => {
                let jump = [1, 2, 200, 1 << 30][rng.random_range(0..4)];
                let first = end.map_or(first + jump, |end| rng.random_range(first..=end));
                let span = Span { first, count: rng.random_range(1..5), file, offset, ordinal: 0, bytes: 64 };
                sinks.iter_mut().for_each(|sink| sink.place(group, first, &[span]).unwrap());
            }
            // A rewrite by purge: entries of an older file.
            6 => {
                let old = index.with(group, |known| known.runs.iter().find(|span| span.file != file)).flatten();
                let Some(old) = old else { return };
                let span = Span { file, offset, ordinal: 0, ..old };
                let end = end.unwrap_or(0);
                sinks.iter_mut().for_each(|sink| sink.place(group, end, &[span]).unwrap());
            }
            7 => {
                let first_kept = rng.random_range(0..=end.unwrap_or(first) + 1);
                sinks.iter_mut().for_each(|sink| sink.compact(group, first_kept, file));
            }
            8 | 9 => sinks.iter_mut().for_each(|sink| sink.put(group, &key, &Bytes::from(vec![1; 3]), file)),
            10 => sinks.iter_mut().for_each(|sink| sink.delete(group, &key)),
            _ => sinks.iter_mut().for_each(|sink| sink.remove(group)),
        }
    }

    /// The invariant of the module. Each file is also reopened from its groups half way, as after a crash.
    #[test]
    fn sealed_index_equals_replayed_summary() {
        for seed in 0..2000 {
            let mut rng = StdRng::seed_from_u64(seed);
            let index = Index::new();
            for file in 1..4 {
                let (mut changes, mut summary) = (ActiveChanges::default(), FileSummary::default());
                let count = rng.random_range(0..30);
                let reopened = rng.random_range(0..60);
                for number in 0..count {
                    let mut editor = index.editor();
                    change(&mut rng, &index, file, number * 8000, &mut [&mut editor, &mut changes, &mut summary]);
                    if number == reopened {
                        changes = ActiveChanges::of(&summary);
                    }
                    drop(editor);
                    let needed = changes.encode(file, &index).len();
                    // Without the slack for the number of groups.
                    assert!(
                        changes.max_len + 1 >= needed,
                        "seed {seed}, file {file}: {} for {needed}",
                        changes.max_len
                    );
                    if rng.random_range(0..8) == 0 {
                        changes.measure(file, &index);
                    }
                }
                assert_eq!(changes.encode(file, &index), summary.encode(), "seed {seed}, file {file}");
                assert!(changes.groups().eq(summary.groups().map(|(group, _)| group)));
            }
        }
    }
}
