//! What the outgoing tasks of a store share: settings, addresses, limits on snapshots, the clock, error texts.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::metrics::TransportMetrics;
use super::options::TransportOptions;
use super::pacing::RateLimiter;
use crate::region::StoreId;
use crate::snapshot::SnapshotFiles;

/// The addresses of stores. Called from any thread; must not block.
pub trait AddressBook: Send + Sync + 'static {
    /// The `host:port` of a store, if known.
    fn address(&self, store: StoreId) -> Option<String>;
}

/// Shared by all outgoing tasks of a store.
pub(super) struct SendContext {
    pub(super) options: TransportOptions,
    pub(super) addresses: Arc<dyn AddressBook>,
    pub(super) files: SnapshotFiles,
    pub(super) metrics: TransportMetrics,
    /// Permits for snapshots being sent.
    pub(super) sending: Arc<Semaphore>,
    /// Permits for snapshots being sent or waiting to be sent.
    pub(super) waiting: Arc<Semaphore>,
    rate: Mutex<RateLimiter>,
    /// Time zero of `rate`.
    rate_epoch: tokio::time::Instant,
}

impl SendContext {
    pub(super) fn new(
        options: TransportOptions,
        addresses: Arc<dyn AddressBook>,
        files: SnapshotFiles,
        metrics: TransportMetrics,
    ) -> SendContext {
        let sending = options.snapshots_sending.max(1);
        SendContext {
            addresses,
            files,
            metrics,
            sending: Arc::new(Semaphore::new(sending)),
            waiting: Arc::new(Semaphore::new(sending + options.snapshots_waiting)),
            rate: Mutex::new(RateLimiter::new(options.snapshot_bytes_per_second, Duration::ZERO)),
            rate_epoch: now(),
            options,
        }
    }

    /// How long to wait before sending `bytes` of a snapshot.
    pub(super) fn throttle(&self, bytes: usize) -> Duration {
        self.rate.lock().take(bytes, now().duration_since(self.rate_epoch))
    }

    /// The store's current address.
    pub(super) fn address(&self, store: StoreId) -> Result<String, String> {
        self.addresses.address(store).ok_or_else(|| format!("no address is known for store {store}"))
    }

    /// A gRPC endpoint for the store's current address.
    pub(super) fn endpoint(&self, store: StoreId) -> Result<tonic::transport::Endpoint, String> {
        let address = self.address(store)?;
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}"))
            .map_err(|error| format!("address {address:?} of store {store}: {error}"))?;
        Ok(endpoint
            .connect_timeout(self.options.connect_timeout)
            .local_address(self.options.connect_from)
            .http2_keep_alive_interval(self.options.keep_alive)
            .keep_alive_timeout(self.options.keep_alive)
            .keep_alive_while_idle(true))
    }
}

/// The current time, used for durations only.
#[expect(
    clippy::disallowed_methods,
    reason = "the transport is an edge; this is the only place where it reads a clock"
)]
pub(super) fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// An error with its chain of causes, which tonic's text omits.
pub(super) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The code and the message of a refused call.
pub(super) fn describe_status(status: &tonic::Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}
