//! The output of recovery: the parts of an open log, and a report for the caller.

use std::collections::BTreeSet;
use std::time::Duration;

use super::parallel::parallel_map;
use crate::log::commit::{ActiveFile, FullFile};
use crate::log::index::{Doubts, GroupLoss, Index, SHARDS, ShardSurvey};
use crate::log::metrics::{RecoveryMetrics, to_gauge};
use crate::log::read::{CutFile, FileTable};
use crate::log::salvage::Loss;
use crate::log::types::{GroupId, Lsn};

/// The findings of an open. The report does not depend on the number of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Bytes of an unsynced, torn tail that were truncated, with those of `cut_file`; 0 after a clean stop. (Salvage
    /// leaves them on disk and does not read them.)
    pub truncated_bytes: u64,
    /// File and offset of the truncation.
    pub truncated_at: Option<(String, u64)>,
    /// The file after it, if that is cut too. It is deleted, except by salvage.
    pub cut_file: Option<CutFile>,
    /// The first truncated commit group, if any. Nothing proves whether it was synced: it may never have been, or it
    /// was synced, acknowledged and damaged since.
    pub uncertain: Option<Uncertain>,
    /// Files of the log.
    pub files: usize,
    /// Files of which only the index was read.
    pub files_by_index: usize,
    /// Files of which every commit group was read, including the newest.
    pub files_scanned: usize,
    /// Bytes read: headers, footers, indexes, and the scanned files.
    pub bytes_read: u64,
    /// Groups found.
    pub groups: usize,
    /// Live entries found.
    pub entries: u64,
    /// In salvage mode: files, other than the newest, with an unreadable index, whose commit groups were read instead.
    pub salvaged: Vec<String>,
    /// In salvage mode: parts of the log that cannot be read.
    pub losses: Vec<Loss>,
    /// In salvage mode: groups that may lack entries or keys, ascending. Groups not listed are whole.
    pub lost: Vec<GroupLoss>,
}

impl RecoveryReport {
    /// Sets the recovery gauges.
    pub(crate) fn record(&self, took: Duration, metrics: &RecoveryMetrics) {
        metrics.seconds.set(took.as_secs_f64());
        metrics.files.set(to_gauge(self.files as u64));
        metrics.read_bytes.set(to_gauge(self.bytes_read));
        metrics.groups.set(to_gauge(self.groups as u64));
        metrics.entries.set(to_gauge(self.entries));
        metrics.truncated_bytes.set(to_gauge(self.truncated_bytes));
    }
}

/// An unreadable commit group at the end of the log. No later header records it as synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncertain {
    /// Its position. All later commit groups are truncated with it, also those of the next file.
    pub lsn: Lsn,
    /// The groups that the truncated commit groups change, ascending, as far as these are readable.
    pub groups: Vec<GroupId>,
}

/// The parts of a recovered log.
pub(crate) struct Recovered {
    pub(crate) index: Index,
    pub(crate) files: FileTable,
    pub(crate) active: ActiveFile,
    /// The file before it, if that is not sealed.
    pub(crate) full: Option<FullFile>,
    pub(crate) report: RecoveryReport,
    /// Spare files, by number.
    pub(crate) spares: BTreeSet<u64>,
    /// What is uncertain of a salvaged log; `None` otherwise.
    pub(crate) doubts: Option<Doubts>,
}

/// Surveys all shards of the index.
pub(crate) fn survey_index(index: &Index, threads: usize) -> ShardSurvey {
    let shards: Vec<usize> = (0..SHARDS).collect();
    let surveys = parallel_map(threads, &shards, |shard| index.survey(*shard));
    surveys.into_iter().fold(ShardSurvey::default(), |sum, shard| ShardSurvey {
        groups: sum.groups + shard.groups,
        entries: sum.entries + shard.entries,
        gap: [sum.gap, shard.gap].into_iter().flatten().min(),
    })
}
