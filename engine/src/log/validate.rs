//! Refuses a batch that would break a group's log, before anything of it is written.
//!
//! Batches that share a commit group are checked one after another, each against what those before it will have changed.

use std::collections::HashMap;

use super::GroupId;
use super::batch::{LogBatch, Op};
use super::error::{LogError, Result};
use super::index::Index;

/// No batch may take more bytes: lengths in the format are 32 bits wide.
pub(crate) const MAX_BATCH_BYTES: usize = 256 << 20;
/// No key may be longer.
const MAX_KEY_BYTES: usize = 64 << 10;

/// The bounds of a group as they will be: entries from `first` to before `end`, none where these are equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    first: u64,
    end: u64,
}

/// The index as it will be after the batches checked so far.
pub(crate) struct Overlay<'a> {
    index: &'a Index,
    /// Groups that what is written, but not in the index yet, has changed.
    ahead: &'a HashMap<GroupId, View>,
    views: HashMap<GroupId, View>,
}

impl<'a> Overlay<'a> {
    /// Nothing checked yet.
    pub(crate) fn new(index: &'a Index, ahead: &'a HashMap<GroupId, View>) -> Overlay<'a> {
        Overlay { index, ahead, views: HashMap::new() }
    }

    /// Checks `batch`. On success the next one is checked against its outcome; on error it leaves no trace.
    pub(crate) fn check(&mut self, batch: &LogBatch) -> Result<()> {
        if batch.bytes() > MAX_BATCH_BYTES {
            return Err(LogError::Invalid(format!("batch of {} bytes, at most {MAX_BATCH_BYTES}", batch.bytes())));
        }
        let mut staged: HashMap<GroupId, View> = HashMap::new();
        for op in &batch.ops {
            match op {
                Op::Append { group, first, entries } => {
                    let view = self.view(&staged, *group).append(*first, entries.count())?;
                    staged.insert(*group, view);
                }
                Op::Compact { group, first_kept } => {
                    let view = self.view(&staged, *group).compact(*first_kept)?;
                    staged.insert(*group, view);
                }
                Op::Remove { group } => {
                    staged.insert(*group, View { first: 0, end: 0 });
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

    /// How the groups that were changed will be.
    pub(crate) fn into_views(self) -> HashMap<GroupId, View> {
        self.views
    }

    fn view(&self, staged: &HashMap<GroupId, View>, group: GroupId) -> View {
        if let Some(view) = staged.get(&group).or_else(|| self.views.get(&group)).or_else(|| self.ahead.get(&group)) {
            return *view;
        }
        let view = self.index.with(group, |group| match (group.runs.first(), group.runs.end()) {
            (Some(first), Some(end)) => View { first, end },
            _ => View { first: group.floor, end: group.floor },
        });
        view.unwrap_or(View { first: 0, end: 0 })
    }
}

impl View {
    fn append(self, first: u64, count: u64) -> Result<View> {
        let too_far = || LogError::Invalid(format!("index {first} is out of range"));
        let end = first.checked_add(count).filter(|end| *end < u64::MAX).ok_or_else(too_far)?;
        if first < self.first {
            return Err(LogError::Compacted { first: self.first });
        }
        let empty = self.first == self.end;
        if !empty && first > self.end {
            return Err(LogError::Gap { expected: self.end });
        }
        Ok(View { first: if empty { first } else { self.first }, end })
    }

    fn compact(self, first_kept: u64) -> Result<View> {
        if first_kept == u64::MAX {
            return Err(LogError::Invalid("compaction index is out of range".to_owned()));
        }
        Ok(View { first: self.first.max(first_kept), end: self.end.max(first_kept) })
    }
}
