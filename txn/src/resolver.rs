//! Lock resolution: decides the locks of other transactions that a read or a prewrite met.
//!
//! The outcome of a lock is the outcome of its transaction, which is recorded at the primary. `check_txn_status` asks
//! the primary's region, with a fresh timestamp by which that region judges whether the lock has expired; if so, it
//! rolls the transaction back. The locks of a finished transaction are committed or rolled back at once.
//!
//! A **reader** does not wait for a live transaction: it passes a lock whose transaction certainly commits above its
//! timestamp. The primary's region pushes the transaction there, durably, before it answers. Also a transaction whose
//! primary is not locked yet commits above: its commit_ts is fetched after that lock is acknowledged. (If a region
//! computes it, then above the reader's timestamp, which the question left there.) A **writer** waits.
//!
//! The outcome of an **asynchronous commit** is that of all its keys, which the primary's lock names. If all are
//! locked, it is committed at the greatest of their min_commit_ts. If one is missing, it gets a min_commit_ts above the
//! reader's timestamp, so the reader passes. Once the primary's lock has expired, the missing key is marked, which
//! rolls the transaction back. A lock without the async flag shows that it fell back to two phases: the primary
//! decides.
//!
//! A primary without lock and without record may still be in a prewrite on its way. A rollback record, which makes that
//! prewrite fail, is written there only after the lock that was met has outlived its own ttl. Until then its holder
//! counts as live.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kv::Key;
use kv::api::{CheckTxnStatusRequest, KeyError, LockInfo, LocksStatus, TxnStatus};
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

/// What became of a transaction, as its keys say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnOutcome {
    /// It committed at this timestamp.
    Committed(Timestamp),
    /// It was rolled back, and never commits.
    RolledBack,
    /// Its locks are there, and nothing is decided.
    Undecided,
    /// Its primary has neither a lock nor a record of it: nothing of it has arrived, and still may.
    Missing,
    /// It is older than the safe point of garbage collection, and its record may be collected: nobody knows any more.
    /// It writes nothing more.
    Collected,
}

/// What remains of the locks that were resolved.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// The live transactions to wait for.
    pub(crate) holders: Vec<Holder>,
    /// The transactions that the reader passes.
    pub(crate) passed: Vec<Timestamp>,
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
    /// It commits above the reader's timestamp, if at all.
    Passed,
}

