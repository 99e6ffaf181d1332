//! What a node starts in each life, over the simulated store and wire: the key-value server, the oracle with its
//! router, and a gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::store::memory::MemoryStore;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::{CommitMode, PrewriteRequest, Request, RequestBody, Response, Served, ServerError};
use kv::client::{CallError, Client, ClientConfig, Endpoint, Locality};
use kv::gc::CollectBound;
use kv::placement::oracle::{OtherNodes, RegionWindow};
use kv::read::ReadConfig;
use kv::read_pool::{PoolConfig, Workers};
use kv::scan_cache::KeepLimits;
use kv::server::{KvServer, KvServerConfig};
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::{RegionContext, RegionError, RegionId, RegionStatus, StoreHandle, StoreId};
use tokio_util::sync::CancellationToken;
use tso::oracle::ClockReading;
use tso::service::Clocks;
use tso::{
    AllocateError, NodeDirectory, OracleNode, TimeReport, Timestamp, TsRange, TsoClient, TsoClientOptions, TsoRouter,
    TsoService,
};
use txn::{CommitLimits, Database, TxnConfig};

use crate::collect;
use crate::nodes::{Gateway, Life, Nodes};
use crate::options::{Bugs, Settings};
use crate::replicas;
use crate::steps::{Commits, Step, Work};
use crate::store::SimStore;
use crate::wire::{AbortOnDrop, NoAnswer, Sender};

/// The wall clocks' time at the start.
const WALL_START_MS: u64 = 1_700_000_000_000;
/// How often a node that does not answer is asked for its time.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// Starts a life of a node.
pub(crate) fn start(
    sender: &Sender,
    (handle, data): (StoreHandle<MemoryStore>, &MemoryStore),
    wall_skew_ms: u64,
    seed: u64,
    settings: &Settings,
) -> Life {
    let nodes = &sender.wire.nodes;
    let store = SimStore::new(handle.clone(), Arc::clone(nodes));
    let window = Arc::new(RegionWindow::new(Arc::new(Others(sender.clone()))));
    let oracle = oracle(window.clone(), clocks(Arc::clone(nodes), wall_skew_ms), settings.bugs);
    let directory = Arc::new(Directory { handle: handle.clone(), stores: nodes.stores.clone() });
    let asker = sender.clone();
    let connect = move |address: &str| match address.parse() {
        Ok(number) => {
            Ok(Arc::new(RemoteOracle { sender: asker.clone(), store: StoreId::new(number) }) as Arc<dyn OracleNode>)
        }
        Err(_) => Err(AllocateError::Unavailable(format!("no node {address}"))),
    };
    let local = Some((address(sender.store), oracle.clone()));
    let router = TsoRouter::with_connect(local, directory, Box::new(connect));
    let options = TsoClientOptions { seed: Some(seed), deadline: settings.deadline, ..TsoClientOptions::default() };
    let timestamps = TsoClient::with_options(Arc::new(router), options, None);
    let source = Arc::new(timestamps.clone());
    let server = KvServer::new(store, source, &server_config(settings), &Registry::new()).expect("valid settings");
    window.connect(handle, timestamps.clone());
    let grants = server.grants().clone();
    grants.connect(Arc::new(replicas::GrantPeers(sender.clone())));
    let streams = Arc::new(AbortOnDrop(tokio::spawn(grants.run(seed)).abort_handle()));
    let collect = Arc::new(collect::start(data, &CollectBound::new(), nodes, sender.store));
    Life { number: sender.life, server, oracle, timestamps, _collect: collect, _streams: streams }
}

#[cfg(not(feature = "planted-bugs"))]
fn oracle(window: Arc<RegionWindow<MemoryStore>>, clocks: Clocks, _: Bugs) -> TsoService {
    TsoService::new(window, clocks, None)
}

#[cfg(feature = "planted-bugs")]
fn oracle(window: Arc<RegionWindow<MemoryStore>>, clocks: Clocks, bugs: Bugs) -> TsoService {
    match bugs.tso {
        Some(bug) => TsoService::with_planted_bug(window, clocks, bug),
        None => TsoService::new(window, clocks, None),
    }
}

