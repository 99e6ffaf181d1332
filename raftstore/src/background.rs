//! The background worker: flushes the key-value store, purges and scrubs the log, removes snapshot files. No request
//! waits for it.

use std::sync::Arc;

use engine::Cf;
use engine::log::tools::Finding;
use engine::log::{Budget, LogEngine, PinningGroup};
use engine::store::{Store, StoreError};

use crate::mailbox::Mailbox;
use crate::messages::{CompletionInbox, Health, Job, JobOutcome, PurgeStep};
use crate::records;
use crate::region::{LogIndex, RegionId};
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
        self.complete(JobOutcome::Flushed { flushed, after_flush: flush, free_bytes: self.log.free_bytes() });
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
            let past = applied.iter().any(|(region, index)| *region == key.region && *index > key.index);
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
