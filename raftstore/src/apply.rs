//! Apply: committed entries of many regions become one write to the key-value store per turn.
//!
//! The write holds the regions' new applied positions, so data and position can never disagree after a crash. Once it is done the
//! positions are published to the read delegates, and only then proposals are answered. What an entry does depends on the entry and the
//! region alone, so every replica comes to the same state; an entry that makes no sense stops the store, because skipping it would
//! make this replica differ from the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::store::{Store, StoreError};
use engine::{Cf, Op, WriteBatch};
use raft::eraftpb::{Entry, EntryType};

use crate::codec::Malformed;
use crate::command::Command;
use crate::delegate::Delegate;
use crate::error::{ProposeError, RegionError};
use crate::health::Health;
use crate::mailbox::{Inbox, Mailbox};
use crate::metrics::Metrics;
use crate::peer::effects::Committed;
use crate::peer::proposal::{CommittedReplies, ProposeReply};
use crate::records::{self, LogPosition, SnapshotIntent};
use crate::region::{LogIndex, Region, RegionId, Term};
use crate::snapshot::SnapshotFiles;

/// Work for apply, in the order in which the store loop hands it over.
#[derive(Debug)]
pub(crate) enum ApplyTask {
    /// Committed entries of a region.
    Entries(RegionId, Committed),
    /// Replace a region's data by a snapshot whose intent is durable.
    Install(SnapshotIntent),
}

/// A committed entry that cannot be applied. The store stops: going on would let this replica differ from the others.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyFault {
    #[error("region {0} is not here")]
    UnknownRegion(RegionId),
    #[error("region {region}: entry {index} does not follow applied index {applied}")]
    Gap { region: RegionId, index: LogIndex, applied: LogIndex },
    #[error("region {region}: entry {index} is above the commit index {commit}")]
    AboveCommit { region: RegionId, index: LogIndex, commit: LogIndex },
    #[error("region {region}: entry {index}: {source}")]
    Malformed { region: RegionId, index: LogIndex, source: Malformed },
    #[error("region {region}: entry {index} is of a kind this release does not know")]
    UnknownKind { region: RegionId, index: LogIndex },
    #[error("region {region}: entry {index} writes outside the region")]
    OutsideRegion { region: RegionId, index: LogIndex },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What apply knows of a region.
struct Applied {
    region: Arc<Region>,
    delegate: Arc<Delegate>,
    position: LogPosition,
}

/// What apply shares with the store loop.
pub(crate) struct ApplyShared {
    pub(crate) mailbox: Mailbox<ApplyTask>,
    /// Bytes of entries handed over and not applied.
    pub(crate) backlog: AtomicUsize,
}

impl ApplyTask {
    /// What it adds to the backlog.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ApplyTask::Entries(_, committed) => committed.entries.iter().map(|e| e.data.len() + 64).sum(),
            ApplyTask::Install(_) => 64,
        }
    }
}

/// The apply loop; `turn` is one iteration.
pub(crate) struct ApplyLoop<S: Store> {
    store: S,
    snapshots: SnapshotFiles,
    shared: Arc<ApplyShared>,
    inbox: Arc<Inbox>,
    /// Wakes the store loop.
    wake: Box<dyn Fn() + Send>,
    health: Arc<Health>,
    metrics: Metrics,
    regions: BTreeMap<RegionId, Applied>,
    batch_bytes: usize,
    tasks: Vec<ApplyTask>,
}

/// The parts of an [`ApplyLoop`].
pub(crate) struct ApplyParts<S: Store> {
    pub(crate) store: S,
    pub(crate) snapshots: SnapshotFiles,
    pub(crate) shared: Arc<ApplyShared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) wake: Box<dyn Fn() + Send>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
    pub(crate) batch_bytes: usize,
}

/// A write in the making.
#[derive(Default)]
struct Turn {
    batch: WriteBatch,
    entries: usize,
    bytes: usize,
    positions: BTreeMap<RegionId, LogPosition>,
    answers: Vec<(ProposeReply, Result<LogIndex, ProposeError>)>,
}

