//! Requests over many keys: split by region, sent in parallel, and what a region refuses is split and sent again.
//!
//! The items are kept in key order, so the items of one region are a run. Each run carries its own retry state; when a
//! region error comes back, only that run is regrouped under the refreshed cache (a split may have made two of it)
//! while the others go on.

use std::collections::VecDeque;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use tso::Timestamp;

use super::Shared;
use super::error::ClientError;
use super::region_cache::{RegionCache, Route};
use super::retry::{Nature, Retry, pause};
use crate::api::{KeyError, LockInfo, Mutation, Request, RequestBody, Response};
use crate::key::Key;

/// Something that concerns one key.
pub(super) trait Keyed: Clone + Send + Sync {
    /// The key.
    fn key(&self) -> &Key;
}

impl Keyed for Key {
    fn key(&self) -> &Key {
        self
    }
}

impl Keyed for Mutation {
    fn key(&self) -> &Key {
        &self.key
    }
}

/// A run of items in key order, and its retry state.
struct Run<T> {
    items: Vec<T>,
    retry: Retry,
}

/// A run and what to do with it next.
enum Task<T> {
    /// Wait, then group it again.
    Wait(Run<T>, Duration),
    /// Find the region of its first item, then group it again.
    Locate(Run<T>),
    /// Send it.
    Send(Run<T>, Route),
}

/// What became of a task.
enum Outcome<T> {
    Answered(Response),
    Locked(Vec<LockInfo>),
    Again(Run<T>, Duration),
    Failed(ClientError),
}

impl Shared {
    /// Sends `body(items)` for every region that `items` touch, in parallel, and returns the answers. Locks met are
    /// gathered over all regions; any other error ends the call at once, with other regions' requests perhaps under
    /// way.
    pub(super) async fn fan_out<T: Keyed>(
        &self,
        mut items: Vec<T>,
        nature: Nature,
        body: impl Fn(Vec<T>) -> RequestBody + Sync,
    ) -> Result<Vec<Response>, ClientError> {
        items.sort_by(|a, b| a.key().cmp(b.key()));
        let mut waiting = VecDeque::new();
        let mut under_way = FuturesUnordered::new();
        let (mut answers, mut locks) = (Vec::new(), Vec::new());
        self.group(Run { items, retry: Retry::new(self.config.deadline, nature) }, &mut waiting);
        loop {
            while under_way.len() < self.config.fan_out {
                let Some(task) = waiting.pop_front() else { break };
                under_way.push(self.perform(task, &body));
            }
            match under_way.next().await {
                None => break,
                Some(Outcome::Answered(response)) => answers.push(response),
                Some(Outcome::Locked(met)) => locks.extend(met),
                Some(Outcome::Again(run, wait)) if wait.is_zero() => self.group(run, &mut waiting),
                Some(Outcome::Again(run, wait)) => waiting.push_back(Task::Wait(run, wait)),
                Some(Outcome::Failed(error)) => return Err(error),
            }
        }
        if locks.is_empty() { Ok(answers) } else { Err(KeyError::Locked(locks).into()) }
    }

    /// Splits a run by region, as far as the cache knows them, into requests of bounded size.
    fn group<T: Keyed>(&self, run: Run<T>, waiting: &mut VecDeque<Task<T>>) {
        let Run { items, retry } = run;
        let groups = group_by_region(&self.cache.read(), items, self.config.batch_keys);
        for (route, items) in groups {
            let run = Run { items, retry: retry.clone() };
            waiting.push_back(match route {
                Some(route) => Task::Send(run, route),
                None => Task::Locate(run),
            });
        }
    }

    async fn perform<T: Keyed>(&self, task: Task<T>, body: &(impl Fn(Vec<T>) -> RequestBody + Sync)) -> Outcome<T> {
        match task {
            Task::Wait(run, wait) => {
                pause(wait).await;
                Outcome::Again(run, Duration::ZERO)
            }
            Task::Locate(mut run) => {
                let Some(first) = run.items.first().map(|item| item.key().to_storage()) else {
                    return Outcome::Failed(ClientError::Failed("an empty run of keys".to_owned()));
                };
                match self.route(&first, &mut run.retry).await {
                    Ok(_) => Outcome::Again(run, Duration::ZERO),
                    Err(error) => Outcome::Failed(error),
                }
            }
            Task::Send(mut run, route) => {
                let request = Request { context: route.context(), body: body(run.items.clone()) };
                match self.send(&route, request).await {
                    Ok(response) => Outcome::Answered(response),
                    Err(error) => match run.retry.after_call(self, &route, error) {
                        Ok(wait) => Outcome::Again(run, wait),
                        Err(ClientError::Key(KeyError::Locked(locks))) => Outcome::Locked(locks),
                        Err(error) => Outcome::Failed(error),
                    },
                }
            }
        }
    }

