//! The way of a store's batches into the log: in order, whatever the disk says.
//!
//! Several batches are under way at once, so the log encodes one while it syncs another. Each stands on those before it: a hard state on disk
//! whose entries are missing is a log that does not open again. So they form a [`Sequence`]: one that meets a full disk takes those behind
//! it along. All of them come back here, with what came after them, and are tried again when [`LogQueue::retry`] is called. Nothing of
//! them is acknowledged meanwhile, so the store is as one whose disk is very slow. Any other failure is final.
//!
//! What is acknowledged is told to the store's inbox: the number of the last batch that is written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::log::{Durability, LogBatch, LogEngine, LogError, Lsn, Sequence};
use parking_lot::Mutex;

use crate::mailbox::{Inbox, Mailbox};
use crate::metrics::Metrics;
use crate::store::StoreMsg;

/// See the module documentation.
pub(super) struct LogQueue {
    log: Sequence,
    inbox: Arc<Inbox>,
    mailbox: Arc<Mailbox<StoreMsg>>,
    metrics: Metrics,
    full: AtomicBool,
    state: Mutex<State>,
}

/// Invariants: (1) numbers ascend from `flying` through `waiting`, and from `fallen` through `waiting`. (2) The log answers in the order of `flying`.
/// (3) Once one has fallen, all that fly fall.
#[derive(Default)]
struct State {
    /// Handed over; a copy of each is kept.
    flying: VecDeque<Numbered>,
    /// Not written, for want of space.
    fallen: VecDeque<Numbered>,
    waiting: VecDeque<Numbered>,
    /// Nothing is handed over before the next `retry`.
    stalled: bool,
    /// The sequence takes nothing before it is resumed; nothing flies.
    broken: bool,
    /// Nothing is handed over any more.
    ended: bool,
}

/// A batch with its number.
#[derive(Clone)]
struct Numbered {
    number: u64,
    batch: LogBatch,
    durability: Durability,
}

impl LogQueue {
    pub(super) fn new(
        log: LogEngine,
        inbox: Arc<Inbox>,
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
        self.state.lock().waiting.push_back(Numbered { number, batch, durability });
        self.hand_over();
    }

    /// Whether batches wait for space on the disk.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::SeqCst)
    }

    /// Tries again what met a full disk.
    pub(super) fn retry(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.fallen.is_empty() || !state.stalled || state.ended {
            // The log has not answered all of it yet, or there is nothing to try again.
            return;
        }
        state.stalled = false;
        if std::mem::take(&mut state.broken) {
            self.log.resume();
        }
        drop(state);
        self.hand_over();
    }

    /// Hands what waits to the log. Under the lock, so that two who do it at once keep the order.
    fn hand_over(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while !state.stalled && state.fallen.is_empty() {
            let Some(next) = state.waiting.pop_front() else { return };
            let (queue, number) = (Arc::clone(self), next.number);
            let done = Box::new(move |outcome| queue.done(number, outcome));
            // Known to fly before the log can answer, which then waits for the lock.
            state.flying.push_back(next.clone());
            let Err(error) = self.log.submit_with(next.batch, next.durability, done) else { continue };
            if let Some(back) = state.flying.pop_back() {
                state.waiting.push_front(back);
            }
            state.stalled = true;
            // Something else fills the log's queue; it will have room again.
            if !matches!(error, LogError::Busy) {
                self.give_up(&mut state, &error);
            }
        }
    }

    /// The log's word on a batch. On the log's thread.
    fn done(self: &Arc<Self>, number: u64, outcome: engine::log::Result<Lsn>) {
        let mut state = self.state.lock();
        let Some(flown) = state.flying.pop_front() else { return };
        assert_eq!(flown.number, number, "the log answers in order");
        match outcome {
            Ok(_) => {
                assert!(state.fallen.is_empty(), "what stands on a batch that is not written is not written");
                drop(state);
                self.written(number);
                self.hand_over();
            }
            Err(LogError::NoSpace(why)) => {
                state.fall(flown);
                drop(state);
                self.met_full_disk(&why);
            }
            Err(error) => self.give_up(&mut state, &error),
        }
        self.mailbox.wake();
    }

    fn written(&self, number: u64) {
        if self.full.swap(false, Ordering::SeqCst) {
            self.metrics.log_full.set(0);
            tracing::info!("the log has space again, the store goes on");
        }
        self.inbox.update(|c| c.durable = c.durable.max(number));
    }

    fn met_full_disk(&self, why: &str) {
        if !self.full.swap(true, Ordering::SeqCst) {
            self.metrics.log_full.set(1);
            tracing::error!(
                why,
                "the log's disk is full: nothing is written or acknowledged until there is space again"
            );
        }
    }

    fn give_up(&self, state: &mut State, error: &LogError) {
        if std::mem::replace(&mut state.ended, true) {
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
    /// A batch was not written for want of space; when the last one that flew is down, all of them wait again.
    fn fall(&mut self, flown: Numbered) {
        self.fallen.push_back(flown);
        if self.flying.is_empty() {
            let later = std::mem::replace(&mut self.waiting, std::mem::take(&mut self.fallen));
            self.waiting.extend(later);
            self.stalled = true;
            self.broken = true;
        }
    }
}

#[cfg(test)]
mod tests;
