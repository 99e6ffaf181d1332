//! One Raft group's log, for reading.

use std::sync::Arc;

use bytes::Bytes;

use super::error::Result;
use super::read::Shared;
use super::{GroupBounds, GroupId};

/// One group's log as it is at each call. It may be removed while this is held; then there is nothing in it.
#[derive(Clone)]
pub struct GroupLog {
    shared: Arc<Shared>,
    id: GroupId,
}

/// What a group holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Number of entries.
    pub entries: u64,
    /// About how many bytes they take on disk, compressed.
    pub stored_bytes: u64,
    /// Number of blocks and parts of blocks that they stand in.
    pub runs: usize,
    /// Number of small keys.
    pub keys: usize,
    /// Bytes of these keys and their values.
    pub key_bytes: u64,
}

impl GroupLog {
    pub(super) fn new(shared: Arc<Shared>, id: GroupId) -> GroupLog {
        GroupLog { shared, id }
    }

    /// Its number.
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// First and last index; an empty range where it holds no entries.
    pub fn range(&self) -> GroupBounds {
        self.shared.index.bounds(self.id).unwrap_or(GroupBounds { first: 1, last: 0 })
    }

    /// One entry. Acknowledged entries are readable; queued ones are not yet.
    pub fn get(&self, index: u64) -> Result<Bytes> {
        self.shared.entry(self.id, index)
    }

    /// Entries from `first` to before `end`, at least one, stopping before `max_bytes` would be exceeded. Empty where `first` is
    /// not before `end`; `NotFound` where the log ends before `end`.
    pub fn read(&self, first: u64, end: u64, max_bytes: usize) -> Result<Vec<Bytes>> {
        self.shared.entries(self.id, first, end, max_bytes)
    }

    /// The value of a small key. Served from memory.
    pub fn key(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.shared.key(self.id, key)
    }

    /// The small keys from `from` to before `to` (`None`: to the last), sorted. Served from memory.
    pub fn scan(&self, from: &[u8], to: Option<&[u8]>) -> Result<Vec<(Bytes, Bytes)>> {
        self.shared.keys(self.id, from, to)
    }

    /// What it holds.
    pub fn stats(&self) -> GroupStats {
        let stats = self.shared.index.with(self.id, |group| GroupStats {
            entries: group.runs.iter().map(|span| u64::from(span.count)).sum(),
            stored_bytes: group.runs.iter().map(|span| span.bytes).sum(),
            runs: group.runs.len(),
            keys: group.keys.len(),
            key_bytes: group.keys.iter().map(|kv| (kv.key().len() + kv.value().len()) as u64).sum(),
        });
        stats.unwrap_or_default()
    }
}
