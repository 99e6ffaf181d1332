//! How a store reaches the others for grants, and the settings and counters of it.

use std::time::Duration;

use futures::future::BoxFuture;
use prometheus::{Error, IntCounter, IntCounterVec, Opts, Registry};
use raftstore::StoreId;

use crate::grant::{AskGrants, GivenGrants, PushAnswer, PushGrants};

/// Why there is no answer. The request may have been carried out, which does no harm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer: {0}")]
pub struct NoAnswer(pub String);

/// The other stores. Every call ends in bounded time.
pub trait Peers: Send + Sync + 'static {
    /// Asks a store for grants of regions that it leads.
    fn ask(&self, to: StoreId, ask: AskGrants) -> BoxFuture<'static, Result<GivenGrants, NoAnswer>>;
    /// Gives grants to a store.
    fn push(&self, to: StoreId, push: PushGrants) -> BoxFuture<'static, Result<PushAnswer, NoAnswer>>;
}

/// Settings of grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantsConfig {
    /// How long a read waits for a grant that covers it. Default 5 s.
    pub patience: Duration,
    /// How often the leader of a region that others read pushes its grants. Zero: never. Default 2 ms.
    pub push_interval: Duration,
    /// How often a store tells each other one what changed in the grants of all its regions. Default 200 ms.
    pub exchange_interval: Duration,
    /// How long grants are pushed after the last read. Default 1 s.
    pub push_for: Duration,
    /// How long a leader waits until the writes under way have their places in the log. Default 5 ms.
    pub place_wait: Duration,
    /// The most requests for read indexes that are in flight to a store. Default 32.
    pub read_indexes: usize,
}

impl Default for GrantsConfig {
    fn default() -> GrantsConfig {
        GrantsConfig {
            patience: Duration::from_secs(5),
            push_interval: Duration::from_millis(2),
            exchange_interval: Duration::from_millis(200),
            push_for: Duration::from_secs(1),
            place_wait: Duration::from_millis(5),
            read_indexes: 32,
        }
    }
}

/// Counters of grants.
#[derive(Clone, Debug)]
pub struct GrantMetrics {
    /// Requests for grants, which reads share.
    pub asked: IntCounter,
    /// Requests for read indexes.
    pub read_indexes: IntCounter,
    /// Messages with grants of regions that others read.
    pub pushed: IntCounter,
    /// Messages that say what changed in all regions.
    pub exchanged: IntCounter,
    /// Reads whose grant was there.
    pub covered: IntCounter,
    /// Reads that waited for a push.
    pub by_push: IntCounter,
    /// Reads that waited for an answer.
    pub by_answer: IntCounter,
    /// Reads that waited until an index was applied.
    pub by_apply: IntCounter,
}

impl GrantMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    ///
    /// Fails if `registry` already holds them.
    pub fn new(registry: &Registry) -> Result<GrantMetrics, Error> {
        let family = |name: &str, help: &str, label: &str| -> Result<IntCounterVec, Error> {
            let family = IntCounterVec::new(Opts::new(name, help), &[label])?;
            registry.register(Box::new(family.clone()))?;
            Ok(family)
        };
        let sent = family("cortado_kv_grant_messages_total", "Messages about grants that were sent, by kind.", "kind")?;
        let reads = family(
            "cortado_kv_granted_reads_total",
            "Reads at replicas that do not lead, by what they waited for first.",
            "wait",
        )?;
        let sent = |kind| sent.with_label_values(&[kind]);
        let reads = |wait| reads.with_label_values(&[wait]);
        Ok(GrantMetrics {
            asked: sent("ask"),
            read_indexes: sent("read_index"),
            pushed: sent("push"),
            exchanged: sent("exchange"),
            covered: reads("none"),
            by_push: reads("push"),
            by_answer: reads("answer"),
            by_apply: reads("apply"),
        })
    }
}