    /// Sends a request that concerns one key, until it is answered.
    pub(super) async fn single(&self, key: &Key, nature: Nature, body: RequestBody) -> Result<Response, ClientError> {
        let storage = key.to_storage();
        let mut retry = Retry::new(self.config.deadline, nature);
        loop {
            let route = self.route(&storage, &mut retry).await?;
            match self.send(&route, Request { context: route.context(), body: body.clone() }).await {
                Ok(response) => return Ok(response),
                Err(error) => pause(retry.after_call(self, &route, error)?).await,
            }
        }
    }

    /// Commits the primary with those of `others` that its region holds; the others that are left are returned.
    pub(super) async fn commit_primary(
        &self,
        primary: &Key,
        others: &[Key],
        start_ts: Timestamp,
        commit_ts: Timestamp,
    ) -> Result<Vec<Key>, ClientError> {
        let storage = primary.to_storage();
        let mut retry = Retry::new(self.config.deadline, Nature::Commit);
        loop {
            let route = self.route(&storage, &mut retry).await?;
            let most = self.config.batch_keys.saturating_sub(1);
            let (mut keys, mut left) = (vec![primary.clone()], Vec::new());
            for key in others {
                let along = keys.len() <= most && route.region.contains(&key.to_storage());
                if along { keys.push(key.clone()) } else { left.push(key.clone()) }
            }
            let body = RequestBody::Commit { keys, start_ts, commit_ts };
            match self.send(&route, Request { context: route.context(), body }).await {
                Ok(Response::Done) => return Ok(left),
                // Whatever a store means by another answer, it may have committed.
                Ok(_) => return Err(ClientError::Undetermined(route.region.id)),
                Err(error) => pause(retry.after_call(self, &route, error)?).await,
            }
        }
    }
}

/// Splits items, which are in key order, into runs of one region and at most `most` items; runs of items whose region
/// is not known have no route.
fn group_by_region<T: Keyed>(cache: &RegionCache, items: Vec<T>, most: usize) -> Vec<(Option<Route>, Vec<T>)> {
    let mut groups: Vec<(Option<Route>, Vec<T>)> = Vec::new();
    for item in items {
        let storage = item.key().to_storage();
        if let Some((route, run)) = groups.last_mut() {
            let same = match route {
                Some(route) => route.region.contains(&storage),
                None => cache.lookup(&storage).is_none(),
            };
            if same && run.len() < most {
                run.push(item);
                continue;
            }
        }
        groups.push((cache.lookup(&storage), vec![item]));
    }
    groups
}

#[cfg(test)]
mod tests {
    use raftstore::{Epoch, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId};

    use super::*;

    fn region(id: u64, start: &str, end: &str) -> Region {
        let bound = |text: &str| if text.is_empty() { Vec::new() } else { Key::new(text.to_owned()).to_storage() };
        let peer = PeerMeta { id: PeerId::new(id), store: StoreId::new(1), role: PeerRole::Voter };
        let epoch = Epoch { conf_ver: 1, version: 1 };
        Region { id: RegionId::new(id), start: bound(start), end: bound(end), epoch, peers: vec![peer] }
    }

    fn keys(text: &str) -> Vec<Key> {
        text.split(' ').map(|key| Key::new(key.to_owned())).collect()
    }

    fn grouped(cache: &RegionCache, text: &str, most: usize) -> Vec<(Option<u64>, Vec<Key>)> {
        let groups = group_by_region(cache, keys(text), most);
        groups.into_iter().map(|(route, items)| (route.map(|route| route.region.id.get()), items)).collect()
    }

    #[test]
    fn runs_follow_regions_gaps_and_the_limit() {
        let mut cache = RegionCache::new(8);
        assert!(cache.insert(region(1, "", "c"), None));
        assert!(cache.insert(region(3, "m", ""), None));
        assert_eq!(
            grouped(&cache, "a b c d m n o", 2),
            vec![(Some(1), keys("a b")), (None, keys("c d")), (Some(3), keys("m n")), (Some(3), keys("o"))]
        );
        assert_eq!(grouped(&RegionCache::new(1), "a z", 9), vec![(None, keys("a z"))]);
    }
}
