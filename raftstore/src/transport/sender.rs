//! The sending side of the transport: two lanes for each target store, each a queue and a task.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::context::{AddressBook, SendContext};
use super::lane_kind::LaneKind;
use super::metrics::{DropReason, TransportMetrics};
use super::options::TransportOptions;
use super::queue::{PushError, Queue, frame_bytes};
use super::{lane, snapshot_stream};
use crate::ports::{DeliveryDone, RaftMessage, SendError, Transport};
use crate::region::StoreId;
use crate::snapshot::{SnapshotFiles, SnapshotKey};

/// The sending side. Dropping it ends its tasks: queued messages are dropped, and snapshots count as not delivered.
pub struct GrpcTransport {
    context: Arc<SendContext>,
    lanes: RwLock<BTreeMap<(StoreId, LaneKind), Arc<Queue>>>,
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
        GrpcTransport {
            context: Arc::new(SendContext::new(options, addresses, files, metrics)),
            lanes: RwLock::new(BTreeMap::new()),
            runtime,
            stop: watch::channel(()).0,
        }
    }

    /// The queue of a lane. The first use starts the task that sends it.
    fn lane(&self, store: StoreId, kind: LaneKind) -> Result<Arc<Queue>, SendError> {
        if let Some(queue) = self.lanes.read().get(&(store, kind)) {
            return Ok(Arc::clone(queue));
        }
        if self.context.addresses.address(store).is_none() {
            return Err(SendError::UnknownStore);
        }
        let mut lanes = self.lanes.write();
        let queue = lanes.entry((store, kind)).or_insert_with(|| {
            let options = &self.context.options;
            let queue = Arc::new(Queue::new(options.queue_messages, options.queue_bytes));
            let task = lane::run(Arc::clone(&self.context), Arc::clone(&queue), (store, kind), self.stop.subscribe());
            self.runtime.spawn(task);
            queue
        });
        Ok(Arc::clone(queue))
    }
}

impl Transport for GrpcTransport {
    fn send(&self, message: RaftMessage) -> Result<(), SendError> {
        let (bytes, limit) = (frame_bytes(&message), self.context.options.max_message_bytes());
        if bytes > limit {
            // The sender must know: believing the message in flight, it would wait for an answer and never send the
            // entries after it.
            self.context.metrics.drop_messages(DropReason::TooLarge, 1);
            tracing::error!(store = %message.to.store, bytes, limit, "a message exceeds the frame limit");
            return Err(SendError::TooLarge { bytes, limit });
        }
        let refused = self.lane(message.to.store, LaneKind::of(&message))?.push(message);
        refused.map_err(|refused| {
            let reason = match refused {
                PushError::Full => DropReason::QueueFull,
                PushError::Closed => DropReason::Disconnected,
            };
            self.context.metrics.drop_messages(reason, 1);
            SendError::Unreachable
        })
    }

    fn send_snapshot(&self, message: RaftMessage, snapshot: SnapshotKey, done: DeliveryDone) {
        let context = Arc::clone(&self.context);
        self.runtime.spawn(snapshot_stream::run(
            context,
            message,
            snapshot,
            snapshot_stream::DeliveryReport::new(done),
            self.stop.subscribe(),
        ));
    }
}
