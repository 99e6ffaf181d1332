//! The database handle: begins transactions, runs closures in them, and drains the commits in progress.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kv::Key;
use kv::client::Client;
use prometheus::Registry;
use tso::oracle::advance_max;
use tso::{NewestTimestamp, Timestamp, TsoClient};

use crate::collection::Collection;
use crate::config::TxnConfig;
use crate::coordinator::Coordinator;
use crate::error::TxnError;
use crate::live_locks::LockKind;
use crate::live_snapshots::{LiveSnapshot, OldestSnapshot};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::resolver::TxnOutcome;
use crate::timing::rerun_pause;
use crate::transaction::Transaction;

/// A handle to the cluster. Clones are cheap and share connections, caches, limits and commits in progress. Any number
/// of tasks may call its methods at once.
///
/// # Panics
/// The futures panic outside of a tokio runtime.
#[derive(Clone)]
pub struct Database {
    coordinator: Arc<Coordinator>,
}

impl Database {
    /// What its transactions share.
    pub(crate) fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    /// A database with default settings and a metrics registry of its own.
    pub fn new(kv: Client, tso: TsoClient) -> Database {
        #[expect(clippy::expect_used, reason = "the defaults are valid, and a fresh registry holds no duplicate")]
        Database::with_config(kv, tso, TxnConfig::default(), &Registry::new()).expect("defaults are valid")
    }

    /// A database with these settings, whose metrics are registered in `registry`.
    ///
    /// # Errors
    /// [`TxnError::Internal`] if a setting is below its minimum, or if `registry` already holds the metrics of a
    /// database.
    pub fn with_config(
        kv: Client,
        tso: TsoClient,
        config: TxnConfig,
        registry: &Registry,
    ) -> Result<Database, TxnError> {
        Ok(Database { coordinator: Arc::new(Coordinator::new(kv, tso, config, registry)?) })
    }

    /// Begins a transaction whose snapshot contains every commit acknowledged before the first poll of the future.
    /// Fetches one timestamp; a transaction that writes nothing and meets no lock needs no other.
    ///
    /// # Errors
    /// [`TxnError::Unavailable`] if no oracle answers within the timestamp client's deadline (10 s by default), if too
    /// many callers wait for timestamps, or if the timestamp client is closed.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time, without an effect.
    pub async fn begin(&self) -> Result<Transaction, TxnError> {
        let live = self.enter();
        let start_ts = self.coordinator.tso.timestamp().await?;
        Ok(Transaction::new(Arc::clone(&self.coordinator), live, Some(start_ts)))
    }

    /// Begins a transaction that takes start_ts when it needs it, so that its snapshot contains every commit that was
    /// acknowledged before its first read. If the oracle is on this node, it takes start_ts now, which costs nothing.
    /// See [`Transaction`].
    pub fn begin_deferred(&self) -> Transaction {
        let live = self.enter();
        Transaction::new(Arc::clone(&self.coordinator), live, self.coordinator.tso.try_timestamp())
    }

    /// Begins a transaction that reads the past, at a timestamp that the oracle has issued, or that lies below one. It
    /// never writes. Asks the oracle only if this node has received no timestamp as great.
    ///
    /// Garbage collection may have passed the timestamp. Then its reads fail with [`TxnError::SnapshotTooOld`].
    ///
    /// # Errors
    /// [`TxnError::InFuture`] if the oracle has not issued a timestamp as great; those of [`Database::begin`].
    pub async fn begin_at(&self, start_ts: Timestamp) -> Result<Transaction, TxnError> {
        self.check_issued(start_ts).await?;
        let live = self.enter();
        live.lower(start_ts);
        Ok(Transaction::new(Arc::clone(&self.coordinator), live, Some(start_ts)).shared())
    }

