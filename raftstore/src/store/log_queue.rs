//! The way of a store's batches into the log: in order, one at a time, whatever the disk says.
//!
//! The log survives a full disk: the batch is not written, and later ones may be, if they are smaller or space was freed. For the store that must
//! not happen: a batch stands on those before it, and a hard state on disk whose entries are missing is a log that does not open again. So the
//! next batch is handed over only when the one before it is written. Those that come meanwhile are merged, and the log's own thread hands
//! them over as it acknowledges the one before, so that nothing waits for the store's thread and the log writes groups as large as before.
//!
//! A batch that met a full disk stays here, with all that came after it, and is tried again when [`LogQueue::retry`] is called. Nothing of it is
//! acknowledged meanwhile, so the store is as one whose disk is very slow. Any other failure is final.
//!
//! What is acknowledged is told to the store's inbox: the number of the last batch that is written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::log::{Durability, LogBatch, LogEngine, LogError, Lsn};
use parking_lot::Mutex;

use crate::mailbox::{Inbox, Mailbox};
use crate::metrics::Metrics;
use crate::store::StoreMsg;

/// Batches are merged up to about so many bytes; the log writes as much in one go.
const MERGED_BYTES: usize = 1 << 20;

/// See the module documentation.
pub(super) struct LogQueue {
    log: LogEngine,
    inbox: Arc<Inbox>,
    mailbox: Arc<Mailbox<StoreMsg>>,
    metrics: Metrics,
    full: AtomicBool,
    state: Mutex<State>,
}

/// Invariants: (1) numbers ascend from `flying` through `waiting`. (2) What flies is the log's alone; while it does, nothing else is handed over.
#[derive(Default)]
struct State {
    flying: Option<Numbered>,
    waiting: VecDeque<Numbered>,
    /// Nothing is handed over before the next `retry`.
    stalled: bool,
}

/// A batch, or several merged ones.
struct Numbered {
    /// Number of the last of them.
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
        Arc::new(LogQueue { log, inbox, mailbox, metrics, full: AtomicBool::new(false), state: Mutex::default() })
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
        self.state.lock().stalled = false;
        self.hand_over();
    }

    /// Hands what waits to the log, unless something is there already.
    fn hand_over(self: &Arc<Self>) {
        let Some((batch, durability)) = self.state.lock().take_off() else { return };
        let queue = Arc::clone(self);
        let submitted = self.log.submit(batch, durability, Box::new(move |outcome| queue.done(outcome)));
        if let Err(error) = submitted {
            self.failed(error);
        }
    }

    /// The log's word on what was handed over. On the log's thread.
    fn done(self: &Arc<Self>, outcome: engine::log::Result<Lsn>) {
        let flown = match outcome {
            Ok(_) => self.state.lock().flying.take(),
            Err(error) => return self.failed(error),
        };
        if self.full.swap(false, Ordering::SeqCst) {
            self.metrics.log_full.set(0);
            tracing::info!("the log has space again, the store goes on");
        }
        if let Some(flown) = flown {
            self.inbox.update(|c| c.durable = c.durable.max(flown.number));
        }
        self.hand_over();
        self.mailbox.wake();
    }

    fn failed(&self, error: LogError) {
        match error {
            LogError::NoSpace(why) => {
                self.state.lock().stall();
                if !self.full.swap(true, Ordering::SeqCst) {
                    self.metrics.log_full.set(1);
                    tracing::error!(
                        why,
                        "the log's disk is full: nothing is written or acknowledged until there is space again"
                    );
                }
            }
            // Something else fills the log's queue; it will have room again.
            LogError::Busy => self.state.lock().stall(),
            other => self.inbox.update(|c| {
                c.log_failure.get_or_insert(other.to_string());
            }),
        }
        self.mailbox.wake();
    }
}

impl State {
    /// What is to be handed over now; it counts as flying from here on, and a copy is kept.
    fn take_off(&mut self) -> Option<(LogBatch, Durability)> {
        if self.flying.is_some() || self.stalled {
            return None;
        }
        let mut merged = self.waiting.pop_front()?;
        let room = |merged: &Numbered, next: &Numbered| merged.batch.bytes() + next.batch.bytes() <= MERGED_BYTES;
        while let Some(next) = self.waiting.pop_front_if(|next| room(&merged, next)) {
            assert!(next.number > merged.number, "batches are written in order");
            merged.number = next.number;
            merged.batch.merge(next.batch);
            if next.durability == Durability::Synced {
                merged.durability = Durability::Synced;
            }
        }
        let copy = (merged.batch.clone(), merged.durability);
        self.flying = Some(merged);
        Some(copy)
    }

    /// What flies has not been written.
    fn stall(&mut self) {
        self.stalled = true;
        if let Some(flown) = self.flying.take() {
            self.waiting.push_front(flown);
        }
    }
}

#[cfg(test)]
mod tests;
