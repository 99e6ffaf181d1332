//! Chunks of packed runs: closed ones, which never change, and the open one, which grows.

use super::pack::{PreviousRun, RunDecoder};
use crate::log::format::Span;

/// Maximum number of runs in a chunk. A lookup unpacks half of them on average. A chunk that is split keeps at least
/// half of them, which share its fixed memory.
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
        let mut previous = PreviousRun::first(first);
        runs.iter().for_each(|run| previous.put(run, &mut bytes));
        Some(Chunk { first, bytes: bytes.into_boxed_slice() })
    }

    /// The runs, ascending.
    pub(super) fn runs(&self) -> RunDecoder<'_> {
        RunDecoder::new(self.first, &self.bytes)
    }

    /// Bytes of memory besides the struct itself.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        allocated(self.bytes.len())
    }
}

/// The last chunk, to which runs are appended.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenChunk {
    /// Index of the first entry.
    pub(super) first: u64,
    bytes: Vec<u8>,
    /// The last run. The next one is encoded relative to it.
    previous: PreviousRun,
}

impl OpenChunk {
    /// Reopens a closed chunk.
    pub(super) fn reopen(chunk: Chunk) -> OpenChunk {
        let mut runs = chunk.runs();
        runs.by_ref().for_each(drop);
        OpenChunk { first: chunk.first, previous: runs.previous, bytes: chunk.bytes.into_vec() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.previous.runs == 0
    }

    pub(super) fn is_full(&self) -> bool {
        usize::from(self.previous.runs) >= CHUNK
    }

    /// Index after the last entry; `None` without entries.
    pub(super) fn end(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.previous.end)
    }

    /// Appends a run that begins at or after the end.
    pub(super) fn push(&mut self, run: &Span) {
        if self.is_empty() {
            self.first = run.first;
            self.previous = PreviousRun::first(run.first);
        }
        self.previous.put(run, &mut self.bytes);
    }

    /// Closes it.
    pub(super) fn close(self) -> Chunk {
        Chunk { first: self.first, bytes: self.bytes.into_boxed_slice() }
    }

    /// The runs, ascending.
    pub(super) fn runs(&self) -> RunDecoder<'_> {
        RunDecoder::new(self.first, &self.bytes)
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
