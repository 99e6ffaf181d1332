//! Three stores whose every replica serves replica reads, as the real ones do, over one in-memory cluster: store 1
//! leads, the others follow. Each call is logged; each store can be made slow, or fail, or refuse.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::{
    KeyError, Mutation, MutationOp, ReadPath, ReplicaProof, ReplicaRead, Request, RequestBody, Response, Served,
    ServerError,
};
use kv::client::{CallError, Client, ClientConfig, Endpoint, Locality};
use kv::memory::MemoryCluster;
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::{PeerRole, RegionContext, RegionError, RegionStatus, StoreId};
use tso::Timestamp;

pub(super) const ONE: StoreId = StoreId::new(1);
pub(super) const TWO: StoreId = StoreId::new(2);
pub(super) const THREE: StoreId = StoreId::new(3);

/// What a store does with a call.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    Refuse(RegionError),
    Unreachable,
    Slow(Duration),
    /// It answers at a timestamp of its own choice.
    ReadsAt(Timestamp),
}

#[derive(Default)]
struct State {
    log: Vec<String>,
    safe_ts: BTreeMap<StoreId, Timestamp>,
    faults: BTreeMap<StoreId, Fault>,
    loads: BTreeMap<StoreId, u32>,
    /// Calls whose futures were dropped before they ended.
    dropped: usize,
}

/// The cluster, as the client of a node sees it.
pub(super) struct Replicas {
    pub(super) cluster: MemoryCluster,
    /// The node's own store.
    own: Option<StoreId>,
    learner: Option<StoreId>,
    state: Mutex<State>,
}

/// Counts a call as dropped unless it ends.
struct Ends<'a>(&'a Replicas, bool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.state.lock().dropped += usize::from(!self.1);
    }
}

impl Replicas {
    /// One region with the key `k`, whose value is `v`; store 1 leads it.
    pub(super) async fn new(own: Option<StoreId>, learner: Option<StoreId>) -> Arc<Replicas> {
        Replicas::over(MemoryCluster::builder().stores(3).build(), own, learner).await
    }

    /// Regions of a cluster, which store 1 all leads.
    pub(super) async fn over(cluster: MemoryCluster, own: Option<StoreId>, learner: Option<StoreId>) -> Arc<Replicas> {
        for status in cluster.regions() {
            let first = if status.region.start.is_empty() {
                key("")
            } else {
                Key::from_storage(&status.region.start).expect("a key")
            };
            cluster.move_leader(&first, ONE);
        }
        let client = Client::new(Arc::new(cluster.clone()));
        let (start_ts, op) = (cluster.timestamp(), MutationOp::Put(Bytes::from_static(b"v")));
        client.prewrite(vec![Mutation::new(key("k"), op)], &key("k"), start_ts, || 3_000).await.expect("prewritten");
        client.commit(&[key("k")], start_ts, cluster.timestamp()).await.expect("committed");
        Arc::new(Replicas { cluster, own, learner, state: Mutex::default() })
    }

    /// A client of these stores that knows the region of every key.
    pub(super) async fn client(self: &Arc<Replicas>, registry: &Registry) -> Client {
        let config =
            ClientConfig { seed: Some(1), locality: Locality::parse("region=eu,zone=two"), ..ClientConfig::default() };
        let client = Client::with_config(Arc::<Replicas>::clone(self), config, registry).expect("valid settings");
        let all = self.cluster.regions().into_iter().map(|status| status.region.start);
        for start in all {
            let first = if start.is_empty() { key("") } else { Key::from_storage(&start).expect("a key") };
            client.get(&first, self.cluster.timestamp()).await.expect("served");
        }
        self.log();
        client
    }

