//! What a leader store tells the others without being asked: the grants of regions that are read there, every few
//! milliseconds; and what has changed in all its regions, several times a second, so that every replica has a safe_ts.
//!
//! Each message takes a timestamp of the oracle, and proves the lease and raises `max_ts` of every region that it
//! speaks for, also of those that it does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use raftstore::{RegionId, RegionStatus, StoreId};
use tokio::time::{Instant, MissedTickBehavior};
use tso::Timestamp;

use super::exchange::Outgoing;
use super::hub::{Grants, Others, Shared, now};
use super::peers::{NoAnswer, Peers};
use crate::grant::{Grant, PushAnswer, PushGrants};
use crate::region_store::RegionReads;

/// The most pushes to one store that are not answered, and the most that wait for their timestamp. A store that is
/// slower than this gets fewer.
const PUSHES_MAX: usize = 64;

type Answers = FuturesUnordered<BoxFuture<'static, (StoreId, Result<PushAnswer, NoAnswer>)>>;

impl<H: RegionReads> Grants<H> {
    /// Tells the other stores, for ever. `incarnation` tells this life of the store from those before. Does nothing
    /// before [`Grants::connect`].
    ///
    /// Cancel safety: may be dropped at any time.
    pub async fn run(self, incarnation: u64) {
        let Some(Others { peers, .. }) = self.shared.others.get() else { return };
        let exchange = exchange(&self.shared, peers, incarnation);
        let push = push(&self.shared, peers);
        tokio::join!(exchange, push);
    }
}

/// What to push to whom.
type Due = BTreeMap<StoreId, Vec<RegionId>>;

/// The pushes of a store.
struct Pushes<'a, H> {
    shared: &'a Shared<H>,
    peers: &'a Arc<dyn Peers>,
    answers: Answers,
    in_flight: BTreeMap<StoreId, usize>,
}

async fn push<H: RegionReads>(shared: &Arc<Shared<H>>, peers: &Arc<dyn Peers>) {
    if shared.config.push_interval.is_zero() {
        return;
    }
    let mut pushes = Pushes { shared, peers, answers: Answers::new(), in_flight: BTreeMap::new() };
    // Far from the oracle a timestamp takes longer than the interval. The next turn does not wait for it.
    let mut dated = FuturesUnordered::new();
    let mut next = now();
    loop {
        if shared.readers.lock().is_empty() {
            // What is not polled must not hold a request that others wait for.
            dated.clear();
            shared.has_readers.notified().await;
            next = now();
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(next) => {}
            Some((due, ts)) = dated.next(), if !dated.is_empty() => {
                if let Some(ts) = ts {
                    pushes.send(due, ts);
                }
                continue;
            }
            Some((store, _)) = pushes.answers.next(), if !pushes.answers.is_empty() => {
                pushes.in_flight.entry(store).and_modify(|n| *n -= 1);
                continue;
            }
        }
        next = (next + shared.config.push_interval).max(now());
        let due: Due = shared.readers.lock().due(now());
        if due.is_empty() {
            continue;
        }
        match shared.concurrency.try_timestamp() {
            Some(ts) => pushes.send(due, ts),
            None if dated.len() < PUSHES_MAX => {
                dated.push(async move { (due, shared.concurrency.timestamp().await) });
            }
            None => {}
        }
    }
}

impl<H: RegionReads> Pushes<'_, H> {
    /// Pushes what is due, at a timestamp of the oracle.
    fn send(&mut self, due: Due, ts: Timestamp) {
        let regions: BTreeSet<RegionId> = due.values().flatten().copied().collect();
        let grants: BTreeMap<RegionId, Grant> = give_all(self.shared, regions, ts);
        for (store, regions) in due {
            let grants: Vec<Grant> = regions.iter().filter_map(|region| grants.get(region)).copied().collect();
            let waiting = self.in_flight.entry(store).or_default();
            if grants.is_empty() || *waiting >= PUSHES_MAX {
                continue;
            }
            *waiting += 1;
            self.shared.metrics.pushed.inc();
            let push = PushGrants { from: self.shared.store.store_id(), ts, grants, exchange: None };
            let answer = self.peers.push(store, push);
            self.answers.push(Box::pin(async move { (store, answer.await) }));
        }
    }
}

async fn exchange<H: RegionReads>(shared: &Arc<Shared<H>>, peers: &Arc<dyn Peers>, incarnation: u64) {
    let mut outgoing: BTreeMap<StoreId, Outgoing> = BTreeMap::new();
    let mut waiting: BTreeSet<StoreId> = BTreeSet::new();
    let mut answers = Answers::new();
    let mut ticks = tokio::time::interval(shared.config.exchange_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            Some((store, answer)) = answers.next(), if !answers.is_empty() => {
                waiting.remove(&store);
                let lacks = !matches!(&answer, Ok(PushAnswer { lacks: false, .. }));
                if let Some(out) = outgoing.get_mut(&store).filter(|_| lacks) {
                    out.repeat_all();
                }
                if let Ok(PushAnswer { wanted, .. }) = answer {
                    note_readers(shared, store, wanted, now());
                }
                continue;
            }
            _ = ticks.tick() => {}
        }
        let led: Vec<RegionStatus> = shared.store.regions().into_iter().filter(|status| status.is_leader).collect();
        let Some(ts) = shared.concurrency.timestamp().await else { continue };
        let grants = give_all(shared, led.iter().map(|status| status.region.id), ts);
        // For the time when it does not lead any more, and may be cut off from who does.
        grants.values().for_each(|grant| shared.add(*grant));
        let own = shared.store.store_id();
        let others = led.iter().flat_map(|status| status.region.peers.iter().map(|peer| peer.store));
        let stores: BTreeSet<StoreId> = others.chain(outgoing.keys().copied()).filter(|store| *store != own).collect();
        for store in stores.into_iter().filter(|store| !waiting.contains(store)).collect::<Vec<_>>() {
            let here = led.iter().filter(|status| status.region.peer_on(store).is_some());
            let here: Vec<Grant> = here.filter_map(|status| grants.get(&status.region.id)).copied().collect();
            let out = outgoing.entry(store).or_insert_with(|| Outgoing::new(incarnation));
            let Some((grants, exchange)) = out.next(ts, &here) else { continue };
            waiting.insert(store);
            shared.metrics.exchanged.inc();
            let push = PushGrants { from: own, ts, grants, exchange: Some(exchange) };
            let answer = peers.push(store, push);
            answers.push(Box::pin(async move { (store, answer.await) }));
        }
    }
}

/// The grants at `ts` of those regions that this store leads under a lease.
fn give_all<H: RegionReads>(
    shared: &Shared<H>,
    regions: impl IntoIterator<Item = RegionId>,
    ts: Timestamp,
) -> BTreeMap<RegionId, Grant> {
    let give = |region| Some((region, shared.giver.try_give(region, ts).ok()??));
    regions.into_iter().filter_map(give).collect()
}

fn note_readers<H>(shared: &Shared<H>, store: StoreId, regions: Vec<RegionId>, now: Instant) {
    if regions.is_empty() || shared.config.push_interval.is_zero() {
        return;
    }
    shared.readers.lock().wanted(store, regions, now);
    shared.has_readers.notify_one();
}
