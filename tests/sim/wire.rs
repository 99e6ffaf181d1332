//! Requests between nodes: they and their answers take time, get lost, arrive late or twice, and stop at cut links, at
//! paused nodes and with the life of a node or of a gateway.
//!
//! What a caller hears is what a caller of the production network could hear. A request is executed once, at once or
//! late. Only one that was not refused may be executed again: by a copy, which stands for an attempt whose answer the
//! caller did not wait for.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use raftstore::{RegionId, StoreId};
use rand::Rng;
use rand::rngs::StdRng;
use simulator::network::Cuts;
use tokio::task::AbortHandle;

use crate::nodes::{Life, Nodes, Wanted};
use crate::options::{CoordinatorFaults, Options, RequestFaults};
use crate::steps::Step;

/// How long a caller waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(4);
/// How often a request looks whether the paused node goes on.
const PAUSE_CHECK: Duration = Duration::from_millis(5);
/// A commit stalls for up to this many milliseconds before the leader of its region hands over.
const STALL_MS: u64 = 60;
/// The longest time, in milliseconds, after which a copy or a late request arrives.
const LATEST_MS: u64 = 6_000;

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
    pub(crate) nodes: Arc<Nodes>,
    cuts: Cuts,
    chances: Mutex<Chances>,
    /// Copies and late requests that have yet to arrive.
    on_the_way: Arc<AtomicU64>,
}

struct Chances {
    rng: StdRng,
    requests: RequestFaults,
    coordinators: CoordinatorFaults,
    is_healed: bool,
}

impl Chances {
    fn happens(&mut self, chance: f64) -> bool {
        !self.is_healed && self.rng.random_bool(chance)
    }
}

/// One end of the wire: a node in one life, or its gateway.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) wire: Arc<Wire>,
    pub(crate) store: StoreId,
    pub(crate) life: u64,
    /// The number of the gateway; `None` for the node itself.
    pub(crate) gateway: Option<u64>,
}

impl Wire {
    pub(crate) fn new(options: &Options, nodes: Arc<Nodes>, cuts: Cuts) -> Wire {
        let Options { requests, coordinators, .. } = options.clone();
        let chances = Chances { rng: options.cluster.generator(5), requests, coordinators, is_healed: false };
        Wire { nodes, cuts, chances: Mutex::new(chances), on_the_way: Arc::default() }
    }

    /// No request is lost or copied any more, and no coordinator dies. What is late still arrives.
    pub(crate) fn heal(&self) {
        self.chances.lock().is_healed = true;
    }

    /// Whether no copy and no late request is on its way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.on_the_way.load(Ordering::Relaxed) == 0
    }

    /// A number for the seed of something that starts.
    pub(crate) fn draw_seed(&self) -> u64 {
        self.chances.lock().rng.random()
    }

    /// The store and the kind of a read that shall go to any replica; `None` if it shall go its way.
    pub(crate) fn draw_replica(&self) -> Option<(StoreId, u32)> {
        let mut chances = self.chances.lock();
        let chance = chances.requests.replica_reads;
        if !chances.rng.random_bool(chance) {
            return None;
        }
        let store = self.nodes.stores[chances.rng.random_range(0..self.nodes.stores.len())];
        Some((store, chances.rng.random_range(0..8)))
    }

    /// The time that a message takes; `None` if it is lost.
    fn leg(&self, from: StoreId, to: StoreId) -> Option<Duration> {
        if from == to {
            return Some(Duration::ZERO);
        }
        let mut chances = self.chances.lock();
        let (least, most) = chances.requests.delay_ms;
        let delay = chances.rng.random_range(least..=most);
        let loss = chances.requests.loss;
        let is_cut = chances.requests.stop_at_cuts && self.cuts.lock().contains_key(&(from, to));
        let is_lost = chances.happens(loss) || is_cut;
        (!is_lost).then(|| Duration::from_millis(delay))
    }

    /// When a message that was lost, or a copy of one, arrives; `None` if it does not.
    fn later(&self, chance: impl Fn(&RequestFaults) -> f64) -> Option<Duration> {
        let mut chances = self.chances.lock();
        let chance = chance(&chances.requests);
        chances.happens(chance).then(|| Duration::from_millis(chances.rng.random_range(1..LATEST_MS)))
    }

    /// How many attempts after this executed one, whose answer is lost, are refused; `None` if it is not lost.
    pub(crate) fn refusals(&self) -> Option<u32> {
        let mut chances = self.chances.lock();
        let chance = chances.requests.refusals;
        chances.happens(chance).then(|| chances.rng.random_range(1..=30))
    }

    /// Whether a request is dropped where it is executed once its caller does not wait for it any more.
    fn is_dropped(&self) -> bool {
        let mut chances = self.chances.lock();
        let chance = chances.requests.drops;
        chances.happens(chance)
    }

    /// Decides what happens at a step of a coordinator. Returns whether it dies.
    fn decide(&self, store: StoreId, step: Step) -> bool {
        let mut chances = self.chances.lock();
        let CoordinatorFaults { step: chosen, at_step, anywhere, with_node, oracle_moves, .. } = chances.coordinators;
        if step.is_mid_commit() && chances.happens(oracle_moves) {
            self.nodes.want(Wanted::MoveOracle);
        }
        let dies = chances.happens(if step == chosen { at_step } else { anywhere });
        if dies && chances.happens(with_node) {
            self.nodes.want(Wanted::Crash(store));
        }
        dies
    }

    /// A commit in one phase is about to leave for a region. It may stall, and then the region's leader hands over.
    pub(crate) async fn before_one_phase(&self, region: RegionId) {
        let stall = {
            let mut chances = self.chances.lock();
            let chance = chances.coordinators.leader_moves;
            chances.happens(chance).then(|| Duration::from_millis(chances.rng.random_range(0..STALL_MS)))
        };
        if let Some(stall) = stall {
            tokio::time::sleep(stall).await;
            self.nodes.want(Wanted::MoveLeader(region));
        }
    }

    /// Lets a request arrive once more, or after all.
    fn arrive_later<T, F>(self: &Arc<Wire>, to: StoreId, after: Duration, serve: impl Fn(Life) -> F + Send + 'static)
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let wire = Arc::clone(self);
        wire.on_the_way.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let arrived = arrive(&wire.nodes, to, serve).await.is_some();
            wire.on_the_way.fetch_sub(1, Ordering::Relaxed);
            wire.nodes.seen.lock().late += u64::from(arrived);
        });
    }
}

