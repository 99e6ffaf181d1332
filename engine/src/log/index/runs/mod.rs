//! The locations of the entries of one group: a few bytes per run of entries that share a block.
//!
//! Runs are packed (`pack.rs`) in chunks of up to 48 (`chunk.rs`): closed chunks, found by the index they begin at, and
//! an open one at the end for appends. A lookup unpacks one chunk. A change in the middle unpacks the chunks it touches
//! and packs them again. An entry in a block of its own takes about 6 bytes, all allocations counted, and never more
//! than 16 (`engine/tests/log_memory.rs`).
//!
//! Invariants of [`Runs`]:
//! 1. Runs are sorted by index and do not overlap.
//! 2. A run's entries are consecutive, in one block of one file.
//! 3. There is no gap between runs, except during recovery, until the rewritten copy of a dropped file's entries is
//!    applied.
//! 4. Closed chunks are not empty. If there is one, the open chunk is not empty either.

mod chunk;
mod pack;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::chunk::{CHUNK, Chunk, OpenChunk};
use self::pack::{UNITS, rounded};
pub(crate) use super::usage::UsageDelta;
use crate::log::error::Damage;
use crate::log::format::{Span, UNIT};

/// The runs of a group's entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    closed: VecDeque<Chunk>,
    open: OpenChunk,
}

impl Runs {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Number of runs. Counts them one by one.
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Index of the first entry.
    pub(crate) fn first(&self) -> Option<u64> {
        match self.closed.front() {
            Some(chunk) => Some(chunk.first),
            None => self.open.end().map(|_| self.open.first),
        }
    }

    /// Index after the last entry.
    pub(crate) fn end(&self) -> Option<u64> {
        self.open.end()
    }

    /// The runs, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.iter_chunks(0)
    }

    /// The runs that hold entries at or after `index`, ascending.
    pub(crate) fn iter_from(&self, index: u64) -> impl Iterator<Item = Span> + '_ {
        self.iter_chunks(self.chunk_of(index)).skip_while(move |span| span.end() <= index)
    }

    /// The run that holds `index`.
    pub(crate) fn locate(&self, index: u64) -> Option<Span> {
        if self.end()? <= index {
            return None;
        }
        let chunk = self.closed.get(self.chunk_of(index));
        let mut runs = chunk.map_or_else(|| self.open.runs(), Chunk::runs);
        runs.find(|span| span.end() > index).filter(|span| span.first <= index)
    }

    /// The first missing index; `None` if entries are consecutive.
    pub(crate) fn gap(&self) -> Option<u64> {
        let mut expected = self.first()?;
        for span in self.iter() {
            if span.first != expected {
                return Some(expected);
            }
            expected = span.end();
        }
        None
    }

    /// The runs of the chunks from number `from`; the open chunk comes after the closed ones.
    fn iter_chunks(&self, from: usize) -> impl Iterator<Item = Span> + '_ {
        let closed = self.closed.range(from.min(self.closed.len())..);
        closed.flat_map(Chunk::runs).chain(self.open.runs())
    }

    /// The number of the chunk that would hold `index`: the last one that does not begin after it.
    fn chunk_of(&self, index: u64) -> usize {
        let after = self.closed.partition_point(|chunk| chunk.first <= index);
        let is_open = after == self.closed.len() && (after == 0 || self.open.first <= index);
        if is_open { after } else { after.saturating_sub(1) }
    }

    /// Drops entries at or after `end`.
    pub(crate) fn cut_from(&mut self, end: u64, delta: &mut UsageDelta) {
        while self.end().is_some_and(|last| last > end) {
            let before = self.closed.pop_back().map(OpenChunk::reopen).unwrap_or_default();
            let cut = std::mem::replace(&mut self.open, before);
            let kept = cut_runs(cut.runs(), cut.first, end, delta);
            kept.iter().for_each(|run| self.push(run));
        }
        self.release();
    }

    /// Drops entries below `first`.
    pub(crate) fn cut_below(&mut self, first: u64, delta: &mut UsageDelta) {
        while self.first().is_some_and(|known| known < first) {
            let Some(chunk) = self.closed.pop_front() else {
                let cut = std::mem::take(&mut self.open);
                cut_runs(cut.runs(), first, u64::MAX, delta).iter().for_each(|run| self.push(run));
                break;
            };
            if let Some(kept) = Chunk::of(&cut_runs(chunk.runs(), first, u64::MAX, delta)) {
                self.closed.push_front(kept);
            }
        }
        self.release();
    }

    /// Places `span`, replacing entries at its indexes. Fails for a block offset beyond the size of any file.
    pub(crate) fn place(&mut self, span: &Span, delta: &mut UsageDelta) -> Result<(), Damage> {
        if span.offset / UNIT >= UNITS {
            return Err(Damage("block lies too far into its file"));
        }
        let run = Span { bytes: rounded(span.bytes), ..*span };
        delta.add_run(&run);
        if self.end().is_none_or(|end| end <= run.first) {
            self.push(&run);
        } else {
            self.insert(&run, delta);
        }
        Ok(())
    }

    /// Appends a run that begins at or after the end.
    fn push(&mut self, run: &Span) {
        if self.open.is_full() {
            let full = std::mem::take(&mut self.open);
            self.grow();
            self.closed.push_back(full.close());
        }
        self.open.push(run);
    }

    /// Inserts a run in the middle, and packs the chunks that it touches again.
    fn insert(&mut self, run: &Span, delta: &mut UsageDelta) {
        let from = self.chunk_of(run.first);
        let mut to = self.chunk_of(run.end() - 1) + 1;
        let chunks = self.closed.range(from..to.min(self.closed.len())).flat_map(Chunk::runs);
        let open = (to > self.closed.len()).then(|| self.open.runs());
        let mut runs = replace(chunks.chain(open.into_iter().flatten()), run, delta);
        if to > self.closed.len() {
            self.closed.truncate(from);
            self.open = OpenChunk::default();
            runs.iter().for_each(|run| self.push(run));
            self.release();
            return;
        }
        // Entries rewritten in larger blocks leave small chunks: merge them.
        if runs.len() <= CHUNK / 4
            && let Some(next) = self.closed.get(to)
        {
            runs.extend(next.runs());
            to += 1;
        }
        let each = runs.len().div_ceil(runs.len().div_ceil(CHUNK));
        let mut at = from;
        for chunk in runs.chunks(each).filter_map(Chunk::of) {
            if at < to {
                self.closed[at] = chunk;
            } else {
                self.grow();
                self.closed.insert(at, chunk);
            }
            at += 1;
        }
        if at < to {
            self.closed.drain(at..to);
            self.release();
        }
    }

    /// Grows by an eighth instead of doubling, because the index takes most of the engine's memory.
    fn grow(&mut self) {
        if self.closed.len() == self.closed.capacity() {
            self.closed.reserve_exact((self.closed.len() / 8).max(2));
        }
    }

    /// Frees unused capacity after many chunks were removed.
    fn release(&mut self) {
        if self.closed.capacity() > 4 && self.closed.capacity() / 4 >= self.closed.len() {
            self.closed.shrink_to(self.closed.len() * 2);
        }
    }

    /// Bytes of memory besides the struct itself.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        let chunks: usize = self.closed.iter().map(Chunk::memory).sum();
        chunk::allocated(self.closed.capacity() * size_of::<Chunk>()) + chunks + self.open.memory()
    }
}