/// No read runs on another thread, or in slices, and no scan is kept for a real time.
fn server_config(settings: &Settings) -> KvServerConfig {
    let defaults = ReadConfig::default();
    let reads = ReadConfig {
        first_slice_steps: defaults.page_steps,
        inline_keys: usize::MAX,
        keep: KeepLimits { scans: 0, ..KeepLimits::default() },
        ..defaults
    };
    KvServerConfig {
        reads,
        pool: PoolConfig { workers: Workers::Caller, ..PoolConfig::default() },
        latch_capacity: settings.latch_capacity,
        grants: settings.grants,
        #[cfg(feature = "planted-bugs")]
        planted_bug: settings.bugs.kv,
        ..KvServerConfig::default()
    }
}

/// Opens a gateway of a node in this life.
pub(crate) fn open(node: &Sender, timestamps: TsoClient, settings: &Settings) -> Gateway {
    let (wire, seed) = (&node.wire, node.wire.draw_seed());
    let registry = Registry::new();
    let number = wire.nodes.next_gateway(&registry);
    let sender = Sender { gateway: Some(number), ..node.clone() };
    let endpoint = Servers {
        sender,
        timestamps: timestamps.clone(),
        commits: Commits::default(),
        refused: Mutex::default(),
        settings: settings.clone(),
    };
    let Settings { deadline, kv_batch_keys, lock_ttl, txn_batch_keys, batches_in_flight, .. } = *settings;
    let locality = locality(node.store);
    let config =
        ClientConfig { seed: Some(seed), deadline, batch_keys: kv_batch_keys, locality, ..ClientConfig::default() };
    let client = Client::with_config(Arc::new(endpoint), config, &registry).expect("valid settings");
    let computes = !seed.is_multiple_of(3);
    let config = TxnConfig {
        lock_ttl,
        commit: CommitLimits {
            batch_keys: txn_batch_keys,
            batches_in_flight,
            // The others commit in two phases, as those of large transactions do.
            one_phase: computes,
            async_keys: if computes { CommitLimits::default().async_keys } else { 0 },
            ..CommitLimits::default()
        },
        background: settings.background,
        status_cache_entries: settings.status_cache_entries,
        shadow_reads: settings.shadow_reads,
        seed: Some(seed),
        #[cfg(feature = "planted-bugs")]
        planted_bug: settings.bugs.txn,
        ..TxnConfig::default()
    };
    let database = Database::with_config(client, timestamps, config, &registry).expect("valid settings");
    Gateway { number, database, ended: CancellationToken::new() }
}

/// Where a node is: in one of two regions, and every second node of a region in the same zone.
fn locality(store: StoreId) -> Locality {
    let number = store.get();
    Locality::parse(&format!("region=r{},zone=z{}", number % 2, number % 4))
}

/// The clocks of a node. Reading them also sets the clocks of the stores, so that a lease is checked at the same time.
fn clocks(nodes: Arc<Nodes>, skew_ms: u64) -> Clocks {
    Arc::new(move || {
        nodes.set_clocks();
        let mono_ms = nodes.elapsed() / 1_000_000;
        ClockReading { wall_ms: WALL_START_MS + skew_ms + mono_ms, mono_ms }
    })
}

/// The key-value servers of all nodes, as a gateway calls them.
struct Servers {
    sender: Sender,
    timestamps: TsoClient,
    commits: Commits,
    /// How often a write is refused yet, because an attempt before took effect without an answer.
    refused: Mutex<BTreeMap<(Work, Timestamp), u32>>,
    settings: Settings,
}

type Answer = Result<Response, ServerError>;

/// Whether a copy of the request may arrive later: a store that answers in this way has not refused it.
fn may_be_copied(answer: &Answer) -> bool {
    !matches!(answer, Err(ServerError::Region(_)))
}

fn no_answer(store: StoreId, why: NoAnswer) -> CallError {
    let why_text = "injected".to_owned();
    match why {
        NoAnswer::Unreachable => CallError::Unreachable { store, why: why_text },
        NoAnswer::Lost => CallError::Lost { store, why: why_text },
    }
}

