//! The way of a store's batches into the log: in order, whatever the disk says.
//!
//! Several batches are under way at once, so the log encodes one while it syncs another. Each stands on those before it: a hard state on disk
//! whose entries are missing is a log that does not open again. So they form a [`Sequence`]: one that meets a full disk takes those behind
//! it along. All of them come last here, with what came after them, and are tried again when [`LogQueue::retry`] is called. Nothing of
//! them is acknowledged meanwhile, so the store is as one whose disk is very slow.
//!
//! **Truncations go first.** A log that fills its disk by itself gets space only by letting entries go, and that must not wait behind what does not
//! fit. So truncations are batches of their own, which the log writes into its reserve; those that met a full disk are tried again before
//! all that waits, and alone, because a batch with entries is not let into the reserve. They may go ahead of what waits because they depend on none of it:
//! - What a region lets go is applied, so it is committed and acknowledged by the log; and what waits, or flies, is not. So the entry that
//!   becomes the log's start is in the log, no append that waits replaces it, and the first of them begins right behind it or later.
//! - A log that starts anew behind a snapshot has let go nothing of what came before, and lets go of something only when that new start is
//!   acknowledged: no start that waits is overtaken by a truncation that came after it.
//!
//! Among truncations of one region the order counts, because each says where the log starts: the last one stands for all of them.
//!
//! **Any other failure is final**, also a write that failed and left no trace, after which the log itself would go on. A full disk is a state that
//! ends, with a cause that somebody knows; a disk that answers a write with an error is one that a store cannot judge. To try again would keep a
//! replica in its place that votes, and whose disk may forget. A store that ends lets others lead, and when it is started again, the log reads what
//! is there before it believes it. Likewise a batch that does not fit the log, except where one before it fell: then that is why.
//!
//! What is acknowledged is told to the store's inbox: the number of the last batch that is on_written.

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

/// Where the logs of regions start from now on: entries up to there are let go.
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

/// Invariants: (1) numbers ascend from `in_flight` through `waiting`, and from `rejected` through `waiting`. (2) The log answers in the order of `in_flight`.
/// (3) Once one has rejected, all that fly reject. (4) While the disk is full, nothing is handed over behind truncations that fly.
#[derive(Default)]
struct State {
    /// Handed over; a copy of each is kept.
    in_flight: VecDeque<InFlight>,
    /// Not on_written, for want of space.
    rejected: VecDeque<NumberedBatch>,
    waiting: VecDeque<NumberedBatch>,
    /// Goes before all that waits.
    truncations: Truncations,
    /// How many were handed over so far.
    submitted: u64,
    /// One has rejected, and others fly.
    rejecting: bool,
    /// Nothing is handed over before the next `retry`.
    stalled: bool,
    /// The sequence takes nothing before it is resumed; nothing flies.
    needs_resume: bool,
    /// Nothing is handed over any more.
    failed: bool,
}

