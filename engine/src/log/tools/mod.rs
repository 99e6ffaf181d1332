//! Tools for a log that nobody has open: [`check()`] it, [`dump()`] it, count what it holds ([`stats()`]), and make of a damaged one a new
//! one that opens ([`repair()`]).
//!
//! Functions over a [`Disk`](crate::disk::Disk) that read everything they need, tell how far they are, and change nothing on the disk they
//! read. They see a log through the same survey, walk and replay as [`RecoveryMode::Salvage`](super::RecoveryMode::Salvage), so that
//! what they say of damage is what opening it so shows.

mod check;
mod dump;
mod repair;
mod stats;

use std::fmt;

use super::GroupId;
use super::error::LogError;

pub use self::check::{CheckReport, CheckedFile, TornTail, check};
pub use self::dump::{Change, DumpOptions, EntryRecord, FileRecord, GroupRecord, Record, SealRecord, dump};
pub use self::repair::{RepairOptions, RepairReport, RepairedGroup, repair};
pub use self::stats::{CountedFile, CountedGroup, StatsReport, stats};

/// How far a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// One thing that is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's name.
    pub file: String,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The groups that it concerns, ascending; empty where that cannot be known.
    pub groups: Vec<GroupId>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.file, self.offset, self.what)
    }
}

impl Finding {
    fn new(file: &str, offset: u64, what: impl Into<String>, groups: Vec<GroupId>) -> Finding {
        Finding { file: file.to_owned(), offset, what: what.into(), groups }
    }

    /// What an error says of `file`.
    pub(super) fn of(error: &LogError, file: &str) -> Finding {
        let name = error.file().unwrap_or(file);
        match error {
            LogError::Corrupt { offset, what, groups, .. } => Finding::new(name, *offset, what, groups.clone()),
            LogError::Missing { .. } => Finding::new(name, 0, "file is missing", Vec::new()),
            LogError::Misplaced { what, .. } => {
                Finding::new(name, 0, format!("file is not what its name says: {what}"), Vec::new())
            }
            other => Finding::new(name, 0, other.to_string(), Vec::new()),
        }
    }
}

/// Tells how far a tool is, not more often than something has changed that is worth it.
struct Meter<'a> {
    tell: &'a mut dyn FnMut(Progress),
    progress: Progress,
    told: u64,
}

/// So many bytes are worth telling.
const STEP: u64 = 256 << 10;

impl<'a> Meter<'a> {
    fn new(total: u64, tell: &'a mut dyn FnMut(Progress)) -> Meter<'a> {
        let progress = Progress { done: 0, total };
        tell(progress);
        Meter { tell, progress, told: 0 }
    }

    /// So many bytes are done, of all.
    fn at(&mut self, done: u64) {
        self.progress.done = done.clamp(self.progress.done, self.progress.total.max(self.progress.done));
        if self.progress.done - self.told >= STEP {
            self.tell();
        }
    }

    /// So many more are done.
    fn add(&mut self, bytes: u64) {
        self.at(self.progress.done.saturating_add(bytes));
    }

    /// All is done.
    fn end(&mut self) {
        self.progress.done = self.progress.total;
        self.tell();
    }

    fn tell(&mut self) {
        self.told = self.progress.done;
        (self.tell)(self.progress);
    }
}