/// Ends a task when its owner is dropped.
pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Executes a request at a node, once it is not paused. `None` if it does not run. Returns the number of its life too.
async fn arrive<T, F>(nodes: &Nodes, to: StoreId, serve: impl Fn(Life) -> F) -> Option<(u64, T)>
where
    F: Future<Output = T>,
{
    while nodes.is_paused(to) {
        tokio::time::sleep(PAUSE_CHECK).await;
    }
    let life = nodes.life(to)?;
    Some((life.number, serve(life).await))
}

impl Sender {
    /// Sends a request, which `serve` executes, and waits for its answer. If this end's life ends, it waits for ever.
    /// `is_final` says whether the answer allows a copy of the request to arrive later.
    pub(crate) async fn ask<T, F>(
        &self,
        to: StoreId,
        is_final: fn(&T) -> bool,
        serve: impl Fn(Life) -> F + Clone + Send + 'static,
    ) -> Result<T, NoAnswer>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.live_on().await;
        let answer = tokio::time::timeout(TIMEOUT, self.deliver(to, is_final, serve)).await;
        self.live_on().await;
        answer.unwrap_or(Err(NoAnswer::Lost))
    }

    /// What runs on `store`, if that is this node and it runs.
    pub(crate) fn own_life(&self, store: StoreId) -> Option<Life> {
        let nodes = &self.wire.nodes;
        let runs = store == self.store && nodes.is_alive(store, self.life) && !nodes.is_paused(store);
        if runs { nodes.life(store) } else { None }
    }

    async fn deliver<T, F>(
        &self,
        to: StoreId,
        is_final: fn(&T) -> bool,
        serve: impl Fn(Life) -> F + Clone + Send + 'static,
    ) -> Result<T, NoAnswer>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let Some(delay) = self.wire.leg(self.store, to) else {
            if let Some(after) = self.wire.later(|faults| faults.late) {
                self.wire.arrive_later(to, after, serve);
            }
            return std::future::pending().await;
        };
        tokio::time::sleep(delay).await;
        let nodes = Arc::clone(&self.wire.nodes);
        // The node goes on with a request whose caller is gone, unless it notices.
        let served = tokio::spawn({
            let serve = serve.clone();
            async move { arrive(&nodes, to, serve).await }
        });
        let guard = self.wire.is_dropped().then(|| AbortOnDrop(served.abort_handle()));
        // A panic was noted; see `panics`.
        let Ok(arrived) = served.await else { return std::future::pending().await };
        drop(guard);
        let Some((life, answer)) = arrived else { return Err(NoAnswer::Unreachable) };
        if is_final(&answer)
            && let Some(after) = self.wire.later(|faults| faults.copies)
        {
            self.wire.arrive_later(to, after, serve);
        }
        let nodes = &self.wire.nodes;
        while nodes.is_paused(to) {
            tokio::time::sleep(PAUSE_CHECK).await;
        }
        let leg = self.wire.leg(to, self.store).filter(|_| nodes.is_alive(to, life));
        let Some(delay) = leg else { return std::future::pending().await };
        tokio::time::sleep(delay).await;
        Ok(answer)
    }

    /// Whether this end's life goes on.
    pub(crate) fn is_alive(&self) -> bool {
        let nodes = &self.wire.nodes;
        nodes.is_alive(self.store, self.life) && self.gateway.is_none_or(|number| nodes.is_gateway(self.store, number))
    }

    /// Whether the coordinator, which takes this step, dies.
    pub(crate) fn dies_at(&self, step: Step) -> bool {
        self.is_alive() && self.wire.decide(self.store, step)
    }

    /// Waits for ever once this end's life has ended: nothing leaves it any more.
    async fn live_on(&self) {
        while self.wire.nodes.is_paused(self.store) && self.is_alive() {
            tokio::time::sleep(PAUSE_CHECK).await;
        }
        if !self.is_alive() {
            std::future::pending::<()>().await;
        }
    }
}