/// What is asked about a transaction.
#[derive(Clone, Copy)]
struct Question<'a> {
    group: &'a LockGroup,
    /// A fresh timestamp.
    now: Timestamp,
    /// The timestamp of the reader; [`Timestamp::ZERO`] for a writer.
    reader_ts: Timestamp,
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

    /// Commits or rolls back the locks of finished transactions. `reader_ts` is the timestamp of the read that met
    /// them, [`Timestamp::ZERO`] for a writer.
    pub(crate) async fn resolve(&self, locks: Vec<LockInfo>, reader_ts: Timestamp) -> Result<Resolved, TxnError> {
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
        let work = known.into_iter().chain(unknown);
        let work = work.map(|(status, group)| self.resolve_group(group, status, now, reader_ts));
        let mut outcomes = stream::iter(work).buffer_unordered(CONCURRENT_RESOLUTIONS);
        let mut resolved = Resolved::default();
        while let Some(outcome) = outcomes.next().await {
            match outcome? {
                (_, Status::Final(_)) => {}
                (_, Status::Live(holder)) => resolved.holders.push(holder),
                (start_ts, Status::Passed) => resolved.passed.push(start_ts),
            }
        }
        self.metrics.passed.inc_by(resolved.passed.len() as u64);
        Ok(resolved)
    }

    /// Resolves the locks of one transaction. `known` is its status from the cache.
    async fn resolve_group(
        &self,
        group: LockGroup,
        known: Option<FinalStatus>,
        now: Timestamp,
        reader_ts: Timestamp,
    ) -> Result<(Timestamp, Status), TxnError> {
        let start_ts = group.start_ts;
        let status = match known {
            Some(status) => status,
            None => match self.check_primary(Question { group: &group, now, reader_ts }, false).await? {
                Status::Final(status) => {
                    self.statuses.lock().insert(start_ts, status)?;
                    status
                }
                open => return Ok((start_ts, open)),
            },
        };
        self.kv.resolve_locks(&group.keys, start_ts, status.commit_ts()).await.map_err(resolve_error)?;
        self.metrics.resolved.inc_by(group.keys.len() as u64);
        Ok((start_ts, Status::Final(status)))
    }

    /// Asks the primary's region for the status of a transaction. `fell_back` says that a lock without the async flag
    /// was seen.
    async fn check_primary(&self, question: Question<'_>, fell_back: bool) -> Result<Status, TxnError> {
        let Question { group, now, reader_ts } = question;
        let start_ts = group.start_ts;
        let request = CheckTxnStatusRequest {
            primary: group.primary.clone(),
            lock_ts: start_ts,
            current_ts: now,
            rollback_if_missing: now.physical_ms() > group.expires_ms,
            reader_ts,
            fell_back,
        };
        let is_reader = reader_ts > Timestamp::ZERO;
        let status = match self.kv.check_txn_status(request).await {
            // All its locks were resolved before: the one that was met is gone. Whoever met it looks again.
            Err(ClientError::Key(KeyError::Collected { .. })) => {
                return Ok(Status::Live(Holder { start_ts, remaining: Duration::ZERO }));
            }
            status => status.map_err(resolve_error)?,
        };
        Ok(match status {
            #[cfg(feature = "planted-bugs")]
            TxnStatus::Committed { .. } if self.planted_bug == Some(PlantedBug::CommittedRolledBack) => {
                Status::Final(FinalStatus::RolledBack)
            }
            TxnStatus::Committed { commit_ts } => Status::Final(FinalStatus::Committed(commit_ts)),
            TxnStatus::RolledBack => Status::Final(FinalStatus::RolledBack),
            TxnStatus::Alive { min_commit_ts, .. } if is_reader && min_commit_ts > reader_ts => Status::Passed,
            TxnStatus::Alive { ttl_ms, .. } => {
                Status::Live(holder(start_ts, start_ts.physical_ms().saturating_add(ttl_ms), now))
            }
            TxnStatus::Async { min_commit_ts, .. } if is_reader && min_commit_ts > reader_ts => Status::Passed,
            TxnStatus::Async { ttl_ms, secondaries, .. } => {
                return Box::pin(self.check_async(question, ttl_ms, secondaries)).await;
            }
            TxnStatus::Missing if is_reader => Status::Passed,
            TxnStatus::Missing => Status::Live(holder(start_ts, group.expires_ms, now)),
        })
    }

    /// What became of a transaction. Changes nothing: its locks stay, expired or not.
    pub(crate) async fn outcome(&self, start_ts: Timestamp, primary: &Key) -> Result<TxnOutcome, TxnError> {
        let never = Timestamp::ZERO;
        let request = CheckTxnStatusRequest {
            primary: primary.clone(),
            lock_ts: start_ts,
            current_ts: never,
            rollback_if_missing: false,
            reader_ts: never,
            fell_back: false,
        };
        let status = match self.kv.check_txn_status(request).await {
            Err(ClientError::Key(KeyError::Collected { .. })) => return Ok(TxnOutcome::Collected),
            status => status.map_err(resolve_error)?,
        };
        Ok(match status {
            TxnStatus::Committed { commit_ts } => TxnOutcome::Committed(commit_ts),
            TxnStatus::RolledBack => TxnOutcome::RolledBack,
            TxnStatus::Alive { .. } => TxnOutcome::Undecided,
            TxnStatus::Missing => TxnOutcome::Missing,
            TxnStatus::Async { secondaries, .. } => {
                let keys: Vec<Key> = secondaries.into_iter().chain([primary.clone()]).collect();
                let locks = match self.kv.check_locks(&keys, start_ts, never, false).await {
                    Err(ClientError::Key(KeyError::Collected { .. })) => return Ok(TxnOutcome::Collected),
                    locks => locks.map_err(resolve_error)?,
                };
                match locks {
                    LocksStatus::Locked { min_commit_ts: commit_ts } | LocksStatus::Committed { commit_ts } => {
                        TxnOutcome::Committed(commit_ts)
                    }
                    LocksStatus::RolledBack => TxnOutcome::RolledBack,
                    LocksStatus::Missing | LocksStatus::TwoPhase => TxnOutcome::Undecided,
                }
            }
        })
    }

    /// Asks all keys of an asynchronous commit for its status. `ttl_ms` is that of its primary's lock.
    async fn check_async(
        &self,
        question: Question<'_>,
        ttl_ms: u64,
        secondaries: Vec<Key>,
    ) -> Result<Status, TxnError> {
        let Question { group, now, reader_ts } = question;
        let start_ts = group.start_ts;
        let expires_ms = start_ts.physical_ms().saturating_add(ttl_ms);
        let is_expired = expires_ms < now.physical_ms();
        let mut keys = secondaries;
        keys.push(group.primary.clone());
        let status = match self.kv.check_locks(&keys, start_ts, reader_ts, is_expired).await {
            Err(ClientError::Key(KeyError::Collected { .. })) => {
                return Ok(Status::Live(Holder { start_ts, remaining: Duration::ZERO }));
            }
            status => status.map_err(resolve_error)?,
        };
        Ok(match status {
            LocksStatus::Locked { min_commit_ts: commit_ts } | LocksStatus::Committed { commit_ts } => {
                Status::Final(FinalStatus::Committed(commit_ts))
            }
            LocksStatus::RolledBack => Status::Final(FinalStatus::RolledBack),
            LocksStatus::Missing if reader_ts > Timestamp::ZERO => Status::Passed,
            LocksStatus::Missing => Status::Live(holder(start_ts, expires_ms, now)),
            LocksStatus::TwoPhase => return self.check_primary(question, true).await,
        })
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
        ClientError::Overloaded { .. } => TxnError::Overloaded(error.to_string()),
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