/// The part of `span` from `from` to before `to`, both within it, with the rounded size that the index keeps.
fn part(span: &Span, from: u64, to: u64) -> Span {
    let count = (to - from) as u32;
    let bytes = rounded(span.bytes * u64::from(count) / u64::from(span.count));
    Span { first: from, count, ordinal: span.ordinal_of(from), bytes, ..*span }
}

/// The parts of `runs` from `first` to before `end`.
fn cut_runs(runs: impl Iterator<Item = Span>, first: u64, end: u64, delta: &mut UsageDelta) -> Vec<Span> {
    let mut kept = Vec::new();
    for run in runs {
        let (from, to) = (run.first.max(first), run.end().min(end));
        if (from, to) == (run.first, run.end()) {
            kept.push(run);
            continue;
        }
        delta.remove_run(&run);
        if from < to {
            let part = part(&run, from, to);
            delta.add_run(&part);
            kept.push(part);
        }
    }
    kept
}

/// `runs` with `new` in place of the entries at its indexes.
fn replace(runs: impl Iterator<Item = Span>, new: &Span, delta: &mut UsageDelta) -> Vec<Span> {
    let mut out = Vec::with_capacity(CHUNK + 2);
    let mut rest = Vec::new();
    for run in runs {
        if run.end() <= new.first {
            out.push(run);
        } else if run.first >= new.end() {
            rest.push(run);
        } else {
            delta.remove_run(&run);
            if run.first < new.first {
                let head = part(&run, run.first, new.first);
                delta.add_run(&head);
                out.push(head);
            }
            if run.end() > new.end() {
                let tail = part(&run, new.end(), run.end());
                delta.add_run(&tail);
                rest.push(tail);
            }
        }
    }
    out.push(*new);
    out.append(&mut rest);
    out
}
