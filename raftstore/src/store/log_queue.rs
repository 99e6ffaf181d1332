//! Submits the store's batches to the log, in order, and retries them when the disk was full.
//!
//! Several batches are in flight at once, so the log encodes one while it syncs another. Each batch depends on those
//! before it: a log with a hard state but without the entries it refers to does not open again. Hence the batches form
//! a [`Sequence`]: when one meets a full disk, the log rejects those behind it too. The rejected batches return to the
//! front of this queue, in order, and are submitted again after [`LogQueue::retry`]. None of them is acknowledged
//! meanwhile, so the store behaves as if its disk were very slow.
//!
//! **Truncations bypass the stalled queue.** A log that has filled its disk gets space only from truncations, so they
//! must not wait behind batches that do not fit. They are batches of their own, because the log admits only batches
//! without entries to its reserve file. After a full disk they are retried first, and alone. Truncations may overtake
//! queued batches because they depend on none of them:
//!
//! - A region truncates only entries that are applied, hence committed and acknowledged by the log. Queued and
//!   in-flight entries are not acknowledged. So the entry at the new log start is in the log, and no queued append
//!   replaces it: the first of them begins right after it or later.
//! - After a snapshot restart a region truncates nothing of the old log, and truncates the new log only once its new
//!   start is acknowledged. So a truncation never overtakes the restart before it.
//!
//! Truncations of one region are ordered, because each sets the start of the log. The newest replaces older ones.
//!
//! **Any other failure is final**, even a failed write after which the log itself could continue. A full disk is a
//! temporary state with a known cause. A write error is not: the store cannot judge what such a disk will forget, and a
//! retry would keep a voting replica on it. A store that stops lets other replicas lead, and on restart the log
//! verifies what is on disk before trusting it. A batch that does not fit the log's index range is also final, unless a
//! batch before it was rejected: then that is the cause.
//!
//! Acknowledgement: the number of the last durable batch goes to the store's [`CompletionInbox`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::log::{Durability, LogBatch, LogEngine, LogError, Lsn, Sequence};
use parking_lot::Mutex;

use crate::mailbox::Mailbox;
use crate::messages::{CompletionInbox, StoreMsg};
use crate::metrics::Metrics;
use crate::records::LogPosition;
use crate::region::RegionId;
use crate::storage;

/// New log starts of regions: entries up to and including each position are dropped.
pub(super) type Truncations = BTreeMap<RegionId, LogPosition>;

/// See the module documentation.
pub(super) struct LogQueue {
    log: Sequence,
    inbox: Arc<CompletionInbox>,
    mailbox: Arc<Mailbox<StoreMsg>>,
    metrics: Metrics,
    full: AtomicBool,
    state: Mutex<State>,
}

/// Invariants:
/// 1. Batch numbers ascend from `in_flight` through `waiting`, and from `rejected` through `waiting`.
/// 2. The log answers in the order of `in_flight`.
/// 3. Once the log has rejected one submission, it rejects all others in flight.
/// 4. While the disk is full, nothing is submitted behind truncations in flight.
#[derive(Default)]
struct State {
    /// Submitted to the log; a copy of each is kept for a retry.
    in_flight: VecDeque<InFlight>,
    /// Rejected because the disk is full.
    rejected: VecDeque<NumberedBatch>,
    waiting: VecDeque<NumberedBatch>,
    /// Submitted before `waiting`.
    truncations: Truncations,
    /// Number of submissions so far.
    submitted: u64,
    /// A submission was rejected and others are still in flight.
    rejecting: bool,
    /// Nothing is submitted before the next `retry`.
    stalled: bool,
    /// The sequence accepts nothing until it is resumed. Nothing is in flight.
    needs_resume: bool,
    /// The log has failed; nothing is submitted any more.
    failed: bool,
}

/// A submission to the log that has not been answered.
struct InFlight {
    number: u64,
    submission: Submission,
}

#[derive(Clone)]
enum Submission {
    Batch(NumberedBatch),
    Truncations(Truncations),
}

/// A batch with its number.
#[derive(Clone)]
struct NumberedBatch {
    number: u64,
    batch: LogBatch,
    durability: Durability,
}

