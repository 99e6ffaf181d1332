//! Apply: writes committed entries of many regions to the key-value store, one write batch per turn.
//!
//! The batch also holds the new applied positions of the regions, so data and position agree after a crash. After the
//! write, apply publishes the positions to the read delegates and only then answers the proposals. The effect of an
//! entry depends only on the entry and the region, so every replica reaches the same state. An invalid entry stops the
//! store: skipping it would make this replica differ from the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::store::{Store, StoreError};
use engine::{Cf, WriteBatch};
use raft::eraftpb::{Entry, EntryType};

use crate::codec::Malformed;
use crate::command::{self, Command};
use crate::delegate::Delegate;
use crate::error::{ProposeError, RegionError};
use crate::messages::{ApplyQueue, ApplyTask, CompletionInbox, Health};
use crate::metrics::Metrics;
use crate::peer::effects::Committed;
use crate::peer::proposal::{CommittedReplies, ProposeReply};
use crate::records::{self, LogPosition};
#[cfg(feature = "epoch-changes")]
use crate::region::Epoch;
use crate::region::{Floors, LogIndex, Region, RegionId, Term};

/// A committed entry that cannot be applied. The store stops, because going on would make this replica differ from the
/// others.
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

/// The apply state of a region.
struct RegionState {
    region: Arc<Region>,
    delegate: Arc<Delegate>,
    position: LogPosition,
    /// The floors that the entries up to `position` have raised.
    floors: Floors,
}

/// The apply loop; `turn` is one iteration.
pub(crate) struct ApplyLoop<S: Store> {
    store: S,
    queue: Arc<ApplyQueue>,
    inbox: Arc<CompletionInbox>,
    /// Wakes the store loop.
    wake: Box<dyn Fn() + Send>,
    health: Arc<Health>,
    metrics: Metrics,
    regions: BTreeMap<RegionId, RegionState>,
    batch_bytes: usize,
    tasks: Vec<ApplyTask>,
}

/// The parts of an [`ApplyLoop`].
pub(crate) struct ApplyParts<S: Store> {
    pub(crate) store: S,
    pub(crate) queue: Arc<ApplyQueue>,
    pub(crate) inbox: Arc<CompletionInbox>,
    pub(crate) wake: Box<dyn Fn() + Send>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
    pub(crate) batch_bytes: usize,
}

/// A write batch being built, and the replies it releases.
#[derive(Default)]
struct PendingWrite {
    batch: WriteBatch,
    entries: usize,
    bytes: usize,
    positions: BTreeMap<RegionId, LogPosition>,
    /// The floors of the regions in which they have risen.
    floors: BTreeMap<RegionId, Floors>,
    outcomes: Vec<(ProposeReply, Result<LogIndex, ProposeError>)>,
    /// Regions whose range has changed.
    #[cfg(feature = "epoch-changes")]
    changed: Vec<Arc<Region>>,
}

impl<S: Store> ApplyLoop<S> {
    pub(crate) fn new(parts: ApplyParts<S>) -> ApplyLoop<S> {
        let ApplyParts { store, queue, inbox, wake, health, metrics, batch_bytes } = parts;
        let (regions, tasks) = (BTreeMap::new(), Vec::new());
        ApplyLoop { store, queue, inbox, wake, health, metrics, regions, batch_bytes, tasks }
    }

    /// Adds a recovered region, whose delegate has its floors.
    pub(crate) fn add_region(&mut self, region: Arc<Region>, delegate: Arc<Delegate>, position: LogPosition) {
        let floors = delegate.floors().load();
        self.regions.insert(region.id, RegionState { region, delegate, position, floors });
    }

    /// Runs all queued tasks. Returns whether there were any.
    pub(crate) fn turn(&mut self) -> bool {
        let mut tasks = std::mem::take(&mut self.tasks);
        if !self.queue.mailbox.take(usize::MAX, &mut tasks) {
            self.tasks = tasks;
            return false;
        }
        let taken: usize = tasks.iter().map(ApplyTask::bytes).sum();
        // Oldest last, for `pop`.
        tasks.reverse();
        let mut pending = PendingWrite::default();
        if self.health.poisoned().is_none()
            && let Err(fault) = self.run_tasks(&mut tasks, &mut pending)
        {
            self.health.poison(&format!("apply: {fault}"));
        }
        if let Some(why) = self.health.poisoned() {
            refuse_tasks(&mut tasks, pending, why);
        }
        self.tasks = tasks;
        self.queue.backlog.fetch_sub(taken, Ordering::SeqCst);
        if self.inbox.wants_applied() || self.health.poisoned().is_some() {
            (self.wake)();
        }
        true
    }

