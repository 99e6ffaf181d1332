//! Metrics of the coordinator.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use tso::Timestamp;

use crate::error::TxnError;

const COMMITS: &str = "cortado_txn_commits_total";
const PROTOCOLS: &str = "cortado_txn_commit_protocols_total";
const FALLBACKS: &str = "cortado_txn_commit_fallbacks_total";
const PASSED: &str = "cortado_txn_locks_passed_total";
const RESOLVED: &str = "cortado_txn_locks_resolved_total";
const WAITS: &str = "cortado_txn_lock_waits_total";
const FIRST_READS: &str = "cortado_txn_first_reads_total";
const NAMES_AHEAD: &str = "cortado_txn_names_ahead_total";
const HEARTBEATS: &str = "cortado_txn_heartbeats_total";
const RERUNS: &str = "cortado_txn_reruns_total";
const BACKGROUND: &str = "cortado_txn_background_tasks";
const LEFTOVERS: &str = "cortado_txn_leftover_locks_total";
const SHADOW_READS: &str = "cortado_txn_shadow_reads_total";
const SHADOW_DIFFERENCES: &str = "cortado_txn_shadow_differences_total";

/// How a transaction was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    OnePhase,
    Async,
    TwoPhase,
}

/// Counters of one database handle.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    commits: IntCounterVec,
    /// In the order of [`Protocol`].
    protocols: [IntCounter; 3],
    /// Attempts to commit in one phase or asynchronously that a region turned into two phases.
    pub(crate) fallbacks: IntCounter,
    /// Transactions whose start_ts was taken by the store of their first read.
    pub(crate) first_reads: IntCounter,
    /// Commits whose start_ts was fetched ahead.
    pub(crate) names_ahead: IntCounter,
    /// Locks of live transactions that a read passed.
    pub(crate) passed: IntCounter,
    /// Locks of other transactions resolved.
    pub(crate) resolved: IntCounter,
    /// Waits for the lock of a live transaction.
    pub(crate) waits: IntCounter,
    /// Heartbeats sent.
    pub(crate) heartbeats: IntCounter,
    /// Transactions rerun after a conflict.
    pub(crate) reruns: IntCounter,
    /// Commits that are cleaning up: committing secondaries or rolling back locks.
    pub(crate) background: IntGauge,
    /// Locks that the coordinator could not clean up itself; other transactions will resolve them.
    pub(crate) leftovers: IntCounter,
    /// Reads of replicas that were compared with the leader's.
    pub(crate) shadow_reads: IntCounter,
    /// Those among them that differed.
    pub(crate) shadow_differences: IntCounter,
}

impl Metrics {
    /// Registers the metrics. Fails if the registry already has them.
    pub(crate) fn new(registry: &Registry) -> Result<Metrics, prometheus::Error> {
        let protocols = IntCounterVec::new(Opts::new(PROTOCOLS, "Transactions committed, by protocol"), &["protocol"])?;
        let protocol = |name| protocols.with_label_values(&[name]);
        let metrics = Metrics {
            protocols: [protocol("one_phase"), protocol("async"), protocol("two_phase")],
            fallbacks: IntCounter::new(FALLBACKS, "Commits of one phase that became two-phase commits")?,
            first_reads: IntCounter::new(FIRST_READS, "Transactions whose start_ts came with their first read")?,
            names_ahead: IntCounter::new(NAMES_AHEAD, "Commits whose start_ts was fetched ahead")?,
            passed: IntCounter::new(PASSED, "Locks of living transactions that a read passed")?,
            commits: IntCounterVec::new(Opts::new(COMMITS, "Commits asked for, by outcome"), &["outcome"])?,
            resolved: IntCounter::new(RESOLVED, "Locks of other transactions resolved")?,
            waits: IntCounter::new(WAITS, "Waits for the lock of a living transaction")?,
            heartbeats: IntCounter::new(HEARTBEATS, "Heartbeats of long commits")?,
            reruns: IntCounter::new(RERUNS, "Transactions run again after a conflict")?,
            background: IntGauge::new(BACKGROUND, "Transactions whose secondaries are being committed or rolled back")?,
            leftovers: IntCounter::new(LEFTOVERS, "Locks left for other transactions to resolve")?,
            shadow_reads: IntCounter::new(SHADOW_READS, "Reads of replicas that were compared with the leader's")?,
            shadow_differences: IntCounter::new(SHADOW_DIFFERENCES, "Reads of replicas that the leader contradicts")?,
        };
        registry.register(Box::new(protocols))?;
        registry.register(Box::new(metrics.fallbacks.clone()))?;
        registry.register(Box::new(metrics.first_reads.clone()))?;
        registry.register(Box::new(metrics.names_ahead.clone()))?;
        registry.register(Box::new(metrics.passed.clone()))?;
        registry.register(Box::new(metrics.commits.clone()))?;
        registry.register(Box::new(metrics.resolved.clone()))?;
        registry.register(Box::new(metrics.waits.clone()))?;
        registry.register(Box::new(metrics.heartbeats.clone()))?;
        registry.register(Box::new(metrics.reruns.clone()))?;
        registry.register(Box::new(metrics.background.clone()))?;
        registry.register(Box::new(metrics.leftovers.clone()))?;
        registry.register(Box::new(metrics.shadow_reads.clone()))?;
        registry.register(Box::new(metrics.shadow_differences.clone()))?;
        Ok(metrics)
    }

    /// Counts a commit by its protocol.
    pub(crate) fn record_protocol(&self, protocol: Protocol) {
        if let Some(counter) = self.protocols.get(protocol as usize) {
            counter.inc();
        }
    }

    /// Counts the outcome of a commit.
    pub(crate) fn record_outcome(&self, outcome: &Result<Option<Timestamp>, TxnError>) {
        let label = match outcome {
            Ok(_) => "committed",
            Err(TxnError::Conflict(_)) => "conflict",
            Err(TxnError::AlreadyExists { .. }) => "already_exists",
            Err(TxnError::Undetermined { .. }) => "undetermined",
            Err(TxnError::Unavailable(_)) => "unavailable",
            Err(TxnError::Overloaded(_)) => "overloaded",
            Err(TxnError::TooLarge(_) | TxnError::RowTooLarge(_)) => "too_large",
            // No commit fails with the others.
            Err(
                TxnError::Internal(_)
                | TxnError::InFuture(_)
                | TxnError::SnapshotTooOld(_)
                | TxnError::NotAvailable { .. }
                | TxnError::LockTimeout { .. }
                | TxnError::Deadlock { .. },
            ) => "internal",
        };
        self.commits.with_label_values(&[label]).inc();
    }
}
