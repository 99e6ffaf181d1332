//! The writing half: takes what is queued, writes it as commit groups, acknowledges it.
//!
//! One commit group: check each batch against the index and those before it; cut the entries into blocks and compress them;
//! make room (rotate, prefill); one write; one fdatasync if any of its batches asked for it; change the index;
//! call back in order. A batch that breaks a rule is answered with its error and leaves no trace in the group.
//!
//! Failures: a full disk fails the batches of the group, whose bytes are wiped out, and later groups may succeed. Anything else
//! poisons the log: what a failed write or sync left behind is unknown, and asking again would not tell.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};

use super::active::{Active, Failure};
use super::batch::{LogBatch, Op};
use super::block::{BlockBuilder, DraftBlock};
use super::checkpoint::Standing;
use super::error::{LogError, Result};
use super::items::{Item, replay};
use super::purge::rewrite::Rewrite;
use super::read::Shared;
use super::validate::Overlay;
use super::{Durability, Lsn, OnDone};

/// What the queue carries.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) durability: Durability,
    pub(crate) done: OnDone,
    /// What it counts for in the queue.
    pub(crate) bytes: usize,
}

/// What is to be written.
pub(crate) enum Work {
    /// A caller's batch.
    Batch(LogBatch),
    /// Live records of an old file, again.
    Rewrite(Rewrite),
    /// Files that hold nothing live any more.
    Drop(Vec<u64>),
    /// Nothing: a checkpoint asks where the log stands.
    Stand(Sender<Result<Standing>>),
}

/// The writing half of a log: exactly one, driven by a thread or by a simulator.
pub struct LogWriter {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: Receiver<Job>,
    /// Taken from the queue, but not for the commit group at hand.
    pub(super) stash: Option<Job>,
    pub(super) active: Active,
}

/// A commit group that has no place yet.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) items: Vec<Item>,
    pub(super) blocks: Vec<DraftBlock>,
    pub(super) batches: u32,
    pub(super) synced: bool,
    /// Files that it drops.
    dropped: Vec<u64>,
    /// The file of which nothing is needed any more with it.
    settled: Option<u64>,
    /// Whether it gives space back, and so may take the last of it.
    pub(super) urgent: bool,
    /// Who is to be told where the log stands.
    asked: Option<Sender<Result<Standing>>>,
}

impl Draft {
    /// The mark of a clean stop: a group without content, which vouches for all before it.
    pub(super) fn mark() -> Draft {
        Draft { synced: true, ..Draft::default() }
    }
}

/// Who is to be answered, and with which error if the batch was refused.
type Answer = (OnDone, Option<LogError>);

impl LogWriter {
    /// Writes everything queued as commit groups and acknowledges it; returns how many batches. Never waits for more.
    pub fn turn(&mut self) -> usize {
        let queued = self.queue.len() + usize::from(self.stash.is_some());
        let mut handled = 0;
        while handled < queued {
            let jobs = self.collect(queued - handled);
            if jobs.is_empty() {
                break;
            }
            handled += jobs.len();
            self.commit(jobs);
        }
        handled
    }

    /// Runs turns on a thread of its own until every [`super::LogEngine`] handle is gone or `close` was called; what is
    /// queued by then is written first.
    pub fn spawn(mut self) -> std::io::Result<std::thread::JoinHandle<()>> {
        std::thread::Builder::new().name("cortado-log".to_owned()).spawn(move || {
            while let Ok(job) = self.queue.recv() {
                self.stash = Some(job);
                self.turn();
            }
            self.finish();
        })
    }

    /// A clean stop: what is written becomes durable, and a last, empty group says so, which makes later damage to the
    /// end of the log tellable from a torn tail. Called by the thread when it ends; a simulator may leave it out.
    pub fn finish(&mut self) {
        self.turn();
        if self.shared.poisoned().is_some() || self.active.is_vouched() {
            return;
        }
        let mark = Draft::mark();
        let outcome = self.active.sync(&self.shared).and_then(|()| self.active.write(&self.shared, &mark).map(drop));
        if let Err(Failure::Fatal(why)) = outcome {
            self.poison(why);
        }
    }

