//! Requests between nodes: they and their answers take time, get lost, arrive twice, and stop at cut links, at paused
//! nodes and with the life of a node.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use raftstore::StoreId;
use rand::Rng;
use rand::rngs::StdRng;
use simulator::network::Cuts;

use crate::nodes::{Life, Nodes};
use crate::options::Options;

/// How long a caller waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(4);
/// How often a request looks whether the paused node goes on.
const PAUSE_CHECK: Duration = Duration::from_millis(5);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The request was not executed.
    Unreachable,
    /// It may have been.
    Lost,
}

/// The links between the nodes.
pub(crate) struct Wire {
    nodes: Arc<Nodes>,
    cuts: Cuts,
    chances: Mutex<Chances>,
}

struct Chances {
    rng: StdRng,
    delay_ms: (u64, u64),
    loss: f64,
    copies: f64,
}

/// One end of the wire: a node in one life.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) wire: Arc<Wire>,
    pub(crate) store: StoreId,
    pub(crate) life: u64,
}

impl Wire {
    pub(crate) fn new(options: &Options, nodes: Arc<Nodes>, cuts: Cuts) -> Wire {
        let Options { delay_ms, loss, copies, .. } = *options;
        let chances = Chances { rng: options.cluster.generator(5), delay_ms, loss, copies };
        Wire { nodes, cuts, chances: Mutex::new(chances) }
    }

    /// The number of stores.
    pub(crate) fn stores(&self) -> u64 {
        self.nodes.stores.len() as u64
    }

    /// No request is lost or copied any more.
    pub(crate) fn heal(&self) {
        let mut chances = self.chances.lock();
        (chances.loss, chances.copies) = (0.0, 0.0);
    }

    /// The time that a message takes; `None` if it is lost.
    fn leg(&self, from: StoreId, to: StoreId) -> Option<Duration> {
        if from == to {
            return Some(Duration::ZERO);
        }
        let mut chances = self.chances.lock();
        let (least, most) = chances.delay_ms;
        let delay = chances.rng.random_range(least..=most);
        let loss = chances.loss;
        let is_lost = chances.rng.random_bool(loss) || self.cuts.lock().contains_key(&(from, to));
        (!is_lost).then(|| Duration::from_millis(delay))
    }

    /// The delay of a late copy of a request, if there is one.
    fn copy(&self) -> Option<Duration> {
        let mut chances = self.chances.lock();
        let copies = chances.copies;
        let is_copied = chances.rng.random_bool(copies);
        is_copied.then(|| Duration::from_millis(chances.rng.random_range(1..3_000)))
    }
}

impl Sender {
    /// Sends a request, which `serve` executes, and waits for its answer. If this node's life ends, it waits for ever.
    pub(crate) async fn ask<T, F>(
        &self,
        to: StoreId,
        is_copied: bool,
        serve: impl Fn(Life) -> F + Clone + Send + 'static,
    ) -> Result<T, NoAnswer>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.live_on().await;
        if is_copied && let Some(late) = self.wire.copy() {
            let (copy, serve) = (self.clone(), serve.clone());
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                drop(copy.deliver(to, serve).await);
            });
        }
        let answer = tokio::time::timeout(TIMEOUT, self.deliver(to, serve)).await.unwrap_or(Err(NoAnswer::Lost));
        self.live_on().await;
        answer
    }

    /// What runs on `store`, if that is this node and it runs.
    pub(crate) fn own_life(&self, store: StoreId) -> Option<Life> {
        let nodes = &self.wire.nodes;
        let runs = store == self.store && nodes.is_alive(store, self.life) && !nodes.is_paused(store);
        if runs { nodes.life(store) } else { None }
    }

    async fn deliver<T, F>(&self, to: StoreId, serve: impl Fn(Life) -> F + Send + 'static) -> Result<T, NoAnswer>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let Some(delay) = self.wire.leg(self.store, to) else { return std::future::pending().await };
        tokio::time::sleep(delay).await;
        while self.wire.nodes.is_paused(to) {
            tokio::time::sleep(PAUSE_CHECK).await;
        }
        let Some(life) = self.wire.nodes.life(to) else { return Err(NoAnswer::Unreachable) };
        let number = life.number;
        // The node goes on with a request whose caller is gone.
        let served = tokio::spawn(serve(life)).await;
        let answer = served.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        while self.wire.nodes.is_paused(to) {
            tokio::time::sleep(PAUSE_CHECK).await;
        }
        let leg = self.wire.leg(to, self.store).filter(|_| self.wire.nodes.is_alive(to, number));
        let Some(delay) = leg else { return std::future::pending().await };
        tokio::time::sleep(delay).await;
        Ok(answer)
    }

    /// Waits for ever once the life of this node has ended: nothing leaves a dead node.
    async fn live_on(&self) {
        if !self.wire.nodes.is_alive(self.store, self.life) {
            std::future::pending::<()>().await;
        }
        while self.wire.nodes.is_paused(self.store) {
            tokio::time::sleep(PAUSE_CHECK).await;
        }
    }
}
