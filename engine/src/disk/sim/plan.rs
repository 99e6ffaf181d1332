//! What becomes of a call on the simulated disk: done, failed as planned, or only said to be done.

use std::io;

/// What of a call that failed was done all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing. Of a sync: and what it was to make durable never will be.
    Nothing,
    /// Of a write, or of the space that a file is to take, the first half; of a sync every other sector, of `sync_dir` the first half of the
    /// changes; nothing else.
    Half,
    /// All of it.
    All,
}

/// How a disk breaks its word, so that a checker can prove that it notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// A sync of a file answers well and does nothing.
    FileSync,
    /// The same of `sync_dir`.
    DirSync,
    /// A sync makes durable what extends a file; what was overwritten keeps its old content, as a crash shows.
    StaleOverwrites,
    /// Names that were removed or renamed are there again after a crash, whatever was synced.
    OldNames,
}

/// What a call that is counted down to does.
#[derive(Clone, Copy)]
pub(super) enum Plan {
    Fail(io::ErrorKind, Left),
    Skip,
}

/// What becomes of a call.
pub(super) enum Verdict {
    Done,
    /// It answers well and does nothing.
    Skipped,
    Failed(io::Error, Left),
    /// The power is gone.
    Gone(io::Error),
}

impl Verdict {
    /// Whether a call that cannot be done by halves does anything.
    pub(super) fn acts(&self) -> bool {
        matches!(self, Verdict::Done | Verdict::Failed(_, Left::All))
    }

    /// How much is done of a call that has `of` parts.
    pub(super) fn share(&self, of: usize) -> usize {
        match self {
            Verdict::Done | Verdict::Failed(_, Left::All) => of,
            Verdict::Failed(_, Left::Half) => of / 2,
            Verdict::Failed(_, Left::Nothing) | Verdict::Skipped | Verdict::Gone(_) => 0,
        }
    }

    pub(super) fn answer(self) -> io::Result<()> {
        match self {
            Verdict::Done | Verdict::Skipped => Ok(()),
            Verdict::Failed(error, _) | Verdict::Gone(error) => Err(error),
        }
    }
}
