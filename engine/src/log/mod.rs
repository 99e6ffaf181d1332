//! The multi-Raft log engine: the only write-ahead log of a node.
//!
//! [`LogEngine::submit`] queues batches for many Raft groups. A worker compresses all queued batches into one commit
//! group, writes it with one write and makes it durable with one fdatasync, while the next group may be encoded
//! already. An in-memory index per Raft group finds entries.
//!
//! # The life of a batch
//!
//! 1. [`LogEngine::submit`] puts it into a bounded queue (`engine.rs`, `commit/queue.rs`).
//! 2. A worker, which is a thread of the log or a caller that waits for a batch (`commit/workers.rs`), takes about 1
//!    MiB of queued batches (`commit/pipeline.rs`) and validates each against the index and the batches before it
//!    (`commit/validate.rs`).
//! 3. The entries are cut into blocks and compressed (`format/block.rs`); the changes become the group's meta
//!    (`format/items.rs`).
//! 4. The group is appended to the active file (`commit/active.rs`). A full file is sealed, and the next one becomes
//!    active (`commit/rotation.rs`). Every checksum covers the log's identity, the file and the offset (`format/`).
//! 5. One write, and one fdatasync if a batch of the group asked for [`Durability::Synced`].
//! 6. The locations of the entries enter the index, and the batch is acknowledged (`commit/publish.rs`, `index/`).
//!
//! Readers find an entry's block through the index, in the block cache or on disk (`read/`).
//!
//! # Files
//!
//! `0000000000000001.log` and so on. A sealed file ends with an index of everything that it changes
//! (`index/file_summary.rs`, `format/file_index.rs`). Recovery reads only this index; it scans only the newest file
//! (`read/scan.rs`, `recovery/`). Purge rewrites the live records of the oldest files and drops them (`purge/`);
//! their space is reused (`commit/spares.rs`). Scrub verifies on disk what a read or a restart would need (`scrub.rs`).
//! `docs/formats.md` describes the bytes. `salvage/` reads the rest of a damaged log. `tools/` check, dump, count and
//! repair a log that no process has open.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer; only unit tests may use the whole engine.
//!
//! 1. `types`: group ids, positions, durability
//! 2. `error`: errors and findings
//! 3. `format`: everything about bytes
//! 4. `options`: settings
//! 5. `metrics`: counters
//! 6. `index`: the in-memory index
//! 7. `read`: files, cache, scan, lookup, and the state that later layers share
//! 8. `commit`: from the queue to the acknowledgement
//! 9. `salvage`: reading a damaged log
//! 10. `recovery`: opening a log
//! 11. `purge`: freeing files
//! 12. `scrub`: finding damage
//! 13. `stats`: sizes and counts
//! 14. `engine`: the handle
//! 15. `tools`: offline tools
//! 16. `fuzzing`: the entry points of fuzzers
//!
//! # Invariants
//!
//! 1. A batch acknowledged as synced survives power loss.
//! 2. A batch is recovered whole or not at all.
//! 3. The recovered log is a prefix of the log's order and contains every synced batch.
//! 4. Entries that were durably compacted, overwritten or removed do not come back.
//! 5. A returned entry is the entry that was written; otherwise an error names file and offset.
//! 6. The entries of a group are consecutive.
//! 7. A failed write, on a full disk or otherwise, leaves no trace, and later ones may succeed. After a failed sync, or
//!    a failed write whose bytes could not be overwritten, nothing is acknowledged until the log is reopened.

mod commit;
mod engine;
mod error;
#[cfg(test)]
mod forged;
mod format;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod index;
mod metrics;
mod options;
mod purge;
mod read;
mod recovery;
mod salvage;
mod scrub;
mod stats;
#[cfg(test)]
mod tests;
pub mod tools;
mod types;

pub use commit::{LogBatch, OnDone, Ticket};
pub use engine::{LogEngine, LogWriter, Sequence};
pub use error::{LogError, Result};
pub use format::Compression;
pub use index::{EntryRange, GroupLoss};
pub use options::{LogOptions, RecoveryMode};
pub use purge::{Budget, PinningGroup, PurgeOutcome, PurgeReport};
pub use read::CutFile;
pub use recovery::{RecoveryReport, Uncertain};
pub use salvage::Loss;
pub use scrub::ScrubReport;
pub use stats::LogStats;
pub use types::{Durability, GroupBounds, GroupId, Lsn};
