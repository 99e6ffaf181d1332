//! Operations on many keys: split by region and sent in parallel. What a region refuses is split and sent again.
//!
//! Items are sorted by key, so the items of one region form a run. Each run has its own retry state. After a region
//! error only that run is regrouped under the updated cache (a split may have made two runs of it), while the others
//! continue. A run is bounded in number and in bytes, so that neither its message nor its proposal is too large. If a
//! response ends early, the rest of its run is sent again. A response of another kind than the request asks for ends
//! the operation.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tso::Timestamp;

use super::config::ClientConfig;
use super::error::ClientError;
use super::options::Reading;
use super::region_cache::{RegionCache, Route};
use super::retry::{ReadFailure, Retry, RetrySemantics, pause};
use super::router::Router;
use crate::api::{KeyError, LockInfo, LockRef, Mutation, RequestBody, Response};
use crate::key::Key;
use crate::size::decision_bytes;

/// An item of an operation: it concerns one key.
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

impl Keyed for LockRef {
    fn key(&self) -> &Key {
        &self.key
    }
}

/// An operation on many items.
pub(super) struct BatchOp<'a, T> {
    /// The name of the request, for errors.
    pub(super) request: &'static str,
    /// Of a read: how it chooses its replicas. `None`: the leaders.
    pub(super) reading: Option<Reading<'a>>,
    /// What an unknown outcome means.
    pub(super) semantics: RetrySemantics,
    /// Whether a response is of the kind that the request asks for.
    pub(super) is_answer: fn(&Response) -> bool,
    /// The bytes that an item adds to the request, or to the proposal made of it, whichever is more.
    pub(super) item_bytes: &'a (dyn Fn(&T) -> usize + Sync),
    /// Makes the request for a run of items. Called anew for every attempt.
    pub(super) body: &'a (dyn Fn(Vec<T>) -> RequestBody + Sync),
    /// Bytes of returned pairs after which no further runs are sent.
    pub(super) max_bytes: usize,
    /// Set if an attempt failed that may have been delivered.
    pub(super) unanswered: &'a AtomicBool,
}

impl<T> BatchOp<'_, T> {
    /// Passes a failure on, and takes note if the attempt may have been delivered.
    fn note_failure<R>(&self, failure: ReadFailure, handle: impl FnOnce(ReadFailure) -> R) -> R {
        if failure.error.maybe_delivered() {
            self.unanswered.store(true, Ordering::Relaxed);
        }
        handle(failure)
    }
}

/// The result of an operation on many items.
pub(super) struct BatchResult<T> {
    /// The pairs that the regions returned, in any order.
    pub(super) pairs: Vec<(Key, Bytes)>,
    /// The other responses, in any order.
    pub(super) others: Vec<Response>,
    /// The items that were not sent, because `max_bytes` was reached.
    pub(super) unsent: Vec<T>,
    bytes: usize,
}

/// A run of items in key order, and its retry state.
struct Run<T> {
    items: Vec<T>,
    retry: Retry,
}

/// The next step of a run.
enum Task<T> {
    /// Wait, then group the run by region again.
    Wait(Run<T>, Duration),
    /// Locate the region of the first item, then group the run by region again.
    Locate(Run<T>),
    /// Send the run along the route.
    Send(Run<T>, Route),
}

/// The result of a task.
enum Outcome<T> {
    /// The response, and the part of the run that it does not cover.
    Answered(Response, Option<Run<T>>),
    /// Other transactions hold locks.
    Locked(Vec<LockInfo>),
    /// Group the run by region again after a wait.
    Retry(Run<T>, Duration),
    /// The final error.
    Failed(ClientError),
}

impl<T: Keyed> Run<T> {
    /// Whether the run begins with `first`, the smallest key of the operation.
    fn begins_with(&self, first: Option<&Key>) -> bool {
        self.items.first().map(Keyed::key) == first
    }

    /// The items from `resume` on, which a response did not cover; `None` if it covered all. Fails if it covered none.
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

impl<T> BatchResult<T> {
    fn new() -> BatchResult<T> {
        BatchResult { pairs: Vec::new(), others: Vec::new(), unsent: Vec::new(), bytes: 0 }
    }

