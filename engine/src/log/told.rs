//! Damage that purge and scrub meet: each place is told once as long as the log is open, and counted once, whoever meets it first.

use std::collections::BTreeSet;

use crate::disk;

use super::GroupId;
use super::error::LogError;
use super::format::file_name;
use super::read::Shared;
use super::recovery::changed_in;
use super::tools::Finding;

/// The places that were told, by file and offset.
#[derive(Default)]
pub(crate) struct Told(BTreeSet<(u64, u64)>);

/// Whether an error says that the process has too little of something, and nothing of the disk.
pub(crate) fn is_exhausted(error: &LogError) -> bool {
    matches!(error, LogError::Io(error) if disk::is_exhausted(error))
}

impl Shared {
    /// Adds what was met in file `seq` to `damage`, unless that was told before. `offset` is where, for an error that does not say so itself;
    /// `concerned` the groups, where the error does not.
    pub(crate) fn tell(
        &self,
        seq: u64,
        offset: u64,
        error: &LogError,
        concerned: impl FnOnce() -> Vec<GroupId>,
        damage: &mut Vec<Finding>,
    ) {
        let name = file_name(seq);
        if is_exhausted(error) {
            tracing::warn!(file = name, offset, %error, "a part of the log could not be looked at");
            return;
        }
        let mut finding = Finding::met(error, &name, offset);
        if !self.told.lock().0.insert((seq, finding.offset)) {
            return;
        }
        if finding.groups.is_empty() {
            finding.groups = concerned();
        }
        if let Some(metrics) = &self.metrics {
            metrics.damage.inc();
        }
        damage.push(finding);
    }

    /// The groups that a file changes, as the file after it says, or else those of which something in it is live.
    pub(crate) fn concerned_by(&self, seq: u64) -> Vec<GroupId> {
        changed_in(self.disk.as_ref(), seq).unwrap_or_else(|| self.index.groups_in(seq))
    }
}