    fn run_tasks(&mut self, tasks: &mut Vec<ApplyTask>, pending: &mut PendingWrite) -> Result<(), ApplyFault> {
        while let Some(task) = tasks.pop() {
            match task {
                ApplyTask::Entries(region, committed) => self.add_entries(region, committed, pending)?,
                ApplyTask::Installed(region, position) => self.continue_after(region, position)?,
            }
            if pending.bytes >= self.batch_bytes {
                self.commit(pending)?;
            }
        }
        self.commit(pending)
    }

    fn add_entries(
        &mut self,
        id: RegionId,
        committed: Committed,
        pending: &mut PendingWrite,
    ) -> Result<(), ApplyFault> {
        let Committed { entries, mut replies, commit } = committed;
        let result = self.add_checked(id, &entries, &mut replies, commit, pending);
        if let Err(fault) = &result {
            refuse_replies(replies.into_iter().map(|(_, reply)| reply), &fault.to_string());
        }
        result
    }

    fn add_checked(
        &mut self,
        id: RegionId,
        entries: &[Entry],
        replies: &mut CommittedReplies,
        commit: LogIndex,
        pending: &mut PendingWrite,
    ) -> Result<(), ApplyFault> {
        let state = self.regions.get_mut(&id).ok_or(ApplyFault::UnknownRegion(id))?;
        for entry in entries {
            let index = LogIndex::new(entry.index);
            if entry.index != state.position.index.get() + 1 {
                return Err(ApplyFault::Gap { region: id, index, applied: state.position.index });
            }
            if index > commit {
                return Err(ApplyFault::AboveCommit { region: id, index, commit });
            }
            let verdict = apply_entry(&state.region, &mut state.floors, entry, pending)?;
            #[cfg(feature = "epoch-changes")]
            if let Some(changed) = pending.changed.last().filter(|changed| changed.id == id) {
                state.region = Arc::clone(changed);
            }
            state.position = LogPosition { index, term: Term::new(entry.term) };
            if let Some((_, reply)) = replies.pop_front_if(|(at, _)| *at == entry.index) {
                pending.outcomes.push((reply, verdict.map(|()| index).map_err(ProposeError::from)));
            }
        }
        pending.entries += entries.len();
        pending.positions.insert(id, state.position);
        Ok(())
    }

    /// Writes the batch, publishes the applied positions, and answers the proposals.
    fn commit(&mut self, pending: &mut PendingWrite) -> Result<(), ApplyFault> {
        #[cfg(feature = "epoch-changes")]
        let changed = std::mem::take(&mut pending.changed);
        let PendingWrite { mut batch, entries, positions, floors, outcomes, .. } = std::mem::take(pending);
        if positions.is_empty() {
            return Ok(());
        }
        for (region, position) in &positions {
            batch.put(Cf::Meta, &records::applied_key(*region), &records::encode_position(*position));
        }
        for (region, floors) in &floors {
            batch.put(Cf::Meta, &records::floors_key(*region), &records::encode_floors(*floors));
        }
        #[cfg(feature = "epoch-changes")]
        for region in &changed {
            self.regions.get(&region.id).into_iter().for_each(|state| state.delegate.hold_range());
        }
        if let Err(error) = self.store.write(&batch) {
            refuse_replies(outcomes.into_iter().map(|(reply, _)| reply), &error.to_string());
            return Err(error.into());
        }
        self.metrics.applied_per_write.observe(entries as f64);
        for (region, position) in &positions {
            if let Some(state) = self.regions.get(region) {
                floors.get(region).into_iter().for_each(|floors| state.delegate.publish_floors(*floors));
                state.delegate.publish_applied(*position);
            }
        }
        #[cfg(feature = "epoch-changes")]
        if !changed.is_empty() {
            self.inbox.update(|c| c.changed.extend(changed));
            self.inbox.want_applied(true);
        }
        self.inbox.update(|c| c.applied.extend(positions));
        for (reply, answer) in outcomes {
            reply.send(answer);
        }
        Ok(())
    }

