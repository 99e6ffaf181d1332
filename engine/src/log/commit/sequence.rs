//! Sequences: streams of batches in which each batch depends on those before it.
//!
//! The log survives a full disk: a batch is not written, and later ones may be. For a caller whose batches depend on
//! one another that must not happen. In a sequence a batch that is not written fails all batches submitted behind it,
//! until the caller resumes the sequence and submits them again. So many batches may be in flight, and what is written
//! is always a prefix of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

use parking_lot::Mutex;

use crate::log::error::LogError;

/// What the batches of a sequence share.
#[derive(Debug, Default)]
pub(crate) struct SequenceState {
    /// Grows with every `resume`.
    generation: AtomicU64,
    /// The newest generation of which a batch was not written, and the error of its first failed batch.
    broken: Mutex<Option<(u64, LogError)>>,
}

impl SequenceState {
    /// Begins a new generation: batches submitted from now on do not depend on earlier ones.
    pub(crate) fn resume(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// Ties a batch to its sequence.
#[derive(Debug)]
pub(crate) struct Link {
    state: Arc<SequenceState>,
    generation: u64,
}

impl Link {
    /// For the next batch of the sequence.
    pub(crate) fn new(state: &Arc<SequenceState>) -> Link {
        Link { state: state.clone(), generation: state.generation.load(Ordering::Acquire) }
    }

    /// Why no batch of this generation is written any more.
    pub(crate) fn broken(&self) -> Option<LogError> {
        let broken = self.state.broken.lock();
        broken.as_ref().filter(|(generation, _)| *generation >= self.generation).map(|(_, why)| why.clone())
    }

    /// This batch is not written. The first error of a generation is kept.
    pub(crate) fn break_sequence(&self, why: &LogError) {
        self.set_broken(why, |known| known < self.generation);
    }

    /// This batch is not written, and `why` replaces the error of this generation.
    pub(crate) fn replace_break(&self, why: &LogError) {
        self.set_broken(why, |known| known <= self.generation);
    }

    fn set_broken(&self, why: &LogError, replaces: impl FnOnce(u64) -> bool) {
        let mut broken = self.state.broken.lock();
        if broken.as_ref().is_none_or(|(known, _)| replaces(*known)) {
            *broken = Some((self.generation, why.clone()));
        }
    }

    /// The owner of the sequence's batches.
    pub(crate) fn owner(&self) -> Owner {
        Owner::Sequence(Arc::as_ptr(&self.state) as usize)
    }
}

/// Where a batch comes from. Two owners must not append to one group at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A thread, for a batch outside of any sequence.
    Thread(ThreadId),
    /// A sequence, by the address of its state, which a batch in flight keeps alive.
    Sequence(usize),
}

impl Owner {
    /// The calling thread.
    pub(crate) fn thread() -> Owner {
        Owner::Thread(std::thread::current().id())
    }
}
