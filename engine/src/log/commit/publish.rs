//! The second stage of a commit group: sync it if a batch asked for that, apply it to the index, complete its batches.
//!
//! One group at a time, in order. A group that is written and not published is *in flight*. The next one may be written
//! meanwhile, so at most two are in flight. Purge needs a complete index and waits for publication first.
//!
//! In a log with threads the worker that wrote a group publishes it. A log that is driven from outside may keep a group
//! in flight and write the next one first. So a simulator can produce every interleaving of two threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Mutex, MutexGuard};

use super::completion::{PoisonOnPanic, WakeSet};
use super::draft::{InFlightGroup, WrittenGroup};
use super::ticket::WaitShards;
use crate::log::error::{LogError, Result};
use crate::log::format::{Item, replay};
use crate::log::read::LogState;
use crate::log::types::Lsn;

/// See the module documentation.
pub(crate) struct Publisher {
    state: Arc<LogState>,
    /// Held while a group is published. Lock order: the writer lock first.
    stage: Mutex<()>,
    /// A group that [`Publisher::set_in_flight`] kept in flight.
    in_flight: Mutex<Option<WrittenGroup>>,
    waiters: Arc<WaitShards>,
}

impl Publisher {
    /// A publisher without a group in flight.
    pub(crate) fn new(state: Arc<LogState>) -> Publisher {
        Publisher { state, stage: Mutex::default(), in_flight: Mutex::default(), waiters: Arc::default() }
    }

    /// The futexes on which callers wait for their batches.
    pub(crate) fn waiters(&self) -> &Arc<WaitShards> {
        &self.waiters
    }

    /// Publishes a group kept in flight, and waits for a worker that publishes one. So all groups written before the
    /// call are published. If the caller holds the writer lock, no group is in flight afterwards.
    pub(crate) fn wait_idle(&self) {
        drop(self.enter());
    }

    /// Enters the stage, and publishes a group kept in flight.
    pub(crate) fn enter(&self) -> MutexGuard<'_, ()> {
        let guard = self.stage.lock();
        let in_flight = self.in_flight.lock().take();
        if let Some(written) = in_flight {
            self.publish(written);
        }
        guard
    }

    /// Keeps a group in flight until the stage is entered again. The caller holds the writer lock.
    pub(crate) fn set_in_flight(&self, written: WrittenGroup) {
        let guard = self.enter();
        *self.in_flight.lock() = Some(written);
        drop(guard);
    }

    /// Publishes a group. The caller holds the guard of [`Publisher::enter`].
    pub(crate) fn publish(&self, written: WrittenGroup) {
        let guard = PoisonOnPanic::new(&self.state, &self.waiters);
        // A local variable drops before the guard; a parameter would drop after it.
        let mut written = written;
        let outcome = written.outcome.and_then(|group| self.apply(group));
        if let Err(error) = &outcome {
            written.pending.iter_mut().for_each(|job| job.fail_with_group(error));
        }
        let mut wakes = WakeSet::default();
        written.pending.into_iter().for_each(|job| job.complete(&outcome, &mut wakes));
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
        let mut sealing = state.sealing.lock();
        if let Some(index) = sealing.as_mut().filter(|index| index.file() < seq) {
            draft.items.iter().filter_map(Item::group).for_each(|group| index.capture(group, &state.index));
        }
        drop(sealing);
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
        let pending = written.into_iter().flat_map(|written| written.pending);
        pending.for_each(|job| job.complete(&Err(LogError::Closed), wakes));
    }
}