    /// A snapshot worker has replaced the region's data. The peer emits no entries of the region between the one
    /// before the installation and this task, so no entry of it was applied meanwhile.
    fn continue_after(&mut self, region: Arc<Region>, position: LogPosition) -> Result<(), ApplyFault> {
        let state = self.regions.get_mut(&region.id).ok_or(ApplyFault::UnknownRegion(region.id))?;
        assert!(state.position.index <= position.index, "a snapshot never takes a region back");
        state.region = region;
        state.position = position;
        // Those of the snapshot: the worker has published them.
        state.floors = state.delegate.floors().load();
        Ok(())
    }
}

/// Adds the writes of an entry to the batch. The inner `Err` means that the entry has no effect on any replica.
fn apply_entry(
    region: &Region,
    floors: &mut Floors,
    entry: &Entry,
    pending: &mut PendingWrite,
) -> Result<Result<(), RegionError>, ApplyFault> {
    let index = LogIndex::new(entry.index);
    if entry.get_entry_type() != EntryType::EntryNormal {
        return Err(ApplyFault::UnknownKind { region: region.id, index });
    }
    let command =
        Command::decode(&entry.data).map_err(|source| ApplyFault::Malformed { region: region.id, index, source })?;
    match command {
        Command::Noop => Ok(Ok(())),
        Command::Write { term, epoch, date, batch } => {
            // Evaluated again, a write of that date is refused for good.
            if term.get() != entry.term || date.is_some_and(|date| date <= floors.writes) {
                return Ok(Err(RegionError::StaleCommand { region: region.id }));
            }
            if epoch != region.epoch {
                return Ok(Err(RegionError::EpochNotMatch { current: Box::new(region.clone()) }));
            }
            if !batch.iter().all(|op| command::is_within(region, &op)) {
                return Err(ApplyFault::OutsideRegion { region: region.id, index });
            }
            pending.bytes += batch.size();
            pending.batch.append(&batch);
            Ok(Ok(()))
        }
        Command::RaiseFloors { term, epoch, floors: raised } => {
            if term.get() != entry.term {
                return Ok(Err(RegionError::StaleCommand { region: region.id }));
            }
            if epoch != region.epoch {
                return Ok(Err(RegionError::EpochNotMatch { current: Box::new(region.clone()) }));
            }
            let raised = floors.raised_to(raised);
            // A leader proposes no other.
            if raised.reads > raised.writes {
                return Ok(Err(RegionError::StaleCommand { region: region.id }));
            }
            if raised != *floors {
                *floors = raised;
                pending.floors.insert(region.id, raised);
            }
            Ok(Ok(()))
        }
        #[cfg(feature = "epoch-changes")]
        Command::RaiseVersion { term, epoch } => {
            if term.get() != entry.term || epoch != region.epoch {
                return Ok(Err(RegionError::StaleCommand { region: region.id }));
            }
            let epoch = Epoch { version: epoch.version + 1, ..epoch };
            let changed = Region { epoch, ..region.clone() };
            pending.batch.put(Cf::Meta, &records::descriptor_key(changed.id), &records::encode_region(&changed));
            pending.changed.push(Arc::new(changed));
            Ok(Ok(()))
        }
    }
}

/// The store is poisoned: refuses all tasks that are left.
fn refuse_tasks(tasks: &mut Vec<ApplyTask>, pending: PendingWrite, why: &str) {
    refuse_replies(pending.outcomes.into_iter().map(|(reply, _)| reply), why);
    for task in tasks.drain(..) {
        if let ApplyTask::Entries(_, committed) = task {
            refuse_replies(committed.replies.into_iter().map(|(_, reply)| reply), why);
        }
    }
}

fn refuse_replies(replies: impl Iterator<Item = ProposeReply>, why: &str) {
    for reply in replies {
        reply.send(Err(ProposeError::Poisoned(why.to_string())));
    }
}

#[cfg(test)]
mod tests;
