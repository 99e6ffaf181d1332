//! First reads: a transaction that has no start_ts yet leaves it to the store that serves its first read.
//!
//! The store takes the timestamp from the oracle when the request arrives. So the read is one message from any node,
//! and where the oracle is on the store's node, the only one. Any timestamp is right that was issued after the caller
//! asked, also where the read goes on in other regions.
//!
//! A first read is one attempt. It has no effect, and the caller has passed nothing on. So whatever goes wrong, the
//! caller takes a timestamp itself and reads as any other transaction: that road locates regions, reroutes and retries.
//! A copy of the request that arrives late reads at another timestamp, which nobody learns.

use bytes::Bytes;
use tso::Timestamp;

use super::region_cache::Route;
use super::router::Router;
use super::scan::{Page, ScanRange, Snapshot};
use crate::api::{KeyError, LockInfo, Request, RequestBody, Response};
use crate::key::Key;

/// What a first read has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRead<T> {
    /// The timestamp that the store took. No other caller has it.
    pub start_ts: Timestamp,
    /// What the snapshot at that timestamp holds, or the locks that block the read of it.
    pub outcome: Result<T, Vec<LockInfo>>,
}

impl Router {
    /// See [`super::Client::first_get`].
    pub(super) async fn first_get(&self, key: &Key) -> Option<FirstRead<Option<Bytes>>> {
        let route = self.cache.read().lookup(&key.to_storage())?;
        let body = RequestBody::Get { key: key.clone(), start_ts: Timestamp::ZERO, pass: Vec::new() };
        let value = |response| if let Response::Value(value) = response { Some(value) } else { None };
        self.send_first(&route, body, value).await
    }

    /// See [`super::Client::first_scan`].
    pub(super) async fn first_scan(&self, range: &ScanRange, limit: u32) -> Option<FirstRead<Page>> {
        if range.is_empty() || limit == 0 {
            return None;
        }
        let route = self.cached_scan_route(range)?;
        let part = range.clip_to_region(&route);
        let body = part.request(&Snapshot::from(Timestamp::ZERO), limit, self.config.page_bytes);
        let page = |response| {
            let Response::Pairs { pairs, resume } = response else { return None };
            Some(Page { pairs, resume: range.rest(&part, resume).map(ScanRange::into_resume) })
        };
        self.send_first(&route, body, page).await
    }

    async fn send_first<T>(
        &self,
        route: &Route,
        body: RequestBody,
        value: impl FnOnce(Response) -> Option<T>,
    ) -> Option<FirstRead<T>> {
        match self.send(route, Request { context: route.context(), body }).await {
            Ok(Response::Started { start_ts, outcome }) => {
                let outcome = match *outcome {
                    Ok(response) => Ok(value(response)?),
                    Err(KeyError::Locked(locks)) => Err(locks),
                    Err(_) => return None,
                };
                Some(FirstRead { start_ts, outcome })
            }
            Ok(_) => None,
            Err(error) => {
                self.learn_failure(route, &error);
                None
            }
        }
    }
}
