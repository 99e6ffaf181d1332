//! Raises the safe point of garbage collection in all regions: refuse old writes, resolve old locks, then let old
//! versions go.
//!
//! The order over *all* regions is what makes it safe ([`kv::gc`] has the argument):
//!
//! 1. The safe point was chosen and persisted by the caller. No transaction that is reported to live is at or below it.
//! 2. Every region refuses writes of transactions at or below it.
//! 3. The locks of those transactions are resolved, in every region. Their status is a record at their primary, which
//!    may lie in any region.
//! 4. Every region fails reads below it. Its stores may collect from then on.
//!
//! Each step is idempotent and each fact that it creates stays true, whoever else does the same with another safe point
//! meanwhile. So a leader that was deposed in the middle does no harm, and its successor begins with step 2.
//!
//! Step 3 alone, with a timestamp so old that its locks have expired, is the sweep of locks that dead coordinators have
//! left and no reader meets.

use std::sync::Arc;
use std::time::Duration;

use kv::Key;
use kv::client::{ClientError, LockPage};
use tso::Timestamp;

use crate::coordinator::Coordinator;
use crate::error::TxnError;
use crate::resolver::Resolved;

/// How long a round waits for the transactions that still hold old locks.
const PATIENCE: Duration = Duration::from_secs(10);
/// The least and the longest pause before their locks are looked at again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Why the safe point was not raised everywhere. It may be tried again.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// A region could not be reached, or refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Locks could not be resolved.
    #[error(transparent)]
    Txn(#[from] TxnError),
    /// Transactions at or below the safe point hold locks and are not over; names one of them.
    #[error("transaction {0} is older than the safe point, and still holds locks")]
    Held(Timestamp),
}

/// Raises safe points.
#[derive(Clone)]
pub struct Collection {
    coordinator: Arc<Coordinator>,
}

impl Collection {
    pub(crate) fn new(coordinator: Arc<Coordinator>) -> Collection {
        Collection { coordinator }
    }

    /// Raises the safe point of all regions to `safe_point`, which the oracle has issued or passed, and which no live
    /// transaction is at or below. On return reads below it fail everywhere, but for replicas that lag.
    ///
    /// # Errors
    ///
    /// [`CollectionError`]: some regions may have it.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time, and the safe point be raised again.
    pub async fn raise(&self, safe_point: Timestamp) -> Result<(), CollectionError> {
        self.raise_all((safe_point, Timestamp::ZERO)).await?;
        self.resolve_locks(safe_point).await?;
        self.raise_all((safe_point, safe_point)).await
    }

    async fn raise_all(&self, to: (Timestamp, Timestamp)) -> Result<(), CollectionError> {
        let mut at = Some(Key::new(""));
        while let Some(key) = at {
            at = self.coordinator.kv.raise_safe_point(&key, to).await?;
        }
        Ok(())
    }

    /// Resolves the locks of all transactions at or below `max_ts`, in all regions. Waits a while for those that live.
    async fn resolve_locks(&self, max_ts: Timestamp) -> Result<(), CollectionError> {
        let (mut waited, mut pause) = (Duration::ZERO, PAUSES.0);
        let mut start = Key::new("");
        loop {
            let LockPage { locks, resume } = self.coordinator.kv.old_locks(&start, max_ts).await?;
            if !locks.is_empty() {
                let found = locks.len();
                let Resolved { holders, .. } = self.coordinator.resolver.resolve(locks, Timestamp::ZERO).await?;
                tracing::debug!(found, held = holders.len(), %max_ts, "old locks");
                if let Some(holder) = holders.first() {
                    if waited >= PATIENCE {
                        return Err(CollectionError::Held(holder.start_ts));
                    }
                    tokio::time::sleep(pause).await;
                    waited += pause;
                    pause = (pause * 2).min(PAUSES.1);
                }
                // The same page again: what it had is gone, or is waited for.
                continue;
            }
            let Some(next) = resume else { return Ok(()) };
            start = next;
        }
    }

    /// Resolves the locks of transactions at or below `max_ts` that are over, in all regions, and leaves the others.
    /// Returns how many locks it has met. For locks that nobody else meets.
    ///
    /// # Errors
    ///
    /// [`CollectionError`]: some locks may be resolved.
    pub async fn sweep(&self, max_ts: Timestamp) -> Result<usize, CollectionError> {
        let (mut start, mut met) = (Key::new(""), 0);
        loop {
            let LockPage { locks, resume } = self.coordinator.kv.old_locks(&start, max_ts).await?;
            met += locks.len();
            if !locks.is_empty() {
                self.coordinator.resolver.resolve(locks, Timestamp::ZERO).await?;
            }
            let Some(next) = resume else { return Ok(met) };
            start = next;
        }
    }
}
