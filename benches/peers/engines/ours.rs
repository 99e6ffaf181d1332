//! Cortado's log. The only use of its API in this benchmark.
//!
//! Configuration: the defaults of a node, with the settings of the workload.

use std::path::Path;

use bytes::Bytes;
use engine::disk::RealDisk;
use engine::log::{Budget, Compression, Durability, GroupId, LogBatch, LogEngine, LogOptions, PurgeOutcome};

use super::{Batch, Op, RaftLog, Settings};

/// The most steps of purge in one call: more than a run that keeps up ever needs.
const PURGE_STEPS: usize = 256;

/// An open log.
pub struct Ours {
    log: LogEngine,
}

impl Ours {
    /// Opens the log in `dir`.
    pub fn open(dir: &Path, settings: &Settings) -> Ours {
        let defaults = LogOptions::default();
        let options = LogOptions {
            file_bytes: settings.file_bytes(defaults.file_bytes),
            compression: if settings.compress { defaults.compression } else { Compression::Off },
            cache_bytes: settings.cache_bytes,
            purge_threshold: settings.purge_threshold,
            recovery_threads: settings.recovery_threads,
            ..defaults
        };
        let (log, _report) = LogEngine::open(RealDisk::open(dir).unwrap(), options).unwrap();
        Ours { log }
    }
}

impl RaftLog for Ours {
    fn write(&self, batch: Batch, sync: bool) {
        let mut native = LogBatch::new();
        for op in batch.ops {
            match op {
                Op::Append { group, first, entries } => {
                    native.append(GroupId(group), first, entries.into_iter().map(Bytes::from).collect());
                }
                Op::Put { group, key, value } => native.put(GroupId(group), key, &value),
                Op::Compact { group, to, .. } => native.compact(GroupId(group), to),
            }
        }
        let durability = if sync { Durability::Synced } else { Durability::Buffered };
        self.log.write(native, durability).unwrap();
    }

    fn key(&self, group: u64, key: &'static [u8]) -> Option<Vec<u8>> {
        self.log.get(GroupId(group), key).unwrap().map(Vec::from)
    }

    fn entry(&self, group: u64, index: u64) -> Vec<u8> {
        Vec::from(self.log.entry(GroupId(group), index).unwrap())
    }

    fn entries(&self, group: u64, first: u64, end: u64) -> u64 {
        let entries = self.log.entries(GroupId(group), first, end, usize::MAX).unwrap();
        assert_eq!(entries.len() as u64, end - first);
        entries.iter().map(|entry| entry.len() as u64).sum()
    }

    fn last(&self, group: u64) -> u64 {
        self.log.bounds(GroupId(group)).map_or(0, |bounds| bounds.last)
    }

    fn purge(&self) -> Vec<u64> {
        let mut lagging = Vec::new();
        for step in 0..PURGE_STEPS {
            // One report of the pinning groups is enough.
            let report = self.log.purge(Budget { find_pinning: step == 0, ..Budget::default() }).unwrap();
            lagging.extend(report.pinning.iter().map(|lag| lag.group.0));
            if report.outcome == PurgeOutcome::Idle {
                break;
            }
            // A step is complete once a batch queued after it is.
            self.log.write(LogBatch::new(), Durability::Buffered).unwrap();
        }
        lagging
    }

    fn settle(&self) {
        self.purge();
        self.log.write(LogBatch::new(), Durability::Synced).unwrap();
    }
}
