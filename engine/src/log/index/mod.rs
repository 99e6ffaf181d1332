//! The in-memory index: where each group's entries and keys are, and how much of each file is still referenced.
//!
//! [`Index`] maps groups to [`Group`]s; the locations of a group's entries are packed in [`runs`]. [`FileSummary`] is
//! the net change of one file. [`ActiveChanges`] is the part of the active file's changes that the index does not hold.
//! [`Doubts`] tracks the uncertain groups of a salvaged log.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `ranges`, `usage`: ranges of entries, references to files
//! 2. `runs`: packed locations of entries
//! 3. `group`, `file_summary`: one group, and the net change of one file
//! 4. `table`: all groups
//! 5. `active_changes`, `doubts`: the active file, and losses
//! 6. `sealing_index`: the index of a full file

mod active_changes;
mod doubts;
mod file_summary;
mod group;
mod ranges;
mod runs;
mod sealing_index;
mod table;
mod usage;

pub(crate) use self::active_changes::ActiveChanges;
pub use self::doubts::GroupLoss;
pub(crate) use self::doubts::{DoubtTracker, Doubts};
pub(crate) use self::file_summary::FileSummary;
pub(crate) use self::group::{Group, RECORD_BYTES};
pub use self::ranges::EntryRange;
pub(crate) use self::ranges::{normalize, subtract};
pub(crate) use self::sealing_index::SealingIndex;
pub(crate) use self::table::{Index, SHARDS, ShardSurvey, shard_of};
