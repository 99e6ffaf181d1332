//! The coordinator of one node: the clients, caches and limits that its transactions and commits share, and the loop
//! that repeats a read past the locks of other transactions.

use std::future::Future;
use std::sync::Arc;

use kv::api::{KeyError, LockInfo, PASS_MAX};
use kv::client::{Client, ClientError, Jitter, Snapshot};
use parking_lot::Mutex;
use prometheus::Registry;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tso::{Timestamp, TsoClient};

use crate::config::TxnConfig;
use crate::error::TxnError;
use crate::metrics::Metrics;
use crate::resolver::{Resolved, Resolver};
use crate::timing::{Stopwatch, lock_pause};

/// Shared by the clones of a [`crate::Database`], their transactions and their commits.
pub(crate) struct Coordinator {
    pub(crate) kv: Client,
    pub(crate) tso: TsoClient,
    pub(crate) config: TxnConfig,
    pub(crate) resolver: Resolver,
    pub(crate) metrics: Metrics,
    /// Commits in progress, with their background work.
    pub(crate) tasks: TaskTracker,
    /// Permits for the work of a commit after its session was answered.
    pub(crate) background: Arc<Semaphore>,
    rng: Mutex<StdRng>,
}

impl Coordinator {
    /// Validates `config` and registers the metrics. Fails on an invalid setting, or if `registry` already holds the
    /// metrics of a coordinator.
    pub(crate) fn new(
        kv: Client,
        tso: TsoClient,
        config: TxnConfig,
        registry: &Registry,
    ) -> Result<Coordinator, TxnError> {
        config.validate().map_err(TxnError::Internal)?;
        let metrics = Metrics::new(registry).map_err(|error| TxnError::Internal(error.to_string()))?;
        #[expect(clippy::disallowed_methods, reason = "the edge where jitter gets its seed; settings may fix it")]
        let seed = config.seed.unwrap_or_else(rand::random);
        let resolver = Resolver::new(kv.clone(), tso.clone(), config.status_cache_entries, metrics.clone());
        #[cfg(feature = "planted-bugs")]
        let resolver = resolver.with_planted_bug(config.planted_bug);
        let background = Arc::new(Semaphore::new(config.background));
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        Ok(Coordinator { kv, tso, config, resolver, metrics, tasks: TaskTracker::new(), background, rng })
    }

    /// Draws the jitter of a pause.
    pub(crate) fn jitter(&self) -> Jitter {
        Jitter::new(self.rng.lock().random::<f64>())
    }

    /// Repeats `read` until it meets no lock that blocks it. `met` is what its first attempt has met, if that was made
    /// already. Resolves the locks of finished and dead transactions, and
    /// passes those of live ones, which are made to commit later. Waits for the others, up to `config.read_lock_wait`.
    pub(crate) async fn read<T, F, R>(
        &self,
        start_ts: Timestamp,
        mut met: Vec<LockInfo>,
        mut read: F,
    ) -> Result<T, TxnError>
    where
        F: FnMut(Snapshot) -> R,
        R: Future<Output = Result<T, ClientError>>,
    {
        let mut since_first_lock: Option<Stopwatch> = None;
        let mut attempt = 0u32;
        let mut pass: Vec<Timestamp> = Vec::new();
        loop {
            if met.is_empty() {
                met = match read(Snapshot { start_ts, pass: pass.clone() }).await {
                    Ok(value) => return Ok(value),
                    Err(ClientError::Key(KeyError::Locked(locks))) => locks,
                    Err(error) => return Err(read_error(error)),
                };
            }
            let waited = since_first_lock.get_or_insert_with(Stopwatch::start).elapsed();
            let Resolved { holders, passed } = self.resolver.resolve(std::mem::take(&mut met), start_ts).await?;
            pass.extend(passed);
            // The oldest are the most likely to have ended.
            pass.drain(..pass.len().saturating_sub(PASS_MAX));
            if waited >= self.config.read_lock_wait {
                let of =
                    holders.first().map_or_else(String::new, |holder| format!(" of transaction {}", holder.start_ts));
                return Err(TxnError::Conflict(format!("a read at {start_ts} waited {waited:?} for locks{of}")));
            }
            let Some(remaining) = holders.iter().map(|holder| holder.remaining).max() else { continue };
            attempt = attempt.saturating_add(1);
            self.metrics.waits.inc();
            tokio::time::sleep(lock_pause(attempt, Some(remaining), self.jitter())).await;
        }
    }
}

/// Maps a client error of a read.
fn read_error(error: ClientError) -> TxnError {
    match error {
        ClientError::Unavailable { .. } => TxnError::Unavailable(error.to_string()),
        // A read writes nothing, so its outcome is never undetermined.
        ClientError::Key(_)
        | ClientError::Undetermined(_)
        | ClientError::TooLarge { .. }
        | ClientError::Invalid(_)
        | ClientError::Failed(_) => TxnError::Internal(error.to_string()),
    }
}
