//! What a store asks of the leaders: one request for all that is wanted of one of them, and the answer to those who
//! wait.
//!
//! [`super::asking`] decides; this file sends, delivers and measures.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use raftstore::{RegionError, RegionId, StoreId};
use tokio::sync::oneshot;
use tso::Timestamp;

use super::asking::{AskQueue, Batch, RoundTrip};
use super::hub::{Others, Shared, now};
use super::peers::NoAnswer;
use crate::grant::{AskGrants, GivenGrants};
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::region_store::RegionReads;

/// What is asked of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    Grants,
    ReadIndex,
}

/// What an answer says to those who waited for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// At or above the one that was wanted.
    pub(super) ts: Timestamp,
    /// The round trips that it took: to the leader, and of the leader to the oracle.
    pub(super) round_trips: u32,
}

type Waiter = oneshot::Sender<Result<Answered, RegionError>>;

/// The requests of a store.
#[derive(Default)]
pub(super) struct Asks {
    queues: Mutex<HashMap<(StoreId, Ask), AskQueue<Waiter>>>,
    /// How long the others take to answer.
    round_trips: Mutex<HashMap<StoreId, RoundTrip>>,
}

impl<H: RegionReads> Shared<H> {
    /// Asks a leader with the next request, and waits for its answer. What it grants is added by then.
    pub(super) async fn ask(
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
    pub(super) fn is_far(&self, leader: Option<StoreId>) -> bool {
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
