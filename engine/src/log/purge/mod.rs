//! Purge frees space: it drops the oldest files of the log, and rewrites live records that keep them.
//!
//! Steps, each of which may be the last one before a crash:
//! 1. The live records of the oldest file are rewritten and synced. Nothing refers to the file any more.
//! 2. An item that drops the file is written and synced. Recovery no longer looks for the file, and deletes it.
//! 3. The file is deleted or kept as a spare (`commit/spares.rs`), and the directory is synced.
//!
//! A file without live records skips the first step. Steps 1 and 2 are commit groups like any other.
//! [`Purger::purge`] queues one at a time and never waits for the writer, so a single thread may drive both. One
//! call writes at most its budget: other batches wait for at most that much.
//!
//! Files are dropped oldest first. A file also removes groups, deletes keys and truncates entries of older files. While
//! an older file exists, these changes must stay in the log, or its records would come back. So a dead file waits for
//! all older ones. (Earlier versions repeated the changes in a newer file and dropped files in any order. Recovery
//! still reads such logs. docs/log-engine.md compares the two.)
//!
//! Live records are rewritten only while the log exceeds its threshold, or its disk is full, and only while that frees
//! enough ([`rewrite`], which also shows that purge terminates). Groups with many live entries in old files are
//! reported, so that their owner compacts them ([`sealed_files`]).
//!
//! A file that cannot be deleted stays until a later call. It delays neither other files nor the next step. At a file
//! that cannot be read, purge stops. On a poisoned log nothing is deleted: the log's own records are no longer
//! trusted, and an old file may hold the only good copy.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `report`: budget and outcome
//! 2. `rewrite_cost`, `sealed_files`: what a rewrite takes, and the state of the files
//! 3. `rewrite`: the rewrite of the oldest file

mod report;
mod rewrite;
mod rewrite_cost;
mod sealed_files;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

pub use self::report::{Budget, PinningGroup, PurgeOutcome, PurgeReport};

use self::report::{MAX_STEP_BYTES, MIN_STEP_BYTES};
use self::rewrite::Rewriter;
use self::sealed_files::SealedFiles;
use crate::log::commit::{OnDone, Pipeline, PurgeWork, SpareFiles, Work};
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
    rewriter: Mutex<Rewriter>,
}

/// The state of purge between calls.
#[derive(Debug, Default)]
struct Progress {
    /// Whether a call selects a step, or a step is queued.
    busy: bool,
    /// Files that are recorded as dropped and can be deleted.
    dropped: BTreeSet<u64>,
}

/// What determines the outcome of a call.
#[derive(Clone, Copy, Debug, Default)]
struct CallProgress {
    /// Whether the call did or queued anything.
    progressed: bool,
    /// Whether there is more to do.
    more: bool,
}

impl CallProgress {
    fn outcome(self, under_pressure: bool) -> PurgeOutcome {
        match (self.more, under_pressure && self.progressed) {
            (false, _) => PurgeOutcome::Idle,
            (true, false) => PurgeOutcome::NextTick,
            (true, true) => PurgeOutcome::Now,
        }
    }
}

/// The caller's callback for the end of a step, called once. The call and the queued step share it.
#[derive(Clone)]
struct StepCallback(Arc<Mutex<Option<OnStepDone>>>);

type OnStepDone = Box<dyn FnOnce(bool) + Send>;

impl StepCallback {
    fn new(done: impl FnOnce(bool) + Send + 'static) -> StepCallback {
        StepCallback(Arc::new(Mutex::new(Some(Box::new(done)))))
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
            rewriter: Mutex::default(),
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
        let done = StepCallback::new(done);
        let mut queued = false;
        let report = self.step(budget, &done, &mut queued);
        if !queued {
            done.finish(true);
        }
        report
    }

