//! Purge: gives space back. Drops files without live records, and rewrites what is live in mostly dead files.
//!
//! Steps, each of which may be the last one before a crash:
//! 1. What is live in the file, and what it undoes of older files, is rewritten and synced. Nothing needs the file now.
//! 2. A record that drops the file is written and synced. Recovery no longer looks for the file, and deletes it.
//! 3. The file is deleted or kept as a spare (`commit/spares.rs`), and the directory synced.
//!
//! A file without older ones skips the first step once nothing in it is live. Steps 1 and 2 are commit groups like any
//! other. [`Purger::purge`] queues one at a time and never waits for the writer, so a single thread may drive both. One
//! call writes at most its budget: other batches wait for at most that much.
//!
//! Purge rewrites the file with the best ratio of benefit to cost, and prefers old files: what has lived long in them
//! will live on ([`victim`], after Rosenblum and Ousterhout 1991). It skips a file whose rewrite would be about as
//! large as the file ([`rewrite_cost`]), so purge terminates. Groups with many live entries in old files are
//! reported instead, so that their owner compacts them ([`sealed_files`]).
//!
//! A file that cannot be deleted stays until a later call. It delays neither other files nor the next step. A
//! file that cannot be read is reported and not chosen again. On a poisoned log nothing is deleted: what the log says
//! of itself is no longer trusted, and an old file may hold the only good copy.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `report`: budget and outcome
//! 2. `rewrite_cost`, `sealed_files`: what purge decides by
//! 3. `victim`: the file to rewrite

mod report;
mod rewrite_cost;
mod sealed_files;
mod victim;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

pub use self::report::{Budget, PinningGroup, PurgeOutcome, PurgeReport};

use self::report::MAX_STEP_BYTES;
use self::sealed_files::SealedFiles;
use self::victim::{Selection, Victims};
use crate::log::commit::{OnDone, Pipeline, PurgeEffect, PurgeWork, SpareFiles, Work};
use crate::log::error::{LogError, Result};
use crate::log::metrics::LogMetrics;
use crate::log::read::LogState;
use crate::log::types::Durability;

/// See the module documentation.
pub(crate) struct Purger {
    state: Arc<LogState>,
    spares: Arc<SpareFiles>,
    pipeline: Arc<Pipeline>,
    progress: Mutex<Progress>,
    victims: Mutex<Victims>,
}

/// How far purge is.
#[derive(Debug, Default)]
struct Progress {
    /// Whether a step is being looked for, or queued.
    busy: bool,
    /// Files that are recorded as dropped and can be deleted.
    dropped: BTreeSet<u64>,
    /// Superseded files: nothing of them is needed, not even what they undo of older files.
    superseded: BTreeSet<u64>,
}

/// What one call found out on its way to the outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Whether it did or queued anything.
    progressed: bool,
    /// Whether there is more to do.
    more: bool,
}

impl Step {
    fn outcome(self, pressed: bool) -> PurgeOutcome {
        match (self.more, pressed && self.progressed) {
            (false, _) => PurgeOutcome::Idle,
            (true, false) => PurgeOutcome::NextTick,
            (true, true) => PurgeOutcome::Now,
        }
    }
}

/// The caller's callback for the end of a step, called once. The call and the queued step share it.
#[derive(Clone)]
struct StepDone(Arc<Mutex<Option<OnStepDone>>>);

type OnStepDone = Box<dyn FnOnce(bool) + Send>;

impl StepDone {
    fn new(done: impl FnOnce(bool) + Send + 'static) -> StepDone {
        StepDone(Arc::new(Mutex::new(Some(Box::new(done)))))
    }

    fn finish(&self, written: bool) {
        let done = self.0.lock().take();
        if let Some(done) = done {
            done(written);
        }
    }
}

impl Purger {
    /// For the log that `pipeline` writes.
    pub(crate) fn new(pipeline: Arc<Pipeline>) -> Purger {
        Purger {
            state: pipeline.state().clone(),
            spares: pipeline.spares().clone(),
            pipeline,
            progress: Mutex::default(),
            victims: Mutex::default(),
        }
    }

    /// The log's state.
    pub(crate) fn state(&self) -> &LogState {
        &self.state
    }

    /// Whether purge is about to delete file `seq`.
    pub(crate) fn is_dropped(&self, seq: u64) -> bool {
        self.progress.lock().dropped.contains(&seq)
    }

    /// Deletes dropped files and queues the next step, if any. `done` is called once when the step is over: with
    /// `false` if it could not be written, with `true` if it was or nothing was queued. No lock of the log is held
    /// then, unless the step was queued: see [`OnDone`].
    pub(crate) fn purge(
        self: &Arc<Self>,
        budget: Budget,
        done: impl FnOnce(bool) + Send + 'static,
    ) -> Result<PurgeReport> {
        let done = StepDone::new(done);
        let mut queued = false;
        let report = self.step(budget, &done, &mut queued);
        if !queued {
            done.finish(true);
        }
        report
    }

