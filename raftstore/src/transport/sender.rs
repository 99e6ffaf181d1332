//! The sending side of the transport: two lanes for each target store, each a queue, a connection and a task.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::context::{AddressBook, SendContext};
use super::lane::{self, Lane};
use super::lane_kind::LaneKind;
use super::metrics::{DropReason, TransportMetrics};
use super::options::TransportOptions;
use super::queue::{PushError, frame_bytes};
use super::snapshot_stream;
use crate::ports::{DeliveryDone, RaftMessage, SendError, Transport};
use crate::region::StoreId;
use crate::snapshot::{SnapshotFiles, SnapshotKey};

/// The sending side. Dropping it ends its tasks: queued messages are dropped, and snapshots count as not delivered.
pub struct StoreTransport {
    context: Arc<SendContext>,
    lanes: RwLock<BTreeMap<(StoreId, LaneKind), Arc<Lane>>>,
    runtime: Handle,
    /// The tasks end when this is dropped.
    stop: watch::Sender<()>,
}

impl StoreTransport {
    /// A transport whose tasks run on `runtime`. It connects to a store on the first message.
    pub fn new(
        options: TransportOptions,
        addresses: Arc<dyn AddressBook>,
        files: SnapshotFiles,
        metrics: TransportMetrics,
        runtime: Handle,
    ) -> StoreTransport {
        StoreTransport {
            context: Arc::new(SendContext::new(options, addresses, files, metrics)),
            lanes: RwLock::new(BTreeMap::new()),
            runtime,
            stop: watch::channel(()).0,
        }
    }

    /// A lane. The first use starts its task.
    fn lane(&self, store: StoreId, kind: LaneKind) -> Result<Arc<Lane>, SendError> {
        if let Some(lane) = self.lanes.read().get(&(store, kind)) {
            return Ok(Arc::clone(lane));
        }
        if self.context.addresses.address(store).is_none() {
            return Err(SendError::UnknownStore);
        }
        let mut lanes = self.lanes.write();
        let lane = lanes.entry((store, kind)).or_insert_with(|| {
            let lane = Arc::new(Lane::new(&self.context.options));
            let task = lane::run(Arc::clone(&self.context), Arc::clone(&lane), (store, kind), self.stop.subscribe());
            self.runtime.spawn(task);
            lane
        });
        Ok(Arc::clone(lane))
    }
}

impl Transport for StoreTransport {
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

    fn flush(&self) {
        for lane in self.lanes.read().values() {
            lane.flush();
        }
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
