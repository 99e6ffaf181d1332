//! Tickets: how a caller learns the fate of a batch that it queued.
//!
//! Each queued batch has a slot for its outcome. Those who wait sleep at one of a few bells, picked by the batch's number: a commit group
//! fills its slots and then rings the bells of their numbers, one call of the kernel for many sleepers instead of one for each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::Lsn;
use super::error::Result;

/// Number of bells; a power of two, and no more than a [`Rung`] has bits.
const BELLS: u64 = 8;
/// So many batches in a row share a bell.
const SHARED_BY: u64 = 16;

/// The bells that are to be rung, as bits.
pub(crate) type Rung = u8;

/// Where the fate of one batch is put.
pub(crate) type Slot = Arc<OnceLock<Result<Lsn>>>;

/// The fate of a submitted batch, to be waited for or looked at. Dropping it changes nothing: the batch is written all the same.
#[derive(Debug)]
pub struct Ticket {
    slot: Slot,
    bells: Arc<Bells>,
    bell: usize,
}

impl Ticket {
    /// A ticket for batch `number`, and the slot that its fate is to be put into.
    pub(crate) fn new(bells: &Arc<Bells>, number: u64) -> (Ticket, Slot) {
        let slot = Slot::default();
        (Ticket { slot: slot.clone(), bells: bells.clone(), bell: bell_of(number) }, slot)
    }

    /// The fate, if it is known: where the batch stands, or why it was not written.
    pub fn poll(&self) -> Option<Result<Lsn>> {
        self.slot.get().cloned()
    }

    /// Blocks until the fate is known. With a log that is driven from outside, someone else must drive it meanwhile.
    pub fn wait(self) -> Result<Lsn> {
        let bell = &self.bells.0[self.bell];
        loop {
            // Taken before the slot is looked at: a bell that rings in between does not let this thread sleep.
            let strokes = bell.strokes.load(Ordering::SeqCst);
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            bell.sleepers.fetch_add(1, Ordering::SeqCst);
            if self.slot.get().is_none() {
                atomic_wait::wait(&bell.strokes, strokes);
            }
            bell.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The bells of one log.
#[derive(Debug, Default)]
pub(crate) struct Bells([Bell; BELLS as usize]);

#[derive(Debug, Default)]
struct Bell {
    strokes: AtomicU32,
    sleepers: AtomicU32,
}

fn bell_of(number: u64) -> usize {
    (number / SHARED_BY % BELLS) as usize
}

impl Bells {
    /// The bell of batch `number`, as a bit.
    pub(crate) fn bit(number: u64) -> Rung {
        1 << bell_of(number)
    }

    /// Wakes everyone who sleeps at these bells. The slots must be filled before.
    pub(crate) fn ring(&self, rung: Rung) {
        for (at, bell) in self.0.iter().enumerate() {
            if rung & (1 << at) == 0 {
                continue;
            }
            bell.strokes.fetch_add(1, Ordering::SeqCst);
            if bell.sleepers.load(Ordering::SeqCst) > 0 {
                atomic_wait::wake_all(&bell.strokes);
            }
        }
    }
}
