//! The multi-Raft log engine: the only write-ahead log of a node.
//!
//! Batches for many Raft groups are queued by [`LogEngine::submit`]; whoever works for the log takes all that is queued,
//! compresses it as one commit group, writes it with one write and makes it durable with one fdatasync, while the next group may be
//! written already. An in-memory index per group finds entries.
//!
//! # The life of a batch
//!
//! 1. [`LogEngine::submit`] puts it into a bounded queue (`engine.rs`).
//! 2. A thread of the log, or a caller that waits anyway (`crew.rs`, `pipeline.rs`), takes what is queued, about a megabyte at a
//!    time (`writer.rs`), and checks each batch against the index and the batches before it (`validate.rs`).
//! 3. The entries are cut into blocks and compressed (`block.rs`); what changes becomes the group's meta (`items.rs`).
//! 4. The active file takes the group, or is sealed and followed by the next one (`active.rs`, `rotation.rs`, `file.rs`). Every byte is
//!    bound by checksums to its log, file and place (`format/`).
//! 5. One write, and one fdatasync if a batch of the group asked for [`Durability::Synced`].
//! 6. The index learns where the entries stand (`landing.rs`, `index.rs`, `group.rs`, `runs.rs`), and the batch is
//!    acknowledged (`answer.rs`).
//!
//! Readers find an entry's block through the index, in the cache or on disk (`read.rs`, `cache.rs`).
//!
//! # Files
//!
//! `0000000000000001.log` and so on. A sealed file ends with an index of all that it changes (`effects.rs`, `dense.rs`), and is
//! believed by that at open; only the newest file is scanned (`scan.rs`, `recovery/`). Purge writes the live rest of mostly dead
//! files again and drops them (`purge/`); their space is used again (`spare.rs`). All that a read or a
//! restart needs is read for damage now and then (`scrub.rs`, `told.rs`). `docs/formats.md` describes the bytes. Of a damaged log `salvage/` opens what can be read, and
//! `tools/` check, show, count and repair a log that nobody has open.
//!
//! # What holds
//!
//! 1. A batch acknowledged as synced survives power loss.
//! 2. A batch is recovered whole or not at all.
//! 3. What is recovered is a prefix of the log's order that holds every synced batch.
//! 4. What was compacted, overwritten or removed, durably, does not come back.
//! 5. An entry that is returned is the entry that was written, or there is an error that names file and offset.
//! 6. The entries of a group are consecutive.
//! 7. A write that fails, for want of space or otherwise, leaves no trace, and later ones may succeed. After a failed sync, or a write that
//!    could not be wiped out, nothing is acknowledged until the log is opened again.

mod active;
mod answer;
mod batch;
mod block;
mod cache;
mod compress;
mod crew;
mod dense;
mod effects;
mod engine;
mod error;
mod file;
#[cfg(test)]
mod forged;
mod format;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod index;
mod items;
mod landing;
mod metrics;
mod options;
mod pieces;
mod pipeline;
mod purge;
mod read;
mod reader;
mod recovery;
mod rotation;
mod runs;
mod salvage;
mod scan;
mod scrub;
mod sequence;
mod spare;
mod stats;
mod stretch;
#[cfg(test)]
mod tests;
mod ticket;
mod told;
pub mod tools;
mod touched;
mod validate;
mod writer;

pub use batch::LogBatch;
pub use compress::Compression;
pub use engine::{LogEngine, LogWriter};
pub use error::{LogError, Result};
pub use options::{LogOptions, RecoveryMode};
pub use purge::{Budget, Lagging, PurgeReport};
pub use salvage::{EntryRange, GroupLoss, Loss};
pub use scrub::ScrubReport;
pub use sequence::Sequence;
pub use stats::{GroupStats, LogStats};
pub use ticket::Ticket;

/// A Raft group, by its number; what it stands for is the caller's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// Position of a commit group in the log's history. Grows with every commit group; batches that share one share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// When a write may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once the operating system has it.
    Buffered,
    /// Once it survives power loss.
    Synced,
}

/// What open found. The same log gives the same report, however many threads read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Bytes of an unsynced, torn tail that were cut off; 0 after a clean stop. (A log that is salvaged keeps them and does not read them.)
    pub truncated_bytes: u64,
    /// The file and offset where they were cut off.
    pub truncated_at: Option<(String, u64)>,
    /// The commit group that was cut off first, where any was. Nothing vouches for it: whether it was never synced or was, acknowledged, and
    /// damaged since, nobody can tell.
    pub uncertain: Option<Uncertain>,
    /// Files read: those that the log consists of.
    pub files: usize,
    /// Those of which the index was read.
    pub files_by_index: usize,
    /// Those of which every commit group was read; the newest always is.
    pub files_scanned: usize,
    /// Bytes read for all this: headers, footers, indexes, and the files that were scanned.
    pub bytes_read: u64,
    /// Groups found.
    pub groups: usize,
    /// Live entries found.
    pub entries: u64,
    /// When salvaging: files, other than the newest, without an index that can be read, and whose commit groups were read instead.
    pub salvaged: Vec<String>,
    /// When salvaging: parts of the log that cannot be read.
    pub losses: Vec<Loss>,
    /// When salvaging: groups that may lack something, ascending. A group that is not named here is whole.
    pub lost: Vec<GroupLoss>,
}

/// A commit group at the end of the log that cannot be read, and of which no header after it says whether it was synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncertain {
    /// Its position; what stood after it is gone with it.
    pub lsn: Lsn,
    /// The groups that it changes, ascending; empty where that cannot be read.
    pub groups: Vec<GroupId>,
}

/// The first and last index a group holds; `last + 1 == first` when it holds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupBounds {
    /// Index of the first entry kept.
    pub first: u64,
    /// Index of the last entry.
    pub last: u64,
}

/// Called once with the fate of a submitted batch: on a thread of the log, or that of a caller that waits for a batch of its own and does the
/// log's work meanwhile. It must not block, nor wait for another batch. A panic goes no further, and poisons the log.
pub type OnDone = Box<dyn FnOnce(Result<Lsn>) + Send>;
