//! The first half of a commit group's way: what is queued is checked, cut into blocks, compressed, and written.
//!
//! One at a time, under the lock of the [`Writer`]. What comes next (the sync, the index, the answers) is the second half, in
//! `landing.rs`, which runs while the writer is at the next group already. A batch that breaks a rule is answered with its error and leaves
//! no trace in the group.
//!
//! Failures: a write that fails, on a full disk or otherwise, fails the batches of the group, whose bytes are wiped out, and later groups may
//! succeed. A failed sync poisons the log, and so does a group that cannot be wiped out: what is on disk is unknown then, and asking again would
//! not tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::active::{Active, Failure};
use super::answer::{Answer, Done};
use super::batch::{Entries, LogBatch, Op};
use super::block::{BlockBuilder, DraftBlock};
use super::compress::Compressor;
use super::error::{LogError, Result};
use super::file::LogFile;
use super::items::{BlockRef, Item};
use super::pipeline::Queue;
use super::purge::rewrite::Rewrite;
use super::read::Shared;
use super::sequence::{Link, Owner};
use super::validate::{Overlay, View};
use super::{Durability, GroupId};

/// What the queue carries.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) durability: Durability,
    pub(crate) done: Done,
    /// What it counts for in the queue.
    pub(crate) bytes: usize,
    /// Its number among all that were queued: about their order, and which bell its ticket listens to.
    pub(crate) number: u64,
    /// The sequence that it belongs to.
    pub(crate) link: Option<Link>,
    pub(crate) owner: Owner,
}

/// What is to be written.
pub(crate) enum Work {
    /// A caller's batch.
    Batch(LogBatch),
    /// Live records of an old file, again.
    Rewrite(Rewrite),
    /// Files that hold nothing live any more.
    Drop(Vec<u64>),
}

/// The first half's state.
pub(crate) struct Writer {
    active: Active,
    compressor: Compressor,
    /// How groups stand after what is written and has not reached the index yet, and the position of the last of that.
    ahead: HashMap<GroupId, View>,
    ahead_lsn: u64,
    last: Last,
}

/// The last commit group.
#[derive(Clone, Copy, Default)]
pub(crate) struct Last {
    pub(crate) batches: usize,
    pub(crate) synced: bool,
}

/// A commit group that has no place yet.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) items: Vec<Item>,
    pub(crate) blocks: Vec<DraftBlock>,
    pub(crate) batches: u32,
    pub(crate) synced: bool,
    /// Files that it drops.
    pub(crate) dropped: Vec<u64>,
    /// The file of which nothing is needed any more with it.
    pub(crate) settled: Option<u64>,
    /// Whether it gives space back, and so may take the last of it.
    pub(crate) urgent: bool,
}

impl Draft {
    /// The mark of a clean stop: a group without content, which vouches for all before it.
    pub(crate) fn mark() -> Draft {
        Draft { synced: true, ..Draft::default() }
    }
}

/// A commit group that is written.
pub(crate) struct Flight {
    pub(crate) draft: Draft,
    /// Its position; of the last group before it where it has no content.
    pub(crate) lsn: u64,
    pub(crate) file: Arc<LogFile>,
    pub(crate) blocks: Vec<BlockRef>,
}

/// What the first half hands to the second.
pub(crate) struct Written {
    pub(crate) answers: Vec<Answer>,
    pub(crate) outcome: Result<Flight>,
}

impl Job {
    /// It is not queued: whoever brought it learns that at once, and nobody is called.
    pub(crate) fn turned_away(self, error: LogError) -> LogError {
        self.done.withdraw();
        error
    }

    /// Whether it has a commit group of its own: what purge asks for is checked against the index as it is.
    pub(crate) fn is_alone(&self) -> bool {
        !matches!(self.work, Work::Batch(_))
    }
}

impl Writer {
    /// For a log whose newest file is `active`.
    pub(crate) fn new(active: Active, compressor: Compressor) -> Writer {
        Writer { active, compressor, ahead: HashMap::new(), ahead_lsn: 0, last: Last::default() }
    }

