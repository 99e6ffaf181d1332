//! Finding the region of a key: from the cache, else by asking stores.

use raftstore::{RegionStatus, StoreId};

use super::Shared;
use super::backoff::RetryClass;
use super::bound;
use super::endpoint::CallError;
use super::error::ClientError;
use super::region_cache::{Route, is_newer, reaches};
use super::retry::{Retry, pause};

/// Most stores asked at once when the nearest does not know.
const ASKED_AT_ONCE: usize = 5;
/// Most regions walked through to find the one that ends at a bound.
const WALKED: usize = 64;

impl Shared {
    /// The route to the region of a storage key. Retries within the budget of `retry`.
    pub(super) async fn route(&self, key: &[u8], retry: &mut Retry) -> Result<Route, ClientError> {
        let cached = self.cache.read().lookup(key);
        match cached {
            Some(route) => Ok(route),
            None => self.locate(key, retry).await,
        }
    }

    /// The route to the region of the last keys before a storage bound; an empty bound is after every key.
    pub(super) async fn route_before(&self, bound: &[u8], retry: &mut Retry) -> Result<Route, ClientError> {
        let cached = self.cache.read().lookup_before(bound);
        if let Some(route) = cached {
            return Ok(route);
        }
        let mut probe = bound::just_before(bound);
        for _ in 0..WALKED {
            let route = self.route(&probe, retry).await?;
            if reaches(&route.region, bound) {
                return Ok(route);
            }
            probe = route.region.end.clone();
        }
        Err(ClientError::Failed("no region ends at the bound of a scan".to_owned()))
    }

    async fn locate(&self, key: &[u8], retry: &mut Retry) -> Result<Route, ClientError> {
        let mut round = 0usize;
        loop {
            let error = match self.ask(key, round).await {
                Ok(route) => return Ok(route),
                Err(error) => error,
            };
            pause(retry.next(self, RetryClass::Unlocated, &error)?).await;
            let cached = self.cache.read().lookup(key);
            if let Some(route) = cached {
                return Ok(route);
            }
            round = round.wrapping_add(1);
        }
    }

    /// Asks the nearest store, then some of the others at once; each round begins with another of those.
    async fn ask(&self, key: &[u8], round: usize) -> Result<Route, CallError> {
        let stores = self.endpoint.stores();
        let Some((nearest, others)) = stores.split_first() else {
            return Err(CallError::Unreachable { store: StoreId::default(), why: "no store is known".to_owned() });
        };
        let mut failure =
            CallError::Unreachable { store: *nearest, why: "the region of a key is not known there".to_owned() };
        // A store that misled us once is not asked alone again.
        if round == 0 {
            match self.ask_store(*nearest, key).await {
                Ok(Some(status)) => {
                    if let Some(route) = self.learn_status(key, status) {
                        return Ok(route);
                    }
                }
                Ok(None) => {}
                Err(error) => failure = error,
            }
        }
        let first = round.saturating_mul(ASKED_AT_ONCE).checked_rem(others.len()).unwrap_or(0);
        let asked = others.iter().cycle().skip(first).take(others.len().min(ASKED_AT_ONCE));
        let asked = asked.chain((round > 0).then_some(nearest));
        let answers = futures::future::join_all(asked.map(|store| self.ask_store(*store, key))).await;
        let mut best: Option<RegionStatus> = None;
        for answer in answers {
            match answer {
                Ok(Some(status)) if best.as_ref().is_none_or(|best| is_fresher(&status, best)) => best = Some(status),
                Ok(_) => {}
                Err(error) => failure = error,
            }
        }
        best.and_then(|status| self.learn_status(key, status)).ok_or(failure)
    }

    async fn ask_store(&self, store: StoreId, key: &[u8]) -> Result<Option<RegionStatus>, CallError> {
        self.metrics.locates.inc();
        self.endpoint.locate(store, key.to_vec()).await
    }

    /// Takes over an answer; none if it is older than what is known, or not about the key.
    fn learn_status(&self, key: &[u8], status: RegionStatus) -> Option<Route> {
        let mut cache = self.cache.write();
        if status.region.contains(key) {
            cache.insert(status.region, status.leader.map(|leader| leader.store));
        }
        self.count_regions(&cache);
        cache.lookup(key)
    }
}

/// Whether `a` is the better answer: of the newer epoch, then of the newer term, then one that knows a leader.
fn is_fresher(a: &RegionStatus, b: &RegionStatus) -> bool {
    if a.region.epoch != b.region.epoch {
        return is_newer(a.region.epoch, b.region.epoch);
    }
    (a.term, a.leader.is_some()) > (b.term, b.leader.is_some())
}
