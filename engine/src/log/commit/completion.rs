//! Completion of batches: delivers each outcome once, through a ticket or a callback.
//!
//! A batch that is not written breaks its sequence. If the whole group failed, its sequences are broken under the
//! writer lock, so that no later batch of a sequence is validated before.

use std::any::Any;
use std::cell::Cell;
use std::panic::AssertUnwindSafe;

use super::sequence::Link;
use super::ticket::{Slot, WaitShards, WakeMask};
use crate::log::error::{LogError, Result};
use crate::log::read::LogState;
use crate::log::types::Lsn;

/// Called once with the outcome of a submitted batch. It runs on a thread of the log, on the thread of a caller that
/// serves the queue while it waits for a batch of its own, or on the thread that calls or drops the
/// [`LogWriter`](crate::log::LogWriter). It must not block, nor wait for another batch. A panic does
/// not propagate; it poisons the log.
pub type OnDone = Box<dyn FnOnce(Result<Lsn>) + Send>;

/// The right to complete one job, used once. A drop without use means that the thread with the job panicked: it
/// completes the job with an error.
pub(crate) struct Completion(Option<Waiter>);

enum Waiter {
    Callback(OnDone),
    Ticket(Slot),
}

thread_local! {
    /// Whether this thread runs a callback. It then holds a stage of the pipeline and must not wait for the log.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is inside a callback of some log.
pub(crate) fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

/// Why a log is poisoned after a thread panicked in the pipeline.
const PANICKED: &str = "a thread panicked while it wrote";

/// A drafted job that waits for its outcome.
pub(crate) struct PendingJob {
    pub(crate) completion: Completion,
    /// The number of the job among all that were queued.
    pub(crate) number: u64,
    pub(crate) link: Option<Link>,
    /// The error, if validation rejected the batch.
    pub(crate) rejected: Option<LogError>,
}

/// The waiters to wake when all batches of a group are completed.
#[derive(Default)]
pub(crate) struct WakeSet {
    shards: WakeMask,
    /// The first panic of a callback. The other callbacks are still called.
    panic: Option<String>,
}

impl PendingJob {
    /// Fails the job with the error of its commit group. That replaces a rejection that may follow from an earlier
    /// batch of the group.
    pub(crate) fn fail_with_group(&mut self, error: &LogError) {
        match &self.rejected {
            Some(LogError::Compacted { .. } | LogError::Gap { .. } | LogError::InUse { .. }) => {
                self.rejected = None;
                if let Some(link) = &self.link {
                    link.replace_break(error);
                }
            }
            Some(_) => {}
            None => {
                if let Some(link) = &self.link {
                    link.break_sequence(error);
                }
            }
        }
    }

    /// Completes the job with the group's outcome, or with its own rejection.
    pub(crate) fn complete(self, outcome: &Result<Lsn>, wakes: &mut WakeSet) {
        let outcome = self.rejected.map_or_else(|| outcome.clone(), Err);
        if let (Some(link), Err(error)) = (self.link, &outcome) {
            link.break_sequence(error);
        }
        self.completion.complete(outcome, self.number, wakes);
    }
}

impl Completion {
    /// Calls `done`.
    pub(crate) fn callback(done: OnDone) -> Completion {
        Completion(Some(Waiter::Callback(done)))
    }

    /// Fills the slot of a ticket.
    pub(crate) fn ticket(slot: Slot) -> Completion {
        Completion(Some(Waiter::Ticket(slot)))
    }

    /// Delivers the outcome of job `number`.
    pub(crate) fn complete(mut self, outcome: Result<Lsn>, number: u64, wakes: &mut WakeSet) {
        match self.0.take() {
            Some(Waiter::Callback(done)) => {
                let before = IN_CALLBACK.replace(true);
                let called = std::panic::catch_unwind(AssertUnwindSafe(|| done(outcome)));
                IN_CALLBACK.set(before);
                if let Err(panic) = called {
                    wakes.panic.get_or_insert_with(|| panic_message(panic.as_ref()));
                }
            }
            Some(Waiter::Ticket(slot)) => {
                // Each slot has one job, and each job one outcome.
                slot.get_or_init(|| outcome);
                wakes.shards |= WaitShards::mask_of(number);
            }
            None => {}
        }
    }

    /// Drops the completion of a job that was not queued. The caller gets the error as a return value.
    pub(crate) fn cancel(mut self) {
        self.0 = None;
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if self.0.is_some() {
            // The [`PoisonOnPanic`] of the stage that panicked poisons the log and wakes the waiters.
            Completion(self.0.take()).complete(
                Err(LogError::Poisoned(PANICKED.to_owned())),
                0,
                &mut WakeSet::default(),
            );
        }
    }
}

/// Poisons the log if a stage of the pipeline panics, because the content of the disk is then unknown. [`Completion`]
/// completes the jobs that the panic drops; their waiters are woken here. Created inside the stage, so that the lock of
/// the stage is still held when the log is poisoned.
pub(crate) struct PoisonOnPanic<'a> {
    state: &'a LogState,
    shards: &'a WaitShards,
}

impl<'a> PoisonOnPanic<'a> {
    /// Armed until [`PoisonOnPanic::disarm`].
    pub(crate) fn new(state: &'a LogState, shards: &'a WaitShards) -> PoisonOnPanic<'a> {
        PoisonOnPanic { state, shards }
    }

    /// The stage ended without a panic.
    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        self.state.poison(PANICKED.to_owned());
        self.shards.wake(WakeMask::MAX);
    }
}

impl WakeSet {
    /// The reason to poison the log, if a callback panicked. The panic does not propagate: the thread may be that of
    /// another caller, which waits for a batch of its own.
    pub(crate) fn callback_panic(&self) -> Option<String> {
        self.panic.as_ref().map(|what| format!("a callback panicked: {what}"))
    }

    /// Wakes the tickets' waiters.
    pub(crate) fn wake(&self, shards: &WaitShards) {
        shards.wake(self.shards);
    }
}

/// The message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
