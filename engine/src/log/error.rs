//! What can go wrong in the log, by what the caller does next.

use std::sync::Arc;

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
    /// Bytes on disk are not what was written.
    #[error("log is corrupt: {file} at {offset}: {what}")]
    Corrupt {
        /// The file's name.
        file: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What does not fit.
        what: String,
    },
    /// A file that the log consists of is not there.
    #[error("log file {file} is missing")]
    Missing {
        /// The file's name.
        file: String,
    },
    /// A file is not the one its name says: moved, copied, or of another log.
    #[error("log file {file} is not what its name says: {what}")]
    Misplaced {
        /// The file's name.
        file: String,
        /// Whose content it has.
        what: String,
    },
    /// A file was written by a newer version of this program.
    #[error("log file {file} has format version {found}, this program reads up to {supported}")]
    Version {
        /// The file's name.
        file: String,
        /// The version it says.
        found: u32,
        /// The newest version understood.
        supported: u32,
    },
    /// A failed write or sync: nothing is acknowledged again until the log is reopened.
    #[error("log is poisoned by an earlier failure: {0}")]
    Poisoned(String),
    /// The disk is full: the batch was not written and left no trace. Later batches may succeed, once there is space again.
    #[error("no space left for the log: {0}")]
    NoSpace(String),
    /// The bounded queue is full: nothing was queued, try again later.
    #[error("log queue is full")]
    Busy,
    /// The directory that a checkpoint was to be made in is there and not empty; nothing was changed.
    #[error("not an empty place for a checkpoint: {0}")]
    NotEmpty(String),
    /// The engine was closed.
    #[error("log is closed")]
    Closed,
    /// A batch that breaks a rule of its own (too large, an index out of range), or settings out of bounds.
    #[error("invalid: {0}")]
    Invalid(String),
    /// An I/O error on open or read.
    #[error("log I/O: {0}")]
    Io(Arc<std::io::Error>),
}

/// Result of a log operation.
pub type Result<T> = std::result::Result<T, LogError>;

impl From<std::io::Error> for LogError {
    fn from(error: std::io::Error) -> LogError {
        LogError::Io(Arc::new(error))
    }
}

/// Bytes that do not decode, with what is wrong; the caller adds the file and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);

impl Damage {
    /// The error that names the place.
    pub(crate) fn at(self, file: &str, offset: u64) -> LogError {
        LogError::Corrupt { file: file.to_owned(), offset, what: self.0.to_owned() }
    }
}
