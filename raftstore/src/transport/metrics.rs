//! Metrics of the transport, built from a passed registry.

use link::WireMetrics;
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// Why a message was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The bounded queue to the store is full.
    QueueFull,
    /// The connection to the store is down.
    Disconnected,
    /// The message exceeds the frame limit.
    TooLarge,
    /// The receiving store's mailbox refused it.
    NotTaken,
}

impl DropReason {
    const ALL: [DropReason; 4] =
        [DropReason::QueueFull, DropReason::Disconnected, DropReason::TooLarge, DropReason::NotTaken];

    const fn label(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Disconnected => "disconnected",
            DropReason::TooLarge => "too_large",
            DropReason::NotTaken => "not_taken",
        }
    }
}

/// Metrics of one store's transport, both directions. Clones share them.
#[derive(Clone)]
pub struct TransportMetrics {
    /// Connected lanes.
    pub open_lanes: IntGauge,
    /// Frames sent.
    pub sent_frames: IntCounter,
    /// Messages sent, in frames.
    pub sent_messages: IntCounter,
    /// Bytes of frames sent.
    pub sent_bytes: IntCounter,
    /// Bytes received over message streams, answers to probes included.
    pub received_bytes: IntCounter,
    /// Reads of message streams that delivered messages: each wakes the store thread once at most.
    pub deliveries: IntCounter,
    /// Frames received.
    pub received_frames: IntCounter,
    /// Messages received and delivered to the store.
    pub received_messages: IntCounter,
    /// Failed connection attempts and broken connections.
    pub connection_failures: IntCounter,
    /// Incoming streams that ended in an error: refused, malformed, oversized, cut off.
    pub refused_streams: IntCounter,
    /// Snapshot files delivered.
    pub snapshots_sent: IntCounter,
    /// Snapshot files not delivered.
    pub snapshots_failed: IntCounter,
    /// Snapshot files received and announced to the store.
    pub snapshots_received: IntCounter,
    /// Bytes of snapshot files sent.
    pub snapshot_bytes: IntCounter,
    dropped: IntCounterVec,
}

impl TransportMetrics {
    /// Registers the metrics; fails if the registry already has them.
    pub fn new(registry: &Registry) -> prometheus::Result<TransportMetrics> {
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(format!("cortado_transport_{name}"), help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let opts = Opts::new("cortado_transport_dropped_messages_total", "Raft messages dropped on their way.");
        let dropped = IntCounterVec::new(opts, &["reason"])?;
        registry.register(Box::new(dropped.clone()))?;
        for reason in DropReason::ALL {
            dropped.with_label_values(&[reason.label()]).reset();
        }
        let open_lanes = IntGauge::new("cortado_transport_open_lanes", "Connected lanes to other stores.")?;
        registry.register(Box::new(open_lanes.clone()))?;
        Ok(TransportMetrics {
            open_lanes,
            sent_bytes: counter("sent_bytes_total", "Bytes of frames of Raft messages sent.")?,
            received_bytes: counter("received_bytes_total", "Bytes received over streams of Raft messages.")?,
            deliveries: counter("deliveries_total", "Reads that delivered Raft messages to the store.")?,
            sent_frames: counter("sent_frames_total", "Frames of Raft messages sent.")?,
            sent_messages: counter("sent_messages_total", "Raft messages sent.")?,
            received_frames: counter("received_frames_total", "Frames of Raft messages received.")?,
            received_messages: counter("received_messages_total", "Raft messages received.")?,
            connection_failures: counter("connection_failures_total", "Failed and broken connections to stores.")?,
            refused_streams: counter("refused_streams_total", "Incoming streams that ended in an error.")?,
            snapshots_sent: counter("snapshots_sent_total", "Snapshot files delivered.")?,
            snapshots_failed: counter("snapshots_failed_total", "Snapshot files not delivered.")?,
            snapshots_received: counter("snapshots_received_total", "Snapshot files received.")?,
            snapshot_bytes: counter("snapshot_bytes_total", "Bytes of snapshot files sent.")?,
            dropped,
        })
    }

    /// The part that a lane's connection counts itself.
    pub(super) fn wire(&self) -> WireMetrics {
        WireMetrics {
            open: self.open_lanes.clone(),
            sent_frames: self.sent_frames.clone(),
            sent_messages: self.sent_messages.clone(),
            sent_bytes: self.sent_bytes.clone(),
            received_bytes: self.received_bytes.clone(),
        }
    }

    /// Counts `messages` messages as dropped.
    pub(super) fn drop_messages(&self, reason: DropReason, messages: usize) {
        self.dropped.with_label_values(&[reason.label()]).inc_by(messages as u64);
    }

    /// The number of messages dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.with_label_values(&[reason.label()]).get()
    }
}
