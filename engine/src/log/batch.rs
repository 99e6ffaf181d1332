//! A batch of changes as the caller builds it: plain data, in the order of the calls.

use bytes::Bytes;

use super::GroupId;

/// Changes to any number of groups that become durable together or not at all.
#[derive(Clone, Debug, Default)]
pub struct LogBatch {
    pub(crate) ops: Vec<Op>,
    bytes: usize,
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Append { group: GroupId, first: u64, entries: Vec<Bytes> },
    Put { group: GroupId, key: Bytes, value: Bytes },
    Delete { group: GroupId, key: Bytes },
    Compact { group: GroupId, first_kept: u64 },
    Remove { group: GroupId },
}

impl Op {
    /// The group that it changes.
    pub(crate) fn group(&self) -> GroupId {
        match self {
            Op::Append { group, .. }
            | Op::Put { group, .. }
            | Op::Delete { group, .. }
            | Op::Compact { group, .. }
            | Op::Remove { group } => *group,
        }
    }
}

/// What a change costs in a queue besides its payload.
const OP_OVERHEAD: usize = 32;

impl LogBatch {
    /// An empty batch.
    pub fn new() -> LogBatch {
        LogBatch::default()
    }

    /// Appends `entries` to `group` from index `first`, replacing whatever stood at or after `first`. Without entries it
    /// does nothing.
    pub fn append(&mut self, group: GroupId, first: u64, entries: Vec<Bytes>) {
        if entries.is_empty() {
            return;
        }
        self.bytes += OP_OVERHEAD + entries.iter().map(|entry| entry.len() + 4).sum::<usize>();
        self.ops.push(Op::Append { group, first, entries });
    }

    /// Sets a small key of `group`. Keys and values are kept in memory as well.
    pub fn put(&mut self, group: GroupId, key: &[u8], value: &[u8]) {
        self.bytes += OP_OVERHEAD + key.len() + value.len();
        self.ops.push(Op::Put { group, key: Bytes::copy_from_slice(key), value: Bytes::copy_from_slice(value) });
    }

    /// Removes a small key of `group`.
    pub fn delete(&mut self, group: GroupId, key: &[u8]) {
        self.bytes += OP_OVERHEAD + key.len();
        self.ops.push(Op::Delete { group, key: Bytes::copy_from_slice(key) });
    }

    /// Drops entries of `group` below `first_kept`. Beyond the last entry it empties the log, and the next append
    /// may start anywhere at or after `first_kept`.
    pub fn compact(&mut self, group: GroupId, first_kept: u64) {
        self.bytes += OP_OVERHEAD;
        self.ops.push(Op::Compact { group, first_kept });
    }

    /// Forgets `group`: entries and keys.
    pub fn remove(&mut self, group: GroupId) {
        self.bytes += OP_OVERHEAD;
        self.ops.push(Op::Remove { group });
    }

    /// Moves all changes of `other` behind those of this batch.
    pub fn merge(&mut self, other: LogBatch) {
        self.bytes += other.bytes;
        self.ops.extend(other.ops);
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// About how many bytes it takes before compression.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
