//! Requests over many keys: split by region, sent in parallel, and what a region refuses is split and sent again.
//!
//! The items are kept in key order, so the items of one region are a run. Each run carries its own retry state; when a
//! region error comes back, only that run is regrouped under the refreshed cache (a split may have made two of it)
//! while the others go on. A run is bounded in number and in bytes, so that neither the message nor the proposal that
//! becomes of it is too large; an answer that ends early leaves the rest of its run to be asked for.

use std::collections::VecDeque;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use tso::Timestamp;

use super::Shared;
use super::config::ClientConfig;
use super::error::ClientError;
use super::region_cache::{RegionCache, Route};
use super::retry::{Nature, Retry, pause};
use crate::api::{KeyError, LockInfo, Mutation, Request, RequestBody, Response};
use crate::key::Key;
use crate::size::decision_bytes;

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

/// What is to be done with items.
pub(super) struct Job<'a, T> {
    /// What the end of its retries means.
    pub(super) nature: Nature,
    /// The bytes that an item adds to a request or to the proposal that becomes of it, whichever is more.
    pub(super) weigh: &'a (dyn Fn(&T) -> usize + Sync),
    /// The request for a run of items; made anew for every attempt.
    pub(super) body: &'a (dyn Fn(Vec<T>) -> RequestBody + Sync),
    /// Bytes of values after which no more are asked for.
    pub(super) enough: usize,
}

/// What came back.
pub(super) struct Answers<T> {
    /// The answers of the regions, in any order.
    pub(super) responses: Vec<Response>,
    /// The items that were not asked for, because there was enough.
    pub(super) rest: Vec<T>,
    bytes: usize,
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
    /// The answer, and the part of the run that it does not cover.
    Answered(Response, Option<Run<T>>),
    Locked(Vec<LockInfo>),
    Again(Run<T>, Duration),
    Failed(ClientError),
}

impl<T: Keyed> Run<T> {
    /// Whether it begins with this key, which is the smallest of all.
    fn begins_with(&self, first: Option<&Key>) -> bool {
        self.items.first().map(Keyed::key) == first
    }

    /// The items from `resume` on, where an answer ended; none if it covers all. An error if it covers nothing.
    fn split_at(mut self, resume: &Key) -> Result<Option<Vec<T>>, ClientError> {
        match self.items.iter().position(|item| item.key() >= resume) {
            None => Ok(None),
            Some(0) => Err(ClientError::Failed("a store answered a batch get without looking up a key".to_owned())),
            Some(at) => Ok(Some(self.items.split_off(at))),
        }
    }
}

impl<T> Task<T> {
    fn into_run(self) -> Run<T> {
        match self {
            Task::Wait(run, _) | Task::Locate(run) | Task::Send(run, _) => run,
        }
    }

    fn run(&self) -> &Run<T> {
        match self {
            Task::Wait(run, _) | Task::Locate(run) | Task::Send(run, _) => run,
        }
    }
}

impl<T> Answers<T> {
    fn new() -> Answers<T> {
        Answers { responses: Vec::new(), rest: Vec::new(), bytes: 0 }
    }

    fn add(&mut self, response: Response) {
        if let Response::Pairs { pairs, .. } = &response {
            self.bytes += pairs.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum::<usize>();
        }
        self.responses.push(response);
    }
}

impl Shared {
    /// Does a job for every region that `items` touch, in parallel, and returns the answers. Locks met are gathered
    /// over all regions; any other error ends the call at once, with other regions' requests perhaps under way. The
    /// first items in key order are answered even if others already brought enough.
    pub(super) async fn fan_out<T: Keyed>(
        &self,
        mut items: Vec<T>,
        job: &Job<'_, T>,
    ) -> Result<Answers<T>, ClientError> {
        items.sort_by(|a, b| a.key().cmp(b.key()));
        let first = items.first().map(|item| item.key().clone());
        let mut waiting = VecDeque::new();
        let mut under_way = FuturesUnordered::new();
        let (mut answers, mut locks) = (Answers::new(), Vec::new());
        self.group(Run { items, retry: self.retry(job) }, job, &mut waiting);
        loop {
            while under_way.len() < self.config.fan_out {
                let Some(task) = waiting.pop_front() else { break };
                if answers.bytes >= job.enough && !task.run().begins_with(first.as_ref()) {
                    answers.rest.extend(task.into_run().items);
                    continue;
                }
                under_way.push(self.perform(task, job));
            }
            match under_way.next().await {
                None => break,
                Some(Outcome::Answered(response, rest)) => {
                    answers.add(response);
                    if let Some(rest) = rest {
                        self.group(rest, job, &mut waiting);
                    }
                }
                Some(Outcome::Locked(met)) => locks.extend(met),
                Some(Outcome::Again(run, wait)) if wait.is_zero() => self.group(run, job, &mut waiting),
                Some(Outcome::Again(run, wait)) => waiting.push_back(Task::Wait(run, wait)),
                Some(Outcome::Failed(error)) => return Err(error),
            }
        }
        if locks.is_empty() { Ok(answers) } else { Err(KeyError::Locked(locks).into()) }
    }

    fn retry<T>(&self, job: &Job<'_, T>) -> Retry {
        Retry::new(self.config.deadline, job.nature)
    }

