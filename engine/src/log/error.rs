//! Errors of the log, grouped by the reaction of the caller; and findings of damage.

use std::fmt;
use std::sync::Arc;

use crate::disk::is_full;
use crate::log::types::GroupId;

/// Why a log operation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The entry was compacted away.
    #[error("entry is compacted, the first one left is {first}")]
    Compacted {
        /// Index of the first entry kept.
        first: u64,
    },
    /// There is no such entry.
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
    /// An append would replace unacknowledged entries of another thread or sequence: two callers use the group at the
    /// same time.
    #[error("group {} is used by another caller at the same time", .group.0)]
    InUse {
        /// The group.
        group: GroupId,
    },
    /// Bytes on disk are not what was written.
    #[error("log is corrupt: {file} at {offset}: {what}{}", concerned(.groups))]
    Corrupt {
        /// The file's name.
        file: String,
        /// The offset, in bytes.
        offset: u64,
        /// What is wrong.
        what: String,
        /// The groups that it concerns, ascending; empty if unknown.
        groups: Vec<GroupId>,
    },
    /// The log ends in a write that was never acknowledged as synced, and `RecoveryMode::Strict` truncates nothing.
    #[error("log ends in a torn tail: {bytes} bytes of {file} from {offset} on{}", concerned(.groups))]
    TornTail {
        /// The file's name.
        file: String,
        /// The offset where the last whole commit group ends.
        offset: u64,
        /// Bytes after it that are not commit groups of the log, also those of the next file.
        bytes: u64,
        /// The groups that the commit groups of the tail change, ascending, as far as these are readable.
        groups: Vec<GroupId>,
    },
    /// There is no log file, and the options forbid to create one (`LogOptions::create`), or the log was opened for
    /// salvage.
    #[error("there is no log here")]
    NoLog,
    /// A file that the log consists of is missing.
    #[error("log file {file} is missing{}", concerned(.groups))]
    Missing {
        /// The file's name; `*.log` if all log files are missing and remains prove that there were some.
        file: String,
        /// The groups that it changes, ascending, as the next file's header lists them; empty if unknown.
        groups: Vec<GroupId>,
    },
    /// The name of a file and its content differ: it was moved or copied, or belongs to another log.
    #[error("log file {file} is not what its name says: {what}{}", concerned(.groups))]
    Misplaced {
        /// The file's name.
        file: String,
        /// The file that the content belongs to.
        what: String,
        /// The groups that the file of that name changes, ascending, as the next file's header lists them; empty if
        /// unknown.
        groups: Vec<GroupId>,
    },
    /// A file was written by a newer version of this program.
    #[error("log file {file} has format version {found}, this program reads up to {supported}{}", concerned(.groups))]
    Version {
        /// The file's name.
        file: String,
        /// The version it has.
        found: u32,
        /// The newest supported version.
        supported: u32,
        /// The groups that it changes, ascending, as the next file's header lists them; empty if unknown.
        groups: Vec<GroupId>,
    },
    /// A sync or a rename failed with an unknown outcome, the bytes of a failed write could not be overwritten, a
    /// thread of the log or a callback panicked, or a commit group did not fit its file or the index. Nothing is
    /// acknowledged until the log is reopened.
    #[error("log is poisoned by an earlier failure: {0}")]
    Poisoned(String),
    /// The disk is full. The batch or request left no trace; later ones may succeed once there is space again.
    #[error("no space left for the log: {0}")]
    NoSpace(String),
    /// The bounded queue is full. Nothing was queued; retry later.
    #[error("log queue is full")]
    Busy,
    /// The engine was closed.
    #[error("log is closed")]
    Closed,
    /// The log was opened for salvage: it takes no writes and frees no space.
    #[error("log is open read-only")]
    ReadOnly,
    /// In a log opened for salvage: the value is missing or uncertain, because a lost part of the log contained it or
    /// may have changed it.
    #[error("{what} of group {} is lost, or may have been changed by what is lost", .group.0)]
    Lost {
        /// The group.
        group: GroupId,
        /// The requested entry or key.
        what: String,
    },
    /// A batch breaks a rule of its own (too large, an index out of range), or settings are out of bounds.
    #[error("invalid: {0}")]
    Invalid(String),
    /// An I/O error. A batch that fails with it was not written and left no trace; later ones may succeed.
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

/// The reason why bytes do not decode. The caller adds file and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);

impl Damage {
    /// The error for this damage in `file` at `offset`.
    pub(crate) fn at(self, file: &str, offset: u64) -> LogError {
        LogError::Corrupt { file: file.to_owned(), offset, what: self.0.to_owned(), groups: Vec::new() }
    }
}

impl LogError {
    /// A missing file; the concerned groups are not known yet.
    pub(crate) fn missing(file: impl Into<String>) -> LogError {
        LogError::Missing { file: file.into(), groups: Vec::new() }
    }

    /// A file whose name and content differ; the concerned groups are not known yet.
    pub(crate) fn misplaced(file: impl Into<String>, what: impl Into<String>) -> LogError {
        LogError::Misplaced { file: file.into(), what: what.into(), groups: Vec::new() }
    }

    /// The name of the file that the error is about, if it is about one.
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

    /// The groups that the error concerns, ascending; empty if unknown, or if it is not about a file.
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

    /// Adds the concerned groups to an error about a file, if they are not known.
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

/// One damaged location of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's name.
    pub file: String,
    /// The offset, in bytes.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The groups that it concerns, ascending; empty if unknown.
    pub groups: Vec<GroupId>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}{}", self.file, self.offset, self.what, concerned(&self.groups))
    }
}

impl Finding {
    /// A finding in `file`.
    pub(crate) fn new(file: &str, offset: u64, what: impl Into<String>, groups: Vec<GroupId>) -> Finding {
        Finding { file: file.to_owned(), offset, what: what.into(), groups }
    }

    /// The finding of an error in `file`.
    pub(crate) fn of(error: &LogError, file: &str) -> Finding {
        let name = error.file().unwrap_or(file);
        let (offset, what) = match error {
            LogError::Corrupt { offset, what, .. } => (*offset, what.clone()),
            LogError::Missing { .. } => (0, "file is missing".to_owned()),
            LogError::Misplaced { what, .. } => (0, format!("file is not what its name says: {what}")),
            other => (0, other.to_string()),
        };
        Finding::new(name, offset, what, error.groups().to_vec())
    }

    /// The finding of an error in `file`, at `offset` if the error has no location itself.
    pub(crate) fn of_read(error: &LogError, file: &str, offset: u64) -> Finding {
        let finding = Finding::of(error, file);
        if error.file().is_some() { finding } else { Finding { offset, ..finding } }
    }
}

/// Maximum number of groups that a message names.
const MAX_NAMED: usize = 8;

/// The suffix of a message with the concerned groups.
fn concerned(groups: &[GroupId]) -> String {
    let (named, more) = groups.split_at(groups.len().min(MAX_NAMED));
    let named: Vec<String> = named.iter().map(|group| group.0.to_string()).collect();
    match (groups.len(), more.len()) {
        (0, _) => String::new(),
        (1, _) => format!(" (group {})", named.join(", ")),
        (_, 0) => format!(" (groups {})", named.join(", ")),
        (_, more) => format!(" (groups {} and {more} more)", named.join(", ")),
    }
}
