//! The grants of a store at work: what its replicas hold, the reads that wait for more, the requests to leaders and the
//! answers to other stores.
//!
//! [`super::held`], [`super::asking`], [`super::exchange`] and [`super::readers`] decide; this file waits, sends and
//! wakes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use prometheus::IntCounter;
use raftstore::{RegionContext, RegionError, RegionId, ReplicaState, StoreId};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tso::Timestamp;

use super::asking::{AskQueue, Batch, RoundTrip};
use super::exchange::Incoming;
use super::give::Giver;
use super::held::HeldGrants;
use super::peers::{GrantMetrics, GrantsConfig, NoAnswer, Peers};
use super::readers::Readers;
use crate::concurrency::ConcurrencyManager;
use crate::grant::{AskGrants, GivenGrants, Grant, PushAnswer, PushGrants};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::region_store::RegionReads;

/// How long a read waits before it looks again for a leader that it could not ask.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Which snapshot a read wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The one at this timestamp.
    At(Timestamp),
    /// A fresh one: at a timestamp that the oracle issues after the read arrived.
    Fresh,
    /// The newest that the replica has a grant for, at or above this bound.
    Newest(Timestamp),
}

/// The snapshot that a read gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// A grant covers the snapshot at `start_ts`. Check it again with the data.
    Granted {
        /// The snapshot.
        start_ts: Timestamp,
        /// How often the leader, or the oracle, was asked.
        asked: u32,
    },
    /// This store leads the region: read as its leader.
    Leads,
}

/// The grants of a store. Clones share them.
#[derive(Clone)]
pub struct Grants<H: RegionReads> {
    pub(super) shared: Arc<Shared<H>>,
}

pub(super) struct Shared<H> {
    pub(super) store: H,
    pub(super) concurrency: ConcurrencyManager,
    pub(super) giver: Giver<H>,
    pub(super) config: GrantsConfig,
    pub(super) metrics: GrantMetrics,
    held: RwLock<HashMap<RegionId, Arc<HeldRegion>>>,
    asks: Asks,
    incoming: Mutex<HashMap<StoreId, Incoming>>,
    pub(super) readers: Mutex<Readers>,
    /// Somebody reads a region of this leader.
    pub(super) has_readers: Notify,
    pub(super) others: OnceLock<Others>,
    #[cfg(feature = "planted-bugs")]
    planted_bug: Option<PlantedBug>,
}

/// The other stores, and the runtime on which requests to them run; without one, that of whoever asks.
pub(super) struct Others {
    pub(super) peers: Arc<dyn Peers>,
    runtime: Option<Handle>,
}

/// What is asked of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ask {
    Grants,
    ReadIndex,
}

/// What an answer says to those who waited for it.
#[derive(Clone, Copy, Debug)]
struct Answered {
    /// At or above the one that was wanted.
    ts: Timestamp,
    /// The round trips that it took: to the leader, and of the leader to the oracle.
    round_trips: u32,
}

type Waiter = oneshot::Sender<Result<Answered, RegionError>>;

/// The requests of a store.
#[derive(Default)]
struct Asks {
    queues: Mutex<HashMap<(StoreId, Ask), AskQueue<Waiter>>>,
    /// How long the others take to answer.
    round_trips: Mutex<HashMap<StoreId, RoundTrip>>,
}

/// What is known of one region here.
struct HeldRegion {
    grants: Mutex<HeldGrants>,
    /// A grant has arrived.
    arrived: Notify,
    /// Whether it was read since the leader was told last.
    was_read: AtomicBool,
    /// When a grant was pushed last.
    pushed: Mutex<Option<Instant>>,
}