impl Servers {
    /// The coordinator takes a step, and may die at it.
    async fn reach(&self, step: Step) {
        let sender = &self.sender;
        if !sender.dies_at(step) {
            return;
        }
        let nodes = &sender.wire.nodes;
        nodes.note(format!("gateway {:?} of {} dies at {step:?}", sender.gateway, sender.store));
        *nodes.seen.lock().coordinators.entry(step).or_default() += 1;
        let node = Sender { gateway: None, ..sender.clone() };
        nodes.replace_gateway(sender.store, open(&node, self.timestamps.clone(), &self.settings));
        std::future::pending::<()>().await;
    }

    /// Refuses a write whose earlier attempt took effect without an answer.
    fn refuse(&self, region: RegionId, write: (Work, Timestamp)) -> Result<(), CallError> {
        let mut refused = self.refused.lock();
        let Some(left) = refused.get_mut(&write) else { return Ok(()) };
        *left -= 1;
        if *left == 0 {
            refused.remove(&write);
        }
        self.sender.wire.nodes.seen.lock().refusals += 1;
        Err(CallError::Server(RegionError::NotLeader { region, leader: None }.into()))
    }

    /// Sends a request, or the same read to any replica. What that cannot serve, the leader serves.
    async fn send(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        if let Some((replica, read)) = replicas::as_replica_read(&self.sender.wire, &request) {
            match self.send_to(replica, read).await {
                Ok(Response::Replica { served, outcome }) => {
                    self.sender.wire.nodes.seen.lock().replica_reads.count(&served, self.settings.learner);
                    return (*outcome).map_err(|error| CallError::Server(error.into()));
                }
                Ok(other) => panic!("not the answer of a replica: {other:?}"),
                Err(_) => self.sender.wire.nodes.seen.lock().replica_reads.refused += 1,
            }
        }
        self.send_to(store, request).await
    }

    async fn send_to(&self, store: StoreId, request: Request) -> Result<Response, CallError> {
        let serve = move |life: Life| {
            let request = request.clone();
            async move { life.server.handle(request).await }
        };
        Ok(self.sender.ask(store, may_be_copied, serve).await.map_err(|why| no_answer(store, why))??)
    }

    async fn write(&self, store: StoreId, request: Request, write: (Work, Timestamp)) -> Result<Response, CallError> {
        let (work, start_ts) = write;
        if work == Work::Heartbeat && !self.sender.is_alive() {
            // The session, in whose task the commit may still run, notices first.
            tokio::task::yield_now().await;
            // Ends the task of a dead coordinator, which would send heartbeats for ever.
            std::panic::resume_unwind(Box::new("the coordinator is dead"));
        }
        if let RequestBody::Prewrite(PrewriteRequest { commit: CommitMode::OnePhase(_), .. }) = &request.body {
            self.sender.wire.before_one_phase(request.context.region).await;
        }
        self.reach(Step::Before(work)).await;
        self.refuse(request.context.region, write)?;
        let answer = self.send(store, request).await;
        if answer.is_ok() {
            self.reach(Step::After(work)).await;
            if let Some(refusals) = self.sender.wire.refusals() {
                self.refused.lock().insert(write, refusals);
                return Err(no_answer(store, NoAnswer::Lost));
            }
            if work == Work::CommitPrimary {
                self.commits.acknowledge(start_ts);
            }
        }
        answer
    }
}

/// Whether a prewrite leaves the least commit_ts to its store.
fn leaves_least(body: &RequestBody) -> bool {
    matches!(body, RequestBody::Prewrite(request) if request.commit.clone().unset_least().is_some())
}

