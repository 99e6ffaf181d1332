//! `cortado log`: inspects or repairs the Raft log of a stopped node.
//!
//! Each command opens the log folder read-only, which fails while a node runs on it, calls `engine::log::tools` and
//! prints the report: text tables or JSON. A progress bar is shown on stderr if that is a terminal. Only `repair`
//! writes, and only to another directory.
//!
//! # Layers
//!
//! 1. `progress`: the progress bar
//! 2. `report`: opens the log, runs a tool of the engine, prints its report
//! 3. `check`, `dump`, `repair`, `stats`: the commands

mod check;
mod dump;
mod progress;
mod repair;
mod report;
mod stats;

pub(crate) use self::report::LogToolError;
use crate::cli::LogCommand;

/// Runs a log command.
pub(crate) fn run(command: &LogCommand) -> Result<(), LogToolError> {
    match command {
        LogCommand::Check(args) => check::run(args),
        LogCommand::Dump(args) => dump::run(args),
        LogCommand::Stats(args) => stats::run(args),
        LogCommand::Repair(args) => repair::run(args),
    }
}