    /// One step; sets `queued` if the log is to write it.
    fn step(self: &Arc<Self>, budget: Budget, done: &StepCallback, queued: &mut bool) -> Result<PurgeReport> {
        if let Some(error) = self.state.read_only() {
            return Err(error);
        }
        if self.state.poisoned().is_some() {
            return Ok(PurgeReport::default());
        }
        let (freed, failed) = self.delete_dropped()?;
        let mut report = PurgeReport { freed, failed, ..PurgeReport::default() };
        // The call that sets it resets it: below, or when its step is over. While it is set, no other call selects a
        // step.
        let is_busy = std::mem::replace(&mut self.progress.lock().busy, true);
        let sealed = SealedFiles::of(&self.state, &self.progress.lock().dropped);
        if sealed.exceeds_threshold && budget.find_pinning {
            report.pinning = sealed.pinning_groups(&self.state.index);
        }
        let has_dropped = !self.progress.lock().dropped.is_empty();
        let mut call = CallProgress { progressed: freed > 0, more: is_busy || has_dropped };
        let work = if is_busy { Ok(None) } else { self.next_work(&sealed, budget, &mut call, &mut report) };
        if !is_busy && !matches!(work, Ok(Some(_))) {
            self.progress.lock().busy = false;
        }
        if !call.more {
            self.look_for_space();
        }
        let work = work?;
        if let Some(metrics) = &self.state.metrics {
            record(metrics, &report, budget.find_pinning);
        }
        if let Some(work) = work {
            *queued = self.submit(work, done.clone())?;
            call.progressed |= *queued;
            report.rewritten = if *queued { report.rewritten } else { 0 };
        }
        report.outcome = call.outcome(sealed.under_pressure);
        Ok(report)
    }

    /// Queues a step. Returns false if the queue is full, which only delays the step.
    fn submit(self: &Arc<Self>, work: PurgeWork, done: StepCallback) -> Result<bool> {
        let weak = Arc::downgrade(self);
        let dropped = if let PurgeWork::Drop(files) = &work { files.clone() } else { Vec::new() };
        let on_done: OnDone = Box::new(move |outcome| {
            if let Some(purger) = weak.upgrade() {
                purger.step_done(outcome.is_ok(), dropped);
            }
            done.finish(outcome.is_ok());
        });
        match self.pipeline.submit(Work::Purge(work), Durability::Synced, on_done, None) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.step_done(false, Vec::new());
                if matches!(error, LogError::Busy) { Ok(false) } else { Err(error) }
            }
        }
    }

    /// A step that drops these files is written, or failed.
    fn step_done(&self, written: bool, dropped: Vec<u64>) {
        if !written {
            self.rewriter.lock().restart();
        }
        let mut progress = self.progress.lock();
        if written {
            progress.dropped.extend(dropped);
        }
        progress.busy = false;
    }

    /// Deletes dropped files or keeps them as spares. Returns their bytes, and the first failure.
    fn delete_dropped(&self) -> Result<(u64, Option<String>)> {
        let dropped: Vec<u64> = self.progress.lock().dropped.iter().copied().collect();
        // A file stays in `dropped` until it is deleted: scrub does not report it missing meanwhile.
        self.spares.recycle(&dropped, |seq| {
            self.progress.lock().dropped.remove(&seq);
        })
    }

    /// The next step, if no other one is under way.
    fn next_work(
        &self,
        sealed: &SealedFiles,
        budget: Budget,
        call: &mut CallProgress,
        report: &mut PurgeReport,
    ) -> Result<Option<PurgeWork>> {
        let dead = sealed.dead(&self.state.index);
        if !dead.is_empty() {
            call.more = true;
            return Ok(Some(PurgeWork::Drop(dead)));
        }
        let max_bytes = budget.bytes.clamp(MIN_STEP_BYTES, MAX_STEP_BYTES);
        let reserved = match self.spares.keep_reserve(max_bytes as u64) {
            Ok(bytes) => bytes as usize,
            Err(error) => {
                if let Some(poisoned) = self.state.poisoned() {
                    return Err(poisoned);
                }
                report.failed.get_or_insert(format!("reserve: {error}"));
                0
            }
        };
        call.progressed |= reserved > 0;
        if reserved >= max_bytes {
            call.more = true;
            return Ok(None);
        }
        if !sealed.exceeds_threshold {
            return Ok(None);
        }
        let max_bytes = max_bytes - reserved;
        let Some(rewrite) = self.rewriter.lock().next_part(&self.state, sealed, max_bytes, report) else {
            return Ok(None);
        };
        report.rewritten = rewrite.bytes as u64;
        call.more = true;
        Ok(Some(PurgeWork::Rewrite(rewrite)))
    }

    /// Clears `full` if the disk has space again. A log that writes nothing would not notice it. Called only if there
    /// is nothing to do: on a disk that reports space but refuses writes, purge continues as on a full one.
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