    /// What was called since the last time.
    pub(super) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().log)
    }

    pub(super) fn set_fault(&self, store: StoreId, fault: impl Into<Option<Fault>>) {
        let faults = &mut self.state.lock().faults;
        match fault.into() {
            Some(fault) => faults.insert(store, fault),
            None => faults.remove(&store),
        };
    }

    /// Gives a replica a grant at `safe_ts`.
    pub(super) fn set_safe_ts(&self, store: StoreId, safe_ts: Timestamp) {
        self.state.lock().safe_ts.insert(store, safe_ts);
    }

    /// Sets the load that a store names.
    pub(super) fn set_load(&self, store: StoreId, load: u32) {
        self.state.lock().loads.insert(store, load);
    }

    pub(super) fn dropped(&self) -> usize {
        self.state.lock().dropped
    }

    async fn serve(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        let entry = format!("{store} {}", describe(&request.body));
        self.state.lock().log.push(entry);
        let mut ends = Ends(self, false);
        let fault = self.state.lock().faults.get(&store).cloned();
        let result = match fault {
            Some(Fault::Refuse(error)) => Err(ServerError::from(error).into()),
            Some(Fault::Unreachable) => Err(CallError::Unreachable { store, why: "injected".to_owned() }),
            Some(Fault::Slow(time)) => {
                tokio::time::sleep(time).await;
                self.execute(store, request).await
            }
            Some(Fault::ReadsAt(other)) => self.execute(store, request).await.map(|response| match response {
                Response::Replica { served, outcome } => {
                    Response::Replica { served: Served { start_ts: other, ..served }, outcome }
                }
                plain => plain,
            }),
            None => self.execute(store, request).await,
        };
        ends.1 = true;
        result
    }

    async fn execute(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        let RequestBody::Replica(replica) = request.body else { return self.cluster.call(store, request).await };
        let ReplicaRead { read, proof, floor } = replica;
        let mut body = *read;
        let first = match &mut body {
            RequestBody::Get { start_ts, .. } | RequestBody::BatchGet { start_ts, .. } => start_ts,
            RequestBody::Scan(scan) => &mut scan.start_ts,
            other => panic!("no read: {other:?}"),
        };
        let safe_ts = self.state.lock().safe_ts.get(&store).copied().unwrap_or_default();
        let (mut path, mut asked) = (ReadPath::Grant, 0);
        if *first == Timestamp::ZERO && floor.is_some_and(|floor| safe_ts >= floor) {
            (*first, path) = (safe_ts, ReadPath::SessionSnapshot);
        } else if *first == Timestamp::ZERO {
            *first = self.cluster.timestamp();
        }
        let start_ts = *first;
        match proof {
            ReplicaProof::Unproven => path = ReadPath::Unproven,
            ReplicaProof::ReadIndex => (path, asked) = (ReadPath::ReadIndex, 1),
            ReplicaProof::Covered if safe_ts < start_ts => {
                let why = "no grant".to_owned();
                return Err(ServerError::from(RegionError::NotReady { region: request.context.region, why }).into());
            }
            ReplicaProof::Grant if safe_ts < start_ts => asked = 1,
            ReplicaProof::Grant | ReplicaProof::Covered => {}
        }
        let safe_ts = if asked > 0 { start_ts } else { safe_ts };
        self.set_safe_ts(store, safe_ts);
        let outcome = match self.cluster.call(ONE, Request { body, ..request }).await {
            Ok(response) => Ok(response),
            Err(CallError::Server(ServerError::Key(error))) => Err(error),
            Err(error) => return Err(error),
        };
        let load = self.state.lock().loads.get(&store).copied().unwrap_or_default();
        let served = Served { store, path, start_ts, safe_ts, asked, load };
        Ok(Response::Replica { served, outcome: Box::new(outcome) })
    }
}

impl Endpoint for Replicas {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(self.serve(store, request))
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(async move {
            let mut status = self.cluster.locate(store, key).await?;
            for peer in status.iter_mut().flat_map(|status| &mut status.region.peers) {
                peer.role = if self.learner == Some(peer.store) { PeerRole::Learner } else { PeerRole::Voter };
            }
            Ok(status)
        })
    }

    fn try_get(
        &self,
        store: StoreId,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
    ) -> Option<Option<Bytes>> {
        if self.own == Some(store) { self.cluster.try_get(store, context, key, start_ts) } else { None }
    }

    /// A read at the own replica, of the key `k` or of an absent one.
    fn try_replica_get(
        &self,
        store: StoreId,
        _: RegionContext,
        (read, _): (&Key, &[u8]),
        start_ts: Timestamp,
        floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        let state = self.state.lock();
        let safe_ts = *state.safe_ts.get(&store).filter(|_| self.own == Some(store))?;
        let is_session = start_ts == Timestamp::ZERO && floor.is_some_and(|floor| floor <= safe_ts);
        let (start_ts, path) =
            if is_session { (safe_ts, ReadPath::SessionSnapshot) } else { (start_ts, ReadPath::Grant) };
        let is_proven = start_ts != Timestamp::ZERO && start_ts <= safe_ts;
        let value = (*read == key("k")).then(|| Bytes::from_static(b"v"));
        is_proven.then_some((value, Served { store, path, start_ts, safe_ts, asked: 0, load: 0 }))
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }

    fn own_store(&self) -> Option<StoreId> {
        self.own
    }

    fn locality(&self, store: StoreId) -> Locality {
        // Store 3 is in the node's region, store 1 is not.
        Locality::parse(["region=us,zone=one", "region=eu,zone=two", "region=eu,zone=three"][store.get() as usize - 1])
    }
}

/// A request in two or three words.
fn describe(body: &RequestBody) -> String {
    match body {
        RequestBody::Get { .. } => "get".to_owned(),
        RequestBody::BatchGet { .. } => "batch get".to_owned(),
        RequestBody::Scan(_) => "scan".to_owned(),
        RequestBody::Replica(replica) => {
            let floor = if replica.floor.is_some() { " floor" } else { "" };
            format!("{} {:?}{floor}", describe(&replica.read), replica.proof)
        }
        _ => "write".to_owned(),
    }
}

pub(super) fn key(text: &'static str) -> Key {
    Key::from_static(text.as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "tests with virtual time measure it")]
pub(super) fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

pub(super) fn locked(error: &kv::client::ClientError) -> bool {
    matches!(error, kv::client::ClientError::Key(KeyError::Locked(_)))
}

/// The value of a counter with this label.
pub(super) fn labelled(registry: &Registry, name: &str, label: &str) -> u64 {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == name).expect("registered");
    let has_label = |metric: &&prometheus::proto::Metric| metric.get_label().iter().any(|pair| pair.value() == label);
    family.get_metric().iter().filter(has_label).map(|metric| metric.get_counter().get_value() as u64).sum()
}
