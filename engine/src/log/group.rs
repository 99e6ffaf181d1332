//! What the engine knows of one group: its bounds, where its entries stand, and its small keys.

use bytes::Bytes;

use super::GroupBounds;
use super::error::Damage;
use super::runs::{Runs, Span, Tally};

/// One group. A group without entries, keys and floor does not exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) runs: Runs,
    /// Entries below were compacted; 0 where none ever was.
    pub(crate) floor: u64,
    /// The file whose record says so.
    pub(crate) floor_file: u64,
    /// The keys, sorted. A vector: groups have few.
    pub(crate) keys: Vec<KeyValue>,
}

/// A small key.
#[derive(Clone, Debug)]
pub(crate) struct KeyValue {
    pub(crate) key: Box<[u8]>,
    pub(crate) value: Bytes,
    /// The file whose record set it.
    pub(crate) file: u64,
}

/// What a key or a floor counts for in the bytes of its file, besides key and value.
const RECORD_BYTES: i64 = 16;

impl Group {
    /// First and last index.
    pub(crate) fn bounds(&self) -> GroupBounds {
        match (self.runs.first(), self.runs.end()) {
            (Some(first), Some(end)) => GroupBounds { first, last: end - 1 },
            _ => GroupBounds { first: self.floor.max(1), last: self.floor.max(1) - 1 },
        }
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_void(&self) -> bool {
        self.runs.is_empty() && self.floor == 0 && self.keys.is_empty()
    }

    /// See [`super::items::Sink::place`].
    pub(crate) fn place(&mut self, end: u64, spans: &[Span], tally: &mut Tally) -> Result<(), Damage> {
        self.runs.cut_from(end, tally);
        spans.iter().try_for_each(|span| self.runs.place(span, tally))
    }

    /// Drops entries below `first_kept`, as a record in `file` says.
    pub(crate) fn compact(&mut self, first_kept: u64, file: u64, tally: &mut Tally) {
        if first_kept < self.floor || first_kept == 0 {
            return;
        }
        if self.floor > 0 {
            tally.add(self.floor_file, -1, -RECORD_BYTES);
        }
        tally.add(file, 1, RECORD_BYTES);
        self.floor = first_kept;
        self.floor_file = file;
        self.runs.cut_below(first_kept, tally);
    }

    /// The value of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&KeyValue> {
        self.search(key).ok().map(|at| &self.keys[at])
    }

    /// Sets `key`.
    pub(crate) fn put(&mut self, key: &[u8], value: &Bytes, file: u64, tally: &mut Tally) {
        let entry = KeyValue { key: key.into(), value: value.clone(), file };
        tally.add(file, 1, entry.bytes());
        match self.search(key) {
            Ok(at) => {
                tally.add(self.keys[at].file, -1, -self.keys[at].bytes());
                self.keys[at] = entry;
            }
            Err(at) => {
                // Most groups have one or two keys: room for one more, not for four.
                if self.keys.len() == self.keys.capacity() {
                    self.keys.reserve_exact(1 + self.keys.len() / 4);
                }
                self.keys.insert(at, entry);
            }
        }
    }

    /// Removes `key`.
    pub(crate) fn delete(&mut self, key: &[u8], tally: &mut Tally) {
        if let Ok(at) = self.search(key) {
            let old = self.keys.remove(at);
            tally.add(old.file, -1, -old.bytes());
        }
    }

    /// Takes back everything it counts for, before it is forgotten.
    pub(crate) fn forget(&mut self, tally: &mut Tally) {
        self.runs.cut_from(0, tally);
        if self.floor > 0 {
            tally.add(self.floor_file, -1, -RECORD_BYTES);
        }
        for entry in self.keys.drain(..) {
            tally.add(entry.file, -1, -entry.bytes());
        }
        self.floor = 0;
    }

    /// Adds everything it counts for.
    #[cfg(test)]
    pub(crate) fn count(&self, tally: &mut Tally) {
        self.runs.iter().for_each(|span| tally.add(span.file, 1, span.bytes as i64));
        if self.floor > 0 {
            tally.add(self.floor_file, 1, RECORD_BYTES);
        }
        self.keys.iter().for_each(|entry| tally.add(entry.file, 1, entry.bytes()));
    }

    /// Bytes of memory that it takes, with its share of the map it stands in.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        let keys = self.keys.capacity() * size_of::<KeyValue>();
        let content: usize = self.keys.iter().map(|entry| entry.key.len() + entry.value.len() + 32).sum();
        // A map of the standard library is at least 7/16 full.
        (size_of::<Self>() + 8 + 1) * 16 / 7 + self.runs.memory() + keys + content
    }

    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys.binary_search_by(|entry| entry.key.as_ref().cmp(key))
    }
}

impl KeyValue {
    fn bytes(&self) -> i64 {
        RECORD_BYTES + (self.key.len() + self.value.len()) as i64
    }
}
