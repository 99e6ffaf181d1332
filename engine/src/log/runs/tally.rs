//! How much of each file is referred to: changes collected while runs come and go.

use super::Span;

/// Changes by file, not told to anybody yet.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Few files are touched at a time, so a list serves.
    deltas: Vec<(u64, i64, i64)>,
}

impl Tally {
    /// `refs` and `bytes` more, or fewer, of `file`.
    pub(crate) fn add(&mut self, file: u64, refs: i64, bytes: i64) {
        match self.deltas.iter_mut().find(|(known, ..)| *known == file) {
            Some((_, known_refs, known_bytes)) => {
                *known_refs += refs;
                *known_bytes += bytes;
            }
            None => self.deltas.push((file, refs, bytes)),
        }
    }

    /// A run comes.
    pub(super) fn comes(&mut self, run: &Span) {
        self.add(run.file, 1, run.bytes as i64);
    }

    /// A run goes.
    pub(super) fn goes(&mut self, run: &Span) {
        self.add(run.file, -1, -(run.bytes as i64));
    }

    /// What was collected: file, references, bytes. Empty afterwards.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, i64, i64)> + '_ {
        self.deltas.drain(..)
    }
}
