//! References to each file, and changes of their number.

use crate::log::format::Span;

/// The references to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Number of runs, keys and floors recorded in the file. At 0 the file is dead.
    pub(crate) refs: u64,
    /// Their approximate size, in bytes.
    pub(crate) bytes: u64,
}

/// Changes of usage by file, collected before they are applied.
#[derive(Debug, Default)]
pub(crate) struct UsageDelta {
    /// File, references and bytes. A list suffices: few files change at a time.
    deltas: Vec<(u64, i64, i64)>,
}

impl UsageDelta {
    /// Adds `refs` and `bytes`, which may be negative, to `file`.
    pub(crate) fn change(&mut self, file: u64, refs: i64, bytes: i64) {
        match self.deltas.iter_mut().find(|(known, ..)| *known == file) {
            Some((_, known_refs, known_bytes)) => {
                *known_refs += refs;
                *known_bytes += bytes;
            }
            None => self.deltas.push((file, refs, bytes)),
        }
    }

    /// Adds the references of a run.
    pub(crate) fn add_run(&mut self, run: &Span) {
        self.change(run.file, 1, run.bytes as i64);
    }

    /// Removes the references of a run.
    pub(crate) fn remove_run(&mut self, run: &Span) {
        self.change(run.file, -1, -(run.bytes as i64));
    }

    /// Takes the collected changes: file, references, bytes.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, i64, i64)> + '_ {
        self.deltas.drain(..)
    }
}
