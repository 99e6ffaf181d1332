//! The background worker: builds snapshot files, flushes the key-value store, purges and scrubs the log. No request
//! waits for it.

use std::sync::Arc;

use engine::Cf;
use engine::log::tools::Finding;
use engine::log::{Budget, LogEngine, PinningGroup};
use engine::store::{Reader, Store, StoreError};

use crate::mailbox::Mailbox;
use crate::messages::{CompletionInbox, Health, Job, JobOutcome, PurgeStep};
use crate::metrics::Metrics;
use crate::records;
use crate::region::{LogIndex, Region, RegionId};
use crate::snapshot::{SnapshotFiles, SnapshotKey};

/// The background worker; `turn` is one job.
pub(crate) struct Background<S: Store> {
    pub(crate) store: S,
    pub(crate) log: LogEngine,
    pub(crate) snapshots: SnapshotFiles,
    pub(crate) mailbox: Arc<Mailbox<Job>>,
    pub(crate) inbox: Arc<CompletionInbox>,
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
                let built = self.build_snapshot(region);
                if let Err(error) = &built {
                    tracing::warn!(%region, %error, "failed to build a snapshot");
                }
                self.complete(JobOutcome::SnapshotBuilt(region, built.ok()));
            }
            Job::ReadFlushed { regions, flush } => self.read_flushed(&regions, flush),
            Job::Purge { find_pinning } => self.purge(find_pinning),
            Job::Scrub { bytes } => {
                let report = self.log.scrub(bytes);
                self.report_damage(&report.damage);
                self.complete(JobOutcome::Scrubbed { bytes: report.bytes });
            }
            Job::Sweep { keep, applied } => {
                if let Err(error) = self.sweep(&keep, &applied) {
                    tracing::warn!(%error, "failed to remove old snapshot files");
                }
            }
            Job::RemoveSnapshot(key) => {
                if let Err(error) = self.snapshots.remove(key) {
                    tracing::warn!(%key, %error, "failed to remove a snapshot file");
                }
            }
        }
    }

    fn build_snapshot(&self, region: RegionId) -> Result<(SnapshotKey, Region), StoreError> {
        // Descriptor, position and rows come from one store snapshot, so they agree.
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

    fn read_flushed(&mut self, regions: &[RegionId], flush: bool) {
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
                    Err(error) => tracing::error!(%region, %error, "malformed applied position on disk"),
                },
                Err(error) => tracing::warn!(%region, %error, "failed to read the flushed applied position"),
            }
        }
        self.complete(JobOutcome::Flushed { flushed, after_flush: flush });
    }

    fn purge(&self, find_pinning: bool) {
        let (inbox, wake) = (self.inbox.clone(), self.wake.clone());
        let settled = move |written| {
            inbox.update(|c| c.jobs.push(JobOutcome::PurgeSettled { written }));
            wake();
        };
        let report = match self.log.purge_then(Budget { find_pinning, ..Budget::default() }, settled) {
            Ok(report) => report,
            Err(error) => {
                tracing::warn!(%error, "failed to purge the log");
                return self.complete(JobOutcome::PurgeFailed);
            }
        };
        if report.freed > 0 {
            tracing::debug!(?report, "freed log files");
        }
        if let Some(failed) = &report.failed {
            tracing::warn!(failed, "a purge of the log was incomplete");
        }
        self.report_damage(&report.damage);
        // Entries before the index to compact to pin files.
        let last = |pin: &PinningGroup| (RegionId::new(pin.group.0), LogIndex::new(pin.compact_to.saturating_sub(1)));
        let pinning = find_pinning.then(|| report.pinning.iter().map(last).collect());
        self.complete(JobOutcome::Purged(PurgeStep { pinning, outcome: report.outcome }));
    }

    /// Poisons the store if the log is damaged, as a failed read of the log does: replicas that may be intact take
    /// over.
    fn report_damage(&self, damage: &[Finding]) {
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

    fn complete(&self, outcome: JobOutcome) {
        self.inbox.update(|c| c.jobs.push(outcome));
        (self.wake)();
    }
}
