//! Finds the oracle among the nodes: this one first, then the one believed to lead, then each in turn.

use std::collections::HashMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::client::{TsRange, TsoError, TsoSource};
use crate::grpc::RemoteSource;
use crate::service::{AllocateError, TsoService};

/// A node that may be the oracle.
pub trait OracleNode: Send + Sync + 'static {
    /// `count` timestamps issued after this call was made, or where else to ask. One attempt, bounded in time.
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, AllocateError>>;
}

/// What the node knows of the others. Asked often; must not block.
pub trait Directory: Send + Sync + 'static {
    /// The address of the node believed to lead the system region, this one included.
    fn leader(&self) -> Option<String>;
    /// The addresses of all nodes, this one included.
    fn nodes(&self) -> Vec<String>;
}

/// Opens the way to a node at an address. Must not block.
pub type Connect = Box<dyn Fn(&str) -> Result<Arc<dyn OracleNode>, AllocateError> + Send + Sync>;

/// How many nodes one attempt follows hints through.
const MAX_HOPS: usize = 3;
/// Connections kept; all are dropped when there would be more, which takes addresses that change all the time.
const MAX_CONNECTIONS: usize = 256;

/// A source that asks whichever node serves.
pub struct TsoRouter {
    local: Option<(String, Arc<TsoService>)>,
    directory: Arc<dyn Directory>,
    connect: Connect,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: HashMap<String, Arc<dyn OracleNode>>,
    /// The node that answered last, or that the last answer named.
    leader: Option<String>,
    /// This node's own oracle failed in the last attempt: it may have lost its leadership and not know it yet.
    local_failed: bool,
    /// Attempts that failed.
    failures: usize,
    /// Counts the nodes tried in turn.
    turn: usize,
}

impl TsoRouter {
    /// A router over gRPC. `local` is this node's address and service, if it has one. Must be called, and used, within
    /// a tokio runtime.
    pub fn new(local: Option<(String, TsoService)>, directory: Arc<dyn Directory>) -> TsoRouter {
        let connect = |address: &str| RemoteSource::new(address).map(|remote| Arc::new(remote) as Arc<dyn OracleNode>);
        TsoRouter::with_connect(local, directory, Box::new(connect))
    }

    /// A router over any other kind of connection.
    pub fn with_connect(
        local: Option<(String, TsoService)>,
        directory: Arc<dyn Directory>,
        connect: Connect,
    ) -> TsoRouter {
        let local = local.map(|(address, service)| (address, Arc::new(service)));
        TsoRouter { local, directory, connect, state: Mutex::default() }
    }

    async fn ask(&self, count: u32) -> Result<TsRange, AllocateError> {
        let mut address = self.first()?;
        let mut outcome = Err(AllocateError::NotLeader { hint: None });
        for _ in 0..MAX_HOPS {
            outcome = match self.node(&address) {
                Ok(node) => node.allocate(count).await,
                Err(error) => Err(error),
            };
            if outcome.is_err() && self.is_local(&address) {
                self.state.lock().local_failed = true;
            }
            match &outcome {
                Ok(_) => {
                    self.state.lock().leader = Some(address);
                    return outcome;
                }
                Err(AllocateError::NotLeader { hint: Some(hint) }) if *hint != address => {
                    self.state.lock().leader = Some(hint.clone());
                    address = hint.clone();
                }
                Err(AllocateError::NotLeader { .. }) => {
                    self.state.lock().leader = None;
                    address = self.next_in_turn()?;
                }
                Err(_) => break,
            }
        }
        let mut state = self.state.lock();
        state.leader = None;
        state.failures = state.failures.wrapping_add(1);
        outcome
    }

    /// Where to ask first. After a failure the remembered leader is gone, and every other attempt tries the next node
    /// in turn instead of the directory's leader, which may be out of date.
    fn first(&self) -> Result<String, AllocateError> {
        let local_failed = std::mem::take(&mut self.state.lock().local_failed);
        if let Some((address, service)) = &self.local
            && service.is_serving()
            && !local_failed
        {
            return Ok(address.clone());
        }
        if let Some(leader) = &self.state.lock().leader {
            return Ok(leader.clone());
        }
        let leader = self.directory.leader().filter(|_| self.state.lock().failures.is_multiple_of(2));
        leader.map_or_else(|| self.next_in_turn(), Ok)
    }

    fn is_local(&self, address: &str) -> bool {
        self.local.as_ref().is_some_and(|(local, _)| local == address)
    }

    fn next_in_turn(&self) -> Result<String, AllocateError> {
        let nodes = self.directory.nodes();
        let turn = {
            let mut state = self.state.lock();
            state.turn = state.turn.wrapping_add(1);
            state.turn
        };
        let next = nodes.get(turn % nodes.len().max(1));
        next.cloned().ok_or_else(|| AllocateError::Unavailable("no node is known".to_owned()))
    }

    fn node(&self, address: &str) -> Result<Arc<dyn OracleNode>, AllocateError> {
        if let Some((local, service)) = &self.local
            && local == address
        {
            return Ok(Arc::clone(service) as Arc<dyn OracleNode>);
        }
        let mut state = self.state.lock();
        if let Some(node) = state.connections.get(address) {
            return Ok(Arc::clone(node));
        }
        let node = (self.connect)(address)?;
        if state.connections.len() >= MAX_CONNECTIONS {
            state.connections.clear();
        }
        state.connections.insert(address.to_owned(), Arc::clone(&node));
        Ok(node)
    }
}

impl TsoSource for TsoRouter {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        self.ask(count).map(|result| result.map_err(TsoError::from)).boxed()
    }
}
