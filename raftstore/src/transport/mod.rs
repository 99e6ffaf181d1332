//! Raft messages and snapshot files between stores, over gRPC: the production [`Transport`].
//!
//! ```text
//! store thread -> Queue (one per target store, bounded) -> lane task: frames -> one long-lived stream
//!   -> server: decode, check -> Inbox of the target (bounded, never blocks)
//! ```
//!
//! - `queue`: the messages waiting for one store. If it is full, or closed because the connection is down, it refuses
//!   messages at once.
//! - `lane`: the task that connects, sends the queue in frames, and reconnects with jittered backoff.
//! - `outgoing`: snapshot files, each on its own connection so that bulk data never delays a heartbeat. Few are sent at
//!   a time, under a common rate limit.
//! - `server`: the receiving side. A stream starts with a Hello that names this cluster and this store. A malformed or
//!   oversized message ends its stream and nothing else.
//! - `proto`: the generated types and their checked conversion.
//!
//! Delivery is not reliable; Raft repeats what matters. Guarantees: a message arrives whole or not at all, at the store
//! it is addressed to. A `MsgSnapshot` arrives only after its file is durable there.
//!
//! # Layers
//!
//! 1. `metrics`, `pacing`, `proto`: counters, delays, wire messages
//! 2. `queue`: the messages waiting for one store
//! 3. `lane`, `server`: the two ends of a message stream
//! 4. `outgoing`: the sending end of a snapshot stream

mod lane;
mod metrics;
mod outgoing;
mod pacing;
mod proto;
mod queue;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use engine::store::Store;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

pub use self::metrics::{DropReason, TransportMetrics};
use self::pacing::RateLimiter;
use self::queue::{PushError, Queue};
pub use self::server::{TransportServer, TransportService};
use crate::handle::StoreHandle;
use crate::ports::{RaftMessage, SendError, Transport};
use crate::region::StoreId;
use crate::snapshot::{SnapshotFiles, SnapshotKey};

/// Most bytes of a frame besides its messages.
const FRAME_OVERHEAD: usize = 64;

/// Upper bound of a message's size in a frame, for transports that enforce the limit without encoding.
pub fn frame_bytes(message: &RaftMessage) -> usize {
    queue::cost(message)
}

/// The addresses of stores. Called from any thread; must not block.
pub trait AddressBook: Send + Sync + 'static {
    /// The `host:port` of a store, if known.
    fn address(&self, store: StoreId) -> Option<String>;
}

/// Receives incoming messages. Called on the network's threads.
pub trait Inbox: Send + Sync + 'static {
    /// Queues a message for its peer without blocking.
    ///
    /// # Errors
    ///
    /// The message is dropped: the queue is full or the store is stopping.
    fn deliver(&self, message: RaftMessage) -> Result<(), NotTaken>;
}

/// The receiving store refused a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store did not take the message")]
pub struct NotTaken;

impl<S: Store> Inbox for StoreHandle<S> {
    fn deliver(&self, message: RaftMessage) -> Result<(), NotTaken> {
        StoreHandle::deliver(self, message).map_err(|_| NotTaken)
    }
}

/// The random identity of a cluster, chosen at its founding; never 0. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterId(u64);

