//! Tickets: a caller polls or waits for the outcome of a batch that it queued.
//!
//! Each queued batch has a slot for its outcome. Waiters are sharded over eight futexes by the batch's number. A commit
//! group fills its slots and then wakes the shards of their numbers: one system call for many waiters.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::log::error::Result;
use crate::log::types::Lsn;

/// Number of shards: a power of two, and no more than a [`WakeMask`] has bits.
const SHARDS: u64 = 8;
/// Number of consecutive batches that share a shard.
const BATCHES_PER_SHARD: u64 = 16;

/// Shards to wake, one bit each.
pub(crate) type WakeMask = u8;

/// Holds the outcome of one batch.
pub(crate) type Slot = Arc<OnceLock<Result<Lsn>>>;

/// The outcome of a submitted batch, to be polled or waited for. Dropping it does not cancel the batch.
#[derive(Debug)]
pub struct Ticket {
    slot: Slot,
    shards: Arc<WaitShards>,
    shard: usize,
}

impl Ticket {
    /// A ticket for batch `number`, and the slot for its outcome.
    pub(crate) fn new(shards: &Arc<WaitShards>, number: u64) -> (Ticket, Slot) {
        let slot = Slot::default();
        (Ticket { slot: slot.clone(), shards: shards.clone(), shard: shard_of(number) }, slot)
    }

    /// The outcome, if it is known: the position of the batch, or the error. Never blocks.
    ///
    /// # Errors
    ///
    /// Those of a batch that is queued and not written, see [`crate::log::LogEngine`].
    pub fn poll(&self) -> Option<Result<Lsn>> {
        self.slot.get().cloned()
    }

    /// Blocks until the outcome is known. If the log has no threads, another thread must drive it meanwhile. Do not call
    /// it inside a callback.
    ///
    /// # Errors
    ///
    /// As [`Ticket::poll`].
    pub fn wait(self) -> Result<Lsn> {
        let shard = &self.shards.0[self.shard];
        loop {
            // Loaded before the slot is checked. A wake in between changes the epoch, and the futex then does not sleep.
            let epoch = shard.epoch.load(Ordering::SeqCst);
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            shard.sleepers.fetch_add(1, Ordering::SeqCst);
            if self.slot.get().is_none() {
                atomic_wait::wait(&shard.epoch, epoch);
            }
            shard.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The futexes that the waiters of one log sleep on.
#[derive(Debug, Default)]
pub(crate) struct WaitShards([Shard; SHARDS as usize]);

#[derive(Debug, Default)]
struct Shard {
    epoch: AtomicU32,
    sleepers: AtomicU32,
}

fn shard_of(number: u64) -> usize {
    (number / BATCHES_PER_SHARD % SHARDS) as usize
}

impl WaitShards {
    /// The shard of batch `number`, as a bit.
    pub(crate) fn mask_of(number: u64) -> WakeMask {
        1 << shard_of(number)
    }

    /// Wakes all waiters of these shards. Their slots must be filled before.
    pub(crate) fn wake(&self, mask: WakeMask) {
        for (at, shard) in self.0.iter().enumerate() {
            if mask & (1 << at) == 0 {
                continue;
            }
            shard.epoch.fetch_add(1, Ordering::SeqCst);
            if shard.sleepers.load(Ordering::SeqCst) > 0 {
                atomic_wait::wake_all(&shard.epoch);
            }
        }
    }
}
