//! Background work: building snapshot files, flushing the key-value store, purging the log. Nothing here is on a request's way.

use std::sync::Arc;

use engine::Cf;
use engine::log::tools::Finding;
use engine::log::{Budget, LogEngine, PinningGroup};
use engine::store::{Reader, Store, StoreError};

use crate::health::Health;
use crate::mailbox::{Inbox, Mailbox};
use crate::metrics::Metrics;
use crate::records;
use crate::region::{LogIndex, Region, RegionId};
use crate::snapshot::{SnapshotFiles, SnapshotKey};
use crate::store::PurgeStep;

/// Jobs that may be queued: one per region and kind is the most there can be in flight, with room for clean-up.
pub(crate) const MAX_JOBS: usize = 1024;

/// One piece of background work.
#[derive(Debug)]
pub(crate) enum Job {
    /// Build a snapshot file of a region from the present state.
    BuildSnapshot(RegionId),
    /// Find out what a crash would not lose, flushing first if told so.
    Checkpoint { regions: Vec<RegionId>, flush: bool },
    /// Free log files that hold little that is live: one step. If asked for, find out which regions stand in the way.
    Purge { laggards: bool },
    /// Read about so many bytes of the log, for damage.
    Scrub { bytes: u64 },
    /// Remove snapshot files that are not in `keep` and that the region (its applied index is given) is past.
    Sweep { keep: Vec<SnapshotKey>, applied: Vec<(RegionId, LogIndex)> },
    /// Remove the file of an installed snapshot.
    RemoveSnapshot(SnapshotKey),
}

/// The outcome of a job that somebody waits for.
#[derive(Debug)]
pub(crate) enum JobDone {
    /// Of `BuildSnapshot`; `None` if it failed.
    SnapshotBuilt(RegionId, Option<(SnapshotKey, Region)>),
    /// Of `Checkpoint`: the applied index of each region that is flushed, and whether everything was flushed.
    Checkpoint { flushed: Vec<(RegionId, LogIndex)>, all: bool },
    /// Of `Purge`.
    Purged(PurgeStep),
    /// A step of purge is over in the log; `written` is not set if the log could not write it.
    PurgeLanded { written: bool },
    /// `Purge` failed.
    PurgeFailed,
    /// Of `Scrub`: how many bytes were read.
    Scrubbed { bytes: u64 },
}

/// The background worker; `turn` is one job.
pub(crate) struct Background<S: Store> {
    pub(crate) store: S,
    pub(crate) log: LogEngine,
    pub(crate) snapshots: SnapshotFiles,
    pub(crate) mailbox: Arc<Mailbox<Job>>,
    pub(crate) inbox: Arc<Inbox>,
    /// Wakes the store loop.
    pub(crate) wake: Arc<dyn Fn() + Send + Sync>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
}

impl<S: Store> Background<S> {
    /// Runs at most one job; returns whether there was one.
    pub(crate) fn turn(&mut self) -> bool {
        let mut jobs = Vec::new();
        self.mailbox.take(1, &mut jobs);
        let Some(job) = jobs.pop() else { return false };
        if self.health.poisoned().is_none() {
            self.run(job);
        }
        true
    }

    fn run(&mut self, job: Job) {
        match job {
            Job::BuildSnapshot(region) => {
                let built = self.build(region);
                if let Err(error) = &built {
                    tracing::warn!(%region, %error, "could not build a snapshot");
                }
                self.done(JobDone::SnapshotBuilt(region, built.ok()));
            }
            Job::Checkpoint { regions, flush } => self.checkpoint(&regions, flush),
            Job::Purge { laggards } => self.purge(laggards),
            Job::Scrub { bytes } => {
                let report = self.log.scrub(bytes);
                self.damaged(&report.damage);
                self.done(JobDone::Scrubbed { bytes: report.bytes });
            }
            Job::Sweep { keep, applied } => {
                if let Err(error) = self.sweep(&keep, &applied) {
                    tracing::warn!(%error, "could not remove old snapshot files");
                }
            }
            Job::RemoveSnapshot(key) => {
                if let Err(error) = self.snapshots.remove(key) {
                    tracing::warn!(%key, %error, "could not remove a snapshot file");
                }
            }
        }
    }

