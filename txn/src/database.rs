//! The database handle: starts transactions, runs closures in them, and knows what commits have under way.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kv::api::KeyError;
use kv::client::{Client, ClientError, Jitter};
use parking_lot::Mutex;
use prometheus::Registry;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tso::{Timestamp, TsoClient};

use crate::clock::Stopwatch;
use crate::config::TxnConfig;
use crate::driver::{self, Commit, Outcome};
use crate::error::TxnError;
use crate::lock_wait::{conflict_wait, lock_wait};
use crate::metrics::Metrics;
use crate::resolver::Resolver;
use crate::transaction::Transaction;

/// A handle to the cluster; clones share caches and connections.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

/// What clones of a handle, its transactions and their commits share.
pub(crate) struct Shared {
    pub(crate) kv: Client,
    pub(crate) tso: TsoClient,
    pub(crate) config: TxnConfig,
    pub(crate) resolver: Resolver,
    pub(crate) metrics: Metrics,
    /// Commits under way, background work included.
    pub(crate) tasks: TaskTracker,
    /// Commits that may clear up after they were answered.
    pub(crate) background: Semaphore,
    rng: Mutex<StdRng>,
}

impl Database {
    /// Over a key-value client and a timestamp client, with default settings and metrics that nobody reads.
    pub fn new(kv: Client, tso: TsoClient) -> Database {
        #[expect(clippy::expect_used, reason = "the defaults are valid, and a fresh registry holds no duplicate")]
        Database::with_config(kv, tso, TxnConfig::default(), &Registry::new()).expect("defaults are valid")
    }

    /// With settings, counting into `registry`. Fails on an invalid setting, or if the registry already holds a
    /// database's metrics.
    pub fn with_config(
        kv: Client,
        tso: TsoClient,
        config: TxnConfig,
        registry: &Registry,
    ) -> Result<Database, TxnError> {
        config.validate().map_err(TxnError::Internal)?;
        let metrics = Metrics::new(registry).map_err(|error| TxnError::Internal(error.to_string()))?;
        #[expect(clippy::disallowed_methods, reason = "the edge where jitter gets its seed; settings may fix it")]
        let seed = config.seed.unwrap_or_else(rand::random);
        let resolver = Resolver::new(kv.clone(), tso.clone(), config.decided_transactions, metrics.clone());
        let background = Semaphore::new(config.background);
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        let shared = Shared { kv, tso, config, resolver, metrics, tasks: TaskTracker::new(), background, rng };
        Ok(Database { shared: Arc::new(shared) })
    }

    /// Starts a transaction whose snapshot is now: it sees everything acknowledged before the call. Costs one
    /// timestamp, and the reads of a transaction that writes nothing need no other.
    pub async fn begin(&self) -> Result<Transaction, TxnError> {
        let start_ts = self.shared.tso.timestamp().await?;
        Ok(Transaction::new(Arc::clone(&self.shared), start_ts))
    }

    /// Runs `body` in a transaction and commits it; after a conflict, again in a new one, up to `run_attempts` times.
    /// `body` must bear being run several times: whatever it does outside of the transaction is done each time. Not
    /// repeated: a commit whose outcome is unknown.
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
            match result {
                Err(TxnError::Conflict(_)) if attempt < self.shared.config.run_attempts => {
                    self.shared.metrics.reruns.inc();
                    tokio::time::sleep(conflict_wait(attempt, self.shared.jitter())).await;
                }
                result => return result,
            }
        }
    }

    /// Waits until no commit has anything under way, for a graceful stop; no longer than `limit`. True if all is done.
    /// The caller sees to it that no transaction is committed any more.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.shared.tasks.close();
        let done = tokio::time::timeout(limit, self.shared.tasks.wait()).await.is_ok();
        self.shared.tasks.reopen();
        done
    }
}

impl Shared {
    /// A number for a wait.
    pub(crate) fn jitter(&self) -> Jitter {
        Jitter::new(self.rng.lock().random::<f64>())
    }

    /// Runs a commit in a task of its own.
    pub(crate) async fn commit(self: Arc<Self>, commit: Commit) -> Outcome {
        driver::commit(self, commit).await
    }

    /// Repeats a read until no lock is in its way: resolves those of the dead, waits for those of the living.
    pub(crate) async fn read<T, F, R>(&self, start_ts: Timestamp, mut read: F) -> Result<T, TxnError>
    where
        F: FnMut() -> R,
        R: Future<Output = Result<T, ClientError>>,
    {
        let mut waiting: Option<Stopwatch> = None;
        let mut attempt = 0u32;
        loop {
            let locks = match read().await {
                Ok(value) => return Ok(value),
                Err(ClientError::Key(KeyError::Locked(locks))) => locks,
                Err(error) => return Err(read_failure(error)),
            };
            let waited = waiting.get_or_insert_with(Stopwatch::start).elapsed();
            let living = self.resolver.resolve(locks).await?;
            if waited >= self.config.read_lock_wait {
                let of =
                    living.first().map_or_else(String::new, |holder| format!(" of transaction {}", holder.start_ts));
                return Err(TxnError::Conflict(format!("a read at {start_ts} waited {waited:?} for locks{of}")));
            }
            let Some(remaining) = living.iter().map(|holder| holder.remaining).max() else { continue };
            attempt = attempt.saturating_add(1);
            self.metrics.waits.inc();
            tokio::time::sleep(lock_wait(attempt, Some(remaining), self.jitter())).await;
        }
    }
}

/// What an error of the client means for a read.
fn read_failure(error: ClientError) -> TxnError {
    match error {
        ClientError::Unavailable { .. } => TxnError::Unavailable(error.to_string()),
        // A read writes nothing.
        ClientError::Key(_)
        | ClientError::Undetermined(_)
        | ClientError::TooLarge { .. }
        | ClientError::Invalid(_)
        | ClientError::Failed(_) => TxnError::Internal(error.to_string()),
    }
}
