//! The in-memory index: where each group's entries and keys are, and how much of each file is still referenced.
//!
//! [`Index`] maps groups to [`Group`]s; a group's entry locations are packed in [`runs`]. [`FileSummary`] is what one
//! file changes in sum, [`ActiveChanges`] what the active file changes beyond what the index itself knows, and
//! [`Doubts`] what a salvaged log cannot vouch for.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `ranges`, `usage`: ranges of entries, references to files
//! 2. `runs`: packed locations of entries
//! 3. `group`, `file_summary`: one group, and what one file changes
//! 4. `table`: all groups
//! 5. `active_changes`, `doubts`: the active file, and losses

mod active_changes;
mod doubts;
mod file_summary;
mod group;
mod ranges;
mod runs;
mod table;
mod usage;

pub(crate) use self::active_changes::ActiveChanges;
pub use self::doubts::GroupLoss;
pub(crate) use self::doubts::{DoubtTracker, Doubts};
pub(crate) use self::file_summary::FileSummary;
pub(crate) use self::group::{Group, RECORD_BYTES};
pub use self::ranges::EntryRange;
pub(crate) use self::ranges::{normalize, subtract};
pub(crate) use self::table::{Index, SHARDS, ShardSurvey, shard_of};
