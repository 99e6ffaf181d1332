//! The first stage of a commit group: validate the queued batches, cut them into blocks, compress and write them.
//!
//! One group at a time, under the lock of the [`Writer`]. The second stage (sync, index, completion) is `publish.rs`;
//! it runs while the writer encodes the next group. A batch that breaks a rule is completed with its error and leaves
//! no trace in the group.
//!
//! A write that fails, on a full disk or otherwise, fails the batches of the group. Its bytes are overwritten with
//! zeros, and later groups may succeed. A failed sync poisons the log, and so does a failed overwrite: the content of
//! the disk is then unknown, and a retry would not reveal it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::active::ActiveFile;
use super::batch::Op;
use super::completion::PendingJob;
use super::draft::{Draft, InFlightGroup, WrittenGroup};
use super::file_work::CommitContext;
use super::purge_work::PurgeWork;
use super::queue::{Job, Queue, Work};
use super::sequence::Link;
use super::validate::{GroupView, Overlay};
use crate::log::error::Result;
use crate::log::format::{BlockBuilder, Compressor, Item};
use crate::log::read::{LogState, WriteError};
use crate::log::types::{Durability, GroupId};

/// See the module documentation.
pub(crate) struct Writer {
    active: ActiveFile,
    compressor: Compressor,
    /// The groups that written and unpublished commit groups change, and the position of the last such commit group.
    unpublished: HashMap<GroupId, GroupView>,
    unpublished_lsn: u64,
    last: LastGroup,
}

/// The last commit group.
#[derive(Clone, Copy, Default)]
pub(crate) struct LastGroup {
    pub(crate) batches: usize,
    pub(crate) synced: bool,
}

impl Writer {
    /// For a log whose newest file is `active`.
    pub(crate) fn new(active: ActiveFile, compressor: Compressor) -> Writer {
        Writer { active, compressor, unpublished: HashMap::new(), unpublished_lsn: 0, last: LastGroup::default() }
    }

