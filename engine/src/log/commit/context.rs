//! What the writer shares with the rest of the engine: the log's state, the spare files, the publisher.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::publish::Publisher;
use super::spares::SpareFiles;
use crate::log::error::LogError;
use crate::log::read::{LogState, WriteError};

/// See the module documentation.
pub(crate) struct CommitContext {
    pub(crate) state: Arc<LogState>,
    pub(crate) spares: Arc<SpareFiles>,
    pub(crate) publisher: Publisher,
}

impl CommitContext {
    /// Waits until every group up to `lsn` is in the index. The caller holds the writer.
    pub(super) fn wait_until_published(&self, lsn: u64) -> Result<(), WriteError> {
        self.publisher.wait_idle();
        if let Some(LogError::Poisoned(why)) = self.state.poisoned() {
            return Err(WriteError::Fatal(why));
        }
        let published = self.state.published.load(Ordering::Acquire);
        assert!(published >= lsn, "group {lsn} was written and is not published, the last that is: {published}");
        Ok(())
    }
}
