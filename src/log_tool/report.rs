//! The common part of the log commands: opening the log folder, running a tool over it, printing its report, and the
//! error that decides the exit code.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::disk::{Disk, RealDisk};
use engine::log::tools::Progress;
use engine::log::{GroupId, LogError};
use serde::Serialize;

use super::progress::ProgressDisplay;

/// Why a log command exits with 1; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogToolError {
    /// The directory cannot be opened; the error names it.
    #[error("{0}")]
    Open(io::Error),
    /// The directory holds no log.
    #[error("{0} is neither a data directory nor a log folder: it has no log files")]
    NoLog(PathBuf),
    /// The target directory is the source directory.
    #[error("--to must be another directory than {0}")]
    SameDirectory(PathBuf),
    /// The target directory is not empty.
    #[error("--to {dir} is not empty, it has {name}: take a new directory")]
    NotEmpty { dir: PathBuf, name: String },
    /// The log cannot be read, or the new one cannot be written.
    #[error("{0}: {1}")]
    Log(PathBuf, LogError),
    /// The log is damaged.
    #[error("{findings} finding(s) in {dir}")]
    Damaged { dir: PathBuf, findings: usize },
    /// The log was repaired, and some groups lost entries or keys, or may have.
    #[error(
        "{to} opens again, but {groups} Raft group(s) lost something or may have: \
         their replicas on this node must not go on"
    )]
    GroupsLost { to: PathBuf, groups: usize },
    /// The log was repaired, and parts are lost whose groups are not known.
    #[error("{to} opens again, but {losses} part(s) of the log are lost, and nothing tells whose they were")]
    UnknownGroupsLost { to: PathBuf, losses: usize },
    /// Standard output failed.
    #[error("standard output: {0}")]
    Output(io::Error),
}

/// A log folder, opened read-only.
pub(super) struct LogFolder {
    pub(super) dir: PathBuf,
    pub(super) disk: Arc<RealDisk>,
}

impl LogFolder {
    /// Opens a log folder. `dir` is the folder, or the data directory that contains it.
    pub(super) fn open(dir: &Path) -> Result<LogFolder, LogToolError> {
        let inner = dir.join("log");
        let dir = if inner.is_dir() { inner } else { dir.to_path_buf() };
        let disk = RealDisk::open_existing(&dir).map_err(LogToolError::Open)?;
        Ok(LogFolder { dir, disk })
    }

    /// Names the folder in an error of the engine.
    pub(super) fn error(&self, error: LogError) -> LogToolError {
        match error {
            LogError::NoLog => LogToolError::NoLog(self.dir.clone()),
            error => LogToolError::Log(self.dir.clone(), error),
        }
    }

    /// The result of a command that has `findings` findings of damage.
    pub(super) fn result(self, findings: usize) -> Result<(), LogToolError> {
        match findings {
            0 => Ok(()),
            findings => Err(LogToolError::Damaged { dir: self.dir, findings }),
        }
    }
}

/// Opens the log in `dir` and runs a tool of the engine over it, with a progress bar.
pub(super) fn inspect<R>(
    dir: &Path,
    label: &'static str,
    tool: impl FnOnce(&dyn Disk, &mut dyn FnMut(Progress)) -> Result<R, LogError>,
) -> Result<(LogFolder, R), LogToolError> {
    let folder = LogFolder::open(dir)?;
    let bar = ProgressDisplay::new(label);
    let report = tool(folder.disk.as_ref(), &mut |progress| bar.show(progress));
    drop(bar);
    let report = report.map_err(|error| folder.error(error))?;
    Ok((folder, report))
}

/// Prints a report: its page as a JSON document, or its text, whose lines end with a line feed.
pub(super) fn print_report<P: Serialize>(
    json: bool,
    page: impl FnOnce() -> P,
    text: impl FnOnce() -> String,
) -> Result<(), LogToolError> {
    let out = if json {
        serde_json::to_string_pretty(&page()).map_err(|error| LogToolError::Output(error.into()))?
    } else {
        text()
    };
    crate::console::print_line(out.trim_end()).map_err(LogToolError::Output)
}

/// A file that follows a torn tail and is cut off with it.
#[derive(Serialize)]
pub(super) struct CutFile {
    file: String,
    bytes: u64,
    groups: Vec<u64>,
}

impl CutFile {
    pub(super) fn new(cut: &engine::log::CutFile) -> CutFile {
        CutFile { file: cut.name.clone(), bytes: cut.bytes, groups: group_numbers(&cut.groups) }
    }
}

impl fmt::Display for CutFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} bytes follow the torn tail and are cut off with it", self.file, self.bytes)?;
        if self.groups.is_empty() { Ok(()) } else { write!(f, "; groups {}", short_list(&self.groups)) }
    }
}

/// Group ids as numbers.
pub(super) fn group_numbers(groups: &[GroupId]) -> Vec<u64> {
    groups.iter().map(|group| group.0).collect()
}

/// The most elements of a list in a table cell.
const LIST_ELEMENTS_MAX: usize = 6;

/// Renders a list for a table cell: its first elements, and the number of the others.
pub(super) fn short_list<T: ToString>(list: &[T]) -> String {
    let shown: Vec<String> = list.iter().take(LIST_ELEMENTS_MAX).map(ToString::to_string).collect();
    let shown = shown.join(", ");
    let more = list.len().saturating_sub(LIST_ELEMENTS_MAX);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_shortened() {
        assert_eq!(short_list::<u64>(&[]), "");
        assert_eq!(short_list(&[1, 2]), "1, 2");
        assert_eq!(short_list(&[1, 2, 3, 4, 5, 6, 7, 8]), "1, 2, 3, 4, 5, 6 and 2 more");
    }

    #[test]
    fn a_data_directory_or_a_log_folder_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LogFolder::open(dir.path()).unwrap().dir, dir.path());
        std::fs::create_dir(dir.path().join("log")).unwrap();
        assert_eq!(LogFolder::open(dir.path()).unwrap().dir, dir.path().join("log"));
        assert!(matches!(LogFolder::open(&dir.path().join("nowhere")), Err(LogToolError::Open(_))));
    }
}
