//! Tools for a log that no process has open: [`check()`], [`dump()`], [`stats()`], and [`repair()`] of a damaged log into
//! a new one.
//!
//! They are functions over a [`Disk`](crate::disk::Disk). They report progress and change nothing on the disk they read.
//! They use the same survey, walk and replay as [`RecoveryMode::Salvage`](super::RecoveryMode::Salvage), so their
//! findings agree with those of an open.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `findings`, `progress`: parts that the tools share
//! 2. `check`, `dump`, `repair`, `stats`: one tool each

mod check;
mod dump;
mod findings;
mod progress;
mod repair;
mod stats;

pub use self::check::{CheckReport, CheckedFile, TornTail, check};
pub use self::dump::{Change, DumpOptions, EntryRecord, FileRecord, GroupRecord, Record, SealRecord, dump};
pub use self::progress::Progress;
pub use self::repair::{RepairOptions, RepairReport, RepairedGroup, repair};
pub use self::stats::{CountedFile, CountedGroup, StatsReport, stats};
pub use crate::log::error::Finding;
