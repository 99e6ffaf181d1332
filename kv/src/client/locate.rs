//! Finds the region of a key: from the cache, otherwise by asking stores.

use raftstore::{RegionStatus, StoreId};

use super::backoff::RetryClass;
use super::bound;
use super::endpoint::CallError;
use super::error::ClientError;
use super::region_cache::{Route, extends_to, is_newer};
use super::retry::{Retry, pause};
use super::router::Router;

/// The most stores asked in parallel when the nearest one does not know the region.
const PARALLEL_LOCATES: usize = 5;
/// The most regions visited to find the one that ends at a bound.
const REGION_HOPS_MAX: usize = 64;

impl Router {
    /// The route to the region of a storage key. Retries as far as `retry` allows.
    pub(super) async fn route(&self, key: &[u8], retry: &mut Retry) -> Result<Route, ClientError> {
        let cached = self.cache.read().lookup(key);
        match cached {
            Some(route) => Ok(route),
            None => self.locate(key, retry).await,
        }
    }

    /// The route to the region that holds the last keys before a storage bound. An empty bound means "after every key".
    pub(super) async fn route_before(&self, bound: &[u8], retry: &mut Retry) -> Result<Route, ClientError> {
        let cached = self.cache.read().lookup_before(bound);
        if let Some(route) = cached {
            return Ok(route);
        }
        let mut probe = bound::just_before(bound);
        for _ in 0..REGION_HOPS_MAX {
            let route = self.route(&probe, retry).await?;
            if extends_to(&route.region, bound) {
                return Ok(route);
            }
            probe = route.region.end.clone();
        }
        Err(ClientError::Failed("no region ends at the bound of a scan".to_owned()))
    }

    /// Asks stores in rounds until one of them knows the region of a key.
    async fn locate(&self, key: &[u8], retry: &mut Retry) -> Result<Route, ClientError> {
        let mut round = 0usize;
        loop {
            let error = match self.locate_round(key, round).await {
                Ok(route) => return Ok(route),
                Err(error) => error,
            };
            pause(retry.next_wait(self, RetryClass::Unlocated, &error)?).await;
            let cached = self.cache.read().lookup(key);
            if let Some(route) = cached {
                return Ok(route);
            }
            round = round.wrapping_add(1);
        }
    }

    /// One round: asks the nearest store, then some of the others in parallel. Each round starts at another store.
    async fn locate_round(&self, key: &[u8], round: usize) -> Result<Route, CallError> {
        let stores = self.endpoint.stores();
        let Some((nearest, others)) = stores.split_first() else {
            return Err(CallError::Unreachable { store: StoreId::default(), why: "no store is known".to_owned() });
        };
        let mut failure =
            CallError::Unreachable { store: *nearest, why: "the region of a key is not known there".to_owned() };
        // After the first round the nearest store's answer is not trusted alone.
        if round == 0 {
            match self.locate_at(*nearest, key).await {
                Ok(Some(status)) => {
                    if let Some(route) = self.learn_status(key, status) {
                        return Ok(route);
                    }
                }
                Ok(None) => {}
                Err(error) => failure = error,
            }
        }
        let first = round.saturating_mul(PARALLEL_LOCATES).checked_rem(others.len()).unwrap_or(0);
        let asked = others.iter().cycle().skip(first).take(others.len().min(PARALLEL_LOCATES));
        let asked = asked.chain((round > 0).then_some(nearest));
        let answers = futures::future::join_all(asked.map(|store| self.locate_at(*store, key))).await;
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

    /// Asks one store for the region of a key.
    async fn locate_at(&self, store: StoreId, key: &[u8]) -> Result<Option<RegionStatus>, CallError> {
        self.metrics.locates.inc();
        self.endpoint.locate(store, key.to_vec()).await
    }

    /// Adds an answer to the cache and returns the cached route of the key. `None` if the answer is older than the
    /// cache or about another range, and the cache does not know the key.
    fn learn_status(&self, key: &[u8], status: RegionStatus) -> Option<Route> {
        let mut cache = self.cache.write();
        if status.region.contains(key) {
            cache.insert(status.region, status.leader.map(|leader| leader.store));
        }
        self.update_region_gauge(&cache);
        cache.lookup(key)
    }
}

/// Whether `a` is a better answer than `b`: a newer epoch, then a newer term, then a known leader.
fn is_fresher(a: &RegionStatus, b: &RegionStatus) -> bool {
    if a.region.epoch != b.region.epoch {
        return is_newer(a.region.epoch, b.region.epoch);
    }
    (a.term, a.leader.is_some()) > (b.term, b.leader.is_some())
}
