//! Rejects a batch that would break a group's log, before anything of it is written.
//!
//! Batches of a commit group are checked in order, each against the state that those before it leave. A batch may
//! replace entries that are not acknowledged yet only if its own owner wrote them. Otherwise two callers that append to
//! one group at the same time would both get an acknowledgement for the same indexes.

use std::collections::HashMap;

use super::batch::{LogBatch, Op};
use super::sequence::Owner;
use crate::log::error::{LogError, Result};
use crate::log::format::MAX_BATCH_BYTES;
use crate::log::index::Index;
use crate::log::types::GroupId;

/// Maximum size of a key, in bytes.
const MAX_KEY_BYTES: usize = 64 << 10;

/// The bounds of a group after the batches so far: entries from `first` to before `end`, none if these are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupView {
    first: u64,
    end: u64,
    /// Set if the last entries are not acknowledged yet.
    pending: Option<PendingTail>,
}

/// Unacknowledged entries at the end of a group.
#[derive(Clone, Copy, Debug)]
struct PendingTail {
    /// Their owner; `None` if there are several.
    owner: Option<Owner>,
    /// The commit group of the last of them, once it is written.
    lsn: Option<u64>,
}

/// The index as it will be after the batches checked so far.
pub(crate) struct Overlay<'a> {
    index: &'a Index,
    /// Groups that written and unpublished commit groups change.
    unpublished: &'a HashMap<GroupId, GroupView>,
    /// The position up to which everything is in the index.
    published: u64,
    views: HashMap<GroupId, GroupView>,
}

impl<'a> Overlay<'a> {
    /// An overlay without batches.
    pub(crate) fn new(index: &'a Index, unpublished: &'a HashMap<GroupId, GroupView>, published: u64) -> Overlay<'a> {
        Overlay { index, unpublished, published, views: HashMap::new() }
    }

    /// Checks `batch` of `owner`. Later batches are checked against the state after it. A rejected batch leaves no
    /// trace.
    pub(crate) fn check(&mut self, batch: &LogBatch, owner: Owner) -> Result<()> {
        if batch.bytes() > MAX_BATCH_BYTES {
            return Err(LogError::Invalid(format!("batch of {} bytes, at most {MAX_BATCH_BYTES}", batch.bytes())));
        }
        let mut staged: HashMap<GroupId, GroupView> = HashMap::new();
        for op in &batch.ops {
            match op {
                Op::Append { group, first, entries } => {
                    let view = self.view(&staged, *group);
                    if *first < view.end && view.is_pending_of_other(owner) {
                        return Err(LogError::InUse { group: *group });
                    }
                    staged.insert(*group, view.append(*first, entries.count(), owner)?);
                }
                Op::Compact { group, first_kept } => {
                    let view = self.view(&staged, *group).compact(*first_kept)?;
                    staged.insert(*group, view);
                }
                Op::Remove { group } => {
                    staged.insert(*group, GroupView::EMPTY);
                }
                Op::Put { key, .. } | Op::Delete { key, .. } => {
                    if key.len() > MAX_KEY_BYTES {
                        return Err(LogError::Invalid(format!("key of {} bytes, at most {MAX_KEY_BYTES}", key.len())));
                    }
                }
            }
        }
        self.views.extend(staged);
        Ok(())
    }

    /// The changed groups.
    pub(crate) fn into_views(self) -> HashMap<GroupId, GroupView> {
        self.views
    }

    fn view(&self, staged: &HashMap<GroupId, GroupView>, group: GroupId) -> GroupView {
        if let Some(view) = staged.get(&group).or_else(|| self.views.get(&group)) {
            return *view;
        }
        if let Some(view) = self.unpublished.get(&group) {
            return view.after_publication(self.published);
        }
        let view = self.index.with(group, |group| match (group.runs.first(), group.runs.end()) {
            (Some(first), Some(end)) => GroupView { first, end, pending: None },
            _ => GroupView { first: group.floor, end: group.floor, pending: None },
        });
        view.unwrap_or(GroupView::EMPTY)
    }
}

impl GroupView {
    /// A group that does not exist.
    const EMPTY: GroupView = GroupView { first: 0, end: 0, pending: None };

    /// The view after the pending entries are written in the commit group at `lsn`.
    pub(crate) fn written(self, lsn: u64) -> GroupView {
        let pending = self.pending.map(|pending| PendingTail { lsn: pending.lsn.or(Some(lsn)), ..pending });
        GroupView { pending, ..self }
    }

    /// The view after everything up to `published` is in the index.
    fn after_publication(self, published: u64) -> GroupView {
        GroupView { pending: self.pending.filter(|pending| pending.lsn.is_none_or(|lsn| lsn > published)), ..self }
    }

    /// Whether entries of another owner are pending.
    fn is_pending_of_other(self, owner: Owner) -> bool {
        self.pending.is_some_and(|pending| pending.owner != Some(owner))
    }

    fn append(self, first: u64, count: u64, owner: Owner) -> Result<GroupView> {
        let too_far = || LogError::Invalid(format!("index {first} is out of range"));
        let end = first.checked_add(count).filter(|end| *end < u64::MAX).ok_or_else(too_far)?;
        if first < self.first {
            return Err(LogError::Compacted { first: self.first });
        }
        let empty = self.first == self.end;
        if !empty && first > self.end {
            return Err(LogError::Gap { expected: self.end });
        }
        let owner = if self.is_pending_of_other(owner) { None } else { Some(owner) };
        let pending = Some(PendingTail { owner, lsn: None });
        Ok(GroupView { first: if empty { first } else { self.first }, end, pending })
    }

    fn compact(self, first_kept: u64) -> Result<GroupView> {
        if first_kept == u64::MAX {
            return Err(LogError::Invalid("compaction index is out of range".to_owned()));
        }
        let first = self.first.max(first_kept);
        let pending = self.pending.filter(|_| first < self.end);
        Ok(GroupView { first, end: self.end.max(first_kept), pending })
    }
}