/// What the log has been handed.
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

    /// Takes the batch of that number, one more than that of the last.
    pub(super) fn submit(self: &Arc<Self>, number: u64, batch: LogBatch, durability: Durability) {
        self.state.lock().waiting.push_back(NumberedBatch { number, batch, durability });
        self.submit_next();
    }

    /// Lets entries go that are applied and flushed. Nobody is told, for nothing depends on it: a crash leaves a longer log.
    pub(super) fn truncate(self: &Arc<Self>, truncations: Truncations) {
        self.state.lock().add_truncations(truncations);
        self.submit_next();
    }

    /// Whether batches wait for space on the disk.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::SeqCst)
    }

    /// Tries again what met a full disk.
    pub(super) fn retry(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.rejecting || !state.stalled || state.failed {
            // The log has not answered all of it yet, or there is nothing to try again.
            return;
        }
        state.stalled = false;
        if std::mem::take(&mut state.needs_resume) {
            self.log.resume();
        }
        drop(state);
        self.submit_next();
    }

    /// Hands what waits to the log. Under the lock, so that two who do it at once keep the order.
    fn submit_next(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while !state.stalled && !state.rejecting {
            let Some(submission) = state.next_submission(self.is_full()) else { return };
            state.submitted += 1;
            let (queue, number) = (Arc::clone(self), state.submitted);
            let done = Box::new(move |outcome| queue.on_outcome(number, outcome));
            let (batch, durability) = submission.clone().into_batch();
            // Known to fly before the log can answer, which then waits for the lock.
            state.in_flight.push_back(InFlight { number, submission });
            let Err(error) = self.log.submit_with(batch, durability, done) else { continue };
            if let Some(last) = state.in_flight.pop_back() {
                state.requeue(last.submission);
            }
            state.stalled = true;
            // Something else fills the log's queue; it will have room again.
            if !matches!(error, LogError::Busy) {
                self.fail(&mut state, &error);
            }
        }
    }

    /// The log's word on what it was handed. On the log's thread.
    fn on_outcome(self: &Arc<Self>, number: u64, outcome: engine::log::Result<Lsn>) {
        let mut state = self.state.lock();
        if let Err(error @ (LogError::Poisoned(_) | LogError::Closed)) = &outcome {
            // The end of the log. Where one of its threads panicked, those that it had are told first.
            self.fail(&mut state, error);
            self.mailbox.wake();
            return;
        }
        let Some(answered) = state.in_flight.pop_front() else { return };
        assert_eq!(answered.number, number, "the log answers in order");
        match outcome {
            Ok(_) => {
                assert!(!state.rejecting, "what stands on a batch that is not written is not written");
                self.on_written(&state, answered.submission);
                drop(state);
                self.submit_next();
            }
            Err(LogError::NoSpace(why)) => {
                self.on_disk_full(&why);
                state.reject(answered.submission);
            }
            // It stands on what fell: that is why it does not fit, and all of it is tried again.
            Err(LogError::Gap { .. } | LogError::Compacted { .. }) if state.rejecting => {
                state.reject(answered.submission)
            }
            Err(error) => self.fail(&mut state, &error),
        }
        self.mailbox.wake();
    }

    /// Entries that are let go are on_written on a disk that is full, too: only where nothing else waits they say that it is not.
    fn on_written(&self, state: &State, submission: Submission) {
        let batch = matches!(submission, Submission::Batch(_));
        if (batch || state.is_idle()) && self.full.swap(false, Ordering::SeqCst) {
            self.metrics.log_full.set(0);
            tracing::info!("the log has space again, the store goes on");
        }
        if let Submission::Batch(written) = submission {
            self.inbox.update(|c| c.durable = c.durable.max(written.number));
        }
    }

    fn on_disk_full(&self, why: &str) {
        if !self.full.swap(true, Ordering::SeqCst) {
            self.metrics.log_full.set(1);
            tracing::error!(
                why,
                "the log's disk is full: nothing is written or acknowledged until there is space again"
            );
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
    /// What is to be handed over next.
    fn next_submission(&mut self, full: bool) -> Option<Submission> {
        if full && self.in_flight.back().is_some_and(|last| matches!(last.submission, Submission::Truncations(_))) {
            return None;
        }
        if !self.truncations.is_empty() {
            return Some(Submission::Truncations(std::mem::take(&mut self.truncations)));
        }
        self.waiting.pop_front().map(Submission::Batch)
    }

    /// Nothing is under way or waits.
    fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty() && self.truncations.is_empty()
    }

    /// Adds newer truncations to those that wait.
    fn add_truncations(&mut self, newer: Truncations) {
        for (region, start) in newer {
            let before = self.truncations.insert(region, start);
            assert!(before.is_none_or(|before| before.index <= start.index), "the start of a log never goes back");
        }
    }

    /// What was not handed over after all is the next one again.
    fn requeue(&mut self, submission: Submission) {
        match submission {
            Submission::Batch(batch) => self.waiting.push_front(batch),
            Submission::Truncations(older) => {
                let newer = std::mem::replace(&mut self.truncations, older);
                self.add_truncations(newer);
            }
        }
    }

    /// Something was not on_written for want of space; when the last one that flew is down, all of them wait again.
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
    /// As the log takes it.
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
