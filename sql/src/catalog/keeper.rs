//! Keeps the node's lease on the catalog, finishes schema changes that nobody else will, drops what sessions have left,
//! and gives the lease back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::keys;
use super::lease::NodeCatalog;
use crate::clock;

/// The pause after a failed renewal.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The interval between two looks at transactions that hold up a schema change.
const DRAIN_POLL: Duration = Duration::from_millis(20);
/// Limit of the time to read statistics.
const STATISTICS_LIMIT: Duration = Duration::from_secs(2);
/// The interval between two looks for schema changes that nobody else finishes, and for statistics.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

impl NodeCatalog {
    /// Keeps the lease until `stop`, and ends schema changes that have lost their node. Errors are retried.
    pub async fn keep(&self, stop: CancellationToken) {
        let mut swept = clock::instant();
        let mut has_statistics = false;
        loop {
            let state = &self.state;
            let draining = state.live.is_draining();
            let pause = if draining { DRAIN_POLL } else { state.config.renew_interval };
            let kept = async {
                let mut renewal = state.renewal.lock().await;
                if draining {
                    self.renew_unless_held_up(&mut renewal, 0).await
                } else {
                    self.renew_locked(&mut renewal).await
                }
            };
            let pause = match kept.await {
                Ok(()) => {
                    if !has_statistics {
                        self.refresh_statistics().await;
                        has_statistics = true;
                    }
                    pause
                }
                Err(error) => {
                    tracing::debug!("the lease on the catalog is not renewed: {error}");
                    RETRY_PAUSE
                }
            };
            if clock::instant().duration_since(swept) >= SWEEP_INTERVAL {
                self.sweep().await;
                self.sweep_temporary().await;
                self.refresh_statistics().await;
                swept = clock::instant();
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = state.wake.notified() => {}
                () = state.live.ended() => {}
                () = clock::sleep(pause) => {}
            }
        }
    }

    /// Looks for new statistics. They are hints, so nothing waits for them for long.
    async fn refresh_statistics(&self) {
        tokio::select! {
            refreshed = self.state.statistics.refresh(self.version()) => {
                if let Err(error) = refreshed {
                    tracing::debug!("the statistics of tables are not read: {error}");
                }
            }
            () = clock::sleep(STATISTICS_LIMIT) => {}
        }
    }

    /// Gives the lease back at the end of the node, so that no schema change waits for it. While a transaction is live
    /// the record stays until it is over. The node never has a lease again.
    pub async fn release(&self) {
        let renewal = self.state.renewal.lock().await;
        self.state.released.store(true, Ordering::Release);
        if !self.state.live.are_idle() || self.state.current.write().take().is_none() {
            return;
        }
        let removed = async {
            let mut txn = self.state.db.begin().await?;
            txn.delete(keys::lease(self.state.node))?;
            txn.commit().await
        };
        if let Err(error) = removed.await {
            tracing::debug!(%error, "the lease on the catalog stays until it is over");
        }
        drop(renewal);
    }
}