    fn add(&mut self, response: Response) {
        match response {
            Response::Pairs { pairs, .. } => {
                self.bytes += pairs.iter().map(|(key, value)| key.as_bytes().len() + value.len()).sum::<usize>();
                self.pairs.extend(pairs);
            }
            other => self.others.push(other),
        }
    }
}

impl Router {
    /// Runs an operation in every region that `items` touch, in parallel. Locks are collected over all regions. Any
    /// other error ends the operation at once; requests to other regions may then be under way. The run that begins
    /// with the smallest key is always sent, even if others have reached `max_bytes`.
    pub(super) async fn fan_out<T: Keyed>(
        &self,
        mut items: Vec<T>,
        op: &BatchOp<'_, T>,
    ) -> Result<BatchResult<T>, ClientError> {
        items.sort_by(|a, b| a.key().cmp(b.key()));
        let first = items.first().map(|item| item.key().clone());
        let mut waiting = VecDeque::new();
        let mut in_flight = FuturesUnordered::new();
        let (mut result, mut locks) = (BatchResult::new(), Vec::new());
        self.split_run(Run { items, retry: self.new_retry(op) }, op, &mut waiting);
        loop {
            while in_flight.len() < self.config.fan_out {
                let Some(task) = waiting.pop_front() else { break };
                if result.bytes >= op.max_bytes && !task.run().begins_with(first.as_ref()) {
                    result.unsent.extend(task.into_run().items);
                    continue;
                }
                in_flight.push(self.perform(task, op));
            }
            match in_flight.next().await {
                None => break,
                Some(Outcome::Answered(response, rest)) => {
                    result.add(response);
                    if let Some(rest) = rest {
                        self.split_run(rest, op, &mut waiting);
                    }
                }
                Some(Outcome::Locked(more)) => locks.extend(more),
                Some(Outcome::Retry(run, wait)) if wait.is_zero() => self.split_run(run, op, &mut waiting),
                Some(Outcome::Retry(run, wait)) => waiting.push_back(Task::Wait(run, wait)),
                Some(Outcome::Failed(error)) => return Err(error),
            }
        }
        if locks.is_empty() { Ok(result) } else { Err(KeyError::Locked(locks).into()) }
    }

    fn new_retry<T>(&self, op: &BatchOp<'_, T>) -> Retry {
        match op.reading {
            None => Retry::new(self.config.deadline, op.semantics),
            reading => self.read_retry(reading),
        }
    }

    /// Splits a run into runs of one cached region and of bounded size, and queues a task for each.
    fn split_run<T: Keyed>(&self, run: Run<T>, op: &BatchOp<'_, T>, waiting: &mut VecDeque<Task<T>>) {
        let Run { items, retry } = run;
        let groups = group_by_region(&self.cache.read(), items, &self.config, op.item_bytes);
        for (route, items) in groups {
            let run = Run { items, retry: retry.clone() };
            waiting.push_back(match route {
                Some(route) => Task::Send(run, route),
                None => Task::Locate(run),
            });
        }
    }

    async fn perform<T: Keyed>(&self, task: Task<T>, op: &BatchOp<'_, T>) -> Outcome<T> {
        match task {
            Task::Wait(run, wait) => {
                pause(wait).await;
                Outcome::Retry(run, Duration::ZERO)
            }
            Task::Locate(mut run) => {
                let Some(first) = run.items.first().map(|item| item.key().to_storage()) else {
                    return Outcome::Failed(ClientError::Failed("an empty run of keys".to_owned()));
                };
                match self.route(&first, &mut run.retry).await {
                    Ok(_) => Outcome::Retry(run, Duration::ZERO),
                    Err(error) => Outcome::Failed(error),
                }
            }
            Task::Send(mut run, route) => {
                let Run { items, retry } = &mut run;
                let sent = match op.reading {
                    None => retry
                        .attempt(self, &route, || (op.body)(items.clone()))
                        .await
                        .map_err(|error| ReadFailure { error, at_target: true }),
                    reading => self.attempt_read(&route, reading, retry.begin_read(), (op.body)(items.clone())).await,
                };
                match sent {
                    Ok(response) if (op.is_answer)(&response) => self.on_response(response, run, op),
                    Ok(other) => {
                        Outcome::Failed(self.unexpected_response(op.request, op.semantics, route.region.id, &other))
                    }
                    Err(failure) => {
                        match op.note_failure(failure, |failure| run.retry.on_read_failure(self, &route, failure)) {
                            Ok(wait) => Outcome::Retry(run, wait),
                            Err(ClientError::Key(KeyError::Locked(locks))) => Outcome::Locked(locks),
                            Err(error) => Outcome::Failed(error),
                        }
                    }
                }
            }
        }
    }

