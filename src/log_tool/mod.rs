//! `cortado log`: looks at the Raft log of a node that does not run, and makes a new one of a damaged one.
//!
//! Finds the log's folder, opens it to be read only (which fails while a node has it), calls `engine::log::tools`, and prints what comes
//! of it: tables for people, JSON for programs, a bar on stderr where that is a terminal. Only `repair` writes, to another directory.

mod bar;
mod check;
mod dump;
mod repair;
mod stats;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::disk::RealDisk;
use engine::log::{GroupId, LogError};

use crate::cli::LogCommand;

/// Why a log command ends with exit code 1; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogToolError {
    /// The directory cannot be opened; the error names it.
    #[error("{0}")]
    Open(io::Error),
    /// There is no log in it.
    #[error("{0} is neither a data directory nor a log folder: it has no log files")]
    NoLog(PathBuf),
    /// The directory to write to is the one to read.
    #[error("--to must be another directory than {0}")]
    SameDirectory(PathBuf),
    /// The directory to write to has something in it.
    #[error("--to {dir} is not empty, it has {name}: take a new directory")]
    NotEmpty { dir: PathBuf, name: String },
    /// The log cannot be looked at, or not be written.
    #[error("{0}: {1}")]
    Log(PathBuf, LogError),
    /// It can, and is not sound.
    #[error("{findings} finding(s) in {dir}")]
    Damaged { dir: PathBuf, findings: usize },
    /// It was repaired, and not all of it is there.
    #[error(
        "{to} opens again, but {groups} Raft group(s) lost something or may have: their replicas on this node must not go on"
    )]
    Lost { to: PathBuf, groups: usize },
    /// Nothing is known to be lost, but parts of the log are, and which groups they concern is not known.
    #[error("{to} opens again, but {losses} part(s) of the log are lost, and nothing tells whose they were")]
    Blind { to: PathBuf, losses: usize },
    /// Standard output takes no more.
    #[error("standard output: {0}")]
    Output(io::Error),
}

/// Runs a log command.
pub(crate) fn run(command: &LogCommand) -> Result<(), LogToolError> {
    match command {
        LogCommand::Check(args) => check::run(args),
        LogCommand::Dump(args) => dump::run(args),
        LogCommand::Stats(args) => stats::run(args),
        LogCommand::Repair(args) => repair::run(args),
    }
}

/// The folder of a log, opened to be read only.
struct LogFolder {
    dir: PathBuf,
    disk: Arc<RealDisk>,
}

impl LogFolder {
    /// `dir` is a node's data directory, or the log folder in it.
    fn open(dir: &Path) -> Result<LogFolder, LogToolError> {
        let inner = dir.join("log");
        let dir = if inner.is_dir() { inner } else { dir.to_path_buf() };
        let disk = RealDisk::open_existing(&dir).map_err(LogToolError::Open)?;
        Ok(LogFolder { dir, disk })
    }

    fn failed(&self, error: LogError) -> LogToolError {
        match error {
            LogError::NoLog => LogToolError::NoLog(self.dir.clone()),
            error => LogToolError::Log(self.dir.clone(), error),
        }
    }
}

/// Prints a whole JSON document.
fn print_json(document: &impl serde::Serialize) -> Result<(), LogToolError> {
    let text = serde_json::to_string_pretty(document).map_err(|error| LogToolError::Output(error.into()))?;
    crate::output::line(text).map_err(LogToolError::Output)
}

/// Prints lines that end with a line feed already.
fn print(text: &str) -> Result<(), LogToolError> {
    crate::output::line(text.trim_end()).map_err(LogToolError::Output)
}

/// Groups as numbers.
fn numbers(groups: &[GroupId]) -> Vec<u64> {
    groups.iter().map(|group| group.0).collect()
}

/// So many of a list are named in a table.
const NAMED: usize = 6;

/// A list in a table's cell: its first elements, and how many more there are.
fn short_list<T: ToString>(list: &[T]) -> String {
    let named: Vec<String> = list.iter().take(NAMED).map(ToString::to_string).collect();
    let named = named.join(", ");
    if list.len() > NAMED { format!("{named} and {} more", list.len() - NAMED) } else { named }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(short_list::<u64>(&[]), "");
        assert_eq!(short_list(&[1, 2]), "1, 2");
        assert_eq!(short_list(&[1, 2, 3, 4, 5, 6, 7, 8]), "1, 2, 3, 4, 5, 6 and 2 more");
    }

    #[test]
    fn a_data_directory_is_told_from_a_log_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LogFolder::open(dir.path()).unwrap().dir, dir.path());
        std::fs::create_dir(dir.path().join("log")).unwrap();
        assert_eq!(LogFolder::open(dir.path()).unwrap().dir, dir.path().join("log"));
        assert!(matches!(LogFolder::open(&dir.path().join("nowhere")), Err(LogToolError::Open(_))));
    }
}
