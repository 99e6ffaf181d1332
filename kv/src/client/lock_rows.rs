//! Row locks in the memory of leaders: taken region by region, kept and given up in parallel.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

use super::bound;
use super::error::ClientError;
use super::retry::{Retry, RetrySemantics, pause};
use super::router::Router;
use crate::api::{AcquireRequest, Acquired, DetectorClock, RequestBody, Response, WaitReport};
use crate::key::Key;

/// The most keys of one request.
const KEYS_MAX: usize = 256;
/// The bytes of keys after which a request is full.
const BYTES_MAX: usize = 1 << 20;

impl Router {
    /// [`super::Client::acquire`].
    pub(super) async fn acquire(&self, request: &AcquireRequest) -> Result<Acquired, ClientError> {
        let mut acquired = Acquired::default();
        let mut retry = self.idempotent_retry();
        while let Some(left) = request.keys.get(acquired.rows.len()..).filter(|left| !left.is_empty()) {
            let route = self.route(&left[0].to_storage(), &mut retry).await?;
            let (mut keys, mut bytes) = (Vec::new(), 0);
            for key in left.iter().take(KEYS_MAX) {
                bytes += key.as_bytes().len();
                if !keys.is_empty() && (bytes > BYTES_MAX || !route.region.contains(&key.to_storage())) {
                    break;
                }
                keys.push(key.clone());
            }
            let body = || RequestBody::Acquire(AcquireRequest { keys: keys.clone(), ..request.clone() });
            match retry.attempt(self, &route, body).await {
                Ok(Response::Acquired(part)) if part.rows.len() <= keys.len() => {
                    if part.rows.is_empty() && part.blocked.is_none() {
                        return Err(ClientError::Failed("a store answered a request for locks without any".to_owned()));
                    }
                    acquired.rows.extend(part.rows);
                    acquired.blocked = part.blocked;
                    if acquired.blocked.is_some() {
                        return Ok(acquired);
                    }
                    retry = self.idempotent_retry();
                }
                Ok(other) => return Err(ClientError::unexpected_response("Acquire", &other)),
                Err(error) => pause(retry.on_failure(self, &route, error)?).await,
            }
        }
        Ok(acquired)
    }

    /// [`super::Client::report_wait`].
    pub(super) async fn report_wait(
        &self,
        report: &WaitReport,
        limit: Duration,
    ) -> Result<(Vec<WaitReport>, DetectorClock), ClientError> {
        let retry = Retry::with_cutoff(limit, RetrySemantics::Idempotent);
        match self.send_to_key(&report.at, retry, || RequestBody::Detect(report.clone())).await? {
            Response::Waits { cycle, clock } => Ok((cycle, clock)),
            other => Err(ClientError::unexpected_response("Detect", &other)),
        }
    }

    /// [`super::Client::one_of_each_region`].
    pub(super) fn one_of_each_region(&self, keys: &BTreeSet<Key>) -> Vec<Key> {
        let cache = self.cache.read();
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