    fn on_response<T: Keyed>(&self, response: Response, run: Run<T>, op: &BatchOp<'_, T>) -> Outcome<T> {
        let Response::Pairs { resume: Some(resume), .. } = &response else {
            return Outcome::Answered(response, None);
        };
        match run.split_at(resume) {
            // The run made progress: the rest starts with a fresh retry state.
            Ok(rest) => Outcome::Answered(response, rest.map(|items| Run { items, retry: self.new_retry(op) })),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Sends a request for one key until a store answers it. `body` makes the request anew for every attempt.
    pub(super) async fn send_to_key(
        &self,
        key: &Key,
        mut retry: Retry,
        body: impl Fn() -> RequestBody,
    ) -> Result<Response, ClientError> {
        let storage = key.to_storage();
        loop {
            let route = self.route(&storage, &mut retry).await?;
            match retry.attempt(self, &route, &body).await {
                Ok(response) => return Ok(response),
                Err(error) => pause(retry.on_failure(self, &route, error)?).await,
            }
        }
    }

    /// [`Router::send_to_key`] of a read: at the replicas that `reading` chooses.
    pub(super) async fn read_key(
        &self,
        key: &Key,
        reading: Option<Reading<'_>>,
        body: impl Fn() -> RequestBody,
    ) -> Result<Response, ClientError> {
        let (storage, mut retry) = (key.to_storage(), self.read_retry(reading));
        loop {
            let route = self.route(&storage, &mut retry).await?;
            match self.attempt_read(&route, reading, retry.begin_read(), body()).await {
                Ok(response) => return Ok(response),
                Err(failure) => pause(retry.on_read_failure(self, &route, failure)?).await,
            }
        }
    }

    /// Splits the keys of a commit: the primary with those of `others` that fit into its request, and the rest.
    fn split_commit(&self, primary: &Key, others: &[Key], route: &Route) -> (Vec<Key>, Vec<Key>) {
        let (mut keys, mut rest) = (vec![primary.clone()], Vec::new());
        let mut bytes = decision_bytes(primary);
        for key in others {
            let total = bytes + decision_bytes(key);
            let fits = keys.len() < self.config.batch_keys && total <= self.config.batch_bytes;
            if fits && route.region.contains(&key.to_storage()) {
                bytes = total;
                keys.push(key.clone());
            } else {
                rest.push(key.clone());
            }
        }
        (keys, rest)
    }

    /// Commits the primary together with those of `others` that its region holds. Returns the rest of `others`.
    pub(super) async fn commit_primary(
        &self,
        primary: &Key,
        others: &[Key],
        start_ts: Timestamp,
        commit_ts: Timestamp,
    ) -> Result<Vec<Key>, ClientError> {
        let storage = primary.to_storage();
        let mut retry = Retry::new(self.config.deadline, RetrySemantics::Commit);
        loop {
            let route = self.route(&storage, &mut retry).await?;
            let (keys, rest) = self.split_commit(primary, others, &route);
            let body = || RequestBody::Commit { keys: keys.clone(), start_ts, commit_ts };
            match retry.attempt(self, &route, body).await {
                Ok(Response::Done) => return Ok(rest),
                Ok(other) => {
                    return Err(self.unexpected_response("Commit", RetrySemantics::Commit, route.region.id, &other));
                }
                Err(error) => pause(retry.on_failure(self, &route, error)?).await,
            }
        }
    }
}

/// Splits items, which are in key order, into runs of one region with at most `batch_keys` items and `batch_bytes`
/// bytes. A run whose region is not cached has no route.
fn group_by_region<T: Keyed>(
    cache: &RegionCache,
    items: Vec<T>,
    config: &ClientConfig,
    item_bytes: &(dyn Fn(&T) -> usize + Sync),
) -> Vec<(Option<Route>, Vec<T>)> {
    let mut groups: Vec<(Option<Route>, Vec<T>)> = Vec::new();
    let mut run_bytes = 0usize;
    for item in items {
        let (storage, bytes) = (item.key().to_storage(), item_bytes(&item));
        run_bytes = run_bytes.saturating_add(bytes);
        if let Some((route, run)) = groups.last_mut() {
            let same_region = match route {
                Some(route) => route.region.contains(&storage),
                None => cache.lookup(&storage).is_none(),
            };
            if same_region && run.len() < config.batch_keys && run_bytes <= config.batch_bytes {
                run.push(item);
                continue;
            }
        }
        run_bytes = bytes;
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
    fn runs_end_at_regions_gaps_and_limits() {
        let mut cache = RegionCache::new(8);
        assert!(cache.insert(region(1, "", "c"), None));
        assert!(cache.insert(region(3, "m", ""), None));
        let few = ClientConfig { batch_keys: 2, ..ClientConfig::default() };
        assert_eq!(
            grouped(&cache, "a b c d m n o", &few),
            vec![(Some(1), keys("a b")), (None, keys("c d")), (Some(3), keys("m n")), (Some(3), keys("o"))]
        );
        assert_eq!(grouped(&RegionCache::new(1), "a z", &ClientConfig::default()), vec![(None, keys("a z"))]);
        // An item above the limit is sent alone.
        let small = ClientConfig { batch_bytes: 30, ..ClientConfig::default() };
        assert_eq!(
            grouped(&cache, "m n o ppppp q rr s", &small),
            vec![(Some(3), keys("m n o")), (Some(3), keys("ppppp")), (Some(3), keys("q rr")), (Some(3), keys("s")),]
        );
    }
}
