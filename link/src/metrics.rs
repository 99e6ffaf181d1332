//! Metrics of a node's links, both sides together; `docs/metrics.md` describes them.

use prometheus::{IntCounter, IntGauge, Registry};

/// Counters of the connections of one kind. Clones share them.
#[derive(Clone, Debug)]
pub struct WireMetrics {
    /// Open connections.
    pub open: IntGauge,
    /// Frames sent.
    pub sent_frames: IntCounter,
    /// Messages sent.
    pub sent_messages: IntCounter,
    /// Bytes of frames sent.
    pub sent_bytes: IntCounter,
    /// Bytes received.
    pub received_bytes: IntCounter,
}

/// Counters of all links of a node. Clones share them.
#[derive(Clone, Debug)]
pub struct LinkMetrics {
    /// Links that this node opened.
    pub opened: IntCounter,
    /// Connections that could not be opened or were refused by the other node.
    pub open_failures: IntCounter,
    /// Links that other nodes opened.
    pub accepted: IntCounter,
    /// Links that this node refused: another cluster, another version, too many.
    pub refused: IntCounter,
    /// Links that broke while they were in use.
    pub broken: IntCounter,
    /// Requests to other nodes.
    pub requests: IntCounter,
    /// Requests whose caller went away or whose time was up.
    pub cancels: IntCounter,
    /// Requests refused by a limit of the link, here or by the other node.
    pub busy: IntCounter,
    /// Frames sent.
    pub sent_frames: IntCounter,
    /// Messages sent: requests, answers, cancels, probes.
    pub sent_messages: IntCounter,
    /// Bytes of frames sent.
    pub sent_bytes: IntCounter,
    /// Frames received.
    pub received_frames: IntCounter,
    /// Bytes of frames received.
    pub received_bytes: IntCounter,
    /// Requests of other nodes that did not end at once.
    pub spawned: IntCounter,
    /// Open links, of both directions.
    pub open: IntGauge,
}

impl LinkMetrics {
    /// Registers the metrics; fails if the registry already has them.
    pub fn new(registry: &Registry) -> prometheus::Result<LinkMetrics> {
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(format!("cortado_link_{name}_total"), help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let open = IntGauge::new("cortado_link_open", "Open links, of both directions.")?;
        registry.register(Box::new(open.clone()))?;
        Ok(LinkMetrics {
            opened: counter("opened", "Links that this node opened.")?,
            open_failures: counter("open_failures", "Links that could not be opened or were refused.")?,
            accepted: counter("accepted", "Links that other nodes opened.")?,
            refused: counter("refused", "Links of other nodes that this node refused.")?,
            broken: counter("broken", "Links that broke while they were in use.")?,
            requests: counter("requests", "Requests to other nodes.")?,
            cancels: counter("cancels", "Requests whose caller went away or whose time was up.")?,
            busy: counter("busy", "Requests refused by a limit of a link.")?,
            sent_frames: counter("sent_frames", "Frames sent.")?,
            sent_messages: counter("sent_messages", "Messages sent: requests, answers, cancels, probes.")?,
            sent_bytes: counter("sent_bytes", "Bytes of frames sent.")?,
            received_frames: counter("received_frames", "Frames received.")?,
            received_bytes: counter("received_bytes", "Bytes of frames received.")?,
            spawned: counter("spawned", "Requests of other nodes that did not end at once.")?,
            open,
        })
    }

    /// The part that a connection counts itself.
    pub(crate) fn wire(&self) -> WireMetrics {
        WireMetrics {
            open: self.open.clone(),
            sent_frames: self.sent_frames.clone(),
            sent_messages: self.sent_messages.clone(),
            sent_bytes: self.sent_bytes.clone(),
            received_bytes: self.received_bytes.clone(),
        }
    }
}