    /// Takes the jobs of the next commit group from the queue, at most `limit`.
    pub(crate) fn collect(&self, queue: &Queue, limit: usize, group_bytes: usize) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut bytes = 0;
        while jobs.len() < limit && bytes < group_bytes {
            let Some(job) = queue.pop() else { break };
            let own_group = job.needs_own_group();
            if !jobs.is_empty() && (own_group || bytes + job.bytes > group_bytes) {
                queue.push_front(job);
                break;
            }
            bytes += job.bytes;
            queue.subtract(job.bytes);
            jobs.push(job);
            if own_group {
                break;
            }
        }
        jobs
    }

    /// The last commit group.
    pub(crate) fn last_group(&self) -> LastGroup {
        self.last
    }

    /// Writes one commit group. It is neither durable nor in the index yet.
    pub(crate) fn write(&mut self, context: &CommitContext, jobs: Vec<Job>) -> WrittenGroup {
        let state = &context.state;
        if let Some(error) = state.poisoned() {
            let unwritten =
                |Job { completion, number, link, .. }| PendingJob { completion, number, link, rejected: None };
            return WrittenGroup { pending: jobs.into_iter().map(unwritten).collect(), outcome: Err(error) };
        }
        if state.published.load(Ordering::Acquire) >= self.unpublished_lsn {
            self.unpublished.clear();
        }
        let (draft, mut pending, views) = self.draft(state, jobs);
        self.last = LastGroup { batches: pending.len(), synced: draft.synced };
        let outcome = self.append(context, draft);
        if let Err(error) = &outcome {
            // While the writer lock is held: no later batch of a broken sequence may be validated before.
            pending.iter_mut().for_each(|job| job.fail_with_group(error));
        }
        if let Ok(group) = &outcome {
            if !group.draft.may_use_reserve && !group.draft.items.is_empty() {
                state.full.store(false, Ordering::Release);
            }
            self.unpublished.extend(views.into_iter().map(|(id, view)| (id, view.written(group.lsn))));
            self.unpublished_lsn = group.lsn;
            group.draft.dropped().for_each(|file| self.active.forget(file));
        }
        WrittenGroup { pending, outcome }
    }

    fn append(&mut self, context: &CommitContext, draft: Draft) -> Result<InFlightGroup> {
        if draft.items.is_empty() {
            // Nothing to write: at most a sync of earlier groups is requested.
            let (lsn, file) = (self.active.last_lsn(), self.active.file());
            return Ok(InFlightGroup { draft, lsn, file, blocks: Vec::new() });
        }
        let _timer = context.state.metrics.as_ref().map(|metrics| metrics.write_seconds.start_timer());
        let written = self.active.write(context, &draft, &mut self.compressor);
        let (lsn, blocks) = context.state.accept(written)?;
        Ok(InFlightGroup { draft, lsn, file: self.active.file(), blocks })
    }

    /// Drafts a commit group from jobs, without the batches that break a rule.
    fn draft(&mut self, state: &LogState, jobs: Vec<Job>) -> (Draft, Vec<PendingJob>, HashMap<GroupId, GroupView>) {
        let options = &state.options;
        let mut overlay = Overlay::new(&state.index, &self.unpublished, state.published.load(Ordering::Acquire));
        let mut builder = BlockBuilder::new(options.block_bytes, &mut self.compressor);
        let mut draft = Draft::default();
        let mut pending = Vec::with_capacity(jobs.len());
        let mut ops = Vec::new();
        for job in jobs {
            let Job { work, durability, completion, number, link, owner, .. } = job;
            let broken = link.as_ref().and_then(Link::broken);
            let rejected = match work {
                _ if broken.is_some() => broken,
                Work::Batch(batch) => match overlay.check(&batch, owner) {
                    Ok(()) => {
                        ops.extend(batch.ops);
                        None
                    }
                    Err(error) => Some(error),
                },
                Work::Purge(work) => {
                    draft.may_use_reserve = true;
                    if let PurgeWork::Drop(files) = &work {
                        self.active.assert_droppable(files, &state.index);
                    }
                    let bytes = work.add(&state.index, &mut draft.items, &mut builder);
                    if let Some(metrics) = &state.metrics {
                        metrics.rewritten_bytes.inc_by(bytes);
                    }
                    None
                }
            };
            if rejected.is_none() {
                draft.batches += 1;
                draft.synced |= durability == Durability::Synced;
            } else if let (Some(link), Some(error)) = (&link, &rejected) {
                // Later batches of the sequence in the same group depend on it.
                link.break_sequence(error);
            }
            pending.push(PendingJob { completion, number, link, rejected });
        }
        // A commit group is recovered whole or not at all, and Raft groups are independent: only the order within a
        // Raft group counts.
        ops.sort_by_key(Op::group);
        ops.into_iter().for_each(|op| draft.add(op, &mut builder));
        draft.blocks = builder.finish();
        // Truncations free space as well, and need little.
        let is_truncation = |item: &Item| matches!(item, Item::Compact { .. } | Item::Remove { .. });
        draft.may_use_reserve |= draft.blocks.is_empty() && draft.items.iter().any(is_truncation);
        (draft, pending, overlay.into_views())
    }

    /// A clean stop: syncs everything written, and writes an empty last group that proves it. Recovery then
    /// distinguishes later damage to the end of the log from a torn tail. No group may be in flight.
    pub(crate) fn finish(&mut self, context: &CommitContext) {
        let state = &context.state;
        if state.read_only().is_some() || state.poisoned().is_some() || self.active.is_proven_synced() {
            return;
        }
        let mark = Draft::clean_stop();
        let synced = self.active.sync(state);
        let outcome = synced.and_then(|()| self.active.write(context, &mark, &mut self.compressor));
        if let Ok((lsn, _)) = &outcome {
            // The mark changes nothing in the index.
            state.published.fetch_max(*lsn, Ordering::AcqRel);
        }
        if let Err(WriteError::Fatal(why)) = outcome.and_then(|_| self.active.sync(state)) {
            state.poison(why);
        }
    }
}
