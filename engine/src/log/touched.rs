//! What the active file changes and the index does not say by itself: all that has to be remembered until the file is sealed.
//!
//! The index knows where every entry and key stands, and so also which of them stand in the active file: of those a second copy, as
//! [`FileEffects`] has it for a file that is read, would double the memory of a group that was written to and the work of every write.
//! Here is only what left no trace there: how far back a group was cut and compacted, that it was removed, which keys were deleted.
//!
//! Invariant: together with an index that has landed every group of the file it gives, at the seal, what replaying these groups into
//! [`FileEffects`] would.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::GroupId;
use super::dense::{DenseKey, GroupHead, encode_group};
use super::effects::FileEffects;
use super::error::Damage;
use super::format::put_varint;
use super::group::Group;
use super::index::Index;
use super::items::Sink;
use super::runs::Span;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    groups: BTreeMap<GroupId, Touch>,
    /// Keys removed and not set again.
    deleted: BTreeSet<(GroupId, Bytes)>,
    /// No fewer bytes than the index of the file takes when it is sealed.
    room: usize,
    /// The same, when it was last counted.
    counted: usize,
}

/// What one change adds to the index at most, besides keys, values and spans.
const CHANGE_ROOM: usize = 48;
/// The same for a span.
const SPAN_ROOM: usize = 32;

/// Of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Touch {
    /// See [`super::effects`].
    reset: bool,
    end: Option<u64>,
    floor: u64,
    /// The lowest index of an entry in the file: the runs of older files before it, which may be many, need not be looked at.
    from: Option<u64>,
}

impl Sink for Touched {
    fn place(&mut self, group: GroupId, end: u64, spans: &[Span]) -> Result<(), Damage> {
        // A span may split another one.
        self.room += CHANGE_ROOM + spans.len() * 3 * SPAN_ROOM;
        let touch = self.groups.entry(group).or_default();
        touch.end = Some(touch.end.map_or(end, |known| known.min(end)));
        touch.from = touch.from.into_iter().chain(spans.first().map(|span| span.first)).min();
        Ok(())
    }

    fn put(&mut self, group: GroupId, key: &Bytes, value: &Bytes, _file: u64) {
        self.room += CHANGE_ROOM + key.len() + value.len();
        self.groups.entry(group).or_default();
        if !self.deleted.is_empty() {
            self.deleted.remove(&(group, key.clone()));
        }
    }

    fn delete(&mut self, group: GroupId, key: &[u8]) {
        self.room += CHANGE_ROOM + key.len();
        self.groups.entry(group).or_default();
        self.deleted.insert((group, Bytes::copy_from_slice(key)));
    }

    fn compact(&mut self, group: GroupId, first_kept: u64, _file: u64) {
        self.room += CHANGE_ROOM;
        let touch = self.groups.entry(group).or_default();
        touch.floor = touch.floor.max(first_kept);
    }

    fn remove(&mut self, group: GroupId) {
        self.room += CHANGE_ROOM;
        self.groups.insert(group, Touch { reset: true, ..Touch::default() });
        let gone: Vec<Bytes> = self.deleted_of(group).cloned().collect();
        for key in gone {
            self.deleted.remove(&(group, key));
        }
    }

    fn drop_file(&mut self, _dropped: u64) {}
}

impl Touched {
    /// Of a file that was read.
    pub(crate) fn of(effects: &FileEffects) -> Touched {
        let mut touched = Touched::default();
        for (group, effects) in effects.groups() {
            let from = effects.spans().next().map(|span| span.first);
            let touch = Touch { reset: effects.reset, end: effects.end, floor: effects.floor, from };
            touched.groups.insert(group, touch);
            let deleted = effects.keys.iter().filter(|(_, value)| value.is_none());
            touched.deleted.extend(deleted.map(|(key, _)| (group, key.clone())));
        }
        touched.counted = effects.encode().len();
        touched.room = touched.counted + CHANGE_ROOM;
        touched
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

    /// No fewer bytes than the file's index takes if it is sealed after what is written now.
    pub(crate) fn room(&self) -> usize {
        self.room + CHANGE_ROOM
    }

    /// Whether so much was written since it was counted that the room may be far more than is needed: what replaces itself within the
    /// file takes its room twice.
    pub(crate) fn is_rough(&self) -> bool {
        self.room > 2 * self.counted + (64 << 10)
    }

    /// Counts the room anew. The index must have landed all of the file.
    pub(crate) fn count(&mut self, file: u64, index: &Index) {
        self.counted = self.encode(file, index).len();
        self.room = self.counted + CHANGE_ROOM;
    }

    /// The index of `file` as it stands when it is sealed, before compression. All of the file must have landed in `index`.
    pub(crate) fn encode(&self, file: u64, index: &Index) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.counted);
        put_varint(&mut out, self.groups.len() as u64);
        for (group, touch) in &self.groups {
            let deleted: Vec<DenseKey<'_>> = self.deleted_of(*group).map(|key| (key.as_ref(), None)).collect();
            let known = index.with(*group, |known| touch.encode(*group, Some(known), &deleted, file, &mut out));
            if known.is_none() {
                touch.encode(*group, None, &deleted, file, &mut out);
            }
        }
        out
    }
}

impl Touch {
    fn encode(&self, group: GroupId, known: Option<&Group>, deleted: &[DenseKey<'_>], file: u64, out: &mut Vec<u8>) {
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

    /// A change such as the writer lets through: nothing below the floor, nothing behind a gap.
    fn change(rng: &mut StdRng, index: &Index, file: u64, offset: u64, sinks: &mut [&mut dyn Sink]) {
        let group = GroupId(rng.random_range(1..4));
        let key = Bytes::from(vec![b'a' + rng.random_range(0..4u8)]);
        let (floor, end) = index.with(group, |known| (known.floor, known.runs.end())).unwrap_or_default();
        let first = floor.max(index.with(group, |known| known.runs.first()).flatten().unwrap_or(0));
        match rng.random_range(0..12) {
            0..6 => {
                let first = end.map_or(first + rng.random_range(0..3), |end| rng.random_range(first..=end));
                let span = Span { first, count: rng.random_range(1..5), file, offset, ordinal: 0, bytes: 64 };
                sinks.iter_mut().for_each(|sink| sink.place(group, first, &[span]).unwrap());
            }
            // As purge does: entries of an older file, once more.
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

    /// See the invariant above. Each file is also given up half way and taken over from its groups, as after a crash.
    #[test]
    fn at_the_seal_it_gives_what_reading_the_file_would() {
        for seed in 0..2000 {
            let mut rng = StdRng::seed_from_u64(seed);
            let index = Index::new();
            for file in 1..4 {
                let (mut touched, mut effects) = (Touched::default(), FileEffects::default());
                let changes = rng.random_range(0..30);
                let reopened = rng.random_range(0..60);
                for number in 0..changes {
                    let mut editor = index.editor();
                    change(&mut rng, &index, file, number * 8, &mut [&mut editor, &mut touched, &mut effects]);
                    if number == reopened {
                        touched = Touched::of(&effects);
                    }
                    let room = touched.room();
                    drop(editor);
                    assert!(room >= touched.encode(file, &index).len(), "seed {seed}, file {file}: room");
                }
                assert_eq!(touched.encode(file, &index), effects.encode(), "seed {seed}, file {file}");
                assert!(touched.groups().eq(effects.groups().map(|(group, _)| group)));
                touched.count(file, &index);
                assert!(touched.room() >= effects.encode().len());
            }
        }
    }
}
