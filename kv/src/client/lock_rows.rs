//! Row locks in the memory of leaders: taken region by region, kept and given up in parallel.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

use super::Client;
use super::bound;
use super::dispatch::BatchOp;
use super::error::ClientError;
use super::retry::{Retry, RetrySemantics, pause};
use crate::api::{AcquireRequest, Acquired, LockRef, RequestBody, Response, WaitReport};
use crate::key::Key;
use crate::size::decision_bytes;

/// The most keys of one request.
const KEYS_MAX: usize = 256;
/// The bytes of keys after which a request is full.
const BYTES_MAX: usize = 1 << 20;

impl Client {
    /// Locks the rows of `request`, in its order, up to the first one that another transaction has locked. The answer is
    /// that of [`RequestBody::Acquire`], over all regions; it never ends early for another reason. With
    /// [`Waiting::Queue`](crate::api::Waiting::Queue) every request to a region waits that long.
    ///
    /// # Errors
    ///
    /// - `Key(WriteConflict)`: a row has changed since the snapshot of the request.
    /// - `Key(AlreadyExists)`: a row exists that must not.
    /// - Those of [`Client`]. Never `Undetermined`.
    ///
    /// After any error, and if the future is dropped, some rows may be locked: the caller releases all of them.
    pub async fn acquire(&self, request: &AcquireRequest) -> Result<Acquired, ClientError> {
        let mut acquired = Acquired::default();
        let mut retry = self.router.idempotent_retry();
        while let Some(left) = request.keys.get(acquired.rows.len()..).filter(|left| !left.is_empty()) {
            let [first, ..] = left else { break };
            let route = self.router.route(&first.to_storage(), &mut retry).await?;
            let (mut keys, mut bytes) = (Vec::new(), 0);
            for key in left.iter().take(KEYS_MAX) {
                bytes += key.as_bytes().len();
                if !keys.is_empty() && (bytes > BYTES_MAX || !route.region.contains(&key.to_storage())) {
                    break;
                }
                keys.push(key.clone());
            }
            let body = || RequestBody::Acquire(AcquireRequest { keys: keys.clone(), ..request.clone() });
            match retry.attempt(&self.router, &route, body).await {
                Ok(Response::Acquired(part)) if part.rows.len() <= keys.len() => {
                    if part.rows.is_empty() && part.blocked.is_none() {
                        return Err(ClientError::Failed("a store answered a request for locks without any".to_owned()));
                    }
                    acquired.rows.extend(part.rows);
                    acquired.blocked = part.blocked;
                    if acquired.blocked.is_some() {
                        return Ok(acquired);
                    }
                    retry = self.router.idempotent_retry();
                }
                Ok(other) => return Err(ClientError::unexpected_response("Acquire", &other)),
                Err(error) => pause(retry.on_failure(&self.router, &route, error)?).await,
            }
        }
        Ok(acquired)
    }

    /// Gives up the row locks of a transaction on `keys`, and its places in their queues, regions in parallel.
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`. The locks end with their ttl anyway.
    pub async fn release(&self, keys: Vec<Key>, start_ts: tso::Timestamp) -> Result<(), ClientError> {
        let body = |keys| RequestBody::Release { keys, start_ts };
        self.write("Release", RetrySemantics::Idempotent, keys, &decision_bytes, &body).await
    }

    /// Keeps the row locks of transactions that live, regions in parallel. Names for each transaction a row of each
    /// region in which it may have locked any; see [`Client::one_of_each_region`].
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn refresh(&self, locks: Vec<LockRef>) -> Result<(), ClientError> {
        let op = BatchOp {
            request: "Refresh",
            reading: None,
            semantics: RetrySemantics::Idempotent,
            is_answer: |response| *response == Response::Done,
            item_bytes: &|lock: &LockRef| decision_bytes(&lock.key),
            body: &|locks| RequestBody::Refresh { locks },
            max_bytes: usize::MAX,
            unanswered: &std::sync::atomic::AtomicBool::new(false),
        };
        self.router.fan_out(locks, &op).await.map(drop)
    }

    /// Reports a wait to the detector of deadlocks. Returns the deadlock that the wait has closed; see
    /// [`Response::Waits`]. Ends after `limit`: the next report serves better than a late one.
    ///
    /// # Errors
    ///
    /// Those of [`Client`]. Never `Key` or `Undetermined`.
    pub async fn report_wait(&self, report: &WaitReport, limit: Duration) -> Result<Vec<WaitReport>, ClientError> {
        let retry = Retry::with_cutoff(limit, RetrySemantics::Idempotent);
        match self.router.send_to_key(&report.at, retry, || RequestBody::Detect(report.clone())).await? {
            Response::Waits(cycle) => Ok(cycle),
            other => Err(ClientError::unexpected_response("Detect", &other)),
        }
    }

    /// The first of `keys` in each region, as far as the regions are known here. All keys of unknown regions.
    pub fn one_of_each_region(&self, keys: &BTreeSet<Key>) -> Vec<Key> {
        let cache = self.router.cache.read();
        let (mut firsts, mut next) = (Vec::new(), keys.first());
        while let Some(key) = next {
            firsts.push(key.clone());
            let region = cache.lookup(&key.to_storage()).map(|route| route.region);
            next = match region.map(|region| bound::ceil(&region.end)) {
                Some(end) if end.as_bytes().is_empty() => None,
                Some(end) if end > *key => keys.range(end..).next(),
                _ => keys.range::<Key, _>((Bound::Excluded(key), Bound::Unbounded)).next(),
            };
        }
        firsts
    }
}