    /// One step; sets `queued` if the log is to write it.
    fn step(self: &Arc<Self>, budget: Budget, done: &StepDone, queued: &mut bool) -> Result<PurgeReport> {
        if let Some(error) = self.state.read_only() {
            return Err(error);
        }
        if self.state.poisoned().is_some() {
            return Ok(PurgeReport::default());
        }
        let (freed, failed) = self.delete_dropped()?;
        let mut report = PurgeReport { freed, failed, ..PurgeReport::default() };
        // Whoever sets it resets it: here, or when the work is completed. While it is set no other call drops files.
        let is_busy = std::mem::replace(&mut self.progress.lock().busy, true);
        let sealed = SealedFiles::of(&self.state, &self.progress.lock().dropped);
        if sealed.over && budget.find_pinning {
            report.pinning = sealed.pinning_groups(&self.state.index);
        }
        let has_dropped = !self.progress.lock().dropped.is_empty();
        let mut step = Step { progressed: freed > 0, more: is_busy || has_dropped };
        let work = if is_busy { Ok(None) } else { self.next_work(&sealed, budget, &mut step, &mut report) };
        if !is_busy && !matches!(work, Ok(Some(_))) {
            self.progress.lock().busy = false;
        }
        if !step.more {
            self.look_for_space();
        }
        let work = work?;
        if let Some(metrics) = &self.state.metrics {
            record(metrics, &report, budget.find_pinning);
        }
        if let Some((work, effect)) = work {
            *queued = self.submit(work, effect, done.clone())?;
            step.progressed |= *queued;
            report.rewritten = if *queued { report.rewritten } else { 0 };
        }
        report.outcome = step.outcome(sealed.pressed);
        Ok(report)
    }

    /// Queues a step. Returns false if the queue is full, which only delays the step.
    fn submit(self: &Arc<Self>, work: PurgeWork, effect: Arc<OnceLock<PurgeEffect>>, done: StepDone) -> Result<bool> {
        let weak = Arc::downgrade(self);
        let on_done: OnDone = Box::new(move |outcome| {
            if let Some(purger) = weak.upgrade() {
                purger.step_done(outcome.is_ok(), effect.get());
            }
            done.finish(outcome.is_ok());
        });
        match self.pipeline.submit(Work::Purge(work), Durability::Synced, on_done, None) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.step_done(false, None);
                if matches!(error, LogError::Busy) { Ok(false) } else { Err(error) }
            }
        }
    }

    /// A step is written, or failed.
    fn step_done(&self, written: bool, effect: Option<&PurgeEffect>) {
        if !written {
            // Later parts depend on this one.
            self.victims.lock().start_over();
        }
        let mut progress = self.progress.lock();
        if let Some(PurgeEffect { dropped, superseded }) = effect {
            progress.superseded.extend(superseded);
            for file in dropped {
                progress.superseded.remove(file);
                progress.dropped.insert(*file);
            }
        }
        progress.busy = false;
    }

    /// Deletes dropped files or keeps them as spares. Returns their bytes, and the first failure.
    fn delete_dropped(&self) -> Result<(u64, Option<String>)> {
        let dropped: Vec<u64> = self.progress.lock().dropped.iter().copied().collect();
        // A file counts as dropped until it is gone: if scrub misses its name meanwhile, it can tell why.
        self.spares.recycle(&dropped, |seq| {
            self.progress.lock().dropped.remove(&seq);
        })
    }

    /// The next step, if no other one is under way.
    fn next_work(
        &self,
        sealed: &SealedFiles,
        budget: Budget,
        step: &mut Step,
        report: &mut PurgeReport,
    ) -> Result<Option<(PurgeWork, Arc<OnceLock<PurgeEffect>>)>> {
        let droppable = sealed.droppable(&self.state.index, &self.progress.lock().superseded);
        if !droppable.is_empty() {
            step.more = true;
            return Ok(Some(PurgeWork::drop_files(droppable)));
        }
        let max_bytes = budget.bytes.clamp(1, MAX_STEP_BYTES);
        let reserved = match self.spares.keep_reserve(max_bytes as u64) {
            Ok(bytes) => bytes as usize,
            Err(error) if self.state.poisoned().is_some() => return Err(error),
            Err(error) => {
                report.failed.get_or_insert(format!("reserve: {error}"));
                0
            }
        };
        step.progressed |= reserved > 0;
        if reserved >= max_bytes {
            step.more = true;
            return Ok(None);
        }
        if !sealed.over {
            return Ok(None);
        }
        let superseded = self.progress.lock().superseded.clone();
        let selection = Selection { state: &self.state, sealed, superseded: &superseded };
        let Some(rewrite) = self.victims.lock().next_rewrite(&selection, max_bytes - reserved, report) else {
            return Ok(None);
        };
        report.rewritten = rewrite.bytes as u64;
        step.more = true;
        Ok(Some(PurgeWork::rewrite(rewrite)))
    }

    /// A log whose disk was full and that writes nothing now does not learn from its writes that there is space again.
    /// Asked only if there is nothing to do: on a disk that reports space but takes nothing, purge continues
    /// as on a full one.
    fn look_for_space(&self) {
        let state = &self.state;
        let has_space = || state.disk.free_bytes().is_ok_and(|free| free >= state.options.file_bytes);
        if state.full.load(Ordering::Acquire) && has_space() {
            state.full.store(false, Ordering::Release);
        }
    }
}

/// Counts what a call did.
fn record(metrics: &LogMetrics, report: &PurgeReport, looked_for_pinning: bool) {
    metrics.freed_bytes.inc_by(report.freed);
    if looked_for_pinning {
        let pinned = report.pinning.iter().map(|pinning| pinning.pinned_bytes).sum();
        metrics.set_pinning(report.pinning.len() as u64, pinned);
    }
}
