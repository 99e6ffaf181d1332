//! Planned outcomes of calls on the simulated disk: done, failed, or skipped while reporting success.

use std::io;

/// The calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `open`.
    Open,
    /// `list`.
    List,
    /// `len`.
    Len,
    /// `read_at`.
    Read,
    /// `links`.
    Links,
    /// `write_at`, `set_len`, `reserve` and `prefill`.
    Write,
    /// `sync` of a file.
    Sync,
    /// `create`.
    Create,
    /// `rename`.
    Rename,
    /// `remove`.
    Remove,
    /// `sync_dir`.
    SyncDir,
}

/// How much of a failed call takes effect all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing. A failed sync drops the pending changes: they never become durable.
    Nothing,
    /// The first half of a write or of the space to reserve; every other sector of a sync; the first half of the
    /// changes of a `sync_dir`; nothing of other calls.
    Half,
    /// All of it.
    All,
}

/// A way in which the disk breaks its contract. Checkers must notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// A sync of a file reports success and does nothing.
    FileSync,
    /// `sync_dir` reports success and does nothing.
    DirSync,
    /// A sync makes only extensions durable. After a crash overwritten bytes have their old content.
    StaleOverwrites,
    /// Removed and renamed names come back after a crash, even when the directory was synced.
    OldNames,
}

/// What the planned call does when its turn comes.
#[derive(Clone, Copy)]
pub(super) enum Plan {
    Fail(io::ErrorKind, Applied),
    Skip,
}

/// The outcome of a call.
pub(super) enum Verdict {
    Done,
    /// It reports success and does nothing.
    Skipped,
    Failed(io::Error, Applied),
    /// The power is off.
    PowerOff(io::Error),
}

impl Verdict {
    /// Whether an indivisible call takes effect.
    pub(super) fn takes_effect(&self) -> bool {
        matches!(self, Verdict::Done | Verdict::Failed(_, Applied::All))
    }

    /// How many of the `parts` of a call take effect.
    pub(super) fn applied_of(&self, parts: usize) -> usize {
        match self {
            Verdict::Done | Verdict::Failed(_, Applied::All) => parts,
            Verdict::Failed(_, Applied::Half) => parts / 2,
            Verdict::Failed(_, Applied::Nothing) | Verdict::Skipped | Verdict::PowerOff(_) => 0,
        }
    }

    /// What the call returns.
    pub(super) fn result(self) -> io::Result<()> {
        match self {
            Verdict::Done | Verdict::Skipped => Ok(()),
            Verdict::Failed(error, _) | Verdict::PowerOff(error) => Err(error),
        }
    }
}