    fn build(&self, region: RegionId) -> Result<(SnapshotKey, Region), StoreError> {
        // Descriptor, position and rows from one snapshot: they belong together.
        let snapshot = self.store.snapshot();
        let corrupt = |what: String| StoreError::Corrupt(format!("region {region}: {what}"));
        let read = |key: &[u8]| snapshot.get(Cf::Meta, key);
        let descriptor = read(&records::descriptor_key(region))?.ok_or_else(|| corrupt("no descriptor".into()))?;
        let position = read(&records::applied_key(region))?.ok_or_else(|| corrupt("no applied position".into()))?;
        let descriptor = records::decode_region(&descriptor).map_err(|e| corrupt(e.to_string()))?;
        let position = records::decode_position(&position).map_err(|e| corrupt(e.to_string()))?;
        let key = SnapshotKey { region, term: position.term, index: position.index };
        self.snapshots.build(key, &descriptor, &snapshot)?;
        self.metrics.snapshots.with_label_values(&["built"]).inc();
        Ok((key, descriptor))
    }

    fn checkpoint(&mut self, regions: &[RegionId], flush: bool) {
        if flush && let Err(error) = self.store.flush() {
            self.health.poison(&format!("flush: {error}"));
            (self.wake)();
            return;
        }
        let mut flushed = Vec::new();
        for region in regions {
            match self.store.get_flushed(Cf::Meta, &records::applied_key(*region)) {
                Ok(None) => {}
                Ok(Some(bytes)) => match records::decode_position(&bytes) {
                    Ok(position) => flushed.push((*region, position.index)),
                    Err(error) => tracing::error!(%region, %error, "applied position on disk"),
                },
                Err(error) => tracing::warn!(%region, %error, "could not read what is flushed"),
            }
        }
        self.done(JobDone::Checkpoint { flushed, all: flush });
    }

    fn purge(&self, laggards: bool) {
        let (inbox, wake) = (self.inbox.clone(), self.wake.clone());
        let landed = move |written| {
            inbox.update(|c| c.jobs.push(JobDone::PurgeLanded { written }));
            wake();
        };
        let report = match self.log.purge_then(Budget { find_pinning: laggards, ..Budget::default() }, landed) {
            Ok(report) => report,
            Err(error) => {
                tracing::warn!(%error, "could not purge the log");
                return self.done(JobDone::PurgeFailed);
            }
        };
        if report.freed > 0 {
            tracing::debug!(?report, "gave up log files");
        }
        if let Some(failed) = &report.failed {
            tracing::warn!(failed, "could not do all of a purge of the log");
        }
        self.damaged(&report.damage);
        // Everything before the index to compact to is in the way.
        let last = |pin: &PinningGroup| (RegionId::new(pin.group.0), LogIndex::new(pin.compact_to.saturating_sub(1)));
        let pinning = laggards.then(|| report.pinning.iter().map(last).collect());
        self.done(JobDone::Purged(PurgeStep { pinning, outcome: report.outcome }));
    }

    /// What was found damaged in the log is treated as where a peer meets it: replicas that may have it intact shall lead.
    fn damaged(&self, damage: &[Finding]) {
        for damage in damage {
            tracing::error!(%damage, groups = ?damage.groups, "the log is damaged");
        }
        if let Some(damage) = damage.first() {
            self.health.poison(&format!("log: {damage}"));
        }
    }

    fn sweep(&self, keep: &[SnapshotKey], applied: &[(RegionId, LogIndex)]) -> Result<(), StoreError> {
        for key in self.snapshots.list()? {
            let past = applied.iter().any(|(region, index)| *region == key.region && *index >= key.index);
            if past && !keep.contains(&key) {
                self.snapshots.remove(key)?;
            }
        }
        Ok(())
    }

    fn done(&self, outcome: JobDone) {
        self.inbox.update(|c| c.jobs.push(outcome));
        (self.wake)();
    }
}