impl LogQueue {
    pub(super) fn new(
        log: LogEngine,
        inbox: Arc<CompletionInbox>,
        mailbox: Arc<Mailbox<StoreMsg>>,
        metrics: Metrics,
    ) -> Arc<LogQueue> {
        Arc::new(LogQueue {
            log: log.sequence(),
            inbox,
            mailbox,
            metrics,
            full: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// Queues a batch. `number` is one more than that of the previous batch.
    pub(super) fn submit(self: &Arc<Self>, number: u64, batch: LogBatch, durability: Durability) {
        self.state.lock().waiting.push_back(NumberedBatch { number, batch, durability });
        self.submit_next();
    }

    /// Queues truncations of applied and flushed entries. There is no acknowledgement, because nothing depends on it:
    /// after a crash the log is longer.
    pub(super) fn truncate(self: &Arc<Self>, truncations: Truncations) {
        self.state.lock().add_truncations(truncations);
        self.submit_next();
    }

    /// Whether batches wait for space on the disk.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::SeqCst)
    }

    /// Submits again what a full disk rejected.
    pub(super) fn retry(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.rejecting || !state.stalled || state.failed {
            // The log has not answered everything yet, or nothing waits for a retry.
            return;
        }
        state.stalled = false;
        if std::mem::take(&mut state.needs_resume) {
            self.log.resume();
        }
        drop(state);
        self.submit_next();
    }

    /// Submits queued truncations and batches. Holds the lock, so that concurrent callers keep the order.
    fn submit_next(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while !state.stalled && !state.rejecting {
            let Some(submission) = state.next_submission(self.is_full()) else { return };
            state.submitted += 1;
            let (queue, number) = (Arc::clone(self), state.submitted);
            let done = Box::new(move |outcome| queue.on_outcome(number, outcome));
            let (batch, durability) = submission.clone().into_batch();
            // Recorded before the log can answer: the answer waits for the lock.
            state.in_flight.push_back(InFlight { number, submission });
            let Err(error) = self.log.submit_with(batch, durability, done) else { continue };
            if let Some(last) = state.in_flight.pop_back() {
                state.requeue(last.submission);
            }
            state.stalled = true;
            // Busy: other users fill the log's queue; it will have room again.
            if !matches!(error, LogError::Busy) {
                self.fail(&mut state, &error);
            }
        }
    }

    /// Handles the log's answer to a submission. Runs on the log's thread.
    fn on_outcome(self: &Arc<Self>, number: u64, outcome: engine::log::Result<Lsn>) {
        let mut state = self.state.lock();
        if let Err(error @ (LogError::Poisoned(_) | LogError::Closed)) = &outcome {
            // The log has ended. After a panic of a log thread, the submissions of that thread are answered first.
            self.fail(&mut state, error);
            self.mailbox.wake();
            return;
        }
        let Some(answered) = state.in_flight.pop_front() else { return };
        assert_eq!(answered.number, number, "the log answers in order");
        match outcome {
            Ok(_) => {
                assert!(!state.rejecting, "a batch behind a rejected one is rejected");
                self.on_written(&state, answered.submission);
                drop(state);
                self.submit_next();
            }
            Err(LogError::NoSpace(why)) => {
                self.on_disk_full(&why);
                state.reject(answered.submission);
            }
            // The index gap is a consequence of the rejection; all of it is retried.
            Err(LogError::Gap { .. } | LogError::Compacted { .. }) if state.rejecting => {
                state.reject(answered.submission)
            }
            Err(error) => self.fail(&mut state, &error),
        }
        self.mailbox.wake();
    }

    /// A durable batch proves that the disk has space. A truncation proves it only when nothing else is queued, because
    /// it may have used the reserve.
    fn on_written(&self, state: &State, submission: Submission) {
        let batch = matches!(submission, Submission::Batch(_));
        if (batch || state.is_idle()) && self.full.swap(false, Ordering::SeqCst) {
            self.metrics.log_full.set(0);
            tracing::info!("the log's disk has space again: writes continue");
        }
        if let Submission::Batch(written) = submission {
            self.inbox.update(|c| c.durable = c.durable.max(written.number));
        }
    }

    fn on_disk_full(&self, why: &str) {
        if !self.full.swap(true, Ordering::SeqCst) {
            self.metrics.log_full.set(1);
            tracing::error!(why, "the log's disk is full: writes and acknowledgements wait until there is space again");
        }
    }

    fn fail(&self, state: &mut State, error: &LogError) {
        if std::mem::replace(&mut state.failed, true) {
            return;
        }
        state.stalled = true;
        self.inbox.update(|c| {
            c.log_failure.get_or_insert(error.to_string());
        });
        self.mailbox.wake();
    }
}

impl State {
    /// The next submission, if any may be made.
    fn next_submission(&mut self, full: bool) -> Option<Submission> {
        if full && self.in_flight.back().is_some_and(|last| matches!(last.submission, Submission::Truncations(_))) {
            return None;
        }
        if !self.truncations.is_empty() {
            return Some(Submission::Truncations(std::mem::take(&mut self.truncations)));
        }
        self.waiting.pop_front().map(Submission::Batch)
    }

    /// Whether nothing is in flight or queued.
    fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty() && self.truncations.is_empty()
    }

    /// Merges newer truncations into the queued ones.
    fn add_truncations(&mut self, newer: Truncations) {
        for (region, start) in newer {
            let before = self.truncations.insert(region, start);
            assert!(before.is_none_or(|before| before.index <= start.index), "the log start never moves back");
        }
    }

    /// Puts a submission back in front of the queue.
    fn requeue(&mut self, submission: Submission) {
        match submission {
            Submission::Batch(batch) => self.waiting.push_front(batch),
            Submission::Truncations(older) => {
                let newer = std::mem::replace(&mut self.truncations, older);
                self.add_truncations(newer);
            }
        }
    }

    /// Records a rejection. After the last one in flight, all rejected batches are queued again.
    fn reject(&mut self, submission: Submission) {
        match submission {
            Submission::Batch(batch) => self.rejected.push_back(batch),
            older => self.requeue(older),
        }
        self.rejecting = !self.in_flight.is_empty();
        if !self.rejecting {
            let later = std::mem::replace(&mut self.waiting, std::mem::take(&mut self.rejected));
            self.waiting.extend(later);
            self.stalled = true;
            self.needs_resume = true;
        }
    }
}

impl Submission {
    /// Encodes the submission for the log.
    fn into_batch(self) -> (LogBatch, Durability) {
        match self {
            Submission::Batch(NumberedBatch { batch, durability, .. }) => (batch, durability),
            Submission::Truncations(truncations) => {
                let mut batch = LogBatch::new();
                for (region, start) in truncations {
                    storage::truncate(region, start, &mut batch);
                }
                (batch, Durability::Buffered)
            }
        }
    }
}

#[cfg(test)]
mod tests;
