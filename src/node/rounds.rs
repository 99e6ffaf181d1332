//! The protocol of garbage collection on a node: rounds that raise the safe point, the sweep of locks that dead
//! coordinators have left, and how far this node's store may collect.
//!
//! The node that leads the system region runs the rounds: it chooses the safe point and writes it down
//! ([`Placement::announce_safe_point`](super::placement::Placement::announce_safe_point)), and raises it in all regions
//! ([`txn::Collection`]). Every node follows with its own store, as far as its replicas have applied it.

use std::sync::Arc;
use std::time::Duration;

use engine::store::rocks::RocksStore;
use kv::gc::{CollectBound, follow_published};
use raftstore::{RegionId, StoreHandle};
use tso::Timestamp;
use txn::Database;

use super::state::NodeState;

/// The interval between two rounds is this part of the ttl, within limits.
const ROUNDS_PER_TTL: u32 = 10;
const ROUND_INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The interval between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// The sweep looks at locks of transactions that began so long ago. Far above the ttl of a lock.
const SWEEP_AGE: Duration = Duration::from_secs(15);
/// The interval at which a node looks how far its replicas have come.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the rounds and the sweeps while this node leads the system region. Never ends.
pub(crate) async fn run_rounds(state: Arc<NodeState>, database: Database, store: StoreHandle<RocksStore>) {
    let (mut raised, mut last_round, mut next_sweep) = (Timestamp::ZERO, None, Duration::ZERO);
    loop {
        tokio::time::sleep(FOLLOW_INTERVAL).await;
        if !store.region(RegionId::SYSTEM).is_some_and(|status| status.is_leader) {
            continue;
        }
        let now = state.uptime();
        match round(&state, &database, (raised, last_round), now).await {
            // One that raises nothing is repeated at once: it costs a timestamp, and its reason is shown.
            Ok(Some(safe_point)) if safe_point > raised => (raised, last_round) = (safe_point, Some(now)),
            Ok(_) => {}
            Err(why) => tracing::info!(%why, "the safe point of garbage collection was not raised"),
        }
        if now >= next_sweep {
            next_sweep = now + SWEEP_INTERVAL;
            if let Err(why) = sweep(&database).await {
                tracing::debug!(%why, "the sweep of old locks was not completed");
            }
        }
    }
}

/// One round, if it is due: the ttl may have changed since the last one. Returns the safe point that all regions have.
async fn round(
    state: &NodeState,
    database: &Database,
    (raised, last_round): (Timestamp, Option<Duration>),
    now: Duration,
) -> Result<Option<Timestamp>, Box<dyn std::error::Error + Send + Sync>> {
    let Some(placement) = state.placement.get() else { return Err("the node does not serve yet".into()) };
    let ttl = sql::catalog::gc_ttl(database).await?;
    let interval = (ttl / ROUNDS_PER_TTL).clamp(ROUND_INTERVALS.0, ROUND_INTERVALS.1);
    if last_round.is_some_and(|last| now < last + interval) {
        return Ok(None);
    }
    let oracle_now = database.now().await?;
    let safe_point = placement.announce_safe_point((oracle_now, ttl), now).await?;
    if safe_point > raised {
        database.collection().raise(safe_point).await?;
        tracing::debug!(%safe_point, "the safe point is raised in all regions");
    }
    Ok(Some(safe_point))
}

async fn sweep(database: &Database) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let age_ms = u64::try_from(SWEEP_AGE.as_millis()).unwrap_or(u64::MAX);
    let before = database.now().await?.physical_ms().saturating_sub(age_ms);
    let met = database.collection().sweep(Timestamp::new(before, 0)).await?;
    if met > 0 {
        tracing::info!(met, "locks of transactions that nobody had met were looked at");
    }
    Ok(())
}

/// Lets the bound of this node's store follow what its replicas have published. Never ends.
pub(crate) async fn follow(store: StoreHandle<RocksStore>, bound: CollectBound) {
    loop {
        follow_published(&store, &bound);
        tokio::time::sleep(FOLLOW_INTERVAL).await;
    }
}
