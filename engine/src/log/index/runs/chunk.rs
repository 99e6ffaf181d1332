//! Chunks: packed runs in a row, closed ones that stay as they are and the open one that grows.

use super::pack::{Before, Unpack};
use crate::log::format::Span;

/// No chunk has more runs: a lookup unpacks half as many on average, and the memory that a chunk takes besides its runs is shared by
/// half as many at least.
pub(super) const CHUNK: usize = 48;

/// Runs that take exactly the memory they need.
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

/// The last chunk, which takes the runs that come.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    /// Index of the first entry.
    pub(super) first: u64,
    bytes: Vec<u8>,
    /// What its last run said.
    before: Before,
}

impl Open {
    /// The runs of a closed chunk, to go on from there.
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

    /// Index after the last entry; `None` where there is none.
    pub(super) fn end(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.before.end)
    }

    /// Takes a run that begins at or after the end.
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

/// What an allocation of `bytes` takes of a common allocator: a header, and whole steps of 16.
#[cfg(test)]
pub(crate) fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}
