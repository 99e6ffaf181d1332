//! What recovery hands over and what it reports.

use std::collections::BTreeSet;

use super::parallel::parallel_map;
use crate::log::commit::ActiveFile;
use crate::log::index::{Doubts, GroupLoss, Index, SHARDS, ShardSurvey};
use crate::log::read::FileTable;
use crate::log::salvage::Loss;
use crate::log::types::{GroupId, Lsn};

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

/// What recovery hands over.
pub(crate) struct Recovered {
    pub(crate) index: Index,
    pub(crate) files: FileTable,
    pub(crate) active: ActiveFile,
    pub(crate) report: RecoveryReport,
    /// Spare files, by number.
    pub(crate) spares: BTreeSet<u64>,
    /// What is not certain of a log that was salvaged; `None` of any other.
    pub(crate) doubts: Option<Doubts>,
}

/// What the whole index holds.
pub(crate) fn survey_index(index: &Index, threads: usize) -> ShardSurvey {
    let shards: Vec<usize> = (0..SHARDS).collect();
    let surveys = parallel_map(threads, &shards, |shard| index.survey(*shard));
    surveys.into_iter().fold(ShardSurvey::default(), |sum, shard| ShardSurvey {
        groups: sum.groups + shard.groups,
        entries: sum.entries + shard.entries,
        gap: [sum.gap, shard.gap].into_iter().flatten().min(),
    })
}
