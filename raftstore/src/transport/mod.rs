//! Raft messages and snapshot files between stores, over gRPC. The production [`Transport`].
//!
//! ```text
//! store thread -> Queue (one per target store, bounded) -> lane task: frames -> one long-lived stream
//!   -> server: decode, check -> Inbox of the target (bounded, never blocks)
//! ```
//!
//! - `queue`: what waits for one store. Full, or closed while the connection is down: the message is refused at once.
//! - `lane`: the task that connects, takes what is queued as one frame, and reconnects with jittered backoff.
//! - `outgoing`: snapshot files, each on a connection of its own so that bulk data never delays a heartbeat; few at a
//!   time, under a common rate.
//! - `server`: the receiving side. A stream proves with a Hello that it belongs to this cluster and means this store; what
//!   is malformed or oversized ends that stream and nothing else.
//! - `proto`: the generated types and their checked conversion.
//!
//! Nothing here is reliable and nothing needs to be: Raft repeats what matters. What is guaranteed: a message arrives whole
//! or not at all, at the store it is addressed to; a `MsgSnapshot` arrives only after its file is durable there.

mod backoff;
mod lane;
mod metrics;
mod outgoing;
mod proto;
mod queue;
mod rate;
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
use self::queue::{PushError, Queue};
use self::rate::RateLimiter;
pub use self::server::{TransportServer, TransportService};
use crate::handle::StoreHandle;
use crate::ports::{RaftMessage, SendError, Transport};
use crate::region::StoreId;
use crate::snapshot::{SnapshotFiles, SnapshotKey};

/// Bytes of a frame that are not messages, at most.
const FRAME_OVERHEAD: usize = 64;

/// Bytes that a message takes in a frame at most. For transports that enforce the limit without encoding.
pub fn frame_bytes(message: &RaftMessage) -> usize {
    queue::cost(message)
}

/// Where stores listen. May be asked from any thread and must not block.
pub trait AddressBook: Send + Sync + 'static {
    /// The store's `host:port`, if it is known.
    fn address(&self, store: StoreId) -> Option<String>;
}

/// Takes the messages that arrive. Called on the network's threads.
pub trait Inbox: Send + Sync + 'static {
    /// Queues a message for its peer without waiting; `Err` means that it is dropped: the queue is full, or the store is
    /// stopping.
    fn deliver(&self, message: RaftMessage) -> Result<(), NotTaken>;
}

/// The receiving store did not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store did not take the message")]
pub struct NotTaken;

impl<S: Store> Inbox for StoreHandle<S> {
    fn deliver(&self, message: RaftMessage) -> Result<(), NotTaken> {
        StoreHandle::deliver(self, message).map_err(|_| NotTaken)
    }
}

/// The random identity of a cluster, chosen when it is founded, never 0; written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterId(u64);

/// A text that is no cluster id.
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
    /// From its number.
    pub const fn new(raw: u64) -> ClusterId {
        ClusterId(raw)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Settings of a store's transport, both directions.
#[derive(Clone, Debug)]
pub struct TransportOptions {
    /// The cluster; streams of another are refused.
    pub cluster: ClusterId,
    /// This store.
    pub store: StoreId,
    /// Bytes at which a frame is sent even though more is queued. Default 512 KiB.
    pub frame_bytes: usize,
    /// Most bytes of one frame, hence of one message, on both sides. Default 16 MiB.
    pub max_frame_bytes: usize,
    /// Most messages queued for one store. Default 8192.
    pub queue_messages: usize,
    /// Most bytes queued for one store. Default 32 MiB.
    pub queue_bytes: usize,
    /// How long connecting, and the first frame of a stream, may take. Default 2 s.
    pub connect_timeout: Duration,
    /// How often a silent connection is probed, and how long the answer may take. Default 3 s.
    pub keep_alive: Duration,
    /// First pause after a failure. Default 50 ms.
    pub backoff_floor: Duration,
    /// Longest pause after a failure. Default 2 s.
    pub backoff_cap: Duration,
    /// Snapshot files sent at a time. Default 2.
    pub snapshots_sending: usize,
    /// Snapshot files waiting to be sent, beyond those. Default 32.
    pub snapshots_waiting: usize,
    /// Snapshot files received at a time. Default 4.
    pub snapshots_receiving: usize,
    /// Most bytes of snapshot files sent per second. Default 100 MiB.
    pub snapshot_bytes_per_second: u64,
    /// Largest snapshot file accepted, in bytes. Default 16 GiB.
    pub max_snapshot_bytes: u64,
    /// How long a snapshot transfer may make no progress. Default 30 s.
    pub snapshot_stall: Duration,
    /// Seeds the jitter of the backoff; different on every store.
    pub jitter_seed: u64,
}

impl TransportOptions {
    /// The defaults.
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

    /// Most bytes of one message: a frame less what is around it.
    fn max_message_bytes(&self) -> usize {
        self.max_frame_bytes.saturating_sub(FRAME_OVERHEAD)
    }

    /// The Hello of a stream to `to`.
    fn hello(&self, to: StoreId) -> proto::wire::Hello {
        proto::wire::Hello {
            protocol: proto::PROTOCOL,
            cluster_id: self.cluster.get(),
            from_store: self.store.get(),
            to_store: to.get(),
        }
    }
}

/// What every outgoing task needs.
struct Context {
    options: TransportOptions,
    addresses: Arc<dyn AddressBook>,
    files: SnapshotFiles,
    metrics: TransportMetrics,
    /// Permits of snapshots that are being sent, and of those that wait as well.
    sending: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    rate: Mutex<RateLimiter>,
    /// Time zero of `rate`.
    rate_epoch: tokio::time::Instant,
}

impl Context {
    /// How long to wait before `bytes` of a snapshot may be sent.
    fn throttle(&self, bytes: usize) -> Duration {
        self.rate.lock().take(bytes, lane::now().duration_since(self.rate_epoch))
    }

    /// An endpoint for the store's present address.
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

/// The sending side. Dropping it ends its tasks; what they had not sent is dropped, and snapshots report failure.
pub struct GrpcTransport {
    context: Arc<Context>,
    lanes: RwLock<BTreeMap<StoreId, Arc<Queue>>>,
    runtime: Handle,
    /// Tasks end when this is dropped.
    stop: watch::Sender<()>,
}

impl GrpcTransport {
    /// A transport whose tasks run on `runtime`. Connects to a store when there is something to send.
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

    /// The queue to a store; on first use starts the task that empties it.
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
            // Told to the sender: one that believed it to be on its way would wait for the answer, and never send what comes after it.
            self.context.metrics.drop_messages(DropReason::TooLarge, 1);
            tracing::error!(store = %message.to.store, bytes, limit, "a message is larger than a frame may be");
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
