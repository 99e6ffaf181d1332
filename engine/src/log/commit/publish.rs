//! The second stage of a commit group: sync it if a batch asked for that, apply it to the index, complete its batches.
//!
//! One group at a time, in order. A group that is written and not published is in flight. One more may be written
//! meanwhile, so at most two are. Rotation and purge must see everything written in the index and wait for publication
//! first.
//!
//! In a log with threads the worker that wrote a group publishes it. A log that is driven from outside may leave a
//! group in flight and write the next one before it is published. So a simulator meets every order that two threads
//! can.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Mutex, MutexGuard};

use super::completion::{PoisonOnPanic, WakeSet};
use super::draft::{InFlightGroup, WrittenGroup};
use super::spares::SpareFiles;
use super::ticket::WaitShards;
use crate::log::error::{LogError, Result};
use crate::log::format::replay;
use crate::log::read::{LogState, WriteError};
use crate::log::types::Lsn;

/// See the module documentation.
pub(crate) struct Publisher {
    state: Arc<LogState>,
    /// Held while a group is published. Taken while the writer is held, never the other way round.
    busy: Mutex<()>,
    /// A group that was left in flight.
    in_flight: Mutex<Option<WrittenGroup>>,
    waiters: Arc<WaitShards>,
}

impl Publisher {
    /// Nothing in flight.
    pub(crate) fn new(state: Arc<LogState>) -> Publisher {
        Publisher { state, busy: Mutex::default(), in_flight: Mutex::default(), waiters: Arc::default() }
    }

    /// Where callers wait for their batches.
    pub(crate) fn waiters(&self) -> &Arc<WaitShards> {
        &self.waiters
    }

    /// Waits until no group is in flight. The caller holds the writer, so none will be.
    pub(crate) fn wait_idle(&self) {
        drop(self.enter());
    }

    /// Enters the stage with the next group, after the group in flight is published. The caller holds the writer.
    pub(crate) fn enter(&self) -> MutexGuard<'_, ()> {
        let guard = self.busy.lock();
        let in_flight = self.in_flight.lock().take();
        if let Some(written) = in_flight {
            self.publish(written);
        }
        guard
    }

    /// Leaves a group in flight. The caller holds the writer.
    pub(crate) fn leave_in_flight(&self, written: WrittenGroup) {
        let guard = self.enter();
        *self.in_flight.lock() = Some(written);
        drop(guard);
    }

    /// Publishes a group. The caller holds the guard of [`Publisher::enter`].
    pub(crate) fn publish(&self, written: WrittenGroup) {
        let guard = PoisonOnPanic::new(&self.state, &self.waiters);
        // Dropped before the guard, as a parameter would not be.
        let mut written = written;
        let outcome = written.outcome.and_then(|group| self.apply(group));
        if let Err(error) = &outcome {
            written.answers.iter_mut().for_each(|answer| answer.fail_with_group(error));
        }
        let mut wakes = WakeSet::default();
        written.answers.into_iter().for_each(|answer| answer.complete(&outcome, &mut wakes));
        if let Some(why) = wakes.callback_panic() {
            self.state.poison(why);
        }
        wakes.wake(&self.waiters);
        guard.disarm();
    }

    /// Syncs a group if needed, and applies it to the cache and the index.
    fn apply(&self, group: InFlightGroup) -> Result<Lsn> {
        let InFlightGroup { draft, lsn, file, blocks } = group;
        let state = &self.state;
        if let Some(error) = state.poisoned() {
            return Err(error);
        }
        if draft.synced {
            state.accept(state.sync(&file, lsn))?;
        }
        let seq = file.place.seq;
        for (block, place) in draft.blocks.iter().zip(&blocks) {
            if let Some(block) = block.block() {
                state.cache.insert((seq, place.offset), Arc::new(block.clone()));
            }
        }
        let mut editor = state.index.editor();
        let replayed = replay(&draft.items, &blocks, seq, &mut editor);
        drop(editor);
        if let Err(damage) = replayed {
            return Err(state.poison(format!("commit group {lsn} does not fit the index: {}", damage.0)));
        }
        state.published.fetch_max(lsn, Ordering::AcqRel);
        if let Some(metrics) = &state.metrics {
            metrics.groups.inc();
            metrics.batches.inc_by(u64::from(draft.batches));
            metrics.batches_per_group.observe(f64::from(draft.batches));
        }
        Ok(Lsn(lsn))
    }

    /// Completes the group in flight with [`LogError::Closed`]: the log ends before it is published. The caller wakes
    /// the waiters.
    pub(crate) fn abandon_in_flight(&self, wakes: &mut WakeSet) {
        let written = self.in_flight.lock().take();
        let answers = written.into_iter().flat_map(|written| written.answers);
        answers.for_each(|answer| answer.complete(&Err(LogError::Closed), wakes));
    }
}

/// What the writer shares with the rest of the engine.
pub(crate) struct CommitContext {
    pub(crate) state: Arc<LogState>,
    pub(crate) spares: Arc<SpareFiles>,
    pub(crate) publisher: Publisher,
}

impl CommitContext {
    /// Waits until every group up to `lsn` is in the index. The caller holds the writer.
    pub(crate) fn wait_until_published(&self, lsn: u64) -> std::result::Result<(), WriteError> {
        self.publisher.wait_idle();
        if let Some(LogError::Poisoned(why)) = self.state.poisoned() {
            return Err(WriteError::Fatal(why));
        }
        let published = self.state.published.load(Ordering::Acquire);
        assert!(published >= lsn, "group {lsn} was written and is not published, the last that is: {published}");
        Ok(())
    }
}
