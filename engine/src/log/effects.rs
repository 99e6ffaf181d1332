//! What one file changes, in sum: the dense index that a sealed file ends with.
//!
//! A file's many commit groups add up to little: a group's entries that were not replaced within the file, the lowest
//! index it appended at, how far it compacted, the final value of each key it touched. Applied to the state before the file,
//! that gives the state after it, as replaying every commit group would. The writer keeps it up to date for the active
//! file and writes it at the seal; recovery decodes it and never reads the groups.
//!
//! For one group the state before is changed in this order:
//! 1. `reset`: everything is forgotten (the group was removed in this file).
//! 2. Entries below `floor` are dropped.
//! 3. Entries at or after `end` are dropped.
//! 4. The runs are placed; those below `end` are rewritten entries, which take the place of the same indexes.
//! 5. Keys are set and removed.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::GroupId;
use super::error::Damage;
use super::format::{Cursor, UNIT, put_bytes, put_varint};
use super::items::{BLOCK_ENTRIES, Sink};
use super::runs::{Runs, Span, Tally};

/// What a file changes, by group.
#[derive(Debug, Default)]
pub(crate) struct FileEffects {
    groups: BTreeMap<GroupId, GroupEffects>,
    /// Files it says are not needed any more. Not part of the index: the next file's header lists what is.
    pub(crate) dropped: Vec<u64>,
    tally: Tally,
    /// No fewer bytes than the encoded form has.
    room: usize,
    /// The same, when it was last counted.
    counted: usize,
}

/// What one change adds to the encoded form at most, besides keys, values and spans.
const CHANGE_ROOM: usize = 48;
/// The same for a span.
const SPAN_ROOM: usize = 32;

/// What a file changes of one group.
#[derive(Debug, Default)]
pub(crate) struct GroupEffects {
    /// Whatever was there before is forgotten.
    pub(crate) reset: bool,
    /// Entries of before at or after this index are gone.
    pub(crate) end: Option<u64>,
    floor: u64,
    runs: Runs,
    /// Keys set, and keys removed.
    pub(crate) keys: BTreeMap<Bytes, Option<Bytes>>,
}

const RESET: u8 = 1;
const HAS_END: u8 = 2;

impl Sink for FileEffects {
    fn place(&mut self, group: GroupId, end: u64, spans: &[Span]) -> Result<(), Damage> {
        // A span may split another one.
        self.room += CHANGE_ROOM + spans.len() * 3 * SPAN_ROOM;
        let effects = self.groups.entry(group).or_default();
        effects.end = Some(effects.end.map_or(end, |known| known.min(end)));
        effects.runs.cut_from(end, &mut self.tally);
        for span in spans {
            effects.runs.place(span, &mut self.tally)?;
        }
        self.tally.drain().for_each(drop);
        Ok(())
    }

    fn put(&mut self, group: GroupId, key: &Bytes, value: &Bytes, _file: u64) {
        self.room += CHANGE_ROOM + key.len() + value.len();
        self.groups.entry(group).or_default().keys.insert(key.clone(), Some(value.clone()));
    }

    fn delete(&mut self, group: GroupId, key: &[u8]) {
        self.room += CHANGE_ROOM + key.len();
        self.groups.entry(group).or_default().keys.insert(Bytes::copy_from_slice(key), None);
    }

    fn compact(&mut self, group: GroupId, first_kept: u64, _file: u64) {
        self.room += CHANGE_ROOM;
        let effects = self.groups.entry(group).or_default();
        effects.floor = effects.floor.max(first_kept);
        effects.runs.cut_below(first_kept, &mut self.tally);
        self.tally.drain().for_each(drop);
    }

    fn remove(&mut self, group: GroupId) {
        self.room += CHANGE_ROOM;
        self.groups.insert(group, GroupEffects { reset: true, ..GroupEffects::default() });
    }

    fn drop_file(&mut self, dropped: u64) {
        self.dropped.push(dropped);
    }
}

