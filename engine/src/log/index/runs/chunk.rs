//! Chunks of packed runs: closed ones, which never change, and the open one, which grows.

use super::pack::{Before, Unpack};
use crate::log::format::Span;

/// A chunk has at most so many runs. A lookup unpacks half as many on average, and at least half as many share the
/// memory that a chunk takes besides its runs.
pub(super) const CHUNK: usize = 48;

/// Runs in exactly the memory they need.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Index of the first entry.
    pub(super) first: u64,
    bytes: Box<[u8]>,
}

impl Chunk {
    /// The chunk of these runs; `None` without any.
    pub(super) fn of(runs: &[Span]) -> Option<Chunk> {
        let first = runs.first()?.first;
        let mut bytes = Vec::with_capacity(runs.len() * 8);
        let mut before = Before::first(first);
        runs.iter().for_each(|run| before.put(run, &mut bytes));
        Some(Chunk { first, bytes: bytes.into_boxed_slice() })
    }

    /// The runs, ascending.
    pub(super) fn runs(&self) -> Unpack<'_> {
        Unpack::new(self.first, &self.bytes)
    }

    /// Bytes of memory besides the struct itself.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        allocated(self.bytes.len())
    }
}

/// The last chunk, to which runs are appended.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    /// Index of the first entry.
    pub(super) first: u64,
    bytes: Vec<u8>,
    /// The last run, which the next one is encoded against.
    before: Before,
}

impl Open {
    /// Reopens a closed chunk.
    pub(super) fn reopen(chunk: Chunk) -> Open {
        let mut runs = chunk.runs();
        runs.by_ref().for_each(drop);
        Open { first: chunk.first, before: runs.before, bytes: chunk.bytes.into_vec() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.before.runs == 0
    }

    pub(super) fn is_full(&self) -> bool {
        usize::from(self.before.runs) >= CHUNK
    }

    /// Index after the last entry; `None` without entries.
    pub(super) fn end(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.before.end)
    }

    /// Appends a run that begins at or after the end.
    pub(super) fn push(&mut self, run: &Span) {
        if self.is_empty() {
            self.first = run.first;
            self.before = Before::first(run.first);
        }
        self.before.put(run, &mut self.bytes);
    }

    /// Closes it.
    pub(super) fn close(self) -> Chunk {
        Chunk { first: self.first, bytes: self.bytes.into_boxed_slice() }
    }

    /// The runs, ascending.
    pub(super) fn runs(&self) -> Unpack<'_> {
        Unpack::new(self.first, &self.bytes)
    }

    /// Bytes of memory besides the struct itself.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        allocated(self.bytes.capacity())
    }
}

/// What an allocation of `bytes` takes with a common allocator: a header, rounded up to 16.
#[cfg(test)]
pub(crate) fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}
