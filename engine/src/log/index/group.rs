//! The index of one group: its bounds, its runs of entries, and its small keys.

use super::runs::Runs;
use super::usage::UsageDelta;
use crate::log::error::Damage;
use crate::log::format::Span;
use crate::log::types::GroupBounds;

/// One group. A group without entries, keys and floor does not exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) runs: Runs,
    /// Entries below were compacted; 0 without a compaction.
    pub(crate) floor: u64,
    /// The file with the record of the floor.
    pub(crate) floor_file: u64,
    /// The keys, sorted. A vector: groups have few.
    pub(crate) keys: Vec<KeyValue>,
}

/// A small key.
#[derive(Clone, Debug)]
pub(crate) struct KeyValue {
    /// Key and value in one allocation: there may be a million groups.
    bytes: Box<[u8]>,
    key_len: u32,
    /// The file with the record that set it.
    pub(crate) file: u64,
}

/// Size that the usage of a file counts for a key or a floor, without key and value, in bytes.
pub(crate) const RECORD_BYTES: u64 = 16;
/// The same, as a delta.
const RECORD: i64 = RECORD_BYTES as i64;

impl Group {
    /// First and last index.
    pub(crate) fn bounds(&self) -> GroupBounds {
        match (self.runs.first(), self.runs.end()) {
            (Some(first), Some(end)) => GroupBounds { first, last: end - 1 },
            _ => GroupBounds { first: self.floor.max(1), last: self.floor.max(1) - 1 },
        }
    }

    /// Whether it has no entry, floor or key.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.floor == 0 && self.keys.is_empty()
    }

    /// See `Sink::place`.
    pub(crate) fn place(&mut self, end: u64, spans: &[Span], delta: &mut UsageDelta) -> Result<(), Damage> {
        self.runs.cut_from(end, delta);
        spans.iter().try_for_each(|span| self.runs.place(span, delta))
    }

    /// Drops entries below `first_kept`, by a record in `file`.
    pub(crate) fn compact(&mut self, first_kept: u64, file: u64, delta: &mut UsageDelta) {
        if first_kept < self.floor || first_kept == 0 {
            return;
        }
        if self.floor > 0 {
            delta.change(self.floor_file, -1, -RECORD);
        }
        delta.change(file, 1, RECORD);
        self.floor = first_kept;
        self.floor_file = file;
        self.runs.cut_below(first_kept, delta);
    }

    /// The value of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&KeyValue> {
        self.search(key).ok().map(|at| &self.keys[at])
    }

    /// Sets `key`.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8], file: u64, delta: &mut UsageDelta) {
        match self.search(key) {
            Ok(at) => {
                let entry = &mut self.keys[at];
                delta.change(entry.file, -1, -entry.weight());
                entry.set(value, file);
                delta.change(file, 1, entry.weight());
            }
            Err(at) => {
                // Most groups have one or two keys: capacity for one more, not for four.
                if self.keys.len() == self.keys.capacity() {
                    self.keys.reserve_exact(1 + self.keys.len() / 4);
                }
                let entry = KeyValue::new(key, value, file);
                delta.change(file, 1, entry.weight());
                self.keys.insert(at, entry);
            }
        }
    }

    /// Removes `key`.
    pub(crate) fn delete(&mut self, key: &[u8], delta: &mut UsageDelta) {
        if let Ok(at) = self.search(key) {
            let old = self.keys.remove(at);
            delta.change(old.file, -1, -old.weight());
        }
    }

    /// Empties the group, and removes all its references.
    pub(crate) fn clear(&mut self, delta: &mut UsageDelta) {
        self.runs.cut_from(0, delta);
        if self.floor > 0 {
            delta.change(self.floor_file, -1, -RECORD);
        }
        for entry in self.keys.drain(..) {
            delta.change(entry.file, -1, -entry.weight());
        }
        self.floor = 0;
    }

    /// Adds all its references.
    #[cfg(test)]
    pub(crate) fn count(&self, delta: &mut UsageDelta) {
        self.runs.iter().for_each(|span| delta.change(span.file, 1, span.bytes as i64));
        if self.floor > 0 {
            delta.change(self.floor_file, 1, RECORD);
        }
        self.keys.iter().for_each(|entry| delta.change(entry.file, 1, entry.weight()));
    }

    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys.binary_search_by(|entry| entry.key().cmp(key))
    }
}

impl KeyValue {
    fn new(key: &[u8], value: &[u8], file: u64) -> KeyValue {
        KeyValue { bytes: [key, value].concat().into_boxed_slice(), key_len: key.len() as u32, file }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.key_len as usize]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.key_len as usize..]
    }

    fn set(&mut self, value: &[u8], file: u64) {
        if value.len() == self.value().len() {
            self.bytes[self.key_len as usize..].copy_from_slice(value);
            self.file = file;
        } else {
            *self = KeyValue::new(self.key(), value, file);
        }
    }

    /// Size that the usage of its file counts for it, in bytes.
    fn weight(&self) -> i64 {
        RECORD + self.bytes.len() as i64
    }
}
