//! The coordinator of one node: the clients, caches and limits that its transactions and commits share, and the loop
//! that repeats a read past the locks of other transactions.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kv::api::{KeyError, LockInfo, PASS_MAX};
use kv::client::{Client, ClientError, Jitter, ReadOptions, ReplicaPolicy, Snapshot};
use parking_lot::Mutex;
use prometheus::Registry;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tso::{Timestamp, TsoClient};

use crate::config::{SHADOW_KIB, TxnConfig};
use crate::error::TxnError;
use crate::live_locks::LiveLocks;
use crate::live_snapshots::{LiveSnapshot, LiveSnapshots};
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
    /// Commits in progress, with their background work, and reads of replicas that are being compared.
    pub(crate) tasks: TaskTracker,
    /// Permits for the work of a commit after its session was answered.
    pub(crate) background: Arc<Semaphore>,
    /// The transactions that may have row locks.
    pub(crate) live_locks: LiveLocks,
    /// How far its transactions look back.
    pub(crate) live_snapshots: Arc<LiveSnapshots>,
    /// The room, in KiB, for reads of replicas that wait to be compared.
    pub(crate) shadows: Arc<Semaphore>,
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
        let shadows = Arc::new(Semaphore::new(SHADOW_KIB));
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        Ok(Coordinator {
            kv,
            tso,
            config,
            resolver,
            metrics,
            tasks: TaskTracker::new(),
            background,
            live_locks: LiveLocks::default(),
            live_snapshots: Arc::default(),
            shadows,
            rng,
        })
    }

    /// Takes a name that was fetched ahead. It may be older than all that the transaction has seen, so the transaction
    /// looks back as far before it has the name.
    pub(crate) fn take_ahead(&self, live: &LiveSnapshot) -> Option<Timestamp> {
        self.tso.oldest_ahead().into_iter().for_each(|oldest| live.lower(oldest));
        let taken = self.tso.take_ahead()?;
        live.lower(taken);
        Some(taken)
    }

    /// Draws the jitter of a pause.
    pub(crate) fn jitter(&self) -> Jitter {
        Jitter::new(self.rng.lock().random::<f64>())
    }

    /// Whether a sample of this fraction of all holds the next one.
    pub(crate) fn draws(&self, fraction: f64) -> bool {
        fraction >= 1.0 || self.rng.lock().random_bool(fraction)
    }

    /// Repeats `read`, first with `at`, until it meets no lock that blocks it. `met` is what its first attempt has met,
    /// if that was made already. Resolves the locks of finished and dead transactions, and passes those of live ones,
    /// which are made to commit later. Waits for the others, up to `config.read_lock_wait`.
    pub(crate) async fn read<T, F, R>(
        &self,
        mut at: Snapshot,
        mut met: Vec<LockInfo>,
        mut read: F,
    ) -> Result<T, TxnError>
    where
        F: FnMut(Snapshot) -> R,
        R: Future<Output = Result<T, ClientError>>,
    {
        let mut since_first_lock: Option<Stopwatch> = None;
        let mut attempt = 0u32;
        let start_ts = at.start_ts;
        loop {
            if met.is_empty() {
                at.locks_met = since_first_lock.is_some();
                met = match read(at.clone()).await {
                    Ok(value) => return Ok(value),
                    Err(ClientError::Key(KeyError::Locked(locks))) => locks,
                    Err(error) => return Err(read_error(error)),
                };
            }
            let waited = since_first_lock.get_or_insert_with(Stopwatch::start).elapsed();
            // At a replica that is cut off nobody says what became of their transactions.
            let resolved = self.resolver.resolve(std::mem::take(&mut met), start_ts);
            let Resolved { holders, passed } = in_time(patience_of(at.options.as_ref()), resolved).await?;
            at.pass.extend(passed);
            // The oldest are the most likely to have ended.
            at.pass.drain(..at.pass.len().saturating_sub(PASS_MAX));
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

/// How long a read waits for a replica or the oracle, each time that it needs one. `None`: leaders serve it, and the
/// deadlines of the client and the oracle count.
pub(crate) fn patience_of(reads: Option<&Arc<ReadOptions>>) -> Option<Duration> {
    reads.filter(|reads| reads.replica != ReplicaPolicy::Leader).map(|reads| reads.patience)
}

/// Abandons `work` when `patience` is over. Cancel safe as `work` is.
pub(crate) async fn in_time<T>(
    patience: Option<Duration>,
    work: impl Future<Output = Result<T, TxnError>>,
) -> Result<T, TxnError> {
    let Some(patience) = patience else { return work.await };
    let late = |_| Err(TxnError::Unavailable(format!("no replica and no oracle answered within {patience:?}")));
    tokio::time::timeout(patience, work).await.unwrap_or_else(late)
}

/// Maps a client error of a read.
pub(crate) fn read_error(error: ClientError) -> TxnError {
    match error {
        ClientError::Unavailable { .. } => TxnError::Unavailable(error.to_string()),
        ClientError::Overloaded { .. } => TxnError::Overloaded(error.to_string()),
        ClientError::Key(error @ KeyError::TooOld { .. }) => TxnError::SnapshotTooOld(error.to_string()),
        // A read writes nothing, so its outcome is never undetermined.
        ClientError::Key(_)
        | ClientError::Undetermined(_)
        | ClientError::TooLarge { .. }
        | ClientError::Invalid(_)
        | ClientError::Failed(_) => TxnError::Internal(error.to_string()),
    }
}
