//! Lock resolution: decides the locks of other transactions that a read or a prewrite met.
//!
//! The outcome of a lock is the outcome of its transaction, which is recorded at the primary. `check_txn_status` asks
//! the primary's region, with a fresh timestamp by which that region judges whether the lock has expired; if so, it
//! rolls the transaction back. The locks of a finished transaction are committed or rolled back at once. The locks of a
//! live one are returned to the caller, which waits for them.
//!
//! A primary without lock and without record may still be in a prewrite on its way. A rollback record, which makes that
//! prewrite fail, is written there only after the lock that was met has outlived its own ttl. Until then its holder
//! counts as live.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kv::Key;
use kv::api::{CheckTxnStatusRequest, LockInfo, TxnStatus};
use kv::client::{Client, ClientError};
use parking_lot::Mutex;
use tso::{Timestamp, TsoClient};

use crate::error::TxnError;
use crate::metrics::Metrics;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::status_cache::{FinalStatus, StatusCache};

/// The most transactions resolved concurrently, of those that one request met.
const CONCURRENT_RESOLUTIONS: usize = 8;

/// A live transaction that holds locks we met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The transaction.
    pub(crate) start_ts: Timestamp,
    /// How long its lock lives without a further heartbeat.
    pub(crate) remaining: Duration,
}

/// Resolves locks and caches the final statuses of their transactions.
pub(crate) struct Resolver {
    kv: Client,
    tso: TsoClient,
    statuses: Mutex<StatusCache>,
    metrics: Metrics,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

/// The locks of one transaction, of those that a request met.
#[derive(Debug, PartialEq, Eq)]
struct LockGroup {
    start_ts: Timestamp,
    primary: Key,
    keys: Vec<Key>,
    /// When the last of these locks expires, on the oracle's clock.
    expires_ms: u64,
}

/// The status of a transaction at its primary.
enum Status {
    Final(FinalStatus),
    Live(Holder),
}

impl Resolver {
    pub(crate) fn new(kv: Client, tso: TsoClient, cache_entries: usize, metrics: Metrics) -> Resolver {
        Resolver {
            kv,
            tso,
            statuses: Mutex::new(StatusCache::new(cache_entries)),
            metrics,
            #[cfg(feature = "planted-bugs")]
            planted_bug: None,
        }
    }

    /// The resolver with this deliberate bug.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> Resolver {
        self.planted_bug = bug;
        self
    }

    /// Commits or rolls back the locks of finished transactions. Returns the holders of the others.
    pub(crate) async fn resolve(&self, locks: Vec<LockInfo>) -> Result<Vec<Holder>, TxnError> {
        let (known, unknown): (Vec<_>, Vec<_>) = {
            let statuses = self.statuses.lock();
            group_by_transaction(locks)
                .into_iter()
                .map(|group| (statuses.get(group.start_ts), group))
                .partition(|(status, _)| status.is_some())
        };
        // Fetched once for all transactions, after the locks were met. Time only advances from here: a lock that is
        // expired at `now` is expired when the primary's region checks it.
        let now = if unknown.is_empty() { Timestamp::ZERO } else { self.tso.timestamp().await? };
        let work = known.into_iter().chain(unknown).map(|(status, group)| self.resolve_group(group, status, now));
        let mut outcomes = stream::iter(work).buffer_unordered(CONCURRENT_RESOLUTIONS);
        let mut holders = Vec::new();
        while let Some(outcome) = outcomes.next().await {
            holders.extend(outcome?);
        }
        Ok(holders)
    }

    /// Resolves the locks of one transaction; returns it if it is live. `known` is its status from the cache.
    async fn resolve_group(
        &self,
        group: LockGroup,
        known: Option<FinalStatus>,
        now: Timestamp,
    ) -> Result<Option<Holder>, TxnError> {
        let status = match known {
            Some(status) => status,
            None => match self.check_primary(&group, now).await? {
                Status::Final(status) => status,
                Status::Live(holder) => return Ok(Some(holder)),
            },
        };
        self.kv.resolve_locks(&group.keys, group.start_ts, status.commit_ts()).await.map_err(resolve_error)?;
        self.metrics.resolved.inc_by(group.keys.len() as u64);
        Ok(None)
    }

