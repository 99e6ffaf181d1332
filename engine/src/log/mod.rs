//! The multi-Raft log engine: the only write-ahead log of a node.
//!
//! [`LogEngine::submit`] queues batches for many Raft groups. A worker compresses all queued batches into one commit
//! group, writes it with one write and makes it durable with one fdatasync, while the next group may be encoded
//! already. An in-memory index per Raft group finds entries.
//!
//! # The life of a batch
//!
//! 1. [`LogEngine::submit`] puts it into a bounded queue (`engine.rs`, `commit/queue.rs`).
//! 2. A worker, which is a thread of the log or a caller that waits anyway (`commit/workers.rs`), takes about a
//!    megabyte of queued batches (`commit/pipeline.rs`) and validates each against the index and the batches before it
//!    (`commit/validate.rs`).
//! 3. The entries are cut into blocks and compressed (`format/block.rs`); the changes become the group's meta
//!    (`format/items.rs`).
//! 4. The group is appended to the active file, which is sealed and followed by the next one when it is full
//!    (`commit/active.rs`, `commit/rotation.rs`). Checksums bind every byte to its log, file and offset (`format/`).
//! 5. One write, and one fdatasync if a batch of the group asked for [`Durability::Synced`].
//! 6. The index learns the locations of the entries, and the batch is acknowledged (`commit/publish.rs`, `index/`).
//!
//! Readers find an entry's block through the index, in the block cache or on disk (`read/`).
//!
//! # Files
//!
//! `0000000000000001.log` and so on. A sealed file ends with an index of everything that it changes
//! (`index/file_summary.rs`, `format/file_index.rs`), which is all that recovery reads of it. Only the newest file is
//! scanned (`read/scan.rs`, `recovery/`). Purge rewrites the live records of the oldest files and drops these files
//! (`purge/`); their space is reused (`commit/spares.rs`). Scrub reads for damage what a read or a restart would need
//! (`scrub.rs`). `docs/formats.md` describes the bytes. `salvage/` reads what is left of a damaged log, and `tools/`
//! check, dump, count and repair a log that nobody has open.
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
//! 7. `read`: files, cache, scan, lookup, and the state that the layers above share
//! 8. `commit`: from the queue to the acknowledgement
//! 9. `salvage`: reading a damaged log
//! 10. `recovery`: opening a log
//! 11. `purge`: giving space back
//! 12. `scrub`: looking for damage
//! 13. `stats`: a log in numbers
//! 14. `engine`: the handle
//! 15. `tools`: offline tools
//! 16. `fuzzing`: what fuzzers call
//!
//! # What holds
//!
//! 1. A batch acknowledged as synced survives power loss.
//! 2. A batch is recovered whole or not at all.
//! 3. What is recovered is a prefix of the log's order that holds every synced batch.
//! 4. What was durably compacted, overwritten or removed does not come back.
//! 5. A returned entry is the entry that was written; otherwise an error names file and offset.
//! 6. The entries of a group are consecutive.
//! 7. A failed write, on a full disk or otherwise, leaves no trace, and later ones may succeed. After a failed sync, or
//!    a write that could not be wiped out, nothing is acknowledged until the log is opened again.

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
pub use recovery::{RecoveryReport, Uncertain};
pub use salvage::Loss;
pub use scrub::ScrubReport;
pub use stats::{GroupStats, LogStats};
pub use types::{Durability, GroupBounds, GroupId, Lsn};
