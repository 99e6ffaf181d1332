//! The log reader: reads old entries for followers that lag, on a thread of its own.
//!
//! The disk may be cold, so a read takes long. The store thread goes on meanwhile; `storage::fetches` tells how raft-rs
//! waits. Errors are judged by the peer.

use std::sync::Arc;

use engine::log::{LogEngine, LogError};
use raft::eraftpb::Entry;

use crate::mailbox::Mailbox;
use crate::messages::{CompletionInbox, Fetched, Health};
use crate::region::RegionId;
use crate::storage::{self, Fetch};

/// The log reader; `turn` is one read.
pub(crate) struct LogReader {
    pub(crate) log: LogEngine,
    pub(crate) queue: Arc<Mailbox<(RegionId, Fetch)>>,
    pub(crate) inbox: Arc<CompletionInbox>,
    /// Wakes the store loop.
    pub(crate) wake: Arc<dyn Fn() + Send + Sync>,
    pub(crate) health: Arc<Health>,
}

impl LogReader {
    /// Runs at most one read; returns whether there was one.
    pub(crate) fn turn(&mut self) -> bool {
        let mut taken = Vec::new();
        self.queue.take(1, &mut taken);
        let Some((region, fetch)) = taken.pop() else { return false };
        if self.health.poisoned().is_none() {
            let read = self.read(region, fetch);
            self.inbox.update(|c| c.fetched.push(Fetched { region, fetch, read }));
            (self.wake)();
        }
        true
    }

    fn read(&self, region: RegionId, fetch: Fetch) -> Result<Vec<Entry>, LogError> {
        let max = usize::try_from(fetch.max_bytes).unwrap_or(usize::MAX);
        let raw = self.log.entries(storage::group(region), fetch.low, fetch.high, max)?;
        let decode = |(index, bytes): (u64, &bytes::Bytes)| {
            storage::decode_entry(index, bytes).map_err(|error| LogError::Invalid(format!("entry {index}: {error}")))
        };
        (fetch.low..).zip(&raw).map(decode).collect()
    }
}
