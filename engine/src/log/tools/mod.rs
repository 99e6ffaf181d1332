//! Tools for a log that nobody has open: [`check()`] it, [`dump()`] it, count what it holds ([`stats()`]), and
//! [`repair()`] a damaged one into a new one.
//!
//! They are functions over a [`Disk`](crate::disk::Disk). They read everything they need, report progress, and change
//! nothing on the disk they read. They use the same survey, walk and replay as
//! [`RecoveryMode::Salvage`](super::RecoveryMode::Salvage), so their findings agree with what opening the log shows.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `findings`, `progress`: what tools share
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