    /// Splits a run by region, as far as the cache knows them, into requests of bounded size.
    fn group<T: Keyed>(&self, run: Run<T>, job: &Job<'_, T>, waiting: &mut VecDeque<Task<T>>) {
        let Run { items, retry } = run;
        let groups = group_by_region(&self.cache.read(), items, &self.config, job.weigh);
        for (route, items) in groups {
            let run = Run { items, retry: retry.clone() };
            waiting.push_back(match route {
                Some(route) => Task::Send(run, route),
                None => Task::Locate(run),
            });
        }
    }

    async fn perform<T: Keyed>(&self, task: Task<T>, job: &Job<'_, T>) -> Outcome<T> {
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
                let request = Request { context: route.context(), body: (job.body)(run.items.clone()) };
                match self.send(&route, request).await {
                    Ok(response) => self.answered(response, run, job),
                    Err(error) => match run.retry.after_call(self, &route, error) {
                        Ok(wait) => Outcome::Again(run, wait),
                        Err(ClientError::Key(KeyError::Locked(locks))) => Outcome::Locked(locks),
                        Err(error) => Outcome::Failed(error),
                    },
                }
            }
        }
    }

    fn answered<T: Keyed>(&self, response: Response, run: Run<T>, job: &Job<'_, T>) -> Outcome<T> {
        let Response::Pairs { resume: Some(resume), .. } = &response else {
            return Outcome::Answered(response, None);
        };
        match run.split_at(resume) {
            // It went forward: the patience for the rest begins anew.
            Ok(rest) => Outcome::Answered(response, rest.map(|items| Run { items, retry: self.retry(job) })),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Sends a request that concerns one key, made anew for every attempt, until it is answered.
    pub(super) async fn single(
        &self,
        key: &Key,
        mut retry: Retry,
        body: impl Fn() -> RequestBody,
    ) -> Result<Response, ClientError> {
        let storage = key.to_storage();
        loop {
            let route = self.route(&storage, &mut retry).await?;
            let request = Request { context: route.context(), body: body() };
            match retry.bound(&route, self.send(&route, request)).await {
                Ok(response) => return Ok(response),
                Err(error) => pause(retry.after_call(self, &route, error)?).await,
            }
        }
    }

    /// The primary and those of `others` that are committed along with it, and the others.
    fn along(&self, primary: &Key, others: &[Key], route: &Route) -> (Vec<Key>, Vec<Key>) {
        let (mut keys, mut left) = (vec![primary.clone()], Vec::new());
        let mut bytes = decision_bytes(primary);
        for key in others {
            let with_it = bytes + decision_bytes(key);
            let fits = keys.len() < self.config.batch_keys && with_it <= self.config.batch_bytes;
            if fits && route.region.contains(&key.to_storage()) {
                bytes = with_it;
                keys.push(key.clone());
            } else {
                left.push(key.clone());
            }
        }
        (keys, left)
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
            let (keys, left) = self.along(primary, others, &route);
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

/// Splits items, which are in key order, into runs of one region, of at most as many items and bytes as the settings
/// allow; runs of items whose region is not known have no route.
fn group_by_region<T: Keyed>(
    cache: &RegionCache,
    items: Vec<T>,
    config: &ClientConfig,
    weigh: &(dyn Fn(&T) -> usize + Sync),
) -> Vec<(Option<Route>, Vec<T>)> {
    let mut groups: Vec<(Option<Route>, Vec<T>)> = Vec::new();
    let mut bytes = 0usize;
    for item in items {
        let (storage, weight) = (item.key().to_storage(), weigh(&item));
        bytes = bytes.saturating_add(weight);
        if let Some((route, run)) = groups.last_mut() {
            let same = match route {
                Some(route) => route.region.contains(&storage),
                None => cache.lookup(&storage).is_none(),
            };
            if same && run.len() < config.batch_keys && bytes <= config.batch_bytes {
                run.push(item);
                continue;
            }
        }
        bytes = weight;
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

    fn grouped(cache: &RegionCache, text: &str, config: &ClientConfig) -> Vec<(Option<u64>, Vec<Key>)> {
        let groups = group_by_region(cache, keys(text), config, &|key| 10 * key.as_bytes().len());
        groups.into_iter().map(|(route, items)| (route.map(|route| route.region.id.get()), items)).collect()
    }

    #[test]
    fn runs_follow_regions_gaps_and_the_limits() {
        let mut cache = RegionCache::new(8);
        assert!(cache.insert(region(1, "", "c"), None));
        assert!(cache.insert(region(3, "m", ""), None));
        let few = ClientConfig { batch_keys: 2, ..ClientConfig::default() };
        assert_eq!(
            grouped(&cache, "a b c d m n o", &few),
            vec![(Some(1), keys("a b")), (None, keys("c d")), (Some(3), keys("m n")), (Some(3), keys("o"))]
        );
        assert_eq!(grouped(&RegionCache::new(1), "a z", &ClientConfig::default()), vec![(None, keys("a z"))]);
        // An item that is too large by itself goes alone.
        let small = ClientConfig { batch_bytes: 30, ..ClientConfig::default() };
        assert_eq!(
            grouped(&cache, "m n o ppppp q rr s", &small),
            vec![(Some(3), keys("m n o")), (Some(3), keys("ppppp")), (Some(3), keys("q rr")), (Some(3), keys("s")),]
        );
    }
}
