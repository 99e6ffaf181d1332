//! Metrics of the multi-Raft layer, built from the registry that the node passes in.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// What begins a leadership, as a label: an election after a timeout, or the old leader's handover.
pub(crate) const BY_ELECTION: &str = "election";
pub(crate) const BY_HANDOVER: &str = "handover";

/// Metrics of one store. Two stores in a process need two registries; registering twice fails.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// Reads proven by the lease.
    pub(crate) lease_reads: IntCounter,
    /// Reads proven by a read index.
    pub(crate) index_reads: IntCounter,
    /// Proposals accepted by peers.
    pub(crate) proposals: IntCounter,
    /// Requests refused because a queue was full, by queue.
    pub(crate) busy: IntCounterVec,
    /// Raft messages dropped on arrival, by reason.
    pub(crate) dropped_messages: IntCounterVec,
    /// Raft messages refused by the transport.
    pub(crate) unsent_messages: IntCounter,
    /// Log batches submitted.
    pub(crate) log_batches: IntCounter,
    /// Entries per apply write.
    pub(crate) applied_per_write: Histogram,
    /// Bytes of committed entries waiting for apply.
    pub(crate) apply_backlog: IntGauge,
    /// Bytes of log that are not durable yet.
    pub(crate) log_backlog: IntGauge,
    /// 1 while the log waits for space on its disk.
    pub(crate) log_full: IntGauge,
    /// Regions led by this store.
    pub(crate) leaders: IntGauge,
    /// Leaderships that began on this store, by what began them.
    pub(crate) leaderships: IntCounterVec,
    /// Snapshots, by event: `built`, `installed`.
    pub(crate) snapshots: IntCounterVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Result<Metrics, prometheus::Error> {
        let entries = prometheus::exponential_buckets(1.0, 2.0, 12)?;
        let histogram = HistogramOpts::new("raftstore_applied_per_write", "Entries in each write of apply.");
        let metrics = Metrics {
            lease_reads: IntCounter::new("raftstore_lease_reads_total", "Reads proved by the leader's lease.")?,
            index_reads: IntCounter::new("raftstore_index_reads_total", "Reads proved by a read index.")?,
            proposals: IntCounter::new("raftstore_proposals_total", "Proposals taken.")?,
            busy: vector("raftstore_busy_total", "Requests refused because a queue was full.", "queue")?,
            dropped_messages: vector(
                "raftstore_dropped_messages_total",
                "Raft messages dropped on arrival.",
                "reason",
            )?,
            unsent_messages: IntCounter::new(
                "raftstore_unsent_messages_total",
                "Raft messages not taken for sending.",
            )?,
            log_batches: IntCounter::new("raftstore_log_batches_total", "Log batches submitted.")?,
            applied_per_write: Histogram::with_opts(histogram.buckets(entries))?,
            apply_backlog: IntGauge::new("raftstore_apply_backlog_bytes", "Committed bytes waiting for apply.")?,
            log_backlog: IntGauge::new("raftstore_log_backlog_bytes", "Bytes of log not durable yet.")?,
            log_full: IntGauge::new("raftstore_log_full", "1 while the log waits for space on its disk.")?,
            leaders: IntGauge::new("raftstore_leaders", "Regions led by this store.")?,
            leaderships: vector("raftstore_leaderships_total", "Leaderships begun, by what began them.", "by")?,
            snapshots: vector("raftstore_snapshots_total", "Snapshots built and installed.", "what")?,
        };
        for by in [BY_ELECTION, BY_HANDOVER] {
            // Both exist from the start: a missing value is not taken for zero.
            metrics.leaderships.with_label_values(&[by]);
        }
        metrics.register(registry)?;
        Ok(metrics)
    }

    fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        registry.register(Box::new(self.lease_reads.clone()))?;
        registry.register(Box::new(self.index_reads.clone()))?;
        registry.register(Box::new(self.proposals.clone()))?;
        registry.register(Box::new(self.busy.clone()))?;
        registry.register(Box::new(self.dropped_messages.clone()))?;
        registry.register(Box::new(self.unsent_messages.clone()))?;
        registry.register(Box::new(self.log_batches.clone()))?;
        registry.register(Box::new(self.applied_per_write.clone()))?;
        registry.register(Box::new(self.apply_backlog.clone()))?;
        registry.register(Box::new(self.log_backlog.clone()))?;
        registry.register(Box::new(self.log_full.clone()))?;
        registry.register(Box::new(self.leaders.clone()))?;
        registry.register(Box::new(self.leaderships.clone()))?;
        registry.register(Box::new(self.snapshots.clone()))
    }
}

fn vector(name: &str, help: &str, label: &str) -> Result<IntCounterVec, prometheus::Error> {
    IntCounterVec::new(Opts::new(name, help), &[label])
}
