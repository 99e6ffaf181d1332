//! Tools for a log that nobody has open: [`check()`] it, [`dump()`] it, count what it holds ([`stats()`]), and make of a damaged one a new
//! one that opens ([`repair()`]).
//!
//! Functions over a [`Disk`](crate::disk::Disk) that read everything they need, tell how far they are, and change nothing on the disk they
//! read. They see a log through the same survey, walk and replay as [`RecoveryMode::Salvage`](super::RecoveryMode::Salvage), so that
//! what they say of damage is what opening it so shows.

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
