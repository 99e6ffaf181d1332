//! Sequences: streams of batches in which each batch depends on those before it.
//!
//! The log survives a full disk: one batch fails, and later ones may succeed. A caller whose batches depend on one
//! another cannot accept that. In a sequence, a batch that is not written fails all batches submitted after it, until
//! the caller resumes the sequence and submits them again. So the caller may have several batches in flight, and the
//! written ones are always a prefix.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

use parking_lot::Mutex;

use crate::log::error::LogError;

/// The shared state of the batches of a sequence.
#[derive(Debug, Default)]
pub(crate) struct SequenceState {
    /// Number of calls of `resume`.
    generation: AtomicU64,
    /// The newest generation with a failed batch, and the error of its first failed batch.
    broken: Mutex<Option<(u64, LogError)>>,
}

impl SequenceState {
    /// Begins a new generation: batches submitted from now on do not depend on earlier ones.
    pub(crate) fn resume(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

/// Links a batch to its sequence.
#[derive(Debug)]
pub(crate) struct Link {
    state: Arc<SequenceState>,
    generation: u64,
}

impl Link {
    /// A link for the next batch of the sequence.
    pub(crate) fn new(state: &Arc<SequenceState>) -> Link {
        Link { state: state.clone(), generation: state.generation.load(Ordering::Acquire) }
    }

    /// The error, if a batch of this generation failed.
    pub(crate) fn broken(&self) -> Option<LogError> {
        let broken = self.state.broken.lock();
        broken.as_ref().filter(|(generation, _)| *generation >= self.generation).map(|(_, why)| why.clone())
    }

    /// Records that this batch failed. The first error of a generation is kept.
    pub(crate) fn break_sequence(&self, why: &LogError) {
        self.set_broken(why, |broken| broken < self.generation);
    }

    /// Records that this batch failed. `why` replaces the error of the generation.
    pub(crate) fn replace_break(&self, why: &LogError) {
        self.set_broken(why, |broken| broken <= self.generation);
    }

    fn set_broken(&self, why: &LogError, replaces: impl FnOnce(u64) -> bool) {
        let mut broken = self.state.broken.lock();
        if broken.as_ref().is_none_or(|(generation, _)| replaces(*generation)) {
            *broken = Some((self.generation, why.clone()));
        }
    }

    /// The owner of the sequence's batches.
    pub(crate) fn owner(&self) -> Owner {
        Owner::Sequence(Arc::as_ptr(&self.state) as usize)
    }
}

/// The origin of a batch. Two owners must not append to one group at the same time.
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