impl Endpoint for Servers {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            let Some(write) = self.commits.work(&request.body) else {
                let answer = self.send(store, request).await;
                let is_first = matches!(answer, Ok(Response::Started { .. }));
                self.sender.wire.nodes.seen.lock().first_reads += u64::from(is_first);
                return answer;
            };
            let (leaves_least, body) = (leaves_least(&request.body), request.body.clone());
            self.sender.wire.nodes.watch.lock().leaves(&body);
            let answer = self.write(store, request, write).await;
            if let Ok(answer) = &answer {
                self.sender.wire.nodes.watch.lock().see(&body, answer, self.commits.is_own(write.1));
            }
            let is_ahead = leaves_least && matches!(answer, Ok(Response::Committed { .. }));
            self.sender.wire.nodes.seen.lock().names_ahead += u64::from(is_ahead);
            let (Sender { store: own, wire, .. }, (work, start_ts)) = (&self.sender, write);
            match &answer {
                Ok(response) => wire.nodes.note(format!("{own} asks {store}: {work:?} {start_ts}: {response:?}")),
                Err(error) => wire.nodes.note(format!("{own} asks {store}: {work:?} {start_ts}: {error}")),
            }
            answer
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(async move {
            let serve = move |life: Life| {
                let key = key.clone();
                async move { life.server.locate(&key) }
            };
            self.sender.ask(store, |_| false, serve).await.map_err(|why| no_answer(store, why))
        })
    }

    fn try_get(
        &self,
        store: StoreId,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
    ) -> Option<Option<Bytes>> {
        let own = self.sender.store;
        if replicas::reads_own_replica(&self.sender.wire, start_ts) {
            let (value, served) = self.sender.own_life(own)?.server.try_replica_get(context, key, start_ts, None)?;
            self.sender.wire.nodes.seen.lock().replica_reads.count(&served, self.settings.learner);
            return Some(value);
        }
        self.sender.own_life(store)?.server.try_get(context, key, start_ts)
    }

    fn try_replica_get(
        &self,
        store: StoreId,
        context: RegionContext,
        key: (&Key, &[u8]),
        start_ts: Timestamp,
        floor: Option<Timestamp>,
    ) -> Option<(Option<Bytes>, Served)> {
        self.sender.own_life(store)?.server.try_replica_get(context, key, start_ts, floor)
    }

    fn locality(&self, store: StoreId) -> Locality {
        locality(store)
    }

    fn own_store(&self) -> Option<StoreId> {
        Some(self.sender.store)
    }

    fn stores(&self) -> Vec<StoreId> {
        let own = self.sender.store;
        let all = self.sender.wire.nodes.stores.iter().copied();
        std::iter::once(own).chain(all.filter(|store| *store != own)).collect()
    }
}

/// The address of a node: the number of its store.
fn address(store: StoreId) -> String {
    store.to_string()
}

/// The nodes that may be the oracle, as a node's own replica of the system region shows them.
struct Directory {
    handle: StoreHandle<MemoryStore>,
    stores: Vec<StoreId>,
}

impl NodeDirectory for Directory {
    fn leader(&self) -> Option<String> {
        Some(address(self.handle.region(RegionId::SYSTEM)?.leader?.store))
    }

    fn nodes(&self) -> Vec<String> {
        self.stores.iter().map(|store| address(*store)).collect()
    }
}

/// The oracle of another node.
struct RemoteOracle {
    sender: Sender,
    store: StoreId,
}

impl OracleNode for RemoteOracle {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, AllocateError>> {
        Box::pin(async move {
            let serve = move |life: Life| async move { life.oracle.allocate(count).await };
            let answer = self.sender.ask(self.store, |_| true, serve).await;
            answer.map_err(|why| AllocateError::Unavailable(format!("{why:?}")))?
        })
    }
}

/// The other nodes, as the oracle asks them.
struct Others(Sender);

impl OtherNodes for Others {
    fn address(&self, store: StoreId) -> Option<String> {
        Some(address(store))
    }

    fn ask_time(&self, store: StoreId, _: Option<String>) -> BoxFuture<'_, TimeReport> {
        Box::pin(async move {
            loop {
                let serve = |life: Life| async move { life.oracle.time_report() };
                if let Ok(report) = self.0.ask(store, |_| false, serve).await {
                    return report;
                }
                tokio::time::sleep(ASK_INTERVAL).await;
            }
        })
    }
}
