//! Lock resolution: what to do about the locks of others that a read or a prewrite met.
//!
//! A lock's fate is that of its transaction, and that is written at the primary: `check_txn_status` asks there, with a
//! fresh timestamp by which the primary's region judges whether the lock has expired (and then rolls the transaction
//! back). Locks of a decided transaction are committed or removed on the spot; those of a living one are left, for the
//! caller to wait for.
//!
//! A primary that holds neither lock nor record may still be on its way in a prewrite. Only when the lock that was met
//! has outlived its own ttl is a rollback record written there, which makes that prewrite fail; until then the owner
//! counts as living.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kv::Key;
use kv::api::{CheckTxnStatusRequest, LockInfo, TxnStatus};
use kv::client::{Client, ClientError};
use parking_lot::Mutex;
use tso::{Timestamp, TsoClient};

use crate::decided::{Decided, Fate};
use crate::error::TxnError;
use crate::metrics::Metrics;

/// Transactions whose locks are resolved at once, of those that one request met.
const AT_ONCE: usize = 8;

/// A living transaction that holds locks we met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The transaction.
    pub(crate) start_ts: Timestamp,
    /// How long its lock lives on without a heartbeat.
    pub(crate) remaining: Duration,
}

/// Resolves locks; knows the fates it has seen.
pub(crate) struct Resolver {
    kv: Client,
    tso: TsoClient,
    decided: Mutex<Decided>,
    metrics: Metrics,
}

/// The locks of one transaction that a request met.
#[derive(Debug, PartialEq, Eq)]
struct Met {
    start_ts: Timestamp,
    primary: Key,
    keys: Vec<Key>,
    /// When, on the oracle's clock, the last of these locks ends.
    ends_ms: u64,
}

impl Resolver {
    pub(crate) fn new(kv: Client, tso: TsoClient, capacity: usize, metrics: Metrics) -> Resolver {
        Resolver { kv, tso, decided: Mutex::new(Decided::new(capacity)), metrics }
    }

    /// Removes what locks can be removed; returns the owners of the others.
    pub(crate) async fn resolve(&self, locks: Vec<LockInfo>) -> Result<Vec<Holder>, TxnError> {
        let (known, unknown): (Vec<_>, Vec<_>) = {
            let decided = self.decided.lock();
            by_transaction(locks)
                .into_iter()
                .map(|met| (decided.get(met.start_ts), met))
                .partition(|(fate, _)| fate.is_some())
        };
        // Taken once for all, and after the locks were met: a lock that has expired by it had expired before.
        let now = if unknown.is_empty() { Timestamp::ZERO } else { self.tso.timestamp().await? };
        let work = known.into_iter().chain(unknown).map(|(fate, met)| self.resolve_one(met, fate, now));
        let mut outcomes = stream::iter(work).buffer_unordered(AT_ONCE);
        let mut living = Vec::new();
        while let Some(outcome) = outcomes.next().await {
            living.extend(outcome?);
        }
        Ok(living)
    }

    async fn resolve_one(&self, met: Met, fate: Option<Fate>, now: Timestamp) -> Result<Option<Holder>, TxnError> {
        let fate = match fate {
            Some(fate) => fate,
            None => match self.ask(&met, now).await? {
                Ok(fate) => fate,
                Err(holder) => return Ok(Some(holder)),
            },
        };
        self.kv.resolve_locks(&met.keys, met.start_ts, fate.commit_ts()).await.map_err(failure)?;
        self.metrics.resolved.inc_by(met.keys.len() as u64);
        Ok(None)
    }

    /// The fate of a transaction as its primary tells it, or its owner if it lives.
    async fn ask(&self, met: &Met, now: Timestamp) -> Result<Result<Fate, Holder>, TxnError> {
        let request = CheckTxnStatusRequest {
            primary: met.primary.clone(),
            lock_ts: met.start_ts,
            current_ts: now,
            rollback_if_missing: now.physical_ms() > met.ends_ms,
        };
        let fate = match self.kv.check_txn_status(request).await.map_err(failure)? {
            TxnStatus::Committed { commit_ts } => Fate::Committed(commit_ts),
            TxnStatus::RolledBack => Fate::RolledBack,
            TxnStatus::Alive { ttl_ms } => {
                return Ok(Err(holder(met.start_ts, met.start_ts.physical_ms().saturating_add(ttl_ms), now)));
            }
            TxnStatus::Missing => return Ok(Err(holder(met.start_ts, met.ends_ms, now))),
        };
        self.decided.lock().insert(met.start_ts, fate)?;
        Ok(Ok(fate))
    }
}

fn holder(start_ts: Timestamp, ends_ms: u64, now: Timestamp) -> Holder {
    Holder { start_ts, remaining: Duration::from_millis(ends_ms.saturating_sub(now.physical_ms())) }
}

/// Gathers locks by the transaction that holds them, each key once.
fn by_transaction(locks: Vec<LockInfo>) -> Vec<Met> {
    let mut met: BTreeMap<Timestamp, Met> = BTreeMap::new();
    for lock in locks {
        let ends_ms = lock.start_ts.physical_ms().saturating_add(lock.ttl_ms);
        let of = met.entry(lock.start_ts).or_insert_with(|| Met {
            start_ts: lock.start_ts,
            primary: lock.primary,
            keys: Vec::new(),
            ends_ms,
        });
        of.ends_ms = of.ends_ms.max(ends_ms);
        of.keys.push(lock.key);
    }
    for met in met.values_mut() {
        met.keys.sort();
        met.keys.dedup();
    }
    met.into_values().collect()
}

fn failure(error: ClientError) -> TxnError {
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
    fn locks_are_gathered_by_transaction() {
        let met = by_transaction(vec![lock("b", 5, 10), lock("a", 5, 30), lock("c", 2, 1), lock("b", 5, 10)]);
        let keys: Vec<Vec<Key>> = met.iter().map(|met| met.keys.clone()).collect();
        assert_eq!(keys, vec![vec![Key::new("c")], vec![Key::new("a"), Key::new("b")]]);
        assert_eq!(met.iter().map(|met| met.ends_ms).collect::<Vec<_>>(), vec![3, 35]);
    }

    #[test]
    fn the_remaining_life_never_goes_below_zero() {
        assert_eq!(holder(Timestamp::ZERO, 10, Timestamp::new(4, 0)).remaining, Duration::from_millis(6));
        assert_eq!(holder(Timestamp::ZERO, 10, Timestamp::new(40, 0)).remaining, Duration::ZERO);
    }
}