    /// The jobs of the next commit group, at most `limit`.
    fn collect(&mut self, limit: usize) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut bytes = 0;
        while jobs.len() < limit && bytes < self.shared.options.group_bytes {
            let Some(job) = self.stash.take().or_else(|| self.queue.try_recv().ok()) else { break };
            // What purge asks for is checked against the index as it is: it has a group of its own.
            let alone = !matches!(job.work, Work::Batch(_));
            if !jobs.is_empty() && (alone || bytes + job.bytes > self.shared.options.group_bytes) {
                self.stash = Some(job);
                break;
            }
            bytes += job.bytes;
            self.shared.queued_bytes.fetch_sub(job.bytes, Ordering::AcqRel);
            jobs.push(job);
            if alone {
                break;
            }
        }
        jobs
    }

    /// Writes one commit group and acknowledges its batches.
    fn commit(&mut self, jobs: Vec<Job>) {
        if let Some(error) = self.shared.poisoned() {
            jobs.into_iter().for_each(|job| (job.done)(Err(error.clone())));
            return;
        }
        let (draft, answers) = self.draft(jobs);
        let raw: usize = draft.blocks.iter().map(DraftBlock::raw_len).sum();
        let outcome = self.write(&draft);
        if outcome.is_ok() {
            let is_settled = |file: &u64| self.shared.index.usage(*file).refs == 0;
            self.shared.settled.lock().extend(draft.settled.filter(is_settled));
            for file in &draft.dropped {
                self.active.forget(*file);
                self.shared.settled.lock().remove(file);
                self.shared.released.lock().push(*file);
            }
            if let Some(asked) = &draft.asked {
                // The checkpoint may have been given up.
                drop(asked.send(self.active.standing(&self.shared)));
            }
            if let Some(metrics) = &self.shared.metrics {
                metrics.groups.inc();
                metrics.batches.inc_by(u64::from(draft.batches));
                metrics.batches_per_group.observe(f64::from(draft.batches));
                metrics.bytes_raw.inc_by(raw as u64);
            }
        }
        for (done, refused) in answers {
            done(match refused {
                Some(error) => Err(error),
                None => outcome.clone().map(Lsn),
            });
        }
    }

    /// Turns jobs into a commit group; a batch that breaks a rule stays out of it.
    fn draft(&self, jobs: Vec<Job>) -> (Draft, Vec<Answer>) {
        let options = &self.shared.options;
        let mut overlay = Overlay::new(&self.shared.index);
        let mut builder = BlockBuilder::new(options.block_bytes, options.compress_from);
        let mut draft = Draft::default();
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            let refused = match job.work {
                Work::Batch(batch) => match overlay.check(&batch) {
                    Ok(()) => {
                        batch.ops.into_iter().for_each(|op| add(op, &mut draft.items, &mut builder));
                        None
                    }
                    Err(error) => Some(error),
                },
                Work::Rewrite(rewrite) => {
                    draft.urgent = true;
                    draft.settled = rewrite.is_last().then_some(rewrite.file);
                    let bytes = rewrite.add(&self.shared.index, &mut draft.items, &mut builder);
                    if let Some(metrics) = &self.shared.metrics {
                        metrics.rewritten_bytes.inc_by(bytes);
                    }
                    None
                }
                Work::Drop(files) => {
                    draft.urgent = true;
                    for file in files.into_iter().filter(|file| self.active.is_droppable(&self.shared, *file)) {
                        draft.items.push(Item::Drop { file });
                        draft.dropped.push(file);
                    }
                    None
                }
                Work::Stand(asked) => {
                    draft.asked = Some(asked);
                    None
                }
            };
            if refused.is_none() {
                draft.batches += 1;
                draft.synced |= job.durability == Durability::Synced;
            }
            answers.push((job.done, refused));
        }
        draft.blocks = builder.finish();
        // What lets entries go brings space back, too, and takes little.
        let lets_go = |item: &Item| matches!(item, Item::Compact { .. } | Item::Remove { .. });
        draft.urgent |= draft.blocks.is_empty() && draft.items.iter().any(lets_go);
        (draft, answers)
    }

    /// Writes a commit group and makes it visible; returns its position.
    fn write(&mut self, draft: &Draft) -> Result<u64> {
        if draft.items.is_empty() {
            // Nothing to write: a barrier at most.
            let synced = if draft.synced { self.active.sync(&self.shared) } else { Ok(()) };
            return self.settle(synced.map(|()| self.active.last_lsn()));
        }
        let written = self.active.write(&self.shared, draft);
        let (lsn, blocks) = self.settle(written)?;
        let file = self.active.seq();
        let mut editor = self.shared.index.editor();
        let replayed = replay(&draft.items, &blocks, file, &mut editor);
        drop(editor);
        if let Err(damage) = replayed {
            return Err(self.poison(format!("commit group {lsn} does not fit the index: {}", damage.0)));
        }
        for (block, place) in draft.blocks.iter().zip(&blocks) {
            if let Ok(block) = block.to_block() {
                self.shared.cache.insert((file, place.offset), Arc::new(block));
            }
        }
        Ok(lsn)
    }

    fn settle<T>(&self, outcome: std::result::Result<T, Failure>) -> Result<T> {
        outcome.map_err(|failure| match failure {
            Failure::NoSpace(why) => LogError::NoSpace(why),
            Failure::Fatal(why) => self.poison(why),
        })
    }

    fn poison(&self, why: String) -> LogError {
        let mut poison = self.shared.poison.lock();
        let why = poison.get_or_insert_with(|| {
            tracing::error!(why, "log is poisoned");
            why
        });
        LogError::Poisoned(why.clone())
    }
}

impl Drop for LogWriter {
    /// Answers what is still queued: every callback is called once.
    fn drop(&mut self) {
        while let Some(job) = self.stash.take().or_else(|| self.queue.try_recv().ok()) {
            (job.done)(Err(LogError::Closed));
        }
    }
}

fn add(op: Op, items: &mut Vec<Item>, builder: &mut BlockBuilder) {
    items.push(match op {
        Op::Append { group, first, entries } => {
            entries.iter().for_each(|entry: &Bytes| builder.push(entry));
            Item::Append { group, first, count: entries.len() as u64 }
        }
        Op::Put { group, key, value } => Item::Put { group, key, value },
        Op::Delete { group, key } => Item::Delete { group, key },
        Op::Compact { group, first_kept } => Item::Compact { group, first_kept },
        Op::Remove { group } => Item::Remove { group },
    });
}