impl<H: RegionReads> Grants<H> {
    /// The grants of `store`, whose reads and writes share `concurrency`. It asks nobody before
    /// [`Grants::connect`].
    pub fn new(store: H, concurrency: ConcurrencyManager, config: GrantsConfig, metrics: GrantMetrics) -> Grants<H> {
        let giver = Giver::new(store.clone(), concurrency.clone());
        Grants {
            shared: Arc::new(Shared {
                store,
                concurrency,
                giver,
                config,
                metrics,
                held: RwLock::default(),
                asks: Asks::default(),
                incoming: Mutex::default(),
                readers: Mutex::new(Readers::new(config.push_for, config.push_interval)),
                has_readers: Notify::new(),
                others: OnceLock::new(),
                #[cfg(feature = "planted-bugs")]
                planted_bug: None,
            }),
        }
    }

    /// The grants with this deliberate bug. Called before they are shared.
    #[cfg(feature = "planted-bugs")]
    pub fn with_planted_bug(mut self, bug: Option<PlantedBug>) -> Grants<H> {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.planted_bug = bug;
            shared.giver = shared.giver.clone().with_planted_bug(bug);
        }
        self
    }

    /// Lets it reach the other stores. Once, within the tokio runtime on which its requests shall run.
    pub fn connect(&self, peers: Arc<dyn Peers>) {
        let others = Others { peers, runtime: Handle::try_current().ok() };
        let is_first = self.shared.others.set(others).is_ok();
        assert!(is_first, "grants are connected once");
    }

    /// The safe_ts of this store's replica of a region, if a grant covers `ts` in `state`.
    pub fn covers(&self, state: &ReplicaState, ts: Timestamp) -> Option<Timestamp> {
        let held = self.shared.known(state.region.id)?;
        held.was_read.store(true, Ordering::Relaxed);
        let safe_ts = held.grants.lock().safe_ts(state);
        (safe_ts >= ts && ts > Timestamp::ZERO).then_some(safe_ts)
    }

    /// The snapshot at the safe_ts of this store's replica, if that is not below `floor`.
    pub fn newest(&self, state: &ReplicaState, floor: Timestamp) -> Option<Timestamp> {
        #[cfg(feature = "planted-bugs")]
        let floor =
            if self.shared.planted_bug == Some(PlantedBug::FloorIgnored) { Timestamp::ZERO.next() } else { floor };
        self.covers(state, floor.max(Timestamp::ZERO.next()))
    }

    /// The safe_ts of this store's replica of a region; 0 for none, for example where the region is led.
    pub fn safe_ts(&self, region: RegionId) -> Timestamp {
        let state = self.shared.store.replica(region).ok();
        let safe_ts = || Some(self.shared.known(region)?.grants.lock().safe_ts(&state?));
        safe_ts().unwrap_or_default()
    }

    /// How far the safe_ts of this store's replica is behind the oracle's time, as far as this node knows. `None` if
    /// the region is led here, or if nothing has been granted or heard yet.
    pub fn behind(&self, region: RegionId) -> Option<Duration> {
        let safe_ts = self.safe_ts(region);
        if self.shared.store.leads(region) || safe_ts == Timestamp::ZERO {
            return None;
        }
        self.shared.concurrency.behind(safe_ts)
    }

    /// Waits until a grant covers the snapshot that a read wants, for [`GrantsConfig::patience`] at most. Whoever reads
    /// then checks the grant again with the data: it may have ended meanwhile.
    ///
    /// # Errors
    ///
    /// `NotReady`: no grant in time. `RegionNotFound`, `EpochNotMatch`: as [`RegionReads::replica_view`].
    pub async fn cover(&self, context: RegionContext, wanted: Wanted) -> Result<Covered, RegionError> {
        if let Some(start_ts) = self.try_cover(context, wanted) {
            return Ok(Covered::Granted { start_ts, asked: 0 });
        }
        let mut wait = Wait { wanted, asked: 0, is_counted: false, after_push: false, last: None };
        let until_covered = self.until_covered(context, &mut wait);
        match tokio::time::timeout(self.shared.config.patience, until_covered).await {
            Ok(covered) => covered,
            Err(_) => {
                let last = wait.last.map_or_else(String::new, |error| format!(": {error}"));
                let why = format!("no grant of its leader within {:?}{last}", self.shared.config.patience);
                Err(RegionError::NotReady { region: context.region, why })
            }
        }
    }

    /// The snapshot that a read wants, if a grant covers it now.
    pub fn try_cover(&self, context: RegionContext, wanted: Wanted) -> Option<Timestamp> {
        let state = self.shared.store.replica(context.region).ok()?;
        let is_same = state.region.epoch.version == context.epoch.version;
        let covered = is_same.then(|| self.start_ts(&state, wanted)).flatten();
        if covered.is_some() {
            self.shared.metrics.covered.inc();
        }
        covered
    }

    fn start_ts(&self, state: &ReplicaState, wanted: Wanted) -> Option<Timestamp> {
        match wanted {
            Wanted::At(ts) => self.covers(state, ts).map(|_| ts),
            Wanted::Newest(floor) => self.newest(state, floor),
            Wanted::Fresh => None,
        }
    }

    async fn until_covered(&self, context: RegionContext, wait: &mut Wait) -> Result<Covered, RegionError> {
        let shared = &self.shared;
        let held = shared.region(context.region);
        loop {
            let leader = shared.store.leader(context.region);
            if leader == Some(shared.store.store_id()) {
                return Ok(Covered::Leads);
            }
            // Before the look: what arrives after it wakes us.
            let arrived = held.arrived.notified();
            let state = shared.replica(context).await?;
            if let Some(start_ts) = self.start_ts(&state, wait.wanted) {
                return Ok(Covered::Granted { start_ts, asked: wait.asked });
            }
            let least = wait.wanted.least();
            let awaited = least.and_then(|ts| held.grants.lock().awaits(ts, &state));
            if let Some(index) = awaited {
                wait.count(&shared.metrics.by_apply);
                // An entry that a leader has granted may be lost with it. The next one then grants below it.
                tokio::select! {
                    biased;
                    applied = shared.store.applied(context.region, index) => applied?,
                    () = arrived => {}
                }
            } else if wait.wanted == Wanted::Fresh && held.is_pushed(&shared.config) && shared.is_far(leader) {
                // What is pushed from now on covers what the oracle issues now, at the price of asking it. A leader
                // whose answer is here before the next push is asked itself, which is one wait in place of two.
                let (taken, asked) = shared.concurrency.counted_timestamp().await;
                wait.asked += asked;
                match taken {
                    Some(ts) => wait.wanted = Wanted::At(ts),
                    None => tokio::time::sleep(RETRY_PAUSE).await,
                }
            } else if !wait.after_push && wait.wanted != Wanted::Fresh && held.is_pushed(&shared.config) {
                wait.count(&shared.metrics.by_push);
                wait.after_push = tokio::time::timeout(shared.config.push_interval * 8, arrived).await.is_err();
            } else if let Some(leader) = leader {
                wait.count(&shared.metrics.by_answer);
                wait.take_answer(shared.ask(leader, context.region, least, Ask::Grants).await);
                if wait.last.is_some() {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            } else {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    /// Asks the leader for a grant at `ts` for one read alone, and waits until it counts.
    ///
    /// # Errors
    ///
    /// As [`Grants::cover`].
    pub async fn read_index(&self, context: RegionContext, wanted: Wanted) -> Result<Covered, RegionError> {
        let shared = &self.shared;
        let ts = wanted.least();
        let asked = async {
            loop {
                match shared.store.leader(context.region) {
                    Some(leader) if leader == shared.store.store_id() => return None,
                    Some(leader) => match shared.ask(leader, context.region, ts, Ask::ReadIndex).await {
                        Ok(answered) => return Some((ts.unwrap_or(answered.ts), answered.round_trips)),
                        Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
                    },
                    None => tokio::time::sleep(RETRY_PAUSE).await,
                }
            }
        };
        let late = || RegionError::NotReady { region: context.region, why: "no read index in time".to_owned() };
        let asked = tokio::time::timeout(shared.config.patience, asked).await.map_err(|_| late())?;
        let Some((start_ts, round_trips)) = asked else { return Ok(Covered::Leads) };
        match self.cover(context, Wanted::At(start_ts)).await? {
            Covered::Granted { start_ts, asked } => Ok(Covered::Granted { start_ts, asked: asked + round_trips }),
            Covered::Leads => Ok(Covered::Leads),
        }
    }

    /// Answers another store.
    pub async fn give(&self, ask: AskGrants) -> GivenGrants {
        let shared = &self.shared;
        // What is refused says of no timestamp that it was issued.
        let refuse_all = |why: &dyn Fn(RegionId) -> RegionError| {
            let refused = ask.regions.iter().map(|region| (*region, why(*region))).collect();
            GivenGrants { ts: Timestamp::ZERO, asked: 0, grants: Vec::new(), refused }
        };
        let (ts, asked) = if ask.ts == Timestamp::ZERO {
            let (taken, asked) = shared.concurrency.counted_timestamp().await;
            let Some(ts) = taken else {
                let store = shared.store.store_id();
                return refuse_all(&|_| RegionError::ServerBusy { store, what: "timestamps".to_owned() });
            };
            (ts, asked)
        } else {
            let first = ask.regions.first().copied().unwrap_or(RegionId::SYSTEM);
            if let Err(error) = shared.concurrency.check_issued(first, ask.ts).await {
                return refuse_all(&|region| RegionError::NotReady { region, why: error.to_string() });
            }
            // A later one costs nothing and covers more.
            (shared.concurrency.try_timestamp().unwrap_or(ask.ts).max(ask.ts), 0)
        };
        let patience = shared.config.place_wait;
        let given =
            ask.regions.iter().map(|region| async { (*region, shared.giver.give(*region, ts, patience).await) });
        let mut answer = GivenGrants { ts, asked, grants: Vec::new(), refused: Vec::new() };
        for (region, given) in futures::future::join_all(given).await {
            match given {
                Ok(grant) => answer.grants.push(grant),
                Err(error) => answer.refused.push((region, error)),
            }
        }
        if !shared.config.push_interval.is_zero() {
            let regions = answer.grants.iter().map(|grant| grant.region);
            shared.readers.lock().asked(ask.from, regions, now());
            shared.has_readers.notify_one();
        }
        answer
    }

    /// Takes the grants that another store pushes.
    pub fn take(&self, push: &PushGrants) -> PushAnswer {
        let shared = &self.shared;
        shared.hear(push.ts);
        let (grants, lacks) = shared.incoming.lock().entry(push.from).or_default().take(push);
        for grant in &grants {
            // A stream follows; a single message says nothing of the next.
            if push.exchange.is_none() {
                *shared.region(grant.region).pushed.lock() = Some(now());
            }
            shared.add(*grant);
        }
        let is_read = |region: &RegionId| shared.region(*region).was_read.swap(false, Ordering::Relaxed);
        let exchanged = grants.iter().filter(|_| push.exchange.is_some());
        PushAnswer { lacks, wanted: exchanged.map(|grant| grant.region).filter(is_read).collect() }
    }
}

/// A read that waits.
struct Wait {
    wanted: Wanted,
    asked: u32,
    /// Whether the metrics have it: by what it waited for first.
    is_counted: bool,
    /// Whether a push was due and did not come.
    after_push: bool,
    /// Why the leader could not be asked.
    last: Option<RegionError>,
}

impl Wanted {
    /// The least timestamp that the grant must cover; `None` for a fresh one.
    fn least(self) -> Option<Timestamp> {
        match self {
            Wanted::At(ts) | Wanted::Newest(ts) => Some(ts.max(Timestamp::ZERO.next())),
            Wanted::Fresh => None,
        }
    }
}

impl Wait {
    fn count(&mut self, reason: &IntCounter) {
        reason.inc_by(u64::from(!std::mem::replace(&mut self.is_counted, true)));
    }

    fn take_answer(&mut self, answer: Result<Answered, RegionError>) {
        self.asked += answer.as_ref().map_or(1, |answered| answered.round_trips);
        self.last = match answer {
            Ok(Answered { ts, .. }) => {
                if self.wanted == Wanted::Fresh {
                    self.wanted = Wanted::At(ts);
                }
                None
            }
            Err(error) => Some(error),
        };
    }
}

impl HeldRegion {
    /// Whether grants are being pushed.
    fn is_pushed(&self, config: &GrantsConfig) -> bool {
        let lately = config.push_interval * 8;
        self.pushed.lock().is_some_and(|at| now().saturating_duration_since(at) < lately)
    }
}

impl<H: RegionReads> Shared<H> {
    fn known(&self, region: RegionId) -> Option<Arc<HeldRegion>> {
        self.held.read().get(&region).map(Arc::clone)
    }

    fn region(&self, region: RegionId) -> Arc<HeldRegion> {
        let new = || {
            #[cfg(feature = "planted-bugs")]
            let grants = HeldGrants::with_planted_bug(self.planted_bug);
            #[cfg(not(feature = "planted-bugs"))]
            let grants = HeldGrants::default();
            let (arrived, was_read, pushed) = (Notify::new(), AtomicBool::new(false), Mutex::default());
            Arc::new(HeldRegion { grants: Mutex::new(grants), arrived, was_read, pushed })
        };
        self.known(region).unwrap_or_else(|| Arc::clone(self.held.write().entry(region).or_insert_with(new)))
    }

    /// Takes note of a timestamp that another store has named. A leader names only what the oracle has issued. So the
    /// oracle need not be asked about a read at or below the safe_ts of a replica, also where it cannot be asked.
    fn hear(&self, ts: Timestamp) {
        self.concurrency.note(ts);
    }

    /// Keeps a grant for this store's replica.
    pub(super) fn add(&self, grant: Grant) {
        let held = self.region(grant.region);
        held.grants.lock().add(grant);
        held.arrived.notify_waiters();
    }

    /// The replica in the range of the context. Waits for one whose data is being replaced.
    async fn replica(&self, context: RegionContext) -> Result<ReplicaState, RegionError> {
        loop {
            match self.store.replica(context.region) {
                Ok(state) if state.region.epoch.version == context.epoch.version => return Ok(state),
                Ok(state) => {
                    let current = Box::new(raftstore::Region::clone(&state.region));
                    return Err(RegionError::EpochNotMatch { current });
                }
                Err(RegionError::NotReady { .. }) => tokio::time::sleep(RETRY_PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    }
}

impl<H: RegionReads> Shared<H> {
    /// Asks a leader with the next request, and waits for its answer. What it grants is added by then.
    async fn ask(
        self: &Arc<Self>,
        leader: StoreId,
        region: RegionId,
        ts: Option<Timestamp>,
        ask: Ask,
    ) -> Result<Answered, RegionError> {
        let (waiter, answer) = oneshot::channel();
        let limit = if ask == Ask::Grants { 1 } else { self.config.read_indexes };
        self.asks.queues.lock().entry((leader, ask)).or_insert_with(|| AskQueue::new(limit)).want(region, ts, waiter);
        self.send_next(leader, ask);
        let lost = || RegionError::NotReady { region, why: "its leader was not asked".to_owned() };
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Sends what is wanted of a leader, if no request is in its way.
    fn send_next(self: &Arc<Self>, leader: StoreId, ask: Ask) {
        let Some(Others { peers, runtime }) = self.others.get() else { return };
        let sent =
            self.asks.queues.lock().get_mut(&(leader, ask)).and_then(|queue| queue.send(oneshot::Sender::is_closed));
        let Some(batch) = sent else { return };
        match ask {
            Ask::Grants => self.metrics.asked.inc(),
            Ask::ReadIndex => self.metrics.read_indexes.inc(),
        }
        let ts = if batch.fresh { Timestamp::ZERO } else { batch.ts };
        let from = self.store.store_id();
        let request = AskGrants { from, ts, regions: batch.waiters.keys().copied().collect() };
        let answer = peers.ask(leader, request);
        let (shared, since) = (Arc::clone(self), now());
        let deliver = async move {
            let answer = answer.await;
            #[cfg(feature = "planted-bugs")]
            let batch = shared.with_late_wishes(batch, (leader, ask));
            if answer.is_ok() {
                shared.took(leader, now().saturating_duration_since(since));
            }
            // Before those are told who waited: what they do next finds the grants.
            shared.deliver(batch, answer);
            if let Some(queue) = shared.asks.queues.lock().get_mut(&(leader, ask)) {
                queue.ended();
            }
            shared.send_next(leader, ask);
        };
        match runtime {
            Some(runtime) => drop(runtime.spawn(deliver)),
            None => drop(tokio::spawn(deliver)),
        }
    }

    /// With a planted bug, the answer to a request counts for those too who wished while it was on its way.
    #[cfg(feature = "planted-bugs")]
    fn with_late_wishes(&self, mut batch: Batch<Waiter>, queue: (StoreId, Ask)) -> Batch<Waiter> {
        if self.planted_bug == Some(PlantedBug::WishJoinsRequest)
            && let Some(queue) = self.asks.queues.lock().get_mut(&queue)
        {
            batch.waiters.iter_mut().for_each(|(region, waiters)| waiters.extend(queue.take_next(*region)));
        }
        batch
    }

    /// Takes note of how long a store took to answer.
    fn took(&self, store: StoreId, time: Duration) {
        let now = now();
        let mut round_trips = self.asks.round_trips.lock();
        round_trips.entry(store).or_insert_with(|| RoundTrip::new(time, now)).add(time, now);
    }

    /// Whether the answer of a leader takes longer than the next push. One that is not known is not far.
    fn is_far(&self, leader: Option<StoreId>) -> bool {
        let round_trips = self.asks.round_trips.lock();
        let known = leader.and_then(|leader| round_trips.get(&leader));
        known.is_some_and(|round_trip| round_trip.is_above(self.config.push_interval, now()))
    }

    fn deliver(&self, batch: Batch<Waiter>, answer: Result<GivenGrants, NoAnswer>) {
        let Batch { mut waiters, .. } = batch;
        let tell = |waiters: Option<Vec<Waiter>>, answer: Result<Answered, RegionError>| {
            for waiter in waiters.into_iter().flatten() {
                // It may be gone.
                let _ = waiter.send(answer.clone());
            }
        };
        match answer {
            Ok(GivenGrants { ts, asked, grants, refused }) => {
                self.hear(ts);
                let answered = Answered { ts, round_trips: asked.saturating_add(1) };
                for grant in grants {
                    self.add(grant);
                    tell(waiters.remove(&grant.region), Ok(answered));
                }
                for (region, error) in refused {
                    tell(waiters.remove(&region), Err(error));
                }
            }
            Err(NoAnswer(why)) => {
                for (region, waiters) in std::mem::take(&mut waiters) {
                    tell(Some(waiters), Err(RegionError::NotReady { region, why: why.clone() }));
                }
            }
        }
        for (region, waiters) in waiters {
            let why = "its leader's answer leaves it out".to_owned();
            tell(Some(waiters), Err(RegionError::NotReady { region, why }));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "grants are an edge: they say how long ago the last one was pushed")]
pub(super) fn now() -> Instant {
    Instant::now()
}
