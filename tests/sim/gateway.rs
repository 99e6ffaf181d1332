//! What a node starts in each life, over the simulated store and wire: the key-value server, the oracle, and a gateway
//! with its clients.

use std::sync::Arc;
use std::time::Duration;

use engine::store::memory::MemoryStore;
use futures::future::BoxFuture;
use kv::api::{Request, Response};
use kv::client::{CallError, Client, ClientConfig, Endpoint};
use kv::placement::oracle::{OtherNodes, RegionWindow};
use kv::server::{KvServer, KvServerConfig};
use parking_lot::Mutex;
use prometheus::Registry;
use raftstore::{RegionStatus, StoreHandle, StoreId};
use tokio_util::sync::CancellationToken;
use tso::oracle::ClockReading;
use tso::service::Clocks;
use tso::{TimeReport, TsRange, TsoClient, TsoClientOptions, TsoError, TsoService, TsoSource};
use txn::{Database, TxnConfig};

use crate::nodes::{Life, Nodes};
use crate::store::SimStore;
use crate::wire::{NoAnswer, Sender};

/// The wall clocks' time at the start.
const WALL_START_MS: u64 = 1_700_000_000_000;
/// How often a node that does not answer is asked for its time.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// Starts a life of a node.
pub(crate) fn start(
    sender: &Sender,
    nodes: &Arc<Nodes>,
    handle: StoreHandle<MemoryStore>,
    wall_skew_ms: u64,
    seed: u64,
) -> Life {
    let registry = Registry::new();
    let store = SimStore::new(handle.clone(), Arc::clone(nodes));
    let window = Arc::new(RegionWindow::new(Arc::new(Others(sender.clone()))));
    let oracle = TsoService::new(window.clone(), clocks(Arc::clone(nodes), wall_skew_ms), None);
    let tso = tso_client(sender, seed);
    let timestamps = Arc::new(tso.clone());
    let server = KvServer::new(store, timestamps, &KvServerConfig::default(), &registry).expect("valid settings");
    window.connect(handle, tso.clone());
    let config = ClientConfig { seed: Some(seed), ..ClientConfig::default() };
    let endpoint = Arc::new(Servers { sender: sender.clone(), stores: nodes.stores.clone() });
    let client = Client::with_config(endpoint, config, &registry).expect("valid settings");
    let config = TxnConfig { seed: Some(seed), ..TxnConfig::default() };
    let database = Database::with_config(client, tso, config, &registry).expect("valid settings");
    Life { number: sender.life, server, oracle, database, ended: CancellationToken::new() }
}

fn tso_client(sender: &Sender, seed: u64) -> TsoClient {
    let source = Oracles { sender: sender.clone(), next: Mutex::new(sender.store) };
    let options = TsoClientOptions { seed: Some(seed), ..TsoClientOptions::default() };
    TsoClient::with_options(Arc::new(source), options, None)
}

/// The clocks of a node. Reading them also sets the clocks of the stores, so that a lease is checked at the same time.
fn clocks(nodes: Arc<Nodes>, skew_ms: u64) -> Clocks {
    Arc::new(move || {
        nodes.set_clocks();
        let mono_ms = nodes.elapsed() / 1_000_000;
        ClockReading { wall_ms: WALL_START_MS + skew_ms + mono_ms, mono_ms }
    })
}

/// The key-value servers of all nodes.
struct Servers {
    sender: Sender,
    stores: Vec<StoreId>,
}

fn no_answer(store: StoreId, why: NoAnswer) -> CallError {
    let why_text = "injected".to_owned();
    match why {
        NoAnswer::Unreachable => CallError::Unreachable { store, why: why_text },
        NoAnswer::Lost => CallError::Lost { store, why: why_text },
    }
}

impl Endpoint for Servers {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            let serve = move |life: Life| {
                let request = request.clone();
                async move { life.server.handle(request).await }
            };
            Ok(self.sender.ask(store, true, serve).await.map_err(|why| no_answer(store, why))??)
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(async move {
            let serve = move |life: Life| {
                let key = key.clone();
                async move { life.server.locate(&key) }
            };
            self.sender.ask(store, false, serve).await.map_err(|why| no_answer(store, why))
        })
    }

    fn stores(&self) -> Vec<StoreId> {
        let own = self.sender.store;
        std::iter::once(own).chain(self.stores.iter().copied().filter(|store| *store != own)).collect()
    }
}

/// The oracles of all nodes. The one that answered last is asked first.
struct Oracles {
    sender: Sender,
    next: Mutex<StoreId>,
}

impl TsoSource for Oracles {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        Box::pin(async move {
            let asked = *self.next.lock();
            let serve = move |life: Life| async move { life.oracle.allocate(count).await };
            let refused = match self.sender.ask(asked, true, serve).await {
                Ok(Ok(range)) => return Ok(range),
                Ok(Err(refused)) => refused.to_string(),
                Err(why) => format!("{why:?}"),
            };
            *self.next.lock() = StoreId::new(asked.get() % self.sender.wire.stores() + 1);
            Err(TsoError::Unavailable(refused))
        })
    }
}

/// The other nodes, as the oracle asks them.
struct Others(Sender);

impl OtherNodes for Others {
    fn address(&self, store: StoreId) -> Option<String> {
        Some(store.to_string())
    }

    fn ask_time(&self, store: StoreId, _: Option<String>) -> BoxFuture<'_, TimeReport> {
        Box::pin(async move {
            loop {
                let serve = |life: Life| async move { life.oracle.time_report() };
                if let Ok(report) = self.0.ask(store, false, serve).await {
                    return report;
                }
                tokio::time::sleep(ASK_INTERVAL).await;
            }
        })
    }
}
