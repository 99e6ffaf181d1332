//! The router: finds the oracle among the nodes. It tries this node if it serves, then the node believed to lead, then
//! all nodes in round-robin order.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use link::Links;
use parking_lot::Mutex;

use crate::remote;
use crate::service::TsoService;
use crate::source::{AllocateError, Connect, TsoError, TsoSource};
use crate::timestamp::TsRange;

/// The nodes of the cluster, as far as this node knows. Called for most requests; must not block.
pub trait NodeDirectory: Send + Sync + 'static {
    /// The address of the node believed to lead the system region, this one included.
    fn leader(&self) -> Option<String>;
    /// The addresses of all nodes, this one included.
    fn nodes(&self) -> Vec<String>;
}

/// The most nodes that one attempt asks.
const MAX_HOPS: usize = 3;

/// A [`TsoSource`] that sends each request to the leading node.
pub struct TsoRouter {
    local: Option<(String, TsoService)>,
    directory: Arc<dyn NodeDirectory>,
    connect: Box<Connect>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The node that answered last, or that the last answer named.
    leader: Option<String>,
    /// This node's own oracle failed in the last attempt: it may have lost its leadership without knowing it yet.
    local_failed: bool,
    /// The number of failed attempts.
    failures: usize,
    /// The round-robin position.
    next_node: usize,
}

impl TsoRouter {
    /// A router over `links`. `local` is the address and service of this node, if it has one. Outside of a tokio
    /// runtime, requests panic.
    pub fn new(local: Option<(String, TsoService)>, directory: Arc<dyn NodeDirectory>, links: Arc<Links>) -> TsoRouter {
        TsoRouter::with_connect(local, directory, remote::connector(links))
    }

    /// A router that finds the oracles of other nodes by `connect`.
    pub fn with_connect(
        local: Option<(String, TsoService)>,
        directory: Arc<dyn NodeDirectory>,
        connect: Box<Connect>,
    ) -> TsoRouter {
        TsoRouter { local, directory, connect, state: Mutex::default() }
    }

    async fn allocate_from_leader(&self, count: u32) -> Result<TsRange, AllocateError> {
        let mut address = self.first_candidate()?;
        let mut outcome = Err(AllocateError::NotLeader { hint: None });
        for _ in 0..MAX_HOPS {
            outcome = self.allocate_from(&address, count).await;
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
                    address = self.next_round_robin()?;
                }
                Err(_) => break,
            }
        }
        let mut state = self.state.lock();
        state.leader = None;
        state.failures = state.failures.wrapping_add(1);
        outcome
    }

    /// The node to try first. A failure clears the remembered leader. Then every other attempt takes the next node in
    /// round-robin order instead of the directory's leader, which may be out of date.
    fn first_candidate(&self) -> Result<String, AllocateError> {
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
        leader.map_or_else(|| self.next_round_robin(), Ok)
    }

    fn is_local(&self, address: &str) -> bool {
        self.local.as_ref().is_some_and(|(local, _)| local == address)
    }

    fn next_round_robin(&self) -> Result<String, AllocateError> {
        let nodes = self.directory.nodes();
        let position = {
            let mut state = self.state.lock();
            state.next_node = state.next_node.wrapping_add(1);
            state.next_node
        };
        let next = nodes.get(position % nodes.len().max(1));
        next.cloned().ok_or_else(|| AllocateError::Unavailable("no node is known".to_owned()))
    }

    async fn allocate_from(&self, address: &str, count: u32) -> Result<TsRange, AllocateError> {
        if let Some((local, service)) = &self.local
            && local == address
        {
            return service.allocate(count).await;
        }
        (self.connect)(address)?.allocate(count).await
    }
}

impl TsoSource for TsoRouter {
    fn try_allocate(&self, count: u32) -> Option<TsRange> {
        self.local.as_ref()?.1.try_allocate(count)
    }

    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        self.allocate_from_leader(count).map(|result| result.map_err(TsoError::from)).boxed()
    }
}