impl<S: Store> ApplyLoop<S> {
    pub(crate) fn new(parts: ApplyParts<S>) -> ApplyLoop<S> {
        let ApplyParts { store, snapshots, shared, inbox, wake, health, metrics, batch_bytes } = parts;
        let (regions, tasks) = (BTreeMap::new(), Vec::new());
        ApplyLoop { store, snapshots, shared, inbox, wake, health, metrics, regions, batch_bytes, tasks }
    }

    /// Adds a region as it was recovered.
    pub(crate) fn add_region(&mut self, region: Arc<Region>, delegate: Arc<Delegate>, position: LogPosition) {
        self.regions.insert(region.id, Applied { region, delegate, position });
    }

    /// Takes what was handed over and carries it out. Returns whether there was anything.
    pub(crate) fn turn(&mut self) -> bool {
        let mut tasks = std::mem::take(&mut self.tasks);
        if !self.shared.mailbox.take(usize::MAX, &mut tasks) {
            self.tasks = tasks;
            return false;
        }
        let taken: usize = tasks.iter().map(ApplyTask::bytes).sum();
        // The oldest at the end, to be popped.
        tasks.reverse();
        let mut turn = Turn::default();
        if self.health.poisoned().is_none()
            && let Err(fault) = self.carry_out(&mut tasks, &mut turn)
        {
            self.health.poison(&format!("apply: {fault}"));
        }
        if let Some(why) = self.health.poisoned() {
            fail(&mut tasks, turn, why);
        }
        self.tasks = tasks;
        self.shared.backlog.fetch_sub(taken, Ordering::SeqCst);
        if self.inbox.wants_applied() || self.health.poisoned().is_some() {
            (self.wake)();
        }
        true
    }

    fn carry_out(&mut self, tasks: &mut Vec<ApplyTask>, turn: &mut Turn) -> Result<(), ApplyFault> {
        while let Some(task) = tasks.pop() {
            match task {
                ApplyTask::Entries(region, committed) => self.add_entries(region, committed, turn)?,
                ApplyTask::Install(intent) => {
                    self.commit(turn)?;
                    self.install(&intent)?;
                }
            }
            if turn.bytes >= self.batch_bytes {
                self.commit(turn)?;
            }
        }
        self.commit(turn)
    }

    fn add_entries(&mut self, id: RegionId, committed: Committed, turn: &mut Turn) -> Result<(), ApplyFault> {
        let Committed { entries, mut replies, commit } = committed;
        let result = self.add_each(id, &entries, &mut replies, commit, turn);
        if let Err(fault) = &result {
            refuse(replies.into_iter().map(|(_, reply)| reply), &fault.to_string());
        }
        result
    }

    fn add_each(
        &mut self,
        id: RegionId,
        entries: &[Entry],
        replies: &mut CommittedReplies,
        commit: LogIndex,
        turn: &mut Turn,
    ) -> Result<(), ApplyFault> {
        let applied = self.regions.get_mut(&id).ok_or(ApplyFault::UnknownRegion(id))?;
        for entry in entries {
            let index = LogIndex::new(entry.index);
            if entry.index != applied.position.index.get() + 1 {
                return Err(ApplyFault::Gap { region: id, index, applied: applied.position.index });
            }
            if index > commit {
                return Err(ApplyFault::AboveCommit { region: id, index, commit });
            }
            let verdict = apply_entry(&applied.region, entry, turn)?;
            applied.position = LogPosition { index, term: Term::new(entry.term) };
            if let Some((_, reply)) = replies.pop_front_if(|(at, _)| *at == entry.index) {
                turn.answers.push((reply, verdict.map(|()| index).map_err(ProposeError::from)));
            }
        }
        turn.entries += entries.len();
        turn.positions.insert(id, applied.position);
        Ok(())
    }

    /// Writes what was gathered, publishes it, answers.
    fn commit(&mut self, turn: &mut Turn) -> Result<(), ApplyFault> {
        let Turn { mut batch, entries, positions, answers, .. } = std::mem::take(turn);
        if positions.is_empty() {
            return Ok(());
        }
        for (region, position) in &positions {
            batch.put(Cf::Meta, &records::applied_key(*region), &records::encode_position(*position));
        }
        if let Err(error) = self.store.write(&batch) {
            refuse(answers.into_iter().map(|(reply, _)| reply), &error.to_string());
            return Err(error.into());
        }
        self.metrics.applied_per_write.observe(entries as f64);
        for (region, position) in &positions {
            if let Some(applied) = self.regions.get(region) {
                applied.delegate.publish_applied(*position);
            }
        }
        self.inbox.update(|c| c.applied.extend(positions));
        for (reply, answer) in answers {
            reply.send(answer);
        }
        Ok(())
    }