impl FileEffects {
    /// The groups that it changes, by number.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (GroupId, &GroupEffects)> {
        self.groups.iter().map(|(group, effects)| (*group, effects))
    }

    /// No fewer bytes than the encoded form has, and, over time, not many more: what replaces itself within the file is counted
    /// anew now and then.
    pub(crate) fn room(&mut self) -> usize {
        if self.room > 2 * self.counted + (64 << 10) {
            self.counted = self.encode().len();
            self.room = self.counted + CHANGE_ROOM;
        }
        self.room + CHANGE_ROOM
    }

    /// Applies them to the state before the file.
    pub(crate) fn apply(&self, file: u64, sink: &mut dyn Sink) -> Result<(), Damage> {
        for (group, effects) in &self.groups {
            if effects.reset {
                sink.remove(*group);
            }
            if effects.floor > 0 {
                sink.compact(*group, effects.floor, file);
            }
            if let Some(end) = effects.end {
                let spans: Vec<Span> = effects.runs.iter().collect();
                sink.place(*group, end, &spans)?;
            }
            for (key, value) in &effects.keys {
                match value {
                    Some(value) => sink.put(*group, key, value, file),
                    None => sink.delete(*group, key),
                }
            }
        }
        Ok(())
    }

    /// The index as it stands in a sealed file, before compression.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.groups.len() as u64);
        for (group, effects) in &self.groups {
            put_varint(&mut out, group.0);
            let reset = if effects.reset { RESET } else { 0 };
            out.push(reset | if effects.end.is_some() { HAS_END } else { 0 });
            if let Some(end) = effects.end {
                put_varint(&mut out, end);
            }
            put_varint(&mut out, effects.floor);
            put_varint(&mut out, effects.runs.len() as u64);
            let mut expected = 0;
            for span in effects.runs.iter() {
                put_varint(&mut out, span.first - expected);
                put_varint(&mut out, u64::from(span.count));
                put_varint(&mut out, span.offset / UNIT);
                put_varint(&mut out, u64::from(span.ordinal));
                put_varint(&mut out, span.bytes);
                expected = span.end();
            }
            put_varint(&mut out, effects.keys.len() as u64);
            for (key, value) in &effects.keys {
                put_bytes(&mut out, key);
                // 0 is removed, otherwise the value's length plus one.
                match value {
                    None => put_varint(&mut out, 0),
                    Some(value) => {
                        put_varint(&mut out, value.len() as u64 + 1);
                        out.extend_from_slice(value);
                    }
                }
            }
        }
        out
    }

    /// Decodes what [`FileEffects::encode`] wrote for `file`.
    pub(crate) fn decode(bytes: &[u8], file: u64) -> Result<FileEffects, Damage> {
        let mut cursor = Cursor(bytes);
        let mut out = FileEffects::default();
        for _ in 0..cursor.varint()? {
            let group = GroupId(cursor.varint()?);
            let flags = cursor.byte()?;
            if flags & !(RESET | HAS_END) != 0 {
                return Err(Damage("index has an unknown flag"));
            }
            let end = if flags & HAS_END != 0 { Some(cursor.varint()?) } else { None };
            let floor = cursor.varint()?;
            let mut effects = GroupEffects { reset: flags & RESET != 0, end, floor, ..GroupEffects::default() };
            let mut expected = 0u64;
            for _ in 0..cursor.varint()? {
                let span = decode_span(&mut cursor, expected, file)?;
                expected = span.end();
                effects.runs.place(&span, &mut out.tally)?;
            }
            if end.is_none() && !effects.runs.is_empty() {
                return Err(Damage("index has entries without an end"));
            }
            for _ in 0..cursor.varint()? {
                let key = Bytes::copy_from_slice(cursor.bytes()?);
                let value = match cursor.varint()? {
                    0 => None,
                    len => Some(Bytes::copy_from_slice(cursor.take(len - 1)?)),
                };
                effects.keys.insert(key, value);
            }
            out.tally.drain().for_each(drop);
            if out.groups.insert(group, effects).is_some() {
                return Err(Damage("index names a group twice"));
            }
        }
        if cursor.is_empty() { Ok(out) } else { Err(Damage("index has bytes after its end")) }
    }
}

fn decode_span(cursor: &mut Cursor<'_>, expected: u64, file: u64) -> Result<Span, Damage> {
    let first = expected.checked_add(cursor.varint()?);
    let count = cursor.varint()?;
    let offset = cursor.varint()?;
    let ordinal = cursor.varint()?;
    let bytes = cursor.varint()?;
    let room = BLOCK_ENTRIES as u64;
    let first = first.filter(|first| first.checked_add(room).is_some()).ok_or(Damage("index is too large"))?;
    if count == 0 || count > room || ordinal >= room || ordinal + count > room || offset >= 1 << 29 {
        return Err(Damage("index has an impossible run"));
    }
    Ok(Span { first, count: count as u32, file, offset: offset * UNIT, ordinal: ordinal as u32, bytes })
}
