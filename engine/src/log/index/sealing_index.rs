//! The index of a full file, encoded while the next file takes groups.
//!
//! [`ActiveChanges`] encodes an index together with the in-memory index, which must not hold later changes of the same
//! groups. So a group is encoded at the latest when a commit group of the next file is about to change it
//! ([`SealingIndex::capture`]). The other groups are encoded in the background ([`SealingIndex::advance`]). Writers
//! wait for neither a full encoding nor its sync.
//!
//! Invariant: all commit groups of the file are published, and no later change of a group that is not encoded yet is.
//! Then the result equals [`ActiveChanges::encode`] at the end of the file.

use std::collections::BTreeMap;

use super::active_changes::ActiveChanges;
use super::table::Index;
use crate::log::format::put_varint;
use crate::log::types::GroupId;

/// See the module documentation.
pub(crate) struct SealingIndex {
    file: u64,
    /// The groups that are not encoded.
    left: ActiveChanges,
    /// Groups that were encoded ahead of their turn.
    captured: BTreeMap<GroupId, Vec<u8>>,
    /// The index so far: the number of groups, and the groups in ascending order.
    out: Vec<u8>,
}

impl SealingIndex {
    /// The index of `file`, which takes no more groups.
    pub(crate) fn new(file: u64, changes: ActiveChanges) -> SealingIndex {
        let mut out = Vec::new();
        put_varint(&mut out, changes.groups().count() as u64);
        SealingIndex { file, left: changes, captured: BTreeMap::new(), out }
    }

    /// The number of the file.
    pub(crate) fn file(&self) -> u64 {
        self.file
    }

    /// Encodes a group that a commit group of a later file is about to change.
    pub(crate) fn capture(&mut self, group: GroupId, index: &Index) {
        let mut out = Vec::new();
        if self.left.encode_and_forget(group, self.file, index, &mut out) {
            self.captured.insert(group, out);
        }
    }

    /// Encodes up to `count` more groups. Returns whether all are encoded.
    pub(crate) fn advance(&mut self, count: usize, index: &Index) -> bool {
        for _ in 0..count {
            let next = self.left.groups().next();
            if let Some(captured) =
                self.captured.first_entry().filter(|first| next.is_none_or(|next| *first.key() < next))
            {
                self.out.extend_from_slice(&captured.remove());
            } else if let Some(next) = next {
                self.left.encode_and_forget(next, self.file, index, &mut self.out);
            } else {
                return true;
            }
        }
        false
    }

    /// The index before compression. All groups must be encoded.
    pub(crate) fn finish(self) -> Vec<u8> {
        assert!(self.captured.is_empty() && self.left.groups().next().is_none(), "groups of the index are not encoded");
        self.out
    }
}
