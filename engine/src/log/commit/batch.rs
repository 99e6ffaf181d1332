//! A batch of changes as the caller builds it: plain data, in the order of the calls.

use bytes::Bytes;

use crate::log::format::{BlockBuilder, Compressor, DraftBlock};
use crate::log::types::GroupId;

/// Changes to any number of groups that become durable together or not at all.
#[derive(Clone, Debug, Default)]
pub struct LogBatch {
    pub(crate) ops: Vec<Op>,
    bytes: usize,
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Append { group: GroupId, first: u64, entries: Entries },
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

/// Entries to be appended.
#[derive(Clone, Debug)]
pub(crate) enum Entries {
    Loose(Vec<Bytes>),
    /// Already cut into blocks by [`LogBatch::pack`].
    Packed {
        count: u64,
        blocks: Vec<DraftBlock>,
    },
}

impl Entries {
    /// Number of entries.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Entries::Loose(entries) => entries.len() as u64,
            Entries::Packed { count, .. } => *count,
        }
    }
}

/// Minimum size of an append that is cut and compressed on the caller's thread, in bytes.
const PACKED_FROM: usize = 16 << 10;

/// Size of a change in the queue without its payload, in bytes.
const OP_OVERHEAD: usize = 32;

impl LogBatch {
    /// An empty batch.
    pub fn new() -> LogBatch {
        LogBatch::default()
    }

    /// Appends `entries` to `group` from index `first`, replacing entries at or after `first`. Does nothing without
    /// entries.
    pub fn append(&mut self, group: GroupId, first: u64, entries: Vec<Bytes>) {
        if entries.is_empty() {
            return;
        }
        self.bytes += OP_OVERHEAD + entries.iter().map(|entry| entry.len() + 4).sum::<usize>();
        self.ops.push(Op::Append { group, first, entries: Entries::Loose(entries) });
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

    /// Drops entries of `group` below `first_kept`. Beyond the last entry it empties the log, and the next append may
    /// start anywhere at or after `first_kept`.
    pub fn compact(&mut self, group: GroupId, first_kept: u64) {
        self.bytes += OP_OVERHEAD;
        self.ops.push(Op::Compact { group, first_kept });
    }

    /// Removes `group`: entries and keys.
    pub fn remove(&mut self, group: GroupId) {
        self.bytes += OP_OVERHEAD;
        self.ops.push(Op::Remove { group });
    }

    /// Appends all changes of `other` to this batch.
    pub fn merge(&mut self, other: LogBatch) {
        self.bytes += other.bytes;
        self.ops.extend(other.ops);
    }

    /// Cuts large appends into blocks. The writer cuts the others. There is one writer, and often many callers with
    /// large appends.
    pub(crate) fn pack(&mut self, block_bytes: usize, compressor: &mut Compressor) {
        for op in &mut self.ops {
            let Op::Append { group, entries, .. } = op else { continue };
            let Entries::Loose(loose) = entries else { continue };
            if loose.iter().map(Bytes::len).sum::<usize>() >= PACKED_FROM {
                let mut builder = BlockBuilder::new(block_bytes, compressor);
                builder.append(*group, loose);
                *entries = Entries::Packed { count: loose.len() as u64, blocks: builder.finish() };
            }
        }
    }

    /// Whether it may have appends that are worth compressing on the caller's thread.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes >= PACKED_FROM
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Approximate size before compression, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
