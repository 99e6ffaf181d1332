//! Reads at replicas: the grants of the simulated stores, and the reads of a gateway that go to any replica instead of
//! the leader.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use kv::api::{ReadPath, ReplicaProof, ReplicaRead, Request, RequestBody, Served};
use kv::grant::{AskGrants, GivenGrants, PushAnswer, PushGrants};
use kv::grants::{NoAnswer, Peers};
use prometheus::Registry;
use raftstore::StoreId;
use tso::Timestamp;

use crate::wire::{Sender, Wire};

/// The other stores, for the grants of a node.
pub(crate) struct GrantPeers(pub(crate) Sender);

impl Peers for GrantPeers {
    fn ask(&self, to: StoreId, ask: AskGrants) -> BoxFuture<'static, Result<GivenGrants, NoAnswer>> {
        let sender = self.0.clone();
        async move {
            let serve = move |life: crate::nodes::Life| {
                let ask = ask.clone();
                async move { life.server.grants().give(ask).await }
            };
            sender.ask(to, |_| true, serve).await.map_err(|why| NoAnswer(format!("{why:?}")))
        }
        .boxed()
    }

    fn push(&self, to: StoreId, push: PushGrants) -> BoxFuture<'static, Result<PushAnswer, NoAnswer>> {
        let sender = self.0.clone();
        async move {
            let serve = move |life: crate::nodes::Life| {
                let push = push.clone();
                async move { life.server.grants().take(&push) }
            };
            sender.ask(to, |_| true, serve).await.map_err(|why| NoAnswer(format!("{why:?}")))
        }
        .boxed()
    }
}

/// How replicas served reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplicaReads {
    pub(crate) by_leader: u64,
    pub(crate) by_grant: u64,
    /// Those among them for which the leader was asked.
    pub(crate) asked: u64,
    pub(crate) by_read_index: u64,
    /// Those by a grant or a read index at a learner.
    pub(crate) by_learner: u64,
    pub(crate) refused: u64,
}

impl ReplicaReads {
    pub(crate) fn count(&mut self, served: &Served, learner: Option<StoreId>) {
        match served.path {
            ReadPath::Lease => self.by_leader += 1,
            ReadPath::Grant | ReadPath::SessionSnapshot => self.by_grant += 1,
            ReadPath::ReadIndex => self.by_read_index += 1,
            ReadPath::Unproven => panic!("a read without proof: {served:?}"),
        }
        self.by_learner += u64::from(Some(served.store) == learner);
        self.asked += u64::from(served.asked > 0 && served.path == ReadPath::Grant);
    }

    pub(crate) fn add(&mut self, other: ReplicaReads) {
        self.by_leader += other.by_leader;
        self.by_grant += other.by_grant;
        self.asked += other.asked;
        self.by_read_index += other.by_read_index;
        self.by_learner += other.by_learner;
        self.refused += other.refused;
    }
}

/// How often what of the surface of replica reads was used.
pub(crate) type Surface = BTreeMap<String, u64>;

/// The counters of a gateway that say how reads with options were served, with the words for each.
const COUNTERS: [(&str, &str); 5] = [
    ("cortado_kv_client_replica_reads_total", "served by"),
    ("cortado_kv_client_hedges_total", "hedges"),
    ("cortado_kv_client_hedges_suppressed_total", "hedges suppressed"),
    ("cortado_txn_shadow_reads_total", "shadow reads"),
    ("cortado_txn_shadow_differences_total", "shadow differences"),
];

/// Adds the counters of a gateway.
pub(crate) fn add_counters(surface: &mut Surface, registry: &Registry) {
    for family in registry.gather() {
        let Some((_, words)) = COUNTERS.iter().find(|(name, _)| family.name() == *name) else { continue };
        for metric in family.get_metric() {
            // In the order of the labels' names: path, then replica.
            let labels = metric.get_label().iter().map(|label| label.value());
            let name = std::iter::once(*words).chain(labels).collect::<Vec<_>>().join(" ");
            *surface.entry(name).or_default() += metric.get_counter().get_value() as u64;
        }
    }
}

/// The read of a request as one that any replica may serve, and the replica to ask. `None` for other requests, for
/// reads without a snapshot, and if the read shall go its way.
pub(crate) fn as_replica_read(wire: &Wire, request: &Request) -> Option<(StoreId, Request)> {
    let start_ts = match &request.body {
        RequestBody::Get { start_ts, .. } | RequestBody::BatchGet { start_ts, .. } => *start_ts,
        RequestBody::Scan(scan) => scan.start_ts,
        _ => return None,
    };
    if start_ts == Timestamp::ZERO {
        return None;
    }
    let (store, kind) = wire.draw_replica()?;
    let proof = match kind {
        0 => ReplicaProof::ReadIndex,
        1 => ReplicaProof::Covered,
        _ => ReplicaProof::Grant,
    };
    let replica = ReplicaRead { read: Box::new(request.body.clone()), proof, floor: None };
    Some((store, Request { context: request.context, body: RequestBody::Replica(replica) }))
}

/// Whether a point read at `start_ts` that takes no message shall be made at the node's own replica.
pub(crate) fn reads_own_replica(wire: &Wire, start_ts: Timestamp) -> bool {
    start_ts > Timestamp::ZERO && wire.draw_replica().is_some()
}