    /// The jobs of the next commit group, at most `limit`.
    pub(crate) fn collect(&self, queue: &Queue, limit: usize, group_bytes: usize) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut bytes = 0;
        while jobs.len() < limit && bytes < group_bytes {
            let Some(job) = queue.pop() else { break };
            let alone = job.is_alone();
            if !jobs.is_empty() && (alone || bytes + job.bytes > group_bytes) {
                queue.give_back(job);
                break;
            }
            bytes += job.bytes;
            queue.count_out(job.bytes);
            jobs.push(job);
            if alone {
                break;
            }
        }
        jobs
    }

    /// What the last commit group was like.
    pub(crate) fn last(&self) -> Last {
        self.last
    }

    /// Writes one commit group. Nothing of it is durable or in the index yet.
    pub(crate) fn write(&mut self, shared: &Shared, jobs: Vec<Job>) -> Written {
        if let Some(error) = shared.poisoned() {
            return Written { answers: jobs.into_iter().map(|job| job.refuse(None)).collect(), outcome: Err(error) };
        }
        if shared.landed.load(Ordering::Acquire) >= self.ahead_lsn {
            self.ahead.clear();
        }
        let (draft, mut answers, views) = self.draft(shared, jobs);
        self.last = Last { batches: answers.len(), synced: draft.synced };
        let outcome = self.put(shared, draft);
        if let Err(error) = &outcome {
            // Before the writer is let go: a sequence that is broken takes nothing more.
            answers.iter_mut().for_each(|answer| answer.share(error));
        }
        if let Ok(flight) = &outcome {
            if !flight.draft.urgent && !flight.draft.items.is_empty() {
                shared.full.store(false, Ordering::Release);
            }
            shared.written.fetch_max(flight.lsn, Ordering::AcqRel);
            self.ahead.extend(views.into_iter().map(|(group, view)| (group, view.written(flight.lsn))));
            self.ahead_lsn = flight.lsn;
            for file in &flight.draft.dropped {
                self.active.forget(*file);
            }
        }
        Written { answers, outcome }
    }

    fn put(&mut self, shared: &Shared, draft: Draft) -> Result<Flight> {
        if draft.items.is_empty() {
            // Nothing to write: a barrier at most.
            return Ok(Flight { draft, lsn: self.active.last_lsn(), file: self.active.file(), blocks: Vec::new() });
        }
        let _timer = shared.metrics.as_ref().map(|metrics| metrics.write_seconds.start_timer());
        let (lsn, blocks) = shared.survive(self.active.write(shared, &draft, &mut self.compressor))?;
        Ok(Flight { draft, lsn, file: self.active.file(), blocks })
    }

    /// Turns jobs into a commit group; a batch that breaks a rule stays out of it.
    fn draft(&mut self, shared: &Shared, jobs: Vec<Job>) -> (Draft, Vec<Answer>, HashMap<GroupId, View>) {
        let options = &shared.options;
        let mut overlay = Overlay::new(&shared.index, &self.ahead, shared.landed.load(Ordering::Acquire));
        let mut builder = BlockBuilder::new(options.block_bytes, &mut self.compressor);
        let mut draft = Draft::default();
        let mut answers = Vec::with_capacity(jobs.len());
        let mut ops = Vec::new();
        for mut job in jobs {
            let broken = job.link.as_ref().and_then(Link::broken);
            let refused = match std::mem::replace(&mut job.work, Work::Drop(Vec::new())) {
                _ if broken.is_some() => broken,
                Work::Batch(batch) => match overlay.check(&batch, job.owner) {
                    Ok(()) => {
                        ops.extend(batch.ops);
                        None
                    }
                    Err(error) => Some(error),
                },
                Work::Rewrite(rewrite) => {
                    draft.urgent = true;
                    draft.settled = rewrite.settles(&shared.index).then_some(rewrite.file);
                    let bytes = rewrite.add(&shared.index, &mut draft.items, &mut builder);
                    if let Some(metrics) = &shared.metrics {
                        metrics.rewritten_bytes.inc_by(bytes);
                    }
                    None
                }
                Work::Drop(files) => {
                    draft.urgent = true;
                    for file in files.into_iter().filter(|file| self.active.is_droppable(shared, *file)) {
                        draft.items.push(Item::Drop { file });
                        draft.dropped.push(file);
                    }
                    None
                }
            };
            if refused.is_none() {
                draft.batches += 1;
                draft.synced |= job.durability == Durability::Synced;
            } else if let (Some(link), Some(error)) = (&job.link, &refused) {
                // Those behind it in this very group stand on it, too.
                link.broke(error);
            }
            answers.push(job.refuse(refused));
        }
        // A commit group is there whole or not at all, and no Raft group depends on another: only the order within each of them counts.
        ops.sort_by_key(Op::group);
        ops.into_iter().for_each(|op| add(op, &mut draft.items, &mut builder));
        draft.blocks = builder.finish();
        // What lets entries go brings space back, too, and takes little.
        let lets_go = |item: &Item| matches!(item, Item::Compact { .. } | Item::Remove { .. });
        draft.urgent |= draft.blocks.is_empty() && draft.items.iter().any(lets_go);
        (draft, answers, overlay.into_views())
    }

    /// A clean stop: what is written becomes durable, and a last, empty group says so, which makes later damage to the end of the log tellable
    /// from a torn tail. Nothing may be in flight.
    pub(crate) fn finish(&mut self, shared: &Shared) {
        if shared.read_only().is_some() || shared.poisoned().is_some() || self.active.is_vouched() {
            return;
        }
        let mark = Draft::mark();
        let synced = self.active.sync(shared);
        let outcome = synced.and_then(|()| self.active.write(shared, &mark, &mut self.compressor));
        if let Ok((lsn, _)) = &outcome {
            // It has nothing for the index.
            shared.landed.fetch_max(*lsn, Ordering::AcqRel);
        }
        if let Err(Failure::Fatal(why)) = outcome.and_then(|_| self.active.sync(shared)) {
            shared.poison(why);
        }
    }
}

impl Job {
    fn refuse(self, refused: Option<LogError>) -> Answer {
        Answer { done: self.done, number: self.number, link: self.link, refused }
    }
}

fn add(op: Op, items: &mut Vec<Item>, builder: &mut BlockBuilder) {
    items.push(match op {
        Op::Append { group, first, entries } => {
            let count = entries.count();
            match entries {
                Entries::Loose(entries) => builder.append(group, &entries),
                Entries::Packed { blocks, .. } => builder.take(blocks),
            }
            Item::Append { group, first, count }
        }
        Op::Put { group, key, value } => Item::Put { group, key, value },
        Op::Delete { group, key } => Item::Delete { group, key },
        Op::Compact { group, first_kept } => Item::Compact { group, first_kept },
        Op::Remove { group } => Item::Remove { group },
    });
}