    /// Stage 2 of a snapshot: the region's data, descriptor and applied position, flushed.
    fn install(&mut self, intent: &SnapshotIntent) -> Result<(), ApplyFault> {
        let position = install_snapshot(&self.store, &self.snapshots, intent)?;
        let id = intent.region.id;
        let applied = self.regions.get_mut(&id).ok_or(ApplyFault::UnknownRegion(id))?;
        applied.region = Arc::new(intent.region.clone());
        applied.position = position;
        applied.delegate.publish_applied(position);
        self.metrics.snapshots.with_label_values(&["installed"]).inc();
        self.inbox.update(|c| {
            // What was applied before it is part of it.
            c.applied.remove(&id);
            c.installed.push(intent.key);
        });
        (self.wake)();
        Ok(())
    }
}

/// Replaces a region's data by a snapshot file's, with its descriptor and position; flushed on return.
pub(crate) fn install_snapshot<S: Store>(
    store: &S,
    files: &SnapshotFiles,
    intent: &SnapshotIntent,
) -> Result<LogPosition, StoreError> {
    let region = &intent.region;
    let position = LogPosition { index: intent.key.index, term: intent.key.term };
    let mut last = WriteBatch::new();
    last.put(Cf::Meta, &records::descriptor_key(region.id), &records::encode_region(region));
    last.put(Cf::Meta, &records::applied_key(region.id), &records::encode_position(position));
    let mut rows = files.rows(intent.key)?;
    store.replace_range(&region.start, &region.end, &mut rows, &last)?;
    Ok(position)
}

/// Adds what an entry writes; `Err` inside says that it has no effect, on any replica.
fn apply_entry(region: &Region, entry: &Entry, turn: &mut Turn) -> Result<Result<(), RegionError>, ApplyFault> {
    let index = LogIndex::new(entry.index);
    if entry.get_entry_type() != EntryType::EntryNormal {
        return Err(ApplyFault::UnknownKind { region: region.id, index });
    }
    let command =
        Command::decode(&entry.data).map_err(|source| ApplyFault::Malformed { region: region.id, index, source })?;
    match command {
        Command::Noop => Ok(Ok(())),
        Command::Write { term, epoch, batch } => {
            if term.get() != entry.term {
                return Ok(Err(RegionError::StaleCommand { region: region.id }));
            }
            if epoch != region.epoch {
                return Ok(Err(RegionError::EpochNotMatch { current: Box::new(region.clone()) }));
            }
            if !batch.iter().all(|op| within(region, &op)) {
                return Err(ApplyFault::OutsideRegion { region: region.id, index });
            }
            turn.bytes += batch.size();
            turn.batch.append(&batch);
            Ok(Ok(()))
        }
    }
}

/// Whether an operation touches nothing but the region's own data.
pub(crate) fn within(region: &Region, op: &Op<'_>) -> bool {
    match op {
        Op::Put { cf, key, .. } | Op::Delete { cf, key } => *cf != Cf::Meta && region.contains(key),
        Op::DeleteRange { cf, start, end } => {
            *cf != Cf::Meta && !end.is_empty() && (start >= end || region.contains_range(start, end))
        }
    }
}

/// The store stopped: nothing that is left is acknowledged.
fn fail(tasks: &mut Vec<ApplyTask>, turn: Turn, why: &str) {
    refuse(turn.answers.into_iter().map(|(reply, _)| reply), why);
    for task in tasks.drain(..) {
        if let ApplyTask::Entries(_, committed) = task {
            refuse(committed.replies.into_iter().map(|(_, reply)| reply), why);
        }
    }
}

fn refuse(replies: impl Iterator<Item = ProposeReply>, why: &str) {
    for reply in replies {
        reply.send(Err(ProposeError::Poisoned(why.to_string())));
    }
}

#[cfg(test)]
mod tests;
