//! Sequences: batches each of which stands on those before it.
//!
//! The log survives a full disk: the batch is not written, and later ones may be. For a caller whose batches build on one another that must not
//! happen. In a [`Sequence`] a batch that is not written takes all with it that were submitted behind it, until the caller says
//! [`Sequence::resume`] and submits them again. So many batches may be under way at once, and what is written is always a prefix of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

use parking_lot::Mutex;

use super::engine::LogEngine;
use super::error::{LogError, Result};
use super::ticket::Ticket;
use super::{Durability, LogBatch, OnDone};

/// A stream of batches of one caller. See the module documentation.
#[derive(Clone)]
pub struct Sequence {
    log: LogEngine,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Grows with every `resume`.
    generation: AtomicU64,
    /// The newest generation of which a batch was not written, and why the first of it was not.
    broken: Mutex<Option<(u64, LogError)>>,
}

/// What ties a batch to its sequence.
#[derive(Debug)]
pub(crate) struct Link {
    state: Arc<State>,
    generation: u64,
}

impl Link {
    /// Why nothing of this generation is written any more.
    pub(crate) fn broken(&self) -> Option<LogError> {
        let broken = self.state.broken.lock();
        broken.as_ref().filter(|(generation, _)| *generation >= self.generation).map(|(_, why)| why.clone())
    }

    /// This batch is not written.
    pub(crate) fn broke(&self, why: &LogError) {
        self.note(why, |known| known < self.generation);
    }

    /// This batch is not written, and this is why, whatever was said before.
    pub(crate) fn broke_for(&self, why: &LogError) {
        self.note(why, |known| known <= self.generation);
    }

    fn note(&self, why: &LogError, replaces: impl FnOnce(u64) -> bool) {
        let mut broken = self.state.broken.lock();
        if broken.as_ref().is_none_or(|(known, _)| replaces(*known)) {
            *broken = Some((self.generation, why.clone()));
        }
    }

    /// Who the batches of the sequence come from.
    pub(crate) fn owner(&self) -> Owner {
        Owner::Sequence(Arc::as_ptr(&self.state) as usize)
    }
}

/// Who a batch comes from: two of them must not append to one group at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A thread, for a batch that is in no sequence.
    Thread(ThreadId),
    /// A sequence, by its address while a batch of it is under way.
    Sequence(usize),
}

impl Owner {
    /// The calling thread.
    pub(crate) fn thread() -> Owner {
        Owner::Thread(std::thread::current().id())
    }
}

impl Sequence {
    pub(crate) fn new(log: LogEngine) -> Sequence {
        Sequence { log, state: Arc::default() }
    }

    /// As [`LogEngine::submit`], but the batch is refused, with the same error, if one of this sequence before it is not written.
    /// Batches of a sequence are submitted by one thread at a time.
    pub fn submit(&self, batch: LogBatch, durability: Durability) -> Result<Ticket> {
        self.log.queue_ticket(batch, durability, Some(self.link()))
    }

    /// The same with a callback.
    pub fn submit_with(&self, batch: LogBatch, durability: Durability, done: OnDone) -> Result<()> {
        self.log.queue_batch(batch, durability, done, Some(self.link()))
    }

    /// What is submitted from now on stands on its own again. To be called when all that was submitted before is answered.
    pub fn resume(&self) {
        self.state.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn link(&self) -> Link {
        Link { state: self.state.clone(), generation: self.state.generation.load(Ordering::Acquire) }
    }
}