    /// Begins a transaction whose first read takes the snapshot, from the replica that serves it, as its options say
    /// ([`Transaction::set_reads`]). It never writes.
    pub fn begin_shared(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.coordinator), self.enter(), None).shared()
    }

    /// Enters a transaction among those that live, before it has a timestamp.
    fn enter(&self) -> LiveSnapshot {
        self.coordinator.live_snapshots.enter(&self.coordinator.tso)
    }

    /// The transaction of this node that looks back furthest: nothing at or above its bound may be collected. It counts
    /// for all that begin later, too, but for snapshots in the past ([`Database::begin_at`]). `None` if this node has
    /// never had a timestamp.
    pub fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        self.coordinator.live_snapshots.oldest(&self.coordinator.tso)
    }

    /// Takes note of a timestamp of the oracle that this node has received otherwise.
    pub fn note(&self, timestamp: Timestamp) {
        self.coordinator.tso.note(timestamp);
    }

    /// Raises the safe point of garbage collection in all regions; see [`Collection`].
    pub fn collection(&self) -> Collection {
        Collection::new(Arc::clone(&self.coordinator))
    }

    /// Fails unless the oracle has issued `timestamp` or a greater one.
    ///
    /// # Errors
    /// As [`Database::begin_at`].
    pub async fn check_issued(&self, timestamp: Timestamp) -> Result<(), TxnError> {
        let tso = &self.coordinator.tso;
        if timestamp <= tso.newest().timestamp {
            return Ok(());
        }
        if timestamp <= tso.timestamp().await? { Ok(()) } else { Err(TxnError::InFuture(timestamp)) }
    }

    /// About the oracle's time: that of the newest timestamp that this node has received, and the time since. Asks the
    /// oracle only if it has received none. Not a snapshot: see [`Database::begin_at`].
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub async fn now(&self) -> Result<Timestamp, TxnError> {
        let NewestTimestamp { timestamp, age } = self.coordinator.tso.newest();
        if timestamp == Timestamp::ZERO {
            return Ok(self.coordinator.tso.timestamp().await?);
        }
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Ok(if age == 0 { timestamp } else { Timestamp::new(timestamp.physical_ms().saturating_add(age), 0) })
    }

    /// The transactions of this node that may have row locks in memory, each with its session
    /// ([`Transaction::set_session`]).
    pub fn row_lockers(&self) -> Vec<(Timestamp, u32)> {
        self.coordinator.live_locks.sessions()
    }

    /// The sessions of this node that wait for locks of others. A wait counts once a leader has answered that there is
    /// somebody in the way: after a tenth of a second.
    pub fn waiting_sessions(&self) -> Vec<(u32, LockKind)> {
        self.coordinator.live_locks.waiting()
    }

    /// A timestamp that the oracle has not passed by now, unless it was handed over unseen by this node: from the
    /// newest that this node has received. [`Timestamp::MAX`] if it has received none.
    pub fn latest(&self) -> Timestamp {
        let NewestTimestamp { timestamp, age } = self.coordinator.tso.newest();
        if timestamp == Timestamp::ZERO {
            return Timestamp::MAX;
        }
        let advance = u64::try_from(advance_max(age).as_millis()).unwrap_or(u64::MAX);
        Timestamp::new(timestamp.physical_ms().saturating_add(advance).saturating_add(1), 0)
    }

    /// Runs `body` in a transaction and commits it. After a conflict, in `body` or in the commit, runs it again in a
    /// new transaction, up to [`TxnConfig::run_attempts`] times in all, with growing pauses.
    ///
    /// `body` must tolerate reruns: its effects outside of the transaction happen each time.
    ///
    /// # Errors
    /// - [`TxnError::Conflict`] of the last attempt.
    /// - Any other error of [`Database::begin`], `body` or [`Transaction::commit`], at once. In particular a commit
    ///   with an unknown outcome ([`TxnError::Undetermined`]) is not repeated.
    ///
    /// # Cancel safety
    /// If the future is dropped during the commit, the commit continues; see [`Transaction::commit`]. If it is dropped
    /// before, nothing is committed.
    pub async fn run<T, F>(&self, mut body: F) -> Result<T, TxnError>
    where
        F: for<'a> FnMut(&'a mut Transaction) -> BoxFuture<'a, Result<T, TxnError>> + Send,
        T: Send,
    {
        let mut attempt = 0;
        loop {
            let mut txn = self.begin().await?;
            let result = match body(&mut txn).await {
                Ok(value) => txn.commit().await.map(|_| value),
                Err(error) => Err(error),
            };
            attempt += 1;
            #[cfg(feature = "planted-bugs")]
            if self.coordinator.config.planted_bug == Some(PlantedBug::UnknownOutcomeRerun)
                && matches!(result, Err(TxnError::Undetermined { .. }))
            {
                continue;
            }
            match result {
                Err(TxnError::Conflict(_)) if attempt < self.coordinator.config.run_attempts => {
                    self.coordinator.metrics.reruns.inc();
                    tokio::time::sleep(rerun_pause(attempt, self.coordinator.jitter())).await;
                }
                result => return result,
            }
        }
    }

    /// What became of the transaction that a [`TxnError::Undetermined`] names. Changes nothing. It may be asked at any
    /// time and through any node.
    ///
    /// # Errors
    /// - [`TxnError::Unavailable`]: a region did not serve in time.
    /// - [`TxnError::Internal`]: `primary` is not the primary of that transaction, or its data is damaged.
    pub async fn outcome(&self, start_ts: Timestamp, primary: &Key) -> Result<TxnOutcome, TxnError> {
        self.coordinator.resolver.outcome(start_ts, primary).await
    }

    /// Waits until every commit in progress and its background work has ended, at most `limit`. Returns whether all
    /// have ended. For a graceful stop: the caller makes sure that no transaction commits any more, and calls it once
    /// at a time.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time; the commits continue.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.coordinator.tasks.close();
        let done = tokio::time::timeout(limit, self.coordinator.tasks.wait()).await.is_ok();
        self.coordinator.tasks.reopen();
        done
    }
}
