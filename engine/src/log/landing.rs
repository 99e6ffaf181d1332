//! The second half of a commit group's way: it is synced where a batch asked for it, put into the index, and answered.
//!
//! One group at a time, in their order. A group that is written and has not landed is in flight; one more may be written meanwhile, so at
//! most two are. What must see all that was written in the index (the change of file, purge) waits for the landing first.
//!
//! In a log with threads whoever wrote a group lands it. One that is driven from outside may leave a group here and write the next
//! before it lands, so that a simulator meets every order that two threads can.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Mutex, MutexGuard};

use super::Lsn;
use super::answer::{Alarm, Told};
use super::error::{LogError, Result};
use super::items::replay;
use super::read::Shared;
use super::ticket::Bells;
use super::writer::{Flight, Written};

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Landing {
    /// Held while a group lands. Taken while the writer is held, never the other way round.
    busy: Mutex<()>,
    /// A group in flight that nobody is landing.
    waiting: Mutex<Option<Written>>,
    pub(crate) bells: Arc<Bells>,
}

impl Shared {
    /// Waits until no group is in flight. The caller holds the writer: so none will be.
    pub(crate) fn wait_for_landing(&self) {
        drop(self.enter_landing());
    }

    /// The landing, for the next group; what is in flight has landed then. The caller holds the writer.
    pub(crate) fn enter_landing(&self) -> MutexGuard<'_, ()> {
        let landing = self.landing.busy.lock();
        let waiting = self.landing.waiting.lock().take();
        if let Some(written) = waiting {
            self.land(written);
        }
        landing
    }

    /// Leaves a group in flight. The caller holds the writer.
    pub(crate) fn leave_in_flight(&self, written: Written) {
        let landing = self.enter_landing();
        *self.landing.waiting.lock() = Some(written);
        drop(landing);
    }

    /// Lands a group. The caller holds the landing.
    pub(crate) fn land(&self, written: Written) {
        let alarm = Alarm::new(self);
        // Dropped before the alarm goes off, as a parameter would not be.
        let mut written = written;
        let outcome = written.outcome.and_then(|flight| self.finish(&flight));
        if let Err(error) = &outcome {
            written.answers.iter_mut().for_each(|answer| answer.share(error));
        }
        let mut told = Told::default();
        written.answers.into_iter().for_each(|answer| answer.tell(&outcome, &mut told));
        if let Some(why) = told.panicked() {
            self.poison(why);
        }
        told.ring(&self.landing.bells);
        alarm.off();
    }

    fn finish(&self, flight: &Flight) -> Result<Lsn> {
        let draft = &flight.draft;
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        if draft.synced {
            self.survive(self.sync(&flight.file, flight.lsn))?;
        }
        let seq = flight.file.place.seq;
        for (block, place) in draft.blocks.iter().zip(&flight.blocks) {
            if let Some(block) = block.block() {
                self.cache.insert((seq, place.offset), Arc::new(block.clone()));
            }
        }
        let mut editor = self.index.editor();
        let replayed = replay(&draft.items, &flight.blocks, seq, &mut editor);
        drop(editor);
        if let Err(damage) = replayed {
            return Err(self.poison(format!("commit group {} does not fit the index: {}", flight.lsn, damage.0)));
        }
        self.landed.fetch_max(flight.lsn, Ordering::AcqRel);
        let is_settled = |file: &u64| self.index.usage(*file).refs == 0;
        self.settled.lock().extend(draft.settled.filter(is_settled));
        for file in &draft.dropped {
            self.settled.lock().remove(file);
            self.released.lock().push(*file);
        }
        if let Some(metrics) = &self.metrics {
            metrics.groups.inc();
            metrics.batches.inc_by(u64::from(draft.batches));
            metrics.batches_per_group.observe(f64::from(draft.batches));
        }
        Ok(Lsn(flight.lsn))
    }

    /// Answers the group that was left in flight, which will not land: the log ends. The caller rings.
    pub(crate) fn abandon_in_flight(&self, told: &mut Told) {
        let written = self.landing.waiting.lock().take();
        let answers = written.into_iter().flat_map(|written| written.answers);
        answers.for_each(|answer| answer.tell(&Err(LogError::Closed), told));
    }
}