/// The text is not a cluster id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a cluster id")]
pub struct BadClusterId(String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ClusterId {
    type Err = BadClusterId;

    fn from_str(text: &str) -> Result<ClusterId, BadClusterId> {
        let plain = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let raw = u64::from_str_radix(text, 16).ok().filter(|id| plain && *id != 0);
        raw.map(ClusterId).ok_or_else(|| BadClusterId(text.to_string()))
    }
}

impl ClusterId {
    /// Wraps a number.
    pub const fn new(raw: u64) -> ClusterId {
        ClusterId(raw)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Settings of a store's transport, both directions.
#[derive(Clone, Debug)]
pub struct TransportOptions {
    /// The cluster. Streams of other clusters are refused.
    pub cluster: ClusterId,
    /// This store.
    pub store: StoreId,
    /// Target size of a frame in bytes: a frame is closed at this size even if more is queued. Default 512 KiB.
    pub frame_bytes: usize,
    /// Most bytes of a frame, hence of a message, on both sides. Default 16 MiB.
    pub max_frame_bytes: usize,
    /// Most messages queued for one store. Default 8192.
    pub queue_messages: usize,
    /// Most bytes queued for one store. Default 32 MiB.
    pub queue_bytes: usize,
    /// Timeout for connecting, and for the first frame of a stream. Default 2 s.
    pub connect_timeout: Duration,
    /// Interval of keep-alive probes on a silent connection, and the timeout of their answers. Default 3 s.
    pub keep_alive: Duration,
    /// First backoff after a failure. Default 50 ms.
    pub backoff_floor: Duration,
    /// Longest backoff after a failure. Default 2 s.
    pub backoff_cap: Duration,
    /// Snapshot files sent concurrently. Default 2.
    pub snapshots_sending: usize,
    /// Snapshot files that may wait to be sent, beyond those. Default 32.
    pub snapshots_waiting: usize,
    /// Snapshot files received concurrently. Default 4.
    pub snapshots_receiving: usize,
    /// Rate limit for sending snapshot files, in bytes per second. Default 100 MiB.
    pub snapshot_bytes_per_second: u64,
    /// Largest snapshot file accepted, in bytes. Default 16 GiB.
    pub max_snapshot_bytes: u64,
    /// Longest time without progress in a snapshot transfer. Default 30 s.
    pub snapshot_stall: Duration,
    /// Seed of the backoff jitter; different on every store.
    pub jitter_seed: u64,
}

impl TransportOptions {
    /// The default settings.
    pub fn new(cluster: ClusterId, store: StoreId, jitter_seed: u64) -> TransportOptions {
        TransportOptions {
            cluster,
            store,
            frame_bytes: 512 << 10,
            max_frame_bytes: 16 << 20,
            queue_messages: 8192,
            queue_bytes: 32 << 20,
            connect_timeout: Duration::from_secs(2),
            keep_alive: Duration::from_secs(3),
            backoff_floor: Duration::from_millis(50),
            backoff_cap: Duration::from_secs(2),
            snapshots_sending: 2,
            snapshots_waiting: 32,
            snapshots_receiving: 4,
            snapshot_bytes_per_second: 100 << 20,
            max_snapshot_bytes: 16 << 30,
            snapshot_stall: Duration::from_secs(30),
            jitter_seed,
        }
    }

    /// Most bytes of a message: the frame limit less the overhead.
    fn max_message_bytes(&self) -> usize {
        self.max_frame_bytes.saturating_sub(FRAME_OVERHEAD)
    }

    /// The Hello of a stream to store `to`.
    fn hello(&self, to: StoreId) -> proto::wire::Hello {
        proto::wire::Hello {
            protocol: proto::PROTOCOL,
            cluster_id: self.cluster.get(),
            from_store: self.store.get(),
            to_store: to.get(),
        }
    }
}

/// Shared by all outgoing tasks.
struct Context {
    options: TransportOptions,
    addresses: Arc<dyn AddressBook>,
    files: SnapshotFiles,
    metrics: TransportMetrics,
    /// Permits for snapshots being sent, and for those sent or waiting.
    sending: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    rate: Mutex<RateLimiter>,
    /// Time zero of `rate`.
    rate_epoch: tokio::time::Instant,
}

impl Context {
    /// How long to wait before sending `bytes` of a snapshot.
    fn throttle(&self, bytes: usize) -> Duration {
        self.rate.lock().take(bytes, lane::now().duration_since(self.rate_epoch))
    }

    /// An endpoint for the store's current address.
    fn endpoint(&self, store: StoreId) -> Result<tonic::transport::Endpoint, String> {
        let address = self.addresses.address(store).ok_or_else(|| format!("no address is known for store {store}"))?;
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}"))
            .map_err(|error| format!("address {address:?} of store {store}: {error}"))?;
        Ok(endpoint
            .connect_timeout(self.options.connect_timeout)
            .http2_keep_alive_interval(self.options.keep_alive)
            .keep_alive_timeout(self.options.keep_alive)
            .keep_alive_while_idle(true))
    }
}

/// The sending side. Dropping it ends its tasks: queued messages are dropped, and snapshots report failure.
pub struct GrpcTransport {
    context: Arc<Context>,
    lanes: RwLock<BTreeMap<StoreId, Arc<Queue>>>,
    runtime: Handle,
    /// The tasks end when this is dropped.
    stop: watch::Sender<()>,
}

impl GrpcTransport {
    /// A transport whose tasks run on `runtime`. It connects to a store on the first message.
    pub fn new(
        options: TransportOptions,
        addresses: Arc<dyn AddressBook>,
        files: SnapshotFiles,
        metrics: TransportMetrics,
        runtime: Handle,
    ) -> GrpcTransport {
        let context = Context {
            addresses,
            files,
            metrics,
            sending: Arc::new(Semaphore::new(options.snapshots_sending.max(1))),
            waiting: Arc::new(Semaphore::new(options.snapshots_sending.max(1) + options.snapshots_waiting)),
            rate: Mutex::new(RateLimiter::new(options.snapshot_bytes_per_second, Duration::ZERO)),
            rate_epoch: lane::now(),
            options,
        };
        GrpcTransport {
            context: Arc::new(context),
            lanes: RwLock::new(BTreeMap::new()),
            runtime,
            stop: watch::channel(()).0,
        }
    }

    /// The queue of a store. The first use starts the task that sends it.
    fn lane(&self, store: StoreId) -> Result<Arc<Queue>, SendError> {
        if let Some(queue) = self.lanes.read().get(&store) {
            return Ok(Arc::clone(queue));
        }
        if self.context.addresses.address(store).is_none() {
            return Err(SendError::UnknownStore);
        }
        let mut lanes = self.lanes.write();
        let queue = lanes.entry(store).or_insert_with(|| {
            let options = &self.context.options;
            let queue = Arc::new(Queue::new(options.queue_messages, options.queue_bytes));
            let task = lane::run(Arc::clone(&self.context), Arc::clone(&queue), store, self.stop.subscribe());
            self.runtime.spawn(task);
            queue
        });
        Ok(Arc::clone(queue))
    }
}

impl Transport for GrpcTransport {
    fn send(&self, message: RaftMessage) -> Result<(), SendError> {
        let (bytes, limit) = (queue::cost(&message), self.context.options.max_message_bytes());
        if bytes > limit {
            // The sender must know: believing the message in flight, it would wait for an answer and never send the
            // entries after it.
            self.context.metrics.drop_messages(DropReason::TooLarge, 1);
            tracing::error!(store = %message.to.store, bytes, limit, "a message exceeds the frame limit");
            return Err(SendError::TooLarge { bytes, limit });
        }
        let refused = self.lane(message.to.store)?.push(message);
        refused.map_err(|refused| {
            let reason = match refused {
                PushError::Full => DropReason::QueueFull,
                PushError::Closed => DropReason::Disconnected,
            };
            self.context.metrics.drop_messages(reason, 1);
            SendError::Unreachable
        })
    }

    fn send_snapshot(&self, message: RaftMessage, snapshot: SnapshotKey, done: Box<dyn FnOnce(bool) + Send>) {
        let context = Arc::clone(&self.context);
        self.runtime.spawn(outgoing::run(
            context,
            message,
            snapshot,
            outgoing::DeliveryReport::new(done),
            self.stop.subscribe(),
        ));
    }
}
