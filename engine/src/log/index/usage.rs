//! How much of each file is referred to: changes collected while runs come and go.

use crate::log::format::Span;

/// How much of a file is referred to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Runs, keys and floors whose record is in the file. At 0 the file holds nothing live.
    pub(crate) refs: u64,
    /// About how many bytes these take.
    pub(crate) bytes: u64,
}

/// Changes by file, not told to anybody yet.
#[derive(Debug, Default)]
pub(crate) struct UsageDelta {
    /// Few files are changes at a time, so a list serves.
    deltas: Vec<(u64, i64, i64)>,
}

impl UsageDelta {
    /// `refs` and `bytes` more, or fewer, of `file`.
    pub(crate) fn change(&mut self, file: u64, refs: i64, bytes: i64) {
        match self.deltas.iter_mut().find(|(known, ..)| *known == file) {
            Some((_, known_refs, known_bytes)) => {
                *known_refs += refs;
                *known_bytes += bytes;
            }
            None => self.deltas.push((file, refs, bytes)),
        }
    }

    /// A run comes.
    pub(crate) fn add_run(&mut self, run: &Span) {
        self.change(run.file, 1, run.bytes as i64);
    }

    /// A run goes.
    pub(crate) fn remove_run(&mut self, run: &Span) {
        self.change(run.file, -1, -(run.bytes as i64));
    }

    /// What was collected: file, references, bytes. Empty afterwards.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, i64, i64)> + '_ {
        self.deltas.drain(..)
    }
}