    /// Asks the primary's region for the status of a transaction, and caches a final one.
    async fn check_primary(&self, group: &LockGroup, now: Timestamp) -> Result<Status, TxnError> {
        let start_ts = group.start_ts;
        let request = CheckTxnStatusRequest {
            primary: group.primary.clone(),
            lock_ts: start_ts,
            current_ts: now,
            rollback_if_missing: now.physical_ms() > group.expires_ms,
        };
        let status = match self.kv.check_txn_status(request).await.map_err(resolve_error)? {
            #[cfg(feature = "planted-bugs")]
            TxnStatus::Committed { .. } if self.planted_bug == Some(PlantedBug::CommittedRolledBack) => {
                FinalStatus::RolledBack
            }
            TxnStatus::Committed { commit_ts } => FinalStatus::Committed(commit_ts),
            TxnStatus::RolledBack => FinalStatus::RolledBack,
            TxnStatus::Alive { ttl_ms } => {
                return Ok(Status::Live(holder(start_ts, start_ts.physical_ms().saturating_add(ttl_ms), now)));
            }
            TxnStatus::Missing => return Ok(Status::Live(holder(start_ts, group.expires_ms, now))),
        };
        self.statuses.lock().insert(start_ts, status)?;
        Ok(Status::Final(status))
    }
}

fn holder(start_ts: Timestamp, expires_ms: u64, now: Timestamp) -> Holder {
    Holder { start_ts, remaining: Duration::from_millis(expires_ms.saturating_sub(now.physical_ms())) }
}

/// Groups locks by the transaction that holds them, with distinct keys in ascending order.
fn group_by_transaction(locks: Vec<LockInfo>) -> Vec<LockGroup> {
    let mut groups: BTreeMap<Timestamp, LockGroup> = BTreeMap::new();
    for lock in locks {
        let expires_ms = lock.start_ts.physical_ms().saturating_add(lock.ttl_ms);
        let group = groups.entry(lock.start_ts).or_insert_with(|| LockGroup {
            start_ts: lock.start_ts,
            primary: lock.primary,
            keys: Vec::new(),
            expires_ms,
        });
        group.expires_ms = group.expires_ms.max(expires_ms);
        group.keys.push(lock.key);
    }
    for group in groups.values_mut() {
        group.keys.sort();
        group.keys.dedup();
    }
    groups.into_values().collect()
}

/// Maps a client error of a lock resolution.
fn resolve_error(error: ClientError) -> TxnError {
    match error {
        ClientError::Unavailable { .. } | ClientError::Undetermined(_) => TxnError::Unavailable(error.to_string()),
        ClientError::Key(_) | ClientError::TooLarge { .. } | ClientError::Invalid(_) | ClientError::Failed(_) => {
            TxnError::Internal(format!("resolving a lock: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(key: &str, start_ms: u64, ttl_ms: u64) -> LockInfo {
        let key = Key::new(key.to_owned());
        LockInfo { key, primary: Key::new("p"), start_ts: Timestamp::new(start_ms, 0), ttl_ms }
    }

    #[test]
    fn locks_are_grouped_by_transaction() {
        let groups = group_by_transaction(vec![lock("b", 5, 10), lock("a", 5, 30), lock("c", 2, 1), lock("b", 5, 10)]);
        let keys: Vec<Vec<Key>> = groups.iter().map(|group| group.keys.clone()).collect();
        assert_eq!(keys, vec![vec![Key::new("c")], vec![Key::new("a"), Key::new("b")]]);
        assert_eq!(groups.iter().map(|group| group.expires_ms).collect::<Vec<_>>(), vec![3, 35]);
    }

    #[test]
    fn the_remaining_life_saturates_at_zero() {
        assert_eq!(holder(Timestamp::ZERO, 10, Timestamp::new(4, 0)).remaining, Duration::from_millis(6));
        assert_eq!(holder(Timestamp::ZERO, 10, Timestamp::new(40, 0)).remaining, Duration::ZERO);
    }
}
