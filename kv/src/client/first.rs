//! First reads: a transaction that has no start_ts yet leaves it to the store that serves its first read.
//!
//! The store takes the timestamp from the oracle when the request arrives. So the read is one message from any node,
//! and where the oracle is on the store's node, the only one. Any timestamp is right that was issued after the caller
//! asked, also where the read goes on in other regions.
//!
//! A first read is one attempt. It has no effect, and the caller has passed nothing on. So whatever goes wrong, the
//! caller takes a timestamp itself and reads as any other transaction: that road locates regions, reroutes and retries.
//! A copy of the request that arrives late reads at another timestamp, which nobody learns.
//!
//! With options that choose another replica than the leader, that one takes the snapshot: the newest that it can
//! prove, if the options name a bound, else a fresh one. Other transactions may read at the same fresh one, so only a
//! transaction that never writes leaves it to a replica.

use bytes::Bytes;
use tso::Timestamp;

use super::options::{ReadOptions, Reading, ReplicaPolicy};
use super::region_cache::Route;
use super::retry::{ReadFailure, Retry, RetrySemantics, now};
use super::router::Router;
use super::scan::{Page, ScanRange, Snapshot};
use crate::api::{KeyError, LockInfo, RequestBody, Response};
use crate::key::Key;

/// What a first read has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRead<T> {
    /// The timestamp that the store took. If a leader took it, no other caller has it.
    pub start_ts: Timestamp,
    /// What the snapshot at that timestamp holds, or the locks that block the read of it.
    pub outcome: Result<T, Vec<LockInfo>>,
}

impl Router {
    /// See [`super::Client::first_get`].
    pub(super) async fn first_get(&self, key: &Key, options: Option<&ReadOptions>) -> Option<FirstRead<Option<Bytes>>> {
        let storage = key.to_storage();
        let cached = self.cache.read().lookup(&storage);
        let route = match (cached, Self::must_locate(options)) {
            (None, Some(mut retry)) => Box::pin(self.route(&storage, &mut retry)).await.ok()?,
            (cached, _) => cached?,
        };
        if let Some((value, served)) = options.and_then(|options| self.try_first_read(&route, (key, &storage), options))
        {
            return Some(FirstRead { start_ts: served.start_ts, outcome: Ok(value) });
        }
        let body = RequestBody::Get { key: key.clone(), start_ts: Timestamp::ZERO, pass: Vec::new() };
        let value = |response| if let Response::Value(value) = response { Some(value) } else { None };
        self.send_first(&route, options, body, value).await
    }

    /// See [`super::Client::first_scan`].
    pub(super) async fn first_scan(
        &self,
        range: &ScanRange,
        limit: u32,
        options: Option<&ReadOptions>,
    ) -> Option<FirstRead<Page>> {
        if range.is_empty() || limit == 0 {
            return None;
        }
        let route = match (self.cached_scan_route(range), Self::must_locate(options)) {
            (None, Some(mut retry)) if range.reverse => {
                Box::pin(self.route_before(&range.storage_end(), &mut retry)).await.ok()?
            }
            (None, Some(mut retry)) => Box::pin(self.route(&range.start.to_storage(), &mut retry)).await.ok()?,
            (cached, _) => cached?,
        };
        let part = range.clip_to_region(&route);
        let body = part.request(&Snapshot::from(Timestamp::ZERO), limit, self.config.page_bytes);
        let page = |response| {
            let Response::Pairs { pairs, resume } = response else { return None };
            Some(Page { pairs, resume: range.rest(&part, resume).map(ScanRange::into_resume) })
        };
        self.send_first(&route, options, body, page).await
    }

    /// Whether the region of a first read is located if it is not known. For a snapshot that a replica has proved the
    /// oracle is no other way where it cannot be asked, and this node's own store knows its regions.
    fn must_locate(options: Option<&ReadOptions>) -> Option<Retry> {
        let options = options.filter(|options| options.floor.is_some() && options.replica != ReplicaPolicy::Leader)?;
        Some(Retry::with_cutoff(options.patience, RetrySemantics::Read))
    }

    async fn send_first<T>(
        &self,
        route: &Route,
        options: Option<&ReadOptions>,
        body: RequestBody,
        value: impl FnOnce(Response) -> Option<T>,
    ) -> Option<FirstRead<T>> {
        if options.is_some_and(|options| !leaves_snapshot(options)) {
            return None;
        }
        let patience = options.filter(|options| options.replica != ReplicaPolicy::Leader);
        let cutoff = patience.map(|options| now() + options.patience);
        let reading = options.map(|options| Reading::new(options, false));
        match self.attempt_read(route, reading, cutoff, body).await {
            Ok(Response::Started { start_ts, outcome, .. }) => {
                let outcome = match *outcome {
                    Ok(response) => Ok(value(response)?),
                    Err(KeyError::Locked(locks)) => Err(locks),
                    Err(_) => return None,
                };
                Some(FirstRead { start_ts, outcome })
            }
            Ok(_) => None,
            Err(ReadFailure { error, at_target }) => {
                if at_target {
                    self.learn_failure(route, &error);
                }
                None
            }
        }
    }
}

/// Whether the store that serves a first read may take its snapshot.
fn leaves_snapshot(options: &ReadOptions) -> bool {
    options.replica == ReplicaPolicy::Leader || options.floor.is_some() || options.read_only
}
