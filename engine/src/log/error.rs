//! What can go wrong in the log, by what the caller does next.

use std::sync::Arc;

use crate::disk::is_full;

use super::GroupId;

/// Why a log operation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The entry was compacted away; the first one left is given.
    #[error("entry is compacted, the first one left is {first}")]
    Compacted {
        /// Index of the first entry kept.
        first: u64,
    },
    /// There is no such entry; the last one is given.
    #[error("no such entry, the last one is {last}")]
    NotFound {
        /// Index of the last entry, 0 for a group that does not exist.
        last: u64,
    },
    /// An append would leave a gap.
    #[error("append leaves a gap, expected at most index {expected}")]
    Gap {
        /// The highest index an append may start at.
        expected: u64,
    },
    /// An append would replace entries of the group that another thread or sequence has under way: two use the group at once.
    #[error("group {} is used by someone else at the same time", .group.0)]
    InUse {
        /// The group.
        group: GroupId,
    },
    /// Bytes on disk are not what was written.
    #[error("log is corrupt: {file} at {offset}: {what}{}", concerned(.groups))]
    Corrupt {
        /// The file's name.
        file: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What does not fit.
        what: String,
        /// The groups that it concerns, ascending; empty where that cannot be known.
        groups: Vec<GroupId>,
    },
    /// The log ends in the middle of a write that was never acknowledged as synced, and [`super::RecoveryMode::Strict`] cuts nothing.
    #[error("log ends in a torn tail: {bytes} bytes of {file} from {offset} on{}", concerned(.groups))]
    TornTail {
        /// The file's name.
        file: String,
        /// Where the last whole commit group ends, in bytes.
        offset: u64,
        /// Bytes after it that are no commit groups.
        bytes: u64,
        /// The groups that the first commit group of the tail changes, ascending; empty where that cannot be read.
        groups: Vec<GroupId>,
    },
    /// There is no log file at all, and the log was opened to be read only or as one that exists already ([`super::LogOptions::create`]).
    #[error("there is no log here")]
    NoLog,
    /// A file that the log consists of is not there.
    #[error("log file {file} is missing{}", concerned(.groups))]
    Missing {
        /// The file's name; `*.log` where none is left, and other files show that there were some.
        file: String,
        /// The groups that it changes, ascending, as the file after it says; empty where that cannot be known.
        groups: Vec<GroupId>,
    },
    /// A file is not the one its name says: moved, copied, or of another log.
    #[error("log file {file} is not what its name says: {what}{}", concerned(.groups))]
    Misplaced {
        /// The file's name.
        file: String,
        /// Whose content it has.
        what: String,
        /// The groups that the file of that name changes, ascending, as the file after it says; empty where that cannot be known.
        groups: Vec<GroupId>,
    },
    /// A file was written by a newer version of this program.
    #[error("log file {file} has format version {found}, this program reads up to {supported}{}", concerned(.groups))]
    Version {
        /// The file's name.
        file: String,
        /// The version it says.
        found: u32,
        /// The newest version understood.
        supported: u32,
        /// The groups that it changes, ascending, as the file after it says; empty where that cannot be known.
        groups: Vec<GroupId>,
    },
    /// A failed sync, or a failed write that could not be wiped out: nothing is acknowledged again until the log is reopened.
    #[error("log is poisoned by an earlier failure: {0}")]
    Poisoned(String),
    /// The disk is full: what was asked for was not done. A batch was not written and left no trace; later ones may succeed, once there is space
    /// again.
    #[error("no space left for the log: {0}")]
    NoSpace(String),
    /// The bounded queue is full: nothing was queued, try again later.
    #[error("log queue is full")]
    Busy,
    /// The engine was closed.
    #[error("log is closed")]
    Closed,
    /// The log was opened to be salvaged: it takes no writes and gives no space back.
    #[error("log is open to be read only")]
    ReadOnly,
    /// In a log that was opened to be salvaged: it is not there, or cannot be told, because a part of the log is lost that said it or may
    /// have changed it.
    #[error("{what} of group {} is lost, or may have been changed by what is lost", .group.0)]
    Lost {
        /// The group.
        group: GroupId,
        /// What was asked for.
        what: String,
    },
    /// A batch that breaks a rule of its own (too large, an index out of range), or settings out of bounds.
    #[error("invalid: {0}")]
    Invalid(String),
    /// An I/O error. A batch that is answered with it was not written and left no trace; later ones may succeed.
    #[error("log I/O: {0}")]
    Io(Arc<std::io::Error>),
}

/// Result of a log operation.
pub type Result<T> = std::result::Result<T, LogError>;

impl From<std::io::Error> for LogError {
    fn from(error: std::io::Error) -> LogError {
        if is_full(&error) { LogError::NoSpace(error.to_string()) } else { LogError::Io(Arc::new(error)) }
    }
}

/// Bytes that do not decode, with what is wrong; the caller adds the file and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);

impl Damage {
    /// The error that names the place.
    pub(crate) fn at(self, file: &str, offset: u64) -> LogError {
        LogError::Corrupt { file: file.to_owned(), offset, what: self.0.to_owned(), groups: Vec::new() }
    }
}

impl LogError {
    /// A file that is not there; which groups it concerns is not known yet.
    pub(crate) fn missing(file: impl Into<String>) -> LogError {
        LogError::Missing { file: file.into(), groups: Vec::new() }
    }

    /// A file that is not the one its name says; which groups it concerns is not known yet.
    pub(crate) fn misplaced(file: impl Into<String>, what: impl Into<String>) -> LogError {
        LogError::Misplaced { file: file.into(), what: what.into(), groups: Vec::new() }
    }

    /// The name of the file that it is about, where it is about one.
    pub fn file(&self) -> Option<&str> {
        match self {
            LogError::Corrupt { file, .. }
            | LogError::TornTail { file, .. }
            | LogError::Missing { file, .. }
            | LogError::Misplaced { file, .. }
            | LogError::Version { file, .. } => Some(file),
            _ => None,
        }
    }

    /// The groups that it concerns, ascending; none where that cannot be known, or where it is not about a file.
    pub fn groups(&self) -> &[GroupId] {
        match self {
            LogError::Corrupt { groups, .. }
            | LogError::TornTail { groups, .. }
            | LogError::Missing { groups, .. }
            | LogError::Misplaced { groups, .. }
            | LogError::Version { groups, .. } => groups,
            _ => &[],
        }
    }

    /// The same, with the groups that it concerns where it is about a file and they were not known.
    pub(crate) fn concerning(mut self, concerned: impl FnOnce() -> Vec<GroupId>) -> LogError {
        if let LogError::Corrupt { groups, .. }
        | LogError::TornTail { groups, .. }
        | LogError::Missing { groups, .. }
        | LogError::Misplaced { groups, .. }
        | LogError::Version { groups, .. } = &mut self
            && groups.is_empty()
        {
            *groups = concerned();
        }
        self
    }
}

/// How many groups a message names.
const NAMED: usize = 8;

/// The end of a message that says which groups it concerns.
pub(crate) fn concerned(groups: &[GroupId]) -> String {
    let (named, more) = groups.split_at(groups.len().min(NAMED));
    let named: Vec<String> = named.iter().map(|group| group.0.to_string()).collect();
    match (groups.len(), more.len()) {
        (0, _) => String::new(),
        (1, _) => format!(" (group {})", named.join(", ")),
        (_, 0) => format!(" (groups {})", named.join(", ")),
        (_, more) => format!(" (groups {} and {more} more)", named.join(", ")),
    }
}
